package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Result is the outcome of one check.
type Result struct {
	Check   string // name of the check
	Skipped string // why it did not run, "" when it ran
	Err     error  // what was wrong, nil when the check holds or was skipped
}

// check is one promise, tested on a store of its own.
type check[S, A any] struct {
	name string
	run  func(s S, store A) error
}

// skip is the error of a check that does not apply.
type skip string

func (s skip) Error() string { return string(s) }

// runCheck makes a store, runs the check and closes the store. A panic is a
// failed check.
func runCheck[S, A any](c check[S, A], s S, open func() (A, error)) Result {
	err := recovered(func() error {
		store, err := open()
		if err != nil {
			return fmt.Errorf("the harness made no store: %w", err)
		}
		err = c.run(s, store)
		if closer, ok := any(store).(io.Closer); ok {
			if closeErr := closer.Close(); closeErr != nil && err == nil {
				err = fmt.Errorf("close: %w", closeErr)
			}
		}
		return err
	})
	var skipped skip
	if errors.As(err, &skipped) {
		return Result{Check: c.name, Skipped: string(skipped)}
	}
	return Result{Check: c.name, Err: err}
}

// report turns a result into the outcome of a test.
func report(t *testing.T, r Result) {
	t.Helper()
	switch {
	case r.Skipped != "":
		t.Skip(r.Skipped)
	case r.Err != nil:
		t.Error(r.Err)
	}
}

// recovered runs f and turns a panic into an error.
func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return f()
}

// parallel runs f(0) to f(n−1) at the same time and returns the error of the
// lowest number that failed.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = recovered(func() error { return f(i) }) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// defaultPatience is how long a call may take to notice a context that is
// done. It only has to tell a call that waits for ever from one that does not.
const defaultPatience = 10 * time.Second

// within runs f and gives up on it when it takes longer than patience (0 means
// the default).
func within(patience time.Duration, f func() error) error {
	if patience == 0 {
		patience = defaultPatience
	}
	done := make(chan error, 1)
	go func() { done <- recovered(f) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("the call went on for %v with a context that is done", patience)
	}
}

// operation is a call to a store, reduced to its error. A nil error says that
// the answer was the full and right one.
type operation struct {
	name string
	call func(ctx context.Context) error
}

// checkDone expects every operation to refuse a context that was cancelled and
// one whose deadline has passed.
func checkDone(ctx context.Context, patience time.Duration, ops []operation) error {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	late, stop := context.WithDeadline(ctx, time.Unix(1, 0))
	defer stop()
	for _, op := range ops {
		if err := expectDone(cancelled, patience, op, context.Canceled); err != nil {
			return fmt.Errorf("context cancelled before the call: %w", err)
		}
		if err := expectDone(late, patience, op, context.DeadlineExceeded); err != nil {
			return fmt.Errorf("deadline passed before the call: %w", err)
		}
	}
	return nil
}

// checkMiddle lets the context be cancelled the n-th time that it is asked, for
// rising n. The call then ends with the full answer or with the context's
// error.
func checkMiddle(ctx context.Context, patience time.Duration, ops []operation) error {
	const deepest = 64 // a store that asks more often than this has been tried enough
	for _, op := range ops {
		for n := range deepest {
			tripping := newTrippingContext(ctx, n)
			err := within(patience, func() error { return op.call(tripping) })
			tripped := tripping.tripped()
			if err != nil && (!tripped || !errors.Is(err, context.Canceled)) {
				return fmt.Errorf("%s: context cancelled when asked for the %d. time: %w", op.name, n+1, err)
			}
			if !tripped {
				break
			}
		}
	}
	return nil
}

// checkSilent cancels and times out operations on a store that never answers.
func checkSilent(ctx context.Context, patience time.Duration, ops []operation) error {
	const pause = 20 * time.Millisecond // for the call to get under way
	for _, op := range ops {
		cancelled, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(pause, cancel)
		err := expectDone(cancelled, patience, op, context.Canceled)
		timer.Stop()
		cancel()
		if err != nil {
			return fmt.Errorf("context cancelled during the call: %w", err)
		}
		late, stop := context.WithTimeout(ctx, pause)
		err = expectDone(late, patience, op, context.DeadlineExceeded)
		stop()
		if err != nil {
			return fmt.Errorf("deadline passed during the call: %w", err)
		}
	}
	return nil
}

func expectDone(ctx context.Context, patience time.Duration, op operation, want error) error {
	err := within(patience, func() error { return op.call(ctx) })
	if err == nil {
		return fmt.Errorf("%s: no error; want one that wraps %q", op.name, want)
	}
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: error %q does not wrap %q", op.name, err, want)
	}
	return nil
}

// checkClose closes a store twice and expects ErrClosed from then on.
func checkClose(ctx context.Context, store any, ops []operation) error {
	closer, ok := store.(io.Closer)
	if !ok {
		return skip("the store does not implement io.Closer")
	}
	for _, which := range []string{"first", "second"} {
		if err := closer.Close(); err != nil {
			return fmt.Errorf("%s Close: %w", which, err)
		}
	}
	for _, op := range ops {
		if err := op.call(ctx); !errors.Is(err, mapmatched.ErrClosed) {
			return fmt.Errorf("%s after Close: error %v, want one that wraps %q", op.name, err, mapmatched.ErrClosed)
		}
	}
	return nil
}

// checkCloseWhileBusy closes a store from two sides while calls run.
func checkCloseWhileBusy(ctx context.Context, store any, ops []operation) error {
	closer, ok := store.(io.Closer)
	if !ok {
		return skip("the store does not implement io.Closer")
	}
	const callers, calls = 8, 16
	return parallel(callers, func(i int) error {
		for n := range calls {
			if n == calls/2 && i < 2 {
				if err := closer.Close(); err != nil {
					return fmt.Errorf("Close beside running calls: %w", err)
				}
			}
			op := ops[(i+n)%len(ops)]
			if err := op.call(ctx); err != nil && !errors.Is(err, mapmatched.ErrClosed) {
				return fmt.Errorf("%s beside Close: error %w, want the answer or one that wraps %q", op.name, err, mapmatched.ErrClosed)
			}
		}
		return nil
	})
}

// checkHealth expects a fresh store to be in health.
func checkHealth(ctx context.Context, store any) error {
	h, ok := store.(mapmatched.HealthChecker)
	if !ok {
		return skip("the store does not implement HealthChecker")
	}
	if err := h.Health(ctx); err != nil {
		return fmt.Errorf("health of a fresh store: %w", err)
	}
	return nil
}

// trippingContext is cancelled from the n-th time on that somebody asks
// whether it is.
type trippingContext struct {
	context.Context
	mu   sync.Mutex
	left int
	done chan struct{}
}

func newTrippingContext(parent context.Context, n int) *trippingContext {
	return &trippingContext{Context: parent, left: n, done: make(chan struct{})}
}

// ask counts down and reports whether the context is cancelled.
func (c *trippingContext) ask() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		close(c.done)
	}
	c.left--
	return c.left < 0
}

func (c *trippingContext) tripped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left < 0
}

// Done implements context.Context.
func (c *trippingContext) Done() <-chan struct{} {
	c.ask()
	return c.done
}

// Err implements context.Context.
func (c *trippingContext) Err() error {
	if c.ask() {
		return context.Canceled
	}
	return nil
}
