package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress draws a bar on a terminal once the command has taken a second.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	what  string
	since time.Time
	drawn time.Time
	on    bool
}

// newProgress is for a step of a command that began at since.
func newProgress(w io.Writer, what string, since time.Time) *progress {
	return &progress{w: w, what: what, since: since, on: isTerminal(w)}
}

// update says how much is done. It is safe for concurrent use.
func (p *progress) update(done, total int) {
	if !p.on || total == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.since) < time.Second || done < total && now.Sub(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = now
	count := fmt.Sprintf("%d/%d", done, total)
	width := min(30, lineWidth(p.w)-len(p.what)-len(" [] ")-len(count)-1) // not into the last column, which would wrap
	bar := ""
	if width > 0 {
		full := width * done / total
		bar = "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "] "
	}
	fmt.Fprintf(p.w, "\r%s %s%s", p.what, bar, count) //nolint:errcheck // only a bar
}

// done clears the bar.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.drawn.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K") //nolint:errcheck // only a bar
	}
}
