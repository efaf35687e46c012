package qdrant

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Batch asks several providers over one collection in one round trip, for the
// caller to fuse. It is safe for concurrent use.
type Batch struct {
	arms []*Provider
	mu   sync.Mutex
	open map[turnKey][]*turn // turns that wait for arms
}

// NewBatch makes a batch of arms, which are providers over one collection of
// one client. They can be asked alone as well.
func NewBatch(arms ...*Provider) (*Batch, error) {
	if err := checkArms(arms); err != nil {
		return nil, typed("open", mapmatched.KindInvalid, err)
	}
	return &Batch{arms: slices.Clone(arms), open: map[turnKey][]*turn{}}, nil
}

// Lists returns the candidates of every arm, each as the arm alone would find
// them. It fails when one of them does.
func (b *Batch) Lists(ctx context.Context, q mapmatched.Query, limit int) ([][]mapmatched.Candidate, error) {
	lists, errs := b.lists(ctx, q, limit, func(int) bool { return true })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// lists asks the arms that are wanted; the places of others are nil. An arm
// whose question cannot be put fails alone, and all fail with the round trip.
func (b *Batch) lists(ctx context.Context, q mapmatched.Query, limit int, wanted func(arm int) bool) ([][]mapmatched.Candidate, []error) {
	const op = "candidates"
	searches, errs := make([]search, len(b.arms)), make([]error, len(b.arms))
	for i, arm := range b.arms {
		if errs[i] = arm.ready(ctx, op); errs[i] == nil && wanted(i) && limit > 0 {
			searches[i], errs[i] = arm.search(ctx, op, q)
		}
	}
	lists, err := b.arms[0].run(ctx, op, q.Text, searches, limit)
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return lists, errs
}

// patience is how long the first arm of a turn waits for the others.
const patience = 5 * time.Millisecond

// BatchArm is an arm of a batch for those who ask every arm by itself and all
// of them at the same time, as policy.FusedProvider does: the calls for one
// query with one limit become one round trip. A call that the others do not
// follow within a few milliseconds goes without them. The answer is the same
// either way.
type BatchArm struct {
	*Provider
	batch *Batch
	at    int
}

var _ mapmatched.CandidateProvider = (*BatchArm)(nil)

// Arms returns the arms in the order that they were given.
func (b *Batch) Arms() []*BatchArm {
	arms := make([]*BatchArm, len(b.arms))
	for i, p := range b.arms {
		arms[i] = &BatchArm{p, b, i}
	}
	return arms
}

// turnKey tells the calls for one query from others. Calls of other
// conversations that have the same key are only answered together.
type turnKey struct {
	text          string
	turn, limit   int
	vector        *float32
	history, path *string
}

// turn is a round trip that is being gathered or under way.
type turn struct {
	q       mapmatched.Query
	limit   int
	asked   []bool // by arm
	waiting int    // callers
	started bool
	ctx     context.Context
	cancel  context.CancelFunc
	timer   *time.Timer
	done    chan struct{}
	lists   [][]mapmatched.Candidate
	errs    []error // by arm
}

// Candidates implements mapmatched.CandidateProvider, see [Provider.Candidates].
func (a *BatchArm) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	const op = "candidates"
	if err := a.ready(ctx, op); err != nil || limit <= 0 {
		return nil, err
	}
	t := a.batch.join(ctx, a.at, q, limit)
	select {
	case <-t.done:
		a.batch.leave(t)
	case <-ctx.Done():
		a.batch.leave(t)
		return nil, a.client.failed(ctx, op, a.name, ctx.Err())
	}
	if err := t.errs[a.at]; err != nil {
		return nil, err
	}
	return t.lists[a.at], nil
}

// join takes an arm into the turn of its query. The arm that completes a turn
// starts it.
func (b *Batch) join(ctx context.Context, arm int, q mapmatched.Query, limit int) *turn {
	key := turnKey{q.Text, q.Turn, limit, unsafe.SliceData(q.Vector), unsafe.SliceData(q.History), unsafe.SliceData(q.Path)}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.open[key], func(t *turn) bool { return !t.asked[arm] })
	if at < 0 {
		t := &turn{q: q, limit: limit, asked: make([]bool, len(b.arms)), done: make(chan struct{})}
		// Each caller has its own deadline; the round trip ends when all have left.
		t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
		t.timer = time.AfterFunc(patience, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.start(key, t)
		})
		at = len(b.open[key])
		b.open[key] = append(b.open[key], t)
	}
	t := b.open[key][at]
	t.asked[arm] = true
	t.waiting++
	if !slices.Contains(t.asked, false) {
		b.start(key, t)
	}
	return t
}

// start begins the round trip of a turn, once. b.mu is held.
func (b *Batch) start(key turnKey, t *turn) {
	if t.started {
		return
	}
	t.started = true
	t.timer.Stop()
	b.open[key] = slices.DeleteFunc(b.open[key], func(other *turn) bool { return other == t })
	if len(b.open[key]) == 0 {
		delete(b.open, key)
	}
	go func() {
		defer close(t.done)
		t.lists, t.errs = b.lists(t.ctx, t.q, t.limit, func(arm int) bool { return t.asked[arm] })
	}()
}

// leave ends the wait of a caller. The last one ends the round trip.
func (b *Batch) leave(t *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		t.cancel()
	}
}

// Close closes the arms, see [Provider.Close].
func (b *Batch) Close() error {
	var errs []error
	for _, arm := range b.arms {
		errs = append(errs, arm.Close())
	}
	return errors.Join(errs...)
}
