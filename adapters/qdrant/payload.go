package qdrant

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/mapmatched"
)

// NoKey as the key of a part of a chunk says that the payload does not have
// it.
const NoKey = "-"

// PayloadKeys say under which keys of the payload the parts of a chunk are. The
// zero value is the layout of the writer. NoKey leaves a part out. Keys are
// those of the top level.
type PayloadKeys struct {
	ChunkID  string // "" means "chunk_id"; a point without it is called by its own ID
	Text     string // "" means "text"; a point without it is skipped and reported, unless it is NoKey
	Title    string // "" means "title"
	Section  string // "" means "section"
	Document string // "" means "document"
	Ordinal  string // "" means "ordinal"
	Start    string // "" means "start"
	End      string // "" means "end"
	Edges    string // "" means "edges": a list of {to, weight, type}
}

// digestKey is where the writer keeps the digest of what it wrote.
const digestKey = "digest"

type keyField struct {
	name, byDefault string
	value           *string
}

func (k *PayloadKeys) fields() []keyField {
	return []keyField{
		{"ChunkID", "chunk_id", &k.ChunkID}, {"Text", "text", &k.Text}, {"Title", "title", &k.Title},
		{"Section", "section", &k.Section}, {"Document", "document", &k.Document}, {"Ordinal", "ordinal", &k.Ordinal},
		{"Start", "start", &k.Start}, {"End", "end", &k.End}, {"Edges", "edges", &k.Edges},
	}
}

// withDefaults fills the defaults in and makes NoKey "".
func (k PayloadKeys) withDefaults() PayloadKeys {
	for _, f := range k.fields() {
		switch *f.value {
		case "":
			*f.value = f.byDefault
		case NoKey:
			*f.value = ""
		}
	}
	return k
}

// Validate reports keys that are not of the top level and those that are given
// for two parts.
func (k PayloadKeys) Validate() error {
	var errs []error
	k = k.withDefaults()
	seen := map[string]string{}
	for _, f := range k.fields() {
		if *f.value == "" {
			continue
		}
		if err := checkKey("PayloadKeys."+f.name, *f.value); err != nil {
			errs = append(errs, err)
		}
		if other, again := seen[*f.value]; again {
			errs = append(errs, invalidConfig("PayloadKeys.%s and %s are both %q", other, f.name, *f.value))
		}
		seen[*f.value] = f.name
	}
	return errors.Join(errs...)
}

// checkKey refuses what looks like a path into the payload, and what cannot be
// quoted in one.
func checkKey(what, key string) error {
	if key == "" || strings.ContainsAny(key, `.[]"\`) || !utf8.ValidString(key) {
		return invalidConfig("%s is %q, want a key of the top level in UTF-8, without dots, brackets, double quotes and backslashes", what, key)
	}
	return nil
}

// jsonPath writes a key as a path that the server reads as that key.
func jsonPath(key string) string {
	plain := func(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsNumber(r) }
	if strings.ContainsFunc(key, func(r rune) bool { return !plain(r) }) {
		return `"` + key + `"`
	}
	return key
}

// emptyAt is the condition that there is nothing under a key.
func emptyAt(key string) *pb.Condition {
	return &pb.Condition{ConditionOneOf: &pb.Condition_IsEmpty{IsEmpty: &pb.IsEmptyCondition{Key: jsonPath(key)}}}
}

// chunkKeys lists the keys of everything that a chunk has.
func (k *PayloadKeys) chunkKeys() []string {
	keys := make([]string, 0, 8)
	for _, key := range []string{k.ChunkID, k.Text, k.Title, k.Section, k.Document, k.Ordinal, k.Start, k.End} {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// include asks for these keys of the payload and no others.
func include(keys ...string) *pb.WithPayloadSelector {
	paths := make([]string, 0, len(keys))
	for _, key := range keys {
		if key != "" {
			paths = append(paths, jsonPath(key))
		}
	}
	if len(paths) == 0 {
		return &pb.WithPayloadSelector{SelectorOptions: &pb.WithPayloadSelector_Enable{Enable: false}}
	}
	return &pb.WithPayloadSelector{SelectorOptions: &pb.WithPayloadSelector_Include{Include: &pb.PayloadIncludeSelector{Fields: paths}}}
}

// chunk reads a chunk. Without positions it begins at 0 and ends with its text.
func (k *PayloadKeys) chunk(id *pb.PointId, payload map[string]*pb.Value) mapmatched.Chunk {
	c := mapmatched.Chunk{ID: chunkID(id, payload, k.ChunkID)}
	c.Text, _ = payloadText(payload, k.Text)
	c.Title, _ = payloadText(payload, k.Title)
	c.Section, _ = payloadText(payload, k.Section)
	c.Document, _ = payloadText(payload, k.Document)
	c.Ordinal, _ = payloadInt(payload, k.Ordinal)
	c.Start, _ = payloadInt(payload, k.Start)
	if end, ok := payloadInt(payload, k.End); ok {
		c.End = end
	} else {
		c.End = c.Start + len(c.Text)
	}
	return c
}

// metadata reads the parts of a chunk that a candidate carries beside its text,
// under the names that the other adapters of this module give them, and then
// the further keys that are asked for.
func (k *PayloadKeys) metadata(payload map[string]*pb.Value, further []string) map[string]any {
	out := make(map[string]any, 6+len(further))
	for _, part := range []struct{ name, key string }{{"document", k.Document}, {"title", k.Title}, {"section", k.Section}} {
		if value, ok := payloadText(payload, part.key); ok {
			out[part.name] = value
		}
	}
	for _, part := range []struct{ name, key string }{{"ordinal", k.Ordinal}, {"start", k.Start}, {"end", k.End}} {
		if value, ok := payloadInt(payload, part.key); ok {
			out[part.name] = value
		}
	}
	for _, key := range further {
		if value, ok := payload[key]; ok {
			out[key] = goValue(value)
		}
	}
	return out
}
