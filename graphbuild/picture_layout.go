package graphbuild

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// point is a place in a picture, in pixels or, while it is made, in edge
// lengths.
type point struct{ x, y float64 }

const (
	nodeSpacing   = 30.0 // pixels that the layout leaves for a node each way
	nodeRoom      = 13.0 // least distance of two nodes in pixels
	componentGap  = 34.0 // pixels between components
	leastScale    = 26.0 // pixels of an edge of median length
	greatestScale = 90.0
	layoutRounds  = 16 // a power of 2, see stress
)

// drawing is a graph as it is laid out.
type drawing struct {
	ids    []string
	edges  []drawnEdge
	at     []point
	degree []int
	alone  []int // nodes without edges
	width  float64
	height float64

	aloneTop float64 // where the nodes without edges begin
}

type drawnEdge struct {
	from, to int
	weight   float64
	kind     mapmatched.EdgeType
}

// layOut gives each node a place.
//
// Each component is laid out so that distances in the picture are near those in
// the graph: the stress Σ (‖xᵢ−xⱼ‖ − dᵢⱼ)²/dᵢⱼ² over all pairs is made small by
// stochastic gradient descent (Zheng, Pawar & Goodman 2018), with a generator of
// fixed seed. Then nodes are pushed apart that cover each other, and the
// components are put side by side, the largest first.
func layOut(ctx context.Context, g ListedGraph) (*drawing, error) {
	d := &drawing{ids: g.Nodes()}
	n := len(d.ids)
	d.at, d.degree = make([]point, n), make([]int, n)
	joined := newParts(n)
	number := make(map[string]int, n)
	for i, id := range d.ids {
		number[id] = i
	}
	var weights []float64
	for e, err := range g.Edges(ctx) {
		if err != nil {
			return nil, err
		}
		from, to := number[e.From], number[e.To]
		d.edges = append(d.edges, drawnEdge{from, to, e.Weight, e.Type})
		d.degree[from]++
		d.degree[to]++
		joined.join(from, to)
		weights = append(weights, e.Weight)
	}
	slices.Sort(weights)
	var components [][]int
	place := map[int]int{} // of a component, by root
	for i := range n {
		if d.degree[i] == 0 {
			d.alone = append(d.alone, i)
			continue
		}
		root := joined.root(i)
		at, known := place[root]
		if !known {
			at = len(components)
			place[root] = at
			components = append(components, nil)
		}
		components[at] = append(components[at], i)
	}
	slices.SortStableFunc(components, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	edgesOf := make([][]drawnEdge, len(components))
	inverse := make([]int, n)
	for i, nodes := range components {
		for _, v := range nodes {
			inverse[v] = i
		}
	}
	for _, e := range d.edges {
		edgesOf[inverse[e.from]] = append(edgesOf[inverse[e.from]], e)
	}
	boxes := make([]point, len(components))
	for i, nodes := range components {
		median := weights[len(weights)/2]
		distances, err := d.drawnDistances(ctx, nodes, edgesOf[i], median)
		if err != nil {
			return nil, err
		}
		places, err := stress(ctx, distances, len(nodes))
		if err != nil {
			return nil, err
		}
		boxes[i] = fit(places)
		for at, v := range nodes {
			d.at[v] = places[at]
		}
	}
	d.pack(components, boxes)
	return d, nil
}

// drawnDistances returns the distances of the nodes of a component, row-major,
// in edges of median length. An edge counts for at least 0.35 and at most 3 of
// them, so that very short and very long ones can be drawn.
func (d *drawing) drawnDistances(ctx context.Context, nodes []int, edges []drawnEdge, median float64) ([]float64, error) {
	drawn := make([]mapmatched.Edge, len(edges))
	for i, e := range edges {
		drawn[i] = mapmatched.Edge{From: d.ids[e.from], To: d.ids[e.to], Weight: min(max(e.weight/median, 0.35), 3)}
	}
	g, err := mapmatched.NewGraph(drawn, &mapmatched.GraphOptions{MaximumDistance: 3 * float64(len(nodes))})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(nodes))
	for i, v := range nodes {
		ids[i] = d.ids[v]
	}
	n := len(nodes)
	distances := make([]float64, n*n)
	errs := make([]error, n)
	err = forEach(ctx, n, nil, func() func(int) {
		return func(i int) { errs[i] = g.Distances(ctx, ids[i:i+1], ids, distances[i*n:(i+1)*n]) }
	})
	for _, e := range errs {
		err = cmp.Or(err, e)
	}
	return distances, err
}

// stress lays out n nodes by their distances.
func stress(ctx context.Context, distances []float64, n int) ([]point, error) {
	r := rand.New(rand.NewPCG(2009, uint64(n)))
	at := make([]point, n)
	side := math.Sqrt(float64(n))
	for i := range at {
		at[i] = point{r.Float64() * side, r.Float64() * side}
	}
	type pair struct {
		a, b int32
		want float32 // distance
	}
	pairs := make([]pair, 0, n*(n-1)/2)
	shortest, longest := math.Inf(1), 0.0
	for i := range n {
		for j := range i {
			pairs = append(pairs, pair{int32(i), int32(j), float32(distances[i*n+j])})
			shortest, longest = min(shortest, distances[i*n+j]), max(longest, distances[i*n+j])
		}
	}
	// The step falls evenly from the square of the longest distance to a tenth
	// of that of the shortest. The root of the quotient comes from square roots
	// alone, which have the same bits on every machine.
	step, last := longest*longest, 0.1*shortest*shortest
	fall := last / step
	for rounds := 1; rounds < layoutRounds; rounds *= 2 {
		fall = math.Sqrt(fall)
	}
	for range layoutRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		for _, p := range pairs {
			a, b := &at[p.a], &at[p.b]
			want := float64(p.want)
			dx, dy := a.x-b.x, a.y-b.y
			is := math.Sqrt(float64(dx*dx) + float64(dy*dy))
			if is < 1e-9 {
				dx, dy, is = 1e-3, 0, 1e-3
			}
			move := float64(min(step/float64(want*want), 1)*(is-want)) / (2 * is)
			dx, dy = float64(dx*move), float64(dy*move)
			a.x, a.y, b.x, b.y = a.x-dx, a.y-dy, b.x+dx, b.y+dy
		}
		step *= fall
	}
	return at, nil
}

// fit turns the nodes of a component so that they are wide rather than high,
// scales them to pixels, pushes them apart and moves them to the origin. It
// returns how much room they take.
func fit(at []point) point {
	turn(at)
	box := moveToOrigin(at)
	area := max(box.x, 0.5) * max(box.y, 0.5)
	scale := min(max(nodeSpacing*math.Sqrt(float64(len(at))/area), leastScale), greatestScale)
	for i := range at {
		at[i] = point{at[i].x * scale, at[i].y * scale}
	}
	pushApart(at)
	return moveToOrigin(at)
}

// turn turns points so that they are spread most from left to right.
func turn(at []point) {
	var middle point
	for _, p := range at {
		middle.x += p.x / float64(len(at))
		middle.y += p.y / float64(len(at))
	}
	var xx, xy, yy float64
	for _, p := range at {
		dx, dy := p.x-middle.x, p.y-middle.y
		xx, xy, yy = xx+float64(dx*dx), xy+float64(dx*dy), yy+float64(dy*dy)
	}
	// The axis of the greatest variance.
	half := (xx - yy) / 2
	axis := point{half + math.Sqrt(float64(half*half)+float64(xy*xy)), xy}
	length := math.Sqrt(float64(axis.x*axis.x) + float64(axis.y*axis.y))
	if length < 1e-12 {
		if yy <= xx {
			return
		}
		axis, length = point{0, 1}, 1
	}
	c, s := axis.x/length, axis.y/length
	for i, p := range at {
		dx, dy := p.x-middle.x, p.y-middle.y
		at[i] = point{float64(dx*c) + float64(dy*s), float64(dy*c) - float64(dx*s)}
	}
}

func moveToOrigin(at []point) (box point) {
	low, high := at[0], at[0]
	for _, p := range at {
		low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
	}
	for i := range at {
		at[i].x -= low.x
		at[i].y -= low.y
	}
	return point{high.x - low.x, high.y - low.y}
}

// pushApart moves nodes that are nearer than nodeRoom away from each other.
func pushApart(at []point) {
	for range 40 {
		moved := false
		for i := range at {
			for j := range i {
				dx, dy := at[i].x-at[j].x, at[i].y-at[j].y
				square := float64(dx*dx) + float64(dy*dy)
				if square >= nodeRoom*nodeRoom {
					continue
				}
				is := math.Sqrt(square)
				if is < 1e-6 {
					dx, dy, is = 1, 0, 1
				}
				by := (nodeRoom + 0.5 - is) / (2 * is)
				dx, dy = float64(dx*by), float64(dy*by)
				at[i].x, at[i].y, at[j].x, at[j].y = at[i].x+dx, at[i].y+dy, at[j].x-dx, at[j].y-dy
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// pack puts components into rows and the nodes without edges below them.
func (d *drawing) pack(components [][]int, boxes []point) {
	total, widest := 0.0, 0.0
	for _, b := range boxes {
		total += float64((b.x + componentGap) * (b.y + componentGap))
		widest = max(widest, b.x)
	}
	target := max(widest, math.Sqrt(total*1.7), 560)
	order := make([]int, len(boxes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(boxes[b].y, boxes[a].y) })
	x, y, row := 0.0, 0.0, 0.0
	for _, i := range order {
		if x > 0 && x+boxes[i].x > target {
			x, y, row = 0, y+row+componentGap, 0
		}
		for _, v := range components[i] {
			d.at[v].x += x
			d.at[v].y += y
		}
		d.width = max(d.width, x+boxes[i].x)
		x += boxes[i].x + componentGap
		row = max(row, boxes[i].y)
	}
	d.height = y + row
	d.width = max(d.width, 560)
	if len(d.alone) == 0 {
		return
	}
	if len(components) > 0 {
		d.height += 2 * componentGap
	}
	d.aloneTop = d.height
	const step = nodeRoom + 5
	perRow := max(int(d.width/step), 1)
	for i, v := range d.alone {
		d.at[v] = point{float64(i%perRow) * step, d.height + float64(i/perRow)*step}
	}
	d.height += float64((len(d.alone)-1)/perRow) * step
}
