package policy

import (
	"fmt"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// VectorIdentity says what made vectors. Vectors of different identities are
// never compared.
type VectorIdentity struct {
	Provider, Model, Revision string
	Dimension                 int
	Normalization             string
}

// LexicalIdentity says how an index cuts and scores words.
type LexicalIdentity struct {
	Version         string // tag of the formula
	K1, B           float64
	StopwordsSHA256 string
}

// IndexIdentity says what an index was made from.
type IndexIdentity struct {
	Vectors     *VectorIdentity  // nil when it has none
	Lexical     *LexicalIdentity // nil when it does not search words, or does not say how
	ChunkPolicy string           // see Policy.ChunkPolicy; "" when it does not say
	Rebuild     string           // command that makes it anew, "" when there is none
}

// Fits reports how an index differs from what the policy pins, nil when it does
// not: every field that differs, what it is and what the policy says, and the
// command that makes the index anew. The error wraps mapmatched.ErrStaleIndex.
//
// A policy without vectors.provider compares no vectors, so those of the index
// do not matter.
func (p *Policy) Fits(x IndexIdentity) error {
	var diff []string
	add := func(field string, got, want any) {
		if got != want {
			diff = append(diff, fmt.Sprintf("%s is %#v, the policy says %#v", field, got, want))
		}
	}
	if want := p.Vectors; want.Provider != "" {
		if got := x.Vectors; got == nil {
			diff = append(diff, fmt.Sprintf("there are no vectors, the policy says vectors.model %q", want.Model))
		} else {
			add("vectors.provider", got.Provider, want.Provider)
			add("vectors.model", got.Model, want.Model)
			add("vectors.revision", got.Revision, want.Revision)
			add("vectors.dimension", got.Dimension, want.Dimension)
			add("vectors.normalization", got.Normalization, want.Normalization)
		}
	}
	if got, want := x.Lexical, p.Lexical; got != nil {
		add("lexical.version", got.Version, want.Version)
		add("lexical.k1", got.K1, want.K1)
		add("lexical.b", got.B, want.B)
		add("lexical.stopwords_sha256", got.StopwordsSHA256, want.StopwordsSHA256)
	}
	if x.ChunkPolicy != "" {
		add("the chunk policy", x.ChunkPolicy, p.ChunkPolicy())
	}
	if len(diff) == 0 {
		return nil
	}
	rebuild := ""
	if x.Rebuild != "" {
		rebuild = ": build it again with " + x.Rebuild
	}
	return fmt.Errorf("%w: it does not fit policy %s: %s%s", mapmatched.ErrStaleIndex, p.Name, strings.Join(diff, "; "), rebuild)
}

// ChunkPolicy names how the policy cuts documents and joins chunks, in the form
// that an index records: the tag of the chunking, and what differs from its
// defaults. Two policies that make the same chunks and edges have the same.
func (p *Policy) ChunkPolicy() string {
	c, tag := p.Chunking, p.Chunking.Version
	if tag == MarkdownV1 {
		tag += "+text_v1+html_v1" // for files without markup and for pages
	}
	if c.Version != MarkdownV1 || c.Limit != DefaultChunking().Limit {
		tag += fmt.Sprintf(" limit=%d %s", c.Limit, c.Unit)
	}
	if c.Unit == UnitTokens {
		tag += " tokenizer=sha256:" + c.TokenizerSHA256
	}
	if g := p.Graph; g.MaximumDistance != DefaultGraph().MaximumDistance {
		tag += fmt.Sprintf(" maximum_distance=%v", g.MaximumDistance)
	}
	for _, edge := range sortedKeys(p.Graph.Weights) {
		tag += fmt.Sprintf(" %s=%v", edge, p.Graph.Weights[edge])
	}
	return tag
}
