package mapmatched_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The road network of the examples: three chunks in a row, one apart.
func exampleGraph() *mapmatched.Graph {
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "hmm", To: "noise", Weight: 1, Type: mapmatched.EdgeNext},
		{From: "noise", To: "road-jumps", Weight: 1, Type: mapmatched.EdgeNext},
	}, &mapmatched.GraphOptions{MaximumDistance: 4})
	if err != nil {
		panic(err) // the edges above are fine
	}
	return graph
}

// The conversation of the examples.
var exampleTurns = [][]mapmatched.Candidate{
	{{ChunkID: "hmm", Score: 5}, {ChunkID: "noise", Score: 1}, {ChunkID: "road-jumps", Score: 0}},
	{{ChunkID: "hmm", Score: 1}, {ChunkID: "noise", Score: 3}, {ChunkID: "road-jumps", Score: 3.5}},
}

// The second turn taken alone goes to road-jumps, which scores 3.5. On a
// conversation that is at hmm, noise is the better answer: 3 − 1 > 3.5 − 2.
func ExampleSession_Observe() {
	session, err := mapmatched.NewSession(nil, exampleGraph(), &mapmatched.Config{
		ScoreNormalization: mapmatched.NormalizeNone,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, candidates := range exampleTurns {
		turn, err := session.Observe(context.Background(), "", candidates)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, context %s\n", turn.ChunkID, strings.Join(turn.ContextChunkIDs, " "))
	}
	// Output:
	// hmm, context hmm noise road-jumps
	// noise, context noise hmm road-jumps
}

// A session that asks a provider for the candidates of every turn.
func ExampleNewSession() {
	provider, err := mapmatched.NewSliceProvider(exampleTurns)
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := mapmatched.NewSession(provider, exampleGraph(), &mapmatched.Config{
		ScoreNormalization: mapmatched.NormalizeNone,
		TransitionWeight:   new(0.25), // the graph counts for less
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"What decodes a track?", "And when it leaps?"} {
		turn, err := session.Ask(context.Background(), mapmatched.Query{Text: text})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %s (confidence %.2f)\n", text, turn.ChunkID, turn.Confidence)
	}
	// Output:
	// What decodes a track? hmm (confidence 0.98)
	// And when it leaps? road-jumps (confidence 0.52)
}

func ExampleSession_KBest() {
	session, err := mapmatched.NewSession(nil, exampleGraph(), &mapmatched.Config{
		ScoreNormalization: mapmatched.NormalizeNone,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, candidates := range exampleTurns {
		if _, err := session.Observe(context.Background(), "", candidates); err != nil {
			fmt.Println(err)
			return
		}
	}
	paths, err := session.KBest(context.Background(), 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range paths {
		fmt.Println(path.Score, strings.Join(path.ChunkIDs, " -> "))
	}
	// Output:
	// 7 hmm -> noise
	// 6.5 hmm -> road-jumps
	// 6 hmm -> hmm
}

// greedy is a decoder that decides every turn on its own.
type greedy struct{}

func (greedy) Decode(ctx context.Context, t *mapmatched.Trellis) (mapmatched.Decoding, error) {
	var d mapmatched.Decoding
	for _, column := range t.Columns {
		best := -1
		for x, emission := range column.Emission {
			if best < 0 || emission > column.Emission[best] {
				best = x
			}
		}
		d.Path = append(d.Path, best)
		if best >= 0 {
			d.Scores = column.Emission
		}
	}
	return d, nil
}

func ExampleCompareDecoders() {
	session, err := mapmatched.NewSession(nil, exampleGraph(), &mapmatched.Config{
		ScoreNormalization: mapmatched.NormalizeNone,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, candidates := range exampleTurns {
		if _, err := session.Observe(context.Background(), "", candidates); err != nil {
			fmt.Println(err)
			return
		}
	}
	trellis, err := session.Trellis()
	if err != nil {
		fmt.Println(err)
		return
	}
	difference, err := mapmatched.CompareDecoders(context.Background(), mapmatched.Viterbi{}, greedy{}, trellis, 1e-9)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(difference)
	// Output:
	// after 2 turns, turn 1: path through "noise" and "road-jumps"
}

func ExampleGraph() {
	graph := exampleGraph()
	from, to := []string{"hmm", "elsewhere"}, []string{"noise", "road-jumps", "elsewhere"}
	distances := make([]float64, len(from)*len(to))
	if err := graph.Distances(context.Background(), from, to, distances); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(distances[:3], distances[3:])
	near, err := graph.Neighborhood(context.Background(), "hmm", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(near)
	for edge, err := range graph.Edges(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(edge.From, edge.To, edge.Weight, edge.Type)
	}
	// Output:
	// [1 2 4] [4 4 0]
	// [{noise 1} {road-jumps 2}]
	// hmm noise 1 next
	// noise road-jumps 1 next
}

func ExampleConfig() {
	_, err := mapmatched.NewSession(nil, nil, &mapmatched.Config{
		TransitionWeight: new(0.0),
		FixedLag:         new(-1),
		Temperature:      -3,
	})
	fmt.Println(err)
	// Output:
	// new session: fixed_lag is -1: invalid configuration: it must be at least 0
	// temperature is -3: invalid configuration: it must be between 1e-6 and 1e6
}
