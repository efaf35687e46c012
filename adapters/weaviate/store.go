package weaviate

import (
	"context"
	"fmt"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The properties of a class that this package writes.
const (
	propertyChunkID  = "chunk_id"
	propertyDocument = "document"
	propertyTitle    = "title"
	propertySection  = "section"
	propertyOrdinal  = "ordinal"
	propertyStart    = "start"
	propertyEnd      = "end"
	propertyText     = "text"
	propertyEdges    = "edges"
	propertyDigest   = "digest"

	propertyConfirmed = "confirmed" // a reference to the object itself
)

// store is a class on a server, and how chunks are read from it.
type store struct {
	server *server
	layout
}

// openStore connects, and checks the class and the place in it.
func openStore(ctx context.Context, address, name string, o *Connection, place Place) (*store, error) {
	name, err := className(name)
	if err != nil {
		return nil, err
	}
	server, err := connect(ctx, address, o)
	if err != nil {
		return nil, err
	}
	c, err := server.describe(ctx, name)
	if err == nil {
		var l layout
		if l, err = c.layout(place); err == nil {
			err = server.checkTenantExists(ctx, c, l.tenant)
		}
		if err == nil {
			return &store{server, l}, nil
		}
	}
	_ = server.close() // the first error is the one to report
	return nil, err
}

// Close ends running calls and frees the connections. It may be called twice.
func (s *store) Close() error { return classify("close", s.server.close()) }

// ready fails when the context is done or the store is closed.
func (s *store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.server.life.Err() != nil {
		return mapmatched.ErrClosed
	}
	return nil
}

// idProperties lists what the chunk ID is read from.
func (s *store) idProperties() []string {
	if s.id == uuidProperty {
		return nil
	}
	return []string{s.id}
}

// withText lists what the chunk ID and the text are read from.
func (s *store) withText() []string {
	names := s.idProperties()
	if s.text != "" && s.text != s.id {
		names = append(names, s.text)
	}
	return names
}

// chunkID is the ID of the chunk of an object, "" for one without.
func (s *store) chunkID(h *hit) string {
	if s.id == uuidProperty {
		return h.uuid
	}
	id, _ := h.properties[s.id].(string)
	return id
}

func (s *store) textOf(h *hit) string {
	text, _ := h.properties[s.text].(string)
	return text
}

// chunkFields are the properties of a chunk beside its ID and text.
var chunkFields = []string{propertyDocument, propertyTitle, propertySection, propertyOrdinal, propertyStart, propertyEnd}

// chunkProperties lists the properties that [store.chunk] reads.
func (s *store) chunkProperties() []string {
	names := s.withText()
	for _, name := range chunkFields {
		if p, ok := s.class.property(name); ok && p.dataType == chunkFieldType(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func chunkFieldType(name string) string {
	switch name {
	case propertyOrdinal, propertyStart, propertyEnd:
		return "int"
	}
	return "text"
}

func (s *store) chunk(h *hit) mapmatched.Chunk {
	c := mapmatched.Chunk{ID: s.chunkID(h), Text: s.textOf(h)}
	c.End = len(c.Text)
	for name, field := range map[string]*string{propertyDocument: &c.Document, propertyTitle: &c.Title, propertySection: &c.Section} {
		if value, ok := h.properties[name].(string); ok {
			*field = value
		}
	}
	for name, field := range map[string]*int{propertyOrdinal: &c.Ordinal, propertyStart: &c.Start, propertyEnd: &c.End} {
		if value, ok := h.properties[name].(int64); ok {
			*field = int(value)
		}
	}
	return c
}

// each runs a request restricted to chunks, in as many requests as it takes,
// and calls f for each that is found, once, in the order asked. The request is
// changed.
func (s *store) each(ctx context.Context, chunkIDs []string, r *search, f func(id string, h *hit) error) error {
	ids := distinct(chunkIDs)
	path, values, err := s.keys(ids)
	if err != nil {
		return err
	}
	share := s.id != uuidProperty && !s.class.own // objects may share an ID
	found := make(map[string]*hit, len(ids))
	err = s.server.among(ctx, r, path, values, share, func(_ []string, hits []hit, _ bool) error {
		for i := range hits {
			if id := s.chunkID(&hits[i]); found[id] == nil {
				found[id] = &hits[i]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if h := found[id]; h != nil {
			if err := f(id, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// keys are the path and the values by which the objects of chunks are found.
func (s *store) keys(chunkIDs []string) (path, values []string, err error) {
	switch {
	case s.class.own && s.id == propertyChunkID:
		for _, id := range chunkIDs {
			values = append(values, UUID(id))
		}
		return []string{uuidProperty}, values, nil
	case s.id == uuidProperty:
		for _, id := range chunkIDs {
			if isUUID(id) { // no other ID is that of an object
				values = append(values, id)
			}
		}
		return []string{uuidProperty}, values, nil
	}
	p, _ := s.class.property(s.id)
	if p.tokenization != "field" || !p.filterable {
		return nil, nil, fmt.Errorf("chunks cannot be looked up by property %s of class %s: it has tokenization %q and indexFilterable %v, and needs \"field\" and true",
			s.id, s.class.name, p.tokenization, p.filterable)
	}
	return []string{s.id}, chunkIDs, nil
}

// distinct drops IDs that came before.
func distinct(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
