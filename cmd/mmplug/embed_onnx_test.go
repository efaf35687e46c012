//go:build onnx && cgo

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// A model directory and its URL are one model, under whatever name; the same
// files with another limit of the tokens are not, nor are other files.
func TestEmbedWithDirectory(t *testing.T) {
	const model = "../../adapters/embedded/onnx/testdata/tiny"
	dir, _ := embeddedDocs(t, model, 2)
	for _, spec := range []string{model, "onnx:" + model, "onnx:" + model + "?name=other"} {
		x, e, err := (&armFlags{embed: spec}).open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		candidates, err := x.Candidates(t.Context(), mapmatched.Query{Text: "a track"}, 3)
		if err != nil || len(candidates) != 3 {
			t.Errorf("%s: %v, %v", spec, candidates, err)
		}
		x.Close() //nolint:errcheck // only read
		e.close()
	}
	for _, other := range []string{"file=onnx/no_types.onnx", "max_tokens=5"} {
		_, _, err := (&armFlags{embed: "onnx:" + model + "?" + other}).open(t.Context(), dir)
		if !errors.Is(err, mapmatched.ErrStaleIndex) || !strings.Contains(err.Error(), "revision is") {
			t.Errorf("%s: error %v", other, err)
		}
	}
}
