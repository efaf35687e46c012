package weaviate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

func TestProviderConformance(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, transport := range transports {
		for _, mode := range []Mode{ModeVector, ModeBM25, ModeHybrid} {
			t.Run(transport+"/"+string(mode), func(t *testing.T) {
				make := func(address string, connection Connection) (mapmatched.CandidateProvider, error) {
					o := &Options{Connection: connection, Mode: mode}
					if mode == ModeHybrid {
						return OpenHybrid(t.Context(), address, class, o)
					}
					return Open(t.Context(), address, class, o)
				}
				adaptertest.Provider(t, adaptertest.ProviderHarness{
					New: func(adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
						return make(s.Host, connectionTo(s, transport))
					},
					Stalled: func(adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
						address, grpcPort, goSilent := relayed(t, s)
						connection := Connection{}
						if transport == "grpc" {
							connection.GRPC = grpcPort
						}
						p, err := make(address, connection)
						goSilent()
						return p, err
					},
					AlwaysHits:    mode != ModeBM25,
					LimitReorders: mode == ModeHybrid,
				})
			})
		}
	}
}

// specRecords holds a graph as a store does: of an undirected one every edge at
// both ends.
func specRecords(spec adaptertest.GraphSpec) []mapmatched.Record {
	at := map[string]int{}
	records := make([]mapmatched.Record, len(spec.Nodes))
	for i, id := range spec.Nodes {
		at[id] = i
		records[i].Chunk = mapmatched.Chunk{ID: id, Text: "node " + id}
	}
	for _, e := range spec.Edges {
		r := &records[at[e.From]]
		r.Edges = append(r.Edges, e)
		if !spec.Directed && e.From != e.To {
			back := &records[at[e.To]]
			back.Edges = append(back.Edges, mapmatched.Edge{From: e.To, To: e.From, Weight: e.Weight, Type: e.Type})
		}
	}
	return records
}

func TestGraphConformance(t *testing.T) {
	s := sharedServer(t)
	classes := map[string]string{} // a graph is written once
	class := func(spec adaptertest.GraphSpec) (string, error) {
		key := fmt.Sprintf("%+v", spec)
		if name, ok := classes[key]; ok {
			return name, nil
		}
		name := newClass(t, s)
		_, err := tryWrite(t, s, name, "grpc", "", mapmatched.CorpusIdentity{MaximumDistance: spec.MaximumDistance}, specRecords(spec))
		classes[key] = name
		return name, err
	}
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			adaptertest.Graph(t, adaptertest.GraphHarness{
				New: func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
					name, err := class(spec)
					if err != nil {
						return nil, err
					}
					return OpenGraph(t.Context(), s.Host, name, &GraphOptions{Connection: connectionTo(s, transport), Directed: spec.Directed})
				},
				Stalled: func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
					name, err := class(spec)
					if err != nil {
						return nil, err
					}
					address, grpcPort, goSilent := relayed(t, s)
					connection := Connection{}
					if transport == "grpc" {
						connection.GRPC = grpcPort
					}
					g, err := OpenGraph(t.Context(), address, name, &GraphOptions{Connection: connection, Directed: spec.Directed})
					goSilent()
					return g, err
				},
			})
		})
	}
}

// Both transports find the same chunks in the same order with the same bits.
func TestTransportsAgree(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, mode := range []Mode{ModeVector, ModeBM25, ModeHybrid} {
		var providers []mapmatched.CandidateProvider
		for _, transport := range transports {
			if mode == ModeHybrid {
				providers = append(providers, openHybrid(t, s, class, transport, Options{}))
			} else {
				providers = append(providers, open(t, s, class, transport, Options{Mode: mode}))
			}
		}
		for _, q := range adaptertest.NewCorpus().Queries {
			byGRPC, err := providers[0].Candidates(t.Context(), q, 100)
			if err != nil {
				t.Fatal(err)
			}
			byGraphQL, err := providers[1].Candidates(t.Context(), q, 100)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(byGRPC, byGraphQL, func(a, b mapmatched.Candidate) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }) {
				t.Errorf("%s: query %.60q:\ngRPC    %+v\nGraphQL %+v", mode, q.Text, byGRPC, byGraphQL)
			}
		}
	}
}
