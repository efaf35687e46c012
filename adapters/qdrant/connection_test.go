package qdrant_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// expect checks kind and text of an error, which is one line.
func expect(t *testing.T, err error, kind mapmatched.Kind, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one of kind %q with %q", kind, parts)
		return
	}
	if got := mapmatched.KindOf(err); got != kind {
		t.Errorf("error %q of kind %q, want %q", err, got, kind)
	}
	var typed *mapmatched.Error
	if !errors.As(err, &typed) || typed.Adapter != "qdrant" || typed.Op == "" {
		t.Errorf("error %q is not typed with adapter and operation", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is not one line", err)
	}
}

func TestConnectRefuses(t *testing.T) {
	for _, c := range []struct {
		name, address string
		opts          qdrant.ClientOptions
		want          []string
	}{
		{"no host", ":6334", qdrant.ClientOptions{}, []string{"no host"}},
		{"nothing", "", qdrant.ClientOptions{}, []string{"no host"}},
		{"port", "h:x", qdrant.ClientOptions{}, []string{"port is not a number"}},
		{"port 0", "h:0", qdrant.ClientOptions{}, []string{"port is not a number"}},
		{"key without TLS", "h", qdrant.ClientOptions{APIKey: "k"}, []string{"without TLS", "allow_plaintext_key"}},
		{"CA without TLS", "h", qdrant.ClientOptions{CAFile: "x"}, []string{"no effect without TLS"}},
		{"CA file missing", "h", qdrant.ClientOptions{TLS: true, CAFile: "no such file"}, []string{"CAFile", "no such file"}},
		{"CA file empty", "h", qdrant.ClientOptions{TLS: true, CAFile: os.DevNull}, []string{"no certificate in PEM form"}},
		{"all at once", "h", qdrant.ClientOptions{Timeout: -1, PoolSize: -1, Keepalive: time.Second, MaxMessageBytes: -1, Retries: 101, ReadConsistency: "most"},
			[]string{"Timeout is -1ns", "PoolSize is -1", "Keepalive is 1s, want 10s or more", "MaxMessageBytes is -1", "Retries is 101", `"most"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := qdrant.Connect(c.address, &c.opts)
			if client != nil || err == nil {
				t.Fatalf("client %v, error %v", client, err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if mapmatched.KindOf(err) != mapmatched.KindInvalid {
				t.Errorf("kind %q, want invalid", mapmatched.KindOf(err))
			}
		})
	}
}

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"h": "h:6334", "h:1": "h:1", "127.0.0.1": "127.0.0.1:6334", "[::1]": "[::1]:6334", "::1": "[::1]:6334", "[::1]:7": "[::1]:7",
	} {
		c, err := qdrant.Connect(given, nil)
		if err != nil {
			t.Fatalf("%q: %v", given, err)
		}
		if c.Address() != want {
			t.Errorf("%q: address %q, want %q", given, c.Address(), want)
		}
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Errorf("%q: close: %v", given, err)
		}
	}
}

// nobody is an address where no one listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestDeadServer(t *testing.T) {
	address := nobody(t)
	c, err := qdrant.Connect(address, &qdrant.ClientOptions{RetryWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = qdrant.NewProvider(t.Context(), c, "pages", nil)
	expect(t, err, mapmatched.KindUnavailable, address, `"pages"`, "cannot connect: dial", "connection refused (tried 4 times)", "see that Qdrant runs there", "6334")
	for _, raw := range []string{"rpc error", "desc =", "transport:"} {
		if strings.Contains(err.Error(), raw) {
			t.Errorf("error %q has %q in it", err, raw)
		}
	}
}

// TestDropped: a connection that is reset, as after too many pings, is an
// unavailable server, and the next call connects again.
func TestDropped(t *testing.T) {
	s := faulty(t, nil)
	once := s.client(func(o *qdrant.ClientOptions) { o.Retries = -1 })
	name := s.write(once, nil, record("a", 1, 0))
	p := s.open(once, name, nil)
	q := mapmatched.Query{Vector: []float32{1, 0}}
	s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Drop: true, Times: 1})
	_, err := p.Candidates(t.Context(), q, 1)
	expect(t, err, mapmatched.KindUnavailable, s.address, name)
	if got, err := p.Candidates(t.Context(), q, 1); err != nil || len(got) != 1 {
		t.Errorf("after the connection was dropped: %v, error %v", got, err)
	}

	again := s.open(s.client(func(o *qdrant.ClientOptions) { o.RetryWait = time.Millisecond }), name, nil)
	s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Drop: true, Times: 2})
	s.fake.ResetCalls()
	if got, err := again.Candidates(t.Context(), q, 1); err != nil || len(got) != 1 || s.fake.Calls()["Points/Query"] != 3 {
		t.Errorf("with retries: %v, error %v, calls %v, want one candidate after three calls", got, err, s.fake.Calls())
	}
}

// pinger is a proxy that can put pings of a client where its bytes are.
type pinger struct {
	net.Listener
	to string
	mu sync.Mutex
	up []net.Conn // to the server
}

func (p *pinger) serve() {
	for {
		down, err := p.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = down.Close()
			continue
		}
		p.mu.Lock()
		p.up = append(p.up, up)
		p.mu.Unlock()
		for _, way := range [][2]net.Conn{{up, down}, {down, up}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				_ = errors.Join(up.Close(), down.Close())
			}()
		}
	}
}

// ping sends pings (RFC 9113, section 6.7) on every connection. Nothing else may
// be on its way.
func (p *pinger) ping(times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	frame := [9 + 8]byte{2: 8, 3: 6}
	for _, up := range p.up {
		for range times {
			_, _ = up.Write(frame[:])
		}
	}
}

// TestKeepaliveEnforced: a server that enforces a policy on pings sends the
// connection away; that is an unavailable server, and the next call connects
// again. gRPC pings every 10 s at most, so the pings come from a proxy.
func TestKeepaliveEnforced(t *testing.T) {
	s := faulty(t, &qdranttest.Options{MinPing: time.Hour})
	name := s.write(s.client(nil), nil, record("a", 1, 0))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &pinger{Listener: l, to: s.address}
	t.Cleanup(func() { _ = proxy.Close() })
	go proxy.serve()
	through := &target{t: t, address: l.Addr().String()}
	c := through.client(func(o *qdrant.ClientOptions) {
		o.Retries, o.PoolSize, o.Keepalive = -1, 1, 10*time.Second
	})
	p := through.open(c, name, nil)
	remove := s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Delay: time.Minute})
	s.fake.ResetCalls()
	failed := make(chan error)
	go func() {
		_, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 1)
		failed <- err
	}()
	for s.fake.Calls()["Points/Query"] == 0 {
		time.Sleep(time.Millisecond)
	}
	proxy.ping(10)
	expect(t, <-failed, mapmatched.KindUnavailable, l.Addr().String(), name, "too_many_pings", "raise it (keepalive=)")
	remove()
	got, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 1)
	for range 200 { // to connect may take a moment on a busy machine
		if mapmatched.KindOf(err) != mapmatched.KindUnavailable {
			break
		}
		time.Sleep(10 * time.Millisecond)
		got, err = p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 1)
	}
	if err != nil || len(got) != 1 {
		t.Errorf("after it was sent away: %v, error %v", got, err)
	}
}

func TestRetryAfter(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(func(o *qdrant.ClientOptions) { o.MaxRetryWait = 2 * time.Second; o.RetryWait = time.Nanosecond })
	p := s.open(c, s.write(c, nil, record("a", 1, 0)), nil)
	q := mapmatched.Query{Vector: []float32{1, 0}}
	ask := func(ctx context.Context) error {
		s.fake.ResetCalls()
		_, err := p.Candidates(ctx, q, 1)
		return err
	}

	s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Code: codes.ResourceExhausted, Message: "slow down", RetryAfter: time.Second, Times: 1})
	began := time.Now()
	if err := ask(t.Context()); err != nil || s.fake.Calls()["Points/Query"] != 2 {
		t.Errorf("error %v after calls %v, want none after 2", err, s.fake.Calls())
	}
	if waited := time.Since(began); waited < time.Second { // a sleep is never shorter
		t.Errorf("waited %v, the server asked for 1s", waited)
	}

	remove := s.fake.Inject(qdranttest.RateLimited(time.Minute))
	err := ask(t.Context())
	expect(t, err, mapmatched.KindUnavailable, s.address, "asks to wait 1m0s", "longer than the 2s", "limits the rate")
	if n := s.fake.Calls()["Points/Query"]; n != 1 {
		t.Errorf("%d calls, want 1: the wait is longer than allowed", n)
	}
	remove()

	defer s.fake.Inject(qdranttest.RateLimited(2 * time.Second))()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := ask(ctx); !errors.Is(err, context.Canceled) || mapmatched.KindOf(err) != mapmatched.KindDeadline {
		t.Errorf("cancelled while waiting: error %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	expect(t, ask(ctx), mapmatched.KindUnavailable, "limits the rate") // there is no time to wait
	if n := s.fake.Calls()["Points/Query"]; n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

func TestRetriesEnd(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(func(o *qdrant.ClientOptions) { o.Retries = 2; o.RetryWait = time.Nanosecond })
	p := s.open(c, s.write(c, nil, record("a", 1, 0)), nil)
	defer s.fake.Inject(qdranttest.Unavailable())()
	s.fake.ResetCalls()
	_, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 1)
	expect(t, err, mapmatched.KindUnavailable, s.address, "Shard temporarily unavailable", "tried 3 times")
	if n := s.fake.Calls()["Points/Query"]; n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
}

func TestTimeout(t *testing.T) {
	s := faulty(t, nil)
	name := s.write(s.client(nil), nil, record("a", 1, 0))
	p := s.open(s.client(func(o *qdrant.ClientOptions) { o.Timeout = 500 * time.Millisecond }), name, nil)
	s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Delay: time.Hour})
	_, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 1)
	expect(t, err, mapmatched.KindDeadline, s.address, "timeout of 500ms", "timeout=")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v is not context.DeadlineExceeded", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err = p.Candidates(ctx, mapmatched.Query{Vector: []float32{1, 0}}, 1); !errors.Is(err, context.DeadlineExceeded) || mapmatched.KindOf(err) != mapmatched.KindDeadline || strings.Contains(err.Error(), "timeout of") {
		t.Errorf("the caller's deadline: error %v", err)
	}
}

// TestLargeReply: a reply of more than the 4 MiB of gRPC's default arrives.
func TestLargeReply(t *testing.T) {
	s := faulty(t, nil)
	name := s.write(s.client(nil), nil, record("a", 1, 0))
	q := mapmatched.Query{Vector: []float32{1, 0}}
	s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Padding: 5 << 20})
	if got, err := s.open(s.client(nil), name, nil).Candidates(t.Context(), q, 1); err != nil || len(got) != 1 {
		t.Errorf("5 MiB: %v, error %v", got, err)
	}
	p := s.open(s.client(func(o *qdrant.ClientOptions) { o.MaxMessageBytes = 4 << 20 }), name, nil)
	s.fake.ResetCalls()
	_, err := p.Candidates(t.Context(), q, 1)
	expect(t, err, mapmatched.KindInvalid, s.address, "limit is 4194304 bytes", "max_message_bytes=")
	if n := s.fake.Calls()["Points/Query"]; n != 1 {
		t.Errorf("%d calls, want 1: the same call would be as large again", n)
	}
}

// TestPagesOfLargeCorpus fetches more than 4 MiB from any server.
func TestPagesOfLargeCorpus(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	var all []mapmatched.Record
	var names []string
	for i := range 60 {
		r := record(string(rune('A'+i)), float32(i+1), 1)
		r.Chunk.Text = strings.Repeat("0123456789abcdef", 6<<10) // 96 KiB
		all, names = append(all, r), append(names, r.Chunk.ID)
	}
	p := s.open(c, s.write(c, nil, all...), nil)
	chunks, err := p.Chunks(t.Context(), names)
	if err != nil || len(chunks) != len(all) {
		t.Fatalf("%d chunks, error %v", len(chunks), err)
	}
	small := s.open(s.client(func(o *qdrant.ClientOptions) { o.MaxMessageBytes = 1 << 20 }), p.Collection(), nil)
	if again, err := small.Chunks(t.Context(), names); err != nil || !slices.Equal(again, chunks) {
		t.Errorf("with messages of 1 MiB: %d chunks, error %v", len(again), err)
	}
	got, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 1}}, 60)
	if err != nil || len(got) != 60 || got[0].Text != all[0].Chunk.Text {
		t.Errorf("%d candidates, error %v", len(got), err)
	}
}

func TestAPIKey(t *testing.T) {
	s := faulty(t, &qdranttest.Options{APIKey: "right", ReadOnlyAPIKey: "reader"})
	connect := func(key string) *qdrant.Client {
		return s.client(func(o *qdrant.ClientOptions) { o.APIKey, o.AllowPlaintextKey = key, true })
	}
	right := connect("right")
	name := s.write(right, nil, record("a", 1, 0))
	if _, err := qdrant.NewProvider(t.Context(), connect("reader"), name, nil); err != nil {
		t.Errorf("the read-only key: %v", err)
	}
	_, err := qdrant.NewProvider(t.Context(), connect("secret-wrong"), name, nil)
	expect(t, err, mapmatched.KindUnauthenticated, s.address, "not accepted")
	if strings.Contains(err.Error(), "secret-wrong") {
		t.Errorf("error %q shows the key", err)
	}
	_, err = qdrant.NewProvider(t.Context(), s.client(nil), name, nil)
	expect(t, err, mapmatched.KindUnauthenticated, "no API key was sent", "api_key_env")
	w, err := qdrant.NewWriter(connect("reader"), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.WriteCorpus(t.Context(), identityOf(2), records(record("b", 0, 1)), nil)
	expect(t, err, mapmatched.KindUnauthenticated, s.address)
	if _, err := right.DeleteCollection(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// certificate makes a certificate of 127.0.0.1 and a file to trust it by.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"qdrant.test"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

func TestTLS(t *testing.T) {
	cert, file := certificate(t)
	s := faulty(t, &qdranttest.Options{APIKey: "right", TLS: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}})
	version := func(change func(*qdrant.ClientOptions)) error {
		_, err := s.client(func(o *qdrant.ClientOptions) {
			o.TLS, o.APIKey, o.Retries = true, "right", -1
			change(o)
		}).Collections(t.Context())
		return err
	}
	if err := version(func(o *qdrant.ClientOptions) { o.CAFile = file }); err != nil {
		t.Error(err)
	}
	if err := version(func(o *qdrant.ClientOptions) { o.CAFile, o.ServerName = file, "qdrant.test" }); err != nil {
		t.Error(err)
	}
	expect(t, version(func(o *qdrant.ClientOptions) { o.CAFile, o.ServerName = file, "other.test" }), mapmatched.KindUnavailable, "other.test")
	expect(t, version(func(*qdrant.ClientOptions) {}), mapmatched.KindUnavailable, "certificate")
	expect(t, version(func(o *qdrant.ClientOptions) { o.TLS, o.AllowPlaintextKey = false, true }), mapmatched.KindUnavailable, "without TLS")
}

// TestCloseWhileBusy closes client and provider from several sides while 50
// searches run.
func TestCloseWhileBusy(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	p := s.open(c, s.write(c, nil, record("a", 1, 0), record("b", 0, 1)), nil)
	var wg sync.WaitGroup
	started := make(chan struct{}, 50)
	for range 50 {
		wg.Go(func() {
			for {
				got, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 2)
				select {
				case started <- struct{}{}:
				default:
				}
				if errors.Is(err, mapmatched.ErrClosed) {
					return
				}
				if err != nil || len(got) != 2 {
					t.Errorf("%v, error %v beside Close, want the answer or ErrClosed", got, err)
					return
				}
			}
		})
	}
	for range 50 {
		<-started
	}
	for i := range 4 {
		wg.Go(func() {
			if i%2 == 0 {
				_ = p.Close()
			}
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(p.Close(), c.Close()); err != nil {
		t.Errorf("close again: %v", err)
	}
	if err := p.Health(t.Context()); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("health after Close: %v", err)
	}
	if _, err := c.Version(t.Context()); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("version after Close: %v", err)
	}
}

// TestSharedClient: closing a provider leaves the client of others open.
func TestSharedClient(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0))
	first, second := s.open(c, name, nil), s.open(c, name, nil)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 1); err != nil {
		t.Errorf("a provider over the same client: %v", err)
	}
}
