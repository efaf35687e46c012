package qdrant

import (
	"cmp"
	"context"
	"slices"
	"strings"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mapmatched/mmplug/mapmatched"
)

// How many points more than wanted are asked for, so that equal scores around
// the limit are seen. Those of dense vectors are rarely equal; those of a few
// words or of ranks often are, in groups that are best had at once.
const (
	reserve     = 1
	wideReserve = 4
)

// tieReach is how many points beyond the limit are looked at when the score at
// the limit is that of more points than were asked for in reserve. Of a larger
// group of equals those count that the server puts first.
const tieReach = 1000

// search is a request to be made: of n points, by the provider that reads them.
type search struct {
	by      *Provider
	request func(n int) *pb.QueryPoints // nil when there is nothing to ask
}

// search prepares the request of a query.
func (p *Provider) search(ctx context.Context, op string, q mapmatched.Query) (search, error) {
	input, err := p.input(ctx, op, q)
	if input == nil || err != nil {
		return search{by: p}, err
	}
	return search{p, func(n int) *pb.QueryPoints { return p.query(input, n) }}, nil
}

// list is a search under way.
type list struct {
	*Provider
	limit   int
	request *pb.QueryPoints
	points  []*pb.ScoredPoint // the latest answer
	hits    []hit             // what is good of them, best first
	report  Report
}

// hit is a point that is good as a candidate.
type hit struct {
	id    string // of the chunk
	score float64
	point *pb.ScoredPoint
}

// run makes several searches in one round trip and returns a list for each. The
// limit of each is that of its provider, if it is less. There is another round
// trip where foreign points took the places of chunks, and one where more
// chunks had the same score around the limit than were asked for in reserve.
func (s *store) run(ctx context.Context, op, text string, searches []search, limit int) ([][]mapmatched.Candidate, error) {
	all := make([]*list, len(searches))
	var open []*list
	for i, one := range searches {
		if one.request == nil {
			continue
		}
		limit := one.by.opts.cut(limit)
		all[i] = &list{Provider: one.by, limit: limit, request: one.request(one.by.within(limit))}
		open = append(open, all[i])
	}
	err := s.ask(ctx, open)
	if err == nil {
		err = s.askBehindForeign(ctx, open)
	}
	if err == nil {
		err = s.askTied(ctx, open)
	}
	if err != nil {
		return nil, open[0].explain(ctx, op, err)
	}
	found := make([][]mapmatched.Candidate, len(searches))
	for i, l := range all {
		if l == nil {
			continue
		}
		if l.report.Points > 0 && l.report.Foreign == l.report.Points {
			if err := s.nothingButForeign(ctx, op, l.report.Points); err != nil {
				return nil, err
			}
		}
		found[i] = l.candidates()
		if l.opts.Report != nil {
			l.report.Query = text
			l.opts.Report(ctx, l.report)
		}
	}
	return found, nil
}

// within is how many points to ask for. Maximal marginal relevance chooses
// others for another limit, so it gets the one of the query.
func (p *Provider) within(limit int) int {
	switch {
	case p.opts.MMR != nil:
		return limit
	case p.vector.kind == kindDense:
		return limit + reserve
	default:
		return limit + wideReserve
	}
}

// ask makes the requests of lists in one round trip and ranks the answers.
func (s *store) ask(ctx context.Context, lists []*list) error {
	requests := make([]*pb.QueryPoints, len(lists))
	for i, l := range lists {
		requests[i] = l.request
	}
	answers, err := s.send(ctx, requests)
	if err != nil {
		return err
	}
	for i, l := range lists {
		l.points = answers[i]
		l.hits, l.report = l.rank(l.points, true)
	}
	return nil
}

// send sends requests in one round trip, none when there are none.
func (s *store) send(ctx context.Context, requests []*pb.QueryPoints) ([][]*pb.ScoredPoint, error) {
	answers := make([][]*pb.ScoredPoint, len(requests))
	switch len(requests) {
	case 0:
		return nil, nil
	case 1:
		reply, err := s.client.points().Query(ctx, requests[0])
		answers[0] = reply.GetResult()
		return answers, err
	}
	reply, err := s.client.points().QueryBatch(ctx, &pb.QueryBatchPoints{
		CollectionName: s.name, QueryPoints: requests, ReadConsistency: s.client.consistency(),
	})
	for i := range min(len(answers), len(reply.GetResult())) {
		answers[i] = reply.GetResult()[i].GetResult()
	}
	return answers, err
}

// more reports whether there may be points behind those that came.
func (l *list) more() bool { return len(l.points) > 0 && uint64(len(l.points)) >= l.request.GetLimit() }

// askBehindForeign asks the lists again that points without a text left too
// short, for those with one.
func (s *store) askBehindForeign(ctx context.Context, lists []*list) error {
	var short []*list
	var before [][]*pb.ScoredPoint
	for _, l := range lists {
		if l.report.Foreign > 0 && len(l.hits) < l.limit && l.more() {
			l.request = proto.CloneOf(l.request)
			s.withText(l.request)
			short, before = append(short, l), append(before, l.points)
		}
	}
	if err := s.ask(ctx, short); err != nil {
		return err
	}
	for i, l := range short {
		l.skip(before[i])
	}
	return nil
}

// withText leaves the points out of a request that have nothing under the key
// of the text.
func (s *store) withText(request *pb.QueryPoints) {
	if s.keys.Text == "" {
		return
	}
	some := &pb.Filter{MustNot: []*pb.Condition{emptyAt(s.keys.Text)}}
	for _, first := range request.GetPrefetch() {
		first.Filter = and(first.Filter, some)
	}
	if len(request.GetPrefetch()) == 0 {
		request.Filter = and(request.Filter, some)
	}
}

// skip reports the foreign points of an earlier answer that are not in the
// latest.
func (l *list) skip(before []*pb.ScoredPoint) {
	came := make(map[string]bool, len(l.points))
	for _, point := range l.points {
		came[chunkID(point.GetId(), nil, "")] = true
	}
	for _, point := range before {
		if !came[chunkID(point.GetId(), nil, "")] && l.foreign(point) {
			l.report.Foreign++
			l.report.Points++
		}
	}
}

// askTied asks the lists again, for IDs and scores alone, in which points that
// did not come may have the score of the last one within the limit, and for the
// payloads of those that are then within it. Where that is too large for a
// message the lists stay as they came.
func (s *store) askTied(ctx context.Context, lists []*list) error {
	var tied []*list
	var requests []*pb.QueryPoints
	for _, l := range lists {
		if !l.tied() {
			continue
		}
		request := proto.CloneOf(l.request)
		request.Limit = new(uint64(l.limit + tieReach))
		request.WithPayload = include(s.keys.ChunkID)
		if !s.info.Load().hasIdentity {
			s.withText(request)
		}
		tied, requests = append(tied, l), append(requests, request)
	}
	answers, err := s.send(ctx, requests)
	for i, l := range tied {
		if err != nil {
			break
		}
		err = l.retake(ctx, answers[i])
	}
	if err != nil && tooLarge(status.Convert(err)) {
		return nil
	}
	return err
}

// tied reports whether points beyond those that came may have the score of the
// last one within the limit.
func (l *list) tied() bool {
	if len(l.hits) < l.limit || !l.more() || l.opts.MMR != nil {
		return false
	}
	last, ok := l.score(l.points[len(l.points)-1])
	return ok && l.hits[l.limit-1].score == last
}

// retake makes the list of an answer with more points, which have no payload
// but the chunk ID.
func (l *list) retake(ctx context.Context, points []*pb.ScoredPoint) error {
	hits, report := l.rank(points, false)
	payloads := make(map[string]map[string]*pb.Value, len(l.points)) // by the point's own ID
	for _, point := range l.points {
		payloads[chunkID(point.GetId(), nil, "")] = point.GetPayload()
	}
	var missing []*pb.PointId
	for _, h := range hits[:min(l.limit, len(hits))] {
		if _, there := payloads[chunkID(h.point.GetId(), nil, "")]; !there {
			missing = append(missing, h.point.GetId())
		}
	}
	for first := 0; first < len(missing); first += fetchBatch {
		err := l.payloads(ctx, missing[first:min(first+fetchBatch, len(missing))], l.selector, func(point *pb.RetrievedPoint) {
			payloads[chunkID(point.GetId(), nil, "")] = point.GetPayload()
		})
		if err != nil {
			return err
		}
	}
	before := l.points
	l.points, l.hits, l.report = points, hits, report
	for i := range hits[:min(l.limit, len(hits))] {
		hits[i].point.Payload = payloads[chunkID(hits[i].point.GetId(), nil, "")]
	}
	l.skip(before)
	return nil
}

// foreign reports whether a point has no text though chunks have one: it is
// something else in the same collection.
func (p *Provider) foreign(point *pb.ScoredPoint) bool {
	_, hasText := payloadText(point.GetPayload(), p.keys.Text)
	return !hasText && p.keys.Text != ""
}

// rank sorts out what is good of an answer: best first, equal scores by chunk
// ID, each chunk once. With texts, points without one are foreign.
func (p *Provider) rank(points []*pb.ScoredPoint, texts bool) ([]hit, Report) {
	report := Report{Points: len(points)}
	hits := make([]hit, 0, len(points))
	place := make(map[string]int, len(points)) // by chunk ID
	for _, point := range points {
		score, ok := p.score(point)
		if !ok {
			report.NonFinite++
			continue
		}
		if t := p.opts.ScoreThreshold; t != nil && float32(score) < float32(*t) {
			report.BelowScore++
			continue
		}
		id := chunkID(point.GetId(), point.GetPayload(), p.keys.ChunkID)
		if texts && p.foreign(point) || id == "" {
			report.Foreign++
			continue
		}
		at, again := place[id]
		switch {
		case !again:
			place[id] = len(hits)
			hits = append(hits, hit{id, score, point})
			continue
		case score > hits[at].score:
			hits[at] = hit{id, score, point}
		}
		report.Duplicates++
	}
	if !slices.IsSortedFunc(hits, bestFirst) {
		slices.SortFunc(hits, bestFirst)
	}
	return hits, report
}

// bestFirst orders hits by score descending, then by chunk ID.
func bestFirst(a, b hit) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return strings.Compare(a.id, b.id)
}

// candidates makes candidates of the hits within the limit and counts them.
func (l *list) candidates() []mapmatched.Candidate {
	within := min(l.limit, len(l.hits))
	l.report.Beyond = len(l.hits) - within
	found := make([]mapmatched.Candidate, 0, within)
	for _, h := range l.hits[:within] {
		if l.foreign(h.point) { // the text went away since the scores came
			l.report.Foreign++
			continue
		}
		payload := h.point.GetPayload()
		c := mapmatched.Candidate{ChunkID: h.id, Score: h.score, Metadata: l.keys.metadata(payload, l.opts.Metadata)}
		c.Text, _ = payloadText(payload, l.keys.Text)
		if l.distances() {
			c.Parts = map[string]float64{"distance": 0 - h.score}
		}
		found = append(found, c)
	}
	l.report.Candidates = len(found)
	return found
}
