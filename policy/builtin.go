package policy

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed builtin/*.policy.yaml
var builtinFiles embed.FS

// Plain is the name of the built-in policy of the pure decoder: every section
// at its default.
const Plain = "plain"

// Conversational is the name of the built-in policy that was tuned on labelled
// conversations: context arms behind a gate, costs by kind of move, the reply
// and proposals. It is frozen with the report of its tuning.
const Conversational = "conversational"

const builtinExtension = ".policy.yaml"

// Builtins lists the names of the built-in policies in ascending order.
func Builtins() []string {
	files, _ := builtinFiles.ReadDir("builtin") // embedded, so it is there
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), builtinExtension)
	}
	return names
}

// Builtin returns a built-in policy by name.
func Builtin(name string) (*Policy, error) {
	if names := Builtins(); !slices.Contains(names, name) {
		return nil, fmt.Errorf("no built-in policy is named %q%s; there are %s (a file has the extension .yaml, .json or .toml)",
			name, didYouMean(name, names), strings.Join(names, ", "))
	}
	file := path.Join("builtin", name+builtinExtension)
	data, err := builtinFiles.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(Source{file, data})
}

// Open returns the built-in policy of a name without an extension, and the
// policy of the file otherwise.
func Open(nameOrFile string) (*Policy, error) {
	if _, err := FormatOf(nameOrFile); err != nil && !strings.ContainsAny(nameOrFile, `/\`) {
		return Builtin(nameOrFile)
	}
	return Load(nameOrFile)
}

// Template returns a policy file in YAML that gives every key at its default,
// each with a comment that says what it is.
func Template(name string) ([]byte, error) {
	p := Default()
	p.Name = name
	return commented(p)
}

// commented is a policy in YAML with a comment at each key.
func commented(p *Policy) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	docs := keyDocs()
	body, err := marshalYAML(treeOf(p), func(key string) string { return docs[key].comment() })
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# A policy of mmplug: everything that results depend on. A section may be left out, which\n" +
		"# gives it these defaults; one that is given is given whole. Check with: mmplug policy validate\n\n")
	b.Write(bytes.ReplaceAll(body, []byte("\n# "), []byte("\n\n# "))) // a blank line before each section
	return b.Bytes(), nil
}
