package qdrant_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// The server of the example runs in the process; any other is used in the same
// way.
func Example() {
	s, err := qdranttest.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	ctx := context.Background()
	client, err := qdrant.Connect(s.Addr(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	w, err := qdrant.NewWriter(client, "pages", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	corpus := []mapmatched.Record{
		{Chunk: mapmatched.Chunk{ID: "roads/tunnel", Document: "roads", Text: "A tunnel carries the road."}, Vector: []float32{1, 0}},
		{Chunk: mapmatched.Chunk{ID: "roads/bridge", Document: "roads", Text: "A bridge hangs the road."}, Vector: []float32{0, 1}},
	}
	report, err := w.WriteCorpus(ctx, mapmatched.CorpusIdentity{Model: "by hand", Dimension: 2}, func(yield func(mapmatched.Record, error) bool) {
		for _, r := range corpus {
			if !yield(r, nil) {
				return
			}
		}
	}, nil)
	fmt.Println(report, err)

	p, err := qdrant.NewProvider(ctx, client, "pages", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	candidates, err := p.Candidates(ctx, mapmatched.Query{Vector: []float32{0.6, 0.8}}, 5)
	for _, c := range candidates {
		fmt.Printf("%s %.1f %s\n", c.ChunkID, c.Score, c.Text)
	}
	fmt.Println(err)
	_, err = p.Candidates(ctx, mapmatched.Query{Vector: []float32{1}}, 5)
	fmt.Println(mapmatched.KindOf(err))
	// Output:
	// {true 2 0} <nil>
	// roads/bridge 0.8 A bridge hangs the road.
	// roads/tunnel 0.6 A tunnel carries the road.
	// <nil>
	// invalid
}

func ExampleParseFilter() {
	f, err := qdrant.ParseFilter([]byte(`{"must": [{"key": "lang", "match": {"value": "en"}}]}`))
	fmt.Println(len(f.GetMust()), err)
	_, err = qdrant.ParseFilter([]byte(`{"must": [{"key": "year", "match": {"value": 42.0}}]}`))
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// qdrant: filter: filter.must[0].match.value: 42.0 is not a whole number from -9223372036854775808 to 9223372036854775807, and floats cannot be matched: write it without a point, or as {"range": {"gte": 42.0, "lte": 42.0}}
}

func ExamplePointUUID() {
	fmt.Println(qdrant.PointUUID("roads/tunnel"))
	// Output: 16871d6c-43c7-51d8-8a7b-488f496f2883
}

func ExampleTermQuery() {
	ctx := context.Background()
	q, _ := qdrant.TermQuery(ctx, "the toll")
	d, _ := qdrant.TermDocument(ctx, "Pay the toll in coins.")
	for _, index := range q.Indices {
		fmt.Print(slices.Contains(d.Indices, index), " ")
	}
	// Output: true true
}
