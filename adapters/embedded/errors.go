package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
)

// adapterName is the adapter in the errors of this package.
const adapterName = "embedded"

// errDamaged: the content of an index cannot be right.
var errDamaged = errors.New("index is damaged")

// errForeign: a directory is not an index.
var errForeign = errors.New("not an index")

// errBusy: another process writes the index.
var errBusy = errors.New("another process is writing this index")

func damaged(file, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", errDamaged, file, fmt.Sprintf(format, args...))
}

// fail makes the error of an operation.
func fail(op string, kind mapmatched.Kind, err error) error {
	return &mapmatched.Error{Op: op, Adapter: adapterName, Kind: kind, Err: err}
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
	case errors.Is(err, errDamaged), errors.Is(err, lexical.ErrDamaged):
		kind = mapmatched.KindCorrupt
	case errors.Is(err, fs.ErrNotExist):
		kind = mapmatched.KindNotFound
	case errors.Is(err, mapmatched.ErrClosed), errors.Is(err, fs.ErrPermission):
		kind = mapmatched.KindUnavailable
	}
	return fail(op, kind, err)
}
