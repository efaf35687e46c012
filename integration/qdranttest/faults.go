package qdranttest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fault is something that goes wrong with calls. What it asks for happens in the
// order of its fields. All faults that fit a call take part, in the order they
// were injected in, until one of them ends the call.
type Fault struct {
	// Method is the method it concerns as in Calls, such as "Points/Query"; ""
	// means all.
	Method string
	// Skip is how many calls pass before it begins.
	Skip int
	// Times is how many calls it then concerns, 0 for all.
	Times int

	// Delay is how long the call waits first, or until its context ends.
	Delay time.Duration
	// Drop resets the connection: the client gets no answer.
	Drop bool
	// Code refuses the call with Message, when it is not OK. The call is not
	// carried out.
	Code    codes.Code
	Message string
	// RetryAfter is sent with Code as the trailer retry-after in whole seconds,
	// rounded up, when it is above 0.
	RetryAfter time.Duration

	// Padding makes the reply larger by this many bytes, in a field that clients
	// do not know.
	Padding int
	// Scores replaces the scores of the first points of every list of a Query or
	// QueryBatch reply; the order stays. NaN and infinities travel as they are.
	Scores []float32
}

// Unavailable is the fault of a shard that cannot answer now.
func Unavailable() Fault {
	return Fault{Code: codes.Unavailable, Message: "Shard temporarily unavailable: The shard is not active"}
}

// RateLimited is the fault of a collection whose read limit is used up. The
// wait is rounded up to whole seconds.
func RateLimited(wait time.Duration) Fault {
	return Fault{
		Code: codes.ResourceExhausted,
		Message: "Rate limiting exceeded: Read rate limit exceeded: Operation requires 1 tokens but only 0.0 were available. Retry after " +
			wholeSeconds(wait) + "s",
		RetryAfter: wait,
	}
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

type faults struct {
	mu     sync.Mutex
	active []*activeFault
}

type activeFault struct {
	Fault
	seen int
}

// Inject adds a fault to the running server and returns what removes it. It
// panics when the method does not exist, because a fault that never strikes
// makes a test that cannot fail.
func (s *Server) Inject(f Fault) (remove func()) {
	if f.Method != "" && !slices.Contains(Methods(), f.Method) {
		panic(fmt.Sprintf("qdranttest: fault for the unknown method %q: want one of %q", f.Method, Methods()))
	}
	a := &activeFault{Fault: f}
	a.Scores = slices.Clone(f.Scores)
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.active = append(s.faults.active, a)
	return func() {
		s.faults.mu.Lock()
		defer s.faults.mu.Unlock()
		s.faults.active = slices.DeleteFunc(s.faults.active, func(other *activeFault) bool { return other == a })
	}
}

// ClearFaults removes every fault. Calls that wait in a delay wait on.
func (s *Server) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.active = nil
}

// Methods lists the methods a fault can name, sorted.
func Methods() []string {
	var names []string
	for _, service := range []grpc.ServiceDesc{qdrant.Qdrant_ServiceDesc, qdrant.Collections_ServiceDesc, qdrant.Points_ServiceDesc, qdrant.Snapshots_ServiceDesc} {
		for _, m := range service.Methods {
			names = append(names, methodName(service.ServiceName+"/"+m.MethodName))
		}
	}
	slices.Sort(names)
	return names
}

// strike returns the faults of one call.
func (f *faults) strike(method string) []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var struck []Fault
	for _, a := range f.active {
		if a.Method != "" && a.Method != method {
			continue
		}
		a.seen++
		if a.seen > a.Skip && (a.Times == 0 || a.seen <= a.Skip+a.Times) {
			struck = append(struck, a.Fault)
		}
	}
	return struck
}

// fail is the interceptor that carries faults out.
func (s *Server) fail(l *listener) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		struck := s.faults.strike(methodName(info.FullMethod))
		for _, f := range struck {
			if err := f.before(ctx, l); err != nil {
				return nil, err
			}
		}
		reply, err := next(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, f := range struck {
			f.after(reply)
		}
		return reply, nil
	}
}

// before is what happens instead of a call.
func (f *Fault) before(ctx context.Context, l *listener) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if f.Drop {
		if p, ok := peer.FromContext(ctx); ok {
			l.drop(p.Addr.String())
		}
		return status.Error(codes.Unavailable, "connection dropped")
	}
	if f.Code == codes.OK {
		return nil
	}
	if f.RetryAfter > 0 {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("retry-after", wholeSeconds(f.RetryAfter))); err != nil {
			return err
		}
	}
	return status.Error(f.Code, f.Message)
}

// paddingField is a field number no message of Qdrant has.
const paddingField = 9999

// after is what happens to a reply.
func (f *Fault) after(reply any) {
	if f.Padding > 0 {
		if m, ok := reply.(proto.Message); ok {
			raw := protowire.AppendTag(nil, paddingField, protowire.BytesType)
			raw = protowire.AppendBytes(raw, make([]byte, f.Padding))
			m.ProtoReflect().SetUnknown(raw)
		}
	}
	if len(f.Scores) == 0 {
		return
	}
	switch r := reply.(type) {
	case *qdrant.QueryResponse:
		f.rescore(r.Result)
	case *qdrant.QueryBatchResponse:
		for _, list := range r.Result {
			f.rescore(list.Result)
		}
	}
}

func (f *Fault) rescore(points []*qdrant.ScoredPoint) {
	for i := range min(len(points), len(f.Scores)) {
		points[i].Score = f.Scores[i]
	}
}
