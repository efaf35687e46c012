package mapmatched

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// htmlOf renders a trace, failing the test on an error.
func htmlOf(tb testing.TB, trace *Trace, o *HTMLOptions) string {
	tb.Helper()
	var b bytes.Buffer
	if err := trace.WriteHTML(&b, o); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// box is a rectangle of the drawing.
type box struct{ x, y, w, h int }

func (a box) overlaps(b box) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

// drawing is what a test reads back from the trellis of a page.
type drawing struct {
	width, height int
	boxes         []box // nodes, moves and gaps
	nodes, decoded, pointwise, edges,
	routes, moves, gaps, breaks int
	texts []string // texts inside the drawing, titles apart
}

// readDrawing parses a page as XML, which our template is written to satisfy,
// and collects its trellis.
func readDrawing(tb testing.TB, page string) drawing {
	tb.Helper()
	var d drawing
	dec := xml.NewDecoder(strings.NewReader(page))
	inside, isText, wantBox := 0, false, false
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			tb.Fatalf("the page is not well formed: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			number := func(name string) int {
				n, err := strconv.Atoi(attr[name])
				if err != nil {
					tb.Fatalf("<%s> has %s=%q", e.Name.Local, name, attr[name])
				}
				return n
			}
			class := " " + attr["class"] + " "
			if inside == 0 {
				if e.Name.Local == "svg" && class == " trellis " {
					inside, d.width, d.height = 1, number("width"), number("height")
				}
				continue
			}
			inside++
			isText = e.Name.Local == "text"
			count := func(name string, n *int) bool {
				if strings.Contains(class, " "+name+" ") {
					*n++
					return true
				}
				return false
			}
			switch e.Name.Local {
			case "g":
				node := count("node", &d.nodes)
				if node {
					count("decoded", &d.decoded)
					count("pointwise", &d.pointwise)
				}
				wantBox = node || count("move", &d.moves) || count("gap", &d.gaps)
			case "path":
				count("thread", &d.edges)
				count("route", &d.routes)
				count("break", &d.breaks)
			case "rect":
				if wantBox {
					d.boxes = append(d.boxes, box{number("x"), number("y"), number("width"), number("height")})
					wantBox = false
				}
			}
		case xml.EndElement:
			inside = max(inside-1, 0)
			isText = false
		case xml.CharData:
			if inside > 0 && isText {
				d.texts = append(d.texts, string(e))
			}
		}
	}
}

// Whatever the trace, all is drawn inside the picture and no node, label or
// gap covers another.
func TestWriteHTMLDrawsEverythingApart(t *testing.T) {
	for seed := range uint64(60) {
		turns := 1 + int(seed)%13
		trace := randomTrace(seed, turns, 1+int(seed)%20)
		if seed%5 == 0 {
			for i := range trace.Steps {
				trace.Steps[i].Candidates = nil
			}
		}
		limit := 1 + int(seed)%7
		d := readDrawing(t, htmlOf(t, trace, &HTMLOptions{MaxCandidates: limit}))

		chunks, gaps, breaks, nodes, pointwise := 0, 0, 0, 0, 0
		for i := range trace.Steps {
			s := &trace.Steps[i]
			if s.Gap != "" {
				gaps++
				continue
			}
			if s.Break != "" && chunks > 0 {
				breaks++
			}
			chunks++
			drawn := min(len(s.Candidates), limit)
			if rank := rankOf(byRawScore(s.Candidates), s.ChunkID); rank == 0 || rank > limit {
				drawn++
			}
			nodes += drawn
			pointwise += min(len(s.Candidates), 1)
		}
		got := fmt.Sprint(d.nodes, d.decoded, d.pointwise, d.moves, d.routes, d.gaps, d.breaks)
		want := fmt.Sprint(nodes, chunks, pointwise, max(chunks-1, 0), max(chunks-1, 0)-breaks, gaps, breaks)
		if got != want {
			t.Errorf("seed %d: nodes, decoded, pointwise, moves, routes, gaps, breaks are %s, want %s", seed, got, want)
		}
		for i, a := range d.boxes {
			if a.x < 0 || a.y < 0 || a.x+a.w > d.width || a.y+a.h > d.height {
				t.Errorf("seed %d: %+v is outside of %d × %d", seed, a, d.width, d.height)
			}
			for _, b := range d.boxes[:i] {
				if a.overlaps(b) {
					t.Errorf("seed %d: %+v covers %+v", seed, a, b)
				}
			}
		}
	}
}

// The example of the direct candidates: the path leaves the pointwise winner.
func TestWriteHTMLTellsTheStory(t *testing.T) {
	page := htmlOf(t, roadTrace(), nil)
	d := readDrawing(t, page)
	if d.nodes != 6 || d.edges != 3 || d.routes != 1 {
		t.Errorf("%d nodes, %d edges, %d routes, want 6, 3, 1", d.nodes, d.edges, d.routes)
	}
	drawn := strings.Join(d.texts, "|")
	for _, want := range []string{"drill|d = 1|cost 1", "hmm", "road-jumps"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the drawing lacks %q: %s", want, drawn)
		}
	}
	for _, want := range []string{
		"<dt>Differs from the pointwise winner at</dt><dd>turn 1</dd>",
		`<span class="chip over">picks rank 2</span>`,
		"what are hidden Markov models?",
		"drill from hmm to noise: distance d = 1, cost β·d = 1",
		"comes from hmm, distance 2, cost 2",
		"<dt>score model</dt><dd><code>decode_v1</code></dd>",
		"<dt>transition_weight</dt><dd><code>1</code></dd>",
		"Conversation trace</title>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "gap: a turn") || strings.Contains(page, "break: nothing") {
		t.Error("the legend explains what is not there")
	}
}

// roadTrace is a conversation of two turns over three chunks in a row.
func roadTrace() *Trace {
	return sampleTrace([]sampleTurn{
		{query: "what are hidden Markov models?", candidates: []Candidate{
			{ChunkID: "hmm", Score: 5}, {ChunkID: "noise", Score: 1}, {ChunkID: "road-jumps"},
		}},
		{query: "and when it is noisy?", candidates: []Candidate{
			{ChunkID: "hmm", Score: 1}, {ChunkID: "noise", Score: 3}, {ChunkID: "road-jumps", Score: 3.5},
		}},
	}, map[string]float64{"hmm": 0, "noise": 1, "road-jumps": 2})
}

func TestWriteHTMLDeterministic(t *testing.T) {
	trace := randomTrace(4, 30, 20)
	for i := range trace.Steps {
		if trace.Steps[i].Gap == "" {
			trace.Steps[i].ScoreParts = map[string]float64{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
		}
	}
	first := htmlOf(t, trace, nil)
	for range 5 {
		if htmlOf(t, trace, nil) != first {
			t.Fatal("two pages of one trace differ")
		}
	}
	if !strings.Contains(first, "a 1, b 2, c 3, d 4, e 5") {
		t.Error("the score parts are missing")
	}
}

// The page asks for nothing: the only reference is to the icon, which is empty.
func TestWriteHTMLSelfContained(t *testing.T) {
	page := htmlOf(t, randomTrace(7, 12, 8), nil)
	for _, pattern := range []string{`https?:`, `\bsrc=`, `@import`, `//[a-z]`, `<(img|iframe|object|embed|base|form)\b`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	for _, reference := range regexp.MustCompile(`href="[^"]*"|url\([^)]*\)`).FindAllString(page, -1) {
		if reference != `href="data:,"` && reference != "url(#hatch)" {
			t.Errorf("the page refers to %s", reference)
		}
	}
}

// Nothing that a corpus or a user brings becomes markup.
func TestWriteHTMLEscapes(t *testing.T) {
	const evil = "\"'><script>alert(1)</script></title></svg><!--\x1b\u202e{{.Title}}&amp;"
	trace := &Trace{
		Schema: evil, ScoreModel: evil, PolicyDigest: evil, Options: &Options{OnEmpty: new(evil)},
		PathChunkIDs: []string{evil, "", evil},
		Steps: []TraceStep{
			{
				ChunkID: evil, Query: evil, ScoreParts: map[string]float64{evil: 1},
				Candidates: []TraceCandidate{{ChunkID: evil, Text: evil, ScoreParts: map[string]float64{evil: 1}}},
			},
			{TurnIndex: 1, Gap: evil, Query: evil},
			{
				TurnIndex: 2, ChunkID: evil, Break: evil, Move: evil, Query: evil,
				Candidates: []TraceCandidate{{ChunkID: evil, PredecessorChunkID: evil, Text: evil}},
			},
			{TurnIndex: 3, ChunkID: evil, Move: evil},
		},
	}
	page := htmlOf(t, trace, &HTMLOptions{Title: evil})
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%d scripts, want our own only", n)
	}
	for _, bad := range []string{"alert(1)</script>", "\x1b", "<!--"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	clean := strings.ReplaceAll(page, "\u202e", "")
	if d := readDrawing(t, clean); d.decoded != 3 || d.gaps != 1 {
		t.Errorf("%d decoded and %d gaps, want 3 and 1", d.decoded, d.gaps)
	}
}

func TestWriteHTMLLimit(t *testing.T) {
	var turn sampleTurn
	for i := range 20 {
		turn.candidates = append(turn.candidates, Candidate{ChunkID: fmt.Sprintf("chunk-%02d", i), Score: float64(i)})
	}
	trace := sampleTrace([]sampleTurn{turn}, nil)
	trace.Steps[0].ChunkID = "chunk-03" // rank 17
	for _, c := range []struct{ limit, nodes int }{{0, 13}, {1, 2}, {16, 17}, {17, 17}, {50, 20}} {
		d := readDrawing(t, htmlOf(t, trace, &HTMLOptions{MaxCandidates: c.limit}))
		drawn := strings.Join(d.texts, "|")
		if d.nodes != c.nodes || d.decoded != 1 {
			t.Errorf("limit %d: %d nodes, %d decoded, want %d and 1", c.limit, d.nodes, d.decoded, c.nodes)
		}
		if got, want := strings.Contains(drawn, "#17 chunk-03"), c.limit < 17; got != want {
			t.Errorf("limit %d: rank beside the chunk is %t, want %t: %s", c.limit, got, want, drawn)
		}
		if want := fmt.Sprintf("and %d more, see below", 20-c.nodes); strings.Contains(drawn, want) != (c.nodes < 20) {
			t.Errorf("limit %d: %q is wrong: %s", c.limit, want, drawn)
		}
		if !strings.Contains(drawn, "chunk-19") {
			t.Errorf("limit %d: the pointwise winner is not drawn: %s", c.limit, drawn)
		}
	}
}

// A trace of another implementation has neither candidates nor posteriors.
func TestWriteHTMLPathOnly(t *testing.T) {
	trace := gapTrace()
	trace.Steps[2].NormalizedEmissionMargin = -0.5
	page := htmlOf(t, trace, &HTMLOptions{Title: "Mine"})
	for _, want := range []string{"<title>Mine</title>", "were not recorded", ">not top hit<", ">top hit<", "Gap at turn 1: nothing found", "Break at turn 2: out of reach"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"pointwise winner:", "posterior:", "candidates-heading"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	empty := htmlOf(t, &Trace{}, nil)
	if !strings.Contains(empty, "The trace has no turns.") || strings.Contains(empty, "<svg") {
		t.Error("an empty trace is not said to be empty")
	}
}

func TestWriteHTMLErrors(t *testing.T) {
	if err := roadTrace().WriteHTML(io.Discard, &HTMLOptions{MaxCandidates: -1}); !errors.Is(err, ErrInvalidConfig) {
		t.Errorf("got %v, want %v", err, ErrInvalidConfig)
	}
	if err := roadTrace().WriteHTML(fullDisk{}, nil); !errors.Is(err, errFullDisk) {
		t.Errorf("got %v, want %v", err, errFullDisk)
	}
}

var errFullDisk = errors.New("disk is full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }

// Text is legible in both schemes: WCAG 2 asks for a contrast of 4.5 for text
// and of 3 for what a drawing needs to be understood.
func TestHTMLContrast(t *testing.T) {
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(traceHTML, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d colour schemes, want light and dark", len(schemes))
	}
	for i, scheme := range schemes {
		colors := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6})`).FindAllStringSubmatch(scheme[1], -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		for _, c := range []struct {
			over, under string
			least       float64
		}{
			{"text", "page", 4.5}, {"text", "panel", 4.5}, {"text", "node", 4.5}, {"text", "soft", 4.5},
			{"muted", "page", 4.5}, {"muted", "panel", 4.5}, {"muted", "soft", 4.5},
			{"path", "panel", 4.5}, {"top", "panel", 4.5}, {"top", "top-soft", 4.5},
			{"stop", "page", 4.5}, {"stop", "panel", 4.5},
			{"path", "node", 3}, {"top", "node", 3}, {"thread", "panel", 2.5},
		} {
			a, b := colors[c.over], colors[c.under]
			if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < c.least {
				t.Errorf("scheme %d: %s on %s has contrast %.2f, want %.1f", i, c.over, c.under, contrast, c.least)
			}
		}
	}
}

// luminance is the relative luminance of WCAG 2 of a colour in hexadecimal.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(v>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

func TestElideMiddle(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"", 5, ""},
		{"short", 5, "short"},
		{"storage/backup#1", 9, "stor…up#1"},
		{"storage/backup#1", 8, "stor…p#1"},
		{"storage/backup#1", 1, "…"},
		{"文档/访问令牌", 6, "文…牌"},
		{"文档/访问令牌", 9, "文档…令牌"},
	} {
		got := elideMiddle(c.in, c.width)
		if got != c.want || cellCount(got) > c.width {
			t.Errorf("elideMiddle(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func FuzzElide(f *testing.F) {
	f.Add("storage/backup#1 and more", 9)
	f.Add("文档/访问令牌", 3)
	f.Add("e\u0301e\u0301 \xff", 2)
	f.Fuzz(func(t *testing.T, s string, width int) {
		if width < 1 || width > 1000 {
			t.Skip()
		}
		if got := elide(s, width); utf8.RuneCountInString(got) > width || !utf8.ValidString(got) {
			t.Errorf("elide(%q, %d) = %q", s, width, got)
		}
		if got := elideMiddle(s, width); cellCount(got) > width {
			t.Errorf("elideMiddle(%q, %d) = %q", s, width, got)
		}
		lines := wrap(s, width, 3)
		if len(lines) > 3 {
			t.Errorf("wrap(%q, %d) has %d lines", s, width, len(lines))
		}
		for _, line := range lines {
			if cellCount(line) > width || line == "" {
				t.Errorf("wrap(%q, %d) has the line %q", s, width, line)
			}
		}
	})
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"no hit", "no hit"},
		{"the provider found nothing", "the|provider|found …"},
		{"an unbreakableword here", "an|unbre…word|here"},
	} {
		if got := strings.Join(wrap(c.in, 10, 3), "|"); got != c.want {
			t.Errorf("wrap(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestShortNumbers(t *testing.T) {
	for _, c := range []struct {
		in            float64
		share, number string
	}{
		{0, "", "0"}, {math.Copysign(0, -1), "", "0"}, {1e-5, "<1%", "<0.001"}, {0.0099, "<1%", "0.0099"},
		{0.01, "1%", "0.01"}, {0.5, "50%", "0.5"}, {0.994, ">99%", "0.994"}, {0.99, "99%", "0.99"},
		{1, "100%", "1"}, {1.0000000002, "100%", "1"}, {math.NaN(), "", "NaN"}, {12345.6, "100%", "12346"}, {1e7, "100%", "1e+07"},
	} {
		if got := percent(c.in); got != c.share {
			t.Errorf("percent(%v) = %q, want %q", c.in, got, c.share)
		}
		if got := shortScore(c.in); got != c.number {
			t.Errorf("shortScore(%v) = %q, want %q", c.in, got, c.number)
		}
	}
}

func BenchmarkWriteHTML(b *testing.B) {
	for _, turns := range []int{10, 200} {
		trace := randomTrace(1, turns, 20)
		b.Run(fmt.Sprintf("turns=%d/candidates=20", turns), func(b *testing.B) {
			for b.Loop() {
				if err := trace.WriteHTML(io.Discard, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
