package graphbuild

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mapmatched/mmplug/internal/kernel"
)

// selection finds the k nearest of all the rows that each row is offered.
//
// Offers come with a score, the cosine within scoreError e. A row keeps those
// that may still be among its k nearest: when s is its kth best score, k rows
// have a cosine of at least s − e, so nothing with a score below s − 2e is
// among them. When more are kept than there is room for, and at the end, the
// distances are measured in float64 and decide, ties by row. What comes out is
// therefore the k least of the total order (distance, row), whatever the order
// of the offers, and the same as without any kernel.
type selection struct {
	rows    *rowSet
	of      []int32 // the row that each place selects for
	k, room int
	err     float64

	offers []offer // room for each place
	count  []int32
	bound  []atomic.Uint32 // bits of the least score that matters to each place; it only rises
	locks  [256]sync.Mutex // place p has the lock p/16 mod 256
}

// offer is a row with its score.
type offer struct {
	score float32
	row   int32
}

// nearest is a row at its distance.
type nearest struct {
	distance float64
	row      int32
}

// newSelection begins a selection for some rows of a set.
func newSelection(rows *rowSet, of []int32, k int) *selection {
	s := &selection{rows: rows, of: of, k: k, room: 3*k + 8, err: rows.scoreError()}
	s.offers = make([]offer, len(of)*s.room)
	s.count = make([]int32, len(of))
	s.bound = make([]atomic.Uint32, len(of))
	for i := range s.bound {
		s.bound[i].Store(math.Float32bits(float32(math.Inf(-1))))
	}
	return s
}

// lineup are the rows of a panel. A place of −1 selects nothing.
type lineup struct {
	row, place [kernel.PanelRows]int32
	bound      [kernel.PanelRows]float32
}

// set fills a lineup with rows; place gives the place of each, nil is that of
// the same number.
func (l *lineup) set(rows, place []int32) {
	if place == nil {
		place = rows
	}
	for i := range l.row {
		l.row[i], l.place[i] = -1, -1
		if i < len(rows) {
			l.row[i], l.place[i] = rows[i], place[i]
		}
	}
}

// refresh reads the bounds of the rows.
func (l *lineup) refresh(s *selection) {
	for i, p := range l.place {
		if l.bound[i] = float32(math.Inf(1)); p >= 0 {
			l.bound[i] = math.Float32frombits(s.bound[p].Load())
		}
	}
}

// offerBlock offers the rows of two lineups to each other.
func (s *selection) offerBlock(m *measure, block *kernel.Block, a, b *lineup) {
	a.refresh(s)
	b.refresh(s)
	for i, bound := range a.bound {
		if a.row[i] < 0 {
			return
		}
		for j, score := range (*[kernel.PanelRows]float32)(block[i*kernel.PanelRows:]) {
			if score < bound && score < b.bound[j] || a.row[i] == b.row[j] || b.row[j] < 0 {
				continue
			}
			if score >= bound {
				s.offer(m, a.place[i], b.row[j], score)
			}
			if score >= b.bound[j] {
				s.offer(m, b.place[j], a.row[i], score)
			}
		}
	}
}

func (s *selection) offer(m *measure, place, row int32, score float32) {
	lock := &s.locks[place/kernel.PanelRows%int32(len(s.locks))]
	lock.Lock()
	defer lock.Unlock()
	if score < math.Float32frombits(s.bound[place].Load()) {
		return
	}
	kept := s.kept(place)
	kept = append(kept, offer{score, row})
	s.count[place]++
	if len(kept) == s.room {
		s.prune(m, place)
	}
}

// kept are the offers that a place has, with the capacity it has room for.
func (s *selection) kept(place int32) []offer {
	at := int(place) * s.room
	return s.offers[at : at+int(s.count[place]) : at+s.room]
}

// prune drops what cannot be among the k nearest, at least room/3 offers.
func (s *selection) prune(m *measure, place int32) {
	kept := s.dropByScore(place)
	if len(kept) <= s.room*2/3 {
		return
	}
	near := s.measured(m, place, make([]nearest, 0, s.room))[:s.k]
	// The k nearest, in front, in the order of near.
	for i, n := range near {
		at := i + slices.IndexFunc(kept[i:], func(o offer) bool { return o.row == n.row })
		kept[i], kept[at] = kept[at], kept[i]
	}
	s.count[place] = int32(s.k)
	s.raise(place, 1-near[s.k-1].distance-s.err)
}

// dropByScore drops repeated offers and those with a score that is too low, and
// returns the others.
func (s *selection) dropByScore(place int32) []offer {
	kept := s.kept(place)
	slices.SortFunc(kept, func(a, b offer) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return int(a.row) - int(b.row)
	})
	kept = slices.Compact(kept)
	if len(kept) > s.k {
		s.raise(place, float64(kept[s.k-1].score)-2*s.err)
		bound := math.Float32frombits(s.bound[place].Load())
		for kept[len(kept)-1].score < bound {
			kept = kept[:len(kept)-1]
		}
	}
	s.count[place] = int32(len(kept))
	return kept
}

// raise raises the bound of a place to the greatest float32 not above a score.
func (s *selection) raise(place int32, score float64) {
	bound := float32(score)
	if float64(bound) > score {
		bound = math.Nextafter32(bound, float32(math.Inf(-1)))
	}
	if bound > math.Float32frombits(s.bound[place].Load()) {
		s.bound[place].Store(math.Float32bits(bound))
	}
}

// measured appends the offers of a place to near, nearest first.
func (s *selection) measured(m *measure, place int32, near []nearest) []nearest {
	for _, o := range s.kept(place) {
		near = append(near, nearest{m.distance(s.of[place], o.row), o.row})
	}
	slices.SortFunc(near, closer)
	return near
}

// closer orders by distance, then row.
func closer(a, b nearest) int {
	switch {
	case a.distance < b.distance:
		return -1
	case a.distance > b.distance:
		return 1
	}
	return int(a.row) - int(b.row)
}

// neighbours are the nearest of each place, nearest first: those of place p are
// list[p*k : p*k+count[p]].
type neighbours struct {
	k     int
	list  []nearest
	count []int32
}

func (n *neighbours) of(place int) []nearest {
	return n.list[place*n.k : place*n.k+int(n.count[place])]
}

// finish returns what each place selects. The selection can go on after it.
func (s *selection) finish(ctx context.Context, p *progress) (*neighbours, error) {
	n := &neighbours{k: s.k, list: make([]nearest, len(s.of)*s.k), count: make([]int32, len(s.of))}
	err := forEach(ctx, panelsOf(len(s.of)), p, func() func(int) {
		m := s.rows.newMeasure()
		near := make([]nearest, 0, s.room)
		return func(panel int) {
			for place := panel * kernel.PanelRows; place < min((panel+1)*kernel.PanelRows, len(s.of)); place++ {
				s.dropByScore(int32(place))
				near = s.measured(m, int32(place), near[:0])
				n.count[place] = int32(copy(n.list[place*s.k:(place+1)*s.k], near))
			}
		}
	})
	return n, err
}
