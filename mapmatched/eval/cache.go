package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// cacheSchema is the first line of what the cache keeps. It changes when the
// meaning of a result does.
const cacheSchema = "mmplug.eval.cache/1"

// cache keeps the results of conversations in a directory: a file for each
// method and conversation, whose name is the digest of all that the result
// depends on.
type cache struct {
	dir           string   // "" for none
	methods       [][]byte // digest by method, of world and options too
	conversations []Conversation
}

func newCache(w *World, methods []Method, opts *MeasureOptions) (*cache, error) {
	if opts.Cache == "" {
		return &cache{}, nil
	}
	if err := os.MkdirAll(opts.Cache, 0o777); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	c := &cache{dir: opts.Cache, conversations: w.data.Conversations}
	world := w.digest()
	for i := range methods {
		m := &methods[i]
		d := newDigest(cacheSchema, opts.CacheSalt, world, m.Baseline, m.under().Digest(), string(m.source()), m.Model)
		d.number(opts.depth())
		c.methods = append(c.methods, d.sum())
	}
	return c, nil
}

// measure returns what the cache has of a conversation, or measures and keeps
// it.
func (c *cache) measure(ctx context.Context, method, conversation int, measure func() ([]TurnResult, error)) ([]TurnResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.dir == "" {
		return measure()
	}
	d := newDigest(string(c.methods[method]))
	d.conversation(&c.conversations[conversation])
	key := hex.EncodeToString(d.sum())
	path := filepath.Join(c.dir, key[:2], key)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if turns, ok := decodeCached(raw); ok {
		return turns, nil
	}
	turns, err := measure()
	if err != nil {
		return nil, err
	}
	if err := replace(path, encodeCached(turns)); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return turns, nil
}

// encodeCached is the schema, the digest of the rest, and the turns, a line
// each.
func encodeCached(turns []TurnResult) []byte {
	body, err := json.Marshal(turns)
	if err != nil {
		panic(fmt.Sprintf("eval: results are no JSON: %v", err)) // numbers are finite
	}
	sum := sha256.Sum256(body)
	return fmt.Appendf(nil, "%s\n%x\n%s\n", cacheSchema, sum, body)
}

// decodeCached reads a file of the cache. What is not whole, as a machine that
// lost its power may leave it, is as if it were not there.
func decodeCached(raw []byte) ([]TurnResult, bool) {
	lines := bytes.Split(raw, []byte("\n"))
	if len(lines) != 4 || string(lines[0]) != cacheSchema || len(lines[3]) != 0 {
		return nil, false
	}
	if sum := sha256.Sum256(lines[2]); string(lines[1]) != hex.EncodeToString(sum[:]) {
		return nil, false
	}
	var turns []TurnResult
	if err := json.Unmarshal(lines[2], &turns); err != nil {
		return nil, false
	}
	return turns, true
}

// replace writes a file in one step: whoever reads it, or is left after a crash,
// finds all of it or what was there before. It makes the directory.
func replace(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// digest is a SHA-256 over fields, each after its length.
type digest struct{ hash.Hash }

func newDigest(fields ...string) digest {
	d := digest{sha256.New()}
	for _, f := range fields {
		d.text(f)
	}
	return d
}

func (d digest) sum() []byte { return d.Sum(nil) }

func (d digest) number(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	d.Write(b[:])
}

func (d digest) text(s string) {
	d.number(len(s))
	d.Write([]byte(s))
}

func (d digest) texts(list []string) {
	d.number(len(list))
	for _, s := range list {
		d.text(s)
	}
}

func (d digest) vector(v []float32) {
	d.number(len(v))
	var b [4]byte
	for _, x := range v {
		binary.BigEndian.PutUint32(b[:], math.Float32bits(x))
		d.Write(b[:])
	}
}

// conversation digests what results depend on.
func (d digest) conversation(c *Conversation) {
	d.texts([]string{c.ID, c.Domain, c.Document})
	d.number(len(c.Turns))
	for i := range c.Turns {
		t := &c.Turns[i]
		d.texts([]string{t.Query, t.Answer, t.Rewrite})
		d.number(len(t.Gold))
		for _, g := range t.Gold {
			d.text(g.ChunkID)
			d.number(g.Grade)
			d.texts(g.Equivalents)
		}
	}
}

// Digest identifies the corpus: the SHA-256, in hexadecimal, of its chunks in
// order.
func (c *Corpus) Digest() string {
	d := newDigest()
	for i := range c.Chunks {
		k := &c.Chunks[i]
		d.texts([]string{k.ID, k.Document, k.Domain, k.Title, k.Section, k.Text})
		d.texts(k.Links)
		d.number(k.Ordinal)
		d.number(k.Start)
		d.number(k.End)
	}
	return hex.EncodeToString(d.sum())
}

// digest identifies what a world searches, and how.
func (w *World) digest() string {
	d := newDigest(w.data.Corpus.Digest(), string(w.scope), string(w.arm))
	if v := w.vectors; v != nil {
		d.texts([]string{v.Identity.Provider, v.Identity.Model, v.Identity.Revision, v.Identity.Normalization})
		d.number(v.Identity.Dimension)
		for i := range w.data.Corpus.Chunks {
			d.vector(v.Chunks[w.data.Corpus.Chunks[i].ID])
		}
		for _, id := range slices.Sorted(maps.Keys(v.Turns)) {
			d.text(id)
			d.vector(v.Turns[id])
		}
	}
	return string(d.sum())
}
