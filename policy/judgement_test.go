package policy

import (
	"math"
	"strings"
	"testing"
)

func TestJudgementSuggestsKeepMergeOrSupersede(t *testing.T) {
	p := DefaultJudgement()
	p.CosineThreshold = 0.6
	const near = `"cosine 1 reaches 0.6"`
	up := []float32{0, 2}
	for _, c := range []struct {
		name   string
		chunks []JudgedChunk
		want   string // JSON of all judgements, without the brackets and the turn
	}{
		{"no chunks", nil, ``},
		{"one chunk", []JudgedChunk{{ChunkID: "a", Document: "d", Vector: up}},
			`"suggestion":"keep","sources":["a"],"support":null,"counter_evidence":null,"confidence":0`},
		{"newer digest of the same parent", []JudgedChunk{{"a", "d", "x", 1, up, ""}, {"b", "d", "y", 2, up, ""}},
			`"suggestion":"supersede","sources":["b","a"],"support":[` + near + `,"same parent d","newer digest, of revision 2 after 1"],"counter_evidence":null,"confidence":1`},
		{"the newer one may come first", []JudgedChunk{{"a", "d", "x", 3, up, ""}, {"b", "d", "y", 2, up, ""}},
			`"suggestion":"supersede","sources":["a","b"],"support":[` + near + `,"same parent d","newer digest, of revision 3 after 2"],"counter_evidence":null,"confidence":1`},
		{"the same digest", []JudgedChunk{{"a", "d", "x", 1, up, ""}, {"b", "d", "x", 1, up, ""}},
			`"suggestion":"merge","sources":["a","b"],"support":[` + near + `,"same parent d","same digest"],"counter_evidence":null,"confidence":1`},
		{"no digest", []JudgedChunk{{ChunkID: "a", Document: "d", Vector: up}, {ChunkID: "b", Document: "d", Digest: "x", Vector: up}},
			`"suggestion":"merge","sources":["a","b"],"support":[` + near + `,"same parent d"],"counter_evidence":["digest unknown"],"confidence":0.6666666666666666`},
		{"without digests the texts count", []JudgedChunk{{"a", "d", "", 0, up, "x"}, {"b", "d", "", 0, up, "x"}},
			`"suggestion":"merge","sources":["a","b"],"support":[` + near + `,"same parent d","same text"],"counter_evidence":null,"confidence":1`},
		{"a digest and a text are not compared", []JudgedChunk{{"a", "d", "x", 0, up, "t"}, {"b", "d", "", 0, up, "t"}},
			`"suggestion":"merge","sources":["a","b"],"support":[` + near + `,"same parent d","same text"],"counter_evidence":null,"confidence":1`},
		{"other texts", []JudgedChunk{{"a", "d", "", 0, up, "x"}, {"b", "d", "", 2, up, "y"}},
			`"suggestion":"keep","sources":["a","b"],"support":["different texts, and which is newer is not known"],"counter_evidence":[` + near + `,"same parent d"],"confidence":0.3333333333333333`},
		{"other texts with revisions", []JudgedChunk{{"a", "d", "", 1, up, "x"}, {"b", "d", "", 2, up, "y"}},
			`"suggestion":"supersede","sources":["b","a"],"support":[` + near + `,"same parent d","newer text, of revision 2 after 1"],"counter_evidence":null,"confidence":1`},
		{"which digest is newer is not known", []JudgedChunk{{"a", "d", "x", 0, up, ""}, {"b", "d", "y", 2, up, ""}},
			`"suggestion":"keep","sources":["a","b"],"support":["different digests, and which is newer is not known"],"counter_evidence":[` + near + `,"same parent d"],"confidence":0.3333333333333333`},
		{"different parents", []JudgedChunk{{"a", "d", "x", 1, up, ""}, {"b", "e", "y", 2, up, ""}},
			`"suggestion":"keep","sources":["a","b"],"support":["different parents d and e"],"counter_evidence":[` + near + `],"confidence":0.5`},
		{"unknown parents are not one", []JudgedChunk{{ChunkID: "a", Vector: up}, {ChunkID: "b", Vector: up}},
			`"suggestion":"keep","sources":["a","b"],"support":["parent unknown"],"counter_evidence":[` + near + `],"confidence":0.5`},
		{"a cosine equal to the threshold reaches it", []JudgedChunk{{"a", "d", "x", 1, []float32{5, 0}, ""}, {"b", "d", "x", 1, []float32{30, 40}, ""}},
			`"suggestion":"merge","sources":["a","b"],"support":["cosine 0.6 reaches 0.6","same parent d","same digest"],"counter_evidence":null,"confidence":1`},
		{"not near", []JudgedChunk{{"a", "d", "x", 1, up, ""}, {"b", "d", "y", 2, []float32{1, 0}, ""}, {ChunkID: "c"}},
			`"suggestion":"keep","sources":["a"],"support":["no two chunks reach cosine 0.6, the nearest have 0"],"counter_evidence":["1 of 3 chunks have no vector"],"confidence":0.5`},
	} {
		got, err := p.Judge(2, c.chunks)
		want := `[{"turn_index":2,` + c.want + `}]`
		if c.want == "" {
			want = "null"
		}
		if err != nil || asJSON(t, got) != want {
			t.Errorf("%s: %s (%v), want %s", c.name, asJSON(t, got), err, want)
		}
	}
	three, err := p.Judge(0, []JudgedChunk{{"a", "d", "x", 1, up, ""}, {"b", "d", "x", 1, up, ""}, {"c", "d", "x", 1, up, ""}})
	if err != nil || len(three) != 3 {
		t.Errorf("three chunks that are alike give %d judgements (%v), want one for each two", len(three), err)
	}
}

func TestJudgementRefusesVectorsThatCannotBeCompared(t *testing.T) {
	p := DefaultJudgement()
	for _, c := range []struct {
		a, b []float32
		want string
	}{
		{[]float32{1}, []float32{1, 2}, `turn 2, chunks "a" and "b": dimensions 1 and 2`},
		{[]float32{0}, []float32{1}, "cosine is NaN"},
		{[]float32{float32(math.NaN())}, []float32{1}, "cosine is NaN"},
	} {
		_, err := p.Judge(2, []JudgedChunk{{ChunkID: "a", Vector: c.a}, {ChunkID: "b", Vector: c.b}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: error %v, want one with %q", c.a, c.b, err, c.want)
		}
	}
}

func TestJudgementIsWrittenToTheShadowLogOnly(t *testing.T) {
	p := DefaultJudgement()
	got, err := p.Judge(2, []JudgedChunk{{"a", "d", "x", 1, []float32{1}, ""}, {"b", "d", "y", 2, []float32{1}, ""}})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	record := got[0].ShadowRecord("s")
	record.Policy = "p"
	const line = `{"applied":"keep","outcome":"supersede","part":"judgement","policy":"p","session":"s","sources":["b","a"],` +
		`"support":["cosine 1 reaches 0.95","same parent d","newer digest, of revision 2 after 1"],"turn_index":2,"value":1,"version":"judgement_shadow_pre_v1"}`
	if asJSON(t, record) != line {
		t.Errorf("record %s, want %s", asJSON(t, record), line)
	}
	p.Stage = StageActive
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), `judgement.stage is "active": it must be off or shadow`) {
		t.Errorf("stage active: %v", err)
	}
}
