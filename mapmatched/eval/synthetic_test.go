package eval

import (
	"strings"
	"testing"
)

func TestSynthetic(t *testing.T) {
	d := synthetic(t, nil)
	if len(d.Corpus.Chunks) != 40*5*3 || d.Corpus.Documents() != 40 || len(d.Conversations) != 60 {
		t.Fatalf("%d chunks of %d documents, %d conversations", len(d.Corpus.Chunks), d.Corpus.Documents(), len(d.Conversations))
	}
	if err := sound(d.Corpus, d.Conversations); err != nil {
		t.Fatal(err)
	}
	stays, near, turns := 0, 0, 0
	for _, c := range d.Conversations {
		for i, turn := range c.Turns {
			gold := d.Corpus.Find(turn.Gold[0].ChunkID)
			// A turn that stands alone names what it is about, and no other does.
			if named := strings.Contains(turn.Query, gold.Title); named != *turn.Standalone || named == strings.Contains(turn.Query, "its") {
				t.Fatalf("query %q about %s", turn.Query, gold.Title)
			}
			if i == 0 {
				continue
			}
			before := d.Corpus.Find(c.Turns[i-1].Gold[0].ChunkID)
			turns++
			if before.ID == gold.ID {
				stays++
			}
			if before.Document == gold.Document {
				near++
			}
			if turn.TopicSwitch != (before.Document != gold.Document) || turn.ChunkRepeat != (before.ID == gold.ID) {
				t.Fatalf("turn %+v after %s", turn, before.ID)
			}
		}
	}
	if share := float64(stays) / float64(turns); share < 0.2 || share > 0.4 {
		t.Errorf("conversations stay at a chunk in %.2f of the moves", share)
	}
	if share := float64(near) / float64(turns); share < 0.85 || share > 0.96 {
		t.Errorf("and at a document in %.2f", share)
	}
	if again := synthetic(t, &SyntheticOptions{Seed: 1}); again.Digest() != d.Digest() || again.Corpus.Digest() != d.Corpus.Digest() {
		t.Error("one seed makes different data")
	}
	if other := synthetic(t, &SyntheticOptions{Seed: 2}); other.Digest() == d.Digest() {
		t.Error("two seeds make the same data")
	}
	if _, err := Synthetic(&SyntheticOptions{Documents: -1, Turns: 1e9}); err == nil || !strings.Contains(err.Error(), "documents") || !strings.Contains(err.Error(), "turns") {
		t.Errorf("faults of options: %v", err)
	}
}

// The structure is there to be found: a follow-up is ambiguous alone, and history
// and the decoder make use of the conversation.
func TestSyntheticRewardsTheConversation(t *testing.T) {
	w := worldOf(t, synthetic(t, nil), nil)
	results, err := Measure(t.Context(), w, []Method{baseline(t, Pointwise), baseline(t, DecayedHistory), PolicyMethod(plain(t))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := Slices(w.data, &results[0])
	follow := findSlice(list, SliceFollowUp)
	alone, _ := results[0].Mean(NDCG3, follow)
	for _, r := range results[1:] {
		if mean, _ := r.Mean(NDCG3, follow); mean < alone+0.15 {
			t.Errorf("%s has %.3f on follow-ups, pointwise %.3f", r.Method.Name, mean, alone)
		}
	}
}
