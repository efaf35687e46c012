package rings

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mapmatched/mmplug/mapmatched"
)

// arcs are the ways out of a chunk, at most one to each other chunk.
type arcs []arc

type arc struct {
	to     string
	weight float64
}

// result is what a flight brings for one chunk: its arcs, nil when the store
// does not know it, or what is wrong with them.
type result struct {
	arcs arcs
	err  error
}

// flight is one call of the source, for everybody who waits for its chunks. It
// ends early when nobody does any more.
type flight struct {
	ids     []string
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int               // guarded by fetcher.mu
	results map[string]result // valid once done is closed, as is err
	err     error
}

// fetcher brings the arcs of chunks: from memory, by a flight under way or by
// one of its own.
type fetcher struct {
	mu      sync.Mutex
	closed  bool
	flights map[string]*flight   // by chunk, those that may be joined
	flying  map[*flight]struct{} // all that have not ended
	running sync.WaitGroup
	cache   cache
}

func (f *fetcher) init(cacheBytes int64) {
	if cacheBytes == 0 {
		cacheBytes = DefaultCacheBytes
	}
	f.flights, f.flying = map[string]*flight{}, map[*flight]struct{}{}
	f.cache = cache{budget: cacheBytes, entries: map[string]*list.Element{}}
}

// ready reports whether a call may begin.
func (f *fetcher) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return mapmatched.ErrClosed
	}
	return nil
}

// Forget drops the edges in memory, so that later calls see what was written
// to the store since. Chunks that the store did not know are never kept.
func (f *fetcher) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cache.clear()
	clear(f.flights) // those who wait still get what is on its way
}

// Close ends the calls that run, with ErrClosed, and waits for the source to
// return from them. It may be called twice. It does not close the source.
func (f *fetcher) Close() error {
	f.mu.Lock()
	f.closed = true
	for fl := range f.flying {
		fl.cancel()
	}
	f.cache.clear()
	f.mu.Unlock()
	f.running.Wait()
	return nil
}

// fetch returns the arcs of distinct chunks in their order, nil for those that
// the store does not know.
func (g *Graph) fetch(ctx context.Context, ids []string) ([]arcs, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := make([]arcs, len(ids))
	from := make([]*flight, len(ids)) // nil when in memory
	var joined []*flight              // each once
	var missing []string
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, mapmatched.ErrClosed
	}
	seen := map[*flight]bool{}
	for i, id := range ids {
		if a, ok := g.cache.get(id); ok {
			found[i] = a
			continue
		}
		fl := g.flights[id]
		if fl == nil {
			missing = append(missing, id)
			continue
		}
		from[i] = fl
		if !seen[fl] {
			seen[fl] = true
			joined = append(joined, fl)
			fl.waiting++
		}
	}
	if len(missing) > 0 {
		fl := g.launch(ctx, missing)
		joined = append(joined, fl)
		for i := range ids {
			if found[i] == nil && from[i] == nil {
				from[i] = fl
			}
		}
	}
	g.mu.Unlock()
	defer g.leave(joined)
	for _, fl := range joined {
		select {
		case <-fl.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if fl.err != nil {
			return nil, fl.err
		}
	}
	for i, fl := range from {
		if fl == nil {
			continue
		}
		r := fl.results[ids[i]]
		if r.err != nil {
			return nil, r.err
		}
		found[i] = r.arcs
	}
	return found, nil
}

// launch starts a flight for chunks that none is under way for, with one who
// waits. The caller holds mu. The flight keeps the values of ctx but not its
// end: others may wait for it too.
func (g *Graph) launch(ctx context.Context, ids []string) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	fl := &flight{ids: ids, done: make(chan struct{}), cancel: cancel, waiting: 1}
	g.flying[fl] = struct{}{}
	for _, id := range ids {
		g.flights[id] = fl
	}
	g.running.Go(func() {
		defer cancel()
		results, err := g.ask(ctx, ids)
		g.mu.Lock()
		defer g.mu.Unlock()
		defer close(fl.done)
		delete(g.flying, fl)
		current := g.unlist(fl)
		switch {
		case g.closed:
			fl.err = mapmatched.ErrClosed
		case err != nil:
			fl.err = err
		default:
			fl.results = results
			for _, id := range ids {
				if r := results[id]; current[id] && r.err == nil && r.arcs != nil {
					g.cache.put(id, r.arcs)
				}
			}
		}
	})
	return fl
}

// unlist keeps others from joining a flight and reports for which chunks they
// could. The caller holds mu.
func (f *fetcher) unlist(fl *flight) map[string]bool {
	was := make(map[string]bool, len(fl.ids))
	for _, id := range fl.ids {
		if f.flights[id] == fl {
			was[id] = true
			delete(f.flights, id)
		}
	}
	return was
}

// leave ends the wait for flights. The last to leave one that is under way
// ends it, and nobody joins it any more.
func (f *fetcher) leave(flights []*flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fl := range flights {
		fl.waiting--
		select {
		case <-fl.done:
			continue
		default:
		}
		if fl.waiting == 0 {
			fl.cancel()
			f.unlist(fl)
		}
	}
}

// errSource: the source broke its promise or failed without a kind.
var errSource = errors.New("the store did not give the edges")

// ask calls the source and checks what it says.
func (g *Graph) ask(ctx context.Context, ids []string) (map[string]result, error) {
	lists, err := g.source.Edges(ctx, ids)
	if err != nil && (mapmatched.KindOf(err) != "" || ctx.Err() != nil) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSource, err)
	}
	if len(lists) != len(ids) {
		return nil, fmt.Errorf("%w: %d lists came for %d chunks", errSource, len(lists), len(ids))
	}
	results := make(map[string]result, len(ids))
	for i, id := range ids {
		if lists[i] == nil {
			results[id] = result{}
			continue
		}
		edges, err := g.checked(id, lists[i])
		out := make(arcs, len(edges))
		for j, e := range edges {
			out[j] = arc{e.To, e.Weight}
		}
		results[id] = result{out, err}
	}
	return results, nil
}
