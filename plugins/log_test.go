package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
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
		`level=WARN msg="slow answer" attrs.shard=7 attrs.store.big=9223372036854775807 attrs.store.ok=true attrs.store.ratio=0.5 attrs.store.took=3s`,
		`level=ERROR msg=failed attrs.error="no route" attrs.level=mine attrs.msg=mine attrs.nan=NaN`,
		`level=DEBUG-4 msg=trace`,
		`level=INFO+2 msg=between`,
		`level=DEBUG msg="a plain line"`,
		`level=DEBUG msg="{\"@message\": 5, \"@level\": [\"x\"]}"`,
		`level=INFO msg="from Python" attrs.n=1`,
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
		a.add(fmt.Sprintf("line %d", i))
	}
	if got := a.text(); got != "line 15 | line 16 | line 17 | line 18 | line 19" {
		t.Errorf("tail %q", got)
	}
	a.add("panic: boom")
	for i := range 20 {
		a.add(fmt.Sprintf("frame %d", i))
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

// TestCutLine keeps the level of a record that is too long, and what fits of
// its text.
func TestCutLine(t *testing.T) {
	long := strings.Repeat("y", 2*maxLogLine)
	for _, c := range []struct{ line, begins, ends string }{
		{`{"@level":"error","@message":"` + long + `"}`, "yyy", "yyy …"},
		{`{"@level":"error","n":1,"@message":"a\n` + strings.Repeat(`\ud83d\ude00`, maxLogLine/6) + `"}`, "a\n😀", "😀 …"},
		{`{"@level":"error","@message":"short","rows":["` + long + `"]}`, "short", "short"},
	} {
		var got slog.Record
		readLines(strings.NewReader(c.line+"\n"), func(line []byte) { got = parseLog(line) })
		if got.Level != slog.LevelError || !strings.HasPrefix(got.Message, c.begins) || !strings.HasSuffix(got.Message, c.ends) {
			t.Errorf("%.60s: level %v, text %.10q to %q", c.line, got.Level, got.Message, got.Message[max(0, len(got.Message)-20):])
		}
	}
	var got slog.Record
	readLines(strings.NewReader(`{"rows":"`+long+`","@level":"error"}`), func(line []byte) { got = parseLog(line) })
	if got.Level != slog.LevelDebug || !strings.HasPrefix(got.Message, `{"rows":"yyy`) {
		t.Errorf("level %v of %.20q: what has no level before the cut is a plain line", got.Level, got.Message)
	}
}

// TestOwnAttributes: none of a plugin's attributes passes for the host's.
func TestOwnAttributes(t *testing.T) {
	var out bytes.Buffer
	log := hostLog{slog.New(slog.NewJSONHandler(&out, nil)).With("plugin", "everything")}
	log.record(parseLog([]byte(`{"@level":"error","@message":"m","plugin":"innocent","level":"INFO","msg":"nothing","time":"never"}`)))
	for _, key := range []string{"plugin", "level", "msg", "time"} {
		before, _, _ := strings.Cut(out.String(), `"attrs":{`)
		if n := strings.Count(before, `"`+key+`":`); n != 1 {
			t.Errorf("%s is there %d times: %s", key, n, out.String())
		}
	}
	if !strings.Contains(out.String(), `"plugin":"everything"`) || !strings.Contains(out.String(), `"attrs":{"level":"INFO","msg":"nothing","plugin":"innocent","time":"never"}`) {
		t.Errorf("the log has %s", out.String())
	}
}

// TestTailOfCrash begins where a program says what happened, and stays in one
// line.
func TestTailOfCrash(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{append([]string{"loading", "SIGSEGV: segmentation violation", "PC=0x4a1b2c m=0 sigcode=0", "", "goroutine 1 [running]:", "main.main()", "\t/main.go:3"}, slices.Repeat([]string{"rax    0x0"}, 20)...),
			"SIGSEGV: segmentation violation | PC=0x4a1b2c m=0 sigcode=0 | goroutine 1 [running]: | main.main() | /main.go:3"},
		{append([]string{"[signal SIGBUS: bus error]"}, slices.Repeat([]string{"r8 0x0"}, 9)...), "[signal SIGBUS: bus error] | r8 0x0 | r8 0x0 | r8 0x0 | r8 0x0"},
		{[]string{"SIGN of life", "two\nlines\u2028and\vmore"}, "SIGN of life | two | lines | and | more"},
		{[]string{strings.Repeat("x", 1000)}, strings.Repeat("x", tailLine) + " …"},
	} {
		var a tail
		for _, line := range c.lines {
			a.add(line)
		}
		if got := a.text(); got != c.want {
			t.Errorf("tail %q, want %q", got, c.want)
		}
	}
}
