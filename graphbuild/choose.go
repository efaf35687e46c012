package graphbuild

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// DistanceMethod says how a graph file answers distances. All methods give the
// same bits.
type DistanceMethod string

// The methods.
const (
	DistancesAuto   DistanceMethod = ""       // choose by estimated size
	DistancesSearch DistanceMethod = "search" // search for every question; takes no space
	DistancesTable  DistanceMethod = "table"  // look up what was searched for beforehand
	DistancesLabels DistanceMethod = "labels" // 2-hop labels, for graphs whose table would be too large
)

// DefaultTableLimit is how many bytes a table or labels may take unless told
// otherwise: 1 GiB.
const DefaultTableLimit = 1 << 30

// estimateSources is from how many nodes the size of a table is estimated.
const estimateSources = 64

// What is spent on labels unless they are asked for. Labels have taken from a
// half to a tenth of the table, so they are not tried when a table would take
// labelShare times the limit, and given up after labelWork entries and arcs
// looked at, which is a minute or two.
const (
	labelShare = 16
	labelWork  = int64(1) << 34
)

// DistanceChoice is how a graph file answers distances, and why.
type DistanceChoice struct {
	Method DistanceMethod `json:"method"` // never DistancesAuto
	Reason string         `json:"reason"` // one sentence
	Reach  float64        `json:"reach"`  // estimated mean of other chunks within the maximum distance of one; 0 if nobody had to know
	Bytes  int64          `json:"bytes"`  // of the table or labels
}

// byteCount writes a size for people.
func byteCount(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// indexWriter chooses how distances are answered and writes what that needs.
type indexWriter struct {
	w        *sectionWriter
	adj      *mapmatched.Adjacency
	directed bool
	maximum  float64
	limit    int64
	progress func(step string, done, total int)
	exact    bool // sums of labels do not round
}

// step is the progress of a step.
func (x *indexWriter) step(name string) func(done, total int) {
	if x.progress == nil {
		return nil
	}
	return func(done, total int) { x.progress(name, done, total) }
}

// write makes the choice and writes its sections.
func (x *indexWriter) write(ctx context.Context, method DistanceMethod) (DistanceChoice, error) {
	c := DistanceChoice{Method: method}
	switch {
	case method == DistancesSearch:
		c.Reason = "a search was asked for"
		return c, nil
	case method == DistancesAuto && len(x.adj.Arcs) == 0:
		c.Method, c.Reason = DistancesSearch, "there are no edges to search"
		return c, nil
	}
	enough := x.limit // bytes that decide
	if method != DistancesTable {
		enough = labelBound(x.limit)
	}
	estimate, reach, err := tableBytes(ctx, x.adj, x.maximum, enough, newProgress(x.step("size of a table")))
	if err != nil {
		return DistanceChoice{}, err
	}
	c.Reach = reach
	limit := byteCount(x.limit)
	switch {
	case method == DistancesTable && estimate > x.limit:
		return c, fmt.Errorf("the distance table would take about %s (a chunk reaches %.0f others), over the limit of %s: raise the limit, lower the maximum distance, or use labels",
			byteCount(estimate), reach, limit)
	case method == DistancesTable:
		c.Reason = "a table was asked for"
	case method == DistancesLabels:
		c.Reason = "labels were asked for"
	case estimate <= x.limit:
		c.Method = DistancesTable
		c.Reason = fmt.Sprintf("a chunk reaches about %.0f others, so the table takes about %s, within the limit of %s", reach, byteCount(estimate), limit)
	case estimate > labelBound(x.limit):
		c.Method = DistancesSearch
		c.Reason = fmt.Sprintf("a chunk reaches about %.0f others, so a table would take about %s, more than %d times the limit of %s, beyond which labels are not tried unless asked for",
			reach, byteCount(estimate), labelShare, limit)
		return c, nil
	default:
		c.Method = DistancesLabels
		c.Reason = fmt.Sprintf("a chunk reaches about %.0f others, so a table would take about %s, over the limit of %s", reach, byteCount(estimate), limit)
	}
	if c.Method == DistancesTable {
		err := x.table(ctx, &c)
		if !errors.As(err, new(errOverLimit)) {
			return c, err
		}
		if method == DistancesTable {
			return c, fmt.Errorf("the distance table takes more than the limit of %s: raise the limit, lower the maximum distance, or use labels", limit)
		}
		c.Method = DistancesLabels
		c.Reason = fmt.Sprintf("a chunk reaches more than about %.0f others, so a table takes more than the limit of %s", reach, limit)
	}
	work := labelWork
	if method == DistancesLabels {
		work = math.MaxInt64
	}
	err = x.labels(ctx, &c, work)
	over := errors.As(err, new(errOverLimit))
	switch {
	case !over && !errors.Is(err, errLabelRange) && !errors.Is(err, errLabelWork):
		return c, err
	case method == DistancesLabels && over:
		return c, fmt.Errorf("labels take more than the limit of %s: raise the limit, lower the maximum distance, or do without", limit)
	case method == DistancesLabels:
		return c, err
	case over:
		c.Reason += ", and so do labels"
	case errors.Is(err, errLabelWork):
		c.Reason += ", and labels take too long to make unless asked for"
	default:
		c.Reason += ", and " + err.Error()
	}
	c.Method = DistancesSearch
	return c, nil
}

// labelBound is how many bytes a table may take for labels to be tried.
func labelBound(limit int64) int64 { return min(limit, math.MaxInt64/labelShare) * labelShare }

// table writes the table. After errOverLimit the file is as before.
func (x *indexWriter) table(ctx context.Context, c *DistanceChoice) error {
	mark := x.w.mark()
	x.w.begin(sectionTable)
	first, err := writeTable(ctx, x.adj, x.maximum, x.limit, x.w, x.step("distance table"))
	if errors.As(err, new(errOverLimit)) {
		return errors.Join(err, x.w.rewind(mark))
	}
	if err != nil {
		return err
	}
	if err := x.w.end(); err != nil {
		return err
	}
	c.Bytes = int64(8*first[len(first)-1]) + int64(8*len(first))
	return x.w.put(sectionTableFirst, len(first), func(b []byte, i int) []byte { return appendUint64(b, first[i]) })
}

// labels writes the labels, or nothing when they are over the limit.
func (x *indexWriter) labels(ctx context.Context, c *DistanceChoice, work int64) error {
	out, in, slack, err := buildLabels(ctx, x.adj, x.directed, x.maximum, x.limit, work, x.step("labels"))
	if err != nil {
		return err
	}
	x.exact = slack.exact
	for _, side := range []struct {
		set                *labelSet
		first, hubs, steps sectionKind
	}{
		{out, sectionLabelFirst, sectionLabelHubs, sectionLabelSteps},
		{in, sectionLabelInFirst, sectionLabelInHubs, sectionLabelInSteps},
	} {
		l := side.set
		if l == nil {
			continue
		}
		c.Bytes += int64(4*len(l.first) + 8*len(l.hubs) + 8*len(l.steps))
		if err := x.w.put(side.first, len(l.first), func(b []byte, i int) []byte { return appendUint32(b, l.first[i]) }); err != nil {
			return err
		}
		err := x.w.put(side.hubs, len(l.hubs), func(b []byte, i int) []byte {
			return appendFloat32(appendUint32(b, l.hubs[i].rank), l.hubs[i].distance)
		})
		if err != nil {
			return err
		}
		err = x.w.put(side.steps, len(l.steps), func(b []byte, i int) []byte {
			return appendUint32(appendUint32(b, l.steps[i].next), l.steps[i].arc)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
