package qdrant

import (
	"cmp"
	"context"
	"slices"
	"strings"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/mapmatched"
)

// How many points more than wanted are asked for, so that equal scores around
// the limit are seen. Those of dense vectors are rarely equal; those of a few
// words or of ranks often are, in groups that are best had at once.
const (
	reserve     = 1
	wideReserve = 4
)

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

// run makes several searches in one round trip and returns a list for each. The
// limit of each is that of its provider, if it is less.
func (s *store) run(ctx context.Context, op, text string, searches []search, limit int) ([][]mapmatched.Candidate, error) {
	lists := make([][]mapmatched.Candidate, len(searches))
	open := make([]int, 0, len(searches)) // those without an answer
	for i, one := range searches {
		if one.request != nil {
			open = append(open, i)
		}
	}
	limitOf := func(at int) int { return searches[at].by.opts.cut(limit) }
	for more := 0; len(open) > 0; more = 4*more + limit {
		requests := make([]*pb.QueryPoints, len(open))
		for i, at := range open {
			requests[i] = searches[at].request(searches[at].by.within(limitOf(at), more))
		}
		answers, err := s.ask(ctx, requests)
		if err != nil {
			return nil, searches[open[0]].by.explain(ctx, op, err)
		}
		var tied []int
		for i, at := range open {
			p, limit := searches[at].by, limitOf(at)
			if asked := p.within(limit, more); asked < maxLimit+wideReserve && tiedBeyond(answers[i], limit, asked) {
				tied = append(tied, at)
				continue
			}
			found, report := p.convert(answers[i], limit)
			if report.Points > 0 && report.Foreign == report.Points {
				return nil, s.nothingButForeign(ctx, op, report.Points)
			}
			lists[at] = found
			if p.opts.Report != nil {
				report.Query = text
				p.opts.Report(ctx, report)
			}
		}
		open = tied
	}
	return lists, nil
}

// within is how many points to ask for. Maximal marginal relevance chooses
// others for another limit, so it gets the one of the query.
func (p *Provider) within(limit, more int) int {
	if p.opts.MMR != nil {
		return limit
	}
	first := reserve
	if p.vector.kind != kindDense {
		first = wideReserve
	}
	return min(limit+max(more, first), maxLimit+wideReserve)
}

// ask sends the requests in one round trip.
func (s *store) ask(ctx context.Context, requests []*pb.QueryPoints) ([][]*pb.ScoredPoint, error) {
	if len(requests) == 1 {
		reply, err := s.client.points().Query(ctx, requests[0])
		if err != nil {
			return nil, err
		}
		return [][]*pb.ScoredPoint{reply.GetResult()}, nil
	}
	reply, err := s.client.points().QueryBatch(ctx, &pb.QueryBatchPoints{
		CollectionName: s.name, QueryPoints: requests, ReadConsistency: s.client.consistency(),
	})
	if err != nil {
		return nil, err
	}
	answers := make([][]*pb.ScoredPoint, len(requests))
	for i := range answers {
		if i < len(reply.GetResult()) {
			answers[i] = reply.GetResult()[i].GetResult()
		}
	}
	return answers, nil
}

// tiedBeyond reports whether points beyond those that came may have the score
// of the last one within the limit.
func tiedBeyond(points []*pb.ScoredPoint, limit, asked int) bool {
	return len(points) >= asked && asked > limit && points[limit-1].GetScore() == points[len(points)-1].GetScore()
}

// convert makes candidates of points: best first, equal scores by chunk ID,
// each chunk once.
func (p *Provider) convert(points []*pb.ScoredPoint, limit int) ([]mapmatched.Candidate, Report) {
	report := Report{Points: len(points)}
	found := make([]mapmatched.Candidate, 0, len(points))
	payloads := make(map[string]map[string]*pb.Value, len(points)) // by chunk ID
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
		payload := point.GetPayload()
		text, hasText := payloadText(payload, p.keys.Text)
		id := chunkID(point.GetId(), payload, p.keys.ChunkID)
		if !hasText && p.keys.Text != "" || id == "" {
			report.Foreign++
			continue
		}
		if _, again := payloads[id]; again {
			report.Duplicates++
			at := slices.IndexFunc(found, func(c mapmatched.Candidate) bool { return c.ChunkID == id })
			if found[at].Score >= score {
				continue
			}
			found[at].Score, found[at].Text = score, text
		} else {
			found = append(found, mapmatched.Candidate{ChunkID: id, Score: score, Text: text})
		}
		payloads[id] = payload
	}
	if !slices.IsSortedFunc(found, bestFirst) {
		slices.SortFunc(found, bestFirst)
	}
	report.Candidates = min(limit, len(found))
	report.Beyond = len(found) - report.Candidates
	found = found[:report.Candidates:report.Candidates]
	for i := range found {
		c := &found[i]
		c.Metadata = p.keys.metadata(payloads[c.ChunkID], p.opts.Metadata)
		if p.distances() {
			c.Parts = map[string]float64{"distance": 0 - c.Score}
		}
	}
	return found, report
}

// bestFirst orders candidates by score descending, then by chunk ID.
func bestFirst(a, b mapmatched.Candidate) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	return strings.Compare(a.ChunkID, b.ChunkID)
}
