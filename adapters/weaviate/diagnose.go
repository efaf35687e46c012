package weaviate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Diagnose implements mapmatched.Diagnoser: the server over both interfaces,
// the key, the class, its identity, and a search for a vector that is stored.
func (s *searcher) Diagnose(ctx context.Context) []mapmatched.Finding {
	var findings []mapmatched.Finding
	add := func(check string, status mapmatched.Status, detail, hint string) {
		findings = append(findings, mapmatched.Finding{Check: check, Status: status, Detail: detail, Hint: hint})
	}
	if err := s.Health(ctx); err != nil {
		add("server", mapmatched.StatusFailed, err.Error(), "start the server, or correct the address")
		for _, check := range []string{"class", "identity", "sample query"} {
			add(check, mapmatched.StatusSkipped, "the server does not answer", "")
		}
		return findings
	}
	add("server", mapmatched.StatusOK, fmt.Sprintf("Weaviate %s at %s is ready", s.server.version, s.server.address), "")
	if s.server.grpc == nil {
		add("grpc", mapmatched.StatusWarning, "searches go by GraphQL", "name the gRPC port (grpc=50051): searches are faster by it")
	} else {
		add("grpc", mapmatched.StatusOK, "gRPC at "+s.server.grpcConn.Target(), "")
	}
	if s.opts.APIKey+s.opts.ClientSecret != "" && !s.opts.TLS {
		add("encryption", mapmatched.StatusWarning, "a secret is sent without TLS", "set tls=true")
	}
	c, err := s.server.describe(ctx, s.class.name)
	if err != nil {
		add("class", mapmatched.StatusFailed, err.Error(), "write the class, or name another")
		add("identity", mapmatched.StatusSkipped, "there is no class", "")
		add("sample query", mapmatched.StatusSkipped, "there is no class", "")
		return findings
	}
	add("class", mapmatched.StatusOK, c.summary(), "")
	if c.identity == (mapmatched.CorpusIdentity{}) {
		add("identity", mapmatched.StatusWarning, "class "+c.name+" does not say what its vectors were made by", "make sure that queries use the same model")
	} else {
		add("identity", mapmatched.StatusOK, fmt.Sprintf("%s %s, %d dimensions", c.identity.Provider, c.identity.Model, c.identity.Dimension), "")
	}
	status, detail, hint := s.sample(ctx)
	add("sample query", status, detail, hint)
	return findings
}

// summary describes a class in a line.
func (c *class) summary() string {
	var vectors []string
	for _, name := range c.vectorNames() {
		label := "one without a name"
		if name != "" {
			label = name
		}
		vectors = append(vectors, fmt.Sprintf("%s (%s, %s)", label, c.vectors[name], c.indexes[name]))
	}
	if len(vectors) == 0 {
		vectors = []string{"none"}
	}
	return fmt.Sprintf("class %s with %d properties; vectors: %s", c.name, len(c.properties), strings.Join(vectors, ", "))
}

// sample takes an object and searches for it.
func (s *searcher) sample(ctx context.Context) (status mapmatched.Status, detail, hint string) {
	r := &search{class: s.class, tenant: s.tenant, properties: s.properties, where: s.opts.Where, limit: 1}
	if _, ok := s.class.vectors[s.target]; ok {
		r.vector = &s.target
	}
	hits, err := s.server.find(ctx, r)
	switch {
	case err != nil:
		return mapmatched.StatusFailed, err.Error(), ""
	case len(hits) == 0:
		return mapmatched.StatusWarning, fmt.Sprintf("no object of class %s is there to search for", s.class.name), "write the corpus, or correct tenant and filter"
	case s.chunkID(&hits[0]) == "":
		return mapmatched.StatusFailed, fmt.Sprintf("object %s has no chunk ID in property %s", hits[0].uuid, s.id), "name the property with the ID, or id=id for the UUID"
	}
	return s.sampleOf(ctx, &hits[0])
}

// sampleOf searches for what an object holds.
func (s *searcher) sampleOf(ctx context.Context, h *hit) (status mapmatched.Status, detail, hint string) {
	q := mapmatched.Query{Text: s.textOf(h), Vector: h.vector}
	if q.Vector == nil && s.opts.Mode != ModeBM25 {
		return mapmatched.StatusWarning, fmt.Sprintf("object %s has no vector", h.uuid), "write the vectors of the corpus"
	}
	found, err := s.Candidates(ctx, q, sampleLimit)
	if err != nil {
		return mapmatched.StatusFailed, err.Error(), ""
	}
	if len(found) == 0 {
		return mapmatched.StatusWarning, fmt.Sprintf("a search for object %s finds nothing", h.uuid), "thresholds or a filter may be too narrow"
	}
	id := s.chunkID(h)
	detail = fmt.Sprintf("a search for chunk %q finds %q with score %.6g", id, found[0].ChunkID, found[0].Score)
	at := slices.IndexFunc(found, func(c mapmatched.Candidate) bool { return c.ChunkID == id })
	if at >= 0 && found[0].Score-found[at].Score <= sampleTolerance*max(1, math.Abs(found[0].Score)) {
		return mapmatched.StatusOK, detail, ""
	}
	switch {
	case s.opts.Mode != ModeVector:
		hint = "a server without Weaviate's fix 11780 of June 2026, such as 1.35.2, ranks words wrongly until they are on disk: wait a minute or restart it, or use a newer one"
	case s.metric == metricCosine || s.metric == metricSquared || s.metric == metricManhattan || s.metric == metricHamming:
		hint = "the index of vectors misses it: write the corpus again, or raise ef of the class"
	default: // a longer vector, or a combination, may come first
		return mapmatched.StatusOK, detail, ""
	}
	return mapmatched.StatusWarning, detail + " and not itself first", hint
}

const (
	sampleLimit     = 10   // candidates among which chunks of the same score are looked for
	sampleTolerance = 1e-5 // relative, of float32 scores that count as the same
)
