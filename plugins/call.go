package plugins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// answerError is a fault in what a plugin answered.
type answerError struct{ error }

// Unwrap returns the fault.
func (e answerError) Unwrap() error { return e.error }

// timeoutError says that a call took longer than CallTimeout.
type timeoutError struct{ limit time.Duration }

// Error implements error.
func (e timeoutError) Error() string {
	return fmt.Sprintf("no answer after %v: %v; raise CallTimeout if it needs longer", e.limit, context.DeadlineExceeded)
}

// Unwrap returns context.DeadlineExceeded.
func (timeoutError) Unwrap() error { return context.DeadlineExceeded }

// call makes one unary call and reads its answer.
func call[Client, Request, Response, T any](ctx context.Context, h *Host, op string, client func(grpc.ClientConnInterface) Client,
	method func(Client, context.Context, Request, ...grpc.CallOption) (Response, error), request Request, read func(Response) (T, error)) (T, error) {
	var out T
	err := h.do(ctx, op, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		limited := ctx
		if h.opts.CallTimeout > 0 {
			var cancel context.CancelFunc
			limited, cancel = context.WithTimeout(ctx, h.opts.CallTimeout)
			defer cancel()
		}
		response, err := method(client(conn), limited, request)
		awaitDeadline(limited, err)
		switch {
		case err != nil && limited.Err() != nil && ctx.Err() == nil:
			return timeoutError{h.opts.CallTimeout}
		case err != nil:
			return err
		}
		if out, err = read(response); err != nil {
			return answerError{err}
		}
		return nil
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}

// awaitDeadline waits for a deadline that the plugin has seen pass a moment
// before the context does, so that the error is the context's.
func awaitDeadline(ctx context.Context, err error) {
	const moment = 100 * time.Millisecond
	if deadline, ok := ctx.Deadline(); ok && status.Code(err) == codes.DeadlineExceeded && time.Until(deadline) < moment {
		<-ctx.Done()
	}
}

// do runs f with the connection of a running process and words its error.
func (h *Host) do(ctx context.Context, op string, f func(ctx context.Context, conn grpc.ClientConnInterface) error) error {
	if err := h.enter(ctx); err != nil {
		return h.fail(op, err)
	}
	defer func() { <-h.slots }()
	p, err := h.running(ctx)
	if err != nil {
		return h.fail(op, err)
	}
	return h.outcome(ctx, op, p, f(ctx, p.conn))
}

// outcome notes what came of a call to a process, and words its error.
func (h *Host) outcome(ctx context.Context, op string, p *process, err error) error {
	if err == nil {
		h.succeeded()
		return nil
	}
	return h.failed(ctx, op, p, err)
}

// enter takes a slot. It gives the error of the context before that of a host
// that is closed.
func (h *Host) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case h.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w while %d calls were on their way: raise MaxInFlight", ctx.Err(), h.opts.MaxInFlight)
	case <-h.ctx.Done():
		return mapmatched.ErrClosed
	}
}

// succeeded notes a good call.
func (h *Host) succeeded() {
	h.mu.Lock()
	h.failures = 0
	h.mu.Unlock()
}

// failed makes the error of a call and notes what it says of the process.
func (h *Host) failed(ctx context.Context, op string, p *process, err error) error {
	var answer answerError
	if errors.As(err, &answer) {
		h.succeeded()
		return h.failAs(mapmatched.KindInvalid, op, fmt.Errorf("the plugin's answer: %w", answer.error))
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		if errors.Is(ctxErr, context.DeadlineExceeded) {
			p.suspect.Store(true)
		}
		return h.failAs(mapmatched.KindDeadline, op, ctxErr)
	}
	if h.ctx.Err() != nil {
		return h.fail(op, mapmatched.ErrClosed)
	}
	if _, ok := err.(timeoutError); ok { //nolint:errorlint // it comes from call as it is
		p.suspect.Store(true)
		return h.failAs(mapmatched.KindDeadline, op, err)
	}
	kind, byPlugin, cause := fromStatus(err)
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		p.suspect.Store(true)
	case !byPlugin && h.lost(p):
		if p.exited() {
			cause = fmt.Errorf("the plugin %s; the next call starts it again", p.ended())
		} else {
			cause = fmt.Errorf("the connection to the plugin failed: %w", cause)
		}
	default:
		h.succeeded()
	}
	return h.failAs(kind, op, cause)
}

const (
	settleTime = 50 * time.Millisecond // for a connection to notice that it ended
	exitTime   = 2 * time.Second       // for a process that has lost its connection to end
)

// lost reports whether an error of the transport means that the process is
// dead or cut off, and marks it. Otherwise the plugin said so itself, without
// a detail.
func (h *Host) lost(p *process) bool {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	if !p.exited() && p.conn.GetState() == connectivity.Ready {
		return false
	}
	p.broken.Store(true)
	timer.Reset(exitTime)
	select {
	case <-p.done:
	case <-timer.C:
	case <-h.ctx.Done():
	}
	return true
}

// running returns a process that is up, starting or checking it first where
// needed. Calls that come meanwhile wait for the same restart.
func (h *Host) running(ctx context.Context) (*process, error) {
	for attempt := 0; ; attempt++ {
		h.mu.Lock()
		p := h.process
		switch {
		case h.closed:
			h.mu.Unlock()
			return nil, mapmatched.ErrClosed
		case p != nil && !p.exited() && !p.broken.Load() && (attempt > 0 || !p.suspect.Load()):
			// After a repair, other calls may have made it suspect again.
			h.mu.Unlock()
			return p, nil
		case h.repair == nil:
			h.repair = &repair{done: make(chan struct{})}
			h.closing.Add(1)
			go h.mend(p, h.repair)
		}
		r := h.repair
		h.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w while the plugin was started again", ctx.Err())
		}
		if h.ctx.Err() != nil {
			return nil, mapmatched.ErrClosed
		}
		if r.err != nil {
			return nil, r.err
		}
		if attempt == 3 {
			return nil, errors.New("the plugin ended again and again right after its start")
		}
	}
}

// mend brings the plugin back: one that is suspected of hanging is asked for
// its health, one that does not answer or is dead is ended and started again.
func (h *Host) mend(p *process, r *repair) {
	defer h.closing.Done()
	next, err := p, error(nil)
	if p == nil || p.exited() || p.broken.Load() || !h.answers(p) {
		next, err = h.restart(p)
	}
	h.mu.Lock()
	if err != nil {
		next = nil
	}
	h.process, h.repair = next, nil
	r.err = err
	h.mu.Unlock()
	close(r.done)
}

// answers asks a process that is suspected of hanging for its health.
func (h *Host) answers(p *process) bool {
	ctx, cancel := context.WithTimeout(h.ctx, exitTime)
	defer cancel()
	_, err := wire.NewBaseClient(p.conn).Health(ctx, &wire.HealthRequest{})
	_, byPlugin, _ := fromStatus(err)
	if err != nil && (ctx.Err() != nil || !byPlugin) {
		return false
	}
	p.suspect.Store(false)
	return true
}

// restart ends what is left of a process and starts the next one, after a
// delay that grows with every start in a row.
func (h *Host) restart(p *process) (*process, error) {
	h.mu.Lock()
	failures := h.failures
	last := h.lastErr
	h.mu.Unlock()
	if p != nil {
		hung := !p.exited()
		p.stop(0)
		last = errors.New("it " + p.ended())
		if hung {
			last = errors.New("it did not answer and was killed")
		}
		h.opts.Logger.Warn("the plugin is down", "cause", last.Error(), "restarts", failures)
	}
	if failures >= h.opts.MaxRestarts {
		h.mu.Lock()
		h.lastErr = last
		h.mu.Unlock()
		return nil, fmt.Errorf("%w: it failed %d times in a row, the last time because %w; mend it and open it anew", ErrGaveUp, failures+1, last)
	}
	if failures > 0 {
		timer := time.NewTimer(h.opts.RestartDelay * time.Duration(min(50, 1<<min(failures-1, 10))))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-h.ctx.Done():
			return nil, mapmatched.ErrClosed
		}
	}
	next, err := h.launch(h.ctx)
	h.mu.Lock()
	h.failures++
	h.lastErr = err
	if err == nil {
		h.lastErr = last
	}
	h.mu.Unlock()
	if err == nil {
		h.opts.Logger.Info("the plugin was started again", "pid", next.pid)
	}
	return next, err
}
