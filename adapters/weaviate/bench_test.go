package weaviate

import (
	"fmt"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// benchDimension is that of a small sentence embedding model.
const benchDimension = 384

// benchClass holds 2,000 chunks.
func benchClass(b *testing.B) string {
	b.Helper()
	const n = 2000
	s := sharedServer(b)
	class := newClass(b, s)
	records := make([]mapmatched.Record, n)
	for i := range records {
		records[i] = scaleRecord(i, n)
		records[i].Edges, records[i].Vector = nil, randomUnit(i, benchDimension)
	}
	write(b, s, class, "grpc", mapmatched.CorpusIdentity{Dimension: benchDimension}, records)
	return class
}

// BenchmarkCandidates asks for 10 and 50 candidates: through the adapter, which
// asks for one more to see equal scores, and by the bare call of the transport
// for as many, whose answer is not looked at.
func BenchmarkCandidates(b *testing.B) {
	class := benchClass(b)
	for _, transport := range transports {
		p := open(b, sharedServer(b), class, transport, Options{})
		queries := make([]mapmatched.Query, 100)
		for i := range queries {
			queries[i] = mapmatched.Query{Vector: randomUnit(13*i, benchDimension)}
		}
		for _, limit := range []int{10, 50} {
			benchmarkLimit(b, p, transport, limit, queries)
		}
	}
}

func benchmarkLimit(b *testing.B, p *Provider, transport string, limit int, queries []mapmatched.Query) {
	b.Run(fmt.Sprintf("%s/candidates=%d", transport, limit), func(b *testing.B) {
		i := 0
		for b.Loop() {
			found, err := p.Candidates(b.Context(), queries[i%len(queries)], limit)
			if err != nil || len(found) != limit {
				b.Fatal(len(found), err)
			}
			i++
		}
	})
	b.Run(fmt.Sprintf("%s/raw=%d", transport, limit), func(b *testing.B) {
		i := 0
		for b.Loop() {
			request, err := p.request(b.Context(), queries[i%len(queries)])
			if err != nil {
				b.Fatal(err)
			}
			request.limit = limit
			if transport == "grpc" {
				_, err = p.server.grpc.Search(b.Context(), requestGRPC(request))
			} else {
				_, err = p.server.graphql.Raw().WithQuery(queryGraphQL(request)).Do(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
}

// BenchmarkDistances asks for the distances of 20 × 20 chunks, whose edges come
// ring by ring.
func BenchmarkDistances(b *testing.B) {
	const n = 2000
	s := sharedServer(b)
	class := newClass(b, s)
	records := make([]mapmatched.Record, n)
	for i := range records {
		records[i] = scaleRecord(i, n)
	}
	write(b, s, class, "grpc", mapmatched.CorpusIdentity{Dimension: scaleDimension, MaximumDistance: 4}, records)
	from, to := make([]string, 20), make([]string, 20)
	for i := range from {
		from[i], to[i] = scaleID(37*i), scaleID(37*i+3)
	}
	dst := make([]float64, len(from)*len(to))
	for _, transport := range transports {
		g, err := OpenGraph(b.Context(), s.Host, class, &GraphOptions{Connection: connectionTo(s, transport)})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(transport+"/candidates=20", func(b *testing.B) {
			for b.Loop() {
				g.Forget() // what is fetched is kept otherwise
				if err := g.Distances(b.Context(), from, to, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
		closing(b, g)
	}
}
