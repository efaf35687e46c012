package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"github.com/weaviate/weaviate-go-client/v4/weaviate/fault"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
)

// adapterName is the adapter in the errors of this package.
const adapterName = "weaviate"

// reply is what a server answered instead of a result.
type reply struct {
	kind    mapmatched.Kind
	again   bool // the same request may succeed a little later
	message string
}

func (r *reply) Error() string { return r.message }

// invalid is a fault of what is asked or set.
func invalid(format string, args ...any) error {
	return &reply{kind: mapmatched.KindInvalid, message: fmt.Sprintf(format, args...)}
}

// corrupt is an answer that cannot be right.
func corrupt(format string, args ...any) error {
	return &reply{kind: mapmatched.KindCorrupt, message: fmt.Sprintf(format, args...)}
}

// translate turns the errors of the client, of gRPC and of the network into a
// reply, or returns those of the caller's context as they are.
func translate(err error) error {
	var r *reply
	var client *fault.WeaviateClientError
	switch {
	case err == nil, errors.As(err, &r), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &client):
		// The client's type hides its cause from errors.Is.
		if client.DerivedFromError != nil {
			return translate(client.DerivedFromError)
		}
		if client.IsUnexpectedStatusCode {
			return translateHTTP(client.StatusCode, client.Msg)
		}
		return corrupt("the answer is not understood: %s", oneLine(client.Msg))
	}
	if s, ok := status.FromError(err); ok {
		return translateGRPC(s)
	}
	var network net.Error
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return corrupt("the answer is no JSON: %v", err)
	case untrusted(err.Error()):
		return &reply{kind: mapmatched.KindUnavailable, message: oneLine(err.Error()) + ": name the certificate of its issuer in CAFile"}
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &reply{kind: mapmatched.KindUnavailable, again: true, message: oneLine(err.Error())}
	}
	return err
}

// untrusted reports whether a message is of a certificate that was refused.
func untrusted(message string) bool {
	return strings.Contains(message, "x509:") || strings.Contains(message, "tls: failed to verify")
}

// translateHTTP reads the error of a REST call.
func translateHTTP(code int, body string) error {
	r := &reply{message: fmt.Sprintf("HTTP status %d", code)}
	if text := bodyMessage(body); text != "" {
		r.message = text
	}
	switch code {
	case http.StatusUnauthorized:
		r.kind = mapmatched.KindUnauthenticated
	case http.StatusForbidden:
		r.kind = mapmatched.KindUnauthenticated
		r.message += ": " + mayNot
	case http.StatusNotFound:
		r.kind = mapmatched.KindNotFound
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		r.kind, r.again = mapmatched.KindUnavailable, true
	default:
		r.kind = mapmatched.KindInvalid
	}
	return hinted(r)
}

// bodyMessage finds the text in the body of an error.
func bodyMessage(body string) string {
	var answer struct {
		Message string `json:"message"`
		Error   []struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return oneLine(body)
	}
	parts := []string{}
	if answer.Message != "" {
		parts = append(parts, oneLine(answer.Message))
	}
	for _, e := range answer.Error {
		parts = append(parts, oneLine(e.Message))
	}
	return strings.Join(parts, "; ")
}

// translateGRPC reads the error of a gRPC call.
func translateGRPC(s *status.Status) error {
	r := &reply{message: oneLine(s.Message())}
	switch s.Code() {
	case codes.Canceled:
		return fmt.Errorf("%s: %w", r.message, context.Canceled)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: %w", r.message, context.DeadlineExceeded)
	case codes.Unauthenticated, codes.PermissionDenied:
		r.kind = mapmatched.KindUnauthenticated
	case codes.NotFound:
		r.kind = mapmatched.KindNotFound
	case codes.Unavailable:
		r.kind, r.again = mapmatched.KindUnavailable, true
		if untrusted(r.message) {
			r.again = false
			r.message += ": name the certificate of its issuer in CAFile"
		}
	case codes.ResourceExhausted:
		r.kind, r.again = mapmatched.KindUnavailable, true
		if tooLarge(s.Err()) {
			r.kind, r.again = mapmatched.KindInvalid, false
			r.message += fmt.Sprintf(": the messages of one call are limited to %d bytes, ask for fewer objects at a time", maxMessage)
		}
	case codes.Unimplemented:
		r.kind = mapmatched.KindInvalid
		r.message += " It takes version 1.27 or later."
	default:
		r.kind = mapmatched.KindInvalid
	}
	return hinted(r)
}

// unreached names the address and what to do in the error of a gRPC call that
// met no Weaviate server.
func unreached(target string, err error) error {
	switch s := status.Convert(err); {
	case s.Code() == codes.Unavailable && !untrusted(s.Message()), s.Code() == codes.Unimplemented,
		(s.Code() == codes.Unknown || s.Code() == codes.Internal) && strings.Contains(s.Message(), "unexpected HTTP status code"):
		return status.Errorf(s.Code(), "gRPC at %s: %s: is the server up and this its gRPC port?", target, s.Message())
	}
	return err
}

// tooLarge reports whether a gRPC message was too large for either side.
func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// hinted finds the kind of what the server only says in words, and adds what to
// do.
func hinted(r *reply) *reply {
	for _, h := range hints {
		if !strings.Contains(strings.ToLower(r.message), h.part) {
			continue
		}
		r.kind, r.again = h.kind, h.again
		if !strings.Contains(r.message, h.hint) {
			r.message += ": " + h.hint
		}
		return r
	}
	return r
}

// hints are tried in order; the parts are in lower case.
var hints = []struct {
	part  string
	kind  mapmatched.Kind
	again bool
	hint  string
}{
	{maximumResults, mapmatched.KindInvalid, false, "it is a setting of the server, QUERY_MAXIMUM_RESULTS, ask for fewer at a time"},
	{"but request was without tenant", mapmatched.KindInvalid, false, "name one in Tenant"},
	{"tenant not found", mapmatched.KindNotFound, false, "create it, or name another in Tenant"},
	{"tenant not active", mapmatched.KindUnavailable, false, "activate it first"},
	{"oidc auth is not configured", mapmatched.KindUnauthenticated, false, "the server takes no keys, leave the key out"},
	{"anonymous access not enabled", mapmatched.KindUnauthenticated, false, "the server wants a key, give APIKey or ClientSecret"},
	{"invalid api key", mapmatched.KindUnauthenticated, false, "use a key that the server knows"},
	{"forbidden", mapmatched.KindUnauthenticated, false, mayNot},
	{"similar class", mapmatched.KindInvalid, false, "names that differ only in case are one: spell the class as it is there, or choose another name"},
	{"could not find class", mapmatched.KindNotFound, false, "create it, or name another"},
	{"cannot query field", mapmatched.KindNotFound, false, ""},
	{"vector lengths don't match", mapmatched.KindInvalid, false, "use the model that made the vectors of the class"},
	{"store is read-only", mapmatched.KindUnavailable, false, "the server's disk or memory is nearly full"},
	{"connection refused", mapmatched.KindUnavailable, true, ""},
	{"non-existing index", mapmatched.KindUnavailable, true, "the server is starting"},
	{"leader not found", mapmatched.KindUnavailable, true, ""},
	{"shutting down", mapmatched.KindUnavailable, true, ""},
	{"not ready", mapmatched.KindUnavailable, true, ""},
}

// mayNot is what to do about a key without the right.
const mayNot = "the key may not do this, use one that may"

// maximumResults is how the server says that a limit is too high.
const maximumResults = "query maximum results exceeded"

// oneLine makes a message of a server one line of bounded length.
func oneLine(message string) string {
	const most = 400
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}

// classify makes the error of an operation, its kind found from its cause. An
// error that has a kind keeps it.
func classify(op string, err error) error {
	if err == nil || mapmatched.KindOf(err) != "" {
		return err
	}
	kind := mapmatched.KindInvalid
	var r *reply
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = mapmatched.KindDeadline
	case errors.Is(err, mapmatched.ErrClosed):
		kind = mapmatched.KindUnavailable
	case errors.Is(err, fs.ErrNotExist):
		kind = mapmatched.KindNotFound
	case errors.Is(err, mapmatched.ErrNonFinite):
		kind = mapmatched.KindCorrupt
	case errors.As(err, &r):
		kind = r.kind
	case errors.As(err, &network):
		kind = mapmatched.KindUnavailable
	}
	if strings.Contains(err.Error(), "\n") {
		err = inLine{err}
	}
	return &mapmatched.Error{Op: op, Adapter: adapterName, Kind: kind, Err: err}
}

// inLine shows joined errors in one line.
type inLine struct{ error }

func (e inLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }

func (e inLine) Unwrap() error { return e.error }

// temporary reports whether the same request may succeed a little later.
func temporary(err error) bool {
	var r *reply
	return errors.As(err, &r) && r.again
}
