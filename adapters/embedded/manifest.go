package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
)

// The format that this package reads and writes.
const (
	Format  = "mmplug.embedded"
	Version = 1
)

// maxManifest is the most bytes a manifest may have; a real one has about
// three thousand.
const maxManifest = 1 << 20

const manifestName = "manifest.json"

// Names of the data files, in the order in which the manifest lists them.
const (
	chunksName     = "chunks.bin"
	dictionaryName = "dictionary.bin"
	edgesName      = "edges.bin"
	impactsName    = "impacts.bin"
	orderName      = "order.bin"
	postingsName   = "postings.bin"
	termsName      = "terms.bin"
	textName       = "text.bin"
	vectorsName    = "vectors.bin"
)

var dataNames = []string{
	chunksName, dictionaryName, edgesName, impactsName, orderName,
	postingsName, termsName, textName, vectorsName,
}

// Sizes in bytes of the records of the data files.
const (
	chunkSize      = 13 * 8
	dictionarySize = 3 * 8
	edgeSize       = 4 + 4 + 8 + 1
	impactSize     = 8
	orderSize      = 4
	postingSize    = 4
	componentSize  = 4
)

// Manifest describes an index: manifest.json.
type Manifest struct {
	Format      string          `json:"format"`       // Format
	Version     int             `json:"version"`      // Version
	Tool        string          `json:"tool"`         // who wrote it, as given to Write
	Source      Source          `json:"source"`       // what was indexed
	ChunkPolicy string          `json:"chunk_policy"` // tag of the chunking
	Counts      Counts          `json:"counts"`
	Lexical     LexicalInfo     `json:"lexical"`
	Graph       GraphInfo       `json:"graph"`
	Vectors     *VectorIdentity `json:"vectors"` // nil when there are none
	Files       []FileInfo      `json:"files"`   // ascending by name, the manifest left out
}

// Counts are the numbers of things in an index.
type Counts struct {
	Chunks    int `json:"chunks"`
	Documents int `json:"documents"` // distinct document IDs
	Terms     int `json:"terms"`     // distinct
	Postings  int `json:"postings"`  // pairs of a term and a chunk that has it
	Edges     int `json:"edges"`
	Vectors   int `json:"vectors"` // 0 or one for each chunk
}

// LexicalInfo says how the lexical index was made.
type LexicalInfo struct {
	Analyzer        string  `json:"analyzer"` // lexical.AnalyzerTag
	StopwordsSHA256 string  `json:"stopwords_sha256"`
	Fields          []Field `json:"fields"` // what was indexed of each chunk
	K1              float64 `json:"k1"`     // of BM25, as b is
	B               float64 `json:"b"`
}

// GraphInfo says how the edges are to be read.
type GraphInfo struct {
	MaximumDistance float64         `json:"maximum_distance"` // clamp of distances, positive
	Directed        bool            `json:"directed"`
	EdgeTypes       []EdgeTypeCount `json:"edge_types"` // ascending by type
}

// EdgeTypeCount is how many edges have a type.
type EdgeTypeCount struct {
	Type  mapmatched.EdgeType `json:"type"`
	Count int                 `json:"count"`
}

// FileInfo is a data file of an index.
type FileInfo struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hexadecimal, lower case
}

// encode returns the only form in which a manifest is valid.
func (m *Manifest) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(m)
	return b.Bytes(), err
}

// ParseManifest reads a manifest. It accepts exactly the bytes that Write
// produces, so an edited, truncated or converted file is refused, and checks
// that counts and file sizes agree. A newer or older format is reported as such
// (mapmatched.ErrStaleIndex).
func ParseManifest(data []byte) (*Manifest, error) {
	if isLFSPointer(data) {
		return nil, errLFSPointer
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("has %d bytes, more than the %d a manifest may have", len(data), maxManifest)
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("is not the manifest of an index: %w", err)
	}
	if head.Format != Format {
		return nil, fmt.Errorf("is not the manifest of an index: format is %q, not %q", head.Format, Format)
	}
	if head.Version > Version {
		return nil, fmt.Errorf("has format version %d and this program reads %d: %w: update the program or build the index again", head.Version, Version, mapmatched.ErrStaleIndex)
	}
	if head.Version < Version {
		return nil, fmt.Errorf("has format version %d and this program reads %d: %w: build the index again", head.Version, Version, mapmatched.ErrStaleIndex)
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("is damaged: %w", err)
	}
	canonical, err := m.encode()
	if err != nil {
		return nil, fmt.Errorf("is damaged: %w", err)
	}
	if !bytes.Equal(canonical, data) {
		return nil, fmt.Errorf("was changed after it was written, first at byte %d: build the index again", firstDifference(canonical, data))
	}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("is damaged: %w", err)
	}
	return m, nil
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// validate checks that the parts of the manifest agree.
func (m *Manifest) validate() error {
	counts := []struct {
		what string
		n    int
	}{
		{"chunks", m.Counts.Chunks}, {"documents", m.Counts.Documents}, {"terms", m.Counts.Terms},
		{"postings", m.Counts.Postings}, {"edges", m.Counts.Edges}, {"vectors", m.Counts.Vectors},
	}
	for _, c := range counts {
		if c.n < 0 || int64(c.n) > math.MaxUint32 {
			return fmt.Errorf("the number of %s is %d", c.what, c.n)
		}
	}
	if d := m.Graph.MaximumDistance; !(d > 0) || math.IsInf(d, 0) {
		return fmt.Errorf("the maximum distance is %v", d)
	}
	if err := (BM25{K1: m.Lexical.K1, B: m.Lexical.B}).Validate(); err != nil {
		return err
	}
	edges := 0
	for i, t := range m.Graph.EdgeTypes {
		if i > 0 && m.Graph.EdgeTypes[i-1].Type >= t.Type || t.Count < 1 || t.Count > m.Counts.Edges-edges {
			return fmt.Errorf("the edge types are not ascending with positive counts that add up to %d edges", m.Counts.Edges)
		}
		edges += t.Count
	}
	if edges != m.Counts.Edges || len(m.Graph.EdgeTypes) > maxEdgeTypes {
		return fmt.Errorf("%d edges in %d types, and %d edges in all", edges, len(m.Graph.EdgeTypes), m.Counts.Edges)
	}
	dimension := 0
	if m.Vectors != nil {
		dimension = m.Vectors.Dimension
		if dimension < 1 || dimension > maxDimension {
			return fmt.Errorf("the dimension of the vectors is %d", dimension)
		}
	}
	if m.Counts.Vectors != 0 && m.Counts.Vectors != m.Counts.Chunks || m.Vectors == nil && m.Counts.Vectors != 0 {
		return fmt.Errorf("%d vectors for %d chunks", m.Counts.Vectors, m.Counts.Chunks)
	}
	return m.validateFiles(dimension)
}

// validateFiles checks that all files are there with the size that follows
// from the counts.
func (m *Manifest) validateFiles(dimension int) error {
	sizes := map[string]int64{
		chunksName:     chunkSize * int64(m.Counts.Chunks),
		dictionaryName: dictionarySize * int64(m.Counts.Terms),
		edgesName:      edgeSize * int64(m.Counts.Edges),
		impactsName:    impactSize * int64(m.Counts.Postings),
		orderName:      orderSize * int64(m.Counts.Chunks),
		postingsName:   postingSize * int64(m.Counts.Postings),
		vectorsName:    componentSize * int64(dimension) * int64(m.Counts.Vectors),
	}
	if len(m.Files) != len(dataNames) {
		return fmt.Errorf("it lists %d files, not %d", len(m.Files), len(dataNames))
	}
	for i, f := range m.Files {
		if f.Name != dataNames[i] {
			return fmt.Errorf("file %d is %q, not %q", i, f.Name, dataNames[i])
		}
		want, fixed := sizes[f.Name]
		if fixed && f.Size != want {
			return fmt.Errorf("%s has %d bytes where the counts make %d", f.Name, f.Size, want)
		}
		if f.Size < 0 || f.Size > math.MaxInt {
			return fmt.Errorf("%s has %d bytes", f.Name, f.Size)
		}
	}
	return nil
}

// compatible reports what this program would do otherwise than the one that
// made the index.
func (m *Manifest) compatible() error {
	l := m.Lexical
	switch {
	case l.Analyzer != lexical.AnalyzerTag:
		return stale("the analyzer is %q, wanted %q", l.Analyzer, lexical.AnalyzerTag)
	case l.StopwordsSHA256 != lexical.StopwordsSHA256:
		return stale("the stopwords have SHA-256 %q, wanted %q", l.StopwordsSHA256, lexical.StopwordsSHA256)
	case m.Vectors != nil && m.Vectors.Normalization != NormalizationL2:
		return stale("the normalization is %q, wanted %q", m.Vectors.Normalization, NormalizationL2)
	}
	return nil
}

func stale(format string, args ...any) error {
	return fmt.Errorf("%w: %s: build the index again with mmplug index", mapmatched.ErrStaleIndex, fmt.Sprintf(format, args...))
}

// clone returns a copy that shares nothing with m.
func (m *Manifest) clone() Manifest {
	c := *m
	c.Lexical.Fields = slices.Clone(m.Lexical.Fields)
	c.Graph.EdgeTypes = slices.Clone(m.Graph.EdgeTypes)
	c.Files = slices.Clone(m.Files)
	if m.Vectors != nil {
		v := *m.Vectors
		c.Vectors = &v
	}
	return c
}

// checkStrings refuses strings that JSON could not give back as they were.
func (m *Manifest) checkStrings() error {
	named := []struct{ what, s string }{
		{"tool", m.Tool}, {"chunk policy", m.ChunkPolicy}, {"source name", m.Source.Name}, {"source digest", m.Source.SHA256},
	}
	if v := m.Vectors; v != nil {
		named = append(named, []struct{ what, s string }{{"provider", v.Provider}, {"model", v.Model}, {"revision", v.Revision}}...)
	}
	for _, t := range m.Graph.EdgeTypes {
		named = append(named, struct{ what, s string }{"edge type", string(t.Type)})
	}
	for _, n := range named {
		if !utf8.ValidString(n.s) {
			return fmt.Errorf("the %s %q is not UTF-8", n.what, n.s)
		}
	}
	return nil
}
