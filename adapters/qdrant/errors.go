package qdrant

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
)

// adapterName is the adapter in the errors of this package.
const adapterName = "qdrant"

func typed(op string, kind mapmatched.Kind, err error) error {
	return &mapmatched.Error{Op: op, Adapter: adapterName, Kind: kind, Err: err}
}

func invalid(op, format string, args ...any) error {
	return typed(op, mapmatched.KindInvalid, fmt.Errorf(format, args...))
}

// remoteError says in words what a call ended with.
type remoteError struct {
	text  string
	cause error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.cause }

// remark is the error of a call with something to say about it.
type remark struct {
	err  error
	text string
}

func (e *remark) Error() string { return status.Convert(e.err).Message() + " (" + e.text + ")" }
func (e *remark) Unwrap() error { return e.err }

// plain says what gRPC's transport says without its wrapping.
func plain(message string) string {
	const wrapping = "connection error: desc = "
	if before, rest, ok := strings.Cut(message, wrapping); ok {
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			inner, _ := strconv.Unquote(quoted) // it is a quoted text
			message = before + strings.TrimPrefix(inner, "transport: ") + rest[len(quoted):]
		}
	}
	return strings.Replace(message, "Error while dialing: ", "cannot connect: ", 1)
}

// failed makes the error of a call that ended with err. An error that has a
// kind keeps it. The collection is "" when the call was about none.
func (c *Client) failed(ctx context.Context, op, collection string, err error) error {
	if err == nil || mapmatched.KindOf(err) != "" {
		return err
	}
	where := c.address
	if collection != "" {
		where = fmt.Sprintf("collection %q on %s", collection, c.address)
	}
	if c.closed.Load() || errors.Is(err, mapmatched.ErrClosed) {
		return typed(op, mapmatched.KindUnavailable, fmt.Errorf("%s: %w", where, mapmatched.ErrClosed))
	}
	if done := ctx.Err(); done != nil {
		return typed(op, mapmatched.KindDeadline, fmt.Errorf("%s: %w", where, done))
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) { // ctx is none of ours, but was done
		return typed(op, mapmatched.KindDeadline, fmt.Errorf("%s: %w", where, err))
	}
	s := status.Convert(err)
	kind, hint, cause := c.sort(s, err)
	text := where + ": " + plain(oneLine(s.Message()))
	if hint != "" {
		text += "; " + hint
	}
	return typed(op, kind, &remoteError{text, cause})
}

// sort finds the kind of a status, what to do about it, and the error that
// errors.Is is to find.
func (c *Client) sort(s *status.Status, err error) (kind mapmatched.Kind, hint string, cause error) {
	switch s.Code() {
	case codes.Unavailable:
		if strings.Contains(s.Message(), "too_many_pings") {
			return mapmatched.KindUnavailable, "the server does not take pings as often as Keepalive says: raise it (keepalive=), or leave it out", err
		}
		return mapmatched.KindUnavailable, c.reachHint(), err
	case codes.DeadlineExceeded:
		return mapmatched.KindDeadline, fmt.Sprintf("there was no answer within the timeout of %v: raise Timeout (timeout=) or see what keeps the server busy", c.opts.Timeout),
			fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case codes.Canceled:
		return mapmatched.KindDeadline, "", fmt.Errorf("%w: %w", context.Canceled, err)
	case codes.ResourceExhausted:
		if tooLarge(s) {
			return mapmatched.KindInvalid, fmt.Sprintf("the limit is %d bytes: raise MaxMessageBytes (max_message_bytes=) or ask for less", c.opts.MaxMessageBytes), err
		}
		return mapmatched.KindUnavailable, "the server limits the rate: ask less often or raise its limit", err
	case codes.Unauthenticated, codes.PermissionDenied:
		hint = "the API key is not accepted for this: see which one the server expects"
		if c.opts.APIKey == "" {
			hint = "no API key was sent: name the environment variable that has it in api_key_env"
		}
		return mapmatched.KindUnauthenticated, hint, err
	case codes.NotFound:
		return mapmatched.KindNotFound, "", err
	case codes.DataLoss:
		return mapmatched.KindCorrupt, "", err
	case codes.Internal, codes.Aborted, codes.Unknown:
		return mapmatched.KindUnavailable, "see the log of the server", err
	case codes.Unimplemented:
		return mapmatched.KindInvalid, "the server does not know this call: it may be too old, or not Qdrant", err
	default: // InvalidArgument, FailedPrecondition, OutOfRange, AlreadyExists
		return mapmatched.KindInvalid, "", err
	}
}

func (c *Client) reachHint() string {
	if strings.HasSuffix(c.address, ":6333") {
		return "6333 is usually the port of REST: use that of gRPC, " + DefaultPort
	}
	protocol := "without TLS, as here (tls=true is with it)"
	if c.opts.TLS {
		protocol = "with TLS, as here"
	}
	return fmt.Sprintf("see that Qdrant runs there, that this is its gRPC port (%s by default), and that it speaks %s", DefaultPort, protocol)
}

// tooLarge reports whether a message was refused for its size.
func tooLarge(s *status.Status) bool {
	return s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max")
}

func oneLine(text string) string {
	if text == "" {
		return "the server gave no reason"
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
