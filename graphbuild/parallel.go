package graphbuild

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// forEach calls do for 0 to n−1 on all cores and returns early, with the error
// of the context, when that is done. Each worker has a do of its own from
// newWorker, which holds its scratch memory.
func forEach(ctx context.Context, n int, p *progress, newWorker func() (do func(i int))) error {
	var (
		next    atomic.Int64
		workers sync.WaitGroup
	)
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			do := newWorker()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
				p.step()
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// progressTotal is the total that a progress callback is told.
const progressTotal = 1000

// progress turns the steps of the stages of a job into calls of a callback, one
// at a time, done ascending. Nil tells nobody.
type progress struct {
	report func(done, total int)

	mu          sync.Mutex
	from, to    int // what the stage takes of progressTotal
	steps, size int
	told        int
}

func newProgress(report func(done, total int)) *progress {
	if report == nil {
		return nil
	}
	return &progress{report: report}
}

// stage begins a stage of size steps that ends at a share of progressTotal.
func (p *progress) stage(to, size int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from, p.to, p.steps, p.size = p.told, max(p.told, to), 0, size
}

func (p *progress) step() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps++
	if done := p.from + (p.to-p.from)*p.steps/p.size; done > p.told {
		p.told = done
		p.report(done, progressTotal)
	}
}

// finish reports that all is done.
func (p *progress) finish() {
	if p != nil && p.told < progressTotal {
		p.told = progressTotal
		p.report(progressTotal, progressTotal)
	}
}
