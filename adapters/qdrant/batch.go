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
// caller to fuse; where [Provider.Candidates] needs more of them, so does it. It
// is safe for concurrent use.
type Batch struct {
	// Patience bounds how long the first arm of a turn waits for the others, see
	// [BatchArm]; to be set before the first call. 0 means DefaultPatience.
	Patience time.Duration

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

// DefaultPatience is how long the first arm of a turn waits for the others.
const DefaultPatience = 50 * time.Millisecond

// BatchArm is an arm of a batch for those who ask every arm by itself and all
// of them at the same time, as policy.FusedProvider does: the calls for one
// query with one limit become one round trip, which begins as soon as every arm
// of the batch has asked. It begins without those that have not when Patience is
// over, or half of the time that the deadline of one that waits leaves it. The
// answer is the same either way. So make the batch of the arms that are asked in
// every turn, and ask an arm that is used alone as the [Provider] it is.
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
	timer   *time.Timer // starts it at due
	due     time.Time
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
	key := turnKey{q.Text, q.Turn, limit, unsafe.SliceData(q.Vector), unsafe.SliceData(q.History), unsafe.SliceData(q.Path)}
	t := a.batch.join(ctx, key, a.at, q)
	defer a.batch.leave(key, t)
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, a.client.failed(ctx, op, a.name, ctx.Err())
	}
	if err := t.errs[a.at]; err != nil {
		return nil, err
	}
	return t.lists[a.at], nil
}

// join takes an arm into the turn of its query. The arm that completes a turn
// starts it.
func (b *Batch) join(ctx context.Context, key turnKey, arm int, q mapmatched.Query) *turn {
	now := time.Now()
	due := now.Add(orDefault(b.Patience, DefaultPatience))
	if deadline, ok := ctx.Deadline(); ok {
		if half := now.Add(deadline.Sub(now) / 2); half.Before(due) {
			due = half
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.open[key], func(t *turn) bool { return !t.asked[arm] })
	if at < 0 {
		t := &turn{q: q, limit: key.limit, due: due, asked: make([]bool, len(b.arms)), done: make(chan struct{})}
		// Each caller has its own deadline; the round trip ends when all have left.
		t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
		t.timer = time.AfterFunc(due.Sub(now), func() {
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
	if due.Before(t.due) {
		t.due = due
		t.timer.Reset(due.Sub(now))
	}
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
	b.end(key, t)
	go func() {
		defer close(t.done)
		t.lists, t.errs = b.lists(t.ctx, t.q, t.limit, func(arm int) bool { return t.asked[arm] })
	}()
}

// end keeps arms from joining a turn, and the timer from starting it. b.mu is
// held.
func (b *Batch) end(key turnKey, t *turn) {
	t.started = true
	t.timer.Stop()
	b.open[key] = slices.DeleteFunc(b.open[key], func(other *turn) bool { return other == t })
	if len(b.open[key]) == 0 {
		delete(b.open, key)
	}
}

// leave ends the wait of a caller. The last one ends the round trip, or the turn
// before there is one.
func (b *Batch) leave(key turnKey, t *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.waiting--; t.waiting > 0 {
		return
	}
	t.cancel()
	if !t.started {
		b.end(key, t)
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
