package adaptertest

import (
	"fmt"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

func checkScoreChunks(s providerSuite, p mapmatched.CandidateProvider) error {
	scorer, ok := p.(mapmatched.ChunkScorer)
	if !ok {
		return skip("the provider does not implement ChunkScorer")
	}
	for _, q := range append(s.corpus.plain(), s.corpus.query("road")) {
		candidates, err := s.full(s.ctx, p, q)
		if err != nil {
			return err
		}
		asked := append([]string{unknownChunk}, s.corpus.ids()...)
		before := slices.Clone(asked)
		got, err := scorer.ScoreChunks(s.ctx, q, asked)
		if err != nil {
			return fmt.Errorf("query %q: %w", q.Text, err)
		}
		if !slices.Equal(asked, before) {
			return fmt.Errorf("query %q: the call changed the IDs it was given", q.Text)
		}
		scores := make(map[string]float64, len(got))
		for _, g := range got {
			_, known := s.corpus.chunk(g.ChunkID)
			_, again := scores[g.ChunkID]
			if !known || again || !finite(g.Score) {
				return fmt.Errorf("query %q: chunk %q with score %v: in the corpus %v, given before %v, want a finite score for a chunk of the corpus, once",
					q.Text, g.ChunkID, g.Score, known, again)
			}
			scores[g.ChunkID] = g.Score
		}
		for _, c := range candidates {
			score, ok := scores[c.ChunkID]
			if !ok || math.Abs(score-c.Score) > 1e-6*max(1, math.Abs(c.Score)) {
				return fmt.Errorf("query %q, chunk %q: score %v (given %v), want %v as in Candidates", q.Text, c.ChunkID, score, ok, c.Score)
			}
		}
	}
	if got, err := scorer.ScoreChunks(s.ctx, s.corpus.query("road"), nil); err != nil || len(got) > 0 {
		return fmt.Errorf("no chunks to score: %v with error %v, want nothing", got, err)
	}
	return nil
}

func checkFetchChunks(s providerSuite, p mapmatched.CandidateProvider) error {
	fetcher, ok := p.(mapmatched.ChunkFetcher)
	if !ok {
		return skip("the provider does not implement ChunkFetcher")
	}
	asked := s.corpus.ids()
	slices.Reverse(asked)
	want := slices.Clone(asked)
	asked = slices.Insert(asked, 1, unknownChunk)
	before := slices.Clone(asked)
	got, err := fetcher.Chunks(s.ctx, asked)
	if err != nil {
		return err
	}
	if !slices.Equal(asked, before) {
		return fmt.Errorf("the call changed the IDs it was given")
	}
	ids := make([]string, len(got))
	for i, chunk := range got {
		ids[i] = chunk.ID
	}
	if !slices.Equal(ids, want) {
		return fmt.Errorf("chunks %q, want %q: the order asked, the unknown one left out", ids, want)
	}
	for _, chunk := range got {
		if known, _ := s.corpus.chunk(chunk.ID); chunk.Text != known.Text {
			return fmt.Errorf("chunk %q: text %q, want %q", chunk.ID, chunk.Text, known.Text)
		}
	}
	if got, err := fetcher.Chunks(s.ctx, nil); err != nil || len(got) > 0 {
		return fmt.Errorf("no chunks to fetch: %d with error %v, want nothing", len(got), err)
	}
	return nil
}

func checkFetchVectors(s providerSuite, p mapmatched.CandidateProvider) error {
	fetcher, ok := p.(mapmatched.VectorFetcher)
	if !ok {
		return skip("the provider does not implement VectorFetcher")
	}
	asked := s.corpus.ids()
	slices.Reverse(asked)
	asked = slices.Insert(asked, 1, unknownChunk)
	before := slices.Clone(asked)
	got, err := fetcher.Vectors(s.ctx, asked)
	if err != nil {
		return err
	}
	if !slices.Equal(asked, before) {
		return fmt.Errorf("the call changed the IDs it was given")
	}
	if len(got) != len(asked) {
		return fmt.Errorf("%d vectors for %d chunks, want one place for each", len(got), len(asked))
	}
	if got[1] != nil {
		return fmt.Errorf("unknown chunk: a vector of dimension %d, want nil", len(got[1]))
	}
	byID := make(map[string][]float32, len(asked))
	dimension := 0
	for i, vector := range got {
		byID[asked[i]] = vector
		if vector == nil {
			continue // a known chunk may have none
		}
		if dimension == 0 {
			dimension = len(vector)
		}
		if len(vector) != dimension || dimension == 0 {
			return fmt.Errorf("chunk %q: dimension %d, want %d as of the others", asked[i], len(vector), dimension)
		}
		if slices.ContainsFunc(vector, func(x float32) bool { return !finite(float64(x)) }) {
			return fmt.Errorf("chunk %q: its vector is not finite", asked[i])
		}
	}
	// One by one they must be the same: the order is the one asked for.
	for _, id := range s.corpus.ids() {
		single, err := fetcher.Vectors(s.ctx, []string{id})
		if err != nil || len(single) != 1 || !slices.Equal(single[0], byID[id]) {
			return fmt.Errorf("chunk %q: alone it has another vector than among others (%d vectors, error %v)", id, len(single), err)
		}
	}
	if got, err := fetcher.Vectors(s.ctx, nil); err != nil || len(got) > 0 {
		return fmt.Errorf("no vectors to fetch: %d with error %v, want nothing", len(got), err)
	}
	return nil
}
