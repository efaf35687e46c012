package qdranttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qdrant/go-client/qdrant"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		opts *Options
		want string
	}{{nil, "1.17.1"}, {&Options{Version: "1.16.0"}, "1.16.0"}} {
		client := dial(t, start(t, c.opts))
		reply := must(client.HealthCheck(t.Context()))(t)
		if reply.GetTitle() != "qdrant - vector search engine" || reply.GetVersion() != c.want {
			t.Errorf("health %v, want version %s", reply, c.want)
		}
		standard := must(grpc_health_v1.NewHealthClient(client.GetConnection()).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}))(t)
		if standard.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("standard health %v", standard)
		}
	}
}

func TestAPIKeys(t *testing.T) {
	s := start(t, &Options{APIKey: "full", ReadOnlyAPIKey: "read"})
	with := func(key string) *qdrant.Client { // by hand: the client warns about keys without TLS
		return dial(t, s, func(c *qdrant.Config) {
			c.GrpcOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if key != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, "api-key", key)
				}
				return next(ctx, method, in, out, cc, opts...)
			})}
		})
	}
	create(t, with("full"), 1, qdrant.Distance_Dot)
	upsert(t, with("full"), at(1, nil, 1))
	for _, c := range []struct {
		name, key   string
		read, write codes.Code
		text        string
	}{
		{"full", "full", codes.OK, codes.OK, ""},
		{"read only", "read", codes.OK, codes.PermissionDenied, "Forbidden: Global manage access is required"},
		{"wrong", "guess", codes.Unauthenticated, codes.Unauthenticated, "Invalid API key or JWT"},
		{"none", "", codes.Unauthenticated, codes.Unauthenticated, "Must provide an API key or an Authorization bearer token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := with(c.key)
			must(client.HealthCheck(t.Context()))(t)
			for name, call := range map[string]func() error{
				"query": func() error {
					_, err := client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(1)})
					return err
				},
				"info":   func() error { _, err := client.GetCollectionInfo(t.Context(), "c"); return err },
				"exists": func() error { _, err := client.CollectionExists(t.Context(), "c"); return err },
			} {
				if err := call(); c.read == codes.OK && err != nil || c.read != codes.OK && err == nil {
					t.Errorf("%s: %v, want %v", name, err, c.read)
				} else if err != nil {
					wantError(t, err, c.read, c.text)
				}
			}
			for name, call := range map[string]func() error{
				"upsert": func() error { return tryUpsert(t.Context(), client, at(1, nil, 1)) },
				"delete": func() error {
					_, err := client.GetCollectionsClient().Delete(t.Context(), &qdrant.DeleteCollection{CollectionName: "x"})
					return err
				},
			} {
				if err := call(); c.write == codes.OK && err != nil || c.write != codes.OK && err == nil {
					t.Errorf("%s: %v, want %v", name, err, c.write)
				} else if err != nil {
					wantError(t, err, c.write, c.text)
				}
			}
		})
	}
	bearer := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer full")
	if _, err := with("").GetCollectionInfo(bearer, "c"); err != nil {
		t.Errorf("bearer token: %v", err)
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t testing.TB) (tls.Certificate, *x509.CertPool) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	pool := x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(der))(t))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	certificate, pool := selfSigned(t)
	s := start(t, &Options{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	client := dial(t, s, func(c *qdrant.Config) { c.UseTLS, c.TLSConfig = true, &tls.Config{RootCAs: pool} })
	must(client.HealthCheck(t.Context()))(t)
	s.Inject(Fault{Method: "Qdrant/HealthCheck", Times: 1, Drop: true})
	if _, err := client.HealthCheck(t.Context()); err == nil {
		t.Error("a dropped connection under TLS gave an answer")
	}
	plain := dial(t, s)
	_, err := plain.HealthCheck(t.Context())
	wantError(t, err, codes.Unavailable, "")
	stranger := dial(t, s, func(c *qdrant.Config) { c.UseTLS, c.TLSConfig = true, &tls.Config{RootCAs: x509.NewCertPool()} })
	_, err = stranger.HealthCheck(t.Context())
	wantError(t, err, codes.Unavailable, "certificate signed by unknown authority")
}

func TestOptionsValidate(t *testing.T) {
	if err := (*Options)(nil).Validate(); err != nil {
		t.Errorf("nil: %v", err)
	}
	bad := &Options{ReadOnlyAPIKey: "r", TLS: &tls.Config{}, MinPing: -1, MaxReceive: -1}
	s, err := Start(bad)
	if err == nil {
		_ = s.Close()
		t.Fatal("bad options were accepted")
	}
	for _, want := range []string{"ReadOnlyAPIKey", "TLS", "MinPing", "MaxReceive"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if err := (&Options{APIKey: "x", ReadOnlyAPIKey: "x"}).Validate(); err == nil {
		t.Error("two equal keys were accepted")
	}
}

// ping sends n keepalive pings to a server over plain HTTP/2 and returns the
// reason of GOAWAY, or "" when all were answered.
func ping(t *testing.T, addr string, n int) string {
	t.Helper()
	c := must(net.Dial("tcp", addr))(t)
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(c, c)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	sent, answered := 0, 0
	for answered < n {
		if sent == answered {
			var data [8]byte
			binary.BigEndian.PutUint64(data[:], uint64(1000+sent))
			if err := framer.WritePing(false, data); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := frame.(type) {
		case *http2.PingFrame:
			if f.IsAck() && binary.BigEndian.Uint64(f.Data[:]) == uint64(1000+answered) {
				answered++
			}
		case *http2.GoAwayFrame:
			return string(f.DebugData())
		}
	}
	return ""
}

func TestKeepaliveEnforcement(t *testing.T) {
	if got := ping(t, start(t, nil).Addr(), 20); got != "" {
		t.Errorf("without MinPing: sent away with %q", got)
	}
	if got := ping(t, start(t, &Options{MinPing: time.Hour}).Addr(), 20); got != "too_many_pings" {
		t.Errorf("with MinPing: %q, want too_many_pings", got)
	}
}

func TestKillAndRestart(t *testing.T) {
	s := start(t, nil)
	client := dial(t, s)
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, nil, 1))

	s.Inject(Fault{Method: "Points/Count", Delay: time.Hour})
	waiting := make(chan error, 1)
	go func() {
		_, err := client.Count(context.Background(), &qdrant.CountPoints{CollectionName: "c"})
		waiting <- err
	}()
	for s.Calls()["Points/Count"] == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Kill()
	s.Kill()
	wantError(t, <-waiting, codes.Unavailable, "")
	_, err := client.Count(t.Context(), &qdrant.CountPoints{CollectionName: "c"})
	wantError(t, err, codes.Unavailable, "")

	s.ClearFaults()
	addr := s.Addr()
	for range 2 { // the second restarts a running server
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		var page *qdrant.ScrollResponse
		for range 2 { // the first call may be the one that finds the old connection dead
			if page, err = client.GetPointsClient().Scroll(t.Context(), &qdrant.ScrollPoints{CollectionName: "c"}, grpc.WaitForReady(true)); err == nil {
				break
			}
		}
		if err != nil || s.Addr() != addr || len(page.GetResult()) != 1 {
			t.Errorf("after the restart on %s: %v, %v", s.Addr(), page, err)
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if s.Restart() == nil {
		t.Error("a closed server was restarted")
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("the closed server still listens")
	}
}

func TestMessageSizes(t *testing.T) {
	s := start(t, nil)
	small := dial(t, s)
	large := dial(t, s, func(c *qdrant.Config) {
		c.GrpcOptions = []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20))}
	})
	create(t, small, 1, qdrant.Distance_Dot)
	big := strings.Repeat("x", 5<<20)
	upsert(t, small, at(1, map[string]any{"text": big}, 1)) // requests have no limit
	in := &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(1), WithPayload: qdrant.NewWithPayload(true)}
	_, err := small.Query(t.Context(), in)
	wantError(t, err, codes.ResourceExhausted, "received message larger than max")
	got := must(large.Query(t.Context(), in))(t)
	if text := got[0].GetPayload()["text"].GetStringValue(); text != big {
		t.Errorf("%d bytes came back, want %d", len(text), len(big))
	}

	tight := start(t, &Options{MaxReceive: 1000})
	client := dial(t, tight)
	create(t, client, 1, qdrant.Distance_Dot)
	wantError(t, tryUpsert(t.Context(), client, at(1, map[string]any{"text": big[:2000]}, 1)), codes.ResourceExhausted, "received message larger than max")
}

// TestConcurrentCalls is for the race detector: readers, writers, faults and a
// restart at the same time. Every point is written in the end, and every reply
// is whole.
func TestConcurrentCalls(t *testing.T) {
	s := start(t, &Options{WriteDelay: time.Millisecond})
	client := dial(t, s, func(c *qdrant.Config) { c.PoolSize = 8 })
	create(t, client, 2, qdrant.Distance_Cosine)
	upsert(t, client, at(1000, map[string]any{"w": 0}, 1, 0))
	ctx, ready := t.Context(), grpc.WaitForReady(true)
	const workers = 64
	var failed sync.Map
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range 4 {
				p := at(uint64(w*4+i), map[string]any{"w": w}, float32(w+1), float32(i))
				for {
					_, err := client.GetPointsClient().Upsert(ctx, &qdrant.UpsertPoints{CollectionName: "c", Points: []*qdrant.PointStruct{p}, Wait: proto.Bool(i%2 == 0)}, ready)
					if err == nil {
						break
					}
				}
				out, err := client.GetPointsClient().QueryBatch(ctx, &qdrant.QueryBatchPoints{CollectionName: "c", QueryPoints: []*qdrant.QueryPoints{
					{CollectionName: "c", Query: qdrant.NewQuery(1, 1), WithPayload: qdrant.NewWithPayload(true), WithVectors: qdrant.NewWithVectors(true)},
					{CollectionName: "c", Query: qdrant.NewQuery(1, 0), Filter: must1(qdrant.NewMatchInt("w", int64(w)))},
				}}, ready)
				if err == nil && (len(out.GetResult()) != 2 || len(out.GetResult()[0].GetResult()) == 0 || len(out.GetResult()[0].GetResult()[0].GetPayload()) != 1) {
					failed.Store(w, fmt.Sprint(out))
				}
				_, _ = client.SetPayload(ctx, &qdrant.SetPayloadPoints{CollectionName: "c", Payload: qdrant.NewValueMap(map[string]any{"w": w}), PointsSelector: qdrant.NewPointsSelector(qdrant.NewIDNum(1000))})
				_, _ = client.GetCollectionInfo(ctx, "c")
			}
		})
	}
	remove := s.Inject(Fault{Method: "Points/QueryBatch", Skip: 20, Times: 20, Code: codes.Unavailable, Message: "x"})
	s.Inject(Fault{Method: "Points/Upsert", Skip: 50, Times: 2, Drop: true})
	for s.Calls()["Points/Upsert"] < workers {
		time.Sleep(time.Millisecond)
	}
	if err := s.Restart(); err != nil {
		t.Error(err)
	}
	group.Wait()
	remove()
	failed.Range(func(w, out any) bool { t.Errorf("worker %v: %v", w, out); return true })
	s.Settle()
	n := must(client.GetPointsClient().Count(ctx, &qdrant.CountPoints{CollectionName: "c"}, ready))(t)
	if n.GetResult().GetCount() != workers*4+1 {
		t.Errorf("%d points, want %d", n.GetResult().GetCount(), workers*4+1)
	}
}

func TestFaults(t *testing.T) {
	s := start(t, nil)
	client := dial(t, s)
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, nil, 1), at(2, nil, 2))
	ask := func() ([]*qdrant.ScoredPoint, error) {
		return client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(1)})
	}
	t.Run("skip and times", func(t *testing.T) {
		f := Unavailable()
		f.Method, f.Skip, f.Times = "Points/Query", 1, 2
		defer s.Inject(f)()
		var got []bool
		for range 5 {
			_, err := ask()
			if err != nil {
				wantError(t, err, codes.Unavailable, "Shard temporarily unavailable: ")
			}
			must(client.HealthCheck(t.Context()))(t)
			got = append(got, err == nil)
		}
		if !slices.Equal(got, []bool{true, false, false, true, true}) {
			t.Errorf("calls went well: %v, want the second and third to fail", got)
		}
	})
	t.Run("removed", func(t *testing.T) {
		s.Inject(Unavailable())()
		must(ask())(t)
		s.Inject(Unavailable())
		s.ClearFaults()
		must(ask())(t)
	})
	t.Run("rate limit", func(t *testing.T) {
		defer s.Inject(RateLimited(1500 * time.Millisecond))()
		_, err := ask()
		var limited *qdrant.QdrantResourceExhaustedError
		if !errors.As(err, &limited) || limited.RetryAfterS != 2 || !strings.Contains(limited.Reason, "Rate limiting exceeded: Read rate limit exceeded") {
			t.Errorf("%v, want the client's error with 2 seconds", err)
		}
	})
	t.Run("delay ends with the context", func(t *testing.T) {
		defer s.Inject(Fault{Delay: time.Hour})()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := client.Query(ctx, &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(1)})
		wantError(t, err, codes.DeadlineExceeded, "")
	})
	t.Run("delay ends by itself", func(t *testing.T) {
		defer s.Inject(Fault{Delay: time.Millisecond})()
		wantHits(t, must(ask())(t), hit{"2", 2}, hit{"1", 1})
	})
	t.Run("drop", func(t *testing.T) {
		defer s.Inject(Fault{Method: "Points/Query", Times: 1, Drop: true})()
		_, err := ask()
		wantError(t, err, codes.Unavailable, "")
		for range 2 { // the first call may be the one that finds the old connection dead
			if _, err = client.GetPointsClient().Count(t.Context(), &qdrant.CountPoints{CollectionName: "c"}, grpc.WaitForReady(true)); err == nil {
				return
			}
		}
		t.Errorf("the call after the dropped one: %v", err)
	})
	t.Run("padding", func(t *testing.T) {
		defer s.Inject(Fault{Padding: 5 << 20})()
		_, err := ask()
		wantError(t, err, codes.ResourceExhausted, "received message larger than max")
		large := dial(t, s, func(c *qdrant.Config) {
			c.GrpcOptions = []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(6 << 20))}
		})
		wantHits(t, must(large.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(1)}))(t), hit{"2", 2}, hit{"1", 1})
	})
	t.Run("scores", func(t *testing.T) {
		nan := float32(0)
		nan /= nan
		defer s.Inject(Fault{Scores: []float32{nan}})()
		if got := must(ask())(t); got[0].GetScore() == got[0].GetScore() || got[1].GetScore() != 1 {
			t.Errorf("scores %v and %v, want NaN and 1", got[0].GetScore(), got[1].GetScore())
		}
		batch := must(client.QueryBatch(t.Context(), &qdrant.QueryBatchPoints{CollectionName: "c", QueryPoints: []*qdrant.QueryPoints{{CollectionName: "c", Query: qdrant.NewQuery(1)}}}))(t)
		if got := batch[0].GetResult()[0].GetScore(); got == got {
			t.Errorf("score in a batch %v, want NaN", got)
		}
		s.ClearFaults()
		wantHits(t, must(ask())(t), hit{"2", 2}, hit{"1", 1})
	})
	t.Run("unknown method", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("a fault for an unknown method was accepted")
			}
		}()
		s.Inject(Fault{Method: "Points/Ask"})
	})
}
