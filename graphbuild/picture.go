package graphbuild

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// DefaultPictureNodes is how many nodes a picture has at most when that is not
// set. Laying it out takes time and memory of the order of its square.
const DefaultPictureNodes = 2000

// PictureOptions are the settings of [WritePicture]. The zero value, and nil,
// mean the defaults.
type PictureOptions struct {
	Title string // "" means "Corpus graph"

	// Group returns the group of a chunk, which gives it its colour, "" for
	// none. nil means its document, as the ID says: what stands before "#" or
	// "~". See [Clustering.Groups].
	Group func(chunkID string) string
	// GroupName is what groups are, in the plural. "" means "documents" when
	// Group is nil, else "groups".
	GroupName string

	// MaxNodes is how many nodes the graph may have. 0 means
	// DefaultPictureNodes.
	MaxNodes int
}

// pictureColours are the colours of the largest groups, legible on white and on
// black: circles first, then squares, then triangles.
var pictureColours = [...]string{
	"#266bc5", "#e48425", "#30a65b", "#d4496c", "#6526c5", "#e4bb25", "#309ca6", "#d449d4", "#7bc526", "#e44225", "#3044a6", "#49d4a6",
}

// pictureGroups is how many groups have a mark of their own.
const pictureGroups = 3 * len(pictureColours)

// edgeDashes tell edge types apart.
var edgeDashes = map[mapmatched.EdgeType]string{
	mapmatched.EdgeNext: "", mapmatched.EdgeKNN: "", mapmatched.EdgeLink: "6 3", mapmatched.EdgeParent: "1.5 2.5", mapmatched.EdgeSection: "8 3 1.5 3",
}

var moreDashes = []string{"3 3", "12 3", "5 2 5 6", "2 6"}

// WritePicture draws a small graph as an SVG document that stands for itself:
// no scripts, fonts or links. Nodes have the colour and shape of their group,
// edges the dashes of their type; a legend says which, and a title what is under
// the pointer. It suits light and dark displays. Nodes are placed so that
// distances in the picture are about those in the graph, which have no
// direction here; arrows show the direction of edges. The same graph has the
// same bytes. A graph of more nodes than opts.MaxNodes is an error.
func WritePicture(ctx context.Context, w io.Writer, g ListedGraph, opts *PictureOptions) error {
	var o PictureOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxNodes < 0 {
		return fmt.Errorf("%w: MaxNodes is %d, want 0 for the default or more", mapmatched.ErrInvalidConfig, o.MaxNodes)
	}
	o.MaxNodes = cmp.Or(o.MaxNodes, DefaultPictureNodes)
	if n := g.NumNodes(); n > o.MaxNodes {
		return fmt.Errorf("picture: the graph has %d nodes and a picture at most %d; draw a part of it, such as one cluster, or look at its statistics", n, o.MaxNodes)
	}
	o.Title = cmp.Or(o.Title, "Corpus graph")
	if o.Group == nil {
		o.Group = documentOf
		o.GroupName = cmp.Or(o.GroupName, "documents")
	}
	o.GroupName = cmp.Or(o.GroupName, "groups")
	d, err := layOut(ctx, g)
	if err != nil {
		return err
	}
	p := picture{drawing: d, directed: g.Directed(), opts: &o}
	p.groupNodes()
	p.listTypes()
	_, err = w.Write(p.draw())
	return err
}

// documentOf returns the document that a chunk ID of this package names.
func documentOf(chunkID string) string {
	if at := strings.IndexAny(chunkID, "#~"); at >= 0 {
		return chunkID[:at]
	}
	return chunkID
}

// Groups returns a function for PictureOptions.Group: the clusters of more than
// one member, named by their first keywords or else their medoid.
func (c *Clustering) Groups() func(chunkID string) string {
	group := map[string]string{}
	taken := map[string]bool{}
	for _, k := range c.Clusters {
		if len(k.Members) < 2 {
			continue
		}
		name := strings.Join(k.Keywords[:min(len(k.Keywords), 3)], ", ")
		if name == "" || taken[name] {
			name = strings.TrimPrefix(name+", "+k.Medoid, ", ")
		}
		taken[name] = true
		for _, id := range k.Members {
			group[id] = name
		}
	}
	return func(chunkID string) string { return group[chunkID] }
}

// picture is a drawing with what its marks mean.
type picture struct {
	*drawing
	directed bool
	opts     *PictureOptions
	b        bytes.Buffer

	groups  []pictureGroup // largest first
	groupOf []int          // of each node, in groups, -1 for none
	types   []TypeCount    // ascending
	dashes  []string       // of each type
}

type pictureGroup struct {
	name  string
	nodes int
}

func (p *picture) groupNodes() {
	count := map[string]int{}
	names := make([]string, len(p.ids))
	for i, id := range p.ids {
		if names[i] = p.opts.Group(id); names[i] != "" {
			count[names[i]]++
		}
	}
	for _, name := range sortedKeys(count) {
		p.groups = append(p.groups, pictureGroup{name, count[name]})
	}
	slices.SortStableFunc(p.groups, func(a, b pictureGroup) int { return cmp.Compare(b.nodes, a.nodes) })
	number := map[string]int{}
	for i, g := range p.groups {
		number[g.name] = i
	}
	p.groupOf = make([]int, len(p.ids))
	for i, name := range names {
		p.groupOf[i] = -1
		if name != "" {
			p.groupOf[i] = number[name]
		}
	}
}

func (p *picture) listTypes() {
	count := map[mapmatched.EdgeType]int{}
	for _, e := range p.edges {
		count[e.kind]++
	}
	others := 0
	for _, t := range sortedKeys(count) {
		p.types = append(p.types, TypeCount{t, count[t]})
		dash, known := edgeDashes[t]
		if !known && t != "" {
			dash = moreDashes[others%len(moreDashes)]
			others++
		}
		p.dashes = append(p.dashes, dash)
	}
}

// Places of the page, in pixels.
const (
	pageMargin  = 28.0
	legendWidth = 270.0
	headHeight  = 76.0
	legendLine  = 21.0
)

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// px prints a number of pixels.
func px(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	if s = strings.TrimSuffix(s, ".0"); s == "-0" {
		return "0"
	}
	return s
}

// xmlText escapes text for XML. What XML cannot hold becomes U+FFFD.
func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// elide shortens text to a number of characters.
func elide(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// groupClass returns the CSS class of a group.
func groupClass(group int) string {
	switch {
	case group < 0:
		return "none"
	case group >= pictureGroups:
		return "other"
	}
	return "g" + strconv.Itoa(group%len(pictureColours))
}

func (p *picture) draw() []byte {
	legendRows := min(len(p.groups), pictureGroups) + len(p.types) + 6
	width := p.width + legendWidth + 4*pageMargin
	height := headHeight + max(p.height+3*pageMargin, float64(legendRows)*legendLine+2*pageMargin)
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="t d">`+"\n", px(width), px(height), px(width), px(height))
	p.printf("<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n", xmlText(p.opts.Title), xmlText(p.summary()+" Nodes are placed by their distance in the graph and coloured by "+p.opts.GroupName+"."))
	p.style()
	p.printf(`<rect class="page" width="100%%" height="100%%"/>` + "\n")
	p.printf(`<text class="head" x="%s" y="36">%s</text><text class="sub" x="%s" y="58">%s</text>`+"\n", px(pageMargin), xmlText(elide(p.opts.Title, 90)), px(pageMargin), xmlText(p.summary()))
	left, top := 2*pageMargin, headHeight+pageMargin
	for i := range p.at {
		p.at[i].x += left
		p.at[i].y += top
	}
	p.drawEdges()
	p.drawNodes()
	p.drawLabels()
	if len(p.alone) > 0 {
		p.printf(`<text class="sub" x="%s" y="%s">Without any edge: %d</text>`+"\n", px(left-6), px(p.aloneTop+top-18), len(p.alone))
	}
	p.drawLegend(width - legendWidth - pageMargin)
	p.printf("</svg>\n")
	return p.b.Bytes()
}

func (p *picture) summary() string {
	plural := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return strconv.Itoa(n) + " " + many
	}
	kind := "undirected"
	if p.directed {
		kind = "directed"
	}
	return fmt.Sprintf("%s, %s %s, %d without any edge.", plural(len(p.ids), "chunk", "chunks"), plural(len(p.edges), kind+" edge", kind+" edges"), "in "+plural(len(p.groups), strings.TrimSuffix(p.opts.GroupName, "s"), p.opts.GroupName), len(p.alone))
}

func (p *picture) style() {
	p.printf(`<style>
svg { color-scheme: light dark; font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; --page: #ffffff; --ink: #1f2328; --dim: #59636e; --line: #8c959f }
@media (prefers-color-scheme: dark) { svg { --page: #0d1117; --ink: #e6edf3; --dim: #9198a1; --line: #6e7681 } }
.page { fill: var(--page) } text { fill: var(--ink) } .head { font-size: 21px; font-weight: 600 } .sub { fill: var(--dim) } .cap { font-weight: 600 }
.e { fill: none; stroke: var(--line); stroke-width: 1.1; stroke-opacity: %s } .e:hover { stroke-width: 3; stroke-opacity: 1 }
.n { stroke: var(--page); stroke-width: 1.2 } .n:hover { stroke: var(--ink); stroke-width: 2.4 }
.n.other { fill: var(--dim) } .n.none { fill: var(--page); stroke: var(--dim); stroke-width: 1.5 }
.label { font-size: 10.5px; paint-order: stroke; stroke: var(--page); stroke-width: 3px; stroke-linejoin: round; pointer-events: none }
.arrow { fill: var(--line) }
`, px2(p.edgeOpacity()))
	for i, colour := range pictureColours[:min(len(p.groups), len(pictureColours))] {
		p.printf(".n.g%d { fill: %s } .e.g%d { stroke: %s }\n", i, colour, i, colour)
	}
	for i, dash := range p.dashes {
		if dash != "" {
			p.printf(".t%d { stroke-dasharray: %s }\n", i, dash)
		}
		if p.types[i].Type == mapmatched.EdgeNext {
			p.printf(".t%d { stroke-width: 2.2 }\n", i)
		}
	}
	p.printf("</style>\n")
	if p.directed {
		p.printf(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class="arrow" d="M0 0.8 8 4 0 7.2z"/></marker></defs>` + "\n")
	}
}

func px2(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// edgeOpacity makes edges fainter where there are many.
func (p *picture) edgeOpacity() float64 {
	return min(max(0.85-0.09*float64(len(p.edges))/float64(max(len(p.ids), 1)), 0.22), 0.8)
}

// radius is the size of a node: it grows with its degree.
func (p *picture) radius(node int) float64 {
	return min(3.6+0.55*math.Sqrt(float64(p.degree[node])), 6.4)
}

func (p *picture) drawEdges() {
	order := make([]int, len(p.edges))
	for i := range order {
		order[i] = i
	}
	// Long ones first, so that short ones are on top.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.edges[b].weight, p.edges[a].weight) })
	kinds := make(map[mapmatched.EdgeType]int, len(p.types))
	for i, t := range p.types {
		kinds[t.Type] = i
	}
	for _, i := range order {
		e := p.edges[i]
		class := "e"
		if g := p.groupOf[e.from]; g >= 0 && g < pictureGroups && g == p.groupOf[e.to] {
			class += " " + groupClass(g)
		}
		class += " t" + strconv.Itoa(kinds[e.kind])
		a, b, marker, joint := p.at[e.from], p.at[e.to], "", " – "
		if p.directed {
			marker, joint = ` marker-end="url(#arrow)"`, " → "
			dx, dy := b.x-a.x, b.y-a.y
			if length := math.Sqrt(float64(dx*dx) + float64(dy*dy)); length > 1 {
				back := (p.radius(e.to) + 0.8) / length
				b = point{b.x - float64(dx*back), b.y - float64(dy*back)}
			}
		}
		p.printf(`<path class="%s" d="M%s %sL%s %s"%s><title>%s</title></path>`+"\n", class, px(a.x), px(a.y), px(b.x), px(b.y), marker,
			xmlText(fmt.Sprintf("%s%s%s\n%s, %.4g", p.ids[e.from], joint, p.ids[e.to], typeName(e.kind), e.weight)))
	}
}

func typeName(t mapmatched.EdgeType) string {
	if t == "" {
		return "(no type)"
	}
	return string(t)
}

// mark draws the mark of a group.
func (p *picture) mark(at point, radius float64, group int, title string) {
	switch group / len(pictureColours) {
	case 1:
		side := 1.8 * radius
		p.printf(`<rect class="n %s" x="%s" y="%s" width="%s" height="%s" rx="1">%s</rect>`, groupClass(group), px(at.x-side/2), px(at.y-side/2), px(side), px(side), title)
		return
	case 2:
		p.printf(`<path class="n %s" d="M%s %sl%s %sh%sz">%s</path>`, groupClass(group), px(at.x), px(at.y-1.25*radius), px(1.2*radius), px(2.1*radius), px(-2.4*radius), title)
		return
	}
	p.printf(`<circle class="n %s" cx="%s" cy="%s" r="%s">%s</circle>`, groupClass(group), px(at.x), px(at.y), px(radius), title)
}

func (p *picture) drawNodes() {
	for i, id := range p.ids {
		group := "no group"
		if g := p.groupOf[i]; g >= 0 {
			group = p.groups[g].name
		}
		p.mark(p.at[i], p.radius(i), p.groupOf[i], "<title>"+xmlText(fmt.Sprintf("%s\n%s\ndegree %d", id, group, p.degree[i]))+"</title>")
		p.b.WriteByte('\n')
	}
}

// drawLabels writes the names of nodes, those with the most edges first, where
// they cover neither a name nor a node.
func (p *picture) drawLabels() {
	const characterWidth, lineHeight, most = 6.0, 12.0, 60
	order := make([]int, 0, len(p.ids))
	for i := range p.ids {
		if p.degree[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.degree[b], p.degree[a]) })
	type box struct{ x0, y0, x1, y1 float64 }
	var taken []box
	for i, at := range p.at {
		r := p.radius(i)
		taken = append(taken, box{at.x - r, at.y - r, at.x + r, at.y + r})
	}
	written := 0
	for _, i := range order {
		name := labelOf(p.ids[i])
		width := characterWidth * float64(utf8.RuneCountInString(name))
		r := p.radius(i)
		for _, x := range []float64{p.at[i].x + r + 3, p.at[i].x - r - 3 - width} {
			b := box{x, p.at[i].y - lineHeight/2, x + width, p.at[i].y + lineHeight/2}
			if b.x0 < pageMargin/2 || b.x1 > p.width+2.8*pageMargin ||
				slices.ContainsFunc(taken, func(t box) bool { return b.x0 < t.x1 && t.x0 < b.x1 && b.y0 < t.y1 && t.y0 < b.y1 }) {
				continue
			}
			taken = append(taken, b)
			p.printf(`<text class="label" x="%s" y="%s">%s</text>`+"\n", px(x), px(p.at[i].y+3.6), xmlText(name))
			written++
			break
		}
		if written == most {
			return
		}
	}
}

// labelOf is a short name of a chunk: what follows "#", else the last element
// of its path.
func labelOf(id string) string {
	name := id[strings.LastIndexByte(id, '#')+1:]
	name = name[strings.LastIndexByte(strings.TrimSuffix(name, "/"), '/')+1:]
	return elide(cmp.Or(name, id), 24)
}

func (p *picture) drawLegend(x float64) {
	y := headHeight + pageMargin/2
	line := func(class, text string, dx float64) {
		if class != "" {
			class = ` class="` + class + `"`
		}
		p.printf("<text%s x=\"%s\" y=\"%s\">%s</text>\n", class, px(x+dx), px(y+4.5), xmlText(text))
		y += legendLine
	}
	name := []rune(p.opts.GroupName)
	line("cap", strings.ToUpper(string(name[:1]))+string(name[1:]), 0)
	shown := min(len(p.groups), pictureGroups)
	for i, g := range p.groups[:shown] {
		p.mark(point{x + 8, y}, 5.5, i, "<title>"+xmlText(g.name)+"</title>")
		line("", fmt.Sprintf("%s (%d)", elide(g.name, 28), g.nodes), 22)
	}
	rest, none := 0, 0
	for _, g := range p.groupOf {
		switch {
		case g < 0:
			none++
		case g >= shown:
			rest++
		}
	}
	if rest > 0 {
		p.mark(point{x + 8, y}, 5.5, pictureGroups, "")
		line("", fmt.Sprintf("%d more (%d)", len(p.groups)-shown, rest), 22)
	}
	if none > 0 {
		p.mark(point{x + 8, y}, 5.5, -1, "")
		line("", fmt.Sprintf("none (%d)", none), 22)
	}
	if len(p.types) == 0 {
		return
	}
	y += legendLine / 2
	line("cap", "Edges", 0)
	for i, t := range p.types {
		p.printf(`<path class="e t%d" stroke-opacity="1" d="M%s %sh32"/>`, i, px(x), px(y))
		line("", fmt.Sprintf("%s (%d)", elide(typeName(t.Type), 26), t.Count), 42)
	}
	line("sub", "coloured inside a group, grey between", 0)
}
