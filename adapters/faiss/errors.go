package faiss

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mapmatched/mmplug/mapmatched"
)

// adapterName is the adapter in the errors of this package.
const adapterName = "faiss"

// ErrUnsupported says that an index is of a type that the engine in use cannot
// read, or is asked for what its type cannot do.
var ErrUnsupported = errors.New("not supported")

// errBeyondGo says that libfaiss may read what the Go code does not.
var errBeyondGo = fmt.Errorf("%w by the Go code", ErrUnsupported)

var (
	errDamaged = errors.New("index is damaged")
	errForeign = errors.New("not a FAISS index")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errDamaged}, args...)...)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnsupported}, args...)...)
}

func beyondGo(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errBeyondGo}, args...)...)
}

// classify makes the error of an operation, its kind found from its cause. An
// error that has a kind keeps it.
func classify(op string, err error) error {
	if err == nil || mapmatched.KindOf(err) != "" {
		return err
	}
	kind := mapmatched.KindInvalid
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = mapmatched.KindDeadline
	case errors.Is(err, errDamaged):
		kind = mapmatched.KindCorrupt
	case errors.Is(err, fs.ErrNotExist):
		kind = mapmatched.KindNotFound
	case errors.Is(err, mapmatched.ErrClosed), errors.Is(err, fs.ErrPermission):
		kind = mapmatched.KindUnavailable
	}
	return &mapmatched.Error{Op: op, Adapter: adapterName, Kind: kind, Err: err}
}
