package mapmatched

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// smallConfig and smallGraph are what smallSession is made with.
func smallConfig() *Config {
	return &Config{ScoreNormalization: NormalizeNone, FixedLag: new(1), PolicyDigest: "sha256:aa", Corpus: "corpus-1"}
}

func smallGraph(t testing.TB) *Graph { return chain(t, 4, "a", "b", "c", "d") }

// smallSession has a turn, a gap and two turns more, the first two committed.
func smallSession(t testing.TB) *Session {
	t.Helper()
	s := mustSession(t, nil, smallGraph(t), smallConfig())
	observe(t, s, "a", 2, "c", 1)
	observe(t, s)
	observe(t, s, "b", 1, "d", 0.5)
	observe(t, s, "c", 1)
	return s
}

// releasedSession has released its first turns.
func releasedSession(t testing.TB) *Session {
	t.Helper()
	s := mustSession(t, nil, smallGraph(t), &Config{ScoreNormalization: NormalizeNone, RetainTurns: 2})
	for range 3 {
		observe(t, s, "a", 2, "c", 1)
		observe(t, s)
		observe(t, s, "b", 1, "d", 0.5)
	}
	if s.base == 0 {
		t.Fatal("nothing was released")
	}
	return s
}

func packedText(values ...float64) string {
	raw, err := packed(values).MarshalText()
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestSavedSessionForm(t *testing.T) {
	want := `{"schema":"mapmatched.session/1","score_model":"decode_v1","policy_digest":"sha256:aa","corpus":"corpus-1","maximum_distance":4,` +
		`"options":{"candidate_limit":20,"context_radius":1,"emission_weight":1,"fixed_lag":1,"on_empty":"gap","score_normalization":"none","temperature":1,"transition_weight":1},` +
		`"history":["","","",""],"revised_prior_indices":`
	if got := savedBytes(t, smallSession(t)); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "]}\n") {
		t.Errorf("saved as\n%s\nwant it to begin with\n%s", got, want)
	}
}

func TestPacked(t *testing.T) {
	values := packed{0, math.Copysign(0, -1), 0.1, -1e308, 5e-324, math.Inf(-1), math.Pi}
	text, err := values.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var back packed
	if err := back.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	if len(back) != len(values) {
		t.Fatalf("%d numbers, want %d", len(back), len(values))
	}
	for i := range values {
		if math.Float64bits(back[i]) != math.Float64bits(values[i]) {
			t.Errorf("%v reads back as %v", values[i], back[i])
		}
	}
	if got, want := packedText(1), base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, math.Float64bits(1))); got != want {
		t.Errorf("1 is written as %s, want %s", got, want)
	}
	for _, damaged := range []string{"?", "AAAA", "AAAAAAAA8D", "AAAAAAAA8D8=x"} {
		if err := back.UnmarshalText([]byte(damaged)); err == nil {
			t.Errorf("%q was read as %v", damaged, back)
		}
	}
}

func restoreSmall(t testing.TB, data string, cfg *Config) (*Session, error) {
	t.Helper()
	return RestoreSession(strings.NewReader(data), nil, smallGraph(t), cfg)
}

func TestRestoreWithoutConfig(t *testing.T) {
	for _, s := range []*Session{smallSession(t), releasedSession(t), mustSession(t, nil, smallGraph(t), nil)} {
		data := savedBytes(t, s)
		back, err := restoreSmall(t, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again := savedBytes(t, back); again != data {
			t.Errorf("saved again as\n%s\nnot\n%s", again, data)
		}
		if x, y := show(t, nil, back), show(t, nil, s); x != y {
			t.Errorf("restored trace\n%s\nwant\n%s", x, y)
		}
		if x, y := show(t, observe(t, back, "d", 1, "c", 3), back), show(t, observe(t, s, "d", 1, "c", 3), s); x != y {
			t.Errorf("next turn of the restored session\n%s\nwant\n%s", x, y)
		}
	}
}

func TestRestoreWithoutGraph(t *testing.T) {
	s := mustSession(t, nil, nil, &Config{TransitionWeight: new(0.0)})
	observe(t, s, "a", 2, "c", 1)
	observe(t, s, "b", 2, "c", 3)
	data := savedBytes(t, s)
	back, err := RestoreSession(strings.NewReader(data), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again := savedBytes(t, back); again != data {
		t.Errorf("saved again as\n%s\nnot\n%s", again, data)
	}
}

func TestRestoreRefusesOtherSettings(t *testing.T) {
	data := savedBytes(t, smallSession(t))
	graph := func(maximum float64) *Graph { return chain(t, maximum, "a", "b", "c", "d") }
	for _, c := range []struct {
		name   string
		graph  CorpusGraph
		change func(*Config)
		is     error
		want   string
	}{
		{"emission weight", nil, func(c *Config) { c.EmissionWeight = new(2.0) }, ErrInvalidConfig, "emission_weight was 1, not 2: invalid configuration: a conversation keeps its settings"},
		{"transition weight", nil, func(c *Config) { c.TransitionWeight = new(0.0) }, ErrInvalidConfig, "transition_weight was 1, not 0"},
		{"normalization", nil, func(c *Config) { c.ScoreNormalization = "" }, ErrInvalidConfig, "score_normalization was none, not zscore"},
		{"full mode", nil, func(c *Config) { c.FixedLag = nil }, ErrInvalidConfig, "fixed_lag was 1, not unset"},
		{"limit", nil, func(c *Config) { c.CandidateLimit = 5 }, ErrInvalidConfig, "candidate_limit was 20, not 5"},
		{"radius", nil, func(c *Config) { c.ContextRadius = new(0.0) }, ErrInvalidConfig, "context_radius was 1, not 0"},
		{"context", nil, func(c *Config) { c.ContextLimit = new(3) }, ErrInvalidConfig, "context_limit was unset, not 3"},
		{"beam", nil, func(c *Config) { c.Beam = 3 }, ErrInvalidConfig, "beam was unset, not 3"},
		{"break", nil, func(c *Config) { c.BreakDistance = 3 }, ErrInvalidConfig, "break_distance was unset, not 3"},
		{"empty turns", nil, func(c *Config) { c.OnEmpty = OnEmptyError }, ErrInvalidConfig, "on_empty was gap, not error"},
		{"temperature", nil, func(c *Config) { c.Temperature = 2 }, ErrInvalidConfig, "temperature was 1, not 2"},
		{"bad", nil, func(c *Config) { c.Beam = -3 }, ErrInvalidConfig, "beam is -3"},
		{"policy", nil, func(c *Config) { c.PolicyDigest = "sha256:bb" }, nil, `made under policy "sha256:aa", not "sha256:bb"`},
		{"no policy", nil, func(c *Config) { c.PolicyDigest = "" }, nil, `made under policy "sha256:aa", not ""`},
		{"corpus", nil, func(c *Config) { c.Corpus = "corpus-2" }, ErrStaleIndex, `stale index: made on corpus "corpus-1", not "corpus-2"`},
		{"graph", graph(5), func(*Config) {}, ErrStaleIndex, "stale index: made on a graph of maximum distance 4, not 5"},
	} {
		cfg := smallConfig()
		c.change(cfg)
		if c.graph == nil {
			c.graph = graph(4)
		}
		s, err := RestoreSession(strings.NewReader(data), nil, c.graph, cfg)
		if s != nil || err == nil || !strings.HasPrefix(err.Error(), "restore session: ") || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	cfg := smallConfig()
	cfg.RetainTurns = -1 // says how much is kept, not what comes out
	if _, err := restoreSmall(t, data, cfg); err != nil {
		t.Error(err)
	}
	cfg.EmissionWeight, cfg.Beam = new(3.0), 1
	if _, err := restoreSmall(t, data, cfg); err == nil || !strings.Contains(err.Error(), "beam was") || !strings.Contains(err.Error(), "emission_weight was") {
		t.Errorf("two differences: %v, want both", err)
	}
}

func TestRestoreRefusesTruncation(t *testing.T) {
	for _, s := range []*Session{smallSession(t), releasedSession(t)} {
		data := strings.TrimSuffix(savedBytes(t, s), "\n")
		for n := range data {
			if _, err := restoreSmall(t, data[:n], nil); err == nil || !strings.HasPrefix(err.Error(), "restore session: ") {
				t.Fatalf("the first %d of %d bytes: %v", n, len(data), err)
			}
		}
		if _, err := restoreSmall(t, data, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRestoreKeepsReadError(t *testing.T) {
	r := io.MultiReader(strings.NewReader(`{"schema":`), iotest.ErrReader(errBroken))
	if _, err := RestoreSession(r, nil, smallGraph(t), nil); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
}

// errorWriter has no room.
type errorWriter struct{}

func (errorWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestSaveKeepsWriteError(t *testing.T) {
	if err := smallSession(t).Save(errorWriter{}); !errors.Is(err, errBroken) || err.Error() != "save session: broken" {
		t.Errorf("got %v", err)
	}
}

// damage sets a value deep inside JSON: keys and positions lead to it. A
// removed value is one that is damaged to be absent.
type removed struct{}

func damage(t *testing.T, data string, to any, path ...any) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	at := tree
	for i, step := range path {
		last := i == len(path)-1
		switch step := step.(type) {
		case string:
			object := at.(map[string]any)
			switch {
			case last && to == removed{}:
				if _, present := object[step]; !present {
					t.Fatalf("no %v to remove", path)
				}
				delete(object, step)
			case last:
				object[step] = to
			}
			at = object[step]
		case int:
			list := at.([]any)
			if last {
				list[step] = to
			}
			at = list[step]
		}
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestRestoreRefusesDamage(t *testing.T) {
	small, released := savedBytes(t, smallSession(t)), savedBytes(t, releasedSession(t))
	open := mustSession(t, nil, smallGraph(t), nil)
	observe(t, open, "a", 2, "c", 1)
	observe(t, open)
	observe(t, open, "b", 1, "d", 0.5)
	observe(t, open, "c", 1)
	full := savedBytes(t, open)
	backend := mustSession(t, nil, smallGraph(t), &Config{Decoder: Viterbi{}})
	observe(t, backend, "a", 2, "c", 1)
	observe(t, backend, "b", 1, "d", 0.5)
	other := savedBytes(t, backend)
	list := func(v ...any) []any { return v }
	for _, c := range []struct {
		name, data string
		want       string
		is         error
	}{
		{"nothing", "", "not a saved session", nil},
		{"not JSON", "session", "not a saved session", nil},
		{"a list", "[1]", "not a saved session", nil},
		{"no schema", "{}", `schema "" with score model ""; this version reads "mapmatched.session/1" with "decode_v1"`, nil},
		{"other schema", damage(t, small, "mapmatched.session/2", "schema"), `schema "mapmatched.session/2"`, nil},
		{"other score model", damage(t, small, "decode_v2", "score_model"), `score model "decode_v2"`, nil},
		{"something after", small + "{}", "something follows", nil},
		{"no options", damage(t, small, removed{}, "options"), "no options", nil},
		{"bad option", damage(t, small, -1, "options", "fixed_lag"), "fixed_lag is -1", ErrInvalidConfig},
		{"zero option", damage(t, small, 0, "options", "candidate_limit"), "candidate_limit is 0", ErrInvalidConfig},
		{"history cut", damage(t, small, list("", "", ""), "history"), "4 turns but 3 queries", nil},
		{"no history", damage(t, small, removed{}, "history"), "4 turns but 0 queries", nil},
		{"no turns", damage(t, small, removed{}, "turns"), "0 turns but 4 queries", nil},
		{"revised beyond", damage(t, small, list(4), "revised_prior_indices"), "revised turns [4] of 4", nil},
		{"revised the last", damage(t, small, list(3), "revised_prior_indices"), "revised turns [3] of 4", nil},
		{"revised negative", damage(t, small, list(-1), "revised_prior_indices"), "revised turns [-1] of 4", nil},
		{"revised twice", damage(t, small, list(2, 2), "revised_prior_indices"), "revised turns [2 2] of 4", nil},
		{"revised a committed turn", damage(t, small, list(0), "revised_prior_indices"), "revised turns [0] of 4", nil},
		{"maximum distance", damage(t, small, 7, "maximum_distance"), "made on a graph of maximum distance 7, not 4", ErrStaleIndex},
		{"gap with candidates", damage(t, small, "why", "turns", 0, "gap"), "turn 0: a gap with 2 candidates", nil},
		{"turn without either", damage(t, small, removed{}, "turns", 1, "gap"), "turn 1: 0 candidates", nil},
		{"raw cut", damage(t, small, list(1), "turns", 0, "raw"), "turn 0: 2 candidates (limit 20), 1 raw scores, 0 score parts", nil},
		{"raw too large", damage(t, small, json.Number("1e999"), "turns", 0, "raw", 0), "not a saved session", nil},
		{"parts cut", damage(t, small, list(map[string]any{"x": 1}), "turns", 0, "score_parts"), "turn 0: 2 candidates (limit 20), 2 raw scores, 1 score parts", nil},
		{"over the limit", damage(t, small, 1, "options", "candidate_limit"), "turn 0: 2 candidates (limit 1)", nil},
		{"chunk twice", damage(t, small, "c", "turns", 0, "chunk_ids", 0), `turn 0: chunk "c": duplicate candidate`, ErrDuplicateCandidate},
		{"chunk without ID", damage(t, small, "", "turns", 0, "chunk_ids", 0), `turn 0: `, ErrEmptyChunkID},
		{"predecessors of the first", damage(t, small, list(0), "turns", 0, "from"), "turn 0: ", nil},
		{"no predecessors", damage(t, small, removed{}, "turns", 2, "from"), "turn 2: ", nil},
		{"predecessor beyond", damage(t, small, list(2), "turns", 2, "from"), "turn 2: predecessors [2]", nil},
		{"predecessor negative", damage(t, small, list(-1), "turns", 2, "from"), "turn 2: predecessors [-1]", nil},
		{"predecessors out of order", damage(t, full, list(1, 0), "turns", 3, "from"), "turn 3: predecessors [1 0]", nil},
		{"predecessor cut off by a commitment", damage(t, damage(t, small, list(0, 1), "turns", 2, "from"), packedText(1, 2, 3, 4), "turns", 2, "distance"), "turn 2: ", nil},
		{"distances cut", damage(t, full, packedText(1), "turns", 3, "distance"), "turn 3: 1 distances for 2×1 moves", nil},
		{"no distances", damage(t, full, removed{}, "turns", 3, "distance"), "turn 3: 0 distances for 2×1 moves", nil},
		{"distance negative", damage(t, full, packedText(1, -1), "turns", 3, "distance"), "turn 3: distance -1", ErrDistance},
		{"distance beyond", damage(t, full, packedText(1, 4.5), "turns", 3, "distance"), "turn 3: distance 4.5", ErrDistance},
		{"distance NaN", damage(t, full, packedText(math.NaN(), 1), "turns", 3, "distance"), "turn 3: distance NaN", nil},
		{"distance not base64", damage(t, small, "?", "turns", 3, "distance"), "not a saved session", nil},
		{"distance of half a number", damage(t, small, "AAAA", "turns", 3, "distance"), "not a saved session", nil},
		{"commitment lost", damage(t, small, removed{}, "turns", 0, "settled"), "turn 0: bad posterior of a committed turn", nil},
		{"commitment too early", damage(t, small, packedText(0), "turns", 3, "settled"), "turn 3: bad posterior of a committed turn", nil},
		{"commitment cut", damage(t, small, packedText(0), "turns", 0, "settled"), "turn 0: bad posterior of a committed turn", nil},
		{"commitment NaN", damage(t, small, packedText(0, math.NaN()), "turns", 0, "settled"), "turn 0: bad posterior of a committed turn", nil},
		{"commitment no probability", damage(t, small, packedText(0, 1e300), "turns", 0, "settled"), "turn 0: bad posterior of a committed turn", nil},
		{"commitment in full mode", damage(t, small, removed{}, "options", "fixed_lag"), "turn 0: bad posterior of a committed turn", nil},
		{"border turn missing", damage(t, released, list(), "turns"), "turns but 9 queries", nil},
		{"border turn a gap", damage(t, released, map[string]any{"gap": "why"}, "turns", 0), "the first turn after the released ones is missing", nil},
		{"released turn out of order", damage(t, released, 5, "released", 0, "turn_index"), "released turn 0: index 5", nil},
		{"released turn without chunk", damage(t, released, removed{}, "released", 0, "chunk_id"), `released turn 0: index 0, chunk "", gap ""`, nil},
		{"border without state", damage(t, released, removed{}, "turns", 0, "alpha"), "bad state at the border", nil},
		{"border sum cut", damage(t, released, packedText(1), "turns", 0, "sum"), "bad state at the border", nil},
		{"border message NaN", damage(t, released, packedText(0, math.NaN()), "turns", 0, "message"), "bad state at the border", nil},
		{"border message no probability", damage(t, released, packedText(0, math.Inf(1)), "turns", 0, "message"), "bad state at the border", nil},
		{"border back cut", damage(t, released, list(0), "turns", 0, "back"), "bad state at the border", nil},
		{"border back beyond", damage(t, released, list(0, 9), "turns", 0, "back"), "predecessor 9 is none of", nil},
		{"border alpha infinite", damage(t, released, packedText(1, math.Inf(1)), "turns", 0, "alpha"), "accumulated score +Inf", ErrNonFinite},
		{"border sum infinite", damage(t, released, packedText(1, math.NaN()), "turns", 0, "sum"), "accumulated score NaN", ErrNonFinite},
		{"backend scores lost", damage(t, other, removed{}, "turns", 1, "alpha"), "turn 1: no path scores", nil},
	} {
		var cfg *Config
		if strings.HasPrefix(c.name, "backend") {
			cfg = &Config{Decoder: Viterbi{}}
		}
		s, err := restoreSmall(t, c.data, cfg)
		if err == nil {
			t.Errorf("%s: restored as\n%s", c.name, savedBytes(t, s))
			continue
		}
		if s != nil || !strings.HasPrefix(err.Error(), "restore session: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %q, want %q", c.name, err, c.want)
		}
	}
}

// A file is not worth more memory than its size suggests.
func TestRestoreAllocatesWhatTheFileHolds(t *testing.T) {
	const n = 5000
	ids := make([]string, n)
	from := make([]int, n)
	for i := range n {
		ids[i], from[i] = fmt.Sprint(i), i
	}
	saved := savedSession{
		Schema: SessionSchema, ScoreModel: ScoreModel, MaximumDistance: 4,
		Options: &Options{CandidateLimit: new(n)},
		History: []string{"", ""},
		Columns: []savedColumn{{ChunkIDs: ids, Raw: make([]float64, n)}, {ChunkIDs: ids, Raw: make([]float64, n), From: from}},
	}
	data, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := restoreSmall(t, string(data), nil); err == nil || !strings.Contains(err.Error(), "turn 1: 0 distances for 5000×5000 moves") {
		t.Errorf("%v", err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 100*uint64(len(data)) {
		t.Errorf("a file of %d bytes took %d bytes", len(data), used)
	}
}

func TestSaveRefusesWhatItCannotKeep(t *testing.T) {
	// JSON holds text, so an ID that is not UTF-8 would come back as another.
	s := mustSession(t, nil, smallGraph(t), nil)
	if _, err := s.Observe(t.Context(), "caf\xe9", turnOf("caf\xe9", 1, "b", 2)); err != nil {
		return // refused at once, which is as good
	}
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		return
	}
	back, err := restoreSmall(t, b.String(), nil)
	if err != nil {
		t.Fatalf("saved without an error, and then: %v", err)
	}
	if got, want := back.columns[0].ChunkIDs, s.columns[0].ChunkIDs; !slices.Equal(got, want) || back.history[0] != s.history[0] {
		t.Errorf("chunks %q come back as %q, query %q as %q", want, got, s.history[0], back.history[0])
	}
}

// Whatever can be restored can take another turn, be traced, and be saved to
// be restored again.
func FuzzRestoreSession(f *testing.F) {
	small := smallSession(f)
	f.Add([]byte(savedBytes(f, small)))
	f.Add([]byte(savedBytes(f, releasedSession(f))))
	f.Add([]byte(savedBytes(f, mustSession(f, nil, smallGraph(f), nil))))
	for _, cfg := range []Config{{Beam: 1, BreakDistance: 4}, {FixedLag: new(0), RetainTurns: 1, OnEmpty: OnEmptyError}, {TransitionWeight: new(0.0), ContextLimit: new(2)}} {
		s := mustSession(f, walk(5), walkGraph(f), &cfg)
		for range 6 {
			if _, err := s.Ask(f.Context(), Query{Text: "q"}); err != nil && !errors.Is(err, ErrNoCandidates) {
				f.Fatal(err)
			}
		}
		f.Add([]byte(savedBytes(f, s)))
	}
	graph := smallGraph(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := RestoreSession(bytes.NewReader(data), nil, graph, nil)
		if err != nil {
			if s != nil || !strings.HasPrefix(err.Error(), "restore session: ") {
				t.Errorf("session %v, error %q", s, err)
			}
			return
		}
		turns := s.Turns()
		first := savedBytes(t, s)
		again, err := RestoreSession(strings.NewReader(first), nil, graph, nil)
		if err != nil {
			t.Fatalf("%v in what was saved: %s", err, first)
		}
		if second := savedBytes(t, again); second != first {
			t.Errorf("saved as\n%s\nand then as\n%s", first, second)
		}
		if _, err := json.Marshal(s.DetailedTrace()); err != nil {
			t.Errorf("trace: %v", err)
		}
		for _, turn := range [][]Candidate{turnOf("b", 1), turnOf("a", 0.5), nil} {
			got, err := s.Observe(t.Context(), "next", turn)
			if errors.Is(err, ErrNonFinite) || errors.Is(err, ErrNoCandidates) {
				continue // restored scores may be near the limit
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Turn != turns {
				t.Errorf("turn %d after %d turns", got.Turn, turns)
			}
			turns++
			savedBytes(t, s)
		}
	})
}
