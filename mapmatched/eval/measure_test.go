package eval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counted is a baseline that counts how often it is asked.
func counted(calls *atomic.Int64, before func(n int64)) Method {
	return Method{Name: LLM, Baseline: LLM, Model: "counter", Rewrite: func(_ context.Context, _ []string, question string) (string, error) {
		if n := calls.Add(1); before != nil {
			before(n)
		}
		return question, nil
	}}
}

func TestMeasureIsIndependentOfWorkers(t *testing.T) {
	w := worldOf(t, synthetic(t, &SyntheticOptions{Documents: 10, Conversations: 20}), nil)
	methods := []Method{baseline(t, Pointwise), baseline(t, MMR), PolicyMethod(plain(t))}
	var first []Results
	for _, workers := range []int{1, 2, 7} {
		fresh := worldOf(t, w.data, nil)
		got, err := Measure(t.Context(), fresh, methods, &MeasureOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		for m := range got {
			if !reflect.DeepEqual(got[m].Conversations, first[m].Conversations) {
				t.Errorf("%d workers find other results of %s", workers, methods[m].Name)
			}
		}
	}
}

func TestMeasureProgressAndErrors(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 12, Turns: 3})
	w := worldOf(t, d, nil)
	var steps []int
	_, err := Measure(t.Context(), w, []Method{baseline(t, Pointwise)}, &MeasureOptions{Workers: 3, Progress: func(done, total int) {
		if total != 12 {
			t.Errorf("total %d", total)
		}
		steps = append(steps, done)
	}})
	if err != nil || fmt.Sprint(steps) != "[1 2 3 4 5 6 7 8 9 10 11 12]" {
		t.Errorf("progress %v, %v", steps, err)
	}
	fault := errors.New("no model today")
	bad := Method{Name: LLM, Baseline: LLM, Model: "m", Rewrite: func(_ context.Context, history []string, _ string) (string, error) {
		if len(history) == 1 {
			return "", fault
		}
		return "x", nil
	}}
	if _, err := Measure(t.Context(), w, []Method{bad}, nil); !errors.Is(err, fault) || !strings.Contains(err.Error(), "method llm, conversation") || !strings.Contains(err.Error(), "turn 2") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopping := Method{Name: LLM, Baseline: LLM, Model: "m", Rewrite: func(context.Context, []string, string) (string, error) {
		cancel()
		return "x", nil
	}}
	if _, err := Measure(ctx, w, []Method{stopping}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Measure(t.Context(), w, nil, &MeasureOptions{Depth: 5, Workers: -1}); err == nil || !strings.Contains(err.Error(), "depth") || !strings.Contains(err.Error(), "workers") {
		t.Errorf("faults of options: %v", err)
	}
}

func TestCache(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 6, Turns: 3})
	dir := filepath.Join(t.TempDir(), "cache")
	var calls atomic.Int64
	run := func(d *Data, opts MeasureOptions) []Results {
		t.Helper()
		calls.Store(0)
		opts.Cache = dir
		got, err := Measure(t.Context(), worldOf(t, d, nil), []Method{counted(&calls, nil)}, &opts)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := run(d, MeasureOptions{})
	if calls.Load() != 18 {
		t.Fatalf("%d calls, wanted 18", calls.Load())
	}
	if again := run(d, MeasureOptions{}); calls.Load() != 0 || !reflect.DeepEqual(again[0].Conversations, first[0].Conversations) {
		t.Errorf("a second run asks %d times, or finds other results", calls.Load())
	}
	// What results depend on is part of the key.
	for name, change := range map[string]func() []Results{
		"another depth":   func() []Results { return run(d, MeasureOptions{Depth: 50}) },
		"another program": func() []Results { return run(d, MeasureOptions{CacheSalt: "x"}) },
		"another corpus": func() []Results {
			other := synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 6, Turns: 3})
			other.Corpus.Chunks[0].Text += " more"
			return run(other, MeasureOptions{})
		},
	} {
		if change(); calls.Load() != 18 {
			t.Errorf("%s: %d calls, wanted 18", name, calls.Load())
		}
	}
	changed := synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 6, Turns: 3})
	changed.Conversations[2].Turns[1].Query += " please"
	if run(changed, MeasureOptions{}); calls.Load() != 3 {
		t.Errorf("one conversation changed, %d calls, wanted 3", calls.Load())
	}
	// A file that is cut or changed is measured again.
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 0:
			raw = raw[:len(raw)/2]
		case 1:
			raw = nil
		default:
			raw[len(raw)-3] ^= 1
		}
		if err := os.WriteFile(path, raw, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if again := run(d, MeasureOptions{}); calls.Load() != 18 || !reflect.DeepEqual(again[0].Conversations, first[0].Conversations) {
		t.Errorf("damaged files: %d calls, wanted 18", calls.Load())
	}
}

func FuzzCached(f *testing.F) {
	f.Add(encodeCached([]TurnResult{{1, 0.5, Scores{1}}}))
	f.Add([]byte(cacheSchema + "\n\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if turns, ok := decodeCached(raw); ok {
			if again, ok := decodeCached(encodeCached(turns)); !ok || !reflect.DeepEqual(again, turns) {
				t.Fatalf("%+v reads back as %+v", turns, again)
			}
		}
		decodeVectors(raw, 3)
	})
}

// killDir, in the environment, makes TestChildThatIsKilled the child of
// TestResumeAfterKill.
const killDir = "MMPLUG_TEST_EVAL_KILL_DIR"

func TestChildThatIsKilled(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("SKIP: it is the child of TestResumeAfterKill; run that")
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	method := counted(&calls, func(n int64) {
		if n == 37 {
			_ = self.Kill() // SIGKILL: nothing is cleaned up
			time.Sleep(time.Minute)
		}
	})
	_, err = Measure(t.Context(), worldOf(t, killData(t), nil), []Method{method}, &MeasureOptions{Cache: dir, Workers: 2})
	t.Fatalf("it ended: %v", err)
}

func killData(t *testing.T) *Data {
	return synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 15, Turns: 4})
}

func TestResumeAfterKill(t *testing.T) {
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildThatIsKilled$")
	child.Env = append(os.Environ(), killDir+"="+dir)
	if out, err := child.CombinedOutput(); err == nil || child.ProcessState.Exited() {
		t.Fatalf("the child was not killed: %v, %s", err, out)
	}
	var calls atomic.Int64
	run := func(cache string) *Report {
		t.Helper()
		calls.Store(0)
		opts := &RunOptions{Samples: 50}
		opts.Cache = cache
		r, err := Run(t.Context(), worldOf(t, killData(t), nil), []Method{counted(&calls, nil)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	resumed := run(dir)
	if n := calls.Load(); n > 60-28 || n == 0 { // of 60; all but two conversations of the 37 calls were done
		t.Errorf("after the kill %d of 60 turns were measured again", n)
	}
	if whole := run(""); !reflect.DeepEqual(whole, resumed) {
		t.Error("the resumed run reports something else")
	}
	if run(dir); calls.Load() != 0 {
		t.Errorf("a complete cache is asked %d times more", calls.Load())
	}
}

func BenchmarkMeasure(b *testing.B) {
	d := synthetic(b, &SyntheticOptions{Documents: 100, Conversations: 100})
	methods := []Method{PolicyMethod(plain(b))}
	for _, name := range []string{Pointwise, History, DecayedHistory, MMR} {
		methods = append(methods, baseline(b, name))
	}
	for _, m := range methods {
		b.Run("method="+m.Name, func(b *testing.B) {
			w := worldOf(b, d, nil)
			for b.Loop() {
				if _, err := Measure(b.Context(), w, []Method{m}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
