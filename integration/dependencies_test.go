package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mapmatched/mmplug"

// allowed says, for the packages below a path, what they may import beside the
// standard library and each other. The longest path that fits counts.
var allowed = map[string][]string{
	"mapmatched":             {},
	"mapmatched/registry":    {module + "/mapmatched"},
	"mapmatched/adaptertest": {module + "/mapmatched"},
	"mapmatched/eval":        {module + "/mapmatched", module + "/policy", module + "/adapters/embedded", module + "/graphbuild", module + "/internal/kernel"},
	"graphbuild":             {module + "/mapmatched", module + "/internal/disk", module + "/internal/kernel", "github.com/yuin/goldmark", "golang.org/x/net"},
	"graphbuild/tokenizer":   {module + "/mapmatched", "golang.org/x/text", "github.com/rivo/uniseg"},
	"internal/disk":          {"golang.org/x/sys"},
	"internal/rings":         {module + "/mapmatched"},
	"internal/kernel":        {"golang.org/x/sys"},
	"adapters/graphfile":     {module + "/mapmatched", module + "/mapmatched/registry", module + "/graphbuild"},
	"adapters/embedded":      {module + "/mapmatched", module + "/mapmatched/registry", module + "/internal/disk", module + "/internal/kernel", "golang.org/x/sys", "golang.org/x/text"},
	"adapters/faiss":         {module + "/mapmatched", module + "/mapmatched/registry", module + "/internal/disk", module + "/internal/kernel"},
	"adapters/embedded/onnx": {module + "/mapmatched", module + "/mapmatched/registry", module + "/adapters/embedded", module + "/graphbuild/tokenizer", "github.com/yalue/onnxruntime_go"},
	"adapters/weaviate":      {module + "/mapmatched", module + "/mapmatched/registry", module + "/internal/rings", "github.com/weaviate", "github.com/go-openapi/strfmt", "github.com/google/uuid", "golang.org/x/oauth2", "google.golang.org/grpc", "google.golang.org/protobuf"},
	"adapters/langchaingo":   {module + "/mapmatched", module + "/mapmatched/registry", "github.com/tmc/langchaingo"},
	"adapters/qdrant":        {module + "/mapmatched", module + "/mapmatched/registry", module + "/internal/rings", "github.com/qdrant/go-client", "google.golang.org/grpc", "google.golang.org/protobuf"},
	"policy":                 {module + "/mapmatched", "github.com/knadh/koanf", "github.com/go-viper/mapstructure", "github.com/pelletier/go-toml", "go.yaml.in/yaml"},
	"cmd/mmplug":             {module, "github.com/spf13", "github.com/tmc/langchaingo", "golang.org/x/sys", "golang.org/x/term", "golang.org/x/text"},
	"plugins":                {module + "/mapmatched", module + "/mapmatched/registry", module + "/internal/disk", "github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog", "google.golang.org/grpc", "google.golang.org/protobuf"},
	"plugins/plugintest":     {module + "/mapmatched", module + "/mapmatched/adaptertest", module + "/plugins", "google.golang.org/grpc"},
	"plugins/cmd":            {module + "/mapmatched", module + "/mapmatched/registry", module + "/adapters/weaviate", module + "/plugins"},
	"plugins/python":         {},
	"plugins/rerank":         {module + "/mapmatched"},
	"examples":               {module, "github.com/tmc/langchaingo"},
	"integration":            {},
	"integration/qdranttest": {"github.com/qdrant/go-client", "google.golang.org/grpc", "google.golang.org/protobuf"},
}

type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// list is go list -json of some packages.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,Imports,Deps"}, args...)...)
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.Bytes())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func below(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}

// rule finds the entry of allowed for a package of this module.
func rule(importPath string) (root string, imports []string, found bool) {
	for root = strings.TrimPrefix(importPath, module+"/"); root != "."; root = path.Dir(root) {
		if imports, found = allowed[root]; found {
			return module + "/" + root, imports, true
		}
	}
	return "", nil, false
}

func TestImports(t *testing.T) {
	standard := map[string]bool{}
	for _, p := range list(t, "std") {
		standard[p.ImportPath] = true
	}
	packages := list(t, "./...")
	if len(packages) < len(allowed) {
		t.Fatalf("%d packages, fewer than there are rules", len(packages))
	}
	for _, p := range packages {
		root, imports, found := rule(p.ImportPath)
		if !found {
			t.Errorf("%s has no rule: add it to allowed", p.ImportPath)
			continue
		}
		for _, dep := range p.Imports {
			if standard[dep] || below(dep, root) {
				continue
			}
			if !slices.ContainsFunc(imports, func(prefix string) bool {
				return dep == prefix || strings.HasPrefix(dep, prefix+"/") && (prefix != module+"/mapmatched")
			}) {
				t.Errorf("%s may not import %s", p.ImportPath, dep)
			}
		}
		if root == module+"/mapmatched" {
			for _, dep := range p.Deps {
				if !standard[dep] && dep != module+"/mapmatched" {
					t.Errorf("%s depends on %s: the core stands on the standard library alone", p.ImportPath, dep)
				}
			}
		}
	}
}
