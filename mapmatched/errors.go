package mapmatched

import (
	"errors"
	"fmt"
)

// Sentinels to compare with errors.Is.
var (
	// ErrNoCandidates: a turn had no candidates and the session refuses that.
	ErrNoCandidates = errors.New("no candidates")
	// ErrDuplicateCandidate: a chunk was offered twice in one turn.
	ErrDuplicateCandidate = errors.New("duplicate candidate")
	// ErrEmptyChunkID: a candidate, chunk or edge has no chunk ID.
	ErrEmptyChunkID = errors.New("empty chunk ID")
	// ErrNonFinite: a score, weight or distance is NaN or infinite, or a sum
	// of finite ones is.
	ErrNonFinite = errors.New("value is not finite")
	// ErrDistance: a graph returned a distance that is negative or beyond its
	// own maximum.
	ErrDistance = errors.New("distance out of range")
	// ErrReleased: the question needs turns whose candidates the session has
	// released (see Config.RetainTurns).
	ErrReleased = errors.New("turn was released")
	// ErrInvalidConfig: a configuration value is out of its range.
	ErrInvalidConfig = errors.New("invalid configuration")
	// ErrStaleIndex: an index was made from other input, by another version
	// or for another model than the one in use.
	ErrStaleIndex = errors.New("stale index")
	// ErrPolicyFrozen: a frozen policy file was changed.
	ErrPolicyFrozen = errors.New("policy is frozen")
	// ErrClosed: the provider or graph was closed.
	ErrClosed = errors.New("already closed")
)

// Kind sorts the errors of adapters by what a caller can do about them.
type Kind string

// The kinds.
const (
	KindNotFound        Kind = "not found"
	KindUnauthenticated Kind = "unauthenticated"
	KindUnavailable     Kind = "unavailable"
	KindInvalid         Kind = "invalid"
	KindDeadline        Kind = "deadline"
	KindCorrupt         Kind = "corrupt"
)

// Error is the error of an adapter: which adapter, doing what, and of what
// kind. Err says what was wrong, with which value and what to do.
type Error struct {
	Op      string // what was being done, such as "open" or "candidates"
	Adapter string // which adapter, such as "embedded"
	Kind    Kind
	Err     error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Adapter, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's chain, or "".
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
