package eval

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// MeasureOptions are the settings of Measure. The zero value, and nil, are the
// defaults.
type MeasureOptions struct {
	// Depth is how many chunks of a turn are ranked; 0 means DefaultDepth.
	Depth int
	// Workers is how many conversations are ranked at once; 0 means one for
	// each core. It has no influence on results.
	Workers int
	// Cache is a directory that keeps what was measured, so that a run that was
	// interrupted goes on where it was; it is made when it is not there. "" keeps
	// nothing.
	Cache string
	// CacheSalt is part of what results are found by in the cache. A program
	// sets it to something that changes when its code does.
	CacheSalt string
	// Progress is told how many conversations of all are done, one call at a
	// time; nil tells nobody.
	Progress func(done, total int)
}

// Validate reports every value that is out of range.
func (o *MeasureOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	if o.Depth < 0 || o.Depth > 0 && o.Depth < 20 {
		errs = append(errs, fmt.Errorf("the depth is %d: it is at least 20, for %s, or 0 for %d", o.Depth, Recall20, DefaultDepth))
	}
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("workers is %d: it is at least 1, or 0 for one for each core", o.Workers))
	}
	return errors.Join(errs...)
}

func (o *MeasureOptions) depth() int {
	if o.Depth == 0 {
		return DefaultDepth
	}
	return o.Depth
}

// TurnResult is what was measured of a turn that has gold.
type TurnResult struct {
	Turn    int     `json:"turn"`    // index in its conversation, from 0
	Entropy float64 `json:"entropy"` // see Ranking
	Scores  Scores  `json:"scores"`
}

// Results are what was measured of a method.
type Results struct {
	Method Method
	// Conversations has the scored turns of each conversation of the data, in
	// order.
	Conversations [][]TurnResult
}

// Mean returns the mean of a metric over the turns of a slice, and their number;
// 0 when there are none.
func (r *Results) Mean(m Metric, s *Slice) (mean float64, turns int) {
	sum := 0.0
	for i, list := range r.Conversations {
		for j := range list {
			if s.In[i][j] {
				sum += list[j].Scores.Of(m)
				turns++
			}
		}
	}
	return sum / float64(max(turns, 1)), turns
}

// Measure ranks all conversations of a world by every method, in parallel, and
// scores the turns that have gold. The result is in the order of the methods.
// Names of methods are unique.
func Measure(ctx context.Context, w *World, methods []Method, opts *MeasureOptions) ([]Results, error) {
	if opts == nil {
		opts = &MeasureOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range methods {
		if err := methods[i].check(w); err != nil {
			return nil, err
		}
		if names[methods[i].Name] {
			return nil, fmt.Errorf("there are two methods of the name %q: name them apart", methods[i].Name)
		}
		names[methods[i].Name] = true
	}
	cache, err := newCache(w, methods, opts)
	if err != nil {
		return nil, err
	}
	n := len(w.data.Conversations)
	results := make([]Results, len(methods))
	for m := range methods {
		results[m] = Results{methods[m], make([][]TurnResult, n)}
	}
	err = forEach(ctx, n, opts.Workers, func(ctx context.Context, i int) error {
		for m := range methods {
			turns, err := cache.measure(ctx, m, i, func() ([]TurnResult, error) {
				return measureOne(ctx, w, &methods[m], &w.data.Conversations[i], opts.depth())
			})
			if err != nil {
				return err
			}
			results[m].Conversations[i] = turns
		}
		return nil
	}, opts.Progress)
	if err != nil {
		return nil, err
	}
	return results, nil
}

// measureOne ranks a conversation by a method and scores it.
func measureOne(ctx context.Context, w *World, m *Method, c *Conversation, depth int) ([]TurnResult, error) {
	rankings, err := m.Rank(ctx, w, c, depth)
	if err != nil {
		return nil, err
	}
	turns := []TurnResult{}
	for t := range c.Turns {
		if gold := c.Turns[t].Gold; len(gold) > 0 {
			turns = append(turns, TurnResult{t, rankings[t].Entropy, Score(gold, rankings[t].ChunkIDs)})
		}
	}
	return turns, nil
}

// forEach calls do for 0..n−1 from several goroutines, in ascending order of
// start, until all are done, one fails or ctx is done. It returns the failure of
// the lowest number when all goroutines have ended.
func forEach(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error, progress func(done, total int)) error {
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		next  atomic.Int64
		group sync.WaitGroup
		mu    sync.Mutex
		done  int
		first = n
		cause error
	)
	for range min(workers, n) {
		group.Go(func() {
			for inner.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := do(inner, i)
				mu.Lock()
				switch {
				case err == nil:
					done++
					if progress != nil {
						progress(done, n)
					}
				case i < first && (cause == nil || !errors.Is(err, context.Canceled)):
					first, cause = i, err
				}
				mu.Unlock()
				if err != nil {
					cancel()
					return
				}
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return cause
}
