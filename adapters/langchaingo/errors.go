package langchaingo

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/mapmatched/mmplug/mapmatched"
)

// adapterName is the adapter in the errors of this package.
const adapterName = "langchaingo"

// fail makes the error of an operation.
func fail(op string, kind mapmatched.Kind, format string, args ...any) error {
	return &mapmatched.Error{Op: op, Adapter: adapterName, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// failed makes the error of an operation in which something of langchaingo's
// returned err. Clients hide that a context was done; here errors.Is finds it.
// An error that has a kind keeps it and is not typed again.
func failed(ctx context.Context, op, what string, err error) error {
	if done := ctx.Err(); done != nil && !errors.Is(err, done) {
		err = fmt.Errorf("%w: %w", done, err)
	}
	if mapmatched.KindOf(err) != "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	kind := mapmatched.KindUnavailable
	var timeout net.Error
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		kind = mapmatched.KindDeadline
	}
	return fail(op, kind, "%s: %w", what, err)
}
