package plugins

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kind is a service that a plugin offers.
type Kind string

// The kinds.
const (
	KindProvider Kind = "provider"
	KindReranker Kind = "reranker"
	KindGraph    Kind = "graph"
	KindEmbedder Kind = "embedder"
	KindDecoder  Kind = "decoder"
)

// Kinds lists the kinds in the order in which they are printed.
func Kinds() []Kind {
	return []Kind{KindProvider, KindReranker, KindGraph, KindEmbedder, KindDecoder}
}

// Capability is an optional call that a plugin answers.
type Capability string

// The capabilities.
const (
	CanScoreChunks Capability = "score_chunks" // a provider scores given chunks
	CanFetchChunks Capability = "chunks"       // a provider returns chunks by ID
	CanVectors     Capability = "vectors"      // a provider returns vectors by ID
	CanListEdges   Capability = "edges"        // a graph lists its edges
	CanLoad        Capability = "load"         // a provider or graph takes the corpus of the conformance suite
)

const (
	protocolVersion = 1
	protocolMinor   = 0
)

// maxMessage is the greatest message of a call in bytes, in both directions.
const maxMessage = 64 << 20

// Info is what a plugin says of itself.
type Info struct {
	Name          string          `json:"name"`
	Version       string          `json:"version"`
	Description   string          `json:"description,omitempty"` // one line
	Kinds         []Kind          `json:"kinds"`
	Protocol      int             `json:"protocol"`       // version of the protocol in use
	ProtocolMinor int             `json:"protocol_minor"` // how much of that version the plugin knows
	Capabilities  []Capability    `json:"capabilities,omitempty"`
	Schema        json.RawMessage `json:"config_schema,omitempty"` // JSON Schema of the configuration, nil when it takes none
}

// Serves reports whether the plugin offers a kind.
func (i Info) Serves(k Kind) bool { return slices.Contains(i.Kinds, k) }

// Can reports whether the plugin has a capability.
func (i Info) Can(c Capability) bool { return slices.Contains(i.Capabilities, c) }

// The most that a plugin may say of itself.
const (
	maxDescription = 1 << 10 // bytes
	maxKinds       = 64      // and as many capabilities: those of later versions are not known here
	maxSchema      = 1 << 20 // bytes
)

// check reports what is wrong with what a plugin says of itself, in one line.
func (i Info) check() error {
	switch {
	case !validName(i.Name):
		return fmt.Errorf("info: the name %q is not made of a-z, 0-9 and single '-'", cut(i.Name, maxQuoted))
	case checkVersion(i.Version) != nil:
		return fmt.Errorf("info: %w", checkVersion(i.Version))
	case strings.ContainsFunc(i.Description, isBreak):
		return fmt.Errorf("info: the description %q is not one line", cut(i.Description, maxQuoted))
	case len(i.Description) > maxDescription:
		return fmt.Errorf("info: the description has %d bytes, more than %d", len(i.Description), maxDescription)
	case len(i.Kinds) == 0:
		return fmt.Errorf("info: it names no kind; it has to serve one of %s", join(Kinds()))
	case len(i.Kinds) > maxKinds || len(i.Capabilities) > maxKinds:
		return fmt.Errorf("info: it names %d kinds and %d capabilities, more than %d", len(i.Kinds), len(i.Capabilities), maxKinds)
	case len(i.Schema) > maxSchema:
		return fmt.Errorf("info: the schema of the configuration has %d bytes, more than %d", len(i.Schema), maxSchema)
	}
	for _, k := range i.Kinds {
		if !validName(string(k)) {
			return fmt.Errorf("info: the kind %q is not one of %s", cut(string(k), maxQuoted), join(Kinds()))
		}
	}
	for _, c := range i.Capabilities {
		if !validName(strings.ReplaceAll(string(c), "_", "-")) {
			return fmt.Errorf("info: the capability %q is not made of a-z, 0-9 and single '_'", cut(string(c), maxQuoted))
		}
	}
	if len(i.Schema) > 0 {
		if _, err := parseSchema(i.Schema); err != nil {
			return fmt.Errorf("info: %w", err)
		}
	}
	return nil
}

func join[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}
