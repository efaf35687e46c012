package qdranttest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/integration/qdranttest"
)

// A test starts a server, talks to it with the public client and makes it fail.
func Example() {
	s, err := qdranttest.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	host, port := s.HostPort()
	client, err := qdrant.NewClient(&qdrant.Config{Host: host, Port: port, SkipCompatibilityCheck: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	ctx, wait := context.Background(), true
	err = client.CreateCollection(ctx, &qdrant.CreateCollection{
		CollectionName: "docs",
		VectorsConfig:  qdrant.NewVectorsConfig(&qdrant.VectorParams{Size: 2, Distance: qdrant.Distance_Cosine}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Upsert(ctx, &qdrant.UpsertPoints{CollectionName: "docs", Wait: &wait, Points: []*qdrant.PointStruct{
		{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectors(3, 4)},
		{Id: qdrant.NewIDNum(2), Vectors: qdrant.NewVectors(0, 2)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask := &qdrant.QueryPoints{CollectionName: "docs", Query: qdrant.NewQuery(0, 1)}
	points, err := client.Query(ctx, ask)
	for _, p := range points {
		fmt.Printf("%d %.1f\n", p.GetId().GetNum(), p.GetScore())
	}
	if err != nil {
		fmt.Println(err)
	}

	s.Inject(qdranttest.RateLimited(2 * time.Second))
	_, err = client.Query(ctx, ask)
	fmt.Println(err)
	fmt.Println(s.Calls()["Points/Query"], "queries")
	// Output:
	// 2 1.0
	// 1 0.8
	// Query() failed: docs: ResourceExhausted: Rate limiting exceeded: Read rate limit exceeded: Operation requires 1 tokens but only 0.0 were available. Retry after 2s, retry after 2 seconds
	// 2 queries
}
