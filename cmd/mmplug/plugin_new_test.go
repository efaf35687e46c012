package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/plugins/plugintest"
)

// Every project builds as README.md says, and what it builds passes the suite.
func TestPluginNew(t *testing.T) {
	python := exec.Command("/usr/bin/python3", "-c", "import grpc, google.protobuf, cryptography").Run()
	for _, kind := range []string{"reranker", "provider"} {
		for _, language := range []string{"go", "python"} {
			t.Run(kind+"/"+language, func(t *testing.T) {
				t.Parallel()
				if language == "python" && python != nil {
					if os.Getenv("MMPLUG_TEST_PYTHON") != "" {
						t.Fatalf("python3: %v", python)
					}
					t.Skip("SKIP: /usr/bin/python3 lacks packages: apt-get install python3-grpcio python3-protobuf python3-cryptography")
				}
				dir := filepath.Join(t.TempDir(), "mmplug-"+kind+"-mine")
				args := []string{"plugin", "new", "--kind", kind, "--lang", language, "--out", dir}
				if language == "go" {
					args = append(args, "--module-dir", filepath.Join("..", ".."))
				}
				if out := fine(t, "", args...); !strings.Contains(out, "mmplug plugin test ./mmplug-"+kind+"-mine\n") {
					t.Errorf("output: %s", out)
				}
				commands := []string{"gofmt -l .", "go build -mod=mod -o mmplug-" + kind + "-mine .", "go vet ."}
				if language == "python" {
					commands = []string{"./build"}
				}
				for _, command := range commands {
					parts := strings.Fields(command)
					cmd := exec.Command(parts[0], parts[1:]...)
					cmd.Dir = dir
					if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 && parts[0] == "gofmt" {
						t.Fatalf("%s: %v: %s", command, err, out)
					}
				}
				if readme := get(t, filepath.Join(dir, "README.md")); !strings.Contains(readme, "\n"+commands[len(commands)/2][:7]) {
					t.Errorf("README.md does not say %q:\n%s", commands[len(commands)/2], readme)
				}
				r := mmplug(t, "", "plugin", "test", "--json", filepath.Join(dir, "mmplug-"+kind+"-mine"))
				report := unmarshal[plugintest.Report](t, r.out)
				if r.code != exitOK || r.err != "" || !report.OK() || report.Info.Name != "mine" || report.Count("ok") < 10 {
					t.Errorf("exit status %d, %s\n%s", r.code, r.err, r.out)
				}
				fails(t, exitFailed, "", args, dir, "empty directory")
			})
		}
	}
}

func TestPluginNewRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine")
	base := []string{"plugin", "new", "--lang", "python", "--kind", "reranker"}
	for _, c := range []struct {
		code  int
		args  []string
		texts []string
	}{
		{exitUsage, base, []string{"--out DIR"}},
		{exitUsage, []string{"plugin", "new", "--out", dir}, []string{"--kind", "reranker and provider"}},
		{exitUsage, append(base, "--out", dir, "--kind", "oracle"), []string{"oracle"}},
		{exitUsage, append(base, "--out", dir, "--lang", "perl"), []string{"perl", "go and python"}},
		{exitUsage, append(base, "--out", dir, "--name", "Mine!"), []string{"Mine!", "--name"}},
		{exitUsage, append(base, "--out", filepath.Join(dir, "a_b")), []string{"a_b", "--name"}},
		{exitUsage, append(base, "--out", dir, "--lang", "go"), []string{"development build", "--module-dir"}},
		{exitUsage, append(base, "--out", dir, "--lang", "go", "--module-dir", dir), []string{"go.mod"}},
		{exitUsage, append(base, "--out", dir, "--lang", "go", "--module-dir", moduleOf(t, "example.com/other")), []string{"not a checkout of " + modulePath}},
	} {
		fails(t, c.code, "", c.args, c.texts...)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused project left something behind")
	}
}

// moduleOf makes the directory of a module.
func moduleOf(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module "+path+"\n")
	return dir
}

func TestPluginTest(t *testing.T) {
	path := filepath.Join(pluginDir(t), "mmplug-reranker-mmr")
	out := fine(t, "", "plugin", "test", path)
	for _, want := range []string{"mmr 1.0.0: reranker\n", "protocol  stays up when calls are cancelled", "reranker  awkward texts", " ok, 0 failed, "} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	script := filepath.Join(t.TempDir(), "mmplug-reranker-broken")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := mmplug(t, "", "plugin", "test", script)
	if r.code != exitCheck || r.err != "" || !strings.Contains(r.out, "hello") || !strings.Contains(r.out, "0 ok, 1 failed") {
		t.Errorf("a broken plugin: exit status %d, %s%s", r.code, r.out, r.err)
	}
	fails(t, exitFailed, "", []string{"plugin", "test", script + "-not"}, script+"-not", "check the path")
	fails(t, exitUsage, "", []string{"plugin", "test"}, "0 arguments given")
}

func TestPluginBench(t *testing.T) {
	path := filepath.Join(pluginDir(t), "mmplug-reranker-overlap")
	got := unmarshal[struct{ Measurements []plugintest.Measurement }](t, fine(t, "", "plugin", "bench", "--runs", "3", "--json", path)).Measurements
	var what []string
	for _, m := range got {
		what = append(what, m.Name)
		if m.Median <= 0 || m.Slowest < m.Median {
			t.Errorf("%+v", m)
		}
	}
	if strings.Join(what, ", ") != "start and end, empty call, rerank 100 texts of 1 KB" {
		t.Errorf("measured %q", what)
	}
	if out := fine(t, "", "plugin", "bench", "--runs", "1", path); !strings.Contains(out, "empty call") {
		t.Errorf("output: %s", out)
	}
	fails(t, exitUsage, "", []string{"plugin", "bench", "--runs", "0", path}, "--runs", "0")
}
