package plugins

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// causes are the sentinels that travel with an error.
var causes = []struct {
	name string
	err  error
}{
	{"no candidates", mapmatched.ErrNoCandidates},
	{"duplicate candidate", mapmatched.ErrDuplicateCandidate},
	{"empty chunk ID", mapmatched.ErrEmptyChunkID},
	{"not finite", mapmatched.ErrNonFinite},
	{"distance out of range", mapmatched.ErrDistance},
	{"stale index", mapmatched.ErrStaleIndex},
	{"closed", mapmatched.ErrClosed},
}

// kindCodes gives the code that stands for a kind.
var kindCodes = map[mapmatched.Kind]codes.Code{
	mapmatched.KindNotFound:        codes.NotFound,
	mapmatched.KindUnauthenticated: codes.Unauthenticated,
	mapmatched.KindUnavailable:     codes.Unavailable,
	mapmatched.KindInvalid:         codes.InvalidArgument,
	mapmatched.KindDeadline:        codes.DeadlineExceeded,
	mapmatched.KindCorrupt:         codes.DataLoss,
}

// codeKinds gives the kind that a code stands for.
var codeKinds = map[codes.Code]mapmatched.Kind{
	codes.NotFound:           mapmatched.KindNotFound,
	codes.Unauthenticated:    mapmatched.KindUnauthenticated,
	codes.PermissionDenied:   mapmatched.KindUnauthenticated,
	codes.Unavailable:        mapmatched.KindUnavailable,
	codes.ResourceExhausted:  mapmatched.KindUnavailable,
	codes.InvalidArgument:    mapmatched.KindInvalid,
	codes.FailedPrecondition: mapmatched.KindInvalid,
	codes.OutOfRange:         mapmatched.KindInvalid,
	codes.Unimplemented:      mapmatched.KindInvalid,
	codes.DeadlineExceeded:   mapmatched.KindDeadline,
	codes.Canceled:           mapmatched.KindDeadline,
	codes.DataLoss:           mapmatched.KindCorrupt,
	codes.Internal:           mapmatched.KindUnavailable,
	codes.Unknown:            mapmatched.KindUnavailable,
}

// maxMessageText bounds what travels of an error's text, in bytes.
const maxMessageText = 4 << 10

// toStatus makes the status of a failed call.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	kind := mapmatched.KindOf(err)
	code, known := kindCodes[kind]
	if !known {
		code = codes.Unknown
	}
	switch {
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	detail := &wire.ErrorDetail{Kind: string(kind)}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			detail.Cause = c.name
			break
		}
	}
	s := status.New(code, oneLine(err.Error()))
	if with, detailErr := s.WithDetails(detail); detailErr == nil {
		s = with
	}
	return s.Err()
}

// fromStatus makes the error of a failed call again. What the plugin sent
// itself, and not the transport, has a detail or a code that only servers
// send; byPlugin reports that.
func fromStatus(err error) (kind mapmatched.Kind, byPlugin bool, cause error) {
	s, ok := status.FromError(err)
	if !ok {
		return mapmatched.KindUnavailable, false, err
	}
	kind, known := codeKinds[s.Code()]
	if !known {
		kind = mapmatched.KindUnavailable
	}
	var wrapped []error
	for _, d := range s.Details() {
		detail, ok := d.(*wire.ErrorDetail)
		if !ok {
			continue
		}
		byPlugin = true
		if _, valid := kindCodes[mapmatched.Kind(detail.Kind)]; valid {
			kind = mapmatched.Kind(detail.Kind)
		}
		for _, c := range causes {
			if c.name == detail.Cause {
				wrapped = append(wrapped, c.err)
			}
		}
	}
	switch s.Code() {
	case codes.Canceled:
		wrapped = append(wrapped, context.Canceled)
	case codes.DeadlineExceeded:
		wrapped = append(wrapped, context.DeadlineExceeded)
	}
	text := oneLine(s.Message())
	if m := overLimit.FindStringSubmatch(text); m != nil && s.Code() == codes.ResourceExhausted {
		if m[1] == strconv.Itoa(maxMessage) {
			return mapmatched.KindInvalid, true, fmt.Errorf("a message is above the limit of %d MiB, ask for less at once: %s", maxMessage>>20, text)
		}
		return mapmatched.KindInvalid, true, fmt.Errorf("a message is above the limit of %s bytes that the plugin has set itself, it has to allow %d (%d MiB): %s", m[1], maxMessage, maxMessage>>20, text)
	}
	if text == "" {
		text = "failed with " + s.Code().String() + " and no message"
	}
	byPlugin = byPlugin || s.Code() != codes.Unavailable
	if len(wrapped) == 0 {
		return kind, byPlugin, errors.New(text)
	}
	if !strings.Contains(text, wrapped[0].Error()) {
		text += ": " + wrapped[0].Error()
	}
	return kind, byPlugin, worded{text, errors.Join(wrapped...)}
}

// overLimit matches what gRPC in Go and in C says of a message that is too
// large, and finds the limit.
var overLimit = regexp.MustCompile(`message (?:after decompression )?larger than max \(?(?:\d+ vs\. )?(\d+)`)

// worded is an error with a text of its own that still has its cause.
type worded struct {
	text  string
	cause error
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.cause }

// oneLine joins the lines of a text and bounds its length.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, isBreak), " | ")
	return cut(text, maxMessageText)
}

// isBreak reports whether a rune begins another line, on one of the terminals
// that there are.
func isBreak(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }

// cut bounds the length of a text in bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " …"
}
