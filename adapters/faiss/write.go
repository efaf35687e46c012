package faiss

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// WriteFlat writes a flat index of vectors, for MetricInnerProduct or MetricL2,
// that FAISS 1.5 and later read. The FAISS ID of a vector is its position; with
// ids, one for each vector, none negative and none twice, the index is within an
// IndexIDMap2 that has them. Rows of different lengths, of no length or with a
// number that is not finite are errors that name the row; dimension is that of
// an index without vectors, else 0 or that of the rows.
func WriteFlat(w io.Writer, metric Metric, dimension int, vectors [][]float32, ids []int64) error {
	if metric != MetricInnerProduct && metric != MetricL2 {
		return fmt.Errorf("a flat index for %v cannot be written: use inner product or L2", metric)
	}
	if len(vectors) > 0 && dimension == 0 {
		dimension = len(vectors[0])
	}
	if dimension < 1 || dimension > math.MaxInt32 {
		return fmt.Errorf("an index cannot have %d dimensions", dimension)
	}
	for i, v := range vectors {
		if len(v) != dimension {
			return fmt.Errorf("row %d has %d dimensions, want %d", i, len(v), dimension)
		}
		if err := finite(v); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	if ids != nil {
		if len(ids) != len(vectors) {
			return fmt.Errorf("there are %d IDs for %d vectors", len(ids), len(vectors))
		}
		sorted, err := sortedIDs(ids)
		if err != nil {
			return err
		}
		if len(sorted) > 0 && sorted[0] < 0 {
			return fmt.Errorf("the ID %d is negative; negative IDs stand for no vector", sorted[0])
		}
	}
	out := bufio.NewWriterSize(w, 1<<16)
	code := "IxFI"
	if metric == MetricL2 {
		code = "IxF2"
	}
	if ids != nil {
		putHeader(out, "IxM2", metric, dimension, len(vectors))
	}
	putHeader(out, code, metric, dimension, len(vectors))
	put(out, uint64(len(vectors))*uint64(dimension))
	for _, v := range vectors {
		put(out, v)
	}
	if ids != nil {
		put(out, uint64(len(ids)))
		put(out, ids)
	}
	return out.Flush()
}

// put writes little-endian numbers; a bufio.Writer keeps its first error for
// Flush.
func put(w *bufio.Writer, v any) { _ = binary.Write(w, binary.LittleEndian, v) }

// putHeader writes what every index begins with.
func putHeader(w *bufio.Writer, code string, metric Metric, dimension, count int) {
	_, _ = w.WriteString(code)
	put(w, int32(dimension))
	put(w, int64(count))
	put(w, [2]int64{1 << 20, 1 << 20}) // FAISS writes these where nothing is meant
	put(w, true)
	put(w, int32(metric))
}

// WriteFlatFile is [WriteFlat] to a file, which is replaced in one step.
func WriteFlatFile(path string, metric Metric, dimension int, vectors [][]float32, ids []int64) (err error) {
	const op = "write"
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return classify(op, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // nothing else can be done about it
		}
	}()
	err = WriteFlat(f, metric, dimension, vectors, ids)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return classify(op, fmt.Errorf("%s: %w", path, err))
	}
	return classify(op, os.Rename(f.Name(), path))
}
