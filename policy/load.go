package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Format is a form that policy files are written in.
type Format string

// The formats.
const (
	YAML Format = "yaml"
	JSON Format = "json"
	TOML Format = "toml"
)

// FormatOf returns the format of a file by its extension: .yaml or .yml, .json
// or .toml.
func FormatOf(path string) (Format, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return YAML, nil
	case ".json":
		return JSON, nil
	case ".toml":
		return TOML, nil
	}
	return "", fmt.Errorf("the name of a policy file ends in .yaml, .json or .toml, not in %q", filepath.Ext(path))
}

// Source is the content of a policy file.
type Source struct {
	Path string // names it in messages, and its extension tells the format
	Data []byte
}

// Load reads a policy from a file, or from several that give different parts
// of one, in any order: a key in two of them is an error, except "schema",
// which each has. Whatever is wrong is reported at once, as Problems with file
// and line. Sections that no file gives have their defaults. What is not a
// regular file is refused.
//
// The environment has no say in a policy.
func Load(paths ...string) (*Policy, error) {
	sources := make([]Source, len(paths))
	for i, path := range paths {
		if _, err := FormatOf(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		sources[i] = Source{path, data}
	}
	return Parse(sources...)
}

// openRegular opens a file. What is not a regular one is not opened: a pipe would
// make the caller wait.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: give one", path)
	}
	return os.Open(path)
}

// readFile reads no more of a file than shows that it is too large.
func readFile(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, MaxFileSize+1))
}

// Parse is Load for contents that have been read.
func Parse(sources ...Source) (*Policy, error) {
	if len(sources) == 0 {
		return nil, errors.New("no policy file was given")
	}
	s, files, readable := newStrict(), koanf.New("."), true
	for i, source := range sources {
		if slices.ContainsFunc(sources[:i], func(other Source) bool { return other.Path == source.Path }) {
			return nil, fmt.Errorf("%s: the file is given twice", source.Path)
		}
		readable = s.load(files, source) && readable
	}
	if !readable { // what the others lack may be in a file that cannot be read
		return nil, s.problems.inOrder(sources)
	}
	s.whole(len(sources))
	defaults := treeOf(Default())
	for _, table := range tablePaths() {
		if _, given := s.places[table]; given { // it is one value
			maps.Delete(defaults, strings.Split(table, "."))
		}
	}
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(defaults, ""), nil); err != nil {
		return nil, err
	}
	if err := k.Merge(files); err != nil {
		return nil, err
	}
	p := new(Policy)
	decoding := koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: &mapstructure.DecoderConfig{ErrorUnused: true}}
	if err := k.UnmarshalWithConf("", p, decoding); err != nil {
		return nil, fmt.Errorf("%s: %w", sources[0].Path, err)
	}
	s.judge(p)
	if len(s.problems) > 0 {
		return nil, s.problems.inOrder(sources)
	}
	return p, nil
}

// inOrder sorts problems by the order of the files and then by line, and cuts
// the list where nobody would read on.
func (p Problems) inOrder(sources []Source) Problems {
	position := func(path string) int {
		return slices.IndexFunc(sources, func(s Source) bool { return s.Path == path })
	}
	slices.SortStableFunc(p, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(position(a.Path), position(b.Path)), cmp.Compare(a.Line, b.Line))
	})
	if more := len(p) - maxProblems; more > 0 {
		p = append(p[:maxProblems:maxProblems], &Problem{Path: p[maxProblems].Path, Err: fmt.Errorf("%d more problems are not listed", more)})
	}
	return p
}

// load adds what a file says to k and returns whether the file could be read.
func (s *strict) load(k *koanf.Koanf, source Source) bool {
	s.file = source.Path
	format, err := FormatOf(source.Path)
	if err != nil {
		s.add(0, "", "%w", err)
		return false
	}
	one := koanf.New(".")
	if err := one.Load(rawbytes.Provider(source.Data), &fileParser{format, s}); err != nil {
		var p *Problem
		if !errors.As(err, &p) {
			p = &Problem{Err: err}
		}
		p.Path = source.Path
		s.problems = append(s.problems, p)
		return false
	}
	if err := k.Merge(one); err != nil {
		s.add(0, "", "%w", err)
		return false
	}
	return true
}

// whole reports what is missing in the files together.
func (s *strict) whole(files int) {
	if _, given := s.places["name"]; !given && !s.meant["name"] {
		s.add(0, "name", "missing key `name`: it tells policies apart for people")
	}
	for _, f := range fieldsOf(reflect.TypeFor[Policy]()) {
		if _, given := s.places[f.key]; given && f.typ.Kind() == reflect.Struct && !s.meant[f.key] {
			s.complete(f.typ, f.key)
		}
	}
	if at, frozen := s.places["evidence"]; frozen && files > 1 {
		s.problems = append(s.problems, &Problem{at.file, at.line, "evidence",
			fmt.Errorf("%w: it is one file and cannot be combined with others", mapmatched.ErrPolicyFrozen)})
	}
}

// judge adds the faults of a policy's values, except where the file is at
// fault already.
func (s *strict) judge(p *Policy) {
	known := map[string]bool{}
	for _, problem := range s.problems {
		known[problem.Key] = true
	}
	unread := len(s.problems) > 0
	at := func(key string, err error) {
		where, found := s.places[key]
		for parent := key; !found && parent != ""; where, found = s.places[parent] {
			parent = parent[:max(strings.LastIndexByte(parent, '.'), 0)]
		}
		if !found {
			where.file = s.file
		}
		s.problems = append(s.problems, &Problem{where.file, where.line, key, err})
	}
	err := p.Validate()
	for _, f := range Faults(err) {
		if known[f.Key] || unread && f.Key == "digest" {
			continue
		}
		at(f.Key, f)
	}
	switch _, frozen := s.places["evidence"]; {
	case frozen && unread:
		at("evidence", fmt.Errorf("%w: the file has evidence, but what it says is no longer what was frozen (digest %s): restore it",
			mapmatched.ErrPolicyFrozen, cmp.Or(p.StatedDigest, "unknown")))
	case errors.Is(err, mapmatched.ErrPolicyFrozen):
		at("digest", p.checkDigest())
	}
}

// fileParser makes a format one that koanf loads, strictly, and writes.
type fileParser struct {
	format Format
	strict *strict
}

// Unmarshal implements koanf.Parser. What can be read but may not be there is
// noted; what cannot be read at all is the error.
func (f *fileParser) Unmarshal(data []byte) (map[string]any, error) {
	if err := checkBytes(data); err != nil {
		return nil, err
	}
	read := map[Format]parser{YAML: readYAML, JSON: readJSON, TOML: readTOML}[f.format]
	root, problems := read(data)
	if root == nil {
		return nil, problems[0]
	}
	for _, p := range problems {
		p.Path = f.strict.file
		f.strict.problems = append(f.strict.problems, p)
	}
	if root.shape == shapeNull {
		return nil, errors.New(emptyFile)
	}
	if root.shape != shapeMapping {
		return nil, &Problem{Line: root.line, Err: fmt.Errorf("the file is %s: a policy is a mapping of sections", root.describe())}
	}
	if err := checkSchema(root); err != nil {
		return nil, err
	}
	return f.strict.section(reflect.TypeFor[Policy](), root, ""), nil
}

// checkSchema looks for the schema first: of a file that has another one
// nothing else is to be said.
func checkSchema(root *branch) error {
	for _, e := range root.entries {
		if e.key != "schema" {
			continue
		}
		if e.value.shape != shapeText || e.value.text != SchemaV1 {
			return &Problem{Line: e.line, Key: "schema", Err: fmt.Errorf("`schema` is %s, this release reads %q", e.value.describe(), SchemaV1)}
		}
		return nil
	}
	return &Problem{Line: 1, Key: "schema", Err: fmt.Errorf("missing key `schema`: a policy file says schema: %s", SchemaV1)}
}
