package mapmatched_test

import (
	"fmt"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// stored is a trace as it is kept beside an answer.
const stored = `{
  "schema": "mapmatched.trace/1", "score_model": "decode_v1",
  "path_chunk_ids": ["hmm", "noise"], "revised_prior_indices": [],
  "fixed_lag": null, "committed_through_index": null,
  "steps": [
    {"turn_index": 0, "chunk_id": "hmm", "raw_emission_score": 5, "normalized_emission_score": 5,
     "weighted_emission_score": 5, "graph_distance": 0, "weighted_transition_cost": 0, "cumulative_score": 5,
     "emission_entropy": 0.125, "normalized_emission_margin": 4},
    {"turn_index": 1, "chunk_id": "noise", "raw_emission_score": 3, "normalized_emission_score": 3,
     "weighted_emission_score": 3, "graph_distance": 1, "weighted_transition_cost": 1, "cumulative_score": 7,
     "emission_entropy": 0.75, "normalized_emission_margin": -0.5, "move": "drill"}
  ]
}`

func ExampleTrace_Text() {
	trace, err := mapmatched.ReadTrace(strings.NewReader(stored))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(trace.Text())
	// Output:
	// path: hmm -> noise
	// mode: full
	// revised prior turns: none
	// committed through turn: none
	//
	// turn  chunk  raw  normalized  emission  distance  transition  entropy  margin  cumulative
	// ----  -----  ---  ----------  --------  --------  ----------  -------  ------  ----------
	//    0  hmm      5           5         5         0           0    0.125       4           5
	//    1  noise    3           3         3         1           1     0.75    -0.5           7
}

func ExampleDiffTraces() {
	before, err := mapmatched.ReadTrace(strings.NewReader(stored))
	if err != nil {
		fmt.Println(err)
		return
	}
	pointwise := strings.NewReplacer(`"noise"`, `"road-jumps"`, `"drill"`, `"jump"`).Replace(stored)
	after, err := mapmatched.ReadTrace(strings.NewReader(pointwise))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mapmatched.DiffTraces(before, after))
	// Output:
	// the traces were made with the same settings, so their scores are comparable
	// turn 1: chunk is noise in the first, road-jumps in the second
	// turn 1: move is drill in the first, jump in the second
	// 1 of 2 turns in both traces differ
}
