package langchaingo

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Identity finds the chunk ID of a document, which has no field for one. It
// gives a document the same ID every time and never an empty one.
type Identity func(schema.Document) (string, error)

// IDFromKey takes the chunk ID from the metadata under a key: a text or an
// integer. A document without one is an error.
func IDFromKey(key string) Identity {
	return func(d schema.Document) (string, error) {
		id, err := metadataText(d.Metadata, key)
		if err != nil {
			return "", fmt.Errorf("no chunk ID: %w", err)
		}
		return id, nil
	}
}

// IDFromContent makes the chunk ID of the text and of the metadata under the
// given keys, at least one, which name the parent of a chunk: its document, or
// document and position. The same text under two parents is two chunks; a text
// that one parent has twice needs the position too.
//
// The ID is "lc1:" and the first 32 hexadecimal digits of the SHA-256 of the
// metadata values, in the order of the keys, and the text, each after its
// length in bytes as a 64-bit number, highest byte first. A document without
// one of the keys is an error.
func IDFromContent(parentKeys ...string) Identity {
	return func(d schema.Document) (string, error) {
		if len(parentKeys) == 0 {
			return "", fmt.Errorf("%w: IDFromContent has no metadata key of the parent; equal texts of two documents would be one chunk",
				mapmatched.ErrInvalidConfig)
		}
		var data []byte
		field := func(s string) {
			data = binary.BigEndian.AppendUint64(data, uint64(len(s)))
			data = append(data, s...)
		}
		for _, key := range parentKeys {
			parent, err := metadataText(d.Metadata, key)
			if err != nil {
				return "", fmt.Errorf("no parent for the chunk ID: %w", err)
			}
			field(parent)
		}
		field(d.PageContent)
		sum := sha256.Sum256(data)
		return "lc1:" + hex.EncodeToString(sum[:16]), nil
	}
}

// metadataText is the text or integer under a key. JSON numbers come as
// float64; beyond 2^53 those are no longer the integers that were stored.
func metadataText(metadata map[string]any, key string) (string, error) {
	value, found := metadata[key]
	if !found || value == nil {
		return "", fmt.Errorf("%w: the metadata has no key %q; store one with every document or name another key", mapmatched.ErrEmptyChunkID, key)
	}
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	case fmt.Stringer:
		text = v.String()
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		text = fmt.Sprint(v)
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return "", fmt.Errorf("metadata %q is the number %v, which is not a whole one up to 2^53; store it as text", key, v)
		}
		text = strconv.FormatInt(int64(v), 10)
	default:
		return "", fmt.Errorf("metadata %q is a %T, want a text or an integer", key, value)
	}
	if text == "" {
		return "", fmt.Errorf("%w: metadata %q is empty", mapmatched.ErrEmptyChunkID, key)
	}
	return text, nil
}

// checkIdentity refuses an absent Identity.
func checkIdentity(id Identity) error {
	if id == nil {
		return errors.New("no Identity; say where chunk IDs come from with IDFromKey or IDFromContent")
	}
	return nil
}
