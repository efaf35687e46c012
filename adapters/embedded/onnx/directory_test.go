package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestOpenDirectory(t *testing.T) {
	d, err := openDirectory(tiny(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if d.name != "tiny-model" || d.pooling != poolMean || d.dimension != 4 || d.limit != 10 ||
		!slices.Equal(d.before, []int{2}) || !slices.Equal(d.after, []int{3}) {
		t.Errorf("got %+v", d)
	}
}

// The least limit counts, whichever file says it, and none may be there.
func TestLimit(t *testing.T) {
	for _, test := range []struct {
		sentence, words, transformer string
		want                         int
	}{
		{`{"max_seq_length": 10}`, `{"model_max_length": 12}`, `{"max_position_embeddings": 16}`, 10},
		{`{"max_seq_length": 20}`, `{"model_max_length": 12}`, `{"max_position_embeddings": 16}`, 12},
		{`{"max_seq_length": null}`, `{"model_max_length": 1e30}`, `{"max_position_embeddings": 16}`, 16},
		{``, ``, `{"max_position_embeddings": 514}`, 514},
		{`{}`, ``, ``, 0},
	} {
		d, err := openDirectory(tiny(t, map[string]string{
			"sentence_bert_config.json": test.sentence, "tokenizer_config.json": test.words, "config.json": test.transformer,
		}))
		if err != nil || d.limit != test.want {
			t.Errorf("%+v: limit %v, error %v", test, d, err)
		}
	}
}

func TestMaxTokens(t *testing.T) {
	for _, test := range []struct{ limit, asked, want int }{{0, 0, 256}, {512, 0, 256}, {128, 0, 128}, {512, 512, 512}, {0, 1000, 1000}, {128, 3, 3}} {
		got, err := (&directory{limit: test.limit, before: []int{0}, after: []int{1}}).maxTokens(test.asked)
		if err != nil || got != test.want {
			t.Errorf("%+v: got %d, %v", test, got, err)
		}
	}
	for _, test := range []struct {
		limit, asked int
		want         string
	}{{128, 129, "MaxTokens is 129 and the model takes 128"}, {128, 2, "MaxTokens is 2, and 2 of them are special"}, {2, 0, "2 of them"}} {
		_, err := (&directory{limit: test.limit, before: []int{0}, after: []int{1}}).maxTokens(test.asked)
		if !errors.Is(err, mapmatched.ErrInvalidConfig) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error %v", test, err)
		}
	}
}

// A name in config.json is of the model that another one was made from.
func TestName(t *testing.T) {
	for content, want := range map[string]string{
		`{"_name_or_path": "org/model"}`:       "tiny-model",
		`{"_name_or_path": "/home/me/model/"}`: "tiny-model",
		`{"_name_or_path": "./model"}`:         "tiny-model",
		`{"_name_or_path": ""}`:                "tiny-model",
		`{}`:                                   "tiny-model",
		``:                                     "tiny-model",
	} {
		d, err := openDirectory(tiny(t, map[string]string{"config.json": content}))
		if err != nil || d.name != want {
			t.Errorf("%s: name %v, error %v, want %q", content, d, err, want)
		}
	}
}

func TestPoolingFile(t *testing.T) {
	for content, want := range map[string]pooling{
		`{"word_embedding_dimension": 4, "pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false}`: poolMean,
		`{"word_embedding_dimension": 4, "pooling_mode_cls_token": true}`:                                    poolCLS,
		`{"word_embedding_dimension": 4, "pooling_mode_max_tokens": true, "include_prompt": true}`:           poolMax,
		`{"embedding_dimension": 4, "pooling_mode": "cls"}`:                                                  poolCLS,
		`{"embedding_dimension": 4, "pooling_mode": ["max"]}`:                                                poolMax,
	} {
		d, err := openDirectory(tiny(t, map[string]string{"1_Pooling/config.json": content}))
		if err != nil || d.pooling != want || d.dimension != 4 {
			t.Errorf("%s: %+v, %v", content, d, err)
		}
	}
}

func TestDirectoryFaults(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
	modules := func(kinds ...string) string {
		var list []string
		for _, kind := range kinds {
			list = append(list, `{"path": "1_Pooling", "type": "sentence_transformers.models.`+kind+`"}`)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	for _, test := range []struct {
		name, content, want string
		kind                mapmatched.Kind
	}{
		{"modules.json", "", "modules.json: no such file", mapmatched.KindNotFound},
		{"modules.json", "{", "modules.json is not the JSON it should be", mapmatched.KindCorrupt},
		{"modules.json", "[]", "the modules are ; only Transformer", mapmatched.KindInvalid},
		{"modules.json", modules("Transformer", "Pooling", "Dense"), "the modules are Transformer, Pooling, Dense", mapmatched.KindInvalid},
		{"modules.json", modules("CLIPModel"), "the modules are CLIPModel", mapmatched.KindInvalid},
		{"modules.json", `[{"path": "../x", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}]`, `module 0 has the path "../x"`, mapmatched.KindInvalid},
		{"1_Pooling/config.json", "", "1_Pooling/config.json: no such file", mapmatched.KindNotFound},
		{"1_Pooling/config.json", pointer, "1_Pooling/config.json is a Git LFS pointer", mapmatched.KindCorrupt},
		{"1_Pooling/config.json", `{"word_embedding_dimension": 4}`, `the pooling is []`, mapmatched.KindInvalid},
		{"1_Pooling/config.json", `{"word_embedding_dimension": 4, "pooling_mode": "lasttoken"}`, `the pooling is ["lasttoken"]`, mapmatched.KindInvalid},
		{"1_Pooling/config.json", `{"word_embedding_dimension": 4, "pooling_mode_weightedmean_tokens": true}`, `the pooling is ["weightedmean"]`, mapmatched.KindInvalid},
		{"1_Pooling/config.json", `{"word_embedding_dimension": 4, "pooling_mode_cls_token": true, "pooling_mode_max_tokens": true}`, `the pooling is ["cls" "max"]`, mapmatched.KindInvalid},
		{"1_Pooling/config.json", `{"word_embedding_dimension": 4, "pooling_mode": 3}`, `pooling_mode is 3`, mapmatched.KindInvalid},
		{"1_Pooling/config.json", `{"pooling_mode": "mean"}`, `word_embedding_dimension is 0`, mapmatched.KindInvalid},
		{"config_sentence_transformers.json", `{"prompts": {"query": "query: "}, "default_prompt_name": "query"}`, `default_prompt_name is "query"`, mapmatched.KindInvalid},
		{"sentence_bert_config.json", `{"do_lower_case": true}`, "do_lower_case is true", mapmatched.KindInvalid},
		{"sentence_bert_config.json", `{"max_seq_length": 0}`, "max_seq_length is 0", mapmatched.KindInvalid},
		{"sentence_bert_config.json", `{"max_seq_length": "ten"}`, "sentence_bert_config.json is not the JSON", mapmatched.KindCorrupt},
		{"tokenizer.json", "", "tokenizer.json: no such file", mapmatched.KindNotFound},
		{"tokenizer.json", pointer, "tokenizer.json is a Git LFS pointer", mapmatched.KindCorrupt},
		{"tokenizer.json", `{"version": "2.0"}`, `tokenizer.json: version is "2.0"`, mapmatched.KindInvalid},
		{"tokenizer.json", `{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}}, "post_processor": {"type": "Magic"}}`, "tokenizer.json: post_processor: Magic", mapmatched.KindInvalid},
	} {
		dir := tiny(t, map[string]string{test.name: test.content})
		_, err := Open(t.Context(), dir, nil)
		if err == nil || mapmatched.KindOf(err) != test.kind || !strings.HasPrefix(err.Error(), "onnx: open: "+dir+": ") ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: kind %q, error %v, want %q, %q", test.name, test.content, mapmatched.KindOf(err), err, test.kind, test.want)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none"), nil); mapmatched.KindOf(err) != mapmatched.KindNotFound || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := Open(t.Context(), "doc.go", nil); err == nil || !strings.Contains(err.Error(), "doc.go is a file") {
		t.Errorf("a file: %v", err)
	}
}

func TestModelFile(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\n"
	for _, test := range []struct {
		changes     map[string]string
		named, want string // want is the file, or part of the error
	}{
		{nil, "", "onnx/model.onnx"},
		{map[string]string{"onnx/model.onnx": "", "model.onnx": "x"}, "", "model.onnx"},
		{map[string]string{"model.onnx": "x"}, "", "onnx/model.onnx"},
		{nil, "onnx/no_types.onnx", "onnx/no_types.onnx"},
		{map[string]string{"onnx/model.onnx": ""}, "", "has no onnx/model.onnx and no model.onnx"},
		{nil, "onnx/none.onnx", "has no onnx/none.onnx"},
		{map[string]string{"onnx/model.onnx": pointer}, "", "onnx/model.onnx is a Git LFS pointer"},
		{nil, "onnx/external.onnx", "onnx/external.onnx keeps weights in another file"},
	} {
		d, err := openDirectory(tiny(t, test.changes))
		if err != nil {
			t.Fatal(err)
		}
		if err = d.readModel(test.named); err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v: %v", test, err)
			}
		} else if d.modelFile != test.want || len(d.model) == 0 {
			t.Errorf("%+v: read %s", test, d.modelFile)
		}
	}
}

// The revision is what sha256sum prints for the files that were read, hashed.
func TestRevision(t *testing.T) {
	files := []string{"1_Pooling/config.json", "config.json", "modules.json", "onnx/model.onnx", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"}
	revision := func(dir string) string {
		d, err := openDirectory(dir)
		if err == nil {
			err = d.readModel("")
		}
		if err != nil {
			t.Fatal(err)
		}
		return d.revision(0)
	}
	dir := tiny(t, nil)
	first := revision(dir)
	var lines strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		lines.WriteString(hex.EncodeToString(sum[:]) + "  " + name + "\n")
	}
	sum := sha256.Sum256([]byte(lines.String()))
	if want := hex.EncodeToString(sum[:]); first != want {
		t.Errorf("revision %s, want %s", first, want)
	}
	for _, name := range regular(t, dir) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(slices.Clone(data), ' '), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if changed := revision(dir) != first; changed != slices.Contains(files, name) {
			t.Errorf("%s changed the revision: %v", name, changed)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if again := revision(dir); again != first {
		t.Errorf("the same files have the revisions %s and %s", first, again)
	}
}

// FuzzDirectory: no configuration panics or gives a directory that cannot be
// used.
func FuzzDirectory(f *testing.F) {
	for _, name := range []string{"modules.json", "1_Pooling/config.json", "sentence_bert_config.json"} {
		data, err := os.ReadFile(filepath.Join("testdata/tiny", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, data)
	}
	f.Add("1_Pooling/config.json", []byte(`{"embedding_dimension": 4, "pooling_mode": ["max"]}`))
	dir := tiny(f, nil)
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if name != "modules.json" && name != "1_Pooling/config.json" && name != "sentence_bert_config.json" {
			t.Skip()
		}
		path := filepath.Join(dir, name)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(path, old, 0o644); err != nil {
				t.Fatal(err)
			}
		}()
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := openDirectory(dir)
		if err == nil && (d.dimension < 1 || !d.pooling.known() || d.limit < 0 || d.tokenizer == nil || !filepath.IsLocal(filepath.Join(d.inner, "x"))) {
			t.Fatalf("%s %q: %+v", name, content, d)
		}
	})
}
