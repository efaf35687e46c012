//go:build !faiss || !cgo

package faiss

import (
	"errors"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestNativeIsExplained(t *testing.T) {
	_, err := OpenIndex(t.Context(), testFile("flat_l2.faiss"), &IndexOptions{Engine: EngineNative})
	wantError(t, err, mapmatched.KindInvalid, "libfaiss is not part of this program", "-tags faiss")
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v is no ErrUnsupported", err)
	}
	_, err = OpenIndex(t.Context(), testFile("pq.faiss"), nil)
	wantError(t, err, mapmatched.KindInvalid, "not supported by the Go code", "IndexPQ", "-tags faiss")
	for _, opts := range []*IndexOptions{{Engine: EngineGo}, {Exact: true}} {
		_, err = OpenIndex(t.Context(), testFile("pq.faiss"), opts)
		wantError(t, err, mapmatched.KindInvalid, `"IxPq"`, "-tags faiss")
	}
}
