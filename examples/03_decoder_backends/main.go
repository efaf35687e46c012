// Command 03_decoder_backends puts a decoder of its own beside the built-in
// one: a greedy one, which never looks back, and an exhaustive one, which
// looks at every path. The comparison names the first difference.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/mapmatched/mmplug/mapmatched"
)

// greedy takes the best move of each turn and never revises it.
type greedy struct{}

// Decode implements mapmatched.Decoder.
func (greedy) Decode(ctx context.Context, t *mapmatched.Trellis) (mapmatched.Decoding, error) {
	path := make([]int, len(t.Columns))
	var scores []float64
	for i, column := range t.Columns {
		path[i] = -1
		scores = scores[:0]
		prefix := mapmatched.Trellis{TransitionWeight: t.TransitionWeight, Columns: t.Columns[:i+1]}
		best := 0.0
		for x := range column.ChunkIDs {
			trial := append(append([]int{}, path[:i]...), x)
			score, err := prefix.Score(trial)
			if err != nil {
				return mapmatched.Decoding{}, err
			}
			scores = append(scores, score)
			if path[i] < 0 || score > best {
				path[i], best = x, score
			}
		}
	}
	return mapmatched.Decoding{Path: path, Scores: scores}, ctx.Err()
}

// exhaustive scores every path, for conversations of a few turns.
type exhaustive struct{}

// Decode implements mapmatched.Decoder.
func (exhaustive) Decode(ctx context.Context, t *mapmatched.Trellis) (mapmatched.Decoding, error) {
	last := len(t.Columns) - 1
	d := mapmatched.Decoding{Scores: make([]float64, len(t.Columns[last].ChunkIDs))}
	seen := make([]bool, len(d.Scores))
	best := 0.0
	path := make([]int, len(t.Columns))
	var walk func(turn int) error
	walk = func(turn int) error {
		if turn <= last {
			for path[turn] = range t.Columns[turn].ChunkIDs {
				if err := walk(turn + 1); err != nil {
					return err
				}
			}
			return ctx.Err()
		}
		score, err := t.Score(path)
		if err != nil {
			return err
		}
		end := path[last]
		if !seen[end] || score > d.Scores[end] {
			seen[end], d.Scores[end] = true, score
		}
		if d.Path == nil || score > best {
			d.Path, best = append([]int{}, path...), score
		}
		return nil
	}
	return d, walk(0)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "hmm", To: "noise", Weight: 1},
		{From: "noise", To: "road-jumps", Weight: 1},
	}, &mapmatched.GraphOptions{MaximumDistance: 4})
	if err != nil {
		return err
	}
	session, err := mapmatched.NewSession(nil, graph, &mapmatched.Config{ScoreNormalization: mapmatched.NormalizeNone})
	if err != nil {
		return err
	}
	// The first turn leans to road-jumps; the second makes clear that it was hmm.
	for _, turn := range [][]mapmatched.Candidate{
		{{ChunkID: "road-jumps", Score: 1.5}, {ChunkID: "hmm", Score: 1}},
		{{ChunkID: "hmm", Score: 3}, {ChunkID: "noise", Score: 0}},
	} {
		if _, err := session.Observe(ctx, "", turn); err != nil {
			return err
		}
	}
	trellis, err := session.Trellis()
	if err != nil {
		return err
	}
	for _, backend := range []struct {
		name string
		mapmatched.Decoder
	}{{"greedy", greedy{}}, {"exhaustive", exhaustive{}}} {
		difference, err := mapmatched.CompareDecoders(ctx, mapmatched.Viterbi{}, backend, trellis, 1e-9)
		if err != nil {
			return err
		}
		verdict := "agrees with Viterbi"
		if difference != nil {
			verdict = "differs from Viterbi " + difference.String()
		}
		if _, err := fmt.Fprintf(w, "%s %s\n", backend.name, verdict); err != nil {
			return err
		}
	}
	return nil
}
