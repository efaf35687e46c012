package policy

import (
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Suggestion is what might be done with chunks that say nearly the same. It is
// only ever written to a shadow log.
type Suggestion string

// The suggestions.
const (
	SuggestKeep      Suggestion = "keep"      // leave them as they are
	SuggestMerge     Suggestion = "merge"     // make one of them
	SuggestSupersede Suggestion = "supersede" // let the first take the place of the second
)

// The metadata that a judgement reads, beside MetadataDocument. Without a digest
// the texts of chunks are compared. Only who made the chunks knows revisions: a
// provider that gives none is never told that one chunk supersedes another.
const (
	MetadataDigest   = "digest"   // of the record a chunk was cut from, a string
	MetadataRevision = "revision" // of that record, a number above 0: of two the larger is newer
)

// JudgedChunk is a chunk of an answer as a judgement sees it.
type JudgedChunk struct {
	ChunkID    string
	Document   string    // ID of the parent document, "" when unknown
	Digest     string    // of the record it was cut from, "" when unknown
	Revision   float64   // of that record, the larger the newer; 0 when unknown
	Vector     []float32 // nil when it has none
	TextDigest string    // SHA-256 of its text, "" when unknown; counts where one of two has no Digest
}

// Judgement is a suggestion with the evidence for and against it.
type Judgement struct {
	Turn            int        `json:"turn_index"`
	Suggestion      Suggestion `json:"suggestion"`
	Sources         []string   `json:"sources"`          // chunk IDs, the one that would stay first
	Support         []string   `json:"support"`          // what speaks for the suggestion
	CounterEvidence []string   `json:"counter_evidence"` // what speaks against it
	Confidence      float64    `json:"confidence"`       // share of the evidence that speaks for it, in [0, 1]
}

// Judge is judgement_shadow_pre_v1. It compares every two chunks of an answer,
// best first, and suggests something for each two whose cosine reaches the
// threshold:
//
//   - chunks of different parents, or of an unknown one, are kept;
//   - of the same parent and of different digests (those of their records where
//     both are known, else those of their texts), the one of
//     the newer record supersedes the other; they are kept when it is not known
//     which is newer;
//   - of the same parent otherwise, they are merged.
//
// When no two chunks are that near, the suggestion is to keep the first. Without
// chunks there is none. Vectors of different dimensions, or with a cosine that
// is not finite, are an error.
func (j *JudgementParameters) Judge(turn int, chunks []JudgedChunk) ([]Judgement, error) {
	var out []Judgement
	nearest, blind := math.Inf(-1), 0
	for b := range chunks {
		if len(chunks[b].Vector) == 0 {
			blind++
			continue
		}
		for a := range b {
			if len(chunks[a].Vector) == 0 {
				continue
			}
			cosine, err := cosineOf(chunks[a].Vector, chunks[b].Vector)
			if err != nil {
				return nil, fmt.Errorf("judgement: turn %d, chunks %q and %q: %w", turn, chunks[a].ChunkID, chunks[b].ChunkID, err)
			}
			nearest = max(nearest, cosine)
			if cosine >= j.CosineThreshold {
				out = append(out, j.judgePair(turn, chunks[a], chunks[b], cosine))
			}
		}
	}
	if len(out) > 0 || len(chunks) == 0 {
		return out, nil
	}
	alone := Judgement{Turn: turn, Suggestion: SuggestKeep, Sources: []string{chunks[0].ChunkID}}
	if finite(nearest) {
		alone.Support = append(alone.Support, fmt.Sprintf("no two chunks reach cosine %.6g, the nearest have %.6g", j.CosineThreshold, nearest))
	}
	if blind > 0 {
		alone.CounterEvidence = append(alone.CounterEvidence, fmt.Sprintf("%d of %d chunks have no vector", blind, len(chunks)))
	}
	return []Judgement{alone.weighed()}, nil
}

// judgePair suggests something for two chunks that are near.
func (j *JudgementParameters) judgePair(turn int, a, b JudgedChunk, cosine float64) Judgement {
	out := Judgement{Turn: turn, Suggestion: SuggestMerge, Sources: []string{a.ChunkID, b.ChunkID}}
	near := fmt.Sprintf("cosine %.6g reaches %.6g", cosine, j.CosineThreshold)
	same := "same parent " + a.Document
	digestA, digestB, digest := a.Digest, b.Digest, "digest"
	if a.Digest == "" || b.Digest == "" {
		digestA, digestB, digest = a.TextDigest, b.TextDigest, "text"
	}
	switch {
	case a.Document == "" || b.Document == "":
		out.Suggestion, out.Support, out.CounterEvidence = SuggestKeep, []string{"parent unknown"}, []string{near}
	case a.Document != b.Document:
		out.Suggestion = SuggestKeep
		out.Support, out.CounterEvidence = []string{"different parents " + a.Document + " and " + b.Document}, []string{near}
	case digestA != "" && digestA == digestB:
		out.Support = []string{near, same, "same " + digest}
	case digestA == "" || digestB == "":
		out.Support, out.CounterEvidence = []string{near, same}, []string{"digest unknown"}
	case a.Revision == 0 || b.Revision == 0 || a.Revision == b.Revision:
		out.Suggestion = SuggestKeep
		out.Support, out.CounterEvidence = []string{"different " + digest + "s, and which is newer is not known"}, []string{near, same}
	default:
		if b.Revision > a.Revision {
			a, b = b, a
		}
		out.Suggestion, out.Sources = SuggestSupersede, []string{a.ChunkID, b.ChunkID}
		out.Support = []string{near, same, fmt.Sprintf("newer %s, of revision %v after %v", digest, a.Revision, b.Revision)}
	}
	return out.weighed()
}

// weighed fills in the confidence.
func (j Judgement) weighed() Judgement {
	if all := len(j.Support) + len(j.CounterEvidence); all > 0 {
		j.Confidence = float64(len(j.Support)) / float64(all)
	}
	return j
}

// cosineOf is the cosine of two vectors, in [−1, 1].
func cosineOf(a, b []float32) (float64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("dimensions %d and %d: embed both with one model", len(a), len(b))
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot += float64(x * y)
		aa += float64(x * x)
		bb += float64(y * y)
	}
	cosine := dot / (math.Sqrt(aa) * math.Sqrt(bb))
	if !finite(cosine) {
		return 0, fmt.Errorf("cosine is %v: %w: vectors must be finite and not 0", cosine, mapmatched.ErrNonFinite)
	}
	return min(max(cosine, -1), 1), nil
}

// ShadowRecord is the judgement as a line of a shadow log. What is in effect is
// always to keep.
func (j Judgement) ShadowRecord(session string) ShadowRecord {
	return ShadowRecord{Part: string(KindJudgement), Version: JudgementPreV1, Session: session, Turn: j.Turn,
		Outcome: string(j.Suggestion), Applied: string(SuggestKeep), Value: &j.Confidence,
		Sources: j.Sources, Support: j.Support, CounterEvidence: j.CounterEvidence}
}
