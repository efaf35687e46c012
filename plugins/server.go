package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// server is the plugin's side: every service of the protocol over the services
// of a Plugin. Those that the plugin does not offer answer Unimplemented.
type server struct {
	plugin Plugin

	mu       sync.RWMutex
	services Services
	closers  []io.Closer // what Configure and the Load calls made, to be closed at the end
}

func newServer(p Plugin) *server {
	s := &server{plugin: p}
	s.adopt(p.Services)
	return s
}

// adopt makes these the services and remembers to close them.
func (s *server) adopt(services Services) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services = services
	for _, service := range []any{services.Provider, services.Reranker, services.Graph, services.Embedder, services.Decoder} {
		if c, ok := service.(io.Closer); ok {
			s.closers = append(s.closers, c)
		}
	}
}

func (s *server) current() Services {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.services
}

// close closes everything that was served.
func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.closers {
		if err := c.Close(); err != nil {
			slog.Warn("closing a service failed", "error", err)
		}
	}
	s.closers = nil
}

func (s *server) register(r grpc.ServiceRegistrar) {
	wire.RegisterBaseServer(r, &baseServer{server: s})
	wire.RegisterProviderServer(r, &providerServer{server: s})
	wire.RegisterRerankerServer(r, &rerankerServer{server: s})
	wire.RegisterGraphServer(r, &graphServer{server: s})
	wire.RegisterEmbedderServer(r, &embedderServer{server: s})
	wire.RegisterDecoderServer(r, &decoderServer{server: s})
}

// info describes the plugin with the services it has now.
func (s *server) info() Info {
	p, services := s.plugin, s.current()
	info := Info{Name: p.Name, Version: p.Version, Description: p.Description, Protocol: protocolVersion, ProtocolMinor: protocolMinor, Schema: p.Schema}
	for _, k := range []struct {
		kind    Kind
		present bool
	}{
		{KindProvider, services.Provider != nil}, {KindReranker, services.Reranker != nil}, {KindGraph, services.Graph != nil},
		{KindEmbedder, services.Embedder != nil}, {KindDecoder, services.Decoder != nil},
	} {
		if k.present || slices.Contains(p.Kinds, k.kind) {
			info.Kinds = append(info.Kinds, k.kind)
		}
	}
	can := func(c Capability, has bool) {
		if has {
			info.Capabilities = append(info.Capabilities, c)
		}
	}
	_, scorer := services.Provider.(mapmatched.ChunkScorer)
	_, fetcher := services.Provider.(mapmatched.ChunkFetcher)
	_, vectors := services.Provider.(mapmatched.VectorFetcher)
	_, edges := services.Graph.(mapmatched.EdgeLister)
	can(CanScoreChunks, scorer)
	can(CanFetchChunks, fetcher)
	can(CanVectors, vectors)
	can(CanListEdges, edges)
	can(CanLoad, p.LoadCorpus != nil || p.LoadGraph != nil)
	return info
}

// serverOptions are the options of every server of the protocol.
func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.InitialWindowSize(windowSize), grpc.InitialConnWindowSize(windowSize),
		grpc.ChainUnaryInterceptor(recoverUnary), grpc.ChainStreamInterceptor(recoverStream),
	}
}

// windowSize is the flow-control window: large messages travel without pauses.
const windowSize = 4 << 20

// recoverUnary turns the error of a call into a status, and a panic into the
// failure of that call.
func recoverUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if v := recover(); v != nil {
			resp, err = nil, crashed(info.FullMethod, v)
		}
	}()
	resp, err = handler(ctx, req)
	return resp, toStatus(err)
}

func recoverStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = crashed(info.FullMethod, v)
		}
	}()
	return toStatus(handler(srv, stream))
}

// crashed logs a panic with its stack and makes it an error that says where.
func crashed(method string, v any) error {
	stack := make([]byte, 16<<10)
	stack = stack[:runtime.Stack(stack, false)]
	slog.Error("panic in a call", "method", method, "panic", fmt.Sprint(v), "stack", string(stack))
	return status.Error(codes.Internal, oneLine(fmt.Sprintf("panic: %v at %s", v, panicSite(string(stack)))))
}

// panicSite finds the line of code that panicked in a stack: the first one
// after the runtime's own.
func panicSite(stack string) string {
	_, after, found := strings.Cut(stack, "\npanic(")
	if !found {
		return "an unknown place"
	}
	for _, line := range strings.Split(after, "\n")[1:] {
		file, isFile := strings.CutPrefix(line, "\t")
		if isFile && !strings.Contains(file, "/runtime/") {
			file, _, _ = strings.Cut(file, " ")
			return file[strings.LastIndexByte(file, '/')+1:]
		}
	}
	return "an unknown place"
}

type baseServer struct {
	wire.UnimplementedBaseServer
	*server
}

// Info implements the call Info.
func (s *baseServer) Info(context.Context, *wire.InfoRequest) (*wire.InfoResponse, error) {
	info := s.info()
	out := &wire.InfoResponse{Name: info.Name, Version: info.Version, Description: info.Description,
		ProtocolMinor: int32(info.ProtocolMinor), ConfigSchema: info.Schema}
	for _, k := range info.Kinds {
		out.Kinds = append(out.Kinds, string(k))
	}
	for _, c := range info.Capabilities {
		out.Capabilities = append(out.Capabilities, string(c))
	}
	return out, nil
}

// Health implements the call Health by asking every service that can tell.
func (s *baseServer) Health(ctx context.Context, _ *wire.HealthRequest) (*wire.HealthResponse, error) {
	services := s.current()
	for _, service := range []any{services.Provider, services.Reranker, services.Graph, services.Embedder, services.Decoder} {
		if h, ok := service.(mapmatched.HealthChecker); ok {
			if err := h.Health(ctx); err != nil {
				return nil, err
			}
		}
	}
	return &wire.HealthResponse{}, nil
}

// Configure implements the call Configure.
func (s *baseServer) Configure(ctx context.Context, r *wire.ConfigureRequest) (*wire.ConfigureResponse, error) {
	if s.plugin.Configure == nil {
		return nil, status.Error(codes.FailedPrecondition, "the plugin takes no configuration")
	}
	config := json.RawMessage(r.GetConfig())
	schema, err := parseSchema(s.plugin.Schema)
	if err != nil {
		return nil, err
	}
	if err := schema.check(config); err != nil {
		return nil, failAs(mapmatched.KindInvalid, "configure", s.plugin.Name, err)
	}
	services, err := s.plugin.Configure(ctx, config)
	if err != nil {
		return nil, err
	}
	s.adopt(services)
	return &wire.ConfigureResponse{}, nil
}

// absent is the error of a service that the plugin does not offer.
func absent(kind Kind) error {
	return status.Errorf(codes.Unimplemented, "the plugin is no %s, or not yet configured", kind)
}

// incapable is the error of an optional call that the plugin does not answer.
func incapable(c Capability) error {
	return status.Errorf(codes.Unimplemented, "the plugin does not have the capability %q", c)
}

// invalid is the error of a request that cannot be answered.
func invalid(err error) error {
	if err == nil || mapmatched.KindOf(err) != "" {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return status.Error(codes.InvalidArgument, oneLine(err.Error()))
}
