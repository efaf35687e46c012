package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/mapmatched/mmplug/mapmatched"
)

// uuidProperty is the name that the UUID of an object goes by.
const uuidProperty = "id"

// metric is how a class compares vectors, as the server spells it.
type metric string

const (
	metricCosine    metric = "cosine"
	metricDot       metric = "dot"
	metricSquared   metric = "l2-squared"
	metricManhattan metric = "manhattan"
	metricHamming   metric = "hamming"
)

// score turns a distance into a score of which higher is better.
func (m metric) score(distance float64) float64 {
	if m == metricCosine {
		return 1 - distance
	}
	return 0 - distance // not −0
}

// property is a property of a class.
type property struct {
	name         string
	dataType     string   // of one that is no reference, such as "text" or "int[]"
	targets      []string // classes that a reference may lead to
	tokenization string   // of a text
	searchable   bool     // its words can be searched
	filterable   bool
}

// simpleTypes are the data types that candidates carry as metadata.
var simpleTypes = []string{"text", "string", "int", "number", "boolean", "date", "uuid",
	"text[]", "string[]", "int[]", "number[]", "boolean[]", "date[]", "uuid[]"}

func (p property) isText() bool { return p.dataType == "text" || p.dataType == "string" }

// class is what the schema says of a class.
type class struct {
	name       string
	properties []property
	vectors    map[string]metric // by name; "" for the vector without a name
	indexes    map[string]string // type of the index of each vector
	vectorizer map[string]string
	tenants    bool
	own        bool // written by this package
	identity   mapmatched.CorpusIdentity
}

// description is what this package keeps in the description of a class.
type description struct {
	Version  int                       `json:"mmplug"`
	Identity mapmatched.CorpusIdentity `json:"identity"`
}

// descriptionVersion is the version of the form in which corpora are written.
const descriptionVersion = 1

// describe asks the schema for a class.
func (s *server) describe(ctx context.Context, name string) (*class, error) {
	var found *models.Class
	err := s.do(ctx, func(ctx context.Context) (err error) {
		found, err = s.schema.ClassGetter().WithClassName(name).Do(ctx)
		return err
	})
	var r *reply
	if errors.As(err, &r) && r.kind == mapmatched.KindNotFound {
		return nil, &reply{kind: mapmatched.KindNotFound, message: fmt.Sprintf("there is no class %s: write it first, or name another", name)}
	}
	if err != nil {
		return nil, fmt.Errorf("class %s: %w", name, err)
	}
	return parseClass(found)
}

func parseClass(m *models.Class) (*class, error) {
	c := &class{name: m.Class, vectors: map[string]metric{}, indexes: map[string]string{}, vectorizer: map[string]string{},
		tenants: m.MultiTenancyConfig != nil && m.MultiTenancyConfig.Enabled}
	for _, p := range m.Properties {
		if p == nil || len(p.DataType) == 0 {
			return nil, corrupt("class %s has a property without a type", m.Class)
		}
		parsed := property{name: p.Name, tokenization: p.Tokenization,
			searchable: p.IndexSearchable == nil || *p.IndexSearchable, filterable: p.IndexFilterable == nil || *p.IndexFilterable}
		if isClassName(p.DataType[0]) {
			parsed.targets = p.DataType
		} else {
			parsed.dataType = p.DataType[0]
		}
		parsed.searchable = parsed.searchable && strings.TrimSuffix(parsed.dataType, "[]") == "text"
		c.properties = append(c.properties, parsed)
	}
	for name, v := range m.VectorConfig {
		c.vectors[name], c.indexes[name] = metricOf(v.VectorIndexConfig), v.VectorIndexType
		if vectorizer, ok := v.Vectorizer.(map[string]any); ok {
			c.vectorizer[name] = strings.Join(slices.Sorted(maps.Keys(vectorizer)), ",")
		}
	}
	if m.VectorIndexConfig != nil && m.VectorIndexType != "" {
		c.vectors[""], c.indexes[""], c.vectorizer[""] = metricOf(m.VectorIndexConfig), m.VectorIndexType, m.Vectorizer
	}
	var d description
	if json.Unmarshal([]byte(m.Description), &d) == nil && d.Version > 0 {
		if d.Version != descriptionVersion {
			return nil, fmt.Errorf("class %s was written in form %d and this version reads %d: write it again", m.Class, d.Version, descriptionVersion)
		}
		c.own, c.identity = true, d.Identity
	}
	return c, nil
}

// isClassName tells a reference from a data type.
func isClassName(dataType string) bool { return dataType[0] >= 'A' && dataType[0] <= 'Z' }

// metricOf reads the metric of an index; that of the server's default is
// cosine.
func metricOf(config any) metric {
	if settings, ok := config.(map[string]any); ok {
		if distance, ok := settings["distance"].(string); ok && distance != "" {
			return metric(distance)
		}
	}
	return metricCosine
}

// property finds a property by its name.
func (c *class) property(name string) (property, bool) {
	i := slices.IndexFunc(c.properties, func(p property) bool { return p.name == propertyName(name) })
	if i < 0 {
		return property{}, false
	}
	return c.properties[i], true
}

// need finds a property that has to be there.
func (c *class) need(field, name string) (property, error) {
	p, ok := c.property(name)
	if !ok {
		return p, fmt.Errorf("%s: class %s has no property %q; it has %s", field, c.name, name, c.propertyNames())
	}
	return p, nil
}

func (c *class) propertyNames() string {
	if len(c.properties) == 0 {
		return "none"
	}
	names := make([]string, len(c.properties))
	for i, p := range c.properties {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// vectorNames lists the vectors of the class.
func (c *class) vectorNames() []string { return slices.Sorted(maps.Keys(c.vectors)) }

// layout says where a class keeps what a chunk is made of.
type layout struct {
	class  *class
	tenant string
	id     string // property with the chunk ID, uuidProperty for the UUID
	text   string // property with the text, "" for none
}

// layout checks a place against the class.
func (c *class) layout(place Place) (layout, error) {
	l := layout{class: c, tenant: place.Tenant}
	switch {
	case c.tenants && place.Tenant == "":
		return l, fmt.Errorf("class %s has tenants: name one in Tenant", c.name)
	case !c.tenants && place.Tenant != "":
		return l, fmt.Errorf("class %s has no tenants: leave Tenant %q out", c.name, place.Tenant)
	}
	switch {
	case place.IDProperty == uuidProperty:
		l.id = uuidProperty
	case place.IDProperty != "":
		p, err := c.need("IDProperty", place.IDProperty)
		if err != nil {
			return l, err
		}
		if !p.isText() {
			return l, fmt.Errorf("IDProperty: property %s of class %s is a %s, want a text", p.name, c.name, p.dataType)
		}
		l.id = p.name
	default:
		l.id = uuidProperty
		if p, ok := c.property(propertyChunkID); ok && p.isText() {
			l.id = p.name
		}
	}
	var err error
	l.text, err = c.textProperty(place.TextProperty, l.id)
	return l, err
}

func (c *class) textProperty(name, id string) (string, error) {
	if name != "" {
		p, err := c.need("TextProperty", name)
		if err == nil && !p.isText() {
			err = fmt.Errorf("TextProperty: property %s of class %s is a %s, want a text", p.name, c.name, p.dataType)
		}
		return p.name, err
	}
	var texts []string
	for _, p := range c.properties {
		if p.isText() && p.name != id {
			texts = append(texts, p.name)
		}
	}
	for _, usual := range []string{propertyText, "content"} {
		if slices.Contains(texts, usual) {
			return usual, nil
		}
	}
	switch len(texts) {
	case 0:
		return "", nil
	case 1:
		return texts[0], nil
	}
	return "", fmt.Errorf("class %s has the text properties %s: name the text of a chunk in TextProperty", c.name, strings.Join(texts, ", "))
}

// checkTenantExists refuses a tenant that the class does not have.
func (s *server) checkTenantExists(ctx context.Context, c *class, tenant string) error {
	if tenant == "" {
		return nil
	}
	var exists bool
	err := s.do(ctx, func(ctx context.Context) (err error) {
		exists, err = s.schema.TenantsExists().WithClassName(c.name).WithTenant(tenant).Do(ctx)
		return err
	})
	if err == nil && !exists {
		err = &reply{kind: mapmatched.KindNotFound, message: fmt.Sprintf("class %s has no tenant %q: create it, or name another in Tenant", c.name, tenant)}
	}
	return err
}
