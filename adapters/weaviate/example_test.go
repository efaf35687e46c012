package weaviate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weaviate/weaviate-go-client/v4/weaviate/filters"

	"github.com/mapmatched/mmplug/adapters/weaviate"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Words and vectors, fused by the server, in one section of the corpus.
func ExampleOpenHybrid() {
	ctx := context.Background()
	provider, err := weaviate.OpenHybrid(ctx, "localhost:8080", "Pages", &weaviate.Options{
		Connection: weaviate.Connection{GRPC: "50051"},
		Fusion:     weaviate.FusionRanked,
		Where:      filters.Where().WithPath([]string{"section"}).WithOperator(filters.Equal).WithValueText("Crossings").Build(),
	})
	if err != nil {
		log.Fatal(err)
	}
	found, err := provider.Candidates(ctx, mapmatched.Query{Text: "toll in coins", Vector: []float32{0.6, 0.8}}, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found), provider.Close())
}

// The UUID of a chunk follows from its ID alone.
func ExampleUUID() {
	fmt.Println(weaviate.UUID("roads/toll"))
	// Output: eb3b349e-0889-5f5a-a0ab-6c229bfcf6be
}

func ExampleParseWhere() {
	where, err := weaviate.ParseWhere(`{"path": ["ordinal"], "operator": "LessThan", "valueInt": 10}`)
	fmt.Println(where.Path, where.Operator, *where.ValueInt, err)
	_, err = weaviate.ParseWhere(`{"path": ["Doc){x}} {Get{Secret"], "operator": "Equal", "valueText": "x"}`)
	fmt.Println(err)
	// Output:
	// [ordinal] LessThan 10 <nil>
	// filter: "Doc){x}} {Get{Secret" is not the name of a property: a letter or _, then letters, digits and _, at most 231
}
