//go:build !onnx || !cgo

package onnx

import (
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// A program without onnxruntime says so, and how to get one with it.
func TestWithoutRuntime(t *testing.T) {
	_, err := Open(t.Context(), tiny(t, nil), nil)
	if err == nil || mapmatched.KindOf(err) != mapmatched.KindUnavailable || !strings.Contains(err.Error(), "go build -tags onnx") {
		t.Errorf("error %v", err)
	}
}
