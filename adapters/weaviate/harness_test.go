package weaviate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// One server serves all tests that need no settings of their own.
var shared struct {
	sync.Once
	server *weaviatetest.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedServer is the server that the tests share; the test is skipped where
// there is none.
func sharedServer(t testing.TB) *weaviatetest.Server {
	t.Helper()
	shared.Do(func() { shared.server, shared.err = weaviatetest.Run(context.Background(), weaviatetest.Options{}) })
	if errors.Is(shared.err, weaviatetest.ErrUnavailable) {
		t.Skipf("SKIP: %v", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// transports are the two ways to reach a server.
var transports = []string{"grpc", "graphql"}

// connectionTo is how a server is reached.
func connectionTo(s *weaviatetest.Server, transport string) Connection {
	if transport == "grpc" {
		return Connection{GRPC: strconv.Itoa(s.GRPCPort)}
	}
	return Connection{}
}

var classNumber atomic.Int64

// newClass is a name that no test has used; the class is deleted when the test
// ends.
func newClass(t testing.TB, s *weaviatetest.Server) string {
	t.Helper()
	name := fmt.Sprintf("MmplugTest%dx%d", os.Getpid(), classNumber.Add(1))
	t.Cleanup(func() { deleteClass(t, s, name) })
	return name
}

func deleteClass(t testing.TB, s *weaviatetest.Server, name string) {
	t.Helper()
	if s.Owned() && s.Pid() == 0 {
		return // the server is gone with the class
	}
	c, err := connect(context.Background(), s.Host, &Connection{})
	if err != nil {
		t.Error(err)
		return
	}
	if err := c.schema.ClassDeleter().WithClassName(name).Do(context.Background()); err != nil {
		t.Error(err)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// seq is a list as WriteCorpus takes it.
func seq(records []mapmatched.Record) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// write writes records to a class and returns the report.
func write(t testing.TB, s *weaviatetest.Server, class, transport string, identity mapmatched.CorpusIdentity, records []mapmatched.Record) mapmatched.WriteReport {
	t.Helper()
	report, err := tryWrite(t, s, class, transport, "", identity, records)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func tryWrite(t testing.TB, s *weaviatetest.Server, class, transport, tenant string, identity mapmatched.CorpusIdentity, records []mapmatched.Record) (mapmatched.WriteReport, error) {
	t.Helper()
	w, err := OpenWriter(t.Context(), s.Host, class, &WriterOptions{Connection: connectionTo(s, transport), Tenant: tenant})
	if err != nil {
		return mapmatched.WriteReport{}, err
	}
	report, err := w.WriteCorpus(t.Context(), identity, seq(records), nil)
	return report, errors.Join(err, w.Close())
}

// suiteRecords is the corpus of the conformance suite.
func suiteRecords() (mapmatched.CorpusIdentity, []mapmatched.Record) {
	c := adaptertest.NewCorpus()
	records := make([]mapmatched.Record, len(c.Chunks))
	for i, chunk := range c.Chunks {
		records[i] = mapmatched.Record{Chunk: chunk, Vector: c.Vectors[i]}
	}
	return mapmatched.CorpusIdentity{Provider: "test", Model: "words", Dimension: len(c.Vectors[0])}, records
}

// suiteClass writes the corpus of the conformance suite.
func suiteClass(t testing.TB, s *weaviatetest.Server) string {
	t.Helper()
	class := newClass(t, s)
	identity, records := suiteRecords()
	write(t, s, class, "grpc", identity, records)
	return class
}

// open opens a provider that is closed when the test ends.
func open(t testing.TB, s *weaviatetest.Server, class, transport string, o Options) *Provider {
	t.Helper()
	o.Connection = connectionTo(s, transport)
	p, err := Open(t.Context(), s.Host, class, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, p) })
	return p
}

func openHybrid(t testing.TB, s *weaviatetest.Server, class, transport string, o Options) *HybridProvider {
	t.Helper()
	o.Connection = connectionTo(s, transport)
	p, err := OpenHybrid(t.Context(), s.Host, class, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, p) })
	return p
}

func closing(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// relay forwards connections to a server until it is told to go silent: then it
// takes bytes and passes none on.
type relay struct {
	listener net.Listener
	to       string
	silent   chan struct{}
	once     sync.Once
	mu       sync.Mutex
	open     []net.Conn
	wg       sync.WaitGroup
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to, silent: make(chan struct{})}
	r.wg.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *relay) port() string { return strconv.Itoa(r.listener.Addr().(*net.TCPAddr).Port) }

func (r *relay) goSilent() { r.once.Do(func() { close(r.silent) }) }

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		r.mu.Lock()
		r.open = append(r.open, in, out)
		r.mu.Unlock()
		r.wg.Go(func() { r.copy(out, in) })
		r.wg.Go(func() { r.copy(in, out) })
	}
}

func (r *relay) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			_ = to.Close()
			return
		}
		select {
		case <-r.silent:
			continue
		default:
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			_ = from.Close()
			return
		}
	}
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// relayed is a server behind two relays.
func relayed(t testing.TB, s *weaviatetest.Server) (address, grpcPort string, goSilent func()) {
	t.Helper()
	host, _, err := net.SplitHostPort(s.Host)
	if err != nil {
		t.Fatal(err)
	}
	web, rpc := newRelay(t, s.Host), newRelay(t, net.JoinHostPort(host, strconv.Itoa(s.GRPCPort)))
	return "127.0.0.1:" + web.port(), rpc.port(), func() { web.goSilent(); rpc.goSilent() }
}

// wantError expects an error of a kind that contains all parts, on one line.
func wantError(t testing.TB, err error, kind mapmatched.Kind, parts ...string) {
	t.Helper()
	var typed *mapmatched.Error
	if !errors.As(err, &typed) {
		t.Errorf("error %v (%T), want a *mapmatched.Error", err, err)
		return
	}
	if typed.Kind != kind || typed.Adapter != adapterName {
		t.Errorf("error %q is of kind %q from %q, want %q from %q", err, typed.Kind, typed.Adapter, kind, adapterName)
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

var inf = float32(math.Inf(1))
