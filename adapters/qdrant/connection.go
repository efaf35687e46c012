package qdrant

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Client is a connection to a Qdrant server, or a few of them that take turns.
// It connects when it is first used, and again after the server was away. It is
// safe for concurrent use and may be shared by providers, graphs and writers.
type Client struct {
	address string
	opts    ClientOptions
	conns   []*pb.GrpcClient
	next    atomic.Uint32
	closed  atomic.Bool
}

// Connect prepares a connection to the server at address, "host" or
// "host:port"; without a port it is 6334. It does not reach for the server: the
// first call does, and its error says when nobody is there. The error of
// options at fault, or of a certificate file that cannot be read, comes at once.
func Connect(address string, opts *ClientOptions) (*Client, error) {
	const op = "open"
	if opts == nil {
		opts = &ClientOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, typed(op, mapmatched.KindInvalid, err)
	}
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, typed(op, mapmatched.KindInvalid, err)
	}
	c := &Client{address: net.JoinHostPort(host, port), opts: opts.withDefaults()}
	creds, err := c.opts.credentials()
	if err != nil {
		return nil, typed(op, mapmatched.KindInvalid, err)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent("mmplug"),
		grpc.WithUnaryInterceptor(c.invoke),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.opts.MaxMessageBytes), grpc.MaxCallSendMsgSize(c.opts.MaxMessageBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if c.opts.Keepalive > 0 {
		dial = append(dial, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: c.opts.Keepalive, Timeout: 20 * time.Second}))
	}
	for range c.opts.PoolSize {
		conn, err := grpc.NewClient(c.address, dial...)
		if err != nil {
			_ = c.Close() // the first error is the one to report
			return nil, typed(op, mapmatched.KindInvalid, fmt.Errorf("address %q: %w", address, err))
		}
		c.conns = append(c.conns, pb.NewGrpcClientFromConn(conn))
	}
	return c, nil
}

// splitAddress returns host and port of an address.
func splitAddress(address string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(address)
	if err != nil {
		host, port = address, DefaultPort
		if len(address) > 1 && address[0] == '[' && address[len(address)-1] == ']' {
			host = address[1 : len(address)-1]
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case host == "":
		return "", "", fmt.Errorf("address %q has no host; write HOST:%s", address, DefaultPort)
	case err != nil || n == 0:
		return "", "", fmt.Errorf("address %q: the port is not a number from 1 to 65535; write HOST:%s", address, DefaultPort)
	}
	return host, port, nil
}

// credentials make the transport of the options.
func (o *ClientOptions) credentials() (credentials.TransportCredentials, error) {
	if !o.TLS {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLSConfig != nil {
		config = o.TLSConfig.Clone()
	}
	if o.ServerName != "" {
		config.ServerName = o.ServerName
	}
	if o.CAFile != "" {
		certificates, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("the certificates of CAFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("CAFile %s has no certificate in PEM form", o.CAFile)
		}
	}
	return credentials.NewTLS(config), nil
}

// Address returns "host:port" of the server.
func (c *Client) Address() string { return c.address }

// Close ends all connections. Calls that are running fail with
// mapmatched.ErrClosed, as do later ones; closing again does nothing.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// conn returns the connection whose turn it is, or the next one that is not
// waiting to connect again.
func (c *Client) conn() *pb.GrpcClient {
	turn := int(c.next.Add(1) % uint32(len(c.conns)))
	for i := range c.conns {
		conn := c.conns[(turn+i)%len(c.conns)]
		if state := conn.Conn().GetState(); state == connectivity.Ready || state == connectivity.Idle {
			return conn
		}
	}
	return c.conns[turn]
}

func (c *Client) points() pb.PointsClient           { return c.conn().Points() }
func (c *Client) collections() pb.CollectionsClient { return c.conn().Collections() }

// Version asks the server for its version.
func (c *Client) Version(ctx context.Context) (string, error) {
	reply, err := c.conn().Qdrant().HealthCheck(ctx, &pb.HealthCheckRequest{})
	if err != nil {
		return "", c.failed(ctx, "health", "", err)
	}
	return reply.GetVersion(), nil
}

// Collections lists the names of the collections in ascending order.
func (c *Client) Collections(ctx context.Context) ([]string, error) {
	reply, err := c.collections().List(ctx, &pb.ListCollectionsRequest{})
	if err != nil {
		return nil, c.failed(ctx, "list collections", "", err)
	}
	names := make([]string, len(reply.GetCollections()))
	for i, d := range reply.GetCollections() {
		names[i] = d.GetName()
	}
	slices.Sort(names)
	return names, nil
}

// DeleteCollection removes a collection with all that is in it. It reports
// whether there was one.
func (c *Client) DeleteCollection(ctx context.Context, collection string) (bool, error) {
	reply, err := c.collections().Delete(ctx, &pb.DeleteCollection{CollectionName: collection})
	if err != nil {
		return false, c.failed(ctx, "delete collection", collection, err)
	}
	return reply.GetResult(), nil
}

// invoke makes every call of the connection: with the API key, within the
// timeout, and again when the server is away or asks to wait.
func (c *Client) invoke(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if c.opts.APIKey != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "api-key", c.opts.APIKey)
	}
	var trailer metadata.MD
	opts = append(slices.Clip(opts), grpc.Trailer(&trailer))
	for tried := 1; ; tried++ {
		if c.closed.Load() {
			return mapmatched.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		trailer = nil
		once, cancel := context.WithTimeout(ctx, c.opts.Timeout)
		err := call(once, method, request, reply, conn, opts...)
		cancel()
		if status.Code(err) == codes.DeadlineExceeded && sameDeadline(ctx, once) {
			return context.DeadlineExceeded // the caller's, whose context may be a moment behind
		}
		if err == nil || !worthRetrying(err) || c.closed.Load() {
			return err
		}
		wait, asked := retryAfter(trailer)
		switch {
		case asked && wait > c.opts.MaxRetryWait:
			return &remark{err, fmt.Sprintf("the server asks to wait %v, longer than the %v of MaxRetryWait", wait, c.opts.MaxRetryWait)}
		case tried > c.opts.Retries && tried > 1:
			return &remark{err, fmt.Sprintf("tried %d times", tried)}
		case tried > c.opts.Retries:
			return err
		case !asked:
			wait = backoffWait(c.opts.RetryWait, c.opts.MaxRetryWait, tried)
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return err // there is no time to try again
		}
		conn.ResetConnectBackoff()
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// sameDeadline reports whether the deadline of a context is that of its parent.
func sameDeadline(parent, ctx context.Context) bool {
	of, has := parent.Deadline()
	at, _ := ctx.Deadline()
	return has && of.Equal(at)
}

// worthRetrying reports whether the same call may succeed a moment later.
// Every call of this package may be repeated.
func worthRetrying(err error) bool {
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable:
		return true
	case codes.ResourceExhausted:
		return !tooLarge(s)
	default:
		return false
	}
}

// retryAfter reads the time that a server which limits the rate asks to wait.
func retryAfter(trailer metadata.MD) (wait time.Duration, asked bool) {
	values := trailer.Get("retry-after")
	if len(values) == 0 {
		return 0, false
	}
	seconds, err := strconv.ParseUint(values[0], 10, 31)
	return time.Duration(seconds) * time.Second, err == nil
}

// backoffWait is how long to wait before trying again after a call was tried
// so often: base, doubled with every try, at most limit, and between half of
// that and all of it by chance, so that many clients do not come back together.
func backoffWait(base, limit time.Duration, tried int) time.Duration {
	wait := min(base<<min(tried-1, 16), limit)
	return wait/2 + rand.N(wait/2+1)
}

// sleep waits, or returns the error of the context when that is done first.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// consistency is the read consistency of the options as the server takes it,
// nil for its own default.
func (c *Client) consistency() *pb.ReadConsistency { return c.opts.ReadConsistency.proto() }
