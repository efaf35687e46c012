package weaviate

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/mapmatched/mmplug/mapmatched"
)

// pageSize is how many objects a listing asks for at a time, where the server
// answers as many.
const pageSize = 500

// firstCursor comes before every UUID. The client leaves an empty cursor out,
// and the server then lists in another order.
const firstCursor = "00000000-0000-0000-0000-000000000000"

// Records implements mapmatched.RecordLister: every object in the order of the
// UUIDs, with its vector and its edges. The server's cursor takes no filter, so
// a provider with a filter is refused. Of a class that this package did not
// write, references to the class itself are edges of length 1 whose type is the
// name of the property. Objects without a chunk ID are left out.
func (s *searcher) Records(ctx context.Context) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		if err := s.checkListing(); err != nil {
			yield(mapmatched.Record{}, classify("records", err))
			return
		}
		for r, err := range s.records(ctx, s.target, 1) {
			if err == nil && r.Chunk.ID == "" {
				s.skipped.Add(1)
				continue
			}
			if !yield(r, classify("records", err)) || err != nil {
				return
			}
		}
	}
}

func (s *searcher) checkListing() error {
	if s.opts.Where != nil {
		return fmt.Errorf("%w: Where is set, and the server's cursor takes no filter: list without Where and choose from the records", mapmatched.ErrInvalidConfig)
	}
	return nil
}

// records lists all records; those without a chunk ID come with an empty one.
func (s *store) records(ctx context.Context, vector string, weight float64) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		for page, err := range s.pages(ctx) {
			var records []mapmatched.Record
			if err == nil {
				records, err = s.pageRecords(ctx, page, vector, weight)
			}
			if err != nil {
				yield(mapmatched.Record{}, err)
				return
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// pages lists the objects of the class by the cursor.
func (s *store) pages(ctx context.Context) iter.Seq2[[]*models.Object, error] {
	return func(yield func([]*models.Object, error) bool) {
		for cursor := firstCursor; ; {
			var page []*models.Object
			size := min(pageSize, s.server.most())
			err := s.server.do(ctx, func(ctx context.Context) (err error) {
				page, err = s.server.objects.ObjectsGetter().WithClassName(s.class.name).WithTenant(s.tenant).
					WithLimit(size).WithAfter(cursor).WithVector().Do(ctx)
				return err
			})
			if s.server.refuses(size, err) {
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) == 0 {
				return
			}
			full := len(page) == size
			last := page[len(page)-1]
			if last == nil || last.ID.String() <= cursor {
				yield(nil, corrupt("the listing of class %s does not go on after %s", s.class.name, cursor))
				return
			}
			cursor = last.ID.String()
			// A client that does not know the server's version does not send the
			// class, and then objects of all classes come.
			page = slices.DeleteFunc(page, func(o *models.Object) bool { return o == nil || o.Class != s.class.name })
			if !yield(page, nil) || !full {
				return
			}
		}
	}
}

// pageRecords turns objects into records.
func (s *store) pageRecords(ctx context.Context, page []*models.Object, vector string, weight float64) ([]mapmatched.Record, error) {
	records := make([]mapmatched.Record, len(page))
	references := make([]map[string][]string, len(page)) // UUIDs by property
	for i, o := range page {
		h := &hit{uuid: o.ID.String(), properties: map[string]any{}}
		fields, _ := o.Properties.(map[string]any)
		for _, p := range s.class.properties {
			switch {
			case slices.Contains(p.targets, s.class.name) && !s.class.own:
				uuids, err := beacons(fields[p.name], s.class.name)
				if err != nil {
					return nil, corrupt("object %s: property %s: %v", h.uuid, p.name, err)
				}
				if len(uuids) > 0 {
					if references[i] == nil {
						references[i] = map[string][]string{}
					}
					references[i][p.name] = uuids
				}
			case slices.Contains(simpleTypes, p.dataType):
				value, err := typed(p.dataType, fields[p.name])
				if err != nil {
					return nil, corrupt("object %s: property %s: %v", h.uuid, p.name, err)
				}
				if value != nil {
					h.properties[p.name] = value
				}
			}
		}
		records[i] = mapmatched.Record{Chunk: s.chunk(h), Vector: objectVector(o, vector)}
		if s.class.own && records[i].Chunk.ID != "" {
			stored, _ := h.properties[propertyEdges].(string)
			edges, err := decodeEdges(records[i].Chunk.ID, stored)
			if err != nil {
				return nil, err
			}
			records[i].Edges = edges
		}
	}
	if s.class.own {
		return records, nil
	}
	return records, s.nameEdges(ctx, records, references, weight)
}

// objectVector is the vector of an object, nil for none.
func objectVector(o *models.Object, name string) []float32 {
	v := []float32(o.Vector)
	if name != "" {
		v = []float32(o.Vectors[name])
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

// beacons are the UUIDs in the class that a reference leads to.
func beacons(raw any, class string) ([]string, error) {
	list, ok := raw.([]any)
	if raw != nil && !ok {
		return nil, fmt.Errorf("%T is no list of references", raw)
	}
	var uuids []string
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		beacon, _ := fields["beacon"].(string)
		u, err := url.Parse(beacon)
		if err != nil || u.Scheme != "weaviate" {
			return nil, fmt.Errorf("%q is no beacon", beacon)
		}
		if of, id, found := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/"); found && of == class {
			uuids = append(uuids, id)
		}
	}
	return uuids, nil
}

// nameEdges makes edges of references, with the chunk IDs of what they lead to.
func (s *store) nameEdges(ctx context.Context, records []mapmatched.Record, references []map[string][]string, weight float64) error {
	var uuids []string
	for _, byProperty := range references {
		for _, name := range s.class.references() {
			uuids = append(uuids, byProperty[name]...)
		}
	}
	ids, err := s.chunkIDs(ctx, distinct(uuids))
	if err != nil {
		return err
	}
	for i := range records {
		for _, name := range s.class.references() {
			for _, u := range references[i][name] {
				if to := ids[u]; to != "" && records[i].Chunk.ID != "" {
					records[i].Edges = append(records[i].Edges, mapmatched.Edge{From: records[i].Chunk.ID, To: to, Weight: weight, Type: mapmatched.EdgeType(name)})
				}
			}
		}
	}
	return nil
}

// chunkIDs finds the chunk IDs of objects.
func (s *store) chunkIDs(ctx context.Context, uuids []string) (map[string]string, error) {
	ids := make(map[string]string, len(uuids))
	if s.id == uuidProperty {
		for _, u := range uuids {
			ids[u] = u
		}
		return ids, nil
	}
	r := &search{class: s.class, tenant: s.tenant, properties: s.idProperties()}
	err := s.server.among(ctx, r, []string{uuidProperty}, uuids, false, func(_ []string, hits []hit, _ bool) error {
		for i := range hits {
			ids[hits[i].uuid] = s.chunkID(&hits[i])
		}
		return nil
	})
	return ids, err
}
