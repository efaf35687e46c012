package policy

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestStaged(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		stage    Stage
		err      error
		want     string
		wantErr  error
		computed bool
	}{
		{StageOff, nil, "plain", nil, false},
		{"", nil, "plain", nil, false},
		{StageShadow, nil, "plain", nil, true},
		{StageShadow, broken, "plain", nil, true}, // without effect on results, failing included
		{StageActive, nil, "staged", nil, true},
		{StageActive, broken, "plain", broken, true},
	} {
		computed, logged := false, false
		got, err := Staged(c.stage, "plain", func() (string, error) {
			computed = true
			return "staged", c.err
		}, func(s string, err error) {
			logged = s == "staged" && errors.Is(err, c.err)
		})
		if got != c.want || !errors.Is(err, c.wantErr) || computed != c.computed || logged != c.computed {
			t.Errorf("%q, error %v: %q (%v), computed %v, logged %v", c.stage, c.err, got, err, computed, logged)
		}
	}
	if got, err := Staged(StageActive, 1, func() (int, error) { return 2, nil }, nil); got != 2 || err != nil {
		t.Errorf("without a log: %v (%v)", got, err)
	}
}

func mustLog(t testing.TB, path string, opts *ShadowLogOptions) *ShadowLog {
	t.Helper()
	l, err := OpenShadowLog(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func record(turn int) ShadowRecord {
	return ShadowRecord{Part: "activation", Version: ActivationPreV1, Turn: turn, Outcome: "emit", Applied: "emit"}
}

// logTurns reads the turns of all files of a log.
func logTurns(t testing.TB, l *ShadowLog) []int {
	t.Helper()
	turns := []int{}
	for _, path := range l.Files() {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		skipped, err := ReadShadowLog(f, func(r ShadowRecord) error {
			turns = append(turns, r.Turn)
			return nil
		})
		if err != nil || skipped > 0 {
			t.Fatalf("%s: %d lines skipped (%v)", path, skipped, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return turns
}

func TestShadowLogIsRotatedAndBounded(t *testing.T) {
	line := int64(len(asJSON(t, record(100))) + 1)
	for _, files := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("files=%d", files), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shadow.jsonl")
			opts := &ShadowLogOptions{MaxBytes: 3*line + 1, MaxFiles: files}
			l := mustLog(t, path, opts)
			for turn := range 100 {
				if err := l.Write(record(100 + turn)); err != nil {
					t.Fatal(err)
				}
				var total int64
				entries, err := os.ReadDir(filepath.Dir(path))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					info, err := e.Info()
					if err != nil {
						t.Fatal(err)
					}
					total += info.Size()
				}
				if total > opts.MaxBytes*int64(files) || len(entries) > files {
					t.Fatalf("%d bytes in %d files after turn %d", total, len(entries), turn)
				}
			}
			// 100 records are 33 full files and one that holds the last.
			turns := logTurns(t, l)
			if want := 3*(files-1) + 1; len(turns) != want {
				t.Fatalf("turns %v, want %d of them", turns, want)
			}
			for i, turn := range turns {
				if turn != 200-len(turns)+i {
					t.Fatalf("turns %v are not the last ones in order", turns)
				}
			}
		})
	}
}

func TestShadowLogGoesOnWhereItWasAndDropsATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shadow.jsonl")
	l := mustLog(t, path, nil)
	for turn := range 3 {
		if err := l.Write(record(turn)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range []string{"", `{"part":"act`, strings.Repeat("x", 10000)} {
		if err := os.WriteFile(path, append(whole[:len(whole):len(whole)], tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		l := mustLog(t, path, nil)
		if err := l.Write(record(3)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(logTurns(t, l)); got != "[0 1 2 3]" {
			t.Errorf("after a tail of %d bytes: turns %s", len(tail), got)
		}
	}
	if err := os.WriteFile(path, []byte("no line feed at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := logTurns(t, mustLog(t, path, nil)); len(got) != 0 {
		t.Errorf("turns %v", got)
	}
}

func TestShadowLogConcurrentWrites(t *testing.T) {
	l := mustLog(t, filepath.Join(t.TempDir(), "shadow.jsonl"), &ShadowLogOptions{MaxBytes: 2000, MaxFiles: 50})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for turn := range 25 {
				if err := l.Write(record(25*worker + turn)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[int]bool{}
	for _, turn := range logTurns(t, l) {
		seen[turn] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d of 200 records", len(seen))
	}
}

func TestShadowLogFaults(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "shadow.jsonl")
	l := mustLog(t, path, &ShadowLogOptions{MaxBytes: 200})
	for _, c := range []struct {
		name   string
		record ShadowRecord
		want   string
	}{
		{"no part", ShadowRecord{Turn: -1}, "turn_index is -1"},
		{"value NaN", ShadowRecord{Part: "p", Value: new(math.NaN())}, "value is NaN"},
		{"feature infinite", ShadowRecord{Part: "p", Features: Features{"g": {"x": math.Inf(1)}}}, "feature g.x is +Inf"},
		{"too long", ShadowRecord{Part: strings.Repeat("p", 300)}, "does not fit into a file of 200"},
	} {
		if err := l.Write(c.record); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if err := l.Write(record(0)); err != nil {
		t.Errorf("after refused records: %v", err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := l.Write(record(1)); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("error %v after Close, want ErrClosed", err)
	}
	for _, opts := range []*ShadowLogOptions{{MaxBytes: -1}, {MaxFiles: -1}} {
		if _, err := OpenShadowLog(path, opts); !errors.Is(err, mapmatched.ErrInvalidConfig) {
			t.Errorf("%+v: error %v, want ErrInvalidConfig", opts, err)
		}
	}
	if _, err := OpenShadowLog(dir, nil); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := OpenShadowLog(filepath.Join(dir, "no", "such"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
}

func TestShadowLogComesBackAfterAFailedRotation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	line := int64(len(asJSON(t, record(0))) + 1)
	l := mustLog(t, filepath.Join(dir, "shadow.jsonl"), &ShadowLogOptions{MaxBytes: line})
	if err := l.Write(record(0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(record(1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v without a directory", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(record(2)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(logTurns(t, l)); got != "[0 2]" {
		t.Errorf("turns %s, want [0 2]", got)
	}
}

func TestShadowReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shadow.jsonl")
	l := mustLog(t, path, nil)
	for _, r := range []ShadowRecord{
		{Part: "judgement", Version: "j2", Outcome: "relevant", Applied: "relevant"},
		{Part: "activation", Version: "a1", Outcome: "emit", Applied: "emit", Value: new(0.75)},
		{Part: "activation", Version: "a1", Outcome: "suppress", Applied: "emit", Value: new(0.25)},
		{Part: "activation", Version: "a1", Error: "no signal"},
		{Part: "activation", Version: "a1", Outcome: "emit", Applied: "emit", Value: new(0.5)},
		{Part: "judgement", Version: "j1", Outcome: "doubt\tful", Applied: "relevant"},
	} {
		if err := l.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := "not JSON\n\n" + `{"part":"p","turn_index":-1,"outcome":"","applied":"","version":""}` + "\n" + `{"part":"p","colour":1}` + "\n" + `{"part":"p"} {}` + "\n"
	report, err := NewShadowReport(strings.NewReader(damaged), strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"rows":[` +
		`{"part":"activation","version":"a1","turns":4,"errors":1,"differed":1,"outcomes":[{"outcome":"emit","turns":2},{"outcome":"suppress","turns":1}],"values":3,"mean":0.5,"minimum":0.25,"maximum":0.75},` +
		`{"part":"judgement","version":"j1","turns":1,"errors":0,"differed":1,"outcomes":[{"outcome":"doubt\tful","turns":1}],"values":0,"mean":0,"minimum":0,"maximum":0},` +
		`{"part":"judgement","version":"j2","turns":1,"errors":0,"differed":0,"outcomes":[{"outcome":"relevant","turns":1}],"values":0,"mean":0,"minimum":0,"maximum":0}` +
		`],"skipped":4}`
	if got := asJSON(t, report); got != want {
		t.Errorf("report\n%s\nwant\n%s", got, want)
	}
	var b strings.Builder
	if err := report.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const table = "" +
		"part        version  turns  errors  differed  mean  minimum  maximum  outcomes\n" +
		"activation  a1       4      1       1         0.5   0.25     0.75     emit 2, suppress 1\n" +
		"judgement   j1       1      0       1         -     -        -        \"doubt\\tful\" 1\n" +
		"judgement   j2       1      0       0         -     -        -        relevant 1\n" +
		"skipped lines: 4\n"
	if b.String() != table {
		t.Errorf("table\n%s\nwant\n%s", b.String(), table)
	}
	if err := report.WriteText(failingWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v of a writer that fails", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReadShadowLogErrors(t *testing.T) {
	if _, err := NewShadowReport(failingReader{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want that of the reader", err)
	}
	stop := errors.New("stop")
	calls := 0
	_, err := ReadShadowLog(strings.NewReader(strings.Repeat(asJSON(t, record(0))+"\n", 3)), func(ShadowRecord) error {
		calls++
		return stop
	})
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("error %v after %d calls, want that of the first", err, calls)
	}
}

func TestReadShadowLogSkipsALineThatIsTooLong(t *testing.T) {
	input := io.MultiReader(strings.NewReader(`{"part":"`), io.LimitReader(repeating('x'), maxShadowLine), strings.NewReader("\"}\n"+asJSON(t, record(5))))
	turns := []int{}
	skipped, err := ReadShadowLog(input, func(r ShadowRecord) error {
		turns = append(turns, r.Turn)
		return nil
	})
	if err != nil || skipped != 1 || fmt.Sprint(turns) != "[5]" {
		t.Errorf("turns %v, %d skipped (%v)", turns, skipped, err)
	}
}

// repeating is an endless row of one byte.
type repeating byte

func (r repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func FuzzReadShadowLog(f *testing.F) {
	f.Add([]byte(asJSON(f, record(1)) + "\n" + asJSON(f, ShadowRecord{Part: "p", Value: new(1e308), Features: Features{"g": {"x": 1}}})))
	f.Add([]byte("{}\n\x00\xff\n[1]\nnull\n"))
	f.Add([]byte(`{"part":"a","value":1e400}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		records := 0
		_, err := ReadShadowLog(strings.NewReader(string(data)), func(r ShadowRecord) error {
			records++
			return r.Validate()
		})
		if err != nil {
			t.Fatal(err)
		}
		report, err := NewShadowReport(strings.NewReader(string(data)), strings.NewReader(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		turns := 0
		for _, row := range report.Rows {
			turns += row.Turns
		}
		if turns != 2*records {
			t.Fatalf("%d turns in the report of twice %d records", turns, records)
		}
		asJSON(t, report) // every number is finite
		if err := report.WriteText(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}
