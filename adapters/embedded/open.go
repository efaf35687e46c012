package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Arm is how an index finds candidates.
type Arm string

// The arms.
const (
	ArmLexical Arm = "lexical" // BM25 over the words of Query.Text
	ArmDense   Arm = "dense"   // cosine with Query.Vector, by exact scan
)

// Options are the settings of Open. The zero value, and nil, are the defaults.
type Options struct {
	// Arm answers queries; "" means ArmLexical. ArmDense needs an index with
	// vectors.
	Arm Arm
	// Embedder turns Query.Text into a vector for ArmDense when a query has
	// none. It is the model that made the vectors of the index. nil means that
	// every query brings its vector.
	Embedder mapmatched.Embedder
	// Identity, when set, is the vector identity that the index must have;
	// another one, or an index without vectors, is refused as stale.
	Identity *VectorIdentity
	// ChunkPolicy, when not empty, is the chunk policy that the index must
	// have; another one is refused as stale.
	ChunkPolicy string
	// SkipChecksums opens without reading the files through: fast on an index
	// larger than memory. Sizes are checked all the same. Content that cannot
	// be right then shows as an error of the query that meets it.
	SkipChecksums bool
}

// attempts bounds how often Open starts again because the index was replaced
// while it was being opened.
const attempts = 10

// Open opens the index in the directory dir. The result never changes, even
// when the directory is replaced by a new index later on.
//
// Errors are of type *mapmatched.Error: of kind not found when there is no such
// directory, invalid when it is not an index or not one that fits the options
// (stale, mapmatched.ErrStaleIndex), corrupt when it is damaged.
func Open(ctx context.Context, dir string, opts *Options) (*Index, error) {
	const op = "open"
	if opts == nil {
		opts = &Options{}
	}
	if opts.Arm != "" && opts.Arm != ArmLexical && opts.Arm != ArmDense {
		return nil, fail(op, mapmatched.KindInvalid, fmt.Errorf("there is no arm %q: use %q or %q", opts.Arm, ArmLexical, ArmDense))
	}
	p, err := locate(dir)
	if err != nil {
		return nil, classify(op, err)
	}
	for attempt := 1; ; attempt++ {
		x, replaced, err := open(ctx, p, *opts)
		if err == nil {
			return x, nil
		}
		if !replaced || attempt == attempts {
			return nil, classify(op, fmt.Errorf("%s: %w", dir, err))
		}
	}
}

// open opens the index at p once. On an error it says whether another index has
// taken its place meanwhile.
func open(ctx context.Context, p place, opts Options) (x *Index, replaced bool, err error) {
	path, info, err := p.current()
	defer func() {
		if err != nil {
			_, now, serr := p.current()
			replaced = serr == nil && !os.SameFile(info, now)
		}
	}()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, fmt.Errorf("%w: make an index there with mmplug index", fs.ErrNotExist)
	case err != nil:
		return nil, false, err
	case !info.IsDir():
		return nil, false, fmt.Errorf("%w: it is a file and an index is a directory", errForeign)
	}
	root, err := os.OpenRoot(path) // files are found in it even after it is renamed
	if errors.Is(err, fs.ErrNotExist) {
		info = nil // renamed since we looked: whatever is there now is new to us
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = root.Close() }()
	if info, err = root.Stat("."); err != nil {
		return nil, false, err
	}
	x = &Index{opts: opts}
	if err := x.load(ctx, root); err != nil {
		x.unmap()
		return nil, false, err
	}
	return x, false, nil
}

// load reads the manifest and maps the files it lists.
func (x *Index) load(ctx context.Context, root *os.Root) error {
	m, err := readManifest(root)
	if err != nil {
		return err
	}
	x.manifest = *m
	if err := x.fits(); err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, f := range m.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if files[f.Name], err = x.open(ctx, root, f); err != nil {
			return err
		}
	}
	x.text, x.edges = files[textName], files[edgesName]
	x.chunks, x.order = view[uint64](files[chunksName]), view[uint32](files[orderName])
	x.vectors = view[float32](files[vectorsName])
	x.lexical, err = lexical.New(lexical.Arrays{
		Chunks:     m.Counts.Chunks,
		Terms:      files[termsName],
		Dictionary: view[uint64](files[dictionaryName]),
		Postings:   view[uint32](files[postingsName]),
		Impacts:    view[float64](files[impactsName]),
	})
	return err
}

// fits checks the manifest against this program and the options.
func (x *Index) fits() error {
	m, opts := &x.manifest, &x.opts
	if err := m.compatible(); err != nil {
		return err
	}
	if opts.ChunkPolicy != "" && opts.ChunkPolicy != m.ChunkPolicy {
		return stale("the chunk policy is %q, wanted %q", m.ChunkPolicy, opts.ChunkPolicy)
	}
	if opts.Identity != nil {
		if m.Vectors == nil {
			return stale("it has no vectors, wanted those of model %q", opts.Identity.Model)
		}
		if diff := m.Vectors.Differences(*opts.Identity); diff != nil {
			return stale("vectors: %s", strings.Join(diff, "; "))
		}
	}
	if opts.Arm == ArmDense && m.Vectors == nil {
		return errors.New("the dense arm needs vectors and the index has none: index with an embedding model, or use the lexical arm")
	}
	return nil
}

// readManifest reads the manifest, or says what the directory is instead.
func readManifest(root *os.Root) (*Manifest, error) {
	info, err := root.Stat(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := fs.ReadDir(root.FS(), ".")
		if err == nil && len(entries) == 0 {
			return nil, fmt.Errorf("%w: the directory is empty", errForeign)
		}
		return nil, fmt.Errorf("%w: it has no %s", errForeign, manifestName)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", errForeign, manifestName)
	}
	f, err := root.Open(manifestName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	m, err := ParseManifest(data)
	if errors.Is(err, mapmatched.ErrStaleIndex) {
		return nil, fmt.Errorf("%s %w", manifestName, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s %w", errDamaged, manifestName, err)
	}
	return m, nil
}

// open checks a file and maps it.
func (x *Index) open(ctx context.Context, root *os.Root, want FileInfo) ([]byte, error) {
	info, err := root.Stat(want.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(want.Name, "the file is missing")
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, damaged(want.Name, "it is not a regular file")
	}
	f, err := root.Open(want.Name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() != want.Size {
		head := make([]byte, 64)
		n, _ := io.ReadFull(f, head) // a short file is what this is about
		if isLFSPointer(head[:n]) {
			return nil, damaged(want.Name, "it %v", errLFSPointer)
		}
		return nil, damaged(want.Name, "it has %d bytes, wanted %d", info.Size(), want.Size)
	}
	if !x.opts.SkipChecksums {
		sum := sha256.New()
		if _, err := io.Copy(sum, contextReader{ctx, f}); err != nil {
			return nil, fmt.Errorf("%s: %w", want.Name, err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
			return nil, damaged(want.Name, "it has SHA-256 %s, wanted %s", got, want.SHA256)
		}
	}
	if want.Size == 0 {
		return nil, nil // an empty file cannot be mapped
	}
	b, err := disk.Map(f, int(want.Size))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map the file: %w", want.Name, err)
	}
	x.maps = append(x.maps, b)
	return b, nil
}

// contextReader reads until its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
