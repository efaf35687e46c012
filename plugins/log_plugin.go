package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// The members of a log line that are not attributes, as go-plugin knows them.
const (
	logLevelKey = "@level"
	logTextKey  = "@message"
	logTimeKey  = "@timestamp"
	logTimeForm = "2006-01-02T15:04:05.000000Z07:00"
)

// levelTrace is the level below debug that go-plugin has and slog does not.
const levelTrace = slog.LevelDebug - 4

// logHandler writes records as lines of JSON that the host turns into records
// again.
type logHandler struct {
	level slog.Level
	out   *lockedWriter
	scope []scope // groups and attributes in the order in which they were added
}

// scope is a group that was opened, or attributes that were added.
type scope struct {
	group string
	attrs []slog.Attr
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func newLogHandler(w io.Writer, level slog.Level) *logHandler {
	return &logHandler{level: level, out: &lockedWriter{w: w}}
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(scope{attrs: attrs})
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(scope{group: name})
}

func (h *logHandler) with(s scope) *logHandler {
	return &logHandler{level: h.level, out: h.out, scope: append(h.scope[:len(h.scope):len(h.scope)], s)}
}

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	root := map[string]any{}
	at := root
	var opened []map[string]any // what the groups are in, outermost first
	var groups []string
	for _, s := range h.scope {
		if s.group != "" {
			inner := map[string]any{}
			at[s.group] = inner
			opened, groups = append(opened, at), append(groups, s.group)
			at = inner
		}
		for _, a := range s.attrs {
			addAttr(at, a)
		}
	}
	r.Attrs(func(a slog.Attr) bool {
		addAttr(at, a)
		return true
	})
	for i := len(opened) - 1; i >= 0 && len(at) == 0; i-- {
		delete(opened[i], groups[i]) // a group without attributes
		at = opened[i]
	}
	root[logLevelKey] = levelName(r.Level)
	root[logTextKey] = r.Message
	if !r.Time.IsZero() {
		root[logTimeKey] = r.Time.Format(logTimeForm)
	}
	line, err := json.Marshal(root)
	if err != nil {
		return err
	}
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err = h.out.w.Write(append(line, '\n'))
	return err
}

// addAttr puts an attribute into a JSON object.
func addAttr(at map[string]any, a slog.Attr) {
	v := a.Value.Resolve()
	switch {
	case v.Kind() == slog.KindGroup:
		inner := at
		if a.Key != "" {
			inner = map[string]any{}
		}
		for _, member := range v.Group() {
			addAttr(inner, member)
		}
		if a.Key != "" && len(inner) > 0 {
			at[a.Key] = inner
		}
	case a.Key == "" && v.Any() == nil: // an empty attribute, which slog ignores
	case v.Kind() == slog.KindDuration:
		at[a.Key] = v.Duration().String()
	case v.Kind() == slog.KindTime:
		at[a.Key] = v.Time().Format(time.RFC3339Nano)
	default:
		at[a.Key] = plain(v.Any())
	}
}

// plain makes a value something that JSON can write.
func plain(v any) any {
	switch v := v.(type) {
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	}
	if _, err := json.Marshal(v); err != nil { // NaN, a channel, a cycle
		return fmt.Sprint(v)
	}
	return v
}

// levelName writes a level as go-plugin knows it, those between as "info+2".
func levelName(l slog.Level) string {
	if l == levelTrace {
		return "trace"
	}
	return strings.ToLower(l.String())
}

// parseLevel reads what levelName writes.
func parseLevel(s string) (slog.Level, bool) {
	switch s {
	case "trace":
		return levelTrace, true
	case "":
		return 0, false
	}
	var l slog.Level
	err := l.UnmarshalText([]byte(s))
	return l, err == nil
}

// logLevel is the level that the host asks for, info without one.
func logLevel(s string) slog.Level {
	l, _ := parseLevel(s)
	return l
}

// quietLogger is what go-plugin itself writes to: only its errors matter.
func quietLogger(w io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: w, JSONFormat: true})
}
