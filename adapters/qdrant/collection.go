package qdrant

import (
	"context"
	"fmt"
	"strings"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
)

// vectorKind is how a vector is compared.
type vectorKind string

const (
	kindDense  vectorKind = "dense"
	kindSparse vectorKind = "sparse"
	kindMulti  vectorKind = "multi-vector"
)

// vectorInfo describes a vector of a collection.
type vectorInfo struct {
	name     string // "" for the unnamed one
	kind     vectorKind
	size     int // 0 for a sparse one
	distance pb.Distance
}

// isDistance reports whether the server's score is a distance, of which less
// is better.
func (v vectorInfo) isDistance() bool {
	return v.distance == pb.Distance_Euclid || v.distance == pb.Distance_Manhattan
}

// String describes the vector in one phrase.
func (v vectorInfo) String() string {
	name := "unnamed"
	if v.name != "" {
		name = fmt.Sprintf("%q", v.name)
	}
	if v.kind == kindSparse {
		return name + " (sparse)"
	}
	return fmt.Sprintf("%s (%s, %d dimensions, %v)", name, v.kind, v.size, v.distance)
}

// collectionInfo is what a server says about a collection.
type collectionInfo struct {
	name        string
	where       string       // for messages
	vectors     []vectorInfo // dense and multi-vectors by name, then the sparse ones by name
	points      uint64
	identity    mapmatched.CorpusIdentity
	hasIdentity bool // a corpus writer made the collection
	status      pb.CollectionStatus
}

// collection asks for the description of a collection. When there is none the
// error lists those there are.
func (c *Client) collection(ctx context.Context, op, name string) (*collectionInfo, error) {
	if name == "" {
		return nil, invalid(op, "the name of the collection is missing: write %s://%s/COLLECTION", Scheme, c.address)
	}
	reply, err := c.collections().Get(ctx, &pb.GetCollectionInfoRequest{CollectionName: name})
	if status.Code(err) == codes.NotFound {
		return nil, c.noCollection(ctx, op, name, err)
	}
	if err != nil {
		return nil, c.failed(ctx, op, name, err)
	}
	info := &collectionInfo{
		name: name, where: fmt.Sprintf("collection %q on %s", name, c.address),
		points: reply.GetResult().GetPointsCount(), status: reply.GetResult().GetStatus(),
	}
	config := reply.GetResult().GetConfig()
	info.readVectors(config.GetParams())
	info.identity, info.hasIdentity, err = identityFrom(config.GetMetadata())
	if err != nil {
		return nil, typed(op, mapmatched.KindCorrupt, fmt.Errorf("%s: %w", info.where, err))
	}
	return info, nil
}

// noCollection says which collections there are instead.
func (c *Client) noCollection(ctx context.Context, op, name string, cause error) error {
	there := "the server has none"
	names, err := c.Collections(ctx)
	switch {
	case err != nil && mapmatched.KindOf(err) == mapmatched.KindDeadline:
		return err
	case err != nil:
		there = "which ones there are it does not say"
	case len(names) > 0:
		const shown = 20
		there = "there are " + strings.Join(names[:min(shown, len(names))], ", ")
		if len(names) > shown {
			there += fmt.Sprintf(" and %d more", len(names)-shown)
		}
	}
	return typed(op, mapmatched.KindNotFound, &remoteError{
		fmt.Sprintf("collection %q is not on %s: %s; mmplug index --to %s://%s/%s makes it", name, c.address, there, Scheme, c.address, name), cause,
	})
}

func (i *collectionInfo) readVectors(params *pb.CollectionParams) {
	add := func(name string, p *pb.VectorParams) {
		v := vectorInfo{name: name, kind: kindDense, size: int(p.GetSize()), distance: p.GetDistance()}
		if p.GetMultivectorConfig() != nil {
			v.kind = kindMulti
		}
		i.vectors = append(i.vectors, v)
	}
	if p := params.GetVectorsConfig().GetParams(); p != nil {
		add("", p)
	}
	named := params.GetVectorsConfig().GetParamsMap().GetMap()
	for _, name := range sortedKeys(named) {
		add(name, named[name])
	}
	for _, name := range sortedKeys(params.GetSparseVectorsConfig().GetMap()) {
		i.vectors = append(i.vectors, vectorInfo{name: name, kind: kindSparse, distance: pb.Distance_Dot})
	}
}

// vector finds a vector by name; "" is the unnamed one.
func (i *collectionInfo) vector(op, name string) (vectorInfo, error) {
	list := make([]string, len(i.vectors))
	unnamed := false
	for n, v := range i.vectors {
		if v.name == name {
			return v, nil
		}
		unnamed = unnamed || v.name == ""
		list[n] = v.String()
	}
	there := strings.Join(list, ", ")
	if there == "" {
		there = "none"
	}
	switch {
	case name == "" && len(i.vectors) > 0:
		return vectorInfo{}, invalid(op, "%s has no unnamed vector: say which one with vector=NAME; it has %s", i.where, there)
	case unnamed:
		return vectorInfo{}, invalid(op, "%s has no vector %q: its dense vector has no name, so leave the name out; it has %s", i.where, name, there)
	default:
		return vectorInfo{}, invalid(op, "%s has no vector %q; it has %s", i.where, name, there)
	}
}

// metadataKey is where the metadata of a collection says what a corpus writer
// made it of.
const metadataKey = "mmplug"

// identityMetadata is the metadata of a collection with this identity.
func identityMetadata(id mapmatched.CorpusIdentity) map[string]*pb.Value {
	return map[string]*pb.Value{metadataKey: object(map[string]*pb.Value{
		"format":           integer(metadataFormat),
		"provider":         text(id.Provider),
		"model":            text(id.Model),
		"revision":         text(id.Revision),
		"dimension":        integer(int64(id.Dimension)),
		"normalization":    text(id.Normalization),
		"chunk_policy":     text(id.ChunkPolicy),
		"maximum_distance": double(id.MaximumDistance),
	})}
}

// metadataFormat is the version of the layout of metadata and payload.
const metadataFormat = 1

// identityFrom reads the identity from the metadata of a collection, false
// when it has none.
func identityFrom(metadata map[string]*pb.Value) (id mapmatched.CorpusIdentity, ok bool, err error) {
	value, there := metadata[metadataKey]
	if !there {
		return id, false, nil
	}
	fields := value.GetStructValue().GetFields()
	if format, _ := payloadInt(fields, "format"); format != metadataFormat {
		return id, false, fmt.Errorf("its metadata %q is of format %d and this version reads %d: use the version that wrote it, or write the collection again", metadataKey, format, metadataFormat)
	}
	id.Provider, _ = payloadText(fields, "provider")
	id.Model, _ = payloadText(fields, "model")
	id.Revision, _ = payloadText(fields, "revision")
	id.Dimension, _ = payloadInt(fields, "dimension")
	id.Normalization, _ = payloadText(fields, "normalization")
	id.ChunkPolicy, _ = payloadText(fields, "chunk_policy")
	switch v := goValue(fields["maximum_distance"]).(type) {
	case float64:
		id.MaximumDistance = v
	case int64: // a server that keeps metadata as JSON may write 10 for 10.0
		id.MaximumDistance = float64(v)
	}
	return id, true, nil
}
