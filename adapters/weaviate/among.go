package weaviate

import (
	"context"
	"strings"
)

// lookupBatch is how many values are looked up in one request, where the server
// answers as many results.
const lookupBatch = 256

// The server answers as many results as its setting QUERY_MAXIMUM_RESULTS says,
// which it does not tell.
const usualMaximum = 10000 // default of that setting

// most is the limit to ask for where as many results as possible are wanted.
func (s *server) most() int {
	if refused := s.refused.Load(); refused > 0 {
		return max(int(refused)/2, 1)
	}
	return usualMaximum
}

// allows reports whether the server is not known to refuse a limit.
func (s *server) allows(limit int) bool {
	refused := s.refused.Load()
	return refused == 0 || int64(limit) < refused
}

// refuses notes that the server refused a limit, and reports whether a lower one
// is left to be tried.
func (s *server) refuses(limit int, err error) bool {
	if err == nil || limit <= 1 || !strings.Contains(err.Error(), maximumResults) {
		return false
	}
	for {
		refused := s.refused.Load()
		if refused > 0 && refused <= int64(limit) || s.refused.CompareAndSwap(refused, int64(limit)) {
			return true
		}
	}
}

// among runs a request restricted to objects whose property at path has one of
// the values, for as many values at a time as the server answers, and calls f
// with each answer and the values that it is for. Where objects share a value,
// fewer values are asked about at a time when the answer is full; cut says that
// one is full for a value alone. The request is changed.
func (s *server) among(ctx context.Context, r *search, path, values []string, share bool, f func(values []string, hits []hit, cut bool) error) error {
	where := r.where
	for size := lookupBatch; len(values) > 0; {
		size = min(size, len(values), s.most())
		part := values[:size]
		if r.limit = size; share {
			r.limit = s.most()
		}
		r.where = both(anyOf(path, part), where)
		hits, err := s.find(ctx, r)
		full := share && len(hits) == r.limit
		switch {
		case s.refuses(r.limit, err):
			continue
		case err != nil:
			return err
		case full && size > 1:
			size /= 2
			continue
		}
		if err := f(part, hits, full); err != nil {
			return err
		}
		values = values[size:]
		size = min(2*size, lookupBatch)
	}
	return nil
}
