package onnx

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
)

// directory is what a sentence-transformers directory says.
type directory struct {
	dir       string
	inner     string // slash-separated path of the Transformer module in it
	name      string
	pooling   pooling
	dimension int
	limit     int // tokens of a text, 0 when the directory sets none
	tokenizer *tokenizer.Tokenizer
	before    []int // special tokens before a text
	after     []int // and after it

	modelFile string   // slash-separated path in the directory
	model     []byte   // its content
	sums      []string // "SHA-256  path" of every file read
}

// openDirectory reads all of a directory but the model.
func openDirectory(dir string) (*directory, error) {
	info, err := os.Stat(dir)
	var fault *fs.PathError
	if errors.As(err, &fault) {
		return nil, fmt.Errorf("model directory %s: %w", dir, fault.Err)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; give the directory of a sentence-transformers model", dir)
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &directory{dir: dir, name: filepath.Base(whole)}
	for _, read := range []func() error{d.readModules, d.readPrompts, d.readLimit, d.readTokenizer} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	return d, nil
}

// read returns the content of a file, which the revision covers from then on.
func (d *directory) read(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(d.dir, filepath.FromSlash(name)))
	var fault *fs.PathError
	switch {
	case errors.As(err, &fault):
		return nil, fmt.Errorf("%s: %w", name, fault.Err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")):
		return nil, fmt.Errorf("%w: %s is a Git LFS pointer, not the file itself: fetch it with git lfs pull", errDamaged, name)
	case len(data) == 0:
		return nil, fmt.Errorf("%w: %s is empty: get it again", errDamaged, name)
	}
	sum := sha256.Sum256(data)
	d.sums = append(d.sums, hex.EncodeToString(sum[:])+"  "+name)
	return data, nil
}

// revision is the SHA-256 of the lines "SHA-256  path" of the files read, each
// ended by a line feed, in the order of their paths; and of a last line
// "max_tokens N" when N, if it is not 0, tokens of a text are used that are not
// what the directory and the package set.
func (d *directory) revision(maxTokens int) string {
	lines := slices.SortedFunc(slices.Values(d.sums), func(a, b string) int {
		return strings.Compare(a[2*sha256.Size:], b[2*sha256.Size:])
	})
	if maxTokens > 0 {
		lines = append(lines, fmt.Sprintf("max_tokens %d", maxTokens))
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
	return hex.EncodeToString(sum[:])
}

// readJSON decodes a file. Keys that into lacks are left alone: the files hold
// much that has no bearing on vectors.
func (d *directory) readJSON(name string, into any) error {
	data, err := d.read(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s is not the JSON it should be: %w", errDamaged, name, err)
	}
	return nil
}

// readOptional is readJSON of a file that may be absent.
func (d *directory) readOptional(name string, into any) error {
	if err := d.readJSON(name, into); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *directory) readModules() error {
	var modules []struct{ Path, Type string }
	err := d.readJSON("modules.json", &modules)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: a sentence-transformers directory has one, which says how vectors are made", err)
	}
	if err != nil {
		return err
	}
	kinds := make([]string, len(modules))
	for i, m := range modules {
		kinds[i] = m.Type[strings.LastIndexByte(m.Type, '.')+1:]
		if m.Path != "" && !filepath.IsLocal(filepath.FromSlash(m.Path)) {
			return fmt.Errorf("modules.json: module %d has the path %q, which leads out of the directory", i, m.Path)
		}
	}
	if got := strings.Join(kinds, ", "); got != "Transformer, Pooling" && got != "Transformer, Pooling, Normalize" {
		return fmt.Errorf("modules.json: the modules are %s; only Transformer, Pooling and then Normalize or nothing are supported", got)
	}
	d.inner = modules[0].Path
	return d.readPooling(path.Join(modules[1].Path, "config.json"))
}

// readPooling reads the configuration of the Pooling module, in which old
// versions have a switch for every mode and new ones name the mode.
func (d *directory) readPooling(name string) error {
	var c struct {
		Dimension     *int            `json:"embedding_dimension"`
		WordDimension *int            `json:"word_embedding_dimension"`
		Mode          json.RawMessage `json:"pooling_mode"`
		CLS           bool            `json:"pooling_mode_cls_token"`
		Mean          bool            `json:"pooling_mode_mean_tokens"`
		Max           bool            `json:"pooling_mode_max_tokens"`
		SqrtLen       bool            `json:"pooling_mode_mean_sqrt_len_tokens"`
		WeightedMean  bool            `json:"pooling_mode_weightedmean_tokens"`
		LastToken     bool            `json:"pooling_mode_lasttoken"`
	}
	if err := d.readJSON(name, &c); err != nil {
		return err
	}
	var modes []string
	for _, m := range []struct {
		name string
		on   bool
	}{
		{"cls", c.CLS}, {"mean", c.Mean}, {"max", c.Max},
		{"mean_sqrt_len_tokens", c.SqrtLen}, {"weightedmean", c.WeightedMean}, {"lasttoken", c.LastToken},
	} {
		if m.on {
			modes = append(modes, m.name)
		}
	}
	if len(c.Mode) > 0 {
		var one string
		if json.Unmarshal(c.Mode, &one) == nil {
			modes = []string{one}
		} else if err := json.Unmarshal(c.Mode, &modes); err != nil {
			return fmt.Errorf("%s: pooling_mode is %s, want a name", name, c.Mode)
		}
	}
	if len(modes) != 1 || !pooling(modes[0]).known() {
		return fmt.Errorf("%s: the pooling is %q, want one of mean, cls and max", name, modes)
	}
	d.pooling = pooling(modes[0])
	switch {
	case c.Dimension != nil:
		d.dimension = *c.Dimension
	case c.WordDimension != nil:
		d.dimension = *c.WordDimension
	}
	if d.dimension < 1 {
		return fmt.Errorf("%s: word_embedding_dimension is %d, want at least 1", name, d.dimension)
	}
	return nil
}

// readPrompts refuses a prompt that is set before every text.
func (d *directory) readPrompts() error {
	const name = "config_sentence_transformers.json"
	var c struct {
		Default string `json:"default_prompt_name"`
	}
	if err := d.readOptional(name, &c); err != nil {
		return err
	}
	if c.Default != "" {
		return fmt.Errorf("%s: default_prompt_name is %q; prompts are not supported: use a model without", name, c.Default)
	}
	return nil
}

// readLimit reads how many tokens of a text the model takes, special tokens
// included: the least of what the files say.
func (d *directory) readLimit() error {
	var sentence struct {
		MaxLength *float64 `json:"max_seq_length"`
		Lower     bool     `json:"do_lower_case"`
	}
	var words struct {
		MaxLength *float64 `json:"model_max_length"` // 1e30 means none
	}
	var transformer struct {
		Positions *float64 `json:"max_position_embeddings"`
	}
	file := func(name string) string { return path.Join(d.inner, name) }
	if err := errors.Join(
		d.readOptional(file("sentence_bert_config.json"), &sentence),
		d.readOptional(file("tokenizer_config.json"), &words),
		d.readOptional(file("config.json"), &transformer),
	); err != nil {
		return err
	}
	if sentence.Lower {
		return fmt.Errorf("%s: do_lower_case is true, which is not supported: let the normalizer of tokenizer.json do it", file("sentence_bert_config.json"))
	}
	for _, limit := range []struct {
		key   string
		value *float64
	}{{"max_seq_length", sentence.MaxLength}, {"model_max_length", words.MaxLength}, {"max_position_embeddings", transformer.Positions}} {
		switch v := limit.value; {
		case v == nil || *v > 1<<30:
		case *v < 1:
			return fmt.Errorf("%s is %v, want at least 1", limit.key, *v)
		case d.limit == 0 || int(*v) < d.limit:
			d.limit = int(*v)
		}
	}
	return nil
}

func (d *directory) readTokenizer() error {
	name := path.Join(d.inner, "tokenizer.json")
	data, err := d.read(name)
	if err != nil {
		return err
	}
	if d.tokenizer, err = tokenizer.Parse(data); err == nil {
		d.before, d.after, err = d.tokenizer.Special()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// externalData is in an ONNX file that keeps weights elsewhere, where the
// revision would not cover them: the key "location", as protobuf encodes it, of
// the entry that says where.
var externalData = []byte("\x0a\x08location")

// readModel reads the ONNX file: the one named, or the one in a usual place.
func (d *directory) readModel(named string) error {
	places := []string{path.Join(d.inner, "onnx/model.onnx"), path.Join(d.inner, "model.onnx")}
	if named != "" {
		places = []string{filepath.ToSlash(named)}
	}
	for _, d.modelFile = range places {
		var err error
		d.model, err = d.read(d.modelFile)
		if err == nil && bytes.Contains(d.model, externalData) {
			err = fmt.Errorf("%s keeps weights in another file, which is not supported: save the model in one file", d.modelFile)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", d.dir, err)
		}
	}
	return fmt.Errorf("%s has no %s: %w; export the model to ONNX", d.dir, strings.Join(places, " and no "), fs.ErrNotExist)
}
