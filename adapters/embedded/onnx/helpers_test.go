package onnx

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// tiny copies the model directory of the tests with some files changed. An
// empty content removes the file.
func tiny(t testing.TB, changes map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny-model")
	if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
		t.Fatal(err)
	}
	for name, content := range changes {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if content == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// poolingFile is the pooling configuration of tiny with another mode.
func poolingFile(mode pooling) map[string]string {
	return map[string]string{"1_Pooling/config.json": fmt.Sprintf(`{"word_embedding_dimension": 4, "pooling_mode": %q}`, mode)}
}

// state is E[id] of the tiny model, see testdata/generate.py.
func state(id int64, component int) float64 {
	return float64((7*int(id)+3*component)%11-5) / 4
}

// tinyStates is what the tiny model computes for a text.
func tinyStates(ids, mask []int64) []float32 {
	var sum [4]float64
	for i, id := range ids {
		for j := range sum {
			sum[j] += float64(mask[i]) * state(id, j)
		}
	}
	var states []float32
	for _, id := range ids {
		for j := range sum {
			x := state(id, j) + sum[j]/8
			if j == 0 {
				x += 0.5
			}
			states = append(states, float32(x))
		}
	}
	return states
}

// byHand is the vector of a text of the given tokens, worked out from the
// definition of the pooling.
func byHand(p pooling, ids []int64) []float64 {
	mask := make([]int64, len(ids))
	for i := range mask {
		mask[i] = 1
	}
	states := tinyStates(ids, mask)
	vector, squares := make([]float64, 4), 0.0
	for j := range vector {
		column := make([]float64, len(ids))
		sum, most := 0.0, math.Inf(-1)
		for i := range ids {
			column[i] = float64(states[4*i+j])
			sum += column[i]
			most = max(most, column[i])
		}
		vector[j] = map[pooling]float64{poolMean: sum / float64(len(ids)), poolCLS: column[0], poolMax: most}[p]
		squares += vector[j] * vector[j]
	}
	for j := range vector {
		vector[j] /= math.Sqrt(squares)
	}
	return vector
}

func near(t testing.TB, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d components, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(float64(got[i])-want[i]) > tolerance {
			t.Fatalf("%s: component %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// goEncoder is the tiny model without onnxruntime.
type goEncoder struct {
	mu      sync.Mutex
	shapes  [][2]int // rows and width of each call
	before  func(call int)
	lose    int // numbers left out of a reply
	closed  int
	failure error
}

func (g *goEncoder) encode(_ context.Context, ids, mask []int64, rows, width int) ([]float32, error) {
	g.mu.Lock()
	g.shapes = append(g.shapes, [2]int{rows, width})
	call := len(g.shapes)
	g.mu.Unlock()
	if g.before != nil {
		g.before(call)
	}
	var states []float32
	for row := range rows {
		part := func(list []int64) []int64 { return list[row*width : (row+1)*width] }
		states = append(states, tinyStates(part(ids), part(mask))...)
	}
	return states[:len(states)-g.lose], g.failure
}

func (g *goEncoder) close() error {
	g.closed++
	return g.failure
}

// tinyEmbedder is an embedder over the tiny directory without onnxruntime.
func tinyEmbedder(t testing.TB, changes map[string]string, opts Options) (*Embedder, *goEncoder) {
	t.Helper()
	d, err := openDirectory(tiny(t, changes))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.readModel(opts.ModelFile); err != nil {
		t.Fatal(err)
	}
	n, err := d.maxTokens(opts.MaxTokens)
	if err != nil {
		t.Fatal(err)
	}
	g := &goEncoder{}
	return newEmbedder(d, g, n, opts), g
}

// texts and the tokens that they have, special ones included.
var samples = []struct {
	text string
	ids  []int64
}{
	{"map noise", []int64{2, 4, 6, 3}},
	{"", []int64{2, 3}},
	{" The ROADS turn! ", []int64{2, 11, 7, 8, 9, 1, 3}},
	{"track", []int64{2, 5, 3}},
	{"a map a map a map a map a map", []int64{2, 10, 4, 10, 4, 10, 4, 10, 4, 3}}, // cut to 10
	{"maps", []int64{2, 4, 8, 3}},
	{"[SEP] track\n", []int64{2, 3, 5, 3}},
}

func sampleTexts() []string {
	var texts []string
	for _, s := range samples {
		texts = append(texts, s.text)
	}
	return texts
}

// regular lists the files below a directory.
func regular(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
