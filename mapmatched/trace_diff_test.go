package mapmatched

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// clone copies a trace through its JSON form.
func (t *Trace) clone(tb testing.TB) *Trace {
	tb.Helper()
	data, err := json.Marshal(t)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := ReadTrace(strings.NewReader(string(data)))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestDiffTracesEqual(t *testing.T) {
	for seed := range uint64(10) {
		a := randomTrace(seed, 8, 5)
		b := a.clone(t)
		for i := range b.Steps {
			if b.Steps[i].Gap == "" {
				b.Steps[i].RawEmissionScore += 0.5e-9
			}
			b.Steps[i].CumulativeScore -= 0.5e-9
		}
		d := DiffTraces(a, b)
		if !d.Empty() {
			t.Errorf("seed %d: differs: %s", seed, d)
		}
		if got, want := d.String(), "the traces agree in all 8 turns"; got != want {
			t.Errorf("seed %d: %q, want %q", seed, got, want)
		}
	}
}

func TestDiffTracesSays(t *testing.T) {
	const same = "the traces were made with the same settings, so their scores are comparable"
	const other = "the traces were made with different settings, so their scores are not comparable"
	half := 0.5
	two := 2
	for _, c := range []struct {
		name   string
		change func(*Trace)
		want   string // lines joined with |
	}{
		{"schema", func(b *Trace) { b.Schema = "" },
			other + "|schema is mapmatched.trace/1 in the first, none in the second|0 of 3 turns in both traces differ"},
		{"score model", func(b *Trace) { b.ScoreModel = "decode_v2" },
			other + "|score model is decode_v1 in the first, decode_v2 in the second|0 of 3 turns in both traces differ"},
		{"policy", func(b *Trace) { b.PolicyDigest = "sha256:12" },
			other + "|policy is none in the first, sha256:12 in the second|0 of 3 turns in both traces differ"},
		{"option", func(b *Trace) { b.Options.TransitionWeight = &half },
			other + "|option transition_weight is 1 in the first, 0.5 in the second|0 of 3 turns in both traces differ"},
		{"option set", func(b *Trace) { b.Options.Beam = &two },
			other + "|option beam is default in the first, 2 in the second|0 of 3 turns in both traces differ"},
		{"options", func(b *Trace) { b.Options = nil },
			other + "|set of options is recorded in the first, not recorded in the second|0 of 3 turns in both traces differ"},
		{"mode", func(b *Trace) { b.FixedLag, b.Options.FixedLag = &two, &two },
			same + "|mode is full in the first, fixed-lag 2 in the second|0 of 3 turns in both traces differ"},
		{"revised", func(b *Trace) { b.RevisedPriorIndices = []int{0, 1} },
			same + "|revised prior turns is none in the first, 0, 1 in the second|0 of 3 turns in both traces differ"},
		{"committed", func(b *Trace) { b.CommittedThroughIndex = &two },
			same + "|committed through turn is none in the first, 2 in the second|0 of 3 turns in both traces differ"},
		{"length", func(b *Trace) { b.Steps = b.Steps[:2] },
			same + "|number of turns is 3 in the first, 2 in the second|0 of 2 turns in both traces differ"},
		{"chunk", func(b *Trace) { b.Steps[1].ChunkID, b.Steps[1].Move = "c\n", MoveJump },
			same + `|turn 1: chunk is b in the first, c\n in the second|turn 1: move is drill in the first, jump in the second|1 of 3 turns in both traces differ`},
		{"chunk called none", func(b *Trace) { b.Steps[1].ChunkID = "none" },
			same + `|turn 1: chunk is b in the first, none in the second|1 of 3 turns in both traces differ`},
		{"gap", func(b *Trace) { b.Steps[1] = TraceStep{TurnIndex: 1, Gap: "no hit", CumulativeScore: 6} },
			same + `|turn 1: gap is none in the first, no hit in the second|turn 1: chunk is b in the first, none in the second|1 of 3 turns in both traces differ`},
		{"break", func(b *Trace) { b.Steps[2].Break = "far" },
			same + `|turn 2: break is none in the first, far in the second|1 of 3 turns in both traces differ`},
		{"query", func(b *Trace) { b.Steps[0].Query = "a \"new\"\n" },
			same + `|turn 0: query is "" in the first, "a \"new\"\n" in the second|1 of 3 turns in both traces differ`},
		{"score", func(b *Trace) { b.Steps[0].Confidence = 0.25 + 2e-9; b.Steps[2].EmissionEntropy = 1e-8 },
			same + `|turn 0: confidence is 0.25 in the first, 0.250000002 in the second|turn 2: emission entropy is 0 in the first, 1e-08 in the second|2 of 3 turns in both traces differ`},
		{"parts", func(b *Trace) { b.Steps[0].ScoreParts = map[string]float64{"sim": 0.5, "decay": 1} },
			same + `|turn 0: score part decay is none in the first, 1 in the second|turn 0: score part lexical is 3 in the first, none in the second|turn 0: score part sim is 2 in the first, 0.5 in the second|1 of 3 turns in both traces differ`},
		{"candidates", func(b *Trace) {
			b.Steps[1].Candidates[0].Posterior = 0.5
			b.Steps[1].Candidates[1].Posterior = 0.5
		}, same + `|turn 1: candidate 0 (b) posterior is 1 in the first, 0.5 in the second|1 of 3 turns in both traces differ`},
		{"more candidates", func(b *Trace) { b.Steps[1].Candidates = b.Steps[1].Candidates[:1] },
			same + `|turn 1: number of candidates is 2 in the first, 1 in the second|1 of 3 turns in both traces differ`},
		{"candidates not recorded", func(b *Trace) { b.Steps[1].Candidates = nil }, "the traces agree in all 3 turns"},
		{"not a number", func(b *Trace) { b.Steps[0].GraphDistance = math.NaN() },
			same + `|turn 0: graph distance is 0 in the first, NaN in the second|1 of 3 turns in both traces differ`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := diffSample(), diffSample()
			c.change(b)
			d := DiffTraces(a, b)
			if got := strings.ReplaceAll(d.String(), "\n", "|"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if d.Empty() != strings.HasPrefix(c.want, "the traces agree") {
				t.Errorf("Empty is %t for %q", d.Empty(), d)
			}
			if !reflect.DeepEqual(a, diffSample()) {
				t.Error("the first trace was changed")
			}
		})
	}
}

// Exchanging the traces exchanges the sides of every difference.
func TestDiffTracesSymmetric(t *testing.T) {
	for seed := range uint64(30) {
		a, b := randomTrace(seed, 6, 4), randomTrace(seed+100, 7, 4)
		d, back := DiffTraces(a, b), DiffTraces(b, a)
		swap := func(list []TraceDifference) {
			for i := range list {
				list[i].First, list[i].Second = list[i].Second, list[i].First
			}
		}
		swap(back.Whole)
		for i := range back.Turns {
			for k, x := range back.Turns[i].Differences {
				// The name of a candidate is that of the first trace.
				if strings.HasPrefix(x.Name, "candidate ") {
					back.Turns[i].Differences[k].Name = d.Turns[i].Differences[k].Name
				}
			}
			swap(back.Turns[i].Differences)
		}
		if !reflect.DeepEqual(d, back) {
			t.Errorf("seed %d:\n%s\nexchanged:\n%s", seed, d, back)
		}
	}
}

// diffSample is a trace of three turns to change.
func diffSample() *Trace {
	one := 1.0
	return &Trace{
		Schema: TraceSchema, ScoreModel: ScoreModel, Options: &Options{TransitionWeight: &one},
		PathChunkIDs: []string{"a", "b", "b"},
		Steps: []TraceStep{
			{TurnIndex: 0, ChunkID: "a", RawEmissionScore: 5, CumulativeScore: 5, Confidence: 0.25,
				ScoreParts: map[string]float64{"sim": 2, "lexical": 3}},
			{TurnIndex: 1, ChunkID: "b", Move: MoveDrill, GraphDistance: 1, WeightedTransitionCost: 1, RawEmissionScore: 2,
				CumulativeScore: 6, Candidates: []TraceCandidate{{ChunkID: "b", Posterior: 1}, {ChunkID: "c"}}},
			{TurnIndex: 2, ChunkID: "b", Move: MoveStay, RawEmissionScore: 1, CumulativeScore: 7},
		},
	}
}
