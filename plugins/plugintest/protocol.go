package plugintest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/internal/probe"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// callers is how many calls are made at once.
const callers = 64

// protocolChecks run on one running plugin.
var protocolChecks = []check[*plugins.Host]{
	{"health", func(s *suite, h *plugins.Host) error { return h.Health(s.ctx) }},
	{"schema", checkSchema},
	{"wrong configuration", checkWrongConfiguration},
	{"calls it does not offer", checkNotOffered},
	{"bad input", checkBadInput},
	{"64 calls sent at once are answered", checkConcurrent},
	{"answers a short call during a long one", checkOverlap},
	{"stays up when calls run out of time", checkDeadlines},
	{"stays up when calls are cancelled", checkCancelled},
	{"messages above 4 MiB", checkLarge},
}

// protocol runs the checks of the protocol.
func (s *suite) protocol() {
	run(s, "protocol", protocolChecks, nil, func(h *plugins.Host) (*plugins.Host, error) { return h, nil })
}

func checkSchema(s *suite, _ *plugins.Host) error {
	if len(s.info.Schema) == 0 {
		return skip("the plugin takes no configuration")
	}
	_, err := plugins.ParseSchema(s.info.Schema)
	return err
}

// attempt makes a call of the protocol and returns its status.
func attempt(ctx context.Context, h *plugins.Host, f func(context.Context, grpc.ClientConnInterface) error) (codes.Code, string) {
	var err error
	failed := probe.Call(ctx, h, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		err = f(ctx, conn)
		return nil
	})
	if failed != nil {
		return codes.Unavailable, failed.Error()
	}
	return status.Code(err), status.Convert(err).Message()
}

func checkWrongConfiguration(s *suite, h *plugins.Host) error {
	if len(s.info.Schema) == 0 {
		return skip("the plugin takes no configuration")
	}
	for _, config := range []string{"", "not JSON", "[]", "{"} {
		code, text := attempt(s.ctx, h, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			_, err := wire.NewBaseClient(conn).Configure(ctx, &wire.ConfigureRequest{Config: []byte(config)})
			return err
		})
		if code == codes.OK || code == codes.Unavailable || code == codes.Internal {
			return fmt.Errorf("configuration %q: status %v %q, want INVALID_ARGUMENT", config, code, text)
		}
	}
	return nil
}

// checkNotOffered calls what the plugin does not name.
func checkNotOffered(s *suite, h *plugins.Host) error {
	type offer struct {
		name    string
		offered bool
		call    func(context.Context, grpc.ClientConnInterface) error
	}
	can := s.info.Can
	is := s.info.Serves
	offers := []offer{
		{"Candidates", is(plugins.KindProvider), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewProviderClient(c).Candidates(ctx, &wire.CandidatesRequest{Query: &wire.Query{Text: "a"}, Limit: 1})
			return err
		}},
		{"ScoreChunks", can(plugins.CanScoreChunks), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewProviderClient(c).ScoreChunks(ctx, &wire.ScoreChunksRequest{Query: &wire.Query{Text: "a"}, ChunkIds: []string{"a"}})
			return err
		}},
		{"Chunks", can(plugins.CanFetchChunks), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewProviderClient(c).Chunks(ctx, &wire.ChunksRequest{ChunkIds: []string{"a"}})
			return err
		}},
		{"Vectors", can(plugins.CanVectors), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewProviderClient(c).Vectors(ctx, &wire.VectorsRequest{ChunkIds: []string{"a"}})
			return err
		}},
		{"Rerank", is(plugins.KindReranker), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewRerankerClient(c).Rerank(ctx, &wire.RerankRequest{Query: &wire.Query{Text: "a"}, Candidates: []*wire.Candidate{{ChunkId: "a"}}})
			return err
		}},
		{"Distances", is(plugins.KindGraph), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewGraphClient(c).Distances(ctx, &wire.DistancesRequest{From: []string{"a"}, To: []string{"b"}})
			return err
		}},
		{"Edges", can(plugins.CanListEdges), func(ctx context.Context, c grpc.ClientConnInterface) error {
			stream, err := wire.NewGraphClient(c).Edges(ctx, &wire.EdgesRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}},
		{"Embed", is(plugins.KindEmbedder), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewEmbedderClient(c).Embed(ctx, &wire.EmbedRequest{Texts: []string{"a"}})
			return err
		}},
		{"Decode", is(plugins.KindDecoder), func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewDecoderClient(c).Decode(ctx, &wire.DecodeRequest{})
			return err
		}},
	}
	for _, o := range offers {
		code, text := attempt(s.ctx, h, o.call)
		if !o.offered && code != codes.Unimplemented {
			return fmt.Errorf("%s is not offered: status %v %q, want UNIMPLEMENTED", o.name, code, text)
		}
		if o.offered && code == codes.Unimplemented {
			return fmt.Errorf("%s is offered: status %v %q, want an answer", o.name, code, text)
		}
	}
	return nil
}

// checkBadInput sends what no host sends. The plugin may answer or refuse; it
// may not crash, and where there is no answer it has to refuse.
func checkBadInput(s *suite, h *plugins.Host) error {
	type input struct {
		kind   plugins.Kind
		name   string
		refuse bool
		call   func(context.Context, grpc.ClientConnInterface) error
	}
	column := func(n int) *wire.Column {
		c := &wire.Column{}
		for i := range n {
			c.ChunkIds = append(c.ChunkIds, fmt.Sprint(i))
			c.Raw, c.Normalized, c.Emission = append(c.Raw, 0), append(c.Normalized, 0), append(c.Emission, 0)
		}
		return c
	}
	decode := func(change func(second *wire.Column)) func(context.Context, grpc.ClientConnInterface) error {
		return func(ctx context.Context, c grpc.ClientConnInterface) error {
			second := column(2)
			second.From, second.HasDistance, second.Distance = []int32{0, 1}, true, []float64{1, 2, 3, 4}
			change(second)
			_, err := wire.NewDecoderClient(c).Decode(ctx, &wire.DecodeRequest{TransitionWeight: 1, Columns: []*wire.Column{column(2), second}})
			return err
		}
	}
	inputs := []input{
		{plugins.KindProvider, "no query", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewProviderClient(c).Candidates(ctx, &wire.CandidatesRequest{Limit: 3})
			return err
		}},
		{plugins.KindProvider, "the greatest limit", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewProviderClient(c).Candidates(ctx, &wire.CandidatesRequest{Query: &wire.Query{Text: "a", Vector: []float32{1}}, Limit: 1<<31 - 1})
			return err
		}},
		{plugins.KindProvider, "a limit below 0", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			r, err := wire.NewProviderClient(c).Candidates(ctx, &wire.CandidatesRequest{Query: &wire.Query{Text: "a"}, Limit: -1})
			if err == nil && len(r.GetCandidates()) > 0 {
				return status.Errorf(codes.Internal, "%d candidates came back", len(r.GetCandidates()))
			}
			return err
		}},
		{plugins.KindReranker, "no query", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewRerankerClient(c).Rerank(ctx, &wire.RerankRequest{Candidates: []*wire.Candidate{{ChunkId: "a"}}})
			return err
		}},
		{plugins.KindReranker, "metadata that is not JSON", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewRerankerClient(c).Rerank(ctx, &wire.RerankRequest{Query: &wire.Query{Text: "a"}, Candidates: []*wire.Candidate{{ChunkId: "a", Metadata: []byte("{")}}})
			return err
		}},
		{plugins.KindReranker, "nothing to rerank", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewRerankerClient(c).Rerank(ctx, &wire.RerankRequest{Query: &wire.Query{Text: "a"}})
			return err
		}},
		{plugins.KindGraph, "a radius below 0", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewGraphClient(c).Neighborhood(ctx, &wire.NeighborhoodRequest{ChunkId: "a", Radius: -1})
			return err
		}},
		{plugins.KindEmbedder, "no text", false, func(ctx context.Context, c grpc.ClientConnInterface) error {
			_, err := wire.NewEmbedderClient(c).Embed(ctx, &wire.EmbedRequest{})
			return err
		}},
		{plugins.KindDecoder, "a predecessor out of range", true, decode(func(c *wire.Column) { c.From[1] = 9 })},
		{plugins.KindDecoder, "a predecessor below 0", true, decode(func(c *wire.Column) { c.From[0] = -5 })},
		{plugins.KindDecoder, "too few distances", true, decode(func(c *wire.Column) { c.Distance = c.Distance[:1] })},
		{plugins.KindDecoder, "too few emissions", true, decode(func(c *wire.Column) { c.Emission = nil })},
		{plugins.KindDecoder, "no predecessors", true, decode(func(c *wire.Column) { c.From = nil })},
	}
	ran := false
	for _, in := range inputs {
		if !s.info.Serves(in.kind) {
			continue
		}
		ran = true
		code, text := attempt(s.ctx, h, in.call)
		if code == codes.Internal || code == codes.Unknown || code == codes.Unavailable || in.refuse && code == codes.OK {
			return fmt.Errorf("%s: %s: status %v %q, want INVALID_ARGUMENT%s", in.kind, in.name, code, text, map[bool]string{false: " or an answer"}[in.refuse])
		}
		if err := s.alive(h); err != nil {
			return fmt.Errorf("%s: %s: %w", in.kind, in.name, err)
		}
	}
	if !ran {
		return skip("nothing is known to be bad input for this kind")
	}
	return nil
}

// sample makes a call of a kind that a plugin can always answer.
func (s *suite) sample(h *plugins.Host) (func(ctx context.Context) error, error) {
	candidates := []mapmatched.Candidate{{ChunkID: "a", Score: 2, Text: "one"}, {ChunkID: "b", Score: 1, Text: "two"}}
	switch {
	case s.info.Serves(plugins.KindReranker):
		r, err := h.Reranker()
		return func(ctx context.Context) error {
			_, err := r.Rerank(ctx, mapmatched.Query{Text: "one"}, candidates)
			return err
		}, err
	case s.info.Serves(plugins.KindProvider):
		p, err := h.Provider()
		q := s.queries()[0]
		return func(ctx context.Context) error {
			_, err := p.Candidates(ctx, q, 5)
			return err
		}, err
	case s.info.Serves(plugins.KindEmbedder):
		e, err := h.Embedder()
		return func(ctx context.Context) error {
			_, err := e.Embed(ctx, []string{"one", "two"})
			return err
		}, err
	case s.info.Serves(plugins.KindDecoder):
		d, err := h.Decoder()
		return func(ctx context.Context) error {
			_, err := d.Decode(ctx, &mapmatched.Trellis{})
			return err
		}, err
	case s.info.Serves(plugins.KindGraph):
		g, err := h.Graph(s.ctx)
		return func(ctx context.Context) error {
			return g.Distances(ctx, []string{"a"}, []string{"b"}, make([]float64, 1))
		}, err
	}
	return h.Health, nil
}

func checkConcurrent(s *suite, h *plugins.Host) error {
	call, err := s.sample(h)
	if err != nil {
		return err
	}
	return parallel(callers, func(int) error { return call(s.ctx) })
}

// Of a long call: how long it has to take at least for a short one to fall into
// it, how often that is tried, and how often it has to have come about for a
// plugin to be judged by it.
const (
	longCall = 100 * time.Millisecond
	attempts = 15
	overlaps = 5
)

// checkOverlap expects an answer to a short call while a long one is under way,
// which a plugin that serves one call after the other never gives. It compares
// the order of two answers: a busy machine may hold up the short one, but not
// every time.
func checkOverlap(s *suite, h *plugins.Host) error {
	short, err := s.sample(h)
	if err != nil {
		return err
	}
	long, takes, err := s.longCall(h)
	if err != nil {
		return err
	}
	fell := 0 // how many short calls were made during a long one
	for range attempts {
		var ended atomic.Bool
		done := make(chan error, 1)
		begin := time.Now()
		go func() {
			err := recovered(long)
			ended.Store(true)
			done <- err
		}()
		time.Sleep(takes / 2) // when the long one is being worked on
		before := ended.Load()
		err := short(s.ctx)
		overlapped := !ended.Load()
		if err := errors.Join(err, <-done); err != nil {
			return err
		}
		takes = min(takes, time.Since(begin))
		if overlapped {
			return nil
		}
		if !before {
			fell++
		}
		if fell == overlaps {
			return fmt.Errorf("each of %d short calls was answered only after a call of %v that was sent before: serve calls on several threads", fell, takes.Round(time.Millisecond))
		}
	}
	return skip("the time that its calls take varies too much to tell whether they wait for each other")
}

// longCall finds a call that takes long, and how long it does.
func (s *suite) longCall(h *plugins.Host) (call func() error, takes time.Duration, err error) {
	for size := 1; size <= 64; size *= 2 {
		if call, err = s.sizedCall(h, size); err != nil {
			return nil, 0, err
		}
		takes = s.Patience
		for range 2 { // the first one may take longer than those after it
			begin := time.Now()
			if err := call(); err != nil {
				return nil, 0, err
			}
			takes = min(takes, time.Since(begin))
			if takes < longCall {
				break
			}
		}
		if takes >= longCall {
			return call, takes, nil
		}
	}
	return nil, 0, skip(fmt.Sprintf("no call of it takes %v, which would show whether calls wait for each other", longCall))
}

// sizedCall makes a call whose work grows with its size, from 1 to 64.
func (s *suite) sizedCall(h *plugins.Host, size int) (func() error, error) {
	ctx := s.ctx
	switch {
	case s.info.Serves(plugins.KindReranker):
		r, err := h.Reranker()
		c := Kilobytes(250 * size)
		return func() error {
			_, err := r.Rerank(ctx, mapmatched.Query{Text: "toll on the bridge road"}, c)
			return err
		}, err
	case s.info.Serves(plugins.KindEmbedder):
		e, err := h.Embedder()
		texts := make([]string, 4*size)
		for i, c := range Kilobytes(len(texts)) {
			texts[i] = c.Text
		}
		return func() error {
			_, err := e.Embed(ctx, texts)
			return err
		}, err
	case s.info.Serves(plugins.KindDecoder):
		d, err := h.Decoder()
		t := randomTrellis(1, 5*size, 40)
		return func() error {
			_, err := d.Decode(ctx, t)
			return err
		}, err
	}
	return nil, skip("nothing is known that makes a call of this kind take long")
}

// checkDeadlines makes calls with little time: each is answered or ends with
// the deadline, which the host sees to. The plugin has to bear it.
func checkDeadlines(s *suite, h *plugins.Host) error {
	call, err := s.sample(h)
	if err != nil {
		return err
	}
	return parallel(callers, func(i int) error {
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(i)*20*time.Microsecond)
		defer cancel()
		if err := call(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("error %w, want the answer or %w", err, context.DeadlineExceeded)
		}
		return nil
	})
}

// checkCancelled cancels calls at various moments. The plugin has to bear it.
func checkCancelled(s *suite, h *plugins.Host) error {
	call, err := s.sample(h)
	if err != nil {
		return err
	}
	return parallel(callers, func(i int) error {
		ctx, cancel := context.WithCancel(s.ctx)
		timer := time.AfterFunc(time.Duration(i)*20*time.Microsecond, cancel)
		defer timer.Stop()
		defer cancel()
		if err := call(ctx); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("error %w, want the answer or %w", err, context.Canceled)
		}
		return nil
	})
}

// checkLarge sends or asks for more than the 4 MiB that gRPC allows by itself.
// The plugin may refuse what is too long for it, but not as too large for the
// wire.
func checkLarge(s *suite, h *plugins.Host) error {
	text := strings.Repeat("long road ", 600_000) // 6 MB
	var err error
	switch {
	case s.info.Serves(plugins.KindReranker):
		var r mapmatched.Reranker
		if r, err = h.Reranker(); err == nil {
			_, err = r.Rerank(s.ctx, mapmatched.Query{Text: "road"}, []mapmatched.Candidate{{ChunkID: "a", Score: 1, Text: text}})
		}
	case s.info.Serves(plugins.KindProvider):
		var p mapmatched.CandidateProvider
		if p, err = h.Provider(); err == nil {
			q := s.queries()[0]
			q.History = []string{text}
			_, err = p.Candidates(s.ctx, q, 1)
		}
	case s.info.Serves(plugins.KindDecoder):
		var d mapmatched.Decoder
		if d, err = h.Decoder(); err == nil {
			_, err = d.Decode(s.ctx, randomTrellis(1, 3, 600))
		}
	case s.info.Serves(plugins.KindGraph):
		var g mapmatched.CorpusGraph
		if g, err = h.Graph(s.ctx); err == nil {
			ids := make([]string, 800)
			for i := range ids {
				ids[i] = fmt.Sprint("no such chunk ", i)
			}
			err = g.Distances(s.ctx, ids, ids, make([]float64, len(ids)*len(ids)))
		}
	default:
		return skip("an embedder may need long for a long text")
	}
	if err != nil && (mapmatched.KindOf(err) == mapmatched.KindUnavailable || strings.Contains(err.Error(), "larger than max")) {
		return err
	}
	return nil
}
