package eval

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// The measures of the picture, in pixels.
const (
	svgLabels = 230 // width of the names
	svgPlot   = 420 // width from 0 to the end of the scale
	svgRow    = 20
	svgHead   = 46 // height of what is above the rows of a panel
	svgFoot   = 24 // and below them
)

// WriteSVG draws nDCG@3 of every method with its interval, a panel for each
// slice. It needs no fonts, scripts or other files.
func (r *Report) WriteSVG(w io.Writer) error {
	var b strings.Builder
	panel := svgHead + svgRow*len(r.Methods) + svgFoot
	width, height := svgLabels+svgPlot+90, 40+panel*len(r.Slices)
	scale := r.scale()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	title := fmt.Sprintf("nDCG@3 on %s", r.Data.Name)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>Mean and %g%% bootstrap interval of each method, by slice.</desc>\n", html.EscapeString(title), 100*r.Bootstrap.Confidence)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	text := func(x, y float64, anchor, weight, fill, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-weight="%s" fill="%s">%s</text>`+"\n", x, y, anchor, weight, fill, html.EscapeString(s))
	}
	text(16, 24, "start", "bold", "#1a1a1a", title)
	for i, kind := range []string{"baseline", "policy", "ablation"} {
		x := svgLabels + svgPlot - 210 + 90*i
		fmt.Fprintf(&b, `<rect x="%d" y="14" width="12" height="12" fill="%s"/>`+"\n", x, colour(kind))
		text(float64(x+18), 24, "start", "normal", "#1a1a1a", kind)
	}
	for s, slice := range r.Slices {
		top := float64(40 + s*panel)
		text(16, top+20, "start", "bold", "#1a1a1a", fmt.Sprintf("%s (%d turns)", slice.Name, slice.Turns))
		rows, end := top+svgHead, top+svgHead+float64(svgRow*len(r.Methods))
		for tick := 0.0; tick <= scale+1e-9; tick += 0.1 {
			x := svgLabels + svgPlot*tick/scale
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", x, rows-6, x, end)
			text(x, rows-10, "middle", "normal", "#666666", fmt.Sprintf("%.1f", tick))
		}
		for i := range r.Methods {
			m := &r.Methods[i]
			v := m.Slice(slice.Name).Metrics[NDCG3]
			y := rows + float64(svgRow*i)
			at := func(value float64) float64 { return svgLabels + svgPlot*value/scale }
			text(svgLabels-8, y+13, "end", "normal", "#1a1a1a", shortened(m.Name, 34))
			fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="%.1f" height="12" fill="%s"/>`+"\n", svgLabels, y+3, at(v.Mean)-svgLabels, colour(m.Kind))
			fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1fM%.1f %.1fV%.1fM%.1f %.1fV%.1f" stroke="#1a1a1a" fill="none"/>`+"\n",
				at(v.Low), y+9, at(v.High), at(v.Low), y+5, y+13, at(v.High), y+5, y+13)
			text(svgLabels+svgPlot+10, y+13, "start", "normal", "#1a1a1a", fmt.Sprintf("%.3f", v.Mean))
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// scale is where the axis ends: the tenth above all intervals.
func (r *Report) scale() float64 {
	most := 0.0
	for i := range r.Methods {
		for _, s := range r.Methods[i].Slices {
			most = max(most, s.Metrics[NDCG3].High, s.Metrics[NDCG3].Mean)
		}
	}
	for tenths := 1; tenths < 10; tenths++ {
		if end := float64(tenths) / 10; most <= end {
			return end
		}
	}
	return 1
}

// colour of a bar; told apart by people who see few colours.
func colour(kind string) string {
	switch kind {
	case "baseline":
		return "#9fb4c7"
	case "policy":
		return "#3f9ec9"
	}
	return "#d9a441"
}

// shortened cuts a text to so many characters.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
