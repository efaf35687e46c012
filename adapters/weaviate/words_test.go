package weaviate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Where more chunks match than are asked for, version 1.35.2 leaves out the
// best while their words are only in memory, as the documentation of the
// package says, and Diagnose warns of it. Once the words are on disk they are
// ranked rightly, and it does not. Every word is in several chunks: that version
// has another fault with words that are in one.
func TestWordsThatWereJustWritten(t *testing.T) {
	const n, asked, limit = 500, 5, 5
	s := weaviatetest.StartOwned(t, weaviatetest.Options{})
	r := rand.New(rand.NewPCG(11, 780))
	common := rand.NewZipf(r, 1.2, 1, 100)
	records := make([]mapmatched.Record, n)
	for i := range records {
		words := make([]string, 20)
		for j := range words {
			words[j] = fmt.Sprintf("w%d", common.Uint64())
		}
		records[i] = mapmatched.Record{Chunk: mapmatched.Chunk{ID: fmt.Sprintf("chunk%03d", i), Text: strings.Join(words, " ")}}
	}
	write(t, s, "Words", "grpc", mapmatched.CorpusIdentity{}, records)
	for _, onDisk := range []bool{false, true} {
		if onDisk {
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, transport := range transports {
			p := open(t, s, "Words", transport, Options{Mode: ModeBM25})
			wrong := 0
			for _, record := range records[:asked] {
				search := func(limit int) []string {
					found, err := p.Candidates(t.Context(), mapmatched.Query{Text: record.Chunk.Text}, limit)
					if err != nil {
						t.Fatal(err)
					}
					return ids(found)
				}
				few, all := search(limit), search(n)
				if !slices.Equal(few, all[:limit]) {
					wrong++
				}
				status, detail, hint := p.sampleOf(t.Context(), &hit{uuid: UUID(record.Chunk.ID), properties: map[string]any{propertyChunkID: record.Chunk.ID, propertyText: record.Chunk.Text}})
				first := search(sampleLimit)[0] == record.Chunk.ID
				if warned := status == mapmatched.StatusWarning && strings.Contains(detail, "not itself first") && strings.Contains(hint, "restart"); warned == first {
					t.Errorf("%s: Diagnose says %q, %q, %q and the chunk is first: %v", transport, status, detail, hint, first)
				}
			}
			switch version := p.server.version; {
			case onDisk && wrong > 0:
				t.Errorf("%s: %d of %d queries have wrong best hits for words on disk", transport, wrong, asked)
			case !onDisk && version == "1.35.2" && wrong == 0:
				t.Errorf("%s: version %s ranks words in memory rightly: the documentation says that it does not", transport, version)
			case !onDisk:
				t.Logf("%s: version %s has wrong best hits for %d of %d queries for words in memory", transport, version, wrong, asked)
			}
		}
	}
}
