package faiss_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mapmatched/mmplug/adapters/faiss"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Write an index and the chunks of its vectors, open both, and ask.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "faiss")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index, ids := filepath.Join(dir, "index.faiss"), filepath.Join(dir, "ids.jsonl")
	if err := faiss.WriteFlatFile(index, faiss.MetricL2, 0, [][]float32{{3, 4}, {1, 0}}, nil); err != nil {
		fmt.Println(err)
		return
	}
	lines := `{"id": "far", "text": "Three east, four north."}` + "\n" + `"near"` + "\n"
	if err := os.WriteFile(ids, []byte(lines), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	provider, err := faiss.Open(ctx, index, ids, &faiss.Options{Mode: faiss.ModeDistance})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = provider.Close() }()
	found, err := provider.Candidates(ctx, mapmatched.Query{Vector: []float32{0, 0}}, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range found {
		fmt.Printf("%s %g %q\n", c.ChunkID, c.Score, c.Text)
	}
	// Output:
	// near -1 ""
	// far -25 "Three east, four north."
}
