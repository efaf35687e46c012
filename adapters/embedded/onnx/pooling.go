package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// pooling makes one vector of the states of a text's tokens.
type pooling string

const (
	poolMean pooling = "mean" // of all tokens, special ones included
	poolCLS  pooling = "cls"  // the first token
	poolMax  pooling = "max"  // the greatest of all tokens, in each component
)

func (p pooling) known() bool { return p == poolMean || p == poolCLS || p == poolMax }

// pool returns the vector, of unit length, of a text whose tokens have the given
// states, dimension components each. There is at least one token.
func (p pooling) pool(states []float32, dimension int) ([]float32, error) {
	sum := make([]float64, dimension)
	for i, x := range states[:dimension] {
		sum[i] = float64(x)
	}
	if p != poolCLS {
		for at := dimension; at < len(states); at += dimension {
			for i, x := range states[at : at+dimension] {
				if p == poolMean {
					sum[i] += float64(x) // the length is lost anyway, so no division
				} else {
					sum[i] = math.Max(sum[i], float64(x))
				}
			}
		}
	}
	squares := 0.0
	for i, x := range sum {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("component %d of the vector is %v: %w", i, x, mapmatched.ErrNonFinite)
		}
		squares += float64(x * x)
	}
	if squares == 0 {
		return nil, errors.New("the vector is zero and has no direction")
	}
	length := math.Sqrt(squares)
	vector := make([]float32, dimension)
	for i, x := range sum {
		vector[i] = float32(x / length)
	}
	return vector, nil
}
