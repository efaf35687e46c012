package qdranttest

import (
	"slices"
	"sync"
	"time"

	"github.com/qdrant/go-client/qdrant"
)

// store is all the data of a server. It outlives Kill.
type store struct {
	writeDelay time.Duration
	seed       uint64

	mu          sync.RWMutex
	collections map[string]*collection
	aliases     map[string]string // alias to name of collection
}

func newStore(writeDelay time.Duration, seed uint64) *store {
	return &store{writeDelay: writeDelay, seed: seed, collections: map[string]*collection{}, aliases: map[string]string{}}
}

// find returns a collection by its name or an alias.
func (s *store) find(name string) (*collection, error) {
	if err := checkName("collection_name", name); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.collections[name]; c != nil {
		return c, nil
	}
	if c := s.collections[s.aliases[name]]; c != nil {
		return c, nil
	}
	return nil, notFound("Collection `%s` doesn't exist!", name)
}

func (s *store) settleAll() {
	s.mu.RLock()
	all := make([]*collection, 0, len(s.collections))
	for _, c := range s.collections {
		all = append(all, c)
	}
	s.mu.RUnlock()
	for _, c := range all {
		c.mu.Lock()
		c.settle(time.Time{})
		c.mu.Unlock()
	}
}

// point is one stored point. It does not change once it is stored: a write puts
// another one in its place, so readers need no lock.
type point struct {
	id      pointID
	version uint64
	payload map[string]*qdrant.Value
	vectors map[string]vector // the unnamed vector is ""
}

// collection is one collection.
type collection struct {
	name    string
	delay   time.Duration
	vectors vectorSet // fixed at creation

	mu      sync.Mutex
	config  *qdrant.CreateCollection // replaced, never changed
	points  map[pointID]*point
	indexes map[string]*payloadIndex // replaced, never changed
	ops     uint64                   // number of the next write
	pending []pendingWrite           // in the order they came
	view    *view                    // nil after a write
}

// pendingWrite is a write with wait=false that is not visible yet.
type pendingWrite struct {
	due   time.Time
	apply func()
}

// view is a collection at one moment. It does not change.
type view struct {
	vectors vectorSet
	points  []*point // in ascending order of ID
	indexes map[string]*payloadIndex
}

// settle applies the writes that are due; the zero time means all.
func (c *collection) settle(now time.Time) {
	for len(c.pending) > 0 && (now.IsZero() || !c.pending[0].due.After(now)) {
		c.pending[0].apply()
		c.pending = c.pending[1:]
		c.view = nil
	}
}

// read returns what a reader sees now.
func (c *collection) read() *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(time.Now())
	if c.view == nil {
		points := make([]*point, 0, len(c.points))
		for _, p := range c.points {
			points = append(points, p)
		}
		slices.SortFunc(points, func(a, b *point) int { return compareID(a.id, b.id) })
		c.view = &view{vectors: c.vectors, points: points, indexes: c.indexes}
	}
	return c.view
}

// write carries a write out, now when wait says so, else after the delay. The
// error of a write that does not wait is lost.
func (c *collection) write(wait bool, change func(version uint64) error) (*qdrant.UpdateResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version := c.ops
	c.ops++
	result := &qdrant.UpdateResult{OperationId: &version, Status: qdrant.UpdateStatus_Completed}
	if !wait {
		result.Status = qdrant.UpdateStatus_Acknowledged
		c.pending = append(c.pending, pendingWrite{
			due:   time.Now().Add(max(c.delay, 0)),
			apply: func() { _ = change(version) },
		})
		return result, nil
	}
	c.settle(time.Time{})
	c.view = nil
	if err := change(version); err != nil {
		return nil, err
	}
	return result, nil
}

// at finds a point by ID.
func (v *view) at(id pointID) *point {
	i, found := slices.BinarySearchFunc(v.points, id, func(p *point, id pointID) int { return compareID(p.id, id) })
	if !found {
		return nil
	}
	return v.points[i]
}
