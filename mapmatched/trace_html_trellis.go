package mapmatched

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Sizes of the drawing, in CSS pixels.
const (
	nodeHeight   = 26
	rowPitch     = 33   // from one rank to the next
	gutterWidth  = 92   // between columns, where edges and move labels go
	axisWidth    = 24   // left of the first column, with the ranks
	edgePad      = 4    // right of the last column
	drawingPad   = 10   // above the first and below the last row
	fitWidth     = 1314 // width without a scroll bar in a window of 1400
	minNodeWidth = 120
	maxNodeWidth = 212
	labelWidth   = 64 // of a move
	labelHeight  = 46
	cellWidth    = 6.7 // of a monospaced rune of a chunk ID
	nodeInset    = 12  // left of the chunk ID in a node
	shareWidth   = 34  // right of it, for the posterior
	gapRows      = 3   // rows that the text of a gap takes
)

// htmlTrellis is the drawing: all positions in CSS pixels from the top left.
type htmlTrellis struct {
	Width, Height int
	Columns       []trellisColumn
	Ranks         []trellisText
	Gaps          []trellisGap
	Edges         []trellisEdge // best predecessors
	Path          []trellisEdge
	Breaks        []trellisBreak
	Nodes         []trellisNode
	Moves         []trellisMove
	More          []trellisText
	HasCandidates bool
	HasPosterior  bool
}

// trellisColumn is the heading of a turn.
type trellisColumn struct {
	Margin  int // from the end of the column before
	Width   int
	Index   int
	Query   string
	Verdict verdict
	Gap     bool
	Break   bool
	Revised bool
}

// trellisNode is a candidate of a turn, or the decoded chunk alone.
type trellisNode struct {
	X, Y, Width, Height int
	Key, Previous       string // names of this node and of its best predecessor
	Label               string
	LabelX, LabelY      int
	Share               string
	ShareX              int
	BarWidth            int
	BarOpacity          string
	Decoded, Pointwise  bool
	Mark                string // path of the mark of the pointwise winner
	Tooltip             string

	chunkID string
}

// trellisEdge is a line between the nodes of two turns.
type trellisEdge struct {
	Key     string // of the node that it leads to
	D       string
	OverGap bool
}

// trellisMove says what a move of the path cost.
type trellisMove struct {
	X, Y, Width, Height int
	CenterX             int
	Lines               [3]trellisText
	Tooltip             string
	Break               bool
}

// trellisGap is a turn without candidates.
type trellisGap struct {
	X, Y, Width, Height int
	Lines               []trellisText
	Tooltip             string
}

// trellisBreak is the start of a new segment, between two columns.
type trellisBreak struct {
	X, Y1, Y2 int
	Tooltip   string
}

// trellisText is a line of text at a position.
type trellisText struct {
	X, Y int
	Text string
}

// trellisPlan is a drawing in the making.
type trellisPlan struct {
	*htmlTrellis
	steps     []TraceStep
	ranked    [][]TraceCandidate // candidates of each step, best raw score first
	limit     int                // candidates drawn for a step
	nodeWidth int
	rows      int
	nodes     [][]trellisNode // by step
}

// newHTMLTrellis draws the trace with up to limit candidates a turn.
func newHTMLTrellis(t *Trace, ranked [][]TraceCandidate, limit int) *htmlTrellis {
	p := &trellisPlan{htmlTrellis: &htmlTrellis{}, steps: t.Steps, ranked: ranked, limit: limit}
	p.measure()
	p.placeColumns(t.RevisedPriorIndices)
	p.placeNodes()
	previous := -1 // last step that has a chunk
	for i := range p.steps {
		if p.steps[i].Gap != "" {
			p.drawGap(i)
			continue
		}
		if previous >= 0 {
			p.drawEdges(previous, i)
			p.drawMove(previous, i)
		}
		previous = i
	}
	for i := range p.nodes {
		p.Nodes = append(p.Nodes, p.nodes[i]...)
	}
	return p.htmlTrellis
}

// measure sets the width of the nodes, the number of rows and the size.
func (p *trellisPlan) measure() {
	longest, hasGap := 0, false
	p.rows = 1
	for i := range p.steps {
		s := &p.steps[i]
		hasGap = hasGap || s.Gap != ""
		rows := len(p.shown(i))
		for _, c := range p.shown(i) {
			longest = max(longest, cellCount(p.label(&c)))
		}
		if rows < len(p.ranked[i]) {
			rows++ // for the line that says how many there are more
		}
		p.rows = max(p.rows, rows)
	}
	if hasGap {
		p.rows = max(p.rows, gapRows+1)
	}
	n := max(len(p.steps), 1)
	p.nodeWidth = nodeInset + int(math.Ceil(float64(longest)*cellWidth)) + shareWidth
	p.nodeWidth = min(max(p.nodeWidth, minNodeWidth), maxNodeWidth)
	if fit := (fitWidth - edgePad - axisWidth - (n-1)*gutterWidth) / n; fit >= minNodeWidth {
		p.nodeWidth = min(p.nodeWidth, fit)
	}
	p.Height = max(2*drawingPad+(p.rows-1)*rowPitch+nodeHeight, labelHeight+8)
	ranks := 0
	for i := range p.ranked {
		ranks = max(ranks, min(len(p.ranked[i]), p.limit))
	}
	for r := range ranks {
		p.Ranks = append(p.Ranks, trellisText{axisWidth - 12, p.rowY(r) + 4, fmt.Sprint(r + 1)})
	}
	p.HasCandidates = ranks > 0
}

// x returns the left edge of the column of step i.
func (p *trellisPlan) x(i int) int { return axisWidth + i*(p.nodeWidth+gutterWidth) }

// rowY returns the middle of a row.
func (p *trellisPlan) rowY(row int) int { return drawingPad + nodeHeight/2 + row*rowPitch }

// placeColumns sets the headings and with them the width of the drawing.
func (p *trellisPlan) placeColumns(revised []int) {
	isRevised := make(map[int]bool, len(revised))
	for _, turn := range revised {
		isRevised[turn] = true
	}
	for i := range p.steps {
		s := &p.steps[i]
		width := p.nodeWidth + gutterWidth - 18
		if i == len(p.steps)-1 { // nothing follows: what fits, without a scroll bar
			width = min(width, max(p.nodeWidth, fitWidth-edgePad-p.x(i)))
		}
		p.Columns = append(p.Columns, trellisColumn{
			Margin: p.x(i) - p.Width, Width: width, Index: s.TurnIndex, Query: elide(s.Query, maxQueryRunes),
			Verdict: s.verdict(p.ranked[i]), Gap: s.Gap != "", Break: s.Break != "", Revised: isRevised[s.TurnIndex],
		})
		p.Width = p.x(i) + width
	}
	p.Width = max(p.Width, axisWidth) + edgePad
}

// shownCandidate is a candidate to draw, with its rank from 1, or 0 for a
// decoded chunk that is not among the recorded candidates.
type shownCandidate struct {
	candidate TraceCandidate
	rank      int
}

// shown returns the candidates to draw for step i: the best by raw score, and
// the decoded chunk after them when it is not one of these.
func (p *trellisPlan) shown(i int) []shownCandidate {
	s, ranked := &p.steps[i], p.ranked[i]
	if s.Gap != "" {
		return nil
	}
	var list []shownCandidate
	for r := range min(len(ranked), p.limit) {
		list = append(list, shownCandidate{ranked[r], r + 1})
	}
	switch rank := rankOf(ranked, s.ChunkID); {
	case rank > p.limit:
		list = append(list, shownCandidate{ranked[rank-1], rank})
	case rank == 0:
		list = append(list, shownCandidate{candidate: TraceCandidate{
			ChunkID: s.ChunkID, Posterior: s.Confidence,
			RawEmissionScore: s.RawEmissionScore, NormalizedEmissionScore: s.NormalizedEmissionScore,
			WeightedEmissionScore: s.WeightedEmissionScore, BestPathScore: s.CumulativeScore,
			GraphDistance: s.GraphDistance, WeightedTransitionCost: s.WeightedTransitionCost,
		}})
	}
	return list
}

// label returns what a node says: the chunk ID, after its rank where the row
// does not tell it.
func (p *trellisPlan) label(c *shownCandidate) string {
	label := escapeText(c.candidate.ChunkID)
	if c.rank > p.limit {
		label = fmt.Sprintf("#%d %s", c.rank, label)
	}
	return label
}

// placeNodes places the nodes of every step.
func (p *trellisPlan) placeNodes() {
	p.nodes = make([][]trellisNode, len(p.steps))
	for i := range p.steps {
		shown := p.shown(i)
		for row, c := range shown {
			p.nodes[i] = append(p.nodes[i], p.node(i, row, &c))
		}
		if n := len(p.ranked[i]) - len(shown); n > 0 && p.steps[i].Gap == "" {
			p.More = append(p.More, trellisText{
				p.x(i) + nodeInset, p.rowY(len(shown)) - 4, fmt.Sprintf("and %d more, see below", n),
			})
		}
	}
}

// node places candidate c of step i at a row.
func (p *trellisPlan) node(i, row int, c *shownCandidate) trellisNode {
	s, x, mid := &p.steps[i], p.x(i), p.rowY(row)
	share := min(max(c.candidate.Posterior, 0), 1)
	n := trellisNode{
		X: x, Y: mid - nodeHeight/2, Width: p.nodeWidth, Height: nodeHeight,
		Key:     fmt.Sprintf("%d.%d", i, row),
		Label:   elideMiddle(p.label(c), cellsIn(p.nodeWidth-nodeInset-shareWidth)),
		LabelX:  x + nodeInset,
		LabelY:  mid + 4,
		Share:   percent(share),
		ShareX:  x + p.nodeWidth - 8,
		Decoded: c.candidate.ChunkID == s.ChunkID, Pointwise: c.rank == 1,
		Tooltip: nodeTooltip(s.TurnIndex, c),
		chunkID: c.candidate.ChunkID,
	}
	if share > 0 {
		p.HasPosterior = true
		n.BarWidth = max(1, int(share*float64(p.nodeWidth)))
		n.BarOpacity = fmt.Sprintf("%.2f", 0.25+0.35*share)
	}
	if n.Pointwise {
		n.Mark = fmt.Sprintf("M%d %dl6 -6l6 6l-6 6z", x-6, mid)
	}
	return n
}

// nodeTooltip tells everything about a candidate.
func nodeTooltip(turn int, c *shownCandidate) string {
	lines := []string{escapeText(c.candidate.ChunkID)}
	if c.candidate.Text != "" {
		lines = append(lines, elide(c.candidate.Text, maxTextRunes))
	}
	rank := fmt.Sprintf("turn %d", turn)
	if c.rank > 0 {
		rank += fmt.Sprintf(", rank %d", c.rank)
	}
	lines = append(lines, rank,
		"raw score "+formatScore(c.candidate.RawEmissionScore)+
			", normalized "+formatScore(c.candidate.NormalizedEmissionScore),
		"best path score that ends here "+formatScore(c.candidate.BestPathScore))
	if from := c.candidate.PredecessorChunkID; from != "" {
		lines = append(lines, fmt.Sprintf("comes from %s, distance %s, cost %s", escapeText(from),
			formatScore(c.candidate.GraphDistance), formatScore(c.candidate.WeightedTransitionCost)))
	}
	if c.candidate.Posterior > 0 {
		lines = append(lines, "share of all paths "+formatScore(c.candidate.Posterior))
	}
	if len(c.candidate.ScoreParts) > 0 {
		lines = append(lines, "made of "+partsText(c.candidate.ScoreParts))
	}
	return strings.Join(lines, "\n")
}

// find returns the node of a chunk at step i, or nil when it is not drawn.
func (p *trellisPlan) find(i int, chunkID string) *trellisNode {
	for k := range p.nodes[i] {
		if p.nodes[i][k].chunkID == chunkID {
			return &p.nodes[i][k]
		}
	}
	return nil
}

// drawEdges draws the lines that lead from step from to step to, between which
// there are only gaps.
func (p *trellisPlan) drawEdges(from, to int) {
	shown := p.shown(to)
	for k := range p.nodes[to] {
		previous := p.find(from, shown[k].candidate.PredecessorChunkID)
		if previous == nil {
			continue
		}
		node := &p.nodes[to][k]
		node.Previous = previous.Key
		p.Edges = append(p.Edges, trellisEdge{Key: node.Key, D: p.line(from, to, previous, node), OverGap: to > from+1})
	}
	a, b := p.find(from, p.steps[from].ChunkID), p.find(to, p.steps[to].ChunkID)
	if p.steps[to].Break == "" {
		p.Path = append(p.Path, trellisEdge{Key: b.Key, D: p.line(from, to, a, b), OverGap: to > from+1})
	}
}

// line draws a smooth line from the right of a to the left of b. It passes the
// columns of gaps level, below their text.
func (p *trellisPlan) line(from, to int, a, b *trellisNode) string {
	x1, y1 := a.X+a.Width, a.Y+nodeHeight/2
	x2, y2 := b.X, b.Y+nodeHeight/2
	if to == from+1 {
		return fmt.Sprintf("M%d %d%s", x1, y1, curve(x1, y1, x2, y2))
	}
	lane := p.lane(a, b)
	left, right := p.x(from+1), p.x(to)-gutterWidth
	return fmt.Sprintf("M%d %d%sH%d%s", x1, y1, curve(x1, y1, left, lane), right, curve(right, lane, x2, y2))
}

// lane returns the height at which a line from a to b passes gaps.
func (p *trellisPlan) lane(a, b *trellisNode) int {
	return max((a.Y+b.Y)/2+nodeHeight/2, p.rowY(gapRows))
}

// curve is a Bézier segment that is level at both ends.
func curve(x1, y1, x2, y2 int) string {
	middle := (x1 + x2) / 2
	return fmt.Sprintf("C%d %d %d %d %d %d", middle, y1, middle, y2, x2, y2)
}

// drawMove labels the move of the path from step from to step to with what it
// cost, or marks the break there.
func (p *trellisPlan) drawMove(from, to int) {
	a, b, s := p.find(from, p.steps[from].ChunkID), p.find(to, p.steps[to].ChunkID), &p.steps[to]
	start := a.Y + nodeHeight/2
	if to > from+1 && s.Break == "" {
		start = p.lane(a, b)
	}
	center := p.x(to) - gutterWidth/2
	middle := (start + b.Y + nodeHeight/2) / 2
	middle = min(max(middle, labelHeight/2+2), p.Height-labelHeight/2-2)
	m := trellisMove{
		X: center - labelWidth/2, Y: middle - labelHeight/2, Width: labelWidth, Height: labelHeight, CenterX: center,
	}
	name := escapeText(string(s.Move))
	if name == "" {
		name = "move"
	}
	texts := [3]string{
		elide(name, 10),
		"d = " + shortScore(s.GraphDistance),
		"cost " + shortScore(s.WeightedTransitionCost),
	}
	m.Tooltip = fmt.Sprintf("%s from %s to %s: distance d = %s, cost β·d = %s", name,
		escapeText(p.steps[from].ChunkID), escapeText(s.ChunkID),
		formatScore(s.GraphDistance), formatScore(s.WeightedTransitionCost))
	if s.Break != "" {
		m.Break = true
		texts = [3]string{"break", "restart", "no cost"}
		m.Tooltip = fmt.Sprintf("break before turn %d: %s", s.TurnIndex, escapeText(s.Break))
		p.Breaks = append(p.Breaks, trellisBreak{X: center, Y1: 2, Y2: p.Height - 2, Tooltip: m.Tooltip})
	}
	for i, text := range texts {
		m.Lines[i] = trellisText{center, m.Y + 14 + 13*i, text}
	}
	p.Moves = append(p.Moves, m)
}

// shortScore prints a distance or a cost in at most seven characters where it
// is below a million.
func shortScore(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.001:
		return "<0.001"
	case v >= 1000 && v < 1e6:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// drawGap draws step i, which has no candidates.
func (p *trellisPlan) drawGap(i int) {
	reason := escapeText(p.steps[i].Gap)
	g := trellisGap{
		X: p.x(i), Y: drawingPad, Width: p.nodeWidth, Height: p.Height - 2*drawingPad,
		Tooltip: fmt.Sprintf("gap at turn %d: %s", p.steps[i].TurnIndex, reason),
	}
	for k, line := range append([]string{"gap"}, wrap(reason, cellsIn(p.nodeWidth-2*nodeInset), gapRows)...) {
		g.Lines = append(g.Lines, trellisText{g.X + nodeInset, g.Y + 20 + 16*k, line})
	}
	p.Gaps = append(p.Gaps, g)
}

// cellCount estimates how wide a text is, in columns of a monospaced font: a
// combining mark has none, and the scripts of East Asia two for a rune.
func cellCount(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// cells estimates the width of one rune.
func cells(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80:
		return 2
	}
	return 1
}

// cellsIn returns how many columns of a monospaced font fit into a width.
func cellsIn(width int) int { return int(float64(width) / cellWidth) }

// elideMiddle cuts a text to a width in columns, keeping both ends: chunk IDs
// often start alike and end in what tells them apart.
func elideMiddle(s string, width int) string {
	if cellCount(s) <= width {
		return s
	}
	runes := []rune(s)
	head, tail := 0, len(runes)
	for used := 1; head < tail; { // 1 for the ellipsis
		next := tail - 1
		if head <= len(runes)-tail {
			next = head
		}
		used += cells(runes[next])
		if used > width {
			break
		}
		if next == head {
			head++
		} else {
			tail--
		}
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// wrap breaks a text into at most limit lines of a width in columns, between
// words where it can; what is left over is cut.
func wrap(s string, width, limit int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch joined := strings.TrimLeft(line+" "+word, " "); {
		case cellCount(joined) <= width:
			line = joined
			continue
		case line != "":
			lines = append(lines, line)
		}
		line = elideMiddle(word, width)
	}
	if line != "" {
		lines = append(lines, line)
	}
	if len(lines) > limit {
		lines = lines[:limit]
		lines[limit-1] = elideMiddle(lines[limit-1]+" …", width)
	}
	return lines
}
