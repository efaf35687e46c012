package graphbuild

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func chunk(doc string, ordinal int, id, section string) mapmatched.Chunk {
	return mapmatched.Chunk{ID: id, Document: doc, Ordinal: ordinal, Section: section}
}

// edgeLines writes edges one a line.
func edgeLines(edges []mapmatched.Edge) string {
	var lines []string
	for _, e := range edges {
		lines = append(lines, fmt.Sprintf("%s-%s %s %v", e.From, e.To, e.Type, e.Weight))
	}
	return strings.Join(lines, "\n")
}

func TestStructure(t *testing.T) {
	tests := []struct {
		name   string
		chunks []mapmatched.Chunk
		links  []ResolvedLink
		opts   *StructureOptions
		want   []string
	}{
		{"nothing", nil, nil, nil, nil},
		{"one chunk", []mapmatched.Chunk{chunk("d", 0, "a", "")}, nil, nil, nil},
		{"next only inside a document, in order of ordinals",
			[]mapmatched.Chunk{chunk("e", 0, "c", ""), chunk("d", 5, "a", ""), chunk("d", 2, "b", "")}, nil, nil,
			[]string{"a-b next 1"}},
		{"text without heading is no section",
			[]mapmatched.Chunk{chunk("d", 0, "a", ""), chunk("d", 1, "b", ""), chunk("d", 2, "c", "")}, nil, nil,
			[]string{"a-b next 1", "b-c next 1"}},
		{"parts of a section",
			[]mapmatched.Chunk{chunk("d", 0, "a", "A"), chunk("d", 1, "b", "A"), chunk("d", 2, "c", "A")}, nil, nil,
			[]string{"a-b next 1", "a-b section 1.5", "a-c section 1.5", "b-c next 1"}},
		{"direct subsections only",
			[]mapmatched.Chunk{chunk("d", 0, "a", "A"), chunk("d", 1, "b", "A > B"), chunk("d", 2, "b2", "A > B"),
				chunk("d", 3, "c", "A > B > C"), chunk("d", 4, "e", "A > E"), chunk("d", 5, "f", "F")}, nil,
			&StructureOptions{Next: -1},
			[]string{"a-b parent 1", "a-e parent 1", "b-b2 section 1.5", "b-c parent 1"}},
		{"first chunk below stands for a heading without one",
			[]mapmatched.Chunk{chunk("d", 0, "a", "A > B"), chunk("d", 1, "b", "A > C"), chunk("d", 2, "c", "A > C > D > E"), chunk("d", 3, "d", "A > C > D > F")}, nil,
			&StructureOptions{Next: -1},
			[]string{"a-b parent 1", "b-c parent 1", "c-d parent 1"}},
		{"same heading under another parent",
			[]mapmatched.Chunk{chunk("d", 0, "a", "A"), chunk("d", 1, "b", "A > X"), chunk("d", 2, "c", "C"), chunk("d", 3, "d", "C > X")}, nil,
			&StructureOptions{Next: -1},
			[]string{"a-b parent 1", "c-d parent 1"}},
		{"links, both ways once, none to itself",
			[]mapmatched.Chunk{chunk("d", 0, "b", ""), chunk("e", 0, "a", "")},
			[]ResolvedLink{{"b", "a"}, {"a", "b"}, {"a", "a"}}, nil,
			[]string{"a-b link 2"}},
		{"weights",
			[]mapmatched.Chunk{chunk("d", 0, "a", "A"), chunk("d", 1, "b", "A"), chunk("d", 2, "c", "A > C")}, []ResolvedLink{{"a", "c"}},
			&StructureOptions{Next: 0.25, Parent: 0.5, Section: 3, Link: 4},
			[]string{"a-b next 0.25", "a-b section 3", "a-c link 4", "a-c parent 0.5", "b-c next 0.25"}},
		{"all left out",
			[]mapmatched.Chunk{chunk("d", 0, "a", "A"), chunk("d", 1, "b", "A"), chunk("d", 2, "c", "A > C")}, []ResolvedLink{{"a", "c"}},
			&StructureOptions{Next: -1, Parent: -1, Section: -1, Link: -1}, nil},
		{"chunks without a document",
			[]mapmatched.Chunk{chunk("", 0, "a", "A"), chunk("", 0, "b", "A")}, []ResolvedLink{{"a", "b"}}, nil,
			[]string{"a-b link 2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			edges, err := Structure(tt.chunks, tt.links, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := edgeLines(edges), strings.Join(tt.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestStructureErrors(t *testing.T) {
	a, b := chunk("d", 0, "a", ""), chunk("d", 1, "b", "")
	tests := []struct {
		name   string
		chunks []mapmatched.Chunk
		links  []ResolvedLink
		opts   *StructureOptions
		want   string
	}{
		{"empty ID", []mapmatched.Chunk{a, chunk("d", 1, "", "")}, nil, nil, `empty chunk ID: chunk 1 of document "d"`},
		{"duplicate ID", []mapmatched.Chunk{a, chunk("e", 0, "a", "")}, nil, nil, `chunk ID "a" occurs twice`},
		{"same ordinal", []mapmatched.Chunk{a, chunk("d", 0, "b", "")}, nil, nil, `chunks "a" and "b" of document "d" both have ordinal 0`},
		{"unknown chunk", []mapmatched.Chunk{a, b}, []ResolvedLink{{"a", "x"}}, nil, `there is no chunk "x"`},
		{"weights", nil, nil, &StructureOptions{Next: math.NaN(), Link: math.Inf(1)}, "weight Next is NaN, want a finite number\ninvalid configuration: weight Link is +Inf"},
	}
	for _, tt := range tests {
		if _, err := Structure(tt.chunks, tt.links, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// TestStructureOfMarkdown checks on random documents that the edges are in
// normal form, few, the same in any order of the chunks, and join every
// document.
func TestStructureOfMarkdown(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var chunks []mapmatched.Chunk
		var docs []Chunked
		for d := range 3 {
			c, err := ChunkMarkdown(Document{ID: fmt.Sprintf("%d.md", d), Text: randomMarkdown(r)}, &ChunkOptions{MaxBytes: 20})
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, c)
			chunks = append(chunks, c.Chunks...)
		}
		links, _ := ResolveLinks(docs, nil)
		edges, err := Structure(chunks, links, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range edges {
			if e.From >= e.To || e.Weight <= 0 {
				t.Fatalf("edge %+v is not in normal form", e)
			}
			if i > 0 {
				p := edges[i-1]
				if p.From > e.From || p.From == e.From && (p.To > e.To || p.To == e.To && p.Type >= e.Type) {
					t.Fatalf("edge %+v comes before %+v", p, e)
				}
			}
		}
		if limit := 3*len(chunks) + len(links); len(edges) > limit {
			t.Fatalf("%d edges for %d chunks and %d links", len(edges), len(chunks), len(links))
		}
		r.Shuffle(len(chunks), func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
		again, err := Structure(chunks, links, nil)
		if err != nil || !reflect.DeepEqual(again, edges) {
			t.Fatalf("shuffled chunks give other edges, error %v", err)
		}
	}
}
