package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/mapmatched/mmplug/mapmatched"
)

// GateFeatures is what the gate looks at.
type GateFeatures struct {
	Terms     int     `json:"terms"`     // content terms of the query, repeats counted
	IDF       float64 `json:"idf"`       // sum of their inverse document frequencies; a term that no chunk has adds 0
	Referring float64 `json:"referring"` // share of referring words among the words of the query, in [0, 1]
	Entropy   float64 `json:"entropy"`   // emission entropy of the raw candidates, in nats
}

// NewGateFeatures computes the features of a query. analyze cuts it into
// content terms and idf returns the inverse document frequency of one, false
// for a term that no chunk has. entropy is the emission entropy of its raw
// candidates.
func NewGateFeatures(query string, analyze func(text string) []string, idf func(term string) (float64, bool), entropy float64) GateFeatures {
	f := GateFeatures{Entropy: entropy}
	for _, term := range analyze(query) {
		f.Terms++
		if weight, known := idf(term); known {
			f.IDF += weight
		}
	}
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	referring := 0
	for _, w := range words {
		if _, found := slices.BinarySearch(referringWords, w); found {
			referring++
		}
	}
	if len(words) > 0 {
		f.Referring = float64(referring) / float64(len(words))
	}
	return f
}

// referringWords point to something said before. The list is part of
// context_v1 and is in ascending order.
var referringWords = []string{
	"above", "again", "also", "another", "both", "each", "either", "else", "former", "he", "her", "here", "hers", "him",
	"his", "instead", "it", "its", "itself", "latter", "neither", "one", "ones", "other", "others", "previous", "same",
	"she", "so", "such", "that", "their", "theirs", "them", "then", "there", "these", "they", "this", "those", "too",
}

// ReferringWords lists the words that count as referring to something said
// before, in ascending order.
func ReferringWords() []string { return slices.Clone(referringWords) }

// GateRecord is what the gate decided for a turn, and why.
type GateRecord struct {
	Turn     int          `json:"turn_index"`
	Stage    Stage        `json:"stage"`
	Features GateFeatures `json:"features"`
	Value    float64      `json:"value"`   // g by the formula, in [0, 1]
	Applied  float64      `json:"applied"` // g in effect: Value when the stage is active
}

// Value is g for the given turn: 0 on the first one, else the logistic function
// of the weighted features (see Gate).
func (g Gate) Value(turn int, f GateFeatures) (float64, error) {
	if turn == 0 {
		return 0, nil
	}
	z := g.Bias + float64(g.Terms*float64(f.Terms)) + float64(g.IDF*f.IDF) + float64(g.Referring*f.Referring) + float64(g.Entropy*f.Entropy)
	if math.IsNaN(z) {
		return 0, fmt.Errorf("gate: turn %d: features %+v with weights %+v: %w", turn, f, g, mapmatched.ErrNonFinite)
	}
	return 1 / (1 + mapmatched.Exp(-z)), nil
}

// Evaluate is Value as a record. Without an active gate the context counts in
// full from the second turn on.
func (g Gate) Evaluate(turn int, f GateFeatures) (GateRecord, error) {
	r := GateRecord{Turn: turn, Stage: g.Stage, Features: f}
	if turn > 0 {
		r.Applied = 1
	}
	if g.Stage == StageOff {
		r.Value = r.Applied
		return r, nil
	}
	var err error
	if r.Value, err = g.Value(turn, f); err != nil {
		return GateRecord{}, err
	}
	if g.Stage == StageActive {
		r.Applied = r.Value
	}
	return r, nil
}

// TransitionWeight is the transition weight of the turn of r: β·g where the
// policy asks for it and the gate is active, else β.
func (g Gate) TransitionWeight(beta float64, r GateRecord) float64 {
	if g.ScaleTransition && g.Stage == StageActive {
		return float64(beta * r.Applied)
	}
	return beta
}

// ShadowRecord is the record as a line of a shadow log. The outcome is
// "context" where g is at least a half, else "raw".
func (r GateRecord) ShadowRecord(session string) ShadowRecord {
	side := func(g float64) string {
		if g >= 0.5 {
			return "context"
		}
		return "raw"
	}
	return ShadowRecord{Part: string(KindContext), Version: ContextV1, Session: session, Turn: r.Turn,
		Outcome: side(r.Value), Applied: side(r.Applied), Value: &r.Value,
		Features: Features{"query": {"terms": float64(r.Features.Terms), "idf": r.Features.IDF, "referring": r.Features.Referring},
			"raw": {"entropy": r.Features.Entropy}}}
}
