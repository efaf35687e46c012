package graphbuild

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// FormatGraph is the tag of the files that [WriteGraph] makes; FORMAT.md
// describes them.
const FormatGraph = "mmplug.graph/1"

const (
	fileMagic    = "mmgraph\n"
	fileVersion  = 1
	headerSize   = 512
	sectionAlign = 64
	maxSections  = 16
	recordSize   = 24 // of a section in the header
	flagDirected = 1
)

// sectionKind says what a section of a graph file holds. The numbers are part
// of the format.
type sectionKind uint32

const (
	sectionIDFirst      sectionKind = iota + 1 // uint64, nodes+1: where an ID begins in sectionIDs
	sectionIDs                                 // bytes of the IDs, ascending
	sectionBucketFirst                         // uint32, buckets+1: where a bucket begins in sectionBucketNodes
	sectionBucketNodes                         // uint32, nodes by bucket of their hash
	sectionFirst                               // int32, nodes+1: where the arcs of a node begin
	sectionArcs                                // weight float64, node int32, type int32
	sectionTable                               // rows: distances float64, then targets uint32, then padding
	sectionTableFirst                          // uint64, nodes+1: where a row begins in sectionTable, in words of 8 bytes
	sectionLabelFirst                          // uint32, nodes+1: where a label begins
	sectionLabelHubs                           // rank uint32, distance float32
	sectionLabelSteps                          // entry uint32, arc uint32
	sectionLabelInFirst                        // the same for the way to a node, in directed graphs
	sectionLabelInHubs
	sectionLabelInSteps
	sectionMeta // JSON: edge types, provenance, how distances are answered
)

// sectionNames are the names in messages, by kind.
var sectionNames = [...]string{
	"", "ID offsets", "IDs", "bucket offsets", "buckets", "arc offsets", "arcs", "table", "table offsets",
	"label offsets", "label hubs", "label steps", "in-label offsets", "in-label hubs", "in-label steps", "meta",
}

func (k sectionKind) String() string {
	if k > 0 && int(k) < len(sectionNames) {
		return sectionNames[k]
	}
	return fmt.Sprintf("section kind %d", uint32(k))
}

// fileSection is where a section is.
type fileSection struct {
	kind   sectionKind
	crc    uint32 // CRC-32C of its bytes and the padding behind them
	offset uint64 // multiple of sectionAlign
	size   uint64 // bytes, without the padding
}

func (s fileSection) padded() uint64 {
	return (s.size + sectionAlign - 1) / sectionAlign * sectionAlign
}

// header is the first headerSize bytes of a graph file.
type header struct {
	directed bool
	nodes    uint64
	arcs     uint64
	maximum  float64
	size     uint64 // of the file
	sections []fileSection
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged: the content of a graph file cannot be right.
var errDamaged = errors.New("graph file is damaged")

// errForeign: a file is not a graph file.
var errForeign = errors.New("not a graph file")

func damaged(where, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", errDamaged, where, fmt.Sprintf(format, args...))
}

func (h *header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, fileMagic)
	binary.LittleEndian.PutUint32(b[8:], fileVersion)
	if h.directed {
		binary.LittleEndian.PutUint32(b[12:], flagDirected)
	}
	binary.LittleEndian.PutUint64(b[16:], h.nodes)
	binary.LittleEndian.PutUint64(b[24:], h.arcs)
	binary.LittleEndian.PutUint64(b[32:], math.Float64bits(h.maximum))
	binary.LittleEndian.PutUint64(b[40:], h.size)
	binary.LittleEndian.PutUint32(b[48:], uint32(len(h.sections)))
	for i, s := range h.sections {
		r := b[56+i*recordSize:]
		binary.LittleEndian.PutUint32(r, uint32(s.kind))
		binary.LittleEndian.PutUint32(r[4:], s.crc)
		binary.LittleEndian.PutUint64(r[8:], s.offset)
		binary.LittleEndian.PutUint64(r[16:], s.size)
	}
	binary.LittleEndian.PutUint32(b[52:], crc32.Checksum(b, castagnoli)) // over a zero in its own place
	return b
}

// decodeHeader reads the header of a file of the given size.
func decodeHeader(b []byte, size int64) (*header, error) {
	switch {
	case bytes.HasPrefix(b, []byte("version https://git-lfs.github.com/spec/")):
		return nil, fmt.Errorf("%w: it is a Git LFS pointer: fetch the file with git lfs pull", errForeign)
	case len(b) < len(fileMagic) && bytes.HasPrefix([]byte(fileMagic), b) && len(b) > 0:
		return nil, damaged("header", "the file ends after %d bytes", len(b))
	case !bytes.HasPrefix(b, []byte(fileMagic)):
		return nil, fmt.Errorf("%w: it does not begin with %q: make one with mmplug graph build", errForeign, fileMagic)
	case len(b) < headerSize:
		return nil, damaged("header", "the file ends after %d bytes", len(b))
	}
	b = bytes.Clone(b[:headerSize])
	if v := binary.LittleEndian.Uint32(b[8:]); v != fileVersion {
		return nil, fmt.Errorf("%w: it has format version %d and this program reads %d: build it again", mapmatched.ErrStaleIndex, v, fileVersion)
	}
	crc := binary.LittleEndian.Uint32(b[52:])
	clear(b[52:56])
	if got := crc32.Checksum(b, castagnoli); got != crc {
		return nil, damaged("header", "it has checksum %08x, wanted %08x", got, crc)
	}
	flags := binary.LittleEndian.Uint32(b[12:])
	h := &header{
		directed: flags == flagDirected,
		nodes:    binary.LittleEndian.Uint64(b[16:]),
		arcs:     binary.LittleEndian.Uint64(b[24:]),
		maximum:  math.Float64frombits(binary.LittleEndian.Uint64(b[32:])),
		size:     binary.LittleEndian.Uint64(b[40:]),
	}
	count := binary.LittleEndian.Uint32(b[48:])
	switch {
	case flags > flagDirected:
		return nil, damaged("header", "flags %#x are unknown", flags)
	case h.nodes > math.MaxInt32-1 || h.arcs > math.MaxInt32-1:
		return nil, damaged("header", "%d nodes and %d arcs are too many", h.nodes, h.arcs)
	case !(h.maximum > 0) || math.IsInf(h.maximum, 0):
		return nil, damaged("header", "the maximum distance is %v", h.maximum)
	case count > maxSections:
		return nil, damaged("header", "%d sections are too many", count)
	case h.size != uint64(size):
		return nil, damaged("header", "the file has %d bytes, wanted %d", size, h.size)
	}
	at, last := uint64(headerSize), sectionKind(0)
	for i := range count {
		r := b[56+i*recordSize:]
		s := fileSection{
			kind:   sectionKind(binary.LittleEndian.Uint32(r)),
			crc:    binary.LittleEndian.Uint32(r[4:]),
			offset: binary.LittleEndian.Uint64(r[8:]),
			size:   binary.LittleEndian.Uint64(r[16:]),
		}
		if s.kind <= last || int(s.kind) >= len(sectionNames) || s.offset != at || s.size > h.size-at || s.padded() > h.size-at {
			return nil, damaged("header", "section %d (%v) has %d bytes at %d of %d", i, s.kind, s.size, s.offset, h.size)
		}
		at, last = at+s.padded(), s.kind
		h.sections = append(h.sections, s)
	}
	if at != h.size {
		return nil, damaged("header", "the sections end at %d of %d bytes", at, h.size)
	}
	return h, nil
}

// fileMeta is the JSON section.
type fileMeta struct {
	EdgeTypes  []mapmatched.EdgeType `json:"edge_types"`
	Distances  DistanceChoice        `json:"distances"`
	Exact      bool                  `json:"labels_exact"` // sums of label distances never round
	Provenance Provenance            `json:"provenance"`
}

func decodeMeta(b []byte) (*fileMeta, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	m := new(fileMeta)
	if err := d.Decode(m); err != nil {
		return nil, damaged("meta", "%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, damaged("meta", "something follows the JSON value")
	}
	return m, nil
}

// Provenance says how a graph was made. It is kept in the file and has no
// effect.
type Provenance struct {
	Method     string            `json:"method,omitempty"`     // such as "knn_v1"
	Recall     float64           `json:"recall,omitempty"`     // measured share of true neighbours, 0 to 1; 0 when not measured
	Parameters map[string]string `json:"parameters,omitempty"` // of the method
	Tool       string            `json:"tool,omitempty"`       // such as "mmplug 0.1.0"
}

func (p *Provenance) validate() error {
	if !(p.Recall >= 0 && p.Recall <= 1) {
		return fmt.Errorf("%w: recall %v is not in [0, 1]", mapmatched.ErrInvalidConfig, p.Recall)
	}
	texts := []string{p.Method, p.Tool}
	for k, v := range p.Parameters {
		texts = append(texts, k, v)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%w: provenance has a text that is not UTF-8", mapmatched.ErrInvalidConfig)
		}
	}
	return nil
}

// idBucket is the bucket of an ID among 1<<bits: the upper bits of its FNV-1a
// hash times 2⁶⁴ divided by the golden ratio, which spreads them.
func idBucket[T string | []byte](id T, bits uint) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(id) {
		hash = (hash ^ uint64(id[i])) * 1099511628211
	}
	return hash * 0x9E3779B97F4A7C15 >> (64 - bits)
}

func appendUint32(b []byte, x uint32) []byte { return binary.LittleEndian.AppendUint32(b, x) }

func appendUint64(b []byte, x uint64) []byte { return binary.LittleEndian.AppendUint64(b, x) }

func appendFloat32(b []byte, x float32) []byte { return appendUint32(b, math.Float32bits(x)) }

func appendFloat64(b []byte, x float64) []byte { return appendUint64(b, math.Float64bits(x)) }

// sectionWriter writes the sections of a file in the order of their kinds.
type sectionWriter struct {
	f        *os.File
	buffer   *bufio.Writer // to f
	at       uint64        // bytes written, header included
	crc      uint32        // of the section so far
	scratch  []byte
	sections []fileSection
}

// newSectionWriter starts behind a header of zeros.
func newSectionWriter(f *os.File) (*sectionWriter, error) {
	w := &sectionWriter{f: f, buffer: bufio.NewWriterSize(f, 1<<18)}
	_, err := w.Write(make([]byte, headerSize))
	return w, err
}

// begin starts a section after the end of the last one.
func (w *sectionWriter) begin(kind sectionKind) {
	w.crc = 0
	w.sections = append(w.sections, fileSection{kind: kind, offset: w.at})
}

// Write implements io.Writer.
func (w *sectionWriter) Write(p []byte) (int, error) {
	w.crc = crc32.Update(w.crc, castagnoli, p)
	n, err := w.buffer.Write(p)
	w.at += uint64(n)
	return n, err
}

// end pads the section and notes its checksum.
func (w *sectionWriter) end() error {
	s := &w.sections[len(w.sections)-1]
	s.size = w.at - s.offset
	_, err := w.Write(make([]byte, s.padded()-s.size))
	s.crc = w.crc
	return err
}

// put writes a whole section of n elements, each of which one appends to b.
func (w *sectionWriter) put(kind sectionKind, n int, one func(b []byte, i int) []byte) error {
	w.begin(kind)
	for first := 0; first < n; first += 1 << 13 {
		w.scratch = w.scratch[:0]
		for i := first; i < min(first+1<<13, n); i++ {
			w.scratch = one(w.scratch, i)
		}
		if _, err := w.Write(w.scratch); err != nil {
			return err
		}
	}
	return w.end()
}

// writerMark is a place between two sections.
type writerMark struct {
	at       uint64
	sections int
}

func (w *sectionWriter) mark() writerMark { return writerMark{w.at, len(w.sections)} }

// rewind forgets what was written since a mark.
func (w *sectionWriter) rewind(m writerMark) error {
	if err := w.buffer.Flush(); err != nil {
		return err
	}
	if err := w.f.Truncate(int64(m.at)); err != nil {
		return err
	}
	_, err := w.f.Seek(int64(m.at), io.SeekStart)
	w.at, w.sections = m.at, w.sections[:m.sections]
	return err
}

// finish writes the header and makes the file durable.
func (w *sectionWriter) finish(h *header) error {
	if err := w.buffer.Flush(); err != nil {
		return err
	}
	h.size, h.sections = w.at, w.sections
	if _, err := w.f.WriteAt(h.encode(), 0); err != nil {
		return err
	}
	return w.f.Sync()
}
