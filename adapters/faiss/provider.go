package faiss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mapmatched/mmplug/internal/kernel"
	"github.com/mapmatched/mmplug/mapmatched"
)

// The capabilities of a provider.
var (
	_ mapmatched.CandidateProvider = (*Provider)(nil)
	_ mapmatched.ChunkScorer       = (*Provider)(nil)
	_ mapmatched.ChunkFetcher      = (*Provider)(nil)
	_ mapmatched.VectorFetcher     = (*Provider)(nil)
	_ mapmatched.HealthChecker     = (*Provider)(nil)
)

// Provider finds candidates by their vectors in an index. It is safe for
// concurrent use.
type Provider struct {
	index   *Index
	opts    Options
	entries []Entry
	chunks  map[string]int // entry of a chunk
	entryOf map[int64]int  // entry of a FAISS ID; nil when it is the ID
	missing atomic.Int64   // see Stats

	positionsOnce sync.Once
	positionOf    []int // position in the index of the vector of each entry
	positionsErr  error
}

// Stats counts what a provider met.
type Stats struct {
	// Missing is how many candidates fewer than asked for, and than there are
	// vectors, searches found in all: those that FAISS pads with the ID −1.
	// IVF and HNSW indexes miss some when Nprobe or EfSearch are low.
	Missing int64
}

// Open opens a provider of an index file and a file with the chunk of each
// vector ([ParseEntries]). Errors are those of [OpenIndex] and [NewProvider].
func Open(ctx context.Context, indexPath, idsPath string, opts *Options) (*Provider, error) {
	const op = "open"
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.Validate(); err != nil {
		return nil, classify(op, err)
	}
	x, err := OpenIndex(ctx, indexPath, &opts.IndexOptions)
	if err != nil {
		return nil, err
	}
	entries, err := ReadEntries(idsPath)
	if err != nil {
		err = classify(op, err)
	} else {
		var p *Provider
		if p, err = NewProvider(ctx, x, entries, opts); err == nil {
			return p, nil
		}
	}
	_ = x.Close() // the first error is the one to report
	return nil, err
}

// NewProvider makes a provider of an open index and the chunk of each of its
// vectors. It takes the index over: closing the provider closes it.
//
// There is one entry for each vector and one vector for each entry; a metric of
// the other mode than opts.Mode, vectors that are not of length 1 when
// opts.Cosine is set, and an index that cannot give the vectors that
// opts.Vectors asks for are refused. On an error the index stays open.
func NewProvider(ctx context.Context, x *Index, entries []Entry, opts *Options) (*Provider, error) {
	const op = "open"
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.Validate(); err != nil {
		return nil, classify(op, err)
	}
	p := &Provider{index: x, opts: *opts, entries: slices.Clone(entries)}
	if err := p.checkMode(); err != nil {
		return nil, classify(op, err)
	}
	err := x.do(ctx, op, func() error {
		if err := p.assign(ctx); err != nil {
			return err
		}
		if opts.Vectors || opts.Cosine {
			if _, _, err := x.vectors(ctx); err != nil {
				return fmt.Errorf("%s: its vectors are needed: %w", x.Info().Path, err)
			}
		}
		if opts.Cosine {
			return p.checkLengths(ctx)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// checkMode compares the options with the metric.
func (p *Provider) checkMode() error {
	info, want := p.index.Info(), p.opts.Mode
	if p.opts.Cosine {
		want = ModeSimilarity
	}
	if got := info.Metric.Mode(); want != "" && got != want {
		return fmt.Errorf("%s compares by %v, which is a %s, and mode %q is asked for: use mode %q or make the index with the other metric",
			info.Path, info.Metric, got, want, got)
	}
	return nil
}

// assign finds the entry of each vector.
func (p *Provider) assign(ctx context.Context) error {
	info := p.index.Info()
	if len(p.entries) != info.Count {
		return fmt.Errorf("%s has %d vectors and there are %d IDs of chunks; give one for each", info.Path, info.Count, len(p.entries))
	}
	p.chunks = make(map[string]int, len(p.entries))
	given := map[int64]int{}
	for i := range p.entries {
		e := &p.entries[i]
		if err := e.check(); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if first, again := p.chunks[e.ID]; again {
			return fmt.Errorf("entries %d and %d have the chunk ID %q; give every vector the ID of its own chunk", first, i, e.ID)
		}
		p.chunks[e.ID] = i
		if (e.FaissID == nil) != (p.entries[0].FaissID == nil) {
			return errors.New("some entries have a FAISS ID and others not; give it for all or none")
		}
		if e.FaissID != nil {
			if first, again := given[*e.FaissID]; again {
				return fmt.Errorf("entries %d and %d have the FAISS ID %d", first, i, *e.FaissID)
			}
			given[*e.FaissID] = i
		}
	}
	if len(given) > 0 {
		p.entryOf = given
	}
	ids, err := p.index.engine.ids(ctx)
	if err != nil {
		return err
	}
	if ids == nil {
		for id := range info.Count {
			if _, known := p.entry(int64(id)); !known {
				return fmt.Errorf("%s has a vector of FAISS ID %d and no entry has it", info.Path, id)
			}
		}
		return nil
	}
	sorted, err := sortedIDs(ids)
	if err != nil {
		return fmt.Errorf("%s: %w", info.Path, err)
	}
	for _, id := range sorted {
		if _, known := p.entry(id); known {
			continue
		}
		if p.entryOf == nil {
			return fmt.Errorf("%s has a vector of FAISS ID %d, which is no line from 0 to %d: write faiss_id on each line", info.Path, id, len(p.entries)-1)
		}
		return fmt.Errorf("%s has a vector of FAISS ID %d and no entry has that faiss_id", info.Path, id)
	}
	return nil
}

// entry finds the entry of a FAISS ID.
func (p *Provider) entry(id int64) (at int, known bool) {
	if p.entryOf != nil {
		at, known = p.entryOf[id]
		return at, known
	}
	return int(id), id >= 0 && id < int64(len(p.entries))
}

// lengthTolerance is how far the length of a vector may be from 1 for inner
// products to be cosines.
const lengthTolerance = 1e-3

// checkLengths checks that all vectors have length 1.
func (p *Provider) checkLengths(ctx context.Context) error {
	ids, rows, err := p.index.vectors(ctx)
	if err != nil {
		return err
	}
	for at := range p.index.Info().Count {
		if at%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if length := math.Sqrt(float64(kernel.Dot(rows(at), rows(at)))); !(math.Abs(length-1) <= lengthTolerance) {
			entry, _ := p.entry(idAt(ids, at))
			return fmt.Errorf("cosine needs vectors of length 1 and that of chunk %q has length %.6g: normalise the vectors before they are added (faiss.normalize_L2), or do without cosine",
				p.entries[entry].ID, length)
		}
	}
	return nil
}

func idAt(ids []int64, at int) int64 {
	if ids == nil {
		return int64(at)
	}
	return ids[at]
}

// Info describes the index.
func (p *Provider) Info() Info { return p.index.Info() }

// Stats returns the counts so far.
func (p *Provider) Stats() Stats { return Stats{Missing: p.missing.Load()} }

// Close implements io.Closer, see [Index.Close].
func (p *Provider) Close() error { return p.index.Close() }

// Health implements mapmatched.HealthChecker: an index that is open can answer.
func (p *Provider) Health(ctx context.Context) error {
	return p.index.do(ctx, "health", func() error { return nil })
}

// Candidates implements mapmatched.CandidateProvider. Scores are inner
// products, or negated distances (the square for L2), and equal ones are
// ordered by FAISS ID. A query without text and vector has no candidates. A
// candidate has the text and the metadata of its entry, with integers as int64
// and other numbers as float64.
func (p *Provider) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	const op = "candidates"
	v, err := p.queryVector(ctx, op, q)
	if v == nil || err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, nil
	}
	hits, err := p.index.Search(ctx, v, limit)
	if err != nil {
		return nil, err
	}
	p.missing.Add(int64(min(limit, len(p.entries)) - len(hits)))
	found := make([]mapmatched.Candidate, len(hits))
	for i, h := range hits {
		at, known := p.entry(h.ID)
		if !known {
			return nil, classify(op, damaged("%s found the FAISS ID %d, of which no entry is known", p.Info().Path, h.ID))
		}
		e := &p.entries[at]
		metadata, err := e.metadata()
		if err != nil {
			return nil, classify(op, err)
		}
		found[i] = mapmatched.Candidate{ChunkID: e.ID, Score: h.Score, Text: e.Text, Metadata: metadata}
	}
	return found, nil
}

// queryVector returns the vector of a query, nil when the query is empty.
func (p *Provider) queryVector(ctx context.Context, op string, q mapmatched.Query) ([]float32, error) {
	if err := p.Health(ctx); err != nil {
		return nil, err
	}
	v, err := mapmatched.QueryVector(ctx, q, p.opts.Embedder, adapterName)
	if err != nil || v == nil {
		return nil, classify(op, err)
	}
	info := p.Info()
	if len(v) != info.Dimension {
		model := ""
		if p.opts.Model != "" {
			model = fmt.Sprintf(" (model %q)", p.opts.Model)
		}
		return nil, classify(op, fmt.Errorf("the query vector has %d dimensions and the index %s has %d%s: use the model that made the index", len(v), info.Path, info.Dimension, model))
	}
	if err := finite(v); err != nil {
		return nil, classify(op, fmt.Errorf("the query vector: %w", err))
	}
	if p.opts.Cosine {
		var ok bool
		if v, ok = unit(v); !ok {
			return nil, classify(op, errors.New("the query vector is zero, which has no cosine with others"))
		}
	}
	return v, nil
}

// unit scales a vector to length 1; false when it is zero.
func unit(v []float32) ([]float32, bool) {
	sum := 0.0
	for _, x := range v {
		sum += float64(float64(x) * float64(x))
	}
	if sum == 0 {
		return nil, false
	}
	length := math.Sqrt(sum)
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / length)
	}
	return out, true
}

// Chunks implements mapmatched.ChunkFetcher with the ID and the text of the
// entries. Without texts there is nothing to fetch.
func (p *Provider) Chunks(ctx context.Context, chunkIDs []string) ([]mapmatched.Chunk, error) {
	chunks := make([]mapmatched.Chunk, 0, len(chunkIDs))
	err := p.index.do(ctx, "chunks", func() error {
		for _, id := range chunkIDs {
			if at, known := p.chunks[id]; known {
				text := p.entries[at].Text
				chunks = append(chunks, mapmatched.Chunk{ID: id, End: len(text), Text: text})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return chunks, nil
}
