package graphbuild

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/mapmatched/mmplug/mapmatched"
)

// A distance table holds for each source the nodes within the maximum distance
// and how far they are (the upper-bounded origin–destination table of Yang and
// Gidófalvi, Fast map matching, 2018). A row is
//
//	distances float64 × n, targets uint32 × n ascending, padding to 8 bytes
//
// without the source itself. Distances are those of the search.

// rowWords is how many words of 8 bytes a row of n targets takes.
func rowWords(n int) int { return n + (n+1)/2 }

// rowTargets is how many targets a row of some words has.
func rowTargets(words uint64) int { return int(words * 2 / 3) }

// estimateBatch is how many searches of an estimate run at a time, on any number
// of cores, so that an estimate that stops early is the same on all machines.
const estimateBatch = 8

// tableBytes estimates the bytes of the table from searches from
// estimateSources nodes, evenly spaced, and the mean number of nodes within reach of one. It stops when
// the rows found, with no others in the sample, make an estimate over enough.
func tableBytes(ctx context.Context, a *mapmatched.Adjacency, maximum float64, enough int64, p *progress) (bytes int64, reach float64, err error) {
	n := len(a.First) - 1
	sources := min(estimateSources, n)
	offsets := int64(8 * (n + 1))
	scaled := func(words, searched int) int64 { return int64(8*float64(words)*float64(n)/float64(searched)) + offsets }
	words, searched, reached := 0, 0, 0
	batches := (sources + estimateBatch - 1) / estimateBatch
	for first := range batches { // each of them spread over the graph
		batch := (sources - first + batches - 1) / batches
		counts, errs := make([]int, batch), make([]error, batch)
		p.stage(progressTotal*(first+1)/batches, batch)
		err := forEach(ctx, batch, p, func() func(i int) {
			s := mapmatched.NewSearch(n)
			return func(i int) {
				errs[i] = s.Within(ctx, a, int32((first+i*batches)*n/sources), maximum)
				counts[i] = len(s.Settled()) - 1
			}
		})
		if err = cmp.Or(errors.Join(errs...), err); err != nil {
			return 0, 0, err
		}
		for _, c := range counts {
			words += rowWords(c)
			reached += c
		}
		if searched += batch; scaled(words, sources) > enough {
			break
		}
	}
	p.finish()
	if searched == 0 {
		return offsets, 0, nil
	}
	return scaled(words, searched), float64(reached) / float64(searched), nil
}

// tableBlock is how many rows a worker makes at a time.
const tableBlock = 64

// errOverLimit: an index is larger than it may be.
type errOverLimit struct{ limit int64 }

func (errOverLimit) Error() string { return "over the limit" }

// writeTable searches from every node, on all cores, and writes the rows in
// order. It fails with errOverLimit as soon as rows and offsets take more
// bytes than limit.
func writeTable(ctx context.Context, a *mapmatched.Adjacency, maximum float64, limit int64, w interface{ Write([]byte) (int, error) }, progress func(done, total int)) (first []uint64, err error) {
	n := len(a.First) - 1
	first = make([]uint64, n+1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type block struct {
		rows  []byte
		words []uint64
		err   error
	}
	workers := runtime.GOMAXPROCS(0)
	blocks := (n + tableBlock - 1) / tableBlock
	made := make([]chan block, workers) // worker k makes blocks k, k+workers, …
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for k := range made {
		made[k] = make(chan block, 1)
		group.Go(func() {
			s := mapmatched.NewSearch(n)
			var targets []int32
			for at := k; at < blocks; at += workers {
				var b block
				for v := at * tableBlock; v < min((at+1)*tableBlock, n) && b.err == nil; v++ {
					before := len(b.rows)
					if b.err = s.Within(ctx, a, int32(v), maximum); b.err != nil {
						break
					}
					targets = append(targets[:0], s.Settled()[1:]...)
					b.rows = appendRow(b.rows, s, targets)
					b.words = append(b.words, uint64(len(b.rows)-before)/8)
					if b.err = ctx.Err(); b.err != nil {
						break
					}
				}
				select {
				case made[k] <- b:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	total := int64(8 * (n + 1))
	for at := range blocks {
		var b block
		select {
		case b = <-made[at%workers]:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if b.err != nil {
			return nil, b.err
		}
		if total += int64(len(b.rows)); total > limit {
			return nil, errOverLimit{limit}
		}
		if _, err := w.Write(b.rows); err != nil {
			return nil, err
		}
		for i, words := range b.words {
			v := at*tableBlock + i
			first[v+1] = first[v] + words
		}
		if progress != nil {
			progress(min((at+1)*tableBlock, n), n)
		}
	}
	return first, nil
}

// appendRow appends the row of the latest search.
func appendRow(b []byte, s *mapmatched.Search, targets []int32) []byte {
	slices.Sort(targets)
	for _, v := range targets {
		d, _ := s.Distance(v)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(d))
	}
	for _, v := range targets {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	if len(targets)%2 == 1 {
		b = binary.LittleEndian.AppendUint32(b, 0)
	}
	return b
}

// tableIndex is the table in a file.
type tableIndex struct {
	first []uint64
	rows  []byte
}

// row returns the row of a source.
func (t *tableIndex) row(source int32) (distances []float64, targets []uint32, err error) {
	first, end := t.first[source], t.first[source+1]
	if first > end || end > uint64(len(t.rows)/8) || (end-first)%3 == 1 {
		return nil, nil, damaged("table offsets", "the row of node %d is words %d to %d of %d", source, first, end, len(t.rows)/8)
	}
	n := rowTargets(end - first)
	row := t.rows[8*first : 8*end]
	return viewFloat64(row[:8*n]), viewUint32(row[8*n : 12*n]), nil
}

// question is a batch of targets in ascending order: the node in the upper, its
// column in the lower half.
type question []uint64

// fill merges the row of a source with the targets. dst has the maximum
// distance in it.
func (t *tableIndex) fill(source int32, q question, dst []float64) error {
	distances, targets, err := t.row(source)
	if err != nil {
		return err
	}
	sparse := len(targets) > 8*len(q)
	i := 0
	for _, k := range q {
		target := uint32(k >> 32)
		if target == uint32(source) {
			dst[uint32(k)] = 0
			continue
		}
		if sparse {
			step := 1
			for i+step < len(targets) && targets[i+step] < target {
				i += step
				step *= 2
			}
			low, high := i, min(i+step, len(targets))
			for low < high {
				middle := int(uint(low+high) / 2)
				if targets[middle] < target {
					low = middle + 1
				} else {
					high = middle
				}
			}
			i = low
		} else {
			for i < len(targets) && targets[i] < target {
				i++
			}
		}
		if i < len(targets) && targets[i] == target {
			dst[uint32(k)] = distances[i]
		}
	}
	return nil
}
