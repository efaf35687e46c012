package graphbuild

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// sectionSeparator is what stands between the levels of a heading path.
const sectionSeparator = " > "

// StructureOptions are the lengths of the edges by type. In each field 0 means
// the default, and a negative number leaves the edges of that type out. The
// zero value, and nil, mean the defaults.
type StructureOptions struct {
	Next    float64 // default 1
	Parent  float64 // default 1
	Section float64 // default 1.5
	Link    float64 // default 2
}

// Validate reports every value that is out of range.
func (o *StructureOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	for _, f := range []struct {
		name  string
		value float64
	}{{"Next", o.Next}, {"Parent", o.Parent}, {"Section", o.Section}, {"Link", o.Link}} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			errs = append(errs, fmt.Errorf("%w: weight %s is %v, want a finite number",
				mapmatched.ErrInvalidConfig, f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

// Structure makes the edges that the structure of the documents gives:
//
//   - next: between consecutive chunks of a document;
//   - parent: from the first chunk under a heading to the first chunk of each
//     section directly below it. Where the heading has no chunk of its own,
//     the first chunk below it stands for it;
//   - section: from the first chunk of a section that was cut in parts to each
//     of its other parts. Sibling sections are two hops apart, over their
//     parent, so the number of edges grows with the number of chunks and not
//     with its square. Text without a heading has no section;
//   - link: between the ends of each of links.
//
// The chunks may come in any order; their place in a document is Ordinal, and
// the section is read from Section, with " > " between levels. Chunks without
// a document have link edges only. Edges are undirected, with From < To in
// byte order; there is one for each pair and type and none from a chunk to
// itself; they are sorted by From, To and Type. Empty or duplicate chunk IDs,
// two chunks at one place of a document, links of unknown chunks and weights
// that are not finite are errors.
func Structure(chunks []mapmatched.Chunk, links []ResolvedLink, opts *StructureOptions) ([]mapmatched.Edge, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts == nil {
		opts = &StructureOptions{}
	}
	known := make(map[string]bool, len(chunks))
	for i, c := range chunks {
		if c.ID == "" {
			return nil, fmt.Errorf("%w: chunk %d of document %q; give every chunk an ID", mapmatched.ErrEmptyChunkID, i, c.Document)
		}
		if known[c.ID] {
			return nil, fmt.Errorf("chunk ID %q occurs twice; chunk IDs must be unique in the corpus", c.ID)
		}
		known[c.ID] = true
	}
	sorted := slices.Clone(chunks)
	slices.SortFunc(sorted, func(a, b mapmatched.Chunk) int {
		return cmp.Or(strings.Compare(a.Document, b.Document), cmp.Compare(a.Ordinal, b.Ordinal), strings.Compare(a.ID, b.ID))
	})

	b := edgeBuilder{opts: opts}
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && sorted[j].Document == sorted[i].Document {
			j++
		}
		if doc := sorted[i:j]; doc[0].Document != "" {
			if err := b.document(doc); err != nil {
				return nil, err
			}
		}
		i = j
	}
	for _, l := range links {
		for _, id := range []string{l.From, l.To} {
			if !known[id] {
				return nil, fmt.Errorf("link %q → %q: there is no chunk %q", l.From, l.To, id)
			}
		}
		b.add(l.From, l.To, mapmatched.EdgeLink)
	}
	return b.sorted(), nil
}

// edgeBuilder collects the edges of a structure graph.
type edgeBuilder struct {
	opts  *StructureOptions
	edges []mapmatched.Edge
}

// document adds the edges inside a document, whose chunks are in order.
func (b *edgeBuilder) document(chunks []mapmatched.Chunk) error {
	// open holds the headings that the current chunk is under, outermost
	// first, each with the first chunk under it.
	type heading struct{ text, head string }
	var open []heading
	head := "" // first chunk of the current section
	for i, c := range chunks {
		if i > 0 {
			if c.Ordinal == chunks[i-1].Ordinal {
				return fmt.Errorf("chunks %q and %q of document %q both have ordinal %d; number the chunks of a document",
					chunks[i-1].ID, c.ID, c.Document, c.Ordinal)
			}
			b.add(chunks[i-1].ID, c.ID, mapmatched.EdgeNext)
			if c.Section == chunks[i-1].Section {
				if c.Section != "" {
					b.add(head, c.ID, mapmatched.EdgeSection)
				}
				continue
			}
		}
		head = c.ID
		if c.Section == "" {
			open = open[:0]
			continue
		}
		path := strings.Split(c.Section, sectionSeparator)
		shared := 0 // levels above the last one that are still open
		for shared < len(open) && shared < len(path)-1 && open[shared].text == path[shared] {
			shared++
		}
		open = open[:shared]
		if shared > 0 {
			b.add(open[shared-1].head, c.ID, mapmatched.EdgeParent)
		}
		for _, text := range path[shared:] {
			open = append(open, heading{text, c.ID})
		}
	}
	return nil
}

func (b *edgeBuilder) add(from, to string, t mapmatched.EdgeType) {
	if from == to {
		return
	}
	if from > to {
		from, to = to, from
	}
	var weight, fallback float64
	switch t {
	case mapmatched.EdgeNext:
		weight, fallback = b.opts.Next, 1
	case mapmatched.EdgeParent:
		weight, fallback = b.opts.Parent, 1
	case mapmatched.EdgeSection:
		weight, fallback = b.opts.Section, 1.5
	case mapmatched.EdgeLink:
		weight, fallback = b.opts.Link, 2
	}
	switch {
	case weight < 0:
		return
	case weight == 0:
		weight = fallback
	}
	b.edges = append(b.edges, mapmatched.Edge{From: from, To: to, Weight: weight, Type: t})
}

// sorted returns the edges in order, each once.
func (b *edgeBuilder) sorted() []mapmatched.Edge {
	slices.SortFunc(b.edges, func(x, y mapmatched.Edge) int {
		return cmp.Or(strings.Compare(x.From, y.From), strings.Compare(x.To, y.To), strings.Compare(string(x.Type), string(y.Type)))
	})
	return slices.Compact(b.edges)
}
