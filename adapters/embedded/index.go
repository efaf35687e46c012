package embedded

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"sync"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Index is an open index. It is safe for concurrent use. What its methods
// return is copied out of the files and stays valid after Close.
type Index struct {
	opts     Options
	manifest Manifest
	maps     [][]byte // what is to be unmapped

	text    []byte
	chunks  []uint64
	order   []uint32
	edges   []byte
	vectors []float32
	lexical *lexical.Index

	mu     sync.Mutex
	users  int // calls that are reading the maps
	closed bool
}

// Manifest returns the manifest of the index. It answers after Close too.
func (x *Index) Manifest() Manifest { return x.manifest.clone() }

// Close implements io.Closer. It does not wait: calls that are running finish
// normally, later ones fail with mapmatched.ErrClosed, and the files are
// released with the last of them. Closing again does nothing.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.closed = true
		if x.users == 0 {
			x.unmap()
		}
	}
	return nil
}

// Health implements mapmatched.HealthChecker: an index that is open can answer.
func (x *Index) Health(ctx context.Context) error {
	return x.do(ctx, "health", func() error { return nil })
}

// acquire keeps the maps until release.
func (x *Index) acquire(op string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return classify(op, mapmatched.ErrClosed)
	}
	x.users++
	return nil
}

func (x *Index) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.users--
	if x.closed && x.users == 0 {
		x.unmap()
	}
}

// unmap gives the maps back. Unmapping a region that was mapped cannot fail.
func (x *Index) unmap() {
	for _, m := range x.maps {
		_ = disk.Unmap(m)
	}
	x.maps = nil
}

// do runs one operation on the maps.
func (x *Index) do(ctx context.Context, op string, run func() error) error {
	if err := x.acquire(op); err != nil {
		return err
	}
	defer x.release()
	return x.guarded(ctx, op, run)
}

// guarded runs what reads the maps unless ctx is done. A file that was
// truncated after it was mapped makes such a read fault; the fault becomes an
// error, as far as the system lets it.
func (x *Index) guarded(ctx context.Context, op string, run func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return classify(op, err)
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fail(op, mapmatched.KindCorrupt, fmt.Errorf("%w: a file was cut while the index was open (%v): build it again", errDamaged, r))
		default:
			panic(r)
		}
	}()
	return classify(op, run())
}

// Columns of a chunk record. The first five are strings and take two numbers.
const (
	columnID       = 0
	columnDocument = 2
	columnTitle    = 4
	columnSection  = 6
	columnText     = 8
	columnOrdinal  = 10
	columnStart    = 11
	columnEnd      = 12
	columns        = 13
)

// record returns the record of the chunk at a position.
func (x *Index) record(position uint32) ([]uint64, error) {
	if int64(position) >= int64(x.manifest.Counts.Chunks) {
		return nil, damaged(orderName+" or "+edgesName, "chunk %d of %d is named", position, x.manifest.Counts.Chunks)
	}
	first := int(position) * columns
	return x.chunks[first : first+columns], nil
}

// str returns the string that a column of a record refers to.
func (x *Index) str(record []uint64, column int) ([]byte, error) {
	at, size := record[column], record[column+1]
	if n := uint64(len(x.text)); at > n || size > n-at {
		return nil, damaged(chunksName, "a string is %d bytes at byte %d of %d", size, at, n)
	}
	return x.text[at : at+size], nil
}

// id returns the chunk ID at a position.
func (x *Index) id(position uint32) ([]byte, error) {
	record, err := x.record(position)
	if err != nil {
		return nil, err
	}
	return x.str(record, columnID)
}

// find returns the position of a chunk by binary search.
func (x *Index) find(id string) (position uint32, found bool, err error) {
	low, high := 0, len(x.order)
	for low < high {
		middle := int(uint(low+high) / 2)
		at := x.order[middle]
		got, err := x.id(at)
		if err != nil {
			return 0, false, err
		}
		switch {
		case string(got) == id:
			return at, true, nil
		case string(got) < id:
			low = middle + 1
		default:
			high = middle
		}
	}
	return 0, false, nil
}

// chunk returns a copy of the chunk at a position.
func (x *Index) chunk(position uint32) (mapmatched.Chunk, error) {
	record, err := x.record(position)
	if err != nil {
		return mapmatched.Chunk{}, err
	}
	var c mapmatched.Chunk
	for _, s := range []struct {
		column int
		to     *string
	}{
		{columnID, &c.ID}, {columnDocument, &c.Document}, {columnTitle, &c.Title},
		{columnSection, &c.Section}, {columnText, &c.Text},
	} {
		b, err := x.str(record, s.column)
		if err != nil {
			return mapmatched.Chunk{}, err
		}
		*s.to = string(b)
	}
	for _, n := range []struct {
		column int
		to     *int
	}{{columnOrdinal, &c.Ordinal}, {columnStart, &c.Start}, {columnEnd, &c.End}} {
		if record[n.column] > math.MaxInt {
			return mapmatched.Chunk{}, damaged(chunksName, "chunk %q has the number %d", c.ID, record[n.column])
		}
		*n.to = int(record[n.column])
	}
	return c, nil
}

// Chunks implements mapmatched.ChunkFetcher.
func (x *Index) Chunks(ctx context.Context, chunkIDs []string) ([]mapmatched.Chunk, error) {
	chunks := make([]mapmatched.Chunk, 0, len(chunkIDs))
	err := x.do(ctx, "chunks", func() error {
		return x.each(ctx, chunkIDs, func(_ int, position uint32) error {
			c, err := x.chunk(position)
			chunks = append(chunks, c)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return chunks, nil
}

// ChunkIDs returns the IDs of all chunks by position.
func (x *Index) ChunkIDs(ctx context.Context) ([]string, error) {
	ids := make([]string, x.manifest.Counts.Chunks)
	err := x.do(ctx, "chunk ids", func() error {
		for i := range ids {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			id, err := x.id(uint32(i))
			if err != nil {
				return err
			}
			ids[i] = string(id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Vectors implements mapmatched.VectorFetcher. Vectors have unit length.
func (x *Index) Vectors(ctx context.Context, chunkIDs []string) ([][]float32, error) {
	vectors := make([][]float32, len(chunkIDs))
	err := x.do(ctx, "vectors", func() error {
		if x.manifest.Counts.Vectors == 0 {
			return nil
		}
		return x.each(ctx, chunkIDs, func(i int, position uint32) error {
			vectors[i] = append([]float32(nil), x.row(position)...)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return vectors, nil
}

// each calls visit for each known chunk with its place in chunkIDs and its
// position.
func (x *Index) each(ctx context.Context, chunkIDs []string, visit func(i int, position uint32) error) error {
	for i, id := range chunkIDs {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		position, found, err := x.find(id)
		if err != nil {
			return err
		}
		if found {
			if err := visit(i, position); err != nil {
				return err
			}
		}
	}
	return nil
}
