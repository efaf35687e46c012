package weaviate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weaviate/weaviate-go-client/v4/weaviate/batch"
	"github.com/weaviate/weaviate-go-client/v4/weaviate/connection"
	"github.com/weaviate/weaviate-go-client/v4/weaviate/data"
	"github.com/weaviate/weaviate-go-client/v4/weaviate/db"
	"github.com/weaviate/weaviate-go-client/v4/weaviate/graphql"
	"github.com/weaviate/weaviate-go-client/v4/weaviate/misc"
	"github.com/weaviate/weaviate-go-client/v4/weaviate/schema"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"github.com/mapmatched/mmplug/mapmatched"
)

// maxMessage bounds a gRPC message in bytes, both ways.
const maxMessage = 64 << 20

// server is a connection to a server. It is safe for concurrent use.
type server struct {
	address string // host and port of the HTTP interface
	timeout time.Duration
	retries int
	version string       // of the server, such as "1.35.2"
	refused atomic.Int64 // lowest limit that the server is known to refuse, 0 for none

	rest      *connection.Connection
	schema    *schema.API
	objects   *data.API
	batches   *batch.API
	graphql   *graphql.API
	misc      *misc.API
	transport *http.Transport
	tokens    *tokenSource

	grpcConn *grpc.ClientConn // nil without gRPC
	grpc     pb.WeaviateClient

	life  context.Context // ends with close
	end   context.CancelFunc
	close func() error
}

// connect makes a connection and asks the server for its version.
func connect(ctx context.Context, address string, o *Connection) (*server, error) {
	if err := o.faults().err(); err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return nil, fmt.Errorf("%q is not a host and port, such as localhost:8080", address)
	}
	if (o.APIKey != "" || o.ClientSecret != "") && !o.TLS && !o.Plaintext && !loopback(host) {
		return nil, fmt.Errorf("a secret would go to %s without encryption: set TLS, or Plaintext if that is meant", address)
	}
	s := &server{address: address, timeout: o.Timeout, retries: o.Retries}
	if s.timeout == 0 {
		s.timeout = DefaultTimeout
	}
	if s.retries == 0 {
		s.retries = DefaultRetries
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.close = sync.OnceValue(s.shut)
	if err := s.open(ctx, host, o); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open makes both interfaces ready and asks for the version.
func (s *server) open(ctx context.Context, host string, o *Connection) error {
	config, err := tlsConfig(o)
	if err != nil {
		return err
	}
	s.transport = http.DefaultTransport.(*http.Transport).Clone()
	s.transport.TLSClientConfig = config
	s.transport.MaxIdleConnsPerHost = 64
	s.tokens = newTokenSource(o, s.transport, s.address)
	client := &http.Client{
		Transport: &authorized{base: s.transport, tokens: s.tokens},
		// A redirect would take the key along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	scheme := "http"
	if o.TLS {
		scheme = "https"
	}
	s.rest = connection.NewConnection(scheme, s.address, client, 0, nil)
	// The finalizer of the client waits for a goroutine that only a client with
	// refreshed tokens has, and would stop all finalizers of the program.
	runtime.SetFinalizer(s.rest, nil)
	s.misc = misc.New(s.rest, nil)
	s.schema = schema.New(s.rest)
	s.graphql = graphql.New(s.rest)
	if err := s.dial(host, o, config); err != nil {
		return err
	}
	err = s.do(ctx, func(ctx context.Context) error {
		meta, err := s.misc.MetaGetter().Do(ctx)
		if err != nil {
			return err
		}
		if s.version = meta.Version; s.version == "" {
			return corrupt("%s names no version: is it a Weaviate server?", s.address)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.address, err)
	}
	// The client asks for the version itself, without a deadline, unless it is
	// told, and drops the class from a listing when that failed.
	versions := db.NewDBVersionSupport(db.NewVersionProvider(func() string { return s.version }))
	s.objects = data.New(s.rest, versions)
	s.batches = batch.New(s.rest, nil, versions)
	return nil
}

// dial makes the gRPC connection, if one is wanted. It connects when it is
// used first.
func (s *server) dial(host string, o *Connection, config *tls.Config) error {
	if o.GRPC == "" {
		return nil
	}
	target, err := grpcAddress(host, o.GRPC)
	if err != nil {
		return err
	}
	if grpcHost, _, err := net.SplitHostPort(target); (o.APIKey != "" || o.ClientSecret != "") && !o.TLS && !o.Plaintext && (err != nil || !loopback(grpcHost)) {
		return fmt.Errorf("a secret would go to %s without encryption: set TLS, or Plaintext if that is meant", target)
	}
	transport := insecure.NewCredentials()
	if o.TLS {
		transport = credentials.NewTLS(config)
	}
	s.grpcConn, err = grpc.NewClient(target,
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(s.tokens),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return unreached(target, call(ctx, method, request, reply, conn, opts...))
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	if err != nil {
		return fmt.Errorf("gRPC: %w", err)
	}
	s.grpc = pb.NewWeaviateClient(s.grpcConn)
	return nil
}

// tlsConfig trusts the system's certificates, or those of a file.
func tlsConfig(o *Connection) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("CAFile: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CAFile %s has no PEM certificate", o.CAFile)
	}
	return config, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// shut ends running calls and frees the connections.
func (s *server) shut() error {
	s.end()
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	if s.grpcConn != nil {
		return s.grpcConn.Close()
	}
	return nil
}

// do runs a request, each attempt within the timeout, and repeats it while the
// server cannot take it. Requests have to be such that twice is as good as
// once.
func (s *server) do(ctx context.Context, f func(ctx context.Context) error) error {
	return s.repeat(ctx, s.retries, f)
}

// repeat is do with a number of retries.
func (s *server) repeat(ctx context.Context, retries int, f func(ctx context.Context) error) error {
	for attempt := 0; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.life.Err() != nil {
			return mapmatched.ErrClosed
		}
		err := s.attempt(ctx, f)
		if isNotFound(err) && !s.isReady(ctx) {
			err = &reply{kind: mapmatched.KindUnavailable, again: true, message: "the server is starting: " + err.Error()}
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case s.life.Err() != nil:
			return mapmatched.ErrClosed
		case !temporary(err) || attempt >= retries:
			return err
		}
		if s.grpcConn != nil {
			s.grpcConn.ResetConnectBackoff() // its own pauses may outlast all attempts
		}
		timer := time.NewTimer(pause(attempt))
		select {
		case <-ctx.Done():
		case <-s.life.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// attempt runs a request once.
func (s *server) attempt(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	stop := context.AfterFunc(s.life, cancel)
	defer stop()
	err := translate(f(ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", s.timeout, context.DeadlineExceeded)
	}
	return err
}

// isReady asks whether the server has started: before, it knows no classes,
// while its gRPC interface answers already.
func (s *server) isReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := s.rest.RunREST(ctx, "/.well-known/ready", http.MethodGet, nil)
	return err == nil && answer.StatusCode == http.StatusOK
}

// pause before an attempt is repeated: 100 ms, doubled each time, up to 2 s, of
// which the second half is random so that clients do not come back together.
func pause(attempt int) time.Duration {
	most := min(100*time.Millisecond<<min(attempt, 10), 2*time.Second)
	return most/2 + rand.N(most/2)
}
