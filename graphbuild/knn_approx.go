package graphbuild

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/internal/kernel"
)

// The approximate method is an inverted file: every row is put on the list of
// the nearest of some centroids, and is compared with the rows of the lists
// whose centroids are nearly as near to it as its own. "Nearly" is a difference
// of cosines, the slack. One slack suits rows in tight clusters, which then look
// at one or two lists, and stray rows, for which all centroids are about equally
// far and which then look at many.
//
// The slack is not guessed: for rows of a sample the true neighbours are found
// exactly, and each tells which slack would have found it.
const (
	listsPerRoot    = 2  // lists for n rows: about this times √n
	trainingPerList = 48 // rows that place a centroid
	trainingRounds  = 6
	sampleRows      = 768       // of each of the two samples
	probeRows       = 1 << 16   // whose probes are held at a time
	segmentRows     = 512       // of a list that are packed at a time
	worthwhile      = 0.4       // share of all rows above which comparing with lists costs more than all pairs once
	leastForLists   = 2 * 4_096 // fewer rows are compared exactly: the samples alone would cost as much
)

// quantiles of the slacks that the true neighbours of the sample need, tried in
// turn: a little above the target, so that the other sample reaches it too.
var quantiles = []float64{TargetRecall + 0.006, TargetRecall + 0.009, 1}

// approximateNeighbours returns the k nearest others of each row that it finds,
// and fills in the report. It returns nil when the exact method is called for.
func (r *rowSet) approximateNeighbours(ctx context.Context, k int, p *progress, report *KNNReport) (*neighbours, error) {
	n := r.len()
	if n < leastForLists {
		return nil, nil
	}
	// By hash, so that the choice of rows depends on the vectors alone.
	shuffled := r.all()
	slices.SortFunc(shuffled, func(a, b int32) int { return cmp.Or(cmp.Compare(r.hash[a], r.hash[b]), cmp.Compare(a, b)) })
	lists, err := r.makeLists(ctx, shuffled, p)
	if err != nil {
		return nil, err
	}
	samples := shuffled[n-2*sampleRows:]
	truth, err := r.exactFor(ctx, samples, k, p)
	if err != nil {
		return nil, err
	}
	// The even places choose, the odd ones check.
	needed := lists.neededSlacks(samples, truth)
	s := newSelection(r, r.all(), k)
	done, probes := float32(-1), 0
	for i, quantile := range quantiles {
		slack := needed[int(math.Ceil(quantile*float64(len(needed))))-1]
		if lists.meanRows(samples, slack) > worthwhile*float64(n) {
			return nil, nil
		}
		more, err := lists.probe(ctx, s, done, slack, p, progressTotal*(16+i)/20)
		if err != nil {
			return nil, err
		}
		done, probes = slack, probes+more
		found, err := s.finish(ctx, nil)
		if err != nil {
			return nil, err
		}
		if recall, err := sampleRecall(samples, truth, found); recall-err >= TargetRecall {
			report.Method, report.Recall, report.RecallError, report.Sample = KNNApproximate, recall, err, len(samples)/2
			report.Lists, report.Probes = lists.count, float64(probes)/float64(n)
			return found, nil
		}
	}
	return nil, nil
}

// sampleRecall returns the share of the true neighbours of the odd places of a
// sample that were found, and its standard error: rows are drawn, neighbours of
// one row are not independent.
func sampleRecall(samples []int32, truth, found *neighbours) (recall, err float64) {
	var sum, squares float64
	for i := 1; i < len(samples); i += 2 {
		hits := 0
		for _, want := range truth.of(i) {
			if slices.Contains(found.of(int(samples[i])), want) {
				hits++
			}
		}
		share := float64(hits) / float64(len(truth.of(i)))
		sum += share
		squares += float64(share * share)
	}
	n := float64(len(samples) / 2)
	recall = sum / n
	return recall, math.Sqrt(max(0, squares/n-float64(recall*recall)) / n)
}

// nearLists put every row on the list of its nearest centroid.
type nearLists struct {
	rows      *rowSet
	count     int
	centroids []float32   // panels, length 1
	plain     [][]float32 // the same one by one
	of        []int32     // the list of each row
	score     []float32   // of each row with its centroid
	start     []int32     // rows start[l] to start[l+1] of members are on list l
	members   []int32
}

// makeLists places the centroids by Lloyd's algorithm on the sphere, on the
// first of the rows, and puts all rows on lists.
func (r *rowSet) makeLists(ctx context.Context, shuffled []int32, p *progress) (*nearLists, error) {
	n := r.len()
	l := &nearLists{rows: r}
	l.count = panelsOf(int(listsPerRoot*math.Sqrt(float64(n)))) * kernel.PanelRows
	training := shuffled[:min(n, trainingPerList*l.count)]
	var err error
	if l.centroids, err = r.packAll(ctx, shuffled[:l.count]); err != nil {
		return nil, err
	}
	packed, err := r.packAll(ctx, training)
	if err != nil {
		return nil, err
	}
	p.stage(progressTotal/10, trainingRounds*panelsOf(len(training)))
	for range trainingRounds {
		of, _, err := l.assign(ctx, len(training), p, func() func(int) []float32 {
			return func(at int) []float32 { return kernel.Panel(packed, at, r.dim) }
		})
		if err != nil {
			return nil, err
		}
		if err := l.moveCentroids(ctx, training, of); err != nil {
			return nil, err
		}
	}
	l.plain = make([][]float32, l.count)
	for i := range l.plain {
		l.plain[i] = unpacked(l.centroids, i, r.dim)
	}
	all := r.all()
	p.stage(progressTotal*2/10, panelsOf(n))
	l.of, l.score, err = l.assign(ctx, n, p, func() func(int) []float32 {
		buffer, panel := make([]float32, r.dim), make([]float32, kernel.PanelLen(1, r.dim))
		return func(at int) []float32 {
			r.pack(panel, panelRows(all, at), buffer)
			return panel
		}
	})
	if err != nil {
		return nil, err
	}
	l.start, l.members = groupBy(l.of, l.count)
	return l, nil
}

// unpacked returns a row of a sequence of panels.
func unpacked(panels []float32, row, dim int) []float32 {
	v := make([]float32, dim)
	panel := kernel.Panel(panels, row/kernel.PanelRows, dim)
	for k := range v {
		v[k] = panel[k*kernel.PanelRows+row%kernel.PanelRows]
	}
	return v
}

// assign returns the nearest centroid of each of n rows, the first of equal
// ones, and the score with it. panel gives the panels of the rows.
func (l *nearLists) assign(ctx context.Context, n int, p *progress, panel func() func(at int) []float32) (of []int32, score []float32, err error) {
	of, score = make([]int32, n), make([]float32, n)
	err = forEach(ctx, panelsOf(n), p, func() func(int) {
		var block kernel.Block
		get := panel()
		return func(at int) {
			rows := get(at)
			first := at * kernel.PanelRows
			of, score := of[first:min(first+kernel.PanelRows, n)], score[first:min(first+kernel.PanelRows, n)]
			for i := range score {
				score[i] = float32(math.Inf(-1))
			}
			for c := range panelsOf(l.count) {
				kernel.Products(&block, rows, kernel.Panel(l.centroids, c, l.rows.dim))
				for i := range score {
					for j, s := range block[i*kernel.PanelRows : (i+1)*kernel.PanelRows] {
						if s > score[i] {
							of[i], score[i] = int32(c*kernel.PanelRows+j), s
						}
					}
				}
			}
		}
	})
	return of, score, err
}

// moveCentroids moves each centroid to the mean direction of its rows. One
// without rows, or whose rows cancel out, stays.
func (l *nearLists) moveCentroids(ctx context.Context, training []int32, of []int32) error {
	start, members := groupBy(of, l.count)
	r := l.rows
	return forEach(ctx, l.count, nil, func() func(int) {
		sum, mean, buffer := make([]float64, r.dim), make([]float32, r.dim), make([]float32, r.dim)
		return func(c int) {
			clear(sum)
			for _, i := range members[start[c]:start[c+1]] {
				u := training[i]
				scale := 1 / r.length[u]
				for j, x := range r.vector(u, buffer) {
					sum[j] += float64(float64(x) * scale)
				}
			}
			if length := math.Sqrt(dot(sum, sum)); length > 1e-6 {
				for j, x := range sum {
					mean[j] = float32(x / length)
				}
				kernel.SetRow(l.centroids, c, mean, 1)
			}
		}
	})
}

// neededSlacks returns, ascending, the slack that each true neighbour of the
// even places of a sample needs to be found: that which lets the row look at
// the neighbour's list, or the neighbour at the row's.
func (l *nearLists) neededSlacks(samples []int32, truth *neighbours) []float32 {
	mine, other := make([]float32, l.rows.dim), make([]float32, l.rows.dim)
	buffer := make([]float32, l.rows.dim)
	var slacks []float32
	for i := 0; i < len(samples); i += 2 {
		u := samples[i]
		l.rows.unit(mine, u, buffer)
		for _, near := range truth.of(i) {
			v := near.row
			l.rows.unit(other, v, buffer)
			slacks = append(slacks, max(0, min(
				l.score[u]-kernel.Dot(mine, l.plain[l.of[v]]),
				l.score[v]-kernel.Dot(other, l.plain[l.of[u]]))))
		}
	}
	slices.Sort(slacks)
	return slacks
}

// unit puts a row, scaled to length 1, into dst.
func (r *rowSet) unit(dst []float32, u int32, buffer []float32) {
	scale := 1 / r.length[u]
	for j, x := range r.vector(u, buffer) {
		dst[j] = float32(float64(x) * scale)
	}
}

// meanRows returns with how many rows a row of the sample is compared.
func (l *nearLists) meanRows(samples []int32, slack float32) float64 {
	v, buffer := make([]float32, l.rows.dim), make([]float32, l.rows.dim)
	total := 0
	for i := 0; i < len(samples); i += 2 {
		u := samples[i]
		l.rows.unit(v, u, buffer)
		for c, centroid := range l.plain {
			if kernel.Dot(v, centroid) >= l.score[u]-slack {
				total += int(l.start[c+1] - l.start[c])
			}
		}
	}
	return float64(total) / float64(len(samples)/2)
}

// probe offers to each other every row and the rows of the lists whose
// centroids have a score within slack of the best, but not within done, and
// returns how many lists the rows looked at in all.
func (l *nearLists) probe(ctx context.Context, s *selection, done, slack float32, p *progress, to int) (int, error) {
	all, probes := l.rows.all(), 0
	var segments [][2]int32 // of members, within one list
	for c := range l.count {
		for at := l.start[c]; at < l.start[c+1]; at += segmentRows {
			segments = append(segments, [2]int32{at, min(at+segmentRows, l.start[c+1])})
		}
	}
	n := len(all)
	turns := (n + probeRows - 1) / probeRows
	p.stage(to, turns*(panelsOf(probeRows)+len(segments)))
	for turn := range turns {
		rows := all[turn*probeRows : min((turn+1)*probeRows, n)]
		lists, err := l.nearListsOf(ctx, rows, done, slack, p)
		if err != nil {
			return 0, err
		}
		// Who looks at which list.
		var who, which []int32
		for i, list := range lists {
			for _, c := range list {
				who, which = append(who, rows[i]), append(which, c)
			}
		}
		probes += len(who)
		start, members := groupBy(which, l.count)
		for i, at := range members {
			members[i] = who[at]
		}
		err = forEach(ctx, len(segments), p, func() func(int) {
			w := newProber(s)
			return func(i int) {
				segment := l.members[segments[i][0]:segments[i][1]]
				c := l.of[segment[0]]
				w.compare(members[start[c]:start[c+1]], segment)
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return probes, nil
}

// nearListsOf returns the lists that each of some rows looks at, ascending.
func (l *nearLists) nearListsOf(ctx context.Context, rows []int32, done, slack float32, p *progress) ([][]int32, error) {
	r := l.rows
	lists := make([][]int32, len(rows))
	err := forEach(ctx, panelsOf(len(rows)), p, func() func(int) {
		var block kernel.Block
		buffer, panel := make([]float32, r.dim), make([]float32, kernel.PanelLen(1, r.dim))
		return func(at int) {
			rows := panelRows(rows, at)
			lists := lists[at*kernel.PanelRows:]
			r.pack(panel, rows, buffer)
			for c := range panelsOf(l.count) {
				kernel.Products(&block, panel, kernel.Panel(l.centroids, c, r.dim))
				for i, u := range rows {
					least, most := l.score[u]-slack, l.score[u]-done
					for j, score := range block[i*kernel.PanelRows : (i+1)*kernel.PanelRows] {
						if score >= least && score < most {
							lists[i] = append(lists[i], int32(c*kernel.PanelRows+j))
						}
					}
				}
			}
		}
	})
	return lists, err
}

// prober holds the scratch of a worker that compares rows.
type prober struct {
	s      *selection
	m      *measure
	block  kernel.Block
	a, b   lineup
	buffer []float32
	panel  []float32
	packed []float32 // segmentRows rows
}

func newProber(s *selection) *prober {
	dim := s.rows.dim
	return &prober{
		s: s, m: s.rows.newMeasure(), buffer: make([]float32, dim),
		panel: make([]float32, kernel.PanelLen(1, dim)), packed: make([]float32, kernel.PanelLen(segmentRows, dim)),
	}
}

// compare offers rows and the rows of a segment to each other.
func (w *prober) compare(rows, segment []int32) {
	r := w.s.rows
	if len(rows) == 0 {
		return
	}
	for i := range panelsOf(len(segment)) {
		r.pack(kernel.Panel(w.packed, i, r.dim), panelRows(segment, i), w.buffer)
	}
	for at := range panelsOf(len(rows)) {
		some := panelRows(rows, at)
		r.pack(w.panel, some, w.buffer)
		w.a.set(some, nil)
		for i := range panelsOf(len(segment)) {
			w.b.set(panelRows(segment, i), nil)
			kernel.Products(&w.block, w.panel, kernel.Panel(w.packed, i, r.dim))
			w.s.offerBlock(w.m, &w.block, &w.a, &w.b)
		}
	}
}
