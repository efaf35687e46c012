package qdranttest

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// start runs a server for one test.
func start(t testing.TB, opts *Options) *Server {
	t.Helper()
	s, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// dial connects one client; alter may change its configuration.
func dial(t testing.TB, s *Server, alter ...func(*qdrant.Config)) *qdrant.Client {
	t.Helper()
	host, port := s.HostPort()
	config := &qdrant.Config{Host: host, Port: port, PoolSize: 1, KeepAliveTime: -1, SkipCompatibilityCheck: true}
	for _, a := range alter {
		a(config)
	}
	client, err := qdrant.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// must fails the test on an error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// wantError checks code and text of an error of the server.
func wantError(t testing.TB, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("error %v, want %v with %q", err, code, text)
	}
}

// params is the configuration of a dense vector.
func params(size uint64, d qdrant.Distance) *qdrant.VectorParams {
	return &qdrant.VectorParams{Size: size, Distance: d}
}

// create makes a collection called c with one unnamed vector.
func create(t testing.TB, client *qdrant.Client, size uint64, d qdrant.Distance) {
	t.Helper()
	createWith(t, client, &qdrant.CreateCollection{VectorsConfig: qdrant.NewVectorsConfig(params(size, d))})
}

func createWith(t testing.TB, client *qdrant.Client, in *qdrant.CreateCollection) {
	t.Helper()
	in.CollectionName = "c"
	if err := client.CreateCollection(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// at is a point with an unnamed vector and a payload.
func at(id uint64, payload map[string]any, vector ...float32) *qdrant.PointStruct {
	return &qdrant.PointStruct{Id: qdrant.NewIDNum(id), Vectors: qdrant.NewVectors(vector...), Payload: qdrant.NewValueMap(payload)}
}

// upsert stores points in c and waits.
func upsert(t testing.TB, client *qdrant.Client, points ...*qdrant.PointStruct) {
	t.Helper()
	if err := tryUpsert(t.Context(), client, points...); err != nil {
		t.Fatal(err)
	}
}

func tryUpsert(ctx context.Context, client *qdrant.Client, points ...*qdrant.PointStruct) error {
	_, err := client.Upsert(ctx, &qdrant.UpsertPoints{CollectionName: "c", Wait: proto.Bool(true), Points: points})
	return err
}

// query runs a query on c.
func query(t testing.TB, client *qdrant.Client, in *qdrant.QueryPoints) []*qdrant.ScoredPoint {
	t.Helper()
	in.CollectionName = "c"
	return must(client.Query(t.Context(), in))(t)
}

// hit is a result as tests write it.
type hit struct {
	id    string
	score float64
}

func hits(points []*qdrant.ScoredPoint) []hit {
	list := make([]hit, len(points))
	for i, p := range points {
		list[i] = hit{idText(p.GetId()), float64(p.GetScore())}
	}
	return list
}

func idText(id *qdrant.PointId) string {
	parsed, err := parseID(id)
	if err != nil {
		return err.Error()
	}
	return parsed.String()
}

// wantHits compares IDs in order, and scores to 1e-6.
func wantHits(t testing.TB, points []*qdrant.ScoredPoint, want ...hit) {
	t.Helper()
	got := hits(points)
	if !slices.EqualFunc(got, want, func(a, b hit) bool { return a.id == b.id && math.Abs(a.score-b.score) <= 1e-6 }) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// scrollIDs lists what a filter finds in c.
func scrollIDs(t testing.TB, client *qdrant.Client, f *qdrant.Filter) []string {
	t.Helper()
	points := must(client.Scroll(t.Context(), &qdrant.ScrollPoints{CollectionName: "c", Filter: f, Limit: proto.Uint32(100)}))(t)
	ids := []string{}
	for _, p := range points {
		ids = append(ids, idText(p.GetId()))
	}
	return ids
}
