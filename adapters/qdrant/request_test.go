package qdrant

import (
	"slices"
	"testing"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

func testProvider(opts Options) *Provider {
	c := &Client{opts: ClientOptions{}.withDefaults()}
	p := &Provider{store: &store{client: c, name: "pages", keys: opts.Keys.withDefaults()}, opts: opts, vector: vectorInfo{kind: kindDense, size: 2, distance: pb.Distance_Cosine}}
	p.selector = include(append(p.keys.chunkKeys(), opts.Metadata...)...)
	return p
}

// TestRequestIsMinimal: what the caller did not set is not sent.
func TestRequestIsMinimal(t *testing.T) {
	input := &pb.VectorInput{Variant: &pb.VectorInput_Dense{Dense: &pb.DenseVector{Data: []float32{1, 0}}}}
	got := testProvider(Options{}).query(input, 7)
	want := &pb.QueryPoints{
		CollectionName: "pages", Query: nearest(input), Limit: new(uint64(7)),
		WithPayload: include("chunk_id", "text", "title", "section", "document", "ordinal", "start", "end"),
	}
	if !proto.Equal(got, want) {
		t.Errorf("request %v, want %v", got, want)
	}
	few := testProvider(Options{Metadata: []string{"lang"}, Keys: PayloadKeys{Title: NoKey, Section: NoKey, Document: NoKey, Ordinal: NoKey, Start: NoKey, End: NoKey}})
	if got := few.query(input, 7).GetWithPayload().GetInclude().GetFields(); !slices.Equal(got, []string{"chunk_id", "text", "lang"}) {
		t.Errorf("payload keys %q", got)
	}
	none := PayloadKeys{ChunkID: NoKey, Text: NoKey, Title: NoKey, Section: NoKey, Document: NoKey, Ordinal: NoKey, Start: NoKey, End: NoKey}
	if s := testProvider(Options{Keys: none}).query(input, 7).GetWithPayload(); s.GetInclude() != nil || s.GetEnable() {
		t.Errorf("payload %v, want none", s)
	}
}

func TestReadConsistency(t *testing.T) {
	for r, want := range map[ReadConsistency]*pb.ReadConsistency{
		"": nil, ReadAll: {Value: &pb.ReadConsistency_Type{Type: pb.ReadConsistencyType_All}}, ReadMajority: {Value: &pb.ReadConsistency_Type{Type: pb.ReadConsistencyType_Majority}},
		ReadQuorum: {Value: &pb.ReadConsistency_Type{Type: pb.ReadConsistencyType_Quorum}}, "2": {Value: &pb.ReadConsistency_Factor{Factor: 2}},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%q: %v", r, err)
		}
		if got := r.proto(); !proto.Equal(got, want) {
			t.Errorf("%q: %v, want %v", r, got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	for tried, want := range map[int]time.Duration{1: 100, 2: 200, 3: 400, 4: 800, 5: 1000, 100: 1000} {
		for range 100 {
			if got := backoffWait(100, 1000, tried); got < want/2 || got > want {
				t.Fatalf("after %d tries: %d, want %d to %d", tried, got, want/2, want)
			}
		}
	}
	for text, want := range map[string]time.Duration{"3": 3 * time.Second, "0": 0} {
		if got, asked := retryAfter(metadata.Pairs("retry-after", text)); !asked || got != want {
			t.Errorf("retry-after %q: %v, %v", text, got, asked)
		}
	}
	for _, text := range []string{"", "-1", "soon", "99999999999999999999"} {
		if got, asked := retryAfter(metadata.Pairs("retry-after", text)); asked {
			t.Errorf("retry-after %q: %v", text, got)
		}
	}
}

// TestPointIDs: a chunk ID that could be a point's own is looked for as both.
func TestPointIDs(t *testing.T) {
	const uuid = "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"
	for id, want := range map[string]string{
		"42": "42", "18446744073709551615": "18446744073709551615", uuid: uuid, "042": "", "+1": "", "18446744073709551616": "",
		"5C56C793-69F3-4FBF-87E6-C4BF54C28C26": "", "5c56c79369f34fbf87e6c4bf54c28c26": "", "5c56c793_69f3-4fbf-87e6-c4bf54c28c26": "", "": "",
	} {
		points := pointIDs([]string{id})
		if got := points[0].GetUuid(); got != PointUUID(id) {
			t.Errorf("%q: %s", id, got)
		}
		if want == "" && len(points) == 1 {
			continue
		}
		if len(points) != 2 || chunkID(points[1], nil, "chunk_id") != want {
			t.Errorf("%q: points %v, want also %q", id, points, want)
		}
	}
	if u, ok := parseUUID(PointUUID("x")); !ok || u[6]>>4 != 5 || u[8]>>6 != 2 {
		t.Errorf("%s is not a UUID of version 5", PointUUID("x"))
	}
}

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "Say \"Hi\"\n\\a": {"say", "hi", "a"}, "故乡": {"故乡"}, "小桥流水 x": {"小桥", "桥流", "流水", "x"}, "水": {"水"}, "v2是new": {"v2", "是", "new"}, "e\u0301a": {"e\u0301a"},
	} {
		if got := termsOf(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// f·2.2/(f + 1.2·(0.25 + 0.75·3/256)) for f = 2 and 1 of three terms
	v, err := TermDocument(t.Context(), "toll road toll")
	if err != nil || len(v.Values) != 2 || v.check() != nil {
		t.Fatalf("%v, error %v", v, err)
	}
	q, _ := TermQuery(t.Context(), "Road TOLL road")
	if !slices.Equal(q.Indices, v.Indices) || !slices.Equal(q.Values, []float32{1, 1}) {
		t.Errorf("query %v for document %v", q, v)
	}
	norm := 1.2 * (0.25 + 0.75*3/256)
	want := []float32{float32(2 * 2.2 / (2 + norm)), float32(1 * 2.2 / (1 + norm))}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(v.Values)); !slices.Equal(got, want) {
		t.Errorf("weights %v, want %v", got, want)
	}
}
