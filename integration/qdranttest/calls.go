package qdranttest

import (
	"context"
	"maps"
	"strings"
	"sync"

	"google.golang.org/grpc"
)

// calls counts calls by method.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

// methodName shortens /qdrant.Points/Query to Points/Query.
func methodName(full string) string {
	return strings.TrimPrefix(strings.TrimPrefix(full, "/"), "qdrant.")
}

func (s *Server) count(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	s.calls.mu.Lock()
	if s.calls.n == nil {
		s.calls.n = map[string]int{}
	}
	s.calls.n[methodName(info.FullMethod)]++
	s.calls.mu.Unlock()
	return next(ctx, req)
}

// Calls says how often each method was called since the start or the last
// ResetCalls, refused and failed calls included. The keys are service and
// method, such as "Points/Query", "Collections/Get" and "Qdrant/HealthCheck".
func (s *Server) Calls() map[string]int {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return maps.Clone(s.calls.n)
}

// ResetCalls sets all counts to 0.
func (s *Server) ResetCalls() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.n = nil
}
