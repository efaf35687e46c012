package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// embedBatch is how many chunks are embedded at once.
const embedBatch = 64

// Embed makes the vectors of a data set by an embedder, chunk texts alone, as
// mmplug index does. Queries are embedded when they are searched. What was
// embedded is kept below dir, so that it is embedded once, and again after an
// interruption only from there on; "" keeps it in memory alone. The identity
// tells models apart there; its dimension is filled in. progress, unless nil,
// is told how many chunks of all are embedded.
func Embed(ctx context.Context, d *Data, e mapmatched.Embedder, identity policy.VectorIdentity, dir string, progress func(done, total int)) (*Vectors, error) {
	cached := newEmbedCache(e, identity, dir)
	v := &Vectors{Identity: identity, Embedder: cached}
	chunks := d.Corpus.Chunks
	for first := 0; first < len(chunks); first += embedBatch {
		batch := chunks[first:min(first+embedBatch, len(chunks))]
		texts := make([]string, len(batch))
		for i := range batch {
			texts[i] = batch[i].Text
		}
		vectors, err := cached.batch(ctx, texts)
		if err != nil {
			return nil, fmt.Errorf("cannot embed the chunks from %q on: %w", batch[0].ID, err)
		}
		for i := range batch {
			if err := v.AddChunk(batch[i].ID, vectors[i]); err != nil {
				return nil, err
			}
		}
		if progress != nil {
			progress(first+len(batch), len(chunks))
		}
	}
	return v, nil
}

// embedSchema begins every file of vectors that is kept.
const embedSchema = "mmplug.eval.vectors/1"

// embedCache is an embedder that remembers. It is safe for concurrent use when
// the embedder is.
type embedCache struct {
	embedder mapmatched.Embedder
	dir      string // "" for none
	model    []byte

	mu     sync.Mutex
	memory map[string][]float32 // by text
}

func newEmbedCache(e mapmatched.Embedder, identity policy.VectorIdentity, dir string) *embedCache {
	return &embedCache{embedder: e, dir: dir, memory: map[string][]float32{},
		model: newDigest(embedSchema, identity.Provider, identity.Model, identity.Revision, identity.Normalization).sum()}
}

// Embed implements mapmatched.Embedder.
func (c *embedCache) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		c.mu.Lock()
		known := c.memory[text]
		c.mu.Unlock()
		if known == nil {
			vectors, err := c.batch(ctx, texts[i:i+1])
			if err != nil {
				return nil, err
			}
			known = vectors[0]
			c.mu.Lock()
			c.memory[text] = known
			c.mu.Unlock()
		}
		out[i] = known
	}
	return out, nil
}

// batch embeds texts that are kept together.
func (c *embedCache) batch(ctx context.Context, texts []string) ([][]float32, error) {
	d := newDigest(string(c.model))
	d.texts(texts)
	key := hex.EncodeToString(d.sum())
	path := filepath.Join(c.dir, key[:2], key)
	if c.dir != "" {
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cache: %w", err)
		}
		if vectors, ok := decodeVectors(raw, len(texts)); ok {
			return vectors, nil
		}
	}
	vectors, err := c.embedder.Embed(ctx, texts)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the embedder returned %d vectors for %d texts", len(vectors), len(texts))
	}
	for i := 0; err == nil && i < len(vectors); i++ {
		if len(vectors[i]) == 0 || len(vectors[i]) != len(vectors[0]) {
			err = fmt.Errorf("the embedder returned vectors of %d and %d components", len(vectors[0]), len(vectors[i]))
		}
	}
	if err != nil {
		return nil, err
	}
	if c.dir != "" {
		if err := replace(path, encodeVectors(vectors)); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	return vectors, nil
}

// encodeVectors is the schema, a line end, the SHA-256 of the rest, and the
// components in order, little-endian.
func encodeVectors(vectors [][]float32) []byte {
	var body []byte
	for _, v := range vectors {
		for _, x := range v {
			body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
		}
	}
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(embedSchema+"\n"), sum[:], body)
}

// decodeVectors reads so many vectors of one dimension. What is not whole is as
// if it were not there.
func decodeVectors(raw []byte, rows int) ([][]float32, bool) {
	rest, found := bytes.CutPrefix(raw, []byte(embedSchema+"\n"))
	if !found || len(rest) < sha256.Size || rows < 1 {
		return nil, false
	}
	body := rest[sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], rest[:sha256.Size]) || len(body) == 0 || len(body)%(4*rows) != 0 {
		return nil, false
	}
	dimension := len(body) / (4 * rows)
	vectors := make([][]float32, rows)
	for i := range vectors {
		vectors[i] = make([]float32, dimension)
		for j := range vectors[i] {
			vectors[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(body[4*(i*dimension+j):]))
		}
	}
	return vectors, true
}
