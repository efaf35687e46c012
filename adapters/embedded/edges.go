package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// edge is an edge between chunk positions.
type edge struct {
	from, to uint32
	weight   float64
	typ      mapmatched.EdgeType
	kind     uint8 // index of typ in the manifest
}

// arrange sorts edges by their ends and type and keeps of equal ones the
// shortest. Undirected edges are equal in both directions; the one that is
// kept keeps the direction it was given with.
func arrange(edges []edge, directed bool) []edge {
	key := func(e edge) (low, high uint32) {
		if directed {
			return e.from, e.to
		}
		return min(e.from, e.to), max(e.from, e.to)
	}
	same := func(a, b edge) int {
		a1, a2 := key(a)
		b1, b2 := key(b)
		return cmp.Or(cmp.Compare(a1, b1), cmp.Compare(a2, b2), cmp.Compare(a.typ, b.typ))
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(same(a, b), cmp.Compare(a.weight, b.weight), cmp.Compare(a.from, b.from))
	})
	return slices.CompactFunc(edges, func(a, b edge) bool { return same(a, b) == 0 })
}

// putEdges writes the records of edges.
func putEdges(f *fileWriter, edges []edge) error {
	record := make([]byte, 0, edgeSize)
	for _, e := range edges {
		record = binary.LittleEndian.AppendUint32(record[:0], e.from)
		record = binary.LittleEndian.AppendUint32(record, e.to)
		record = binary.LittleEndian.AppendUint64(record, math.Float64bits(e.weight))
		record = append(record, e.kind)
		if _, err := f.Write(record); err != nil {
			return err
		}
	}
	return nil
}

// Edges lists the edges of the corpus graph by the positions of their ends and
// then by type, each once. Manifest tells whether they are directed and where
// distances are clamped. After an error nothing follows.
func (x *Index) Edges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		const op = "edges"
		if err := x.acquire(op); err != nil {
			yield(mapmatched.Edge{}, err)
			return
		}
		defer x.release()
		block := make([]mapmatched.Edge, 0, checkEvery)
		for first := 0; first < x.manifest.Counts.Edges; first += checkEvery {
			block = block[:0]
			err := x.guarded(ctx, op, func() error {
				for i := first; i < min(first+checkEvery, x.manifest.Counts.Edges); i++ {
					e, err := x.edge(i)
					if err != nil {
						return err
					}
					block = append(block, e)
				}
				return nil
			})
			if err != nil {
				yield(mapmatched.Edge{}, err)
				return
			}
			for _, e := range block {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// edge reads edge i.
func (x *Index) edge(i int) (mapmatched.Edge, error) {
	record := x.edges[i*edgeSize : (i+1)*edgeSize]
	from, to := binary.LittleEndian.Uint32(record), binary.LittleEndian.Uint32(record[4:])
	weight := math.Float64frombits(binary.LittleEndian.Uint64(record[8:]))
	kind := int(record[16])
	if !(weight > 0) || math.IsInf(weight, 0) || kind >= len(x.manifest.Graph.EdgeTypes) {
		return mapmatched.Edge{}, damaged(edgesName, "edge %d has weight %v and type number %d of %d", i, weight, kind, len(x.manifest.Graph.EdgeTypes))
	}
	fromID, err := x.id(from)
	if err != nil {
		return mapmatched.Edge{}, fmt.Errorf("edge %d: %w", i, err)
	}
	toID, err := x.id(to)
	if err != nil {
		return mapmatched.Edge{}, fmt.Errorf("edge %d: %w", i, err)
	}
	return mapmatched.Edge{From: string(fromID), To: string(toID), Weight: weight, Type: x.manifest.Graph.EdgeTypes[kind].Type}, nil
}
