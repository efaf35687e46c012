package onnx

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mapmatched/mmplug/mapmatched"
)

// errDamaged: a file cannot be what it should be.
var errDamaged = errors.New("damaged")

// errUnavailable: the runtime cannot be used.
var errUnavailable = errors.New("onnxruntime is not available")

// classify makes the error of an operation, its kind found from its cause.
func classify(op string, err error) error {
	kind := mapmatched.KindInvalid
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = mapmatched.KindDeadline
	case errors.Is(err, errDamaged):
		kind = mapmatched.KindCorrupt
	case errors.Is(err, fs.ErrNotExist):
		kind = mapmatched.KindNotFound
	case errors.Is(err, errUnavailable), errors.Is(err, mapmatched.ErrClosed), errors.Is(err, fs.ErrPermission):
		kind = mapmatched.KindUnavailable
	}
	return &mapmatched.Error{Op: op, Adapter: Scheme, Kind: kind, Err: err}
}

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUnavailable, fmt.Errorf(format, args...))
}
