package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// graphServer serves a CorpusGraph.
type graphServer struct {
	wire.UnimplementedGraphServer
	*server
}

// Describe implements the call Describe.
func (s *graphServer) Describe(context.Context, *wire.DescribeRequest) (*wire.DescribeResponse, error) {
	graph := s.current().Graph
	if graph == nil {
		return nil, absent(KindGraph)
	}
	return &wire.DescribeResponse{MaximumDistance: graph.MaximumDistance()}, nil
}

// Distances implements the call Distances.
func (s *graphServer) Distances(ctx context.Context, r *wire.DistancesRequest) (*wire.DistancesResponse, error) {
	graph := s.current().Graph
	if graph == nil {
		return nil, absent(KindGraph)
	}
	from, to := r.GetFrom(), r.GetTo()
	if len(from) > 0 && len(to) > maxDistances/len(from) {
		return nil, invalid(tooManyDistances(len(from), len(to)))
	}
	distances := make([]float64, len(from)*len(to))
	if err := graph.Distances(ctx, from, to, distances); err != nil {
		return nil, err
	}
	return &wire.DistancesResponse{Distances: distances}, nil
}

// maxDistances is how many distances fit in a message, with some room.
const maxDistances = (maxMessage - 1<<10) / 8

func tooManyDistances(from, to int) error {
	return fmt.Errorf("%d×%d distances do not fit in one call: ask for at most %d", from, to, maxDistances)
}

// Neighborhood implements the call Neighborhood.
func (s *graphServer) Neighborhood(ctx context.Context, r *wire.NeighborhoodRequest) (*wire.NeighborhoodResponse, error) {
	graph := s.current().Graph
	if graph == nil {
		return nil, absent(KindGraph)
	}
	neighbors, err := graph.Neighborhood(ctx, r.GetChunkId(), r.GetRadius())
	if err != nil {
		return nil, err
	}
	out := &wire.NeighborhoodResponse{Neighbors: make([]*wire.Neighbor, len(neighbors))}
	for i, n := range neighbors {
		if err := checkIDs(n.ChunkID); err != nil {
			return nil, err
		}
		out.Neighbors[i] = &wire.Neighbor{ChunkId: n.ChunkID, Distance: n.Distance}
	}
	return out, nil
}

// edgesMessage is how many edges travel in one message of the stream.
const edgesMessage = 1024

// Edges implements the call Edges.
func (s *graphServer) Edges(_ *wire.EdgesRequest, stream grpc.ServerStreamingServer[wire.EdgesResponse]) error {
	lister, ok := s.current().Graph.(mapmatched.EdgeLister)
	if !ok {
		return incapable(CanListEdges)
	}
	var batch []mapmatched.Edge
	send := func() error {
		edges, err := toEdges(batch)
		if err == nil {
			err = stream.Send(&wire.EdgesResponse{Edges: edges})
		}
		batch = batch[:0]
		return err
	}
	for e, err := range lister.Edges(stream.Context()) {
		if err != nil {
			return err
		}
		if batch = append(batch, e); len(batch) == edgesMessage {
			if err := send(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return send()
}

// Load implements the call Load.
func (s *graphServer) Load(ctx context.Context, r *wire.LoadGraphRequest) (*wire.LoadResponse, error) {
	if s.plugin.LoadGraph == nil {
		return nil, incapable(CanLoad)
	}
	edges := make([]mapmatched.Edge, len(r.GetEdges()))
	for i, e := range r.GetEdges() {
		edges[i] = fromEdge(e)
	}
	graph, err := s.plugin.LoadGraph(ctx, r.GetNodes(), edges, r.GetMaximumDistance(), r.GetDirected())
	if err != nil {
		return nil, err
	}
	services := s.current()
	services.Graph = graph
	s.adopt(services)
	return &wire.LoadResponse{}, nil
}

// Graph returns the plugin as a graph, with the optional capability that it
// names. It asks the plugin for the maximum distance, which is taken to stay
// the same. Closing the graph closes the host. It fails when the plugin is no
// graph.
func (h *Host) Graph(ctx context.Context) (mapmatched.CorpusGraph, error) {
	if err := h.serves(KindGraph); err != nil {
		return nil, err
	}
	maximum, err := call(ctx, h, "describe", wire.NewGraphClient, wire.GraphClient.Describe, &wire.DescribeRequest{},
		func(r *wire.DescribeResponse) (float64, error) {
			if d := r.GetMaximumDistance(); math.IsNaN(d) || math.IsInf(d, 0) || d < 0 {
				return 0, fmt.Errorf("maximum distance %v: %w", d, mapmatched.ErrDistance)
			}
			return r.GetMaximumDistance(), nil
		})
	if err != nil {
		return nil, err
	}
	g := &graph{h, maximum}
	if h.Info().Can(CanListEdges) {
		return listedGraph{g}, nil
	}
	return g, nil
}

// graph is a plugin as a CorpusGraph.
type graph struct {
	host    *Host
	maximum float64
}

// Close implements io.Closer.
func (g *graph) Close() error { return g.host.Close() }

// Health implements mapmatched.HealthChecker.
func (g *graph) Health(ctx context.Context) error { return g.host.Health(ctx) }

// MaximumDistance implements mapmatched.CorpusGraph.
func (g *graph) MaximumDistance() float64 { return g.maximum }

// Distances implements mapmatched.CorpusGraph. Distances that are not between
// 0 and the maximum are refused.
func (g *graph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	const op = "distances"
	if len(dst) != len(from)*len(to) {
		return g.host.failAs(mapmatched.KindInvalid, op, fmt.Errorf("room for %d distances, not %d×%d", len(dst), len(from), len(to)))
	}
	if err := errors.Join(checkIDs(from...), checkIDs(to...)); err != nil {
		return g.host.fail(op, err)
	}
	if len(dst) > maxDistances {
		return g.host.failAs(mapmatched.KindInvalid, op, tooManyDistances(len(from), len(to)))
	}
	distances, err := call(ctx, g.host, op, wire.NewGraphClient, wire.GraphClient.Distances, &wire.DistancesRequest{From: from, To: to},
		func(r *wire.DistancesResponse) ([]float64, error) {
			if len(r.GetDistances()) != len(dst) {
				return nil, fmt.Errorf("%d distances came back, not %d×%d", len(r.GetDistances()), len(from), len(to))
			}
			for i, d := range r.GetDistances() {
				if !(d >= 0 && d <= g.maximum) {
					return nil, fmt.Errorf("distance %v from %q to %q is not between 0 and %v: %w", d, from[i/len(to)], to[i%len(to)], g.maximum, mapmatched.ErrDistance)
				}
			}
			return r.GetDistances(), nil
		})
	copy(dst, distances)
	return err
}

// Neighborhood implements mapmatched.CorpusGraph.
func (g *graph) Neighborhood(ctx context.Context, chunkID string, radius float64) ([]mapmatched.Neighbor, error) {
	if err := checkIDs(chunkID); err != nil {
		return nil, g.host.fail("neighborhood", err)
	}
	return call(ctx, g.host, "neighborhood", wire.NewGraphClient, wire.GraphClient.Neighborhood, &wire.NeighborhoodRequest{ChunkId: chunkID, Radius: radius},
		func(r *wire.NeighborhoodResponse) ([]mapmatched.Neighbor, error) {
			out := make([]mapmatched.Neighbor, len(r.GetNeighbors()))
			for i, n := range r.GetNeighbors() {
				if n.GetChunkId() == "" {
					return nil, fmt.Errorf("neighbor %d: %w", i, mapmatched.ErrEmptyChunkID)
				}
				if d := n.GetDistance(); !(d >= 0 && d <= g.maximum) {
					return nil, fmt.Errorf("neighbor %q at distance %v, not between 0 and %v: %w", n.GetChunkId(), d, g.maximum, mapmatched.ErrDistance)
				}
				out[i] = mapmatched.Neighbor{ChunkID: n.GetChunkId(), Distance: n.GetDistance()}
			}
			return out, nil
		})
}

// listedGraph is a graph that lists its edges.
type listedGraph struct{ *graph }

// Edges implements mapmatched.EdgeLister. Each message of the stream is a call
// of its own to MaxInFlight and CallTimeout, so that the plugin can be asked for
// other things, and for as long as it takes, between two edges.
func (g listedGraph) Edges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		s := &edgeStream{host: g.host, ctx: ctx}
		defer s.close()
		for {
			edges, err := s.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(mapmatched.Edge{}, err)
				return
			}
			for _, e := range edges {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// edgeStream is a call of Edges under way.
type edgeStream struct {
	host   *Host
	ctx    context.Context // of the reader
	from   *process        // nil before the first message
	stream grpc.ServerStreamingClient[wire.EdgesResponse]
	cancel context.CancelCauseFunc // ends the stream, nil before it is there
}

// close ends the stream, also when the reader stops early.
func (s *edgeStream) close() {
	if s.cancel != nil {
		s.cancel(nil)
	}
}

// next returns the edges of the next message, or io.EOF as it is.
func (s *edgeStream) next() ([]mapmatched.Edge, error) {
	const op = "edges"
	h := s.host
	if err := h.enter(s.ctx); err != nil {
		return nil, h.fail(op, err)
	}
	defer func() { <-h.slots }()
	if s.from == nil {
		p, err := h.running(s.ctx)
		if err != nil {
			return nil, h.fail(op, err)
		}
		s.from = p
	}
	edges, err := s.receive()
	if errors.Is(err, io.EOF) {
		h.succeeded()
		return nil, io.EOF
	}
	return edges, h.outcome(s.ctx, op, s.from, err)
}

// receive reads a message within the time of a call, and opens the stream
// before the first one.
func (s *edgeStream) receive() (_ []mapmatched.Edge, err error) {
	var ctx context.Context
	if s.stream == nil {
		ctx, s.cancel = context.WithCancelCause(s.ctx)
	} else {
		ctx = s.stream.Context()
	}
	if limit := s.host.opts.CallTimeout; limit > 0 {
		defer time.AfterFunc(limit, func() { s.cancel(timeoutError{limit}) }).Stop()
	}
	if s.stream == nil {
		if s.stream, err = wire.NewGraphClient(s.from.conn).Edges(ctx, &wire.EdgesRequest{}); err != nil {
			return nil, err
		}
	}
	r, err := s.stream.Recv()
	var timeout timeoutError
	switch {
	case err != nil && errors.As(context.Cause(ctx), &timeout):
		return nil, timeout
	case err != nil:
		return nil, err
	}
	out := make([]mapmatched.Edge, len(r.GetEdges()))
	for i, w := range r.GetEdges() {
		e := fromEdge(w)
		if e.From == "" || e.To == "" {
			return nil, answerError{fmt.Errorf("edge %q–%q: %w", e.From, e.To, mapmatched.ErrEmptyChunkID)}
		}
		if !(e.Weight >= 0) || math.IsInf(e.Weight, 0) {
			return nil, answerError{fmt.Errorf("edge %q–%q has the weight %v: %w", e.From, e.To, e.Weight, mapmatched.ErrNonFinite)}
		}
		out[i] = e
	}
	return out, nil
}

// loadGraph hands over a graph of the conformance suite.
func (h *Host) loadGraph(ctx context.Context, nodes []string, edges []mapmatched.Edge, maximumDistance float64, directed bool) error {
	out, err := toEdges(edges)
	if err == nil {
		err = checkIDs(nodes...)
	}
	if err != nil {
		return h.fail("load", err)
	}
	request := &wire.LoadGraphRequest{Nodes: nodes, Edges: out, MaximumDistance: maximumDistance, Directed: directed}
	_, err = call(ctx, h, "load", wire.NewGraphClient, wire.GraphClient.Load, request,
		func(*wire.LoadResponse) (struct{}, error) { return struct{}{}, nil })
	if err == nil {
		err = h.describe(ctx)
	}
	return err
}
