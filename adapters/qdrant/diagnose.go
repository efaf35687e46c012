package qdrant

import (
	"context"
	"fmt"
	"strings"
	"time"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The oldest server with everything that this package uses.
const oldestMinor = 16

// Diagnose implements mapmatched.Diagnoser: reach, version, collection,
// vectors, identity, points and a sample query, with the time that it took.
func (p *Provider) Diagnose(ctx context.Context) []mapmatched.Finding {
	return p.diagnose(ctx, p.vector)
}

// Diagnose implements mapmatched.Diagnoser, see [Provider.Diagnose]. The sample
// query is by the vector of the first arm.
func (h *HybridProvider) Diagnose(ctx context.Context) []mapmatched.Finding {
	return h.diagnose(ctx, h.arms[0].vector)
}

func (s *store) diagnose(ctx context.Context, vector vectorInfo) []mapmatched.Finding {
	var findings []mapmatched.Finding
	add := func(check string, status mapmatched.Status, hint, format string, args ...any) {
		findings = append(findings, mapmatched.Finding{Check: check, Status: status, Detail: fmt.Sprintf(format, args...), Hint: hint})
	}
	skip := func(why string, checks ...string) {
		for _, check := range checks {
			add(check, mapmatched.StatusSkipped, "", "%s", why)
		}
	}
	const op = "diagnose"
	if err := s.ready(ctx, op); err != nil {
		add("reach", mapmatched.StatusFailed, "", "%v", err)
		skip("not asked", "version", "collection", "vectors", "identity", "points", "sample query")
		return findings
	}
	began := time.Now()
	version, err := s.client.Version(ctx)
	if err != nil {
		add("reach", mapmatched.StatusFailed, s.client.reachHint(), "%v", err)
		skip("the server does not answer", "version", "collection", "vectors", "identity", "points", "sample query")
		return findings
	}
	add("reach", mapmatched.StatusOK, "", "%s answers in %v", s.client.address, time.Since(began).Round(10*time.Microsecond))
	switch major, minor, ok := parseVersion(version); {
	case !ok:
		add("version", mapmatched.StatusWarning, "", "the server says it is of version %q", version)
	case major == 1 && minor >= oldestMinor || major > 1:
		add("version", mapmatched.StatusOK, "", "%s", version)
	default:
		add("version", mapmatched.StatusWarning, fmt.Sprintf("use 1.%d or newer: older ones keep no metadata of collections, so no identity", oldestMinor), "%s", version)
	}
	info, err := s.client.collection(ctx, op, s.name)
	if err != nil {
		add("collection", mapmatched.StatusFailed, "", "%v", err)
		skip("there is no collection", "vectors", "identity", "points", "sample query")
		return findings
	}
	switch state := strings.ToLower(info.status.String()); info.status {
	case pb.CollectionStatus_Red:
		add("collection", mapmatched.StatusFailed, "see the log of the server", "%s is in status %s", info.where, state)
	case pb.CollectionStatus_Yellow, pb.CollectionStatus_Grey:
		add("collection", mapmatched.StatusWarning, "searches may be slower until the server has finished", "%s is in status %s: it is being optimised or will be", info.where, state)
	default:
		add("collection", mapmatched.StatusOK, "", "%s is in status %s", info.where, state)
	}
	if now, err := info.vector(op, vector.name); err != nil {
		add("vectors", mapmatched.StatusFailed, "", "%v", err)
	} else {
		add("vectors", mapmatched.StatusOK, "", "%v", now)
	}
	switch id := info.identity; {
	case info.hasIdentity && id.Dimension == 0:
		add("identity", mapmatched.StatusOK, "", "written without dense vectors, so of no model; chunks by %q", id.ChunkPolicy)
	case info.hasIdentity:
		add("identity", mapmatched.StatusOK, "", "model %q revision %q of %q, %d dimensions, normalization %q, chunks by %q", id.Model, id.Revision, id.Provider, id.Dimension, id.Normalization, id.ChunkPolicy)
	default:
		add("identity", mapmatched.StatusWarning, "see for yourself that queries are embedded by the model that made its vectors", "it does not say which model made its vectors")
	}
	if info.points == 0 {
		add("points", mapmatched.StatusWarning, "write a corpus: mmplug index --to "+s.client.at(s.name), "it is empty")
	} else {
		add("points", mapmatched.StatusOK, "", "about %d", info.points)
	}
	findings = append(findings, s.sample(ctx, op, vector, info.points))
	return findings
}

// sample asks for the neighbours of any point.
func (s *store) sample(ctx context.Context, op string, vector vectorInfo, points uint64) mapmatched.Finding {
	const check = "sample query"
	failed := func(err error) mapmatched.Finding {
		return mapmatched.Finding{Check: check, Status: mapmatched.StatusFailed, Detail: s.client.failed(ctx, op, s.name, err).Error()}
	}
	if points == 0 {
		return mapmatched.Finding{Check: check, Status: mapmatched.StatusSkipped, Detail: "there is no point to ask about"}
	}
	request := &pb.QueryPoints{CollectionName: s.name, Limit: new(uint64(10)), WithPayload: include(s.keys.chunkKeys()...)}
	if vector.name != "" {
		request.Using = &vector.name
		request.Filter = &pb.Filter{Must: []*pb.Condition{{ConditionOneOf: &pb.Condition_HasVector{HasVector: &pb.HasVectorCondition{HasVector: vector.name}}}}}
	}
	any, err := s.client.points().Scroll(ctx, &pb.ScrollPoints{CollectionName: s.name, Limit: new(uint32(1)), Filter: request.Filter, WithPayload: include()})
	if err != nil {
		return failed(err)
	}
	if len(any.GetResult()) == 0 {
		return mapmatched.Finding{Check: check, Status: mapmatched.StatusWarning, Detail: fmt.Sprintf("no point has the vector %v", vector)}
	}
	request.Filter = nil
	request.Query = nearest(&pb.VectorInput{Variant: &pb.VectorInput_Id{Id: any.GetResult()[0].GetId()}})
	began := time.Now()
	reply, err := s.client.points().Query(ctx, request)
	if err != nil {
		return failed(err)
	}
	took := time.Since(began).Round(10 * time.Microsecond)
	for _, point := range reply.GetResult() {
		if _, ok := payloadText(point.GetPayload(), s.keys.Text); !ok && s.keys.Text != "" {
			return mapmatched.Finding{
				Check: check, Status: mapmatched.StatusWarning, Detail: fmt.Sprintf("%d points in %v, some without a text under key %q", len(reply.GetResult()), took, s.keys.Text),
				Hint: "say where the text is with text_key, or that there is none with text_key=" + NoKey,
			}
		}
	}
	return mapmatched.Finding{Check: check, Status: mapmatched.StatusOK, Detail: fmt.Sprintf("%d points in %v", len(reply.GetResult()), took)}
}

// parseVersion reads the first two numbers of a version.
func parseVersion(version string) (major, minor int, ok bool) {
	n, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return major, minor, err == nil && n == 2
}
