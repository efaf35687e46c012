package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mapmatched/mmplug/policy"
)

// A track is a conversation with everything that tuning asks of it again and
// again, found once: what each turn's arms find, the features of its query and
// its gold, by position instead of by name. What a policy makes of a track (see
// tuneModel) is what policy.Retriever makes of the conversation, a thousand
// times as fast.
type track struct {
	space *space
	turns []trackTurn
}

// hit is a chunk in a list, by its position in the space.
type hit struct {
	at    int32
	score float64
}

// trackTurn is a turn of a track.
type trackTurn struct {
	raw, answer []hit
	history     [][]hit // by index of the γ that is tried
	features    policy.GateFeatures
	scored      bool // has gold; the fields below count then
	gold        []trackGold
	best3       float64 // gain of the best order
	pointwise   float64 // nDCG@3 of pointwise search
	slices      sliceSet
}

// trackGold is a chunk that counts as a gold.
type trackGold struct {
	at   int32
	gold int // index of the gold; equivalents share it
	gain float64
}

// sliceSet is the slices that the objective looks at.
type sliceSet uint8

const (
	inFollowUp sliceSet = 1 << iota
	inStandalone
	inSwitch
)

// space is the chunks of an index, in the order in which a fusion breaks ties:
// by document, ordinal and ID.
type space struct {
	ids       []string
	at        map[string]int32
	document  []int32
	section   []int32 // −1 for none
	ordinal   []int32
	neighbors [][]int32 // by the distance that they are proposed in; nil where not asked yet
	mu        sync.Mutex
	near      func(ctx context.Context, chunkID string) ([]string, error)
}

// newSpace places the chunks of a collection.
func newSpace(c *Collection, p *policy.Policy) *space {
	order := slices.Clone(c.chunks)
	slices.SortFunc(order, func(a, b *Chunk) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.ID, b.ID))
	})
	s := &space{at: make(map[string]int32, len(order)), neighbors: make([][]int32, len(order))}
	documents, sections := map[string]int32{}, map[[2]string]int32{}
	number := func(n int) int32 { return int32(n) }
	for _, chunk := range order {
		s.at[chunk.ID] = number(len(s.ids))
		s.ids = append(s.ids, chunk.ID)
		if _, known := documents[chunk.Document]; !known {
			documents[chunk.Document] = number(len(documents))
		}
		s.document = append(s.document, documents[chunk.Document])
		s.ordinal = append(s.ordinal, number(chunk.Ordinal))
		section := int32(-1)
		if chunk.Section != "" {
			key := [2]string{chunk.Document, chunk.Section}
			if _, known := sections[key]; !known {
				sections[key] = number(len(sections))
			}
			section = sections[key]
		}
		s.section = append(s.section, section)
	}
	s.near = func(ctx context.Context, chunkID string) ([]string, error) {
		list, err := c.graph.Neighborhood(ctx, chunkID, p.Proposals.Radius)
		ids := make([]string, len(list))
		for i := range list {
			ids[i] = list[i].ChunkID
		}
		return ids, err
	}
	return s
}

// neighborhood lists what is proposed around a chunk, nearest first.
func (s *space) neighborhood(ctx context.Context, at int32) ([]int32, error) {
	s.mu.Lock()
	list := s.neighbors[at]
	s.mu.Unlock()
	if list != nil {
		return list, nil
	}
	ids, err := s.near(ctx, s.ids[at])
	if err != nil {
		return nil, err
	}
	list = make([]int32, 0, len(ids))
	for _, id := range ids {
		list = append(list, s.at[id])
	}
	s.mu.Lock()
	s.neighbors[at] = list
	s.mu.Unlock()
	return list, nil
}

// Numbers of the moves, in the order of tuneMoves.
const (
	moveStay = iota
	moveNext
	movePrevious
	moveSection
	moveDocument
	moveJump
	moves
)

// tuneMoves are the moves that are told apart.
var tuneMoves = [moves]policy.Move{policy.MoveStay, policy.MoveNext, policy.MovePrevious, policy.MoveSection, policy.MoveDocument, policy.MoveJump}

// move classifies the move between two chunks, as policy.Transition.Move does.
func (s *space) move(from, to int32) int {
	switch {
	case from == to:
		return moveStay
	case s.document[from] != s.document[to]:
		return moveJump
	case s.ordinal[to] == s.ordinal[from]+1:
		return moveNext
	case s.ordinal[to] == s.ordinal[from]-1:
		return movePrevious
	case s.section[from] >= 0 && s.section[from] == s.section[to]:
		return moveSection
	}
	return moveDocument
}

// newTracks prepares the conversations of a world under the sections of the
// policy that are not tuned. Of the slices of an evaluation the objective looks
// at those by label, or where the data has no labels those by entropy.
func newTracks(ctx context.Context, w *World, p *policy.Policy, gammas []float64, workers int) ([]track, []Slice, *Results, error) {
	pointwise, err := BaselineMethod(Pointwise)
	if err != nil {
		return nil, nil, nil, err
	}
	results, err := Measure(ctx, w, []Method{pointwise}, &MeasureOptions{Workers: workers})
	if err != nil {
		return nil, nil, nil, err
	}
	list, _ := Slices(w.data, &results[0])
	spaces := map[*index]*space{}
	var mu sync.Mutex
	tracks := make([]track, len(w.data.Conversations))
	err = forEach(ctx, len(tracks), workers, func(ctx context.Context, i int) error {
		c := &w.data.Conversations[i]
		collection, err := w.Collection(ctx, c, p)
		if err != nil {
			return err
		}
		mu.Lock()
		if spaces[collection.index] == nil {
			spaces[collection.index] = newSpace(collection, p)
		}
		tracks[i].space = spaces[collection.index]
		mu.Unlock()
		tracks[i].turns, err = newTrackTurns(ctx, tracks[i].space, collection, c, p, gammas)
		if err != nil {
			return fmt.Errorf("conversation %q: %w", c.ID, err)
		}
		for j, r := range results[0].Conversations[i] {
			t := &tracks[i].turns[r.Turn]
			t.pointwise = r.Scores.Of(NDCG3)
			t.slices = sliceSetOf(list, i, j)
		}
		return nil
	}, nil)
	return tracks, list, &results[0], err
}

// sliceSetOf tells the slices of a scored turn.
func sliceSetOf(list []Slice, conversation, turn int) (set sliceSet) {
	in := func(names ...string) bool {
		for _, name := range names {
			if s := findSlice(list, name); s != nil && s.In[conversation][turn] {
				return true
			}
		}
		return false
	}
	followUp, standalone := SliceFollowUp, SliceStandalone
	if findSlice(list, followUp) == nil || findSlice(list, standalone) == nil {
		followUp, standalone = SliceFollowUpEntropy, SliceStandaloneEntropy
	}
	if in(followUp) {
		set |= inFollowUp
	}
	if in(standalone) {
		set |= inStandalone
	}
	if in(SliceTopicSwitch, SliceSeamSwitch, SliceSeamReturn) {
		set |= inSwitch
	}
	return set
}

// newTrackTurns searches for every turn of a conversation.
func newTrackTurns(ctx context.Context, s *space, collection *Collection, c *Conversation, p *policy.Policy, gammas []float64) ([]trackTurn, error) {
	parts, err := collection.Parts(p)
	if err != nil {
		return nil, err
	}
	var past []policy.PastTurn
	turns := make([]trackTurn, len(c.Turns))
	for t := range c.Turns {
		turn := policy.PastTurn{Query: c.Turns[t].Query, Vector: collection.turnVector(c, t)}
		if t > 0 {
			turn.Answer = c.Turns[t-1].Answer
		}
		past = append(past, turn)
		own := &turns[t]
		for i, gamma := range gammas {
			under := *untimed(p)
			under.Arms.Gamma = gamma
			lists, err := policy.ContextLists(ctx, &under, parts, past)
			if err != nil {
				return nil, fmt.Errorf("turn %d: %w", t+1, err)
			}
			hits := func(name string) []hit {
				list := make([]hit, len(lists[name]))
				for k, candidate := range lists[name] {
					list[k] = hit{s.at[candidate.ChunkID], candidate.Score}
				}
				return list
			}
			own.history = append(own.history, hits(policy.ArmHistory))
			if i == 0 {
				own.raw, own.answer = hits(policy.ArmRaw), hits(policy.ArmAnswer)
			}
		}
		own.features = policy.NewGateFeatures(turn.Query, parts.Analyze, parts.IDF, 0)
		own.label(s, c.Turns[t].Gold)
	}
	return turns, nil
}

// label says what counts as a hit.
func (t *trackTurn) label(s *space, gold []Gold) {
	if len(gold) == 0 {
		return
	}
	t.scored, t.best3 = true, bestGain(gold, 3)
	for pass := range 2 { // golds come before equivalents of others, see Score
		for i, g := range gold {
			ids := g.Equivalents
			if pass == 0 {
				ids = []string{g.ChunkID}
			}
			for _, id := range ids {
				at, known := s.at[id]
				if known && !slices.ContainsFunc(t.gold, func(x trackGold) bool { return x.at == at }) {
					t.gold = append(t.gold, trackGold{at, i, float64(g.Grade)})
				}
			}
		}
	}
}

// ndcg3 is nDCG@3 of a ranking, see Score.
func (t *trackTurn) ndcg3(ranking []int32) float64 {
	gain := 0.0
	var counted [3]int // golds, from 1
	for i, at := range ranking[:min(len(ranking), 3)] {
		for _, g := range t.gold {
			if g.at == at && !slices.Contains(counted[:], g.gold+1) {
				counted[i] = g.gold + 1
				gain += g.gain / discount(i+1)
			}
		}
	}
	return gain / t.best3
}
