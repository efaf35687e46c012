package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

// TestLogHandler runs the suite of log/slog for handlers.
func TestLogHandler(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return newLogHandler(&out, slog.LevelInfo)
	}, func(t *testing.T) map[string]any {
		var m map[string]any
		if err := json.Unmarshal(out.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		for hostKey, key := range map[string]string{logLevelKey: slog.LevelKey, logTextKey: slog.MessageKey, logTimeKey: slog.TimeKey} {
			if v, ok := m[hostKey]; ok {
				m[key] = v
				delete(m, hostKey)
			}
		}
		return m
	})
}

// TestLogTravels writes records as a plugin does and reads them as a host.
func TestLogTravels(t *testing.T) {
	var lines, out bytes.Buffer
	plugin := slog.New(newLogHandler(&lines, levelTrace))
	ctx := context.Background()
	plugin.With("shard", 7).WithGroup("store").Warn("slow answer", "took", 3*time.Second, "ok", true, "ratio", 0.5, "big", int64(math.MaxInt64))
	plugin.Error("failed", "error", errors.New("no route"), "nan", math.NaN(), "msg", "mine", "level", "mine")
	plugin.Log(ctx, levelTrace, "trace")
	plugin.Log(ctx, slog.LevelInfo+2, "between")
	fmt.Fprintln(&lines, "a plain line")
	fmt.Fprintln(&lines, `{"@message": 5, "@level": ["x"]}`)
	fmt.Fprintln(&lines, `{"@message": "from Python", "@level": "info", "n": 1, "@timestamp": 5}`)
	host := hostLog{slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: levelTrace, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))}
	readLines(&lines, func(line []byte) { host.record(parseLog(line)) })
	want := []string{
		`level=WARN msg="slow answer" shard=7 store.big=9223372036854775807 store.ok=true store.ratio=0.5 store.took=3s`,
		`level=ERROR msg=failed error="no route" level=mine msg=mine nan=NaN`,
		`level=DEBUG-4 msg=trace`,
		`level=INFO+2 msg=between`,
		`level=DEBUG msg="a plain line"`,
		`level=DEBUG msg="{\"@message\": 5, \"@level\": [\"x\"]}"`,
		`level=INFO msg="from Python" n=1`,
	}
	if got := strings.TrimSpace(out.String()); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxLogLine)
	var got []int
	readLines(strings.NewReader("ab\n"+long+"\n\ncd"), func(line []byte) { got = append(got, len(line)) })
	if want := []int{2, maxLogLine, 0, 2}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lengths %v, want %v", got, want)
	}
}

func TestTail(t *testing.T) {
	var a tail
	for i := range 20 {
		a.add(fmt.Appendf(nil, "line %d", i))
	}
	if got := a.text(); got != "line 15 | line 16 | line 17 | line 18 | line 19" {
		t.Errorf("tail %q", got)
	}
	a.add([]byte("panic: boom"))
	for i := range 20 {
		a.add(fmt.Appendf(nil, "frame %d", i))
	}
	if got := a.text(); got != "panic: boom | frame 0 | frame 1 | frame 2 | frame 3" {
		t.Errorf("tail %q", got)
	}
}

func TestHostLevel(t *testing.T) {
	for _, level := range []slog.Level{levelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		l := hostLog{slog.New(slog.NewTextHandler(new(bytes.Buffer), &slog.HandlerOptions{Level: level}))}
		if got, ok := parseLevel(levelName(l.level())); got != level || !ok {
			t.Errorf("level %v travels as %q and arrives as %v", level, levelName(l.level()), got)
		}
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add([]byte(`{"@level":"warn","@message":"m","@timestamp":"2026-01-02T15:04:05.000000Z","a":{"b":[1,2.5,null]}}`))
	f.Add([]byte(`{"@message": 5}`))
	f.Add([]byte("panic: x"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r := parseLog(line)
		if err := newLogHandler(new(bytes.Buffer), levelTrace).Handle(t.Context(), r); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	})
}
