package qdrant

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
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

// at is the URL of a collection.
func (c *Client) at(collection string) string {
	return fmt.Sprintf("%s://%s/%s", Scheme, c.address, url.PathEscape(collection))
}

// quoted lists names, which may be of any characters.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
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
		there = "there are " + quoted(names[:min(shown, len(names))])
		if len(names) > shown {
			there += fmt.Sprintf(" and %d more", len(names)-shown)
		}
	}
	return typed(op, mapmatched.KindNotFound, &remoteError{
		fmt.Sprintf("collection %q is not on %s: %s; mmplug index --to %s makes it", name, c.address, there, c.at(name)), cause,
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
	if v, ok := i.find(name); ok {
		return v, nil
	}
	return vectorInfo{}, invalid(op, "%s %s", i.where, i.lacks(name))
}

func (i *collectionInfo) find(name string) (vectorInfo, bool) {
	at := slices.IndexFunc(i.vectors, func(v vectorInfo) bool { return v.name == name })
	if at < 0 {
		return vectorInfo{}, false
	}
	return i.vectors[at], true
}

// lacks says that there is no such vector, which there are, and how to name one.
func (i *collectionInfo) lacks(name string) string {
	list := make([]string, len(i.vectors))
	sparse := ""
	for n, v := range i.vectors {
		list[n] = v.String()
		if v.kind == kindSparse && sparse == "" {
			sparse = "sparse=" + url.QueryEscape(v.name)
		}
	}
	_, unnamed := i.find("")
	there := strings.Join(list, ", ")
	if there == "" {
		there = "none"
	}
	switch {
	case name == "" && sparse != "" && i.vectors[0].kind == kindSparse: // dense ones come first
		return fmt.Sprintf("has no dense vector: search the words with %s; it has %s", sparse, there)
	case name == "" && len(i.vectors) > 0:
		return fmt.Sprintf("has no unnamed vector: say which one with vector=NAME; it has %s", there)
	case unnamed:
		return fmt.Sprintf("has no vector %q: its dense vector has no name, so leave the name out; it has %s", name, there)
	default:
		return fmt.Sprintf("has no vector %q; it has %s", name, there)
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
