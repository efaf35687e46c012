package qdranttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Title is what the health check of every Qdrant server says.
const Title = "qdrant - vector search engine"

// Server is a running server. Its methods may be called by any number of
// goroutines.
type Server struct {
	opts  Options
	addr  string
	store *store

	faults faults
	calls  calls

	mu     sync.Mutex
	run    *run // nil after Kill and Close
	closed bool
}

// run is what ends with Kill and begins with Restart.
type run struct {
	grpc     *grpc.Server
	listener *listener
	done     chan struct{} // closed when Serve has returned
}

// Start begins to listen on a free port of 127.0.0.1. The options may be nil.
func Start(opts *Options) (*Server, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	s := &Server{}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Version == "" {
		s.opts.Version = defaultVersion
	}
	if s.opts.WriteDelay == 0 {
		s.opts.WriteDelay = defaultWriteDelay
	}
	if s.opts.MaxReceive == 0 {
		s.opts.MaxReceive = math.MaxInt32
	}
	s.store = newStore(s.opts.WriteDelay, s.opts.Seed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("qdranttest: %w", err)
	}
	s.addr = l.Addr().String()
	s.run = s.serve(l)
	return s, nil
}

// serve runs a gRPC server on l.
func (s *Server) serve(l net.Listener) *run {
	enforce := keepalive.EnforcementPolicy{MinTime: time.Nanosecond, PermitWithoutStream: true}
	if s.opts.MinPing > 0 {
		enforce.MinTime = s.opts.MinPing
	}
	r := &run{listener: newListener(l), done: make(chan struct{})}
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(s.opts.MaxReceive),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.KeepaliveEnforcementPolicy(enforce),
		grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(s.count, s.fail(r.listener), s.authorize),
	}
	if s.opts.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(s.opts.TLS)))
	}
	r.grpc = grpc.NewServer(opts...)
	qdrant.RegisterQdrantServer(r.grpc, healthService{version: s.opts.Version})
	qdrant.RegisterCollectionsServer(r.grpc, collectionsService{store: s.store})
	qdrant.RegisterPointsServer(r.grpc, pointsService{store: s.store})
	qdrant.RegisterSnapshotsServer(r.grpc, qdrant.UnimplementedSnapshotsServer{})
	grpc_health_v1.RegisterHealthServer(r.grpc, health.NewServer())
	go func() {
		defer close(r.done)
		_ = r.grpc.Serve(r.listener) // it returns when Kill or Close stops it
	}()
	return r
}

// end drops every connection and waits until nothing runs any more.
func (r *run) end() {
	_ = r.listener.Close()
	r.listener.dropAll()
	r.grpc.Stop()
	<-r.done
}

// Addr is the host and port of the server, the same one after a restart.
func (s *Server) Addr() string { return s.addr }

// HostPort is Addr in the two parts the configuration of the client takes.
func (s *Server) HostPort() (host string, port int) {
	host, text, _ := net.SplitHostPort(s.addr)
	port, _ = strconv.Atoi(text)
	return host, port
}

// Kill stops the server as a crash would: connections are reset, calls under
// way get no answer, new connections are refused. The data stay, as after a
// crash of a server with a write-ahead log. It does nothing when the server is
// down.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.run.end()
		s.run = nil
	}
}

// Restart brings a killed server back on the same port with the data it had; a
// running one is killed first. It is an error when the server is closed or
// something else has taken the port.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("qdranttest: Restart of a closed server: start another one")
	}
	if s.run != nil {
		s.run.end()
		s.run = nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("qdranttest: restart on %s: %w", s.addr, err)
	}
	s.run = s.serve(l)
	return nil
}

// Close stops the server and waits until all its goroutines have ended. Further
// calls do nothing. The error is always nil.
func (s *Server) Close() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Settle applies every write with wait=false that is still under way.
func (s *Server) Settle() { s.store.settleAll() }

// healthService is the service qdrant.Qdrant.
type healthService struct {
	qdrant.UnimplementedQdrantServer
	version string
}

func (h healthService) HealthCheck(context.Context, *qdrant.HealthCheckRequest) (*qdrant.HealthCheckReply, error) {
	return &qdrant.HealthCheckReply{Title: Title, Version: h.version}, nil
}
