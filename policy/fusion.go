package policy

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ArmList is what one arm found, best first.
type ArmList struct {
	Name       string // one of Fusion.Arms
	Candidates []mapmatched.Candidate
}

// The prefixes of the score parts of a fused candidate: for every arm that
// lists it, arm_NAME is what the arm counts it for, before the weight, and
// raw_NAME is the arm's own score. The arm's own parts follow as NAME.PART.
const (
	PartArm = "arm_"
	PartRaw = "raw_"
)

// The metadata that ties are ordered by.
const (
	MetadataDocument = "document" // ID of the parent document, a string
	MetadataOrdinal  = "ordinal"  // position in it, a number
)

// Fuse makes one list of what several arms found and returns the at most limit
// best. The score of a candidate is the sum over the arms that list it of
//
//	hybrid_fusion_pre_v1   weight · (score − min)/(max − min)
//	rrf_v1                 weight / (k + rank), rank from 1
//
// with the smallest and the largest score of the arm; where these are equal,
// as with a single candidate, each counts 1. An arm that is empty, or not
// given, adds nothing, and its weight goes to no other. A candidate that an
// arm lists again counts at its best rank.
//
// The order is by score descending, then by the ID of the parent document,
// ordinal and chunk ID, ascending. Text and metadata are those of the first
// arm, by name, that has them. The order of arms does not matter, and arms are
// left as they are, but the result shares their metadata.
//
// Most of the time goes into the Parts of what is returned, a map for each: the
// 20 best of two arms of 100 take some 20 µs, as Scores does for any limit, and
// all of them three to five times that.
//
// Errors name the arm and the chunk: an arm that is not in u.Arms or given
// twice, weights that Validate refuses, an empty chunk ID (ErrEmptyChunkID), a
// score that is not finite or fuses to one that is not (ErrNonFinite).
func (u *Fusion) Fuse(arms []ArmList, limit int) ([]mapmatched.Candidate, error) {
	f := fusers.Get().(*fuser)
	defer f.release()
	order, err := f.fuse(u, arms, limit)
	if err != nil {
		return nil, err
	}
	keys := make([]partKeys, len(arms))
	for i, arm := range arms {
		keys[i] = partKeys{arm.Name + ".", PartArm + arm.Name, PartRaw + arm.Name}
	}
	fused := make([]mapmatched.Candidate, len(order))
	for i, o := range order {
		e := &f.entries[o.at]
		fused[i] = mapmatched.Candidate{ChunkID: e.chunkID, Score: e.score, Text: f.text(e), Metadata: f.metadata(e), Parts: f.parts(e, keys)}
	}
	return fused, nil
}

// Scores is Fuse without what goes with a score: chunk IDs and scores only, the
// same bits in the same order. It costs a fraction where all of long lists is
// wanted.
func (u *Fusion) Scores(arms []ArmList, limit int) ([]mapmatched.Scored, error) {
	f := fusers.Get().(*fuser)
	defer f.release()
	order, err := f.fuse(u, arms, limit)
	if err != nil {
		return nil, err
	}
	scores := make([]mapmatched.Scored, len(order))
	for i, o := range order {
		scores[i] = mapmatched.Scored{ChunkID: f.entries[o.at].chunkID, Score: o.score}
	}
	return scores, nil
}

// weights checks the arms and returns the weight of each.
func (u *Fusion) weights(arms []ArmList) ([]float64, error) {
	if u.Version != HybridFusionPreV1 && u.Version != RRFV1 {
		return nil, fmt.Errorf("fuse: %w: fusion.version is %q: arms are fused by %s or %s", mapmatched.ErrInvalidConfig, u.Version, HybridFusionPreV1, RRFV1)
	}
	if err := u.Validate(); err != nil {
		return nil, fmt.Errorf("fuse: %w", err)
	}
	weights := make([]float64, len(arms))
	for i, arm := range arms {
		a, known := u.Arms[arm.Name]
		if !known {
			return nil, fmt.Errorf("fuse: %w: there is no arm %q in fusion.arms, which has %s", mapmatched.ErrInvalidConfig, arm.Name, strings.Join(sortedKeys(u.Arms), ", "))
		}
		for _, other := range arms[:i] {
			if other.Name == arm.Name {
				return nil, fmt.Errorf("fuse: %w: arm %q is given twice", mapmatched.ErrInvalidConfig, arm.Name)
			}
		}
		weights[i] = a.Weight
	}
	return weights, nil
}

// fuser gathers what the arms say about each chunk.
type fuser struct {
	slots   []int32 // hash table with open addressing: 1 + position in entries, 0 where free
	entries []fusedEntry
	sources []source
	kept    []int32 // entries of the current arm, by rank
	order   []scoredEntry
}

// fusedEntry is a chunk. Its sources are linked from first on.
type fusedEntry struct {
	chunkID     string
	hash        uint64
	score       float64
	first, last int32
}

// source is one arm's listing of a chunk.
type source struct {
	arm       int32
	next      int32 // next source of the same chunk, −1 for none
	candidate *mapmatched.Candidate
	counted   float64 // before the weight
}

// scoredEntry is an entry by position, with its score beside it for sorting.
type scoredEntry struct {
	score float64
	at    int32
}

// fusers are used again, which saves much of the time of a small fusion.
var fusers = sync.Pool{New: func() any { return new(fuser) }}

// hashSeed has no influence on results, only on where a slot is.
var hashSeed = maphash.MakeSeed()

// fuse gathers the arms and returns the at most limit best entries in order.
func (f *fuser) fuse(u *Fusion, arms []ArmList, limit int) ([]scoredEntry, error) {
	weights, err := u.weights(arms)
	if err != nil {
		return nil, err
	}
	byName := make([]int, len(arms))
	listings := 0
	for i := range arms {
		byName[i] = i
		listings += len(arms[i].Candidates)
	}
	slices.SortFunc(byName, func(a, b int) int { return strings.Compare(arms[a].Name, arms[b].Name) })
	f.begin(listings)
	for _, i := range byName {
		if err := f.add(u, int32(i), arms[i], weights[i]); err != nil {
			return nil, err
		}
	}
	for i := range f.entries {
		e := &f.entries[i]
		if !finite(e.score) {
			return nil, fmt.Errorf("fuse: chunk %q: fused score %v: %w: weights are too large", e.chunkID, e.score, mapmatched.ErrNonFinite)
		}
		f.order = append(f.order, scoredEntry{e.score, int32(i)})
	}
	f.sort(f.order, max(limit, 0))
	return f.order[:min(len(f.order), max(limit, 0))], nil
}

// sort puts the most best entries first, in order.
func (f *fuser) sort(order []scoredEntry, most int) {
	if most < len(order)/4 {
		best := order[:most]
		slices.SortFunc(best, f.compare)
		for i := most; most > 0 && i < len(order); i++ {
			if f.compare(order[i], best[most-1]) >= 0 {
				continue
			}
			at, _ := slices.BinarySearchFunc(best, order[i], f.compare)
			found := order[i]
			order[i] = best[most-1]
			copy(best[at+1:], best[at:most-1])
			best[at] = found
		}
		return
	}
	slices.SortFunc(order, f.compare)
}

func (f *fuser) compare(x, y scoredEntry) int {
	if x.score > y.score {
		return -1
	} else if x.score < y.score {
		return 1
	}
	a, b := &f.entries[x.at], &f.entries[y.at]
	return comparePlaces(a.chunkID, f.metadata(a), b.chunkID, f.metadata(b))
}

// begin makes room for so many listings.
func (f *fuser) begin(listings int) {
	f.slots = slices.Grow(f.slots[:0], 1<<bits.Len(uint(2*listings)))
	f.slots = f.slots[:1<<bits.Len(uint(2*listings))]
	clear(f.slots)
}

// release forgets the input.
func (f *fuser) release() {
	clear(f.entries)
	clear(f.sources)
	f.entries, f.sources, f.kept, f.order = f.entries[:0], f.sources[:0], f.kept[:0], f.order[:0]
	fusers.Put(f)
}

// entry finds the entry of a chunk, a new one if need be.
func (f *fuser) entry(chunkID string) int32 {
	hash := maphash.String(hashSeed, chunkID)
	mask := uint64(len(f.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		e := f.slots[at] - 1
		if e < 0 {
			f.entries = append(f.entries, fusedEntry{chunkID, hash, 0, -1, -1})
			f.slots[at] = int32(len(f.entries))
			return int32(len(f.entries) - 1)
		}
		if old := &f.entries[e]; old.hash == hash && old.chunkID == chunkID {
			return e
		}
	}
}

// add counts an arm. Arms come in ascending order of name.
func (f *fuser) add(u *Fusion, number int32, arm ArmList, weight float64) error {
	f.kept = f.kept[:0]
	begin := len(f.sources)
	low, high := math.Inf(1), math.Inf(-1)
	for rank := range arm.Candidates {
		c := &arm.Candidates[rank]
		switch {
		case c.ChunkID == "":
			return fmt.Errorf("arm %q, candidate %d: %w", arm.Name, rank, mapmatched.ErrEmptyChunkID)
		case !finite(c.Score):
			return fmt.Errorf("arm %q, chunk %q: score %v: %w", arm.Name, c.ChunkID, c.Score, mapmatched.ErrNonFinite)
		}
		e := f.entry(c.ChunkID)
		entry := &f.entries[e]
		if entry.last >= int32(begin) {
			continue // listed at a better rank
		}
		at := int32(len(f.sources))
		f.sources = append(f.sources, source{number, -1, c, 0})
		if entry.last < 0 {
			entry.first = at
		} else {
			f.sources[entry.last].next = at
		}
		entry.last = at
		f.kept = append(f.kept, e)
		low, high = min(low, c.Score), max(high, c.Score)
	}
	for i, e := range f.kept {
		s := &f.sources[begin+i]
		if u.Version == RRFV1 {
			s.counted = 1 / (u.K + float64(i+1))
			f.entries[e].score += weight / (u.K + float64(i+1))
			continue
		}
		s.counted = minMax(s.candidate.Score, low, high)
		f.entries[e].score += float64(weight * s.counted)
	}
	return nil
}

// minMax scales a score from [low, high] to [0, 1]; equal bounds give 1.
func minMax(score, low, high float64) float64 {
	if low == high {
		return 1
	}
	if span := high - low; !math.IsInf(span, 0) {
		return (score - low) / span
	}
	return (score/2 - low/2) / (high/2 - low/2)
}

// text is that of the first source that has one.
func (f *fuser) text(e *fusedEntry) string {
	for i := e.first; i >= 0; i = f.sources[i].next {
		if text := f.sources[i].candidate.Text; text != "" {
			return text
		}
	}
	return ""
}

// metadata is that of the first source that has any.
func (f *fuser) metadata(e *fusedEntry) map[string]any {
	for i := e.first; i >= 0; i = f.sources[i].next {
		if metadata := f.sources[i].candidate.Metadata; metadata != nil {
			return metadata
		}
	}
	return nil
}

// partKeys are the keys of the parts of one arm.
type partKeys struct{ prefix, counted, raw string }

func (f *fuser) parts(e *fusedEntry, keys []partKeys) map[string]float64 {
	parts := make(map[string]float64, 4)
	for i := e.first; i >= 0; i = f.sources[i].next {
		s := &f.sources[i]
		k := &keys[s.arm]
		parts[k.counted], parts[k.raw] = s.counted, s.candidate.Score
		for key, part := range s.candidate.Parts {
			parts[k.prefix+key] = part
		}
	}
	return parts
}

// compareFused orders candidates by score, then by place.
func compareFused(a, b mapmatched.Candidate) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	return comparePlaces(a.ChunkID, a.Metadata, b.ChunkID, b.Metadata)
}

func comparePlaces(a string, ma map[string]any, b string, mb map[string]any) int {
	parentA, ordinalA := parentOf(ma)
	parentB, ordinalB := parentOf(mb)
	return cmp.Or(strings.Compare(parentA, parentB), cmp.Compare(ordinalA, ordinalB), strings.Compare(a, b))
}

// parentOf reads parent and ordinal from metadata, "" and 0 where they are
// missing.
func parentOf(metadata map[string]any) (parent string, ordinal float64) {
	parent, _ = metadata[MetadataDocument].(string)
	return parent, numberOf(metadata[MetadataOrdinal])
}

// numberOf is a number in metadata, 0 when it is none.
func numberOf(v any) float64 {
	switch n := v.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// ParentScores scores the parent documents of candidates: each with the score
// of its best chunk, in descending order, then by ID. A candidate without
// parent is its own.
func ParentScores(candidates []mapmatched.Candidate) []mapmatched.Scored {
	var parents []mapmatched.Scored
	index := map[string]int{}
	for _, c := range candidates {
		parent, _ := parentOf(c.Metadata)
		if parent == "" {
			parent = c.ChunkID
		}
		i, known := index[parent]
		if !known {
			index[parent] = len(parents)
			parents = append(parents, mapmatched.Scored{ChunkID: parent, Score: c.Score})
		} else if c.Score > parents[i].Score {
			parents[i].Score = c.Score
		}
	}
	slices.SortFunc(parents, func(a, b mapmatched.Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ChunkID, b.ChunkID))
	})
	return parents
}
