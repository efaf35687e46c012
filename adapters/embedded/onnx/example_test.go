//go:build onnx && cgo

package onnx_test

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/adapters/embedded/onnx"
)

// The directory of the tests has a model of twelve words.
func ExampleOpen() {
	ctx := context.Background()
	e, err := onnx.Open(ctx, "testdata/tiny", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close() //nolint:errcheck // nothing is written
	vectors, err := e.Embed(ctx, []string{"a track", "the road turns"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range vectors {
		fmt.Printf("%.3f\n", v)
	}
	id := e.Identity()
	fmt.Println(id.Provider, id.Model, id.Revision[:8], id.Dimension, id.Normalization)
	// Output:
	// [0.278 0.000 0.769 -0.576]
	// [0.363 -0.659 0.000 0.659]
	// onnx tiny a3637bc8 4 l2
}
