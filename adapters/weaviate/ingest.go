package weaviate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-openapi/strfmt"
	"github.com/google/uuid"
	"github.com/weaviate/weaviate/entities/models"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ingest is one call of WriteCorpus.
//
// The server refuses an object with a reference to one that is not there yet,
// so all objects are written first and the references after them. An object
// whose digest is right may lack references when an earlier call was
// interrupted, so those of kept objects are compared with the edges.
//
// A server that dies in the middle of a batch may keep an object that is in none
// of its indexes, or in some, so that no filter or no search shows it, and it
// skips an object that is written again as it is. So an object counts as written
// when it refers to itself by the property confirmed, which it does once the
// server has confirmed it: to write a reference touches neither words nor
// vectors. What does not, or is not shown, is deleted by its UUID before it is
// written. Only a class that this call made holds nothing.
type ingest struct {
	writer   *Writer
	store    *store
	identity mapmatched.CorpusIdentity
	progress func(done int)
	report   mapmatched.WriteReport

	batch []prepared
	bytes int // estimated size of the batch
	seen  map[uuid.UUID]bool
	ahead map[uuid.UUID]string // chunks that edges lead to, not yet seen when the edge was

	properties []string // reference properties, each once

	slots   chan struct{} // one value for each batch under way
	wg      sync.WaitGroup
	cancel  context.CancelCauseFunc // ends the batches under way
	mu      sync.Mutex              // guards report and missing while batches are under way
	missing []link
}

// maxExact is the highest integer that the server keeps exactly: it keeps float64.
const maxExact = 1 << 53

// batchesAtOnce is how many batches are under way at a time.
const batchesAtOnce = 4

// link is a reference to be written.
type link struct {
	from, to uuid.UUID
	property int // index in ingest.properties
}

// prepared is a record with what is written for it.
type prepared struct {
	record mapmatched.Record
	uuid   uuid.UUID
	edges  string // as JSON, "" for none
	digest string
	links  []link // the references of its edges
}

// storedEdge is an edge in the property edges.
type storedEdge struct {
	To     string  `json:"to"`
	Type   string  `json:"type"`
	Weight float64 `json:"weight"`
}

func newIngest(w *Writer, identity mapmatched.CorpusIdentity) *ingest {
	return &ingest{writer: w, identity: identity, seen: map[uuid.UUID]bool{}, ahead: map[uuid.UUID]string{}, slots: make(chan struct{}, batchesAtOnce)}
}

// add checks a record and writes the batch when it is full.
func (in *ingest) add(ctx context.Context, record mapmatched.Record) error {
	p, err := in.prepare(record)
	if err != nil {
		return err
	}
	if err := in.addLinks(ctx, &p); err != nil {
		return err
	}
	size := len(p.record.Chunk.Text) + 4*len(p.record.Vector) + len(p.edges) + 512
	if in.bytes+size > maxBatchBytes {
		if err := in.flush(ctx); err != nil {
			return err
		}
	}
	in.batch = append(in.batch, p)
	in.bytes += size
	if len(in.batch) >= in.writer.opts.BatchSize || in.bytes >= maxBatchBytes {
		return in.flush(ctx)
	}
	return nil
}

func (in *ingest) prepare(record mapmatched.Record) (prepared, error) {
	c := record.Chunk
	if c.ID == "" {
		return prepared{}, fmt.Errorf("record %d: %w", len(in.seen), mapmatched.ErrEmptyChunkID)
	}
	p := prepared{record: record, uuid: uuid.NewSHA1(namespace, []byte(c.ID))}
	if in.seen[p.uuid] {
		return p, fmt.Errorf("chunk %q is there twice: give every chunk an ID of its own", c.ID)
	}
	in.seen[p.uuid] = true
	for _, field := range []string{c.ID, c.Document, c.Title, c.Section, c.Text} {
		if !utf8.ValidString(field) {
			return p, fmt.Errorf("chunk %q: %q is not valid UTF-8", c.ID, field)
		}
	}
	for name, value := range map[string]int{propertyOrdinal: c.Ordinal, propertyStart: c.Start, propertyEnd: c.End} {
		if int64(value) > maxExact || int64(value) < -maxExact {
			return p, fmt.Errorf("chunk %q: %s is %d: the server keeps integers from −2^53 to 2^53", c.ID, name, value)
		}
	}
	if err := in.checkVector(c.ID, record.Vector); err != nil {
		return p, err
	}
	var err error
	if p.edges, err = encodeEdges(c.ID, record.Edges); err != nil {
		return p, err
	}
	p.digest = digest(record, p.edges)
	return p, nil
}

func (in *ingest) checkVector(id string, v []float32) error {
	if v == nil {
		return nil
	}
	if len(v) != in.identity.Dimension {
		return fmt.Errorf("chunk %q: its vector has %d dimensions and the corpus %d", id, len(v), in.identity.Dimension)
	}
	zero := true
	for i, x := range v {
		if !finite(float64(x)) {
			return fmt.Errorf("chunk %q: component %d of its vector is %v: want finite numbers", id, i, x)
		}
		zero = zero && x == 0
	}
	if zero {
		return fmt.Errorf("chunk %q: its vector is zero, which has no cosine with others: leave it out", id)
	}
	return nil
}

// encodeEdges writes the edges of a chunk as JSON, in the order given.
func encodeEdges(id string, edges []mapmatched.Edge) (string, error) {
	if len(edges) == 0 {
		return "", nil
	}
	stored := make([]storedEdge, len(edges))
	for i, e := range edges {
		switch {
		case e.From != id:
			return "", fmt.Errorf("chunk %q: its edge %d begins at %q", id, i, e.From)
		case e.To == "":
			return "", fmt.Errorf("chunk %q: edge %d: %w", id, i, mapmatched.ErrEmptyChunkID)
		case !finite(e.Weight) || e.Weight <= 0:
			return "", fmt.Errorf("edge from %q to %q: weight %v: want a positive finite number", id, e.To, e.Weight)
		case !utf8.ValidString(e.To) || !utf8.ValidString(string(e.Type)):
			return "", fmt.Errorf("edge from %q to %q of type %q: not valid UTF-8", id, e.To, e.Type)
		}
		if name := edgeProperty(e.Type); !namePattern.MatchString(name) {
			return "", fmt.Errorf("edge from %q to %q: type %q is too long", id, e.To, e.Type)
		}
		stored[i] = storedEdge{e.To, string(e.Type), e.Weight}
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

// decodeEdges reads what encodeEdges wrote.
func decodeEdges(id, text string) ([]mapmatched.Edge, error) {
	if text == "" {
		return nil, nil
	}
	var stored []storedEdge
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, corrupt("chunk %q: property %s: %v: write the chunk again", id, propertyEdges, err)
	}
	edges := make([]mapmatched.Edge, len(stored))
	for i, e := range stored {
		edges[i] = mapmatched.Edge{From: id, To: e.To, Type: mapmatched.EdgeType(e.Type), Weight: e.Weight}
	}
	return edges, nil
}

// edgeProperty is the reference property of an edge type: letters and digits as
// they are, every other byte as _ and two hexadecimal digits, because the
// server takes names that differ in case for the same.
func edgeProperty(t mapmatched.EdgeType) string {
	var b strings.Builder
	b.WriteString("edge_")
	for _, c := range []byte(t) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

// digest is the SHA-256 of everything that is written for a record, in
// hexadecimal.
func digest(r mapmatched.Record, edges string) string {
	c := r.Chunk
	b := []byte{descriptionVersion}
	for _, field := range []string{c.ID, c.Document, c.Title, c.Section, c.Text, edges} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	for _, field := range []int{c.Ordinal, c.Start, c.End, len(r.Vector)} {
		b = binary.AppendVarint(b, int64(field))
	}
	for _, x := range r.Vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// flush sends the batch on its way, once fewer than batchesAtOnce are.
func (in *ingest) flush(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	select {
	case in.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	batch, class, properties := in.batch, in.store.class, in.properties
	in.batch, in.bytes = nil, 0
	in.wg.Go(func() {
		defer func() { <-in.slots }()
		if err := in.process(ctx, class, properties, batch); err != nil {
			in.cancel(err)
		}
	})
	return nil
}

// wait for the batches under way.
func (in *ingest) wait(ctx context.Context) error {
	in.wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// process writes the objects of a batch that are not there yet.
func (in *ingest) process(ctx context.Context, class *class, properties []string, batch []prepared) error {
	there, err := in.lookUp(ctx, class, batch)
	if err != nil {
		return err
	}
	write := make([]prepared, 0, len(batch))
	var missing []link
	var unconfirmed []string
	for _, p := range batch {
		h, known := there[p.uuid.String()]
		confirmed := known && len(h.references[propertyConfirmed]) > 0
		if !confirmed || h.properties[propertyDigest] != p.digest {
			write = append(write, p)
			missing = append(missing, p.links...)
			if !in.report.Created && !confirmed {
				unconfirmed = append(unconfirmed, p.uuid.String())
			}
			continue
		}
		for _, l := range p.links {
			if !slices.ContainsFunc(h.references[properties[l.property]], func(t target) bool { return t.uuid == l.to.String() }) {
				missing = append(missing, l)
			}
		}
	}
	if err := in.write(ctx, write, unconfirmed); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.missing = append(in.missing, missing...)
	in.report.Written += len(write)
	in.report.Kept += len(batch) - len(write)
	if in.progress != nil {
		in.progress(in.report.Written + in.report.Kept)
	}
	return nil
}

// lookUp fetches the digests and references of the objects of the batch. A
// class that was just made has none.
func (in *ingest) lookUp(ctx context.Context, class *class, batch []prepared) (map[string]*hit, error) {
	if in.report.Created {
		return nil, nil
	}
	there := make(map[string]*hit, len(batch))
	uuids := make([]string, len(batch))
	for i, p := range batch {
		uuids[i] = p.uuid.String()
	}
	r := &search{class: class, tenant: in.store.tenant, properties: []string{propertyDigest}, references: class.references(), targetID: uuidProperty}
	err := in.writer.server.among(ctx, r, []string{uuidProperty}, uuids, false, func(_ []string, hits []hit, _ bool) error {
		for i := range hits {
			there[hits[i].uuid] = &hits[i]
		}
		return nil
	})
	return there, err
}

// references lists the reference properties that lead to the class itself.
func (c *class) references() []string {
	var names []string
	for _, p := range c.properties {
		if slices.Contains(p.targets, c.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// addLinks finds the references of a record. Parallel edges are one.
func (in *ingest) addLinks(ctx context.Context, p *prepared) error {
	for _, e := range p.record.Edges {
		at, err := in.reference(ctx, e.Type)
		if err != nil {
			return err
		}
		l := link{p.uuid, uuid.NewSHA1(namespace, []byte(e.To)), at}
		if slices.Contains(p.links, l) {
			continue
		}
		p.links = append(p.links, l)
		if !in.seen[l.to] {
			in.ahead[l.to] = e.To
		}
	}
	return nil
}

// reference makes the property of an edge type where the class has none, and
// returns its index.
func (in *ingest) reference(ctx context.Context, t mapmatched.EdgeType) (int, error) {
	name := edgeProperty(t)
	if at := slices.Index(in.properties, name); at >= 0 {
		return at, nil
	}
	c, err := in.writer.withReference(ctx, in.store.class, name)
	if err != nil {
		return 0, err
	}
	in.store.class = c
	in.properties = append(in.properties, name)
	return len(in.properties) - 1, nil
}

// objectError is what is wrong with an object of a batch.
type objectError struct {
	chunk, message string
}

// failed makes an error of the objects that the server refused.
func failed(what string, total int, faults []objectError) error {
	const shown = 3
	parts := make([]string, 0, shown)
	for _, f := range faults[:min(shown, len(faults))] {
		parts = append(parts, fmt.Sprintf("%s: %s", f.chunk, oneLine(f.message)))
	}
	r := &reply{kind: mapmatched.KindInvalid, message: fmt.Sprintf("%d of %d %s were refused: %s", len(faults), total, what, strings.Join(parts, "; "))}
	return hinted(r)
}

// write sends objects in one batch, and confirms them when the server has. Those that an interrupted call may have left are deleted first, and
// so are all when the answer of an attempt was lost: a server that died may have
// lost of its indexes what it had confirmed a moment before.
func (in *ingest) write(ctx context.Context, objects []prepared, unconfirmed []string) error {
	if len(objects) == 0 {
		return nil
	}
	server, first := in.writer.server, true
	return server.do(ctx, func(ctx context.Context) error {
		if !first {
			unconfirmed = unconfirmed[:0]
			for _, p := range objects {
				unconfirmed = append(unconfirmed, p.uuid.String())
			}
		}
		first = false
		if err := in.remove(ctx, unconfirmed); err != nil {
			return err
		}
		if err := in.send(ctx, objects); err != nil {
			return err
		}
		return in.confirm(ctx, objects)
	})
}

// confirm makes objects refer to themselves.
func (in *ingest) confirm(ctx context.Context, objects []prepared) error {
	references := make([]reference, len(objects))
	for i, p := range objects {
		references[i] = reference{p.uuid, p.uuid, propertyConfirmed}
	}
	return in.refer(ctx, references)
}

// removeWorkers is how many objects of a batch are deleted at a time.
const removeWorkers = 8

// remove deletes objects by their UUIDs, which finds also those that no filter
// shows; those that are not there do not matter.
func (in *ingest) remove(ctx context.Context, uuids []string) error {
	if len(uuids) == 0 {
		return nil
	}
	server := in.writer.server
	// One that starts says of every object that it is not there.
	if !server.isReady(ctx) {
		return &reply{kind: mapmatched.KindUnavailable, again: true, message: server.address + " is not ready"}
	}
	return parallel(ctx, len(uuids), removeWorkers, func(ctx context.Context, i int) error {
		deleter := server.objects.Deleter().WithClassName(in.writer.class).WithID(uuids[i])
		if in.store.tenant != "" {
			deleter = deleter.WithTenant(in.store.tenant)
		}
		err := translate(deleter.Do(ctx))
		if isNotFound(err) {
			return nil
		}
		return err
	})
}

// send sends a batch, by gRPC where there is a port for it.
func (in *ingest) send(ctx context.Context, objects []prepared) error {
	var faults []objectError
	var err error
	if in.writer.server.grpc != nil {
		faults, err = in.sendGRPC(ctx, objects)
	} else {
		faults, err = in.sendREST(ctx, objects)
	}
	if err == nil && len(faults) > 0 {
		err = failed("objects", len(objects), faults)
	}
	return err
}

// fields are the properties of an object; empty texts are left out.
func (p *prepared) fields() map[string]any {
	c := p.record.Chunk
	fields := map[string]any{propertyOrdinal: c.Ordinal, propertyStart: c.Start, propertyEnd: c.End, propertyDigest: p.digest}
	for name, value := range map[string]string{
		propertyChunkID: c.ID, propertyDocument: c.Document, propertyTitle: c.Title, propertySection: c.Section,
		propertyText: c.Text, propertyEdges: p.edges,
	} {
		if value != "" {
			fields[name] = value
		}
	}
	return fields
}

func (in *ingest) sendGRPC(ctx context.Context, objects []prepared) ([]objectError, error) {
	request := &pb.BatchObjectsRequest{}
	for i := range objects {
		p := &objects[i]
		fields, err := structpb.NewStruct(p.fields())
		if err != nil {
			return nil, fmt.Errorf("chunk %q: %w", p.record.Chunk.ID, err)
		}
		request.Objects = append(request.Objects, &pb.BatchObject{
			Uuid: p.uuid.String(), Collection: in.writer.class, Tenant: in.store.tenant, VectorBytes: vectorBytes(p.record.Vector),
			Properties: &pb.BatchObject_Properties{NonRefProperties: fields},
		})
	}
	reply, err := in.writer.server.grpc.BatchObjects(ctx, request)
	if tooLarge(err) {
		at := 0
		for i, o := range request.Objects {
			if proto.Size(o) > proto.Size(request.Objects[at]) {
				at = i
			}
		}
		return nil, invalid("chunk %q is too large for a call over gRPC (%d bytes): cut it, or leave the gRPC port out", objects[at].record.Chunk.ID, proto.Size(request.Objects[at]))
	}
	if err != nil {
		return nil, err
	}
	var faults []objectError
	for _, e := range reply.GetErrors() {
		chunk := fmt.Sprintf("object %d", e.GetIndex())
		if i := int(e.GetIndex()); i >= 0 && i < len(objects) {
			chunk = fmt.Sprintf("chunk %q", objects[i].record.Chunk.ID)
		}
		faults = append(faults, objectError{chunk, e.GetError()})
	}
	return faults, nil
}

func (in *ingest) sendREST(ctx context.Context, objects []prepared) ([]objectError, error) {
	batcher := in.writer.server.batches.ObjectsBatcher()
	for i := range objects {
		p := &objects[i]
		batcher.WithObjects(&models.Object{
			Class: in.writer.class, ID: strfmt.UUID(p.uuid.String()), Tenant: in.store.tenant, Properties: p.fields(), Vector: p.record.Vector,
		})
	}
	replies, err := batcher.Do(ctx)
	if err != nil {
		return nil, err
	}
	if len(replies) != len(objects) {
		return nil, corrupt("%d answers for %d objects", len(replies), len(objects))
	}
	var faults []objectError
	for i, r := range replies {
		if r.Result == nil || r.Result.Status == nil || *r.Result.Status != models.ObjectsGetResponseAO2ResultStatusSUCCESS {
			message := "no status"
			if r.Result != nil {
				message = errorsOf(r.Result.Errors)
			}
			faults = append(faults, objectError{fmt.Sprintf("chunk %q", objects[i].record.Chunk.ID), message})
		}
	}
	return faults, nil
}

func errorsOf(r *models.ErrorResponse) string {
	if r == nil || len(r.Error) == 0 {
		return "the server does not say why"
	}
	messages := make([]string, 0, len(r.Error))
	for _, e := range r.Error {
		if e != nil {
			messages = append(messages, e.Message)
		}
	}
	return strings.Join(messages, "; ")
}

// referenceBatch is how many references go into one request.
const referenceBatch = 2000

// link writes the references that are missing.
func (in *ingest) link(ctx context.Context) error {
	if err := in.checkTargets(ctx); err != nil {
		return err
	}
	for part := range slices.Chunk(in.missing, referenceBatch) {
		again := false
		err := in.writer.server.do(ctx, func(ctx context.Context) (err error) {
			if again { // the server would keep a reference twice
				if part, err = in.stillMissing(ctx, part); err != nil || len(part) == 0 {
					return err
				}
			}
			again = true
			references := make([]reference, len(part))
			for i, l := range part {
				references[i] = reference{l.from, l.to, in.properties[l.property]}
			}
			return in.refer(ctx, references)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTargets finds references to what is neither among the records nor in the
// class; the server would take them.
func (in *ingest) checkTargets(ctx context.Context) error {
	var unknown []string
	for to := range in.ahead {
		if !in.seen[to] {
			unknown = append(unknown, to.String())
		}
	}
	slices.Sort(unknown)
	var lost []string
	r := &search{class: in.store.class, tenant: in.store.tenant}
	err := in.writer.server.among(ctx, r, []string{uuidProperty}, unknown, false, func(part []string, hits []hit, _ bool) error {
		there := make(map[string]bool, len(hits))
		for _, h := range hits {
			there[h.uuid] = true
		}
		for _, u := range part {
			if !there[u] {
				lost = append(lost, in.ahead[uuid.MustParse(u)])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		return fmt.Errorf("edges lead to %d chunks that are neither among the records nor in class %s, such as %q: write those too, or leave the edges out",
			len(lost), in.writer.class, lost[0])
	}
	return nil
}

// stillMissing drops the references that are there: those of an attempt whose
// answer was lost.
func (in *ingest) stillMissing(ctx context.Context, part []link) ([]link, error) {
	var uuids []string
	for _, l := range part {
		uuids = append(uuids, l.from.String())
	}
	have := map[string]bool{}
	key := func(from, property, to string) string { return from + " " + property + " " + to }
	r := &search{class: in.store.class, tenant: in.store.tenant, references: in.store.class.references(), targetID: uuidProperty}
	err := in.writer.server.among(ctx, r, []string{uuidProperty}, distinct(uuids), false, func(_ []string, hits []hit, _ bool) error {
		for _, h := range hits {
			for name, targets := range h.references {
				for _, t := range targets {
					have[key(h.uuid, name, t.uuid)] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(part), func(l link) bool {
		return have[key(l.from.String(), in.properties[l.property], l.to.String())]
	}), nil
}

// reference is one as the server takes it.
type reference struct {
	from, to uuid.UUID
	property string
}

// refer writes references in one request.
func (in *ingest) refer(ctx context.Context, part []reference) error {
	batch := make([]*models.BatchReference, len(part))
	for i, r := range part {
		beacon := "weaviate://localhost/" + in.writer.class + "/"
		batch[i] = &models.BatchReference{
			From:   strfmt.URI(beacon + r.from.String() + "/" + r.property),
			To:     strfmt.URI(beacon + r.to.String()),
			Tenant: in.store.tenant,
		}
	}
	replies, err := in.writer.server.batches.ReferencesBatcher().WithReferences(batch...).Do(ctx)
	if err != nil {
		return err
	}
	if len(replies) != len(part) {
		return corrupt("%d answers for %d references", len(replies), len(part))
	}
	var faults []objectError
	for i, r := range replies {
		if r.Result == nil || r.Result.Status == nil || *r.Result.Status != models.BatchReferenceResponseAO1ResultStatusSUCCESS {
			message := "no status"
			if r.Result != nil {
				message = errorsOf(r.Result.Errors)
			}
			faults = append(faults, objectError{fmt.Sprintf("%s of %s", part[i].property, part[i].from), message})
		}
	}
	if len(faults) > 0 {
		return failed("references", len(part), faults)
	}
	return nil
}
