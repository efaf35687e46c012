package plugins

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxLogLine is what is kept of a line of output, in bytes.
const maxLogLine = 64 << 10

// readLines calls line with every line of r until it ends, without the line
// break and cut to maxLogLine.
func readLines(r io.Reader, line func([]byte)) {
	in := bufio.NewReaderSize(r, maxLogLine)
	whole := true
	for {
		text, isPrefix, err := in.ReadLine()
		if err != nil {
			return
		}
		if whole {
			line(text)
		}
		whole = !isPrefix
	}
}

// logGroup is the group of a plugin's own attributes, so that none of them
// passes for one of the host's.
const logGroup = "attrs"

// parseLog turns a line of a plugin's stderr into a record. A line that is no
// log line becomes a record of level debug with the line as its text.
func parseLog(line []byte) slog.Record {
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var members map[string]any
		if d.Decode(&members) != nil && len(line) >= maxLogLine-1 {
			members = parseCut(line)
		}
		levelText, _ := members[logLevelKey].(string)
		text, isText := members[logTextKey].(string)
		if level, ok := parseLevel(levelText); ok && isText {
			r := slog.NewRecord(time.Now(), level, text, 0)
			delete(members, logLevelKey)
			delete(members, logTextKey)
			delete(members, logTimeKey)
			if len(members) > 0 {
				r.AddAttrs(slog.Attr{Key: logGroup, Value: slog.GroupValue(attrs(members)...)})
			}
			return r
		}
	}
	return slog.NewRecord(time.Now(), slog.LevelDebug, toText(string(line)), 0)
}

// parseCut reads the members of a JSON object that was cut off, without
// objects and arrays. A text that is cut gets an ellipsis.
func parseCut(line []byte) map[string]any {
	members := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return members
	}
	for {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return members
		}
		at := d.InputOffset()
		var value any
		if err := d.Decode(&value); err == nil {
			switch value.(type) {
			case map[string]any, []any:
			default:
				members[name] = value
			}
			continue
		}
		rest := bytes.TrimLeft(line[at:], ": \t")
		for range len(`\ud83d\ude00`) { // what is cut in the middle of an escape
			var text string
			if json.Unmarshal(append(rest[:len(rest):len(rest)], '"'), &text) == nil {
				members[name] = text + " …"
				break
			}
			if len(rest) == 0 {
				break
			}
			rest = rest[:len(rest)-1]
		}
		return members
	}
}

// attrs makes attributes of the members of a JSON object, in the order of
// their names.
func attrs(members map[string]any) []slog.Attr {
	out := make([]slog.Attr, 0, len(members))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		switch v := members[key].(type) {
		case map[string]any:
			out = append(out, slog.Attr{Key: key, Value: slog.GroupValue(attrs(v)...)})
		case json.Number:
			out = append(out, slog.Attr{Key: key, Value: numberValue(v.String())})
		default:
			out = append(out, slog.Any(key, v))
		}
	}
	return out
}

func numberValue(text string) slog.Value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return slog.Int64Value(n)
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return slog.Float64Value(x)
	}
	return slog.StringValue(text)
}

// hostLog hands the lines of a plugin's output to the host's logger.
type hostLog struct{ logger *slog.Logger }

// record passes a record on.
func (l hostLog) record(r slog.Record) {
	ctx := context.Background()
	if h := l.logger.Handler(); h.Enabled(ctx, r.Level) {
		_ = h.Handle(ctx, r) // a logger that fails must not fail the plugin
	}
}

// level is the lowest of the levels that the logger keeps.
func (l hostLog) level() slog.Level {
	for _, level := range []slog.Level{levelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if l.logger.Enabled(context.Background(), level) {
			return level
		}
	}
	return slog.LevelError
}

// lineWriter logs what is written to it by lines, at level debug: what a
// plugin prints to its standard output.
type lineWriter struct {
	log    hostLog
	source string
	mu     sync.Mutex
	line   []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		w.line = append(w.line, part[:min(len(part), maxLogLine-len(w.line))]...)
		if end < 0 {
			break
		}
		rest = rest[end+1:]
		r := slog.NewRecord(time.Now(), slog.LevelDebug, toText(string(w.line)), 0)
		r.AddAttrs(slog.String("stream", w.source))
		w.log.record(r)
		w.line = w.line[:0]
	}
	return len(p), nil
}

// tail keeps the last lines that a plugin wrote to stderr, and of a crash the
// first ones, where Go and Python say what it was.
type tail struct {
	mu    sync.Mutex
	crash []string // from the first line of a panic on
	last  []string
}

const (
	tailLines = 5
	tailLine  = 300 // bytes kept of a line
)

// crashBegins matches the first line of what Go or Python writes of a crash.
var crashBegins = regexp.MustCompile(`^(panic: |fatal error: |unexpected fault address |Fatal Python error: |SIG[A-Z]+: |\[signal )`)

// add remembers a line.
func (t *tail) add(line string) {
	text := cut(strings.TrimSpace(oneLine(line)), tailLine)
	if text == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.crash) < tailLines && (len(t.crash) > 0 || crashBegins.MatchString(text)) {
		t.crash = append(t.crash, text)
	}
	if len(t.last) == tailLines {
		t.last = t.last[1:]
	}
	t.last = append(t.last, text)
}

// text is the crash, or else the last lines, in one line; "" for nothing.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.last
	if len(t.crash) > 0 {
		lines = t.crash
	}
	return strings.Join(lines, " | ")
}
