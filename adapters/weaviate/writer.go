package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/mapmatched/mmplug/mapmatched"
)

// WriterOptions are the settings of [OpenWriter]. The zero value, and nil, are
// the defaults.
type WriterOptions struct {
	Connection

	// Tenant is written to. A class that is made for it has tenants, and the
	// tenant is made where it is missing.
	Tenant string
	// Tokenization is how the server cuts texts into words when it makes the
	// class, such as "word", "trigram" or "gse" (Chinese and Japanese; the server
	// needs to be set up for it); "" means "word".
	Tokenization string
	// BatchSize is how many objects go into one request, up to 10,000; 0 means
	// 256. Fewer go when they are large.
	BatchSize int
}

const (
	defaultBatchSize = 256
	maxBatchSize     = 10000
	maxBatchBytes    = 4 << 20 // beyond which a batch is sent before it is full
)

// tokenizations that Weaviate knows.
var tokenizations = []string{"word", "lowercase", "whitespace", "field", "trigram", "gse", "gse_ch", "kagome_ja", "kagome_kr"}

// Validate reports every value that is out of range.
func (o *WriterOptions) Validate() error {
	if o == nil {
		return nil
	}
	f := o.faults()
	if o.Tenant != "" {
		if err := checkTenant(o.Tenant); err != nil {
			f.add("%v", err)
		}
	}
	if o.Tokenization != "" && !slices.Contains(tokenizations, o.Tokenization) {
		f.add("Tokenization is %q, want one of %s, or empty", o.Tokenization, strings.Join(tokenizations, ", "))
	}
	if o.BatchSize < 0 || o.BatchSize > maxBatchSize {
		f.add("BatchSize is %d, want 0 for %d to %d", o.BatchSize, defaultBatchSize, maxBatchSize)
	}
	return f.err()
}

var (
	_ mapmatched.CorpusWriter     = (*Writer)(nil)
	_ mapmatched.CorpusIdentifier = (*Writer)(nil)
)

// Writer writes corpora to a class. It is safe for concurrent use, but two
// calls that write to the same class may do the same work twice.
type Writer struct {
	server *server
	class  string
	opts   WriterOptions
}

// OpenWriter opens a class for writing; it need not exist. The address is the
// host and port of the HTTP interface.
func OpenWriter(ctx context.Context, address, class string, opts *WriterOptions) (*Writer, error) {
	const op = "open"
	if opts == nil {
		opts = &WriterOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, classify(op, err)
	}
	name, err := className(class)
	if err != nil {
		return nil, classify(op, err)
	}
	server, err := connect(ctx, address, &opts.Connection)
	if err != nil {
		return nil, classify(op, err)
	}
	w := &Writer{server: server, class: name, opts: *opts}
	if w.opts.BatchSize == 0 {
		w.opts.BatchSize = defaultBatchSize
	}
	if w.opts.Tokenization == "" {
		w.opts.Tokenization = "word"
	}
	return w, nil
}

// Close ends running calls and frees the connections. It may be called twice.
func (w *Writer) Close() error { return classify("close", w.server.close()) }

// CorpusIdentity implements mapmatched.CorpusIdentifier; a class that is not
// there has none.
func (w *Writer) CorpusIdentity(ctx context.Context) (mapmatched.CorpusIdentity, error) {
	c, err := w.server.describe(ctx, w.class)
	if isNotFound(err) {
		return mapmatched.CorpusIdentity{}, nil
	}
	if err != nil {
		return mapmatched.CorpusIdentity{}, classify("corpus identity", err)
	}
	return c.identity, nil
}

func isNotFound(err error) bool {
	var r *reply
	return errors.As(err, &r) && r.kind == mapmatched.KindNotFound
}

// WriteCorpus implements mapmatched.CorpusWriter. The class is made with cosine
// as its metric and without a vectoriser. Objects whose chunk is not among the
// records stay. An edge may lead to a chunk of the records or of the class;
// anything else is an error, found when all chunks are written.
func (w *Writer) WriteCorpus(ctx context.Context, identity mapmatched.CorpusIdentity, records iter.Seq2[mapmatched.Record, error], progress func(done int)) (mapmatched.WriteReport, error) {
	const op = "write corpus"
	in, err := w.prepare(ctx, identity)
	if err != nil {
		return mapmatched.WriteReport{}, classify(op, err)
	}
	in.progress = progress
	if err := in.run(ctx, records); err != nil {
		return in.report, classify(op, err)
	}
	return in.report, nil
}

// run writes the records and then the references.
func (in *ingest) run(ctx context.Context, records iter.Seq2[mapmatched.Record, error]) error {
	ctx, in.cancel = context.WithCancelCause(ctx)
	defer in.cancel(nil)
	for record, err := range records {
		if err == nil {
			err = in.add(ctx, record)
		}
		if err != nil {
			in.cancel(err) // an error of a batch under way came first and stays
			break
		}
	}
	if err := in.flush(ctx); err != nil {
		in.cancel(err)
	}
	if err := in.wait(ctx); err != nil {
		return err
	}
	return in.link(ctx)
}

// prepare makes the class and the tenant, or checks them.
func (w *Writer) prepare(ctx context.Context, identity mapmatched.CorpusIdentity) (*ingest, error) {
	in := newIngest(w, identity)
	c, err := w.server.describe(ctx, w.class)
	if isNotFound(err) {
		if err := w.create(ctx, identity); err != nil {
			return nil, fmt.Errorf("class %s: %w", w.class, err)
		}
		in.report.Created = true
		c, err = w.server.describe(ctx, w.class)
	}
	if err != nil {
		return nil, err
	}
	if err := fits(c, identity); err != nil {
		return nil, err
	}
	if c.tenants != (w.opts.Tenant != "") {
		_, err := c.layout(Place{Tenant: w.opts.Tenant})
		return nil, err
	}
	if c.tenants {
		if err := w.addTenant(ctx, c); err != nil {
			return nil, err
		}
	}
	if c, err = w.withReference(ctx, c, propertyConfirmed); err != nil {
		return nil, err
	}
	in.store = &store{w.server, layout{class: c, tenant: w.opts.Tenant, id: propertyChunkID, text: propertyText}}
	return in, nil
}

// withReference makes a reference of the class to itself where it has none of
// that name, and returns the class as it then is.
func (w *Writer) withReference(ctx context.Context, c *class, name string) (*class, error) {
	if _, ok := c.property(name); ok {
		return c, nil
	}
	err := w.once(ctx, func(ctx context.Context) error {
		return w.server.schema.PropertyCreator().WithClassName(w.class).
			WithProperty(&models.Property{Name: name, DataType: []string{w.class}}).Do(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", name, err)
	}
	return w.server.describe(ctx, w.class)
}

// fits compares a class with what is to be written to it.
func fits(c *class, identity mapmatched.CorpusIdentity) error {
	diff := c.identity.Differences(identity)
	if !c.own {
		diff = append(diff, "it was not written by this module")
	}
	for _, p := range ownProperties("") {
		got, ok := c.property(p.Name)
		if want := p.DataType[0]; !ok || got.dataType != want {
			diff = append(diff, fmt.Sprintf("property %s is %q, wanted %q", p.Name, got.dataType, want))
		}
	}
	if m, ok := c.vectors[""]; !ok || m != metricCosine {
		diff = append(diff, fmt.Sprintf("the metric of its vector without a name is %q, wanted %q", m, metricCosine))
	}
	if v := c.vectorizer[""]; v != "none" && v != "" {
		diff = append(diff, fmt.Sprintf("its vectorizer is %q, wanted \"none\"", v))
	}
	if len(diff) > 0 {
		return fmt.Errorf("class %s: %w: %s: write to another class, or delete this one first", c.name, mapmatched.ErrStaleIndex, strings.Join(diff, "; "))
	}
	return nil
}

// ownProperties are the properties of a class that is made here, but for the
// references.
func ownProperties(tokenization string) []*models.Property {
	yes, no := true, false
	field := func(name string, filterable *bool) *models.Property {
		return &models.Property{Name: name, DataType: []string{"text"}, Tokenization: "field", IndexFilterable: filterable, IndexSearchable: &no}
	}
	words := func(name string) *models.Property {
		return &models.Property{Name: name, DataType: []string{"text"}, Tokenization: tokenization, IndexFilterable: &yes, IndexSearchable: &yes}
	}
	number := func(name string) *models.Property {
		return &models.Property{Name: name, DataType: []string{"int"}, IndexFilterable: &yes}
	}
	title, section := words(propertyTitle), words(propertySection)
	title.IndexSearchable, section.IndexSearchable = &no, &no
	title.Tokenization, section.Tokenization = "field", "field"
	return []*models.Property{
		field(propertyChunkID, &yes), field(propertyDocument, &yes), title, section,
		number(propertyOrdinal), number(propertyStart), number(propertyEnd),
		words(propertyText), field(propertyEdges, &no), field(propertyDigest, &no),
	}
}

// create makes the class.
func (w *Writer) create(ctx context.Context, identity mapmatched.CorpusIdentity) error {
	text, err := json.Marshal(description{Version: descriptionVersion, Identity: identity})
	if err != nil {
		return err
	}
	c := &models.Class{
		Class: w.class, Description: string(text), Vectorizer: "none", VectorIndexType: "hnsw",
		VectorIndexConfig: map[string]any{"distance": string(metricCosine)},
		Properties:        ownProperties(w.opts.Tokenization),
	}
	if w.opts.Tenant != "" {
		c.MultiTenancyConfig = &models.MultiTenancyConfig{Enabled: true}
	}
	return w.once(ctx, func(ctx context.Context) error { return w.server.schema.ClassCreator().WithClass(c).Do(ctx) })
}

// once makes something that may be there already, by another or by an attempt
// whose answer was lost.
func (w *Writer) once(ctx context.Context, f func(ctx context.Context) error) error {
	err := w.server.do(ctx, f)
	if err != nil && strings.Contains(err.Error(), "already exists") && !strings.Contains(err.Error(), "similar class") {
		return nil
	}
	return err
}

func (w *Writer) addTenant(ctx context.Context, c *class) error {
	err := w.server.checkTenantExists(ctx, c, w.opts.Tenant)
	if !isNotFound(err) {
		return err
	}
	return w.once(ctx, func(ctx context.Context) error {
		return w.server.schema.TenantsCreator().WithClassName(c.name).WithTenants(models.Tenant{Name: w.opts.Tenant}).Do(ctx)
	})
}
