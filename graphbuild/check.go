package graphbuild

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// checkSources is from how many nodes Check compares all distances.
const checkSources = 64

// Check looks deeper into an open file than opening does: arcs of an undirected
// graph come in pairs, table and labels are in order, and from 64 evenly spaced
// nodes all distances are those of the search. The error says what does not
// hold.
func (g *GraphFile) Check(ctx context.Context) error {
	return g.do(ctx, "check", func() error {
		for _, check := range []func(context.Context) error{g.checkPairs, g.checkTable, g.checkLabels, g.checkDistances} {
			if err := check(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkPairs expects only one arc from a node to another and, in an undirected
// graph, the way back of every arc: turned round, the arcs are the same. Both
// are in the order of opening, by weight and then by node.
func (g *GraphFile) checkPairs(ctx context.Context) error {
	n := g.NumNodes()
	entered := make([]int32, n) // the latest node with an arc to that one, from 1 on
	for v := range int32(n) {
		if v%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for _, a := range g.adj.Arcs[g.adj.First[v]:g.adj.First[v+1]] {
			if entered[a.To] == v+1 {
				return damaged("arcs", "two arcs lead from %q to %q", g.id(v), g.id(a.To))
			}
			entered[a.To] = v + 1
		}
	}
	if g.header.directed {
		return nil
	}
	back := reversed(&g.adj)
	for v := range int32(n) {
		if v%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		there := g.adj.Arcs[g.adj.First[v]:g.adj.First[v+1]]
		here := back.Arcs[back.First[v]:back.First[v+1]]
		for i := range max(len(there), len(here)) {
			same := i < len(there) && i < len(here) && there[i].To == here[i].To && there[i].Weight == here[i].Weight &&
				there[i].Type == g.adj.Arcs[here[i].Type].Type
			if same {
				continue
			}
			other := there
			if i >= len(there) {
				other = here
			}
			return damaged("arcs", "the edge from %q to %q has another way back", g.id(v), g.id(other[i].To))
		}
	}
	return nil
}

func (g *GraphFile) checkTable(ctx context.Context) error {
	if g.table == nil {
		return nil
	}
	for v := range int32(g.NumNodes()) {
		if v%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		distances, targets, err := g.table.row(v)
		if err != nil {
			return err
		}
		for i, t := range targets {
			if int64(t) >= int64(g.NumNodes()) || t == uint32(v) || i > 0 && t <= targets[i-1] || !(distances[i] > 0 && distances[i] <= g.header.maximum) {
				return damaged("table", "target %d of node %d is node %d of %d at %v", i, v, t, g.NumNodes(), distances[i])
			}
		}
	}
	return nil
}

func (g *GraphFile) checkLabels(ctx context.Context) error {
	if g.labels == nil {
		return nil
	}
	var path []uint32
	for _, l := range []*labelSet{g.labels.out, g.labels.in} {
		for v := range int32(g.NumNodes()) {
			if v%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			first, end, err := l.entries(v)
			if err != nil {
				return err
			}
			for i := first; i < end; i++ {
				h := l.hubs[i]
				if int64(h.rank) >= int64(g.NumNodes()) || i > first && cmp.Or(cmp.Compare(l.hubs[i-1].distance, h.distance), cmp.Compare(l.hubs[i-1].rank, h.rank)) >= 0 || !(h.distance >= 0) || math.IsInf(float64(h.distance), 0) {
					return damaged("label hubs", "entry %d of node %d is hub %d of %d at %v", i-first, v, h.rank, g.NumNodes(), h.distance)
				}
				if g.labels.slack.exact {
					continue
				}
				if path, err = g.labels.walk(path[:0], l, uint32(i), g.NumNodes()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkDistances compares distances with those of the search.
func (g *GraphFile) checkDistances(ctx context.Context) error {
	if g.table == nil && g.labels == nil {
		return nil
	}
	n := g.NumNodes()
	s := g.scratch.Get().(*fileScratch)
	defer g.scratch.Put(s)
	s.to, s.question = s.to[:0], s.question[:0]
	for v := range n {
		s.to = append(s.to, int32(v))
		s.question = append(s.question, uint64(v)<<32|uint64(v))
	}
	row := make([]float64, n)
	truth := mapmatched.NewSearch(n)
	for i := range min(n, checkSources) {
		source := int32(i * n / min(n, checkSources))
		for j := range row {
			row[j] = g.header.maximum
		}
		s.from = append(s.from[:0], source)
		if err := g.fill(ctx, s, row); err != nil {
			return err
		}
		if err := truth.Within(ctx, &g.adj, source, g.header.maximum); err != nil {
			return err
		}
		for v, got := range row {
			want, found := truth.Distance(int32(v))
			if !found {
				want = g.header.maximum
			}
			if math.Float64bits(got) != math.Float64bits(want) {
				return fmt.Errorf("%w: distance from %q to %q is %v, the search says %v: build it again",
					errDamaged, g.id(source), g.id(int32(v)), got, want)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
