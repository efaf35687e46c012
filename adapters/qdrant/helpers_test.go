package qdrant_test

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// realServer is the variable with the URL of a Qdrant server to test against,
// qdrant://HOST:PORT?parameters with api_key_env, allow_plaintext_key and tls.
// Without it the tests use a server of their own.
const realServer = "MMPLUG_QDRANT_URL"

// target is the server under test.
type target struct {
	t       testing.TB
	address string
	opts    qdrant.ClientOptions
	fake    *qdranttest.Server // nil for a real one
}

// server returns the server under test.
func server(t testing.TB) *target {
	t.Helper()
	raw := os.Getenv(realServer)
	if raw == "" {
		return fake(t, nil)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != qdrant.Scheme {
		t.Fatalf("%s is no URL of the form qdrant://HOST:PORT", realServer)
	}
	q := u.Query()
	return &target{t: t, address: u.Host, opts: qdrant.ClientOptions{
		APIKey: os.Getenv(q.Get("api_key_env")), AllowPlaintextKey: q.Get("allow_plaintext_key") == "true", TLS: q.Get("tls") == "true",
	}}
}

// fake starts a server in the test. It is for what cannot be asked of a real
// one.
func fake(t testing.TB, opts *qdranttest.Options) *target {
	t.Helper()
	s, err := qdranttest.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &target{t: t, address: s.Addr(), fake: s}
}

// faulty is fake, but skips when the tests are to run against a real server.
func faulty(t testing.TB, opts *qdranttest.Options) *target {
	t.Helper()
	if os.Getenv(realServer) != "" {
		t.Skipf("SKIP: faults are not injected into a real server; unset %s to run this", realServer)
	}
	return fake(t, opts)
}

// client connects with the options of the server, changed by change.
func (s *target) client(change func(*qdrant.ClientOptions)) *qdrant.Client {
	s.t.Helper()
	opts := s.opts
	if change != nil {
		change(&opts)
	}
	c, err := qdrant.Connect(s.address, &opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

var collections atomic.Int64

// collection returns a new name. The collection is removed after the test.
func (s *target) collection() string {
	name := fmt.Sprintf("mmplug_test_%d_%d", os.Getpid(), collections.Add(1))
	s.t.Cleanup(func() {
		opts := s.opts
		opts.Retries = -1
		c, err := qdrant.Connect(s.address, &opts)
		if err != nil {
			return
		}
		_, _ = c.DeleteCollection(context.Background(), name) // a server in the test may be gone by now
		_ = c.Close()
	})
	return name
}

// raw is the client of Qdrant itself, to prepare what this package would not.
func (s *target) raw() *pb.Client {
	s.t.Helper()
	host, port := s.hostPort()
	c, err := pb.NewClient(&pb.Config{Host: host, Port: port, APIKey: s.opts.APIKey, UseTLS: s.opts.TLS, SkipCompatibilityCheck: true, KeepAliveTime: -1, PoolSize: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *target) hostPort() (host string, port int) {
	u := url.URL{Host: s.address}
	host = u.Hostname()
	_, _ = fmt.Sscan(u.Port(), &port)
	return host, port
}

var identity = mapmatched.CorpusIdentity{Provider: "test", Model: "words", Revision: "1", Normalization: "l2", ChunkPolicy: "para-512-noov", MaximumDistance: 10}

func identityOf(dimension int) mapmatched.CorpusIdentity {
	id := identity
	id.Dimension = dimension
	return id
}

// records yields records one after the other.
func records(all ...mapmatched.Record) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// corpusRecords are the records of the conformance suite.
func corpusRecords(c adaptertest.Corpus) []mapmatched.Record {
	out := make([]mapmatched.Record, len(c.Chunks))
	for i, chunk := range c.Chunks {
		out[i] = mapmatched.Record{Chunk: chunk, Vector: c.Vectors[i]}
		if i > 0 && c.Chunks[i-1].Document == chunk.Document {
			out[i].Edges = []mapmatched.Edge{{From: chunk.ID, To: c.Chunks[i-1].ID, Weight: 1, Type: mapmatched.EdgeNext}}
		}
	}
	return out
}

// write writes records to a new collection.
func (s *target) write(c *qdrant.Client, opts *qdrant.WriterOptions, all ...mapmatched.Record) string {
	s.t.Helper()
	name := s.collection()
	w, err := qdrant.NewWriter(c, name, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	dimension := 0
	if len(all) > 0 {
		dimension = len(all[0].Vector)
	}
	if _, err := w.WriteCorpus(s.t.Context(), identityOf(dimension), records(all...), nil); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// open opens a provider.
func (s *target) open(c *qdrant.Client, collection string, opts *qdrant.Options) *qdrant.Provider {
	s.t.Helper()
	p, err := qdrant.NewProvider(s.t.Context(), c, collection, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// record makes a record of a short text.
func record(id string, vector ...float32) mapmatched.Record {
	return mapmatched.Record{Chunk: mapmatched.Chunk{ID: id, Text: "text of " + id, End: len("text of " + id)}, Vector: vector}
}

// create makes a collection as this package would not.
func (s *target) create(vectors *pb.VectorsConfig, sparse *pb.SparseVectorConfig) string {
	s.t.Helper()
	name := s.collection()
	if err := s.raw().CreateCollection(s.t.Context(), &pb.CreateCollection{CollectionName: name, VectorsConfig: vectors, SparseVectorsConfig: sparse}); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// upsert writes points and waits.
func (s *target) upsert(collection string, points ...*pb.PointStruct) {
	s.t.Helper()
	_, err := s.raw().Upsert(s.t.Context(), &pb.UpsertPoints{CollectionName: collection, Wait: new(true), Points: points})
	if err != nil {
		s.t.Fatal(err)
	}
}

func ids(candidates []mapmatched.Candidate) []string {
	out := make([]string, len(candidates))
	for i, c := range candidates {
		out[i] = c.ChunkID
	}
	return out
}

// restart brings a killed server back and waits until it is reached again: on a
// busy machine to connect may take longer than the short retries of a test.
func (s *target) restart(h mapmatched.HealthChecker) {
	s.t.Helper()
	if err := s.fake.Restart(); err != nil {
		s.t.Fatal(err)
	}
	var err error
	for range 200 {
		if err = h.Health(s.t.Context()); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("after the restart: %v", err)
}
