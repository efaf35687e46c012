package eval

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// made makes data and results of chosen numbers: ndcg is nDCG@3 by method,
// conversation and turn.
func made(t testing.TB, turns [][]Turn, entropy [][]float64, ndcg map[string][][]float64) (*World, []Results) {
	t.Helper()
	d := dataOf(t, menagerie())
	d.Files = []File{{"corpus.jsonl", 10, "00"}}
	for i, list := range turns {
		for j := range list {
			list[j].Query, list[j].Gold = "q", golds("d1#0")
		}
		d.Conversations = append(d.Conversations, Conversation{ID: fmt.Sprint(i), Turns: list})
	}
	var results []Results
	for _, name := range []string{Pointwise, "better", "worse"} {
		r := Results{Method: Method{Name: name, Baseline: Pointwise}}
		if name != Pointwise {
			p := *plain(t)
			p.Name, p.StatedDigest, p.Evidence = name, "", ""
			r.Method = PolicyMethod(&p)
		}
		for i, list := range turns {
			var measured []TurnResult
			for j := range list {
				measured = append(measured, TurnResult{j, entropy[i][j], Scores{ndcg[name][i][j], 0.5, 1, 1, 0, 0.25}})
			}
			r.Conversations = append(r.Conversations, measured)
		}
		results = append(results, r)
	}
	return worldOf(t, d, nil), results
}

// example has six turns of three conversations.
func example(t testing.TB) (*World, []Results) {
	yes, no := new(true), new(false)
	return made(t,
		[][]Turn{{{Standalone: yes}, {Standalone: no}}, {{Standalone: yes}, {Standalone: no, SeamKind: "switch"}, {Standalone: yes, TopicSwitch: true}}, {{Standalone: yes}}},
		[][]float64{{2, 1}, {2, 3, -1}, {0.5}},
		map[string][][]float64{
			Pointwise: {{1, 0.2}, {0.6, 0, 0.4}, {1}},
			"better":  {{1, 0.7}, {0.6, 0.5, 0.4}, {1}},
			"worse":   {{0.9, 0.1}, {0.5, 0, 0.3}, {1}},
		})
}

func TestSlices(t *testing.T) {
	w, results := example(t)
	list, median := Slices(w.data, &results[0])
	if median != 2 { // of 2, 1, 2, 3 and 0.5; the turn without candidates has none
		t.Errorf("median %v", median)
	}
	want := map[string]string{
		SliceAll:        "[[true true] [true true true] [true]]",
		SliceFollowUp:   "[[false true] [false true false] [false]]",
		SliceStandalone: "[[true false] [true false true] [true]]",
		// Entropy 1 is below the median; 3 and none are not.
		SliceFollowUpEntropy:   "[[false false] [false true true] [false]]",
		SliceStandaloneEntropy: "[[true true] [true false false] [true]]",
		SliceFirst:             "[[true false] [true false false] [true]]",
		SliceTopicSwitch:       "[[false false] [false false true] [false]]",
		SliceSeamSwitch:        "[[false false] [false true false] [false]]",
	}
	if len(list) != len(want) {
		t.Errorf("%d slices, wanted %d", len(list), len(want))
	}
	for i := range list {
		if got := fmt.Sprint(list[i].In); got != want[list[i].Name] {
			t.Errorf("%s: %s, wanted %s", list[i].Name, got, want[list[i].Name])
		}
	}
	if s := list[1]; s.Turns != 2 || s.Conversations != 2 {
		t.Errorf("%v", &s)
	}
	if mean, n := results[1].Mean(NDCG3, &list[1]); !near(mean, 0.6) || n != 2 {
		t.Errorf("mean %v of %d", mean, n)
	}
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}} {
		if got := medianOf(c.values); got != c.want {
			t.Errorf("median of %v is %v", c.values, got)
		}
	}
}

func TestBootstrap(t *testing.T) {
	w, results := example(t)
	list, _ := Slices(w.data, &results[0])
	b := NewBootstrap(3, 400, 1)
	// "better" is 0.5 above pointwise on each follow-up and nowhere else.
	if d := b.Delta(NDCG3, &results[1], &results[0], &list[1]); !near(d.Mean, 0.5) || !near(d.Low, 0.5) || !near(d.High, 0.5) {
		t.Errorf("a constant difference has the interval %+v", d)
	}
	if d := b.Delta(NDCG3, &results[0], &results[0], &list[0]); d != (Interval{}) {
		t.Errorf("a method differs from itself by %+v", d)
	}
	all := b.samples(&results[0], &list[0])[0]
	if got := all.interval(); !near(all.mean, 3.2/6) || got.Low < 0.33 || got.High > 1 || got.Low >= got.Mean || got.High <= got.Mean {
		t.Errorf("mean %v, interval %+v", all.mean, got)
	}
	// Every draw is a mean over the turns of drawn conversations: of the first
	// alone 0.6, of the second 1/3, of the third 1.
	for i, draw := range b.draws {
		sum, turns := 0.0, 0.0
		for _, c := range draw {
			sum += []float64{1.2, 1, 1}[c]
			turns += []float64{2, 3, 1}[c]
		}
		if !near(all.draws[i], sum/turns) {
			t.Fatalf("draw %v has %v, wanted %v", draw, all.draws[i], sum/turns)
		}
	}
	// The third conversation has no follow-up: draws of it alone are left out.
	alone := 0
	for _, draw := range b.draws {
		if !slices.Contains(draw, 0) && !slices.Contains(draw, 1) {
			alone++
		}
	}
	if got := len(b.samples(&results[0], &list[1])[0].draws); got != 400-alone || alone == 0 {
		t.Errorf("%d draws of follow-ups, and %d without any", got, alone)
	}
	if same := NewBootstrap(3, 400, 1); fmt.Sprint(same.draws) != fmt.Sprint(b.draws) {
		t.Error("one seed draws differently")
	}
	if other := NewBootstrap(3, 400, 2); fmt.Sprint(other.draws) == fmt.Sprint(b.draws) {
		t.Error("two seeds draw alike")
	}
}

// In simulated data the interval covers the true mean about as often as it says.
func TestBootstrapCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	covered := 0
	const trials, conversations = 300, 60
	for range trials {
		r := Results{Conversations: make([][]TurnResult, conversations)}
		s := Slice{In: make([][]bool, conversations)}
		for i := range r.Conversations {
			r.Conversations[i] = []TurnResult{{Scores: Scores{random.Float64()}}}
			s.In[i] = []bool{true}
		}
		b := NewBootstrap(conversations, 200, random.Uint64())
		if got := b.samples(&r, &s)[0].interval(); got.Low <= 0.5 && 0.5 <= got.High {
			covered++
		}
	}
	if share := float64(covered) / trials; share < 0.88 || share > 0.99 {
		t.Errorf("an interval of 95%% covers the mean in %.3f of the trials", share)
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{1, 2, 4, 8}
	for q, want := range map[float64]float64{0: 1, 1: 8, 0.5: 3, 1. / 3: 2, 0.1: 1.3} {
		if got := quantile(values, q); !near(got, want) {
			t.Errorf("quantile %v is %v, wanted %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("a quantile of nothing")
	}
}

func exampleReport(t testing.TB) *Report {
	t.Helper()
	w, results := example(t)
	results[2].Method.Name = "worse | <one>"
	r, err := NewReport(t.Context(), w, results, &RunOptions{Samples: 100, Seed: 5, Tool: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r.Lexical.StopwordsSHA256 = "-" // what is golden here is the form
	for i := range r.Methods {
		if r.Methods[i].Policy != nil {
			r.Methods[i].Policy.Digest = "-"
		}
	}
	return r
}

func TestGates(t *testing.T) {
	r := exampleReport(t)
	var got []string
	for _, g := range r.Gates {
		got = append(got, g.String())
	}
	want := []string{
		"better: ndcg_3 on follow_up against pointwise is +0.500, wanted > 0: it holds",
		"better: ndcg_3 on standalone against pointwise is +0.000, wanted >= -0.02: it holds",
		"worse | <one>: ndcg_3 on follow_up against pointwise is -0.050, wanted > 0: it does not hold",
		"worse | <one>: ndcg_3 on standalone against pointwise is -0.075, wanted >= -0.02: it does not hold",
	}
	if !slices.Equal(got, want) || r.Hold() {
		t.Errorf("gates %q, hold %v", got, r.Hold())
	}
	// Without labels the slices are those by entropy, and ablations have no gate.
	w, results := example(t)
	for i := range w.data.Conversations {
		for j := range w.data.Conversations[i].Turns {
			w.data.Conversations[i].Turns[j].Standalone = nil
		}
	}
	results[2].Method.Ablation = true
	r, err := NewReport(t.Context(), w, results, &RunOptions{Samples: 10})
	if err != nil || len(r.Gates) != 2 || r.Gates[0].Slice != SliceFollowUpEntropy || r.Gates[1].Slice != SliceStandaloneEntropy || !r.Hold() {
		t.Errorf("gates %v, %v", r.Gates, err)
	}
}

func TestReportForms(t *testing.T) {
	r := exampleReport(t)
	for _, form := range []struct {
		name  string
		write func(io.Writer) error
	}{{"report.json", r.WriteJSON}, {"report.md", r.WriteMarkdown}, {"ndcg_3.svg", r.WriteSVG}} {
		var b bytes.Buffer
		if err := form.write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", form.name)
		if *update {
			if err := os.MkdirAll("testdata", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s differs from testdata; write it anew with go test -run TestReportForms -update ./mapmatched/eval if that is meant:\n%s", form.name, b.String())
		}
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("JSON: %v", err)
	}
	b.Reset()
	if err := r.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	for dec := xml.NewDecoder(&b); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("SVG: %v", err)
		}
	}
}

// Two runs of everything write the same bytes, whatever the number of cores.
func TestRunRepeats(t *testing.T) {
	var first []byte
	for _, workers := range []int{1, 5} {
		w := worldOf(t, synthetic(t, &SyntheticOptions{Documents: 10, Conversations: 10}), nil)
		opts := &RunOptions{Samples: 100}
		opts.Workers = workers
		r, err := Run(t.Context(), w, append([]Method{baseline(t, History), PolicyMethod(plain(t))}, Ablations(plain(t), false)[:3]...), opts)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := errors.Join(r.WriteJSON(&b), r.WriteMarkdown(&b), r.WriteSVG(&b)); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		}
		if !bytes.Equal(first, b.Bytes()) {
			t.Errorf("with %d workers the reports differ", workers)
		}
		if r.Methods[0].Name != Pointwise || len(r.Methods) != 6 || r.Methods[3].Kind != "ablation" || len(r.Gates) != 2 {
			t.Errorf("methods %+v", r.Methods)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	w := worldOf(t, dataOf(t, menagerie(), Conversation{ID: "c", Turns: []Turn{{Query: "q"}}}), nil)
	if _, err := Run(t.Context(), w, nil, nil); err == nil || !strings.Contains(err.Error(), "no turn has a gold chunk") {
		t.Errorf("nothing to score: %v", err)
	}
	if _, err := Run(t.Context(), w, nil, &RunOptions{Samples: -1}); err == nil || !strings.Contains(err.Error(), "samples") {
		t.Errorf("options: %v", err)
	}
	if _, err := NewReport(t.Context(), w, nil, nil); err == nil || !strings.Contains(err.Error(), "pointwise") {
		t.Errorf("no results: %v", err)
	}
}

func BenchmarkBootstrap(b *testing.B) {
	for _, conversations := range []int{50, 500} {
		b.Run(fmt.Sprintf("conversations=%d/samples=1000", conversations), func(b *testing.B) {
			r := Results{Conversations: make([][]TurnResult, conversations)}
			s := Slice{In: make([][]bool, conversations)}
			for i := range r.Conversations {
				r.Conversations[i] = make([]TurnResult, 6)
				s.In[i] = []bool{true, false, true, true, true, false}
			}
			draws := NewBootstrap(conversations, 1000, 1)
			for b.Loop() {
				draws.samples(&r, &s)
			}
		})
	}
}
