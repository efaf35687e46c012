package eval

import (
	"fmt"
	"slices"
)

// Names of the slices.
const (
	SliceAll               = "all"
	SliceFollowUp          = "follow_up"          // by the labels of the data
	SliceStandalone        = "standalone"         // by the labels of the data
	SliceFollowUpEntropy   = "follow_up_entropy"  // by the entropy of the pointwise run
	SliceStandaloneEntropy = "standalone_entropy" // by the entropy of the pointwise run
	SliceFirst             = "first_turn"
	SliceTopicSwitch       = "topic_switch"
	SliceSeamSwitch        = "seam_switch"
	SliceSeamReturn        = "seam_return"
)

// Slice is a part of the scored turns.
type Slice struct {
	Name, Description string
	// In says of each scored turn of each conversation whether it is one of
	// the slice, in the order of Results.Conversations.
	In                   [][]bool
	Turns, Conversations int // how many are in it
}

// Slices cuts the scored turns of a data set into slices, by its labels and by
// the emission entropy of pointwise, the results of pointwise search: the first
// turn, and one whose entropy is below the median of all scored turns, stands
// alone. A turn without candidates has no entropy and is a follow-up. Slices
// without turns are left out, except SliceAll. It also returns the median.
func Slices(d *Data, pointwise *Results) (list []Slice, median float64) {
	var entropies []float64
	for _, turns := range pointwise.Conversations {
		for i := range turns {
			if turns[i].Entropy >= 0 {
				entropies = append(entropies, turns[i].Entropy)
			}
		}
	}
	median = medianOf(entropies)
	alone := func(_ *Turn, r *TurnResult) bool { return r.Turn == 0 || r.Entropy >= 0 && r.Entropy < median }
	for _, s := range []struct {
		name, description string
		in                func(t *Turn, r *TurnResult) bool
	}{
		{SliceAll, "all scored turns", func(*Turn, *TurnResult) bool { return true }},
		{SliceFollowUp, "labelled as not standing alone", func(t *Turn, _ *TurnResult) bool { return t.Standalone != nil && !*t.Standalone }},
		{SliceStandalone, "labelled as standing alone", func(t *Turn, _ *TurnResult) bool { return t.Standalone != nil && *t.Standalone }},
		{SliceFollowUpEntropy, "not the first, pointwise emission entropy at or above the median", func(t *Turn, r *TurnResult) bool { return !alone(t, r) }},
		{SliceStandaloneEntropy, "the first, or pointwise emission entropy below the median", alone},
		{SliceFirst, "first turn of its conversation", func(_ *Turn, r *TurnResult) bool { return r.Turn == 0 }},
		{SliceTopicSwitch, "labelled as a switch of topic", func(t *Turn, _ *TurnResult) bool { return t.TopicSwitch }},
		{SliceSeamSwitch, "where another conversation begins", func(t *Turn, _ *TurnResult) bool { return t.SeamKind == "switch" }},
		{SliceSeamReturn, "where an earlier conversation goes on", func(t *Turn, _ *TurnResult) bool { return t.SeamKind == "return" }},
	} {
		slice := Slice{Name: s.name, Description: s.description, In: make([][]bool, len(pointwise.Conversations))}
		for c, turns := range pointwise.Conversations {
			slice.In[c] = make([]bool, len(turns))
			before := slice.Turns
			for i := range turns {
				if s.in(&d.Conversations[c].Turns[turns[i].Turn], &turns[i]) {
					slice.In[c][i] = true
					slice.Turns++
				}
			}
			if slice.Turns > before {
				slice.Conversations++
			}
		}
		if slice.Turns > 0 || s.name == SliceAll {
			list = append(list, slice)
		}
	}
	return list, median
}

// medianOf is the middle one, or the mean of the middle two; 0 of none.
func medianOf(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// findSlice returns a slice by name, nil when it is not there.
func findSlice(list []Slice, name string) *Slice {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// String implements fmt.Stringer.
func (s *Slice) String() string {
	return fmt.Sprintf("%s: %d turns of %d conversations", s.Name, s.Turns, s.Conversations)
}
