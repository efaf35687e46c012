package qdrant

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/url"
	"slices"
	"strings"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Distance is how the vectors of a collection are compared.
type Distance string

// The distances of the server.
const (
	DistanceCosine    Distance = "cosine"
	DistanceDot       Distance = "dot"
	DistanceEuclid    Distance = "euclid"
	DistanceManhattan Distance = "manhattan"
)

var distances = map[Distance]pb.Distance{
	DistanceCosine: pb.Distance_Cosine, DistanceDot: pb.Distance_Dot,
	DistanceEuclid: pb.Distance_Euclid, DistanceManhattan: pb.Distance_Manhattan,
}

// The defaults of a writer.
const (
	DefaultBatchPoints = 256
	DefaultBatchBytes  = 4 << 20
)

// WriterOptions are the settings of a [Writer]. The zero value, and nil, are
// the defaults.
type WriterOptions struct {
	// Vector is the name of the dense vector, "" for the unnamed one.
	Vector string
	// Distance compares them. "" means DistanceCosine.
	Distance Distance
	// Sparse is the name of the sparse vector, "" for none.
	Sparse string
	// SparseEncoder makes the sparse vector of a chunk's text. nil means
	// [TermDocument].
	SparseEncoder SparseEncoder
	// Keys say where in the payload the parts of a chunk go. NoKey leaves a part
	// out, but not the chunk ID.
	Keys PayloadKeys
	// BatchPoints bounds how many points are sent at once. 0 means
	// DefaultBatchPoints.
	BatchPoints int
	// BatchBytes bounds how large what is sent at once is, one point apart. 0
	// means DefaultBatchBytes; it is below the limit of servers and, halved with
	// every batch refused for its size, of proxies.
	BatchBytes int
	// NoWait does not wait until what was sent can be found. Searches right after
	// may then miss it.
	NoWait bool
	// Adopt gives the identity of the corpus to a collection that is there and
	// does not have one. Only say so when its vectors were made by that model.
	Adopt bool
}

// Validate reports every value that is out of range.
func (o *WriterOptions) Validate() error {
	if o == nil {
		return nil
	}
	errs := []error{o.Keys.Validate()}
	fault := func(format string, args ...any) { errs = append(errs, invalidConfig(format, args...)) }
	if _, known := distances[o.Distance]; !known && o.Distance != "" {
		fault("Distance is %q, want %q, %q, %q or %q", o.Distance, DistanceCosine, DistanceDot, DistanceEuclid, DistanceManhattan)
	}
	if o.Sparse != "" && o.Sparse == o.Vector {
		fault("Vector and Sparse are both %q", o.Sparse)
	}
	if o.Sparse == "" && o.SparseEncoder != nil {
		fault("SparseEncoder has no effect without Sparse, the name of the vector")
	}
	for _, f := range o.Keys.fields() {
		if *f.value == digestKey {
			fault("Keys.%s is %q, where the digest of what was written is kept: choose another key", f.name, digestKey)
		}
	}
	if o.Keys.ChunkID == NoKey {
		fault("Keys.ChunkID is NoKey, but points are called by UUIDs and the chunk ID has to be kept")
	}
	if o.BatchPoints < 0 || o.BatchBytes < 0 {
		fault("BatchPoints is %d and BatchBytes %d, want positive numbers or 0 for the defaults", o.BatchPoints, o.BatchBytes)
	}
	return errors.Join(errs...)
}

// Writer writes corpora to a collection. It is safe for concurrent use, also by
// several processes: points are called by their chunks, so the last one to
// write a chunk wins.
type Writer struct {
	store *store
	opts  WriterOptions
}

var _ mapmatched.CorpusWriter = (*Writer)(nil)

// NewWriter makes a writer to a collection of the server, which need not be
// there yet. The client stays the caller's.
func NewWriter(c *Client, collection string, opts *WriterOptions) (*Writer, error) {
	const op = "open"
	if opts == nil {
		opts = &WriterOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, typed(op, mapmatched.KindInvalid, err)
	}
	if collection == "" {
		return nil, invalid(op, "the name of the collection is missing: write %s://%s/COLLECTION", Scheme, c.address)
	}
	w := &Writer{&store{client: c, name: collection, keys: opts.Keys.withDefaults()}, *opts}
	setDefault(&w.opts.Distance, DistanceCosine)
	setDefault(&w.opts.BatchPoints, DefaultBatchPoints)
	setDefault(&w.opts.BatchBytes, DefaultBatchBytes)
	if w.opts.Sparse != "" && w.opts.SparseEncoder == nil {
		w.opts.SparseEncoder = TermDocument
	}
	w.opts.BatchBytes = min(w.opts.BatchBytes, c.opts.MaxMessageBytes)
	return w, nil
}

// Close ends the use of the writer, see [Provider.Close].
func (w *Writer) Close() error { return w.store.close() }

// WriteCorpus implements mapmatched.CorpusWriter. The collection gets the
// identity as metadata, so the server is of version 1.16 or newer. A collection
// that is there must have the same identity and the same vectors, no more and no
// fewer: writing a point replaces all of its vectors. One without an identity is
// refused unless WriterOptions.Adopt is set.
//
// Each point has a digest of everything that was written of its chunk. A record
// with the digest that is there is kept as it is. Chunks that are in the
// collection and not among the records stay there. Edges are written as they
// are given: an undirected one belongs to the records of both of its chunks.
func (w *Writer) WriteCorpus(ctx context.Context, identity mapmatched.CorpusIdentity, records iter.Seq2[mapmatched.Record, error], progress func(done int)) (mapmatched.WriteReport, error) {
	const op = "write corpus"
	var report mapmatched.WriteReport
	if err := w.store.ready(ctx, op); err != nil {
		return report, err
	}
	if identity.Dimension == 0 && w.opts.Sparse == "" {
		return report, invalid(op, "the corpus has no vectors, so nothing could be found in the collection: embed it, or name a sparse vector (sparse=NAME)")
	}
	var err error
	if report.Created, err = w.prepare(ctx, op, identity); err != nil {
		return report, err
	}
	b := &batch{w: w, op: op, report: &report}
	seen := map[[16]byte]struct{}{}
	n := 0
	for record, err := range records {
		if err != nil {
			return report, fmt.Errorf("record %d: %w", n, err)
		}
		point, err := w.point(ctx, identity, record)
		if err != nil {
			return report, w.recordError(ctx, op, n, record.Chunk.ID, err)
		}
		id, _ := parseUUID(point.GetId().GetUuid())
		if _, again := seen[id]; again {
			return report, w.recordError(ctx, op, n, record.Chunk.ID, errors.New("the chunk ID was given before; IDs are unique in a corpus"))
		}
		seen[id] = struct{}{}
		n++
		if size := proto.Size(point); len(b.points) == w.opts.BatchPoints || len(b.points) > 0 && b.bytes+size > w.opts.BatchBytes {
			if err := b.send(ctx, progress); err != nil {
				return report, err
			}
		}
		b.add(point)
	}
	return report, b.send(ctx, progress)
}

func (w *Writer) recordError(ctx context.Context, op string, n int, id string, err error) error {
	if ctx.Err() != nil {
		return w.store.client.failed(ctx, op, w.store.name, ctx.Err())
	}
	return invalid(op, "record %d, chunk %q: %w", n, id, err)
}

// prepare makes the collection, or checks the one that is there.
func (w *Writer) prepare(ctx context.Context, op string, identity mapmatched.CorpusIdentity) (created bool, err error) {
	c, name := w.store.client, w.store.name
	reply, err := c.collections().CollectionExists(ctx, &pb.CollectionExistsRequest{CollectionName: name})
	if err != nil {
		return false, c.failed(ctx, op, name, err)
	}
	if !reply.GetResult().GetExists() {
		if created, err = w.create(ctx, op, identity); err != nil {
			return false, err
		}
	}
	info, err := c.collection(ctx, op, name)
	if err != nil {
		return false, err
	}
	w.store.info.Store(info)
	return created, w.check(ctx, op, info, identity)
}

// create makes the collection. It is not an error when another one was faster.
func (w *Writer) create(ctx context.Context, op string, identity mapmatched.CorpusIdentity) (created bool, err error) {
	c, name := w.store.client, w.store.name
	version, err := c.Version(ctx)
	if err != nil {
		return false, err
	}
	if major, minor, ok := parseVersion(version); ok && (major < 1 || major == 1 && minor < oldestMinor) {
		return false, invalid(op, "%s is Qdrant %s, which keeps no metadata of collections and so no identity of a corpus: use 1.%d or newer", c.address, version, oldestMinor)
	}
	request := &pb.CreateCollection{CollectionName: name, Metadata: identityMetadata(identity), VectorsConfig: &pb.VectorsConfig{}}
	dense := &pb.VectorParams{Size: uint64(identity.Dimension), Distance: distances[w.opts.Distance]}
	switch {
	case identity.Dimension == 0:
		request.VectorsConfig.Config = &pb.VectorsConfig_ParamsMap{ParamsMap: &pb.VectorParamsMap{}}
	case w.opts.Vector == "":
		request.VectorsConfig.Config = &pb.VectorsConfig_Params{Params: dense}
	default:
		request.VectorsConfig.Config = &pb.VectorsConfig_ParamsMap{ParamsMap: &pb.VectorParamsMap{Map: map[string]*pb.VectorParams{w.opts.Vector: dense}}}
	}
	if w.opts.Sparse != "" {
		request.SparseVectorsConfig = &pb.SparseVectorConfig{Map: map[string]*pb.SparseVectorParams{w.opts.Sparse: {Modifier: new(pb.Modifier_Idf)}}}
	}
	_, err = c.collections().Create(ctx, request)
	if status.Code(err) == codes.AlreadyExists || err != nil && strings.Contains(status.Convert(err).Message(), "already exists") {
		return false, nil
	}
	if err != nil {
		return false, c.failed(ctx, op, name, err)
	}
	return true, nil
}

// check compares a collection with what is to be written.
func (w *Writer) check(ctx context.Context, op string, info *collectionInfo, identity mapmatched.CorpusIdentity) error {
	var differences []string
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	if identity.Dimension > 0 {
		want := vectorInfo{name: w.opts.Vector, kind: kindDense, size: identity.Dimension, distance: distances[w.opts.Distance]}
		if got, ok := info.find(w.opts.Vector); !ok {
			differ("it %s", info.lacks(w.opts.Vector))
		} else if got != want {
			differ("its vector is %v, wanted %v", got, want)
		}
	}
	if w.opts.Sparse != "" {
		if got, ok := info.find(w.opts.Sparse); !ok {
			differ("it %s", info.lacks(w.opts.Sparse))
		} else if got.kind != kindSparse {
			differ("its vector is %v, wanted a sparse one", got)
		}
	}
	for _, v := range info.vectors {
		written := v.name == w.opts.Vector && identity.Dimension > 0 || v.name == w.opts.Sparse && w.opts.Sparse != ""
		if !written {
			differ("its vector %v would be lost, as this does not write it: %s", v, howToWrite(v))
		}
	}
	if info.hasIdentity {
		differences = append(differences, info.identity.Differences(identity)...)
	}
	if len(differences) > 0 {
		return typed(op, mapmatched.KindInvalid, fmt.Errorf("%w: %s: %s; write to another collection, or delete this one and write it again", mapmatched.ErrStaleIndex, info.where, strings.Join(differences, "; ")))
	}
	if info.hasIdentity {
		return nil
	}
	if !w.opts.Adopt {
		return typed(op, mapmatched.KindInvalid, fmt.Errorf("%w: %s does not say which model made its vectors: write to another collection, or set Adopt (adopt=true) if it was %q of %q",
			mapmatched.ErrStaleIndex, info.where, identity.Model, identity.Provider))
	}
	_, err := w.store.client.collections().Update(ctx, &pb.UpdateCollection{CollectionName: info.name, Metadata: identityMetadata(identity)})
	return w.store.client.failed(ctx, op, info.name, err)
}

// howToWrite says how a vector is written as well.
func howToWrite(v vectorInfo) string {
	switch {
	case v.kind == kindSparse:
		return "name it in Sparse (sparse=" + url.QueryEscape(v.name) + ")"
	case v.name == "":
		return "embed the corpus and leave Vector out"
	default:
		return "embed the corpus and name it in Vector (vector=" + url.QueryEscape(v.name) + ")"
	}
}

// point makes the point of a record.
func (w *Writer) point(ctx context.Context, identity mapmatched.CorpusIdentity, r mapmatched.Record) (*pb.PointStruct, error) {
	c := r.Chunk
	if c.ID == "" {
		return nil, mapmatched.ErrEmptyChunkID
	}
	if r.Vector != nil && len(r.Vector) != identity.Dimension {
		return nil, fmt.Errorf("its vector has %d dimensions and the identity of the corpus says %d", len(r.Vector), identity.Dimension)
	}
	if err := checkFinite(r.Vector); err != nil {
		return nil, fmt.Errorf("its vector: %w", err)
	}
	if w.opts.Distance == DistanceCosine && r.Vector != nil && allZero(r.Vector) {
		return nil, errors.New("its vector is zero, which has no cosine with others: leave it out, or choose another distance")
	}
	edges := make([]any, len(r.Edges))
	for i, e := range r.Edges {
		switch {
		case e.From != c.ID:
			return nil, fmt.Errorf("edge %d begins at %q", i, e.From)
		case e.To == "":
			return nil, fmt.Errorf("edge %d: %w", i, mapmatched.ErrEmptyChunkID)
		case !(e.Weight > 0) || math.IsInf(e.Weight, 1):
			return nil, fmt.Errorf("the edge to %q has weight %v, want a positive finite number", e.To, e.Weight)
		}
		edges[i] = map[string]any{"to": e.To, "weight": e.Weight, "type": string(e.Type)}
	}
	values := map[string]any{}
	for _, part := range []struct {
		key   string
		value any
	}{
		{w.store.keys.ChunkID, c.ID}, {w.store.keys.Text, c.Text}, {w.store.keys.Title, c.Title}, {w.store.keys.Section, c.Section},
		{w.store.keys.Document, c.Document}, {w.store.keys.Ordinal, c.Ordinal}, {w.store.keys.Start, c.Start}, {w.store.keys.End, c.End},
		{w.store.keys.Edges, edges},
	} {
		if part.key != "" && (part.key != w.store.keys.Edges || len(edges) > 0) {
			values[part.key] = part.value
		}
	}
	var sparse SparseVector
	if w.opts.Sparse != "" {
		var err error
		if sparse, err = w.opts.SparseEncoder(ctx, c.Text); err == nil {
			err = sparse.check()
		}
		if err != nil {
			return nil, fmt.Errorf("its sparse vector: %w", err)
		}
	}
	digest, err := w.digest(values, r.Vector, sparse)
	if err != nil {
		return nil, err
	}
	values[digestKey] = digest
	payload, err := payloadOf(values)
	if err != nil {
		return nil, err
	}
	return &pb.PointStruct{Id: pointID(c.ID), Payload: payload, Vectors: w.vectors(r.Vector, sparse)}, nil
}

// vectors are those of a point. One that is missing is left out.
func (w *Writer) vectors(dense []float32, sparse SparseVector) *pb.Vectors {
	one := &pb.Vector{Vector: &pb.Vector_Dense{Dense: &pb.DenseVector{Data: dense}}}
	if dense != nil && w.opts.Vector == "" && w.opts.Sparse == "" {
		return &pb.Vectors{VectorsOptions: &pb.Vectors_Vector{Vector: one}}
	}
	named := map[string]*pb.Vector{}
	if dense != nil {
		named[w.opts.Vector] = one
	}
	if len(sparse.Indices) > 0 {
		named[w.opts.Sparse] = &pb.Vector{Vector: &pb.Vector_Sparse{Sparse: sparse.proto()}}
	}
	return &pb.Vectors{VectorsOptions: &pb.Vectors_Vectors{Vectors: &pb.NamedVectors{Vectors: named}}}
}

// digest is the SHA-256 of everything that is written of a chunk.
func (w *Writer) digest(values map[string]any, dense []float32, sparse SparseVector) (string, error) {
	h := sha256.New()
	// The encoder writes the keys of objects in ascending order.
	err := json.NewEncoder(h).Encode([]any{metadataFormat, w.opts.Vector, w.opts.Sparse, values, len(dense), len(sparse.Indices)})
	if err != nil {
		return "", err
	}
	for _, numbers := range []any{dense, sparse.Indices, sparse.Values} {
		if err := binary.Write(h, binary.LittleEndian, numbers); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// batch gathers the points to be sent at once.
type batch struct {
	w      *Writer
	op     string
	report *mapmatched.WriteReport
	points []*pb.PointStruct
	bytes  int
}

func (b *batch) add(point *pb.PointStruct) {
	b.points = append(b.points, point)
	b.bytes += proto.Size(point)
}

// send writes the points that are not there yet.
func (b *batch) send(ctx context.Context, progress func(done int)) error {
	if len(b.points) == 0 {
		return nil
	}
	if err := b.w.store.ready(ctx, b.op); err != nil {
		return err
	}
	all := len(b.points)
	if !b.report.Created {
		if err := b.keep(ctx); err != nil {
			return err
		}
	}
	if err := b.upsert(ctx, b.points); err != nil {
		return err
	}
	b.report.Written += len(b.points)
	b.report.Kept += all - len(b.points)
	b.points, b.bytes = nil, 0
	if progress != nil {
		progress(b.report.Written + b.report.Kept)
	}
	return nil
}

// keep takes the points out that are there already with the same digest.
func (b *batch) keep(ctx context.Context) error {
	s := b.w.store
	ids := make([]*pb.PointId, len(b.points))
	for i, point := range b.points {
		ids[i] = point.GetId()
	}
	reply, err := s.client.points().Get(ctx, &pb.GetPoints{CollectionName: s.name, Ids: ids, WithPayload: include(digestKey), ReadConsistency: s.client.consistency()})
	if err != nil {
		return s.client.failed(ctx, b.op, s.name, err)
	}
	digests := make(map[string]string, len(ids))
	for _, point := range reply.GetResult() {
		digests[point.GetId().GetUuid()], _ = payloadText(point.GetPayload(), digestKey)
	}
	b.points = slices.DeleteFunc(b.points, func(point *pb.PointStruct) bool {
		digest, _ := payloadText(point.GetPayload(), digestKey)
		return digests[point.GetId().GetUuid()] == digest
	})
	return nil
}

// upsert sends points, in halves when they are too large for the server.
func (b *batch) upsert(ctx context.Context, points []*pb.PointStruct) error {
	if len(points) == 0 {
		return nil
	}
	s := b.w.store
	reply, err := s.client.points().Upsert(ctx, &pb.UpsertPoints{CollectionName: s.name, Wait: new(!b.w.opts.NoWait), Points: points})
	if refused := status.Convert(err); len(points) > 1 && (tooLarge(refused) || refused.Code() == codes.OutOfRange) {
		if err := b.upsert(ctx, points[:len(points)/2]); err != nil {
			return err
		}
		return b.upsert(ctx, points[len(points)/2:])
	}
	if err != nil {
		return s.client.failed(ctx, b.op, s.name, err)
	}
	switch state := reply.GetResult().GetStatus(); {
	case state == pb.UpdateStatus_Completed, state == pb.UpdateStatus_Acknowledged && b.w.opts.NoWait:
		return nil
	default:
		return typed(b.op, mapmatched.KindUnavailable, fmt.Errorf("collection %q on %s: %d points were sent and are in state %v: run the same again, which writes what is missing", s.name, s.client.address, len(points), state))
	}
}
