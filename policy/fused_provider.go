package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// DefaultArmLimit is how many candidates every arm is asked for, unless told
// otherwise.
const DefaultArmLimit = 100

// The marks of a candidate of a turn in which an arm did not answer.
const (
	PartDegraded     = "degraded_" // score part degraded_NAME, 1
	MetadataDegraded = "degraded"  // names of the arms, a []string in ascending order
)

// FusedArm is a provider with its name in Fusion.Arms.
type FusedArm struct {
	Name     string
	Provider mapmatched.CandidateProvider
}

// FusedOptions are the settings of a FusedProvider beside the policy. The zero
// value, and nil, are the defaults.
type FusedOptions struct {
	// ArmLimit is how many candidates every arm is asked for, or the limit of
	// the call if that is larger. 0 means DefaultArmLimit.
	ArmLimit int
	// Report is told of every arm that did not answer a turn that another one
	// did, in ascending order of name, before the call returns. Calls for
	// different turns may overlap. nil reports nothing.
	Report func(Degraded)
}

// Degraded says that an arm did not take part in a turn.
type Degraded struct {
	Turn     int    // of the query
	Arm      string // name of the arm
	TimedOut bool   // it did not answer within its timeout
	Err      error  // why, never nil
}

// String implements fmt.Stringer.
func (d Degraded) String() string {
	return fmt.Sprintf("turn %d: arm %q did not take part: %v", d.Turn, d.Arm, d.Err)
}

// FusedProvider asks several providers at the same time and fuses what they
// find, see Fusion.Fuse. It is safe for concurrent use when they are.
type FusedProvider struct {
	fusion   Fusion
	arms     []FusedArm // by name
	armLimit int
	report   func(Degraded)
	closed   atomic.Bool
}

var _ mapmatched.CandidateProvider = (*FusedProvider)(nil)

// NewFusedProvider returns a provider over arms, which must be exactly those
// of u.Arms, in any order. All faults are reported at once.
func NewFusedProvider(u Fusion, arms []FusedArm, opts *FusedOptions) (*FusedProvider, error) {
	if opts == nil {
		opts = &FusedOptions{}
	}
	p := &FusedProvider{fusion: u, arms: slices.Clone(arms), armLimit: opts.ArmLimit, report: opts.Report}
	if p.armLimit == 0 {
		p.armLimit = DefaultArmLimit
	}
	if p.report == nil {
		p.report = func(Degraded) {}
	}
	slices.SortStableFunc(p.arms, func(a, b FusedArm) int { return strings.Compare(a.Name, b.Name) })
	errs := []error{u.Validate()}
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{mapmatched.ErrInvalidConfig}, args...)...))
	}
	if u.Version == GeometricV1 {
		fault("fusion.version is %q, which fuses no arms: use %s or %s", u.Version, HybridFusionPreV1, RRFV1)
	}
	if p.armLimit < 0 {
		fault("the arm limit is %d: it must be at least 1, or 0 for %d", p.armLimit, DefaultArmLimit)
	}
	names := make([]string, len(p.arms))
	for i, arm := range p.arms {
		names[i] = arm.Name
		if arm.Provider == nil {
			fault("arm %q has no provider", arm.Name)
		}
		if i > 0 && arm.Name == names[i-1] {
			fault("arm %q is given twice", arm.Name)
		} else if _, known := u.Arms[arm.Name]; !known {
			fault("arm %q is not in fusion.arms, so nothing says what it counts", arm.Name)
		}
	}
	p.fusion.Arms = make(map[string]FusionArm, len(u.Arms))
	for _, name := range sortedKeys(u.Arms) {
		p.fusion.Arms[name] = u.Arms[name]
		if !slices.Contains(names, name) {
			fault("fusion.arms.%s has no provider, so its weight would do nothing", name)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("fused provider: %w", err)
	}
	return p, nil
}

// armAnswer is what an arm returned.
type armAnswer struct {
	candidates []mapmatched.Candidate
	err        error
}

// Candidates implements mapmatched.CandidateProvider. An arm that fails,
// returns what cannot be fused, or does not answer within its timeout is left
// out: it is reported, and every candidate carries the marks PartDegraded and
// MetadataDegraded. It is an error when no arm answers. When ctx is done, or
// the provider is closed, the call fails at once, whatever has been found.
//
// An arm that does not return when its context is done delays nobody, but its
// goroutine lives until it does return.
func (p *FusedProvider) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	if err := p.stopped(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	calls := make([]armCall, len(p.arms))
	for i, arm := range p.arms {
		calls[i] = p.call(ctx, arm, q, max(limit, p.armLimit))
		defer calls[i].cancel()
	}
	var lists []ArmList
	var missing []Degraded
	for i, arm := range p.arms {
		answer, timedOut := calls[i].wait()
		if err := p.stopped(ctx); err != nil && (answer.err != nil || timedOut) {
			return nil, err
		}
		if answer.err == nil {
			answer.err = fusable(answer.candidates)
		}
		if answer.err != nil {
			missing = append(missing, Degraded{q.Turn, arm.Name, timedOut, answer.err})
			continue
		}
		lists = append(lists, ArmList{arm.Name, answer.candidates})
	}
	if len(lists) == 0 {
		errs := make([]error, len(missing))
		for i, d := range missing {
			errs[i] = fmt.Errorf("arm %q: %w", d.Arm, d.Err)
		}
		return nil, fmt.Errorf("fused provider: no arm answered: %w", &lineError{errs})
	}
	fused, err := p.fusion.Fuse(lists, limit)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		for _, d := range missing {
			p.report(d)
		}
		mark(fused, missing)
	}
	return fused, nil
}

// stopped says why a call must not go on, nil when it may.
func (p *FusedProvider) stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.closed.Load() {
		return fmt.Errorf("fused provider: %w", mapmatched.ErrClosed)
	}
	return nil
}

// armCall is a call to an arm that is under way.
type armCall struct {
	ctx     context.Context
	cancel  context.CancelFunc
	answers chan armAnswer
	timeout time.Duration
}

func (p *FusedProvider) call(ctx context.Context, arm FusedArm, q mapmatched.Query, limit int) armCall {
	c := armCall{answers: make(chan armAnswer, 1), timeout: time.Duration(p.fusion.Arms[arm.Name].TimeoutMS) * time.Millisecond}
	if c.timeout > 0 {
		c.ctx, c.cancel = context.WithTimeout(ctx, c.timeout)
	} else {
		c.ctx, c.cancel = context.WithCancel(ctx)
	}
	go func() {
		candidates, err := arm.Provider.Candidates(c.ctx, q, limit)
		c.answers <- armAnswer{candidates, err}
	}()
	return c
}

// wait returns the answer, or the error of the call's context if there is none
// when that is done, and whether that was the arm's own timeout.
func (c *armCall) wait() (answer armAnswer, timedOut bool) {
	select {
	case answer = <-c.answers:
	case <-c.ctx.Done():
		select {
		case answer = <-c.answers: // it was ready as well
		default:
			answer.err = c.ctx.Err()
		}
	}
	if answer.err != nil && c.timeout > 0 && errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		return armAnswer{err: fmt.Errorf("no answer within %v: %w", c.timeout, context.DeadlineExceeded)}, true
	}
	return answer, false
}

// fusable returns what is wrong with the candidates of an arm, nil for nothing.
func fusable(candidates []mapmatched.Candidate) error {
	for i := range candidates {
		switch c := &candidates[i]; {
		case c.ChunkID == "":
			return fmt.Errorf("candidate %d: %w", i, mapmatched.ErrEmptyChunkID)
		case !finite(c.Score):
			return fmt.Errorf("chunk %q: score %v: %w", c.ChunkID, c.Score, mapmatched.ErrNonFinite)
		}
	}
	return nil
}

// mark writes the arms that are missing into candidates.
func mark(candidates []mapmatched.Candidate, missing []Degraded) {
	names := make([]string, len(missing))
	for i, d := range missing {
		names[i] = d.Arm
	}
	for i := range candidates {
		c := &candidates[i]
		metadata := make(map[string]any, len(c.Metadata)+1)
		for key, value := range c.Metadata {
			metadata[key] = value
		}
		metadata[MetadataDegraded] = slices.Clone(names)
		c.Metadata = metadata
		for _, name := range names {
			c.Parts[PartDegraded+name] = 1
		}
	}
}

// Close closes the arms that implement io.Closer, all of them even if one
// fails. Every later call fails with mapmatched.ErrClosed; closing again does
// nothing.
func (p *FusedProvider) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	var errs []error
	for _, arm := range p.arms {
		if closer, ok := arm.Provider.(io.Closer); ok {
			if err := closer.Close(); err != nil {
				errs = append(errs, fmt.Errorf("close arm %q: %w", arm.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
