package graphbuild

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fakeStore is a store of vectors.
type fakeStore struct {
	ids     []string
	vectors map[string][]float32
	batches []int
	short   bool // leaves the last vector of an answer out
	fail    error
}

func (s *fakeStore) ChunkIDs(context.Context) ([]string, error) { return s.ids, s.fail }

func (s *fakeStore) Vectors(_ context.Context, ids []string) ([][]float32, error) {
	s.batches = append(s.batches, len(ids))
	var out [][]float32
	for _, id := range ids {
		out = append(out, s.vectors[id])
	}
	if s.short {
		out = out[:len(out)-1]
	}
	return out, nil
}

func TestStoreKNN(t *testing.T) {
	ctx := context.Background()
	ids, vectors := randomVectors(rand.New(rand.NewPCG(1, 1)), 25, 4)
	s := &fakeStore{ids: slices.Concat(ids[:9], []string{"bare"}, ids[9:]), vectors: map[string][]float32{}}
	for i, id := range ids {
		s.vectors[id] = vectors[i]
	}
	want, err := KNN(ctx, ids, vectors, &KNNOptions{K: 3})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	edges, missing, err := StoreKNN(ctx, s, &FetchOptions{Batch: 10, Progress: func(done, total int) { told = append(told, fmt.Sprint(done, "/", total)) }}, &KNNOptions{K: 3})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(edges, want) || !reflect.DeepEqual(missing, []string{"bare"}) {
		t.Errorf("%d edges, missing %q, want %d edges", len(edges), missing, len(want))
	}
	if !reflect.DeepEqual(s.batches, []int{10, 10, 6}) || strings.Join(told, " ") != "10/26 20/26 26/26" {
		t.Errorf("batches %v, progress %v", s.batches, told)
	}

	empty, err := FetchVectors(ctx, &fakeStore{}, nil)
	if err != nil || len(empty.IDs) != 0 {
		t.Errorf("empty store: %+v, %v", empty, err)
	}
	if _, err := FetchVectors(ctx, s, &FetchOptions{Batch: -1}); err == nil {
		t.Error("no error for a batch of -1")
	}
	s.short = true
	if _, err := FetchVectors(ctx, s, nil); err == nil || !strings.Contains(err.Error(), "the store gave 25 for 26 chunks") {
		t.Errorf("short answer: error %v", err)
	}
	s.fail = errors.New("down")
	if _, err := FetchVectors(ctx, s, nil); !errors.Is(err, s.fail) {
		t.Errorf("store down: error %v", err)
	}
	s.fail = nil
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := FetchVectors(done, s, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
