package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/plugins/python"
)

//go:embed plugin_new
var projectTemplates embed.FS

// projectDescriptions are the plugins that there is a project for.
var projectDescriptions = map[string]string{
	"provider": "finds the chunks that share words with the question",
	"reranker": "scores by the share of the question's words that a chunk has",
}

const modulePath = "github.com/mapmatched/mmplug"

// project is what a new plugin's project is made from.
type project struct {
	Kind, Name, Language string
	ModuleDir            string // directory of this module, "" for the one that is published
	Version              string // of this module
}

// Service is the name of the plugin's service.
func (p project) Service() string { return strings.ToUpper(p.Kind[:1]) + p.Kind[1:] }

// Description is one line about the plugin.
func (p project) Description() string { return projectDescriptions[p.Kind] }

// Binary is the name of the plugin's executable file.
func (p project) Binary() string { return "mmplug-" + p.Kind + "-" + p.Name }

func newPluginNew(std stdio) *cobra.Command {
	p := project{}
	var out string
	cmd := &cobra.Command{
		Use:   "new --kind reranker|provider --lang go|python --out DIR",
		Short: "Write the project of a new plugin, which builds and passes plugin test",
		Long: `Write the project of a new plugin into a directory that is not there yet or is
empty. It builds as it is and passes "mmplug plugin test"; README.md says how.

A project in Go requires the version of this module that the program was built
from. With --module-dir, which a development build needs, it uses a checkout.`,
		Example: `  mmplug plugin new --kind reranker --lang go --out mmplug-reranker-mine
  mmplug plugin new --kind provider --lang python --name wiki --out wiki`,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return usageError{errors.New("say where the project is to be: --out DIR")}
			}
			if err := p.complete(out); err != nil {
				return usageError{err}
			}
			files, err := p.files()
			if err != nil {
				return err
			}
			if err := writeProject(out, files); err != nil {
				return err
			}
			build := "go build -mod=mod -o " + p.Binary() + " ."
			if p.Language == "python" {
				build = "./build"
			}
			_, err = fmt.Fprintf(std.out, "%s: a %s in %s; next:\n  cd %s\n  %s\n  mmplug plugin test ./%s\n", out, p.Kind, p.Language, out, build, p.Binary())
			return err
		},
	}
	cmd.Flags().StringVar(&p.Kind, "kind", "", "what the plugin is: reranker or provider (required)")
	cmd.Flags().StringVar(&p.Language, "lang", "go", "language: go or python")
	cmd.Flags().StringVarP(&out, "out", "o", "", "directory to write (required)")
	cmd.Flags().StringVar(&p.Name, "name", "", "name of the plugin, of a-z, 0-9 and '-' (default: from the directory)")
	cmd.Flags().StringVar(&p.ModuleDir, "module-dir", "", "checkout of this module that a project in Go uses (default: the published version)")
	_ = cmd.MarkFlagDirname("out") // for completion; the flags are there
	_ = cmd.MarkFlagDirname("module-dir")
	return cmd
}

var pluginName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// complete checks what was given and fills in what was not.
func (p *project) complete(out string) error {
	if projectDescriptions[p.Kind] == "" {
		return fmt.Errorf("--kind is %q: there are projects for reranker and provider", p.Kind)
	}
	if p.Language != "go" && p.Language != "python" {
		return fmt.Errorf("--lang is %q: there are projects in go and python", p.Language)
	}
	if p.Name == "" {
		dir, err := filepath.Abs(out)
		if err != nil {
			return err
		}
		p.Name = strings.TrimPrefix(filepath.Base(dir), "mmplug-"+p.Kind+"-")
	}
	if !pluginName.MatchString(p.Name) || len(p.Name) > 64 {
		return fmt.Errorf("the name of a plugin is made of a-z, 0-9 and single '-', which %q is not: give one with --name", p.Name)
	}
	if p.Language != "go" {
		return nil
	}
	p.Version, _ = toolVersion()
	if p.ModuleDir == "" {
		if p.Version == "devel" || strings.Contains(p.Version, "+dirty") {
			return errors.New("this program is a development build, whose version is not published: say where its source is with --module-dir DIR")
		}
		return nil
	}
	dir, err := filepath.Abs(p.ModuleDir)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return cannot("read", filepath.Join(dir, "go.mod"), err)
	}
	if !bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
		return fmt.Errorf("--module-dir: %s is not a checkout of %s", p.ModuleDir, modulePath)
	}
	p.ModuleDir, p.Version = filepath.ToSlash(dir), "v0.0.0"
	return nil
}

// projectFile is a file of a project.
type projectFile struct {
	path string // with slashes, relative
	data []byte
	mode fs.FileMode
}

// files makes the files of the project.
func (p *project) files() ([]projectFile, error) {
	type source struct {
		path, template string
		mode           fs.FileMode
	}
	var sources []source
	var files []projectFile
	switch p.Language {
	case "go":
		sources = []source{
			{"README.md", "go/README.md", 0o644}, {"go.mod", "go/go.mod", 0o644},
			{"main.go", "go/main.go", 0o644}, {p.Kind + ".go", "go/" + p.Kind + ".go", 0o644},
		}
	case "python":
		sources = []source{
			{"README.md", "python/README.md", 0o644}, {"build", "python/build", 0o755},
			{"src/__main__.py", "python/" + p.Kind + ".py", 0o644},
		}
		files = []projectFile{{"src/mmplug_plugin.py", python.Helper, 0o644}, {"src/mmplug_v1.pb", python.Descriptors, 0o644}}
	}
	for _, f := range sources {
		text, err := fs.ReadFile(projectTemplates, "plugin_new/"+f.template+".tmpl")
		if err != nil {
			return nil, err
		}
		t, err := template.New(f.path).Parse(string(text))
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, p); err != nil {
			return nil, err
		}
		files = append(files, projectFile{f.path, b.Bytes(), f.mode})
	}
	return files, nil
}

// writeProject writes files into a directory that is new or empty.
func writeProject(dir string, files []projectFile) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s has something in it already: give an empty directory", dir)
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return cannot("make", filepath.Dir(path), err)
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return cannot("write", path, err)
		}
	}
	return nil
}
