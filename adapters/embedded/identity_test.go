package embedded

import (
	"slices"
	"testing"
)

// A model that only its name tells apart is the same one where a revision says
// so.
func TestDifferences(t *testing.T) {
	made := VectorIdentity{"onnx", "MiniLM", "r1", 3, NormalizationL2}
	for _, test := range []struct {
		got, other VectorIdentity
		want       []string
	}{
		{made, made, nil},
		{made, VectorIdentity{"onnx", "renamed", "r1", 3, NormalizationL2}, nil},
		{made, VectorIdentity{"onnx", "renamed", "r2", 3, NormalizationL2}, []string{`model is "MiniLM", wanted "renamed"`, `revision is "r1", wanted "r2"`}},
		{made, VectorIdentity{"other", "renamed", "r1", 3, NormalizationL2}, []string{`provider is "onnx", wanted "other"`, `model is "MiniLM", wanted "renamed"`}},
		{VectorIdentity{Provider: "a", Model: "b"}, VectorIdentity{Provider: "a", Model: "c"}, []string{`model is "b", wanted "c"`}},
	} {
		if got := test.got.Differences(test.other); !slices.Equal(got, test.want) {
			t.Errorf("%+v, %+v: %q, want %q", test.got, test.other, got, test.want)
		}
	}
}
