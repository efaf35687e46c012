package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/plugintest"
	"github.com/mapmatched/mmplug/plugins/rerank"
)

var packed struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	if hostMain() {
		return
	}
	code := m.Run()
	if packed.dir != "" {
		_ = os.RemoveAll(packed.dir) // what is left is in the directory for temporary files
	}
	os.Exit(code)
}

// plugin packs the plugins, once, and returns the path of one. It skips the
// test where Python has not what they need.
func plugin(t *testing.T, name string) string {
	t.Helper()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import grpc, google.protobuf, cryptography").CombinedOutput(); err != nil {
		if os.Getenv("MMPLUG_TEST_PYTHON") != "" {
			t.Fatalf("python3: %v: %s", err, out)
		}
		t.Skip("SKIP: /usr/bin/python3 lacks packages: apt-get install python3-grpcio python3-protobuf python3-cryptography")
	}
	packed.once.Do(func() {
		if packed.dir, packed.err = os.MkdirTemp("", "mmplug-python-"); packed.err != nil {
			return
		}
		if out, err := exec.Command("./build", packed.dir).CombinedOutput(); err != nil {
			packed.err = fmt.Errorf("build: %w: %s", err, out)
		}
	})
	if packed.err != nil {
		t.Fatal(packed.err)
	}
	return filepath.Join(packed.dir, name)
}

func open(t *testing.T, name string, opts plugins.Options) *plugins.Host {
	t.Helper()
	opts.AllowUnlocked = true
	host, err := plugins.Open(t.Context(), plugin(t, name), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return host
}

const (
	overlapPlugin = "mmplug-reranker-overlap-python"
	viterbiPlugin = "mmplug-decoder-viterbi-python"
)

func TestConformance(t *testing.T) {
	for _, name := range []string{overlapPlugin, viterbiPlugin} {
		t.Run(name, func(t *testing.T) { plugintest.Test(t, plugintest.Binary(plugin(t, name), nil), nil) })
	}
}

// The Python overlap scores as the one in Go does, to the bit.
func TestOverlapIsThatOfGo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	words := []string{"Token", "renew", "the", "Äpfel", "naïve", "v1.2", "max_size", "故乡", "我的故", "カタカナ", "한국", "don't", "½", "x²", "—", "🚀", "e\u0301", "I", "ΣΑΣ", "İ"}
	text := func(n int) string {
		var b strings.Builder
		for range r.IntN(n + 1) {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteString([]string{" ", "", ", ", "\n"}[r.IntN(4)])
		}
		return b.String()
	}
	for _, measure := range []rerank.Measure{rerank.Jaccard, rerank.Coverage} {
		config, err := json.Marshal(map[string]any{"measure": measure})
		if err != nil {
			t.Fatal(err)
		}
		inPython, err := open(t, overlapPlugin, plugins.Options{Config: config}).Reranker()
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			q := mapmatched.Query{Text: text(6)}
			candidates := make([]mapmatched.Candidate, r.IntN(30))
			for i := range candidates {
				candidates[i] = mapmatched.Candidate{ChunkID: fmt.Sprint("chunk ", i), Text: text(12)}
			}
			want, err := rerank.Overlap{Measure: measure}.Rerank(t.Context(), q, candidates)
			if err != nil {
				t.Fatal(err)
			}
			got, err := inPython.Rerank(t.Context(), q, candidates)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s of %q against %s:\n got %v\nwant %v", measure, q.Text, fmt.Sprint(candidates), got, want)
			}
		}
	}
}

func TestOverlapRefuses(t *testing.T) {
	reranker, err := open(t, overlapPlugin, plugins.Options{}).Reranker()
	if err != nil {
		t.Fatal(err)
	}
	_, err = reranker.Rerank(t.Context(), mapmatched.Query{Text: "x"}, []mapmatched.Candidate{{ChunkID: "a"}, {ChunkID: "a"}})
	if !errors.Is(err, mapmatched.ErrDuplicateCandidate) || mapmatched.KindOf(err) != mapmatched.KindInvalid {
		t.Errorf("error %v of kind %q, want a duplicate candidate", err, mapmatched.KindOf(err))
	}
}

// compare fails unless the Python decoder agrees with the built-in one on every
// prefix of a trellis, to the bit.
func compare(t *testing.T, inPython mapmatched.Decoder, trellis *mapmatched.Trellis) {
	t.Helper()
	difference, err := mapmatched.CompareDecoders(t.Context(), mapmatched.Viterbi{}, inPython, trellis, 0)
	if err != nil || difference != nil {
		t.Fatalf("%v, error %v, in %+v", difference, err, trellis)
	}
}

func decoder(t *testing.T) mapmatched.Decoder {
	t.Helper()
	d, err := open(t, viterbiPlugin, plugins.Options{}).Decoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The cases that another implementation of the objective computed; they are no
// part of the repository.
func TestDecoderOnSharedCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "cases", "parity", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("SKIP: the parity cases are not beside this checkout")
	}
	inPython := decoder(t)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Graph, Turns json.RawMessage
			Parameters   map[string]any
			Runs         []struct {
				Normalization string
				Lag           *int `json:"fixed_lag"`
			}
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		for _, run := range c.Runs {
			c.Parameters["score_normalization"], c.Parameters["fixed_lag"] = run.Normalization, run.Lag
			form, err := json.Marshal(map[string]any{"graph": c.Graph, "turns": c.Turns, "options": c.Parameters})
			if err != nil {
				t.Fatal(err)
			}
			problem, err := mapmatched.ReadProblem(strings.NewReader(string(form)))
			if err != nil {
				t.Fatal(file, err)
			}
			session, err := problem.Play(t.Context(), nil)
			if err != nil {
				t.Fatal(file, err)
			}
			trellis, err := session.Trellis()
			if err != nil {
				t.Fatal(file, err)
			}
			compare(t, inPython, trellis)
		}
	}
}

// randomTrellis has ties, gaps, breaks, beams and weights of 0.
func randomTrellis(r *rand.Rand) *mapmatched.Trellis {
	value := func() float64 { return []float64{0, 1, 0.5, -0.25, 0.1, r.NormFloat64()}[r.IntN(6)] }
	trellis := &mapmatched.Trellis{TransitionWeight: []float64{0, 1, 0.3, 1e-3}[r.IntN(4)]}
	before := 0
	for range 1 + r.IntN(8) {
		var c mapmatched.Column
		for x := range r.IntN(6) {
			c.ChunkIDs = append(c.ChunkIDs, fmt.Sprint("chunk ", x))
			c.Emission = append(c.Emission, value())
		}
		c.Raw, c.Normalized = c.Emission, c.Emission
		if n := len(c.ChunkIDs); n > 0 {
			for y := range before {
				if r.IntN(4) > 0 || y == before-1 && len(c.From) == 0 {
					c.From = append(c.From, y)
				}
			}
			if before > 0 && trellis.TransitionWeight > 0 && r.IntN(5) > 0 {
				c.Distance = make([]float64, len(c.From)*n)
				for i := range c.Distance {
					c.Distance[i] = math.Abs(value())
				}
			}
			c.Break = before > 0 && c.Distance == nil && trellis.TransitionWeight > 0
			before = n
		}
		trellis.Columns = append(trellis.Columns, c)
	}
	return trellis
}

func TestDecoderOnRandomTrellises(t *testing.T) {
	inPython := decoder(t)
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		compare(t, inPython, randomTrellis(r))
	}
}

func TestDecoderRefuses(t *testing.T) {
	inPython := decoder(t)
	huge := mapmatched.Column{ChunkIDs: []string{"a"}, Raw: []float64{1e308}, Normalized: []float64{1e308}, Emission: []float64{1e308}}
	second := huge
	second.From = []int{0}
	trellis := &mapmatched.Trellis{TransitionWeight: 1, Columns: []mapmatched.Column{huge, second}}
	if _, err := inPython.Decode(t.Context(), trellis); !errors.Is(err, mapmatched.ErrNonFinite) {
		t.Errorf("error %v, want one about a score that is not finite", err)
	}
	second.From = nil
	trellis.Columns[1] = second
	if _, err := inPython.Decode(t.Context(), trellis); mapmatched.KindOf(err) != mapmatched.KindInvalid {
		t.Errorf("error %v of kind %q, want an invalid trellis", err, mapmatched.KindOf(err))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inPython.Decode(ctx, trellis); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
