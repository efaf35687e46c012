package policy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
)

// words is the analyzer of these tests.
func words(text string) []string { return strings.Fields(strings.ToLower(text)) }

func arms(change func(*Arms)) Arms {
	a := DefaultArms()
	change(&a)
	return a
}

// termText spells terms as "moon 1, tide 0.5".
func termText(terms []WeightedTerm) string {
	texts := make([]string, len(terms))
	for i, t := range terms {
		texts[i] = fmt.Sprintf("%s %v", t.Term, t.Weight)
	}
	return strings.Join(texts, ", ")
}

func TestContextTerms(t *testing.T) {
	all := func(a *Arms) { a.Answer.Enabled, a.Feedback.Enabled = true, true }
	talk := Conversation{
		Query:    "high tide tide",
		History:  []string{"moon phases", "spring tide moon"},
		Answer:   "The moon pulls",
		Feedback: Feedback{"Tides", []string{"moon", "tide", "gravity", "moon"}},
	}
	for _, c := range []struct {
		name                           string
		arms                           Arms
		talk                           Conversation
		raw, history, answer, feedback string
	}{
		{"all arms", arms(all), talk,
			"high 1, tide 2",
			// moon: max(0.5, 0.25), not their sum; tide: max(2, 0.5).
			"high 1, moon 0.5, phases 0.25, spring 0.5, tide 2",
			"moon 0.25, pulls 0.25, the 0.25",
			"gravity 0.25, moon 0.25, tide 0.25, tides 0.25"},
		{"the arms that are on by default", DefaultArms(), talk, "high 1, tide 2", "high 1, moon 0.5, phases 0.25, spring 0.5, tide 2", "", ""},
		{"only raw is the pure decoder", arms(func(a *Arms) { a.History.Enabled = false }), talk, "high 1, tide 2", "", "", ""},
		{"gamma 0 forgets", arms(func(a *Arms) { a.Gamma = 0 }), talk, "high 1, tide 2", "high 1, tide 2", "", ""},
		{"gamma 1 remembers all", arms(func(a *Arms) { a.Gamma = 1 }), talk, "high 1, tide 2", "high 1, moon 1, phases 1, spring 1, tide 2", "", ""},
		{"the weight of an arm scales its terms", arms(func(a *Arms) { a.History.Weight = 0.5 }), talk, "high 1, tide 2", "high 0.5, moon 0.25, phases 0.125, spring 0.25, tide 1", "", ""},
		{"feedback is the title and the first terms", arms(func(a *Arms) { all(a); a.FeedbackTerms = 1 }), Conversation{Query: "x", Feedback: talk.Feedback},
			"x 1", "x 1", "", "moon 0.25, tides 0.25"},
		{"the first turn", arms(all), Conversation{Query: "tide"}, "tide 1", "tide 1", "", ""},
		{"nothing said", arms(all), Conversation{}, "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ContextTerms(c.arms, c.talk, words)
			for _, arm := range []struct {
				name  string
				terms []WeightedTerm
				want  string
			}{{"raw", got.Raw, c.raw}, {"history", got.History, c.history}, {"answer", got.Answer, c.answer}, {"feedback", got.Feedback, c.feedback}} {
				if text := termText(arm.terms); text != arm.want {
					t.Errorf("%s: %q, want %q", arm.name, text, arm.want)
				}
			}
		})
	}
}

func TestContextTermsOfRawAreThoseOfAPlainSearch(t *testing.T) {
	for _, text := range []string{"How do the spring tides, the spring tides, rise?", "故乡小桥", "", "the of and"} {
		want := []WeightedTerm{}
		for _, term := range lexical.QueryTerms(text) {
			want = append(want, WeightedTerm(term))
		}
		if got := ContextTerms(DefaultArms(), Conversation{Query: text}, lexical.Analyze).Raw; termText(got) != termText(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestContextTermsReturnToATopicThreeTurnsBack(t *testing.T) {
	talk := Conversation{Query: "back to the first", History: []string{"unsealing with recovery keys", "rotation of leases", "lease length"}}
	got := termText(ContextTerms(DefaultArms(), talk, lexical.Analyze).History)
	if !strings.Contains(got, "recovery 0.125") || !strings.Contains(got, "lease 0.5") {
		t.Errorf("history %q lacks the words of three turns back", got)
	}
}

func TestContextTermsLeaveTheConversationAlone(t *testing.T) {
	talk := Conversation{Query: "b a", History: []string{"d c"}, Feedback: Feedback{"t", []string{"z", "y"}}}
	fixed := map[string][]string{"b a": {"b", "a"}, "d c": {"d", "c"}, "t": {"t"}}
	ContextTerms(arms(func(a *Arms) { a.Feedback.Enabled = true }), talk, func(s string) []string { return fixed[s] })
	if !reflect.DeepEqual(fixed["b a"], []string{"b", "a"}) || !reflect.DeepEqual(talk.Feedback.Terms, []string{"z", "y"}) {
		t.Errorf("changed: %v, %v", fixed, talk.Feedback.Terms)
	}
}

func TestEmission(t *testing.T) {
	for _, c := range []struct{ raw, context, g, want float64 }{
		{0.3, 0.9, 0, 0.3}, {0.3, 0.9, 1, 0.9}, {2, 4, 0.5, 3}, {2, math.Inf(1), 0, 2}, {math.NaN(), 4, 1, 4},
	} {
		if got := Emission(c.raw, c.context, c.g); got != c.want {
			t.Errorf("Emission(%v, %v, %v) = %v, want %v", c.raw, c.context, c.g, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 9))
	for range 1000 {
		raw, context, g := r.Float64(), r.Float64(), r.Float64()
		if got := Emission(raw, context, g); got < min(raw, context)-1e-15 || got > max(raw, context)+1e-15 {
			t.Fatalf("Emission(%v, %v, %v) = %v is not between the two", raw, context, g, got)
		}
	}
}

func TestHistoryVector(t *testing.T) {
	for _, c := range []struct {
		name    string
		current []float32
		history [][]float32
		gamma   float64
		want    []float32
	}{
		{"alone", []float32{0, 2}, nil, 0.5, []float32{0, 1}},
		{"3 + 0.5·0 and 0 + 0.5·8", []float32{3, 0}, [][]float32{{0, 8}}, 0.5, []float32{0.6, 0.8}},
		{"a turn two back counts a quarter", []float32{3, 0}, [][]float32{{0, 16}, {0, 0}}, 0.5, []float32{0.6, 0.8}},
		{"a turn without a vector still makes time pass", []float32{3, 0}, [][]float32{{0, 16}, nil}, 0.5, []float32{0.6, 0.8}},
		{"gamma 0", []float32{3, 0}, [][]float32{{0, 8}}, 0, []float32{1, 0}},
		{"large numbers", []float32{3e38, 0}, [][]float32{{3e38, 0}}, 1, []float32{1, 0}},
	} {
		got, err := HistoryVector(c.current, c.history, c.gamma)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v (%v), want %v", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		current []float32
		history [][]float32
		want    string
	}{
		{[]float32{1, 0}, [][]float32{{1}}, "turn 0 has dimension 1, the query 2"},
		{[]float32{1, float32(math.NaN())}, nil, "component 1 of the query is NaN"},
		{[]float32{1}, [][]float32{{-2}}, "no direction"},
		{nil, nil, "no direction"},
	} {
		if _, err := HistoryVector(c.current, c.history, 0.5); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: error %v, want one with %q", c.current, c.history, err, c.want)
		}
	}
	if _, err := HistoryVector([]float32{float32(math.Inf(1))}, nil, 0.5); !errors.Is(err, mapmatched.ErrNonFinite) {
		t.Errorf("error %v, want ErrNonFinite", err)
	}
}

func ExampleContextTerms() {
	talk := Conversation{Query: "and at night", History: []string{"harbour fees", "opening hours"}}
	terms := ContextTerms(DefaultArms(), talk, strings.Fields)
	for _, t := range terms.History {
		fmt.Println(t.Term, t.Weight)
	}
	// Output:
	// and 1
	// at 1
	// fees 0.25
	// harbour 0.25
	// hours 0.5
	// night 1
	// opening 0.5
}
