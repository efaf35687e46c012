package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// policyRun executes "mmplug policy" with arguments and returns what it wrote.
func policyRun(t *testing.T, wantCode int, args ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append([]string{"policy"}, args...), stdio{strings.NewReader(""), &stdout, &stderr})
	if code != wantCode {
		t.Fatalf("policy %s: exit code %d, want %d; stdout %s, stderr %s", strings.Join(args, " "), code, wantCode, &stdout, &stderr)
	}
	if code != exitOK && code != exitCheck && strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("policy %s: stderr is not one line: %s", strings.Join(args, " "), &stderr)
	}
	return stdout.String(), stderr.String()
}

// edited writes a copy of a file with one text replaced.
func edited(t *testing.T, path, old, replacement string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not contain %q", path, old)
	}
	copied := filepath.Join(t.TempDir(), "edited-"+filepath.Base(path))
	if err := os.WriteFile(copied, []byte(strings.Replace(string(data), old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestPolicyInit(t *testing.T) {
	digests := map[any]bool{}
	for _, name := range []string{"team.policy.yaml", "team.policy.json", "team.policy.toml"} {
		path := filepath.Join(t.TempDir(), name)
		policyRun(t, exitOK, "init", path)
		if out, _ := policyRun(t, exitOK, "validate", path); !strings.Contains(out, "policy team is valid, digest ") {
			t.Errorf("%s: %s", name, out)
		}
		out, _ := policyRun(t, exitOK, "show", "--json", path)
		var shown map[string]any
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatal(err)
		}
		digests[shown["digest"]] = true
		if _, errs := policyRun(t, exitFailed, "init", path); !strings.Contains(errs, "is there already") {
			t.Errorf("over a file: %s", errs)
		}
	}
	if len(digests) != 1 {
		t.Errorf("digests %v", digests)
	}
	out, _ := policyRun(t, exitOK, "init", "--name", "mine")
	if !strings.Contains(out, "\nname: mine #") || !strings.Contains(out, "\n# the objective and its search\ndecode:\n") {
		t.Errorf("on standard output:\n%s", out)
	}
	policyRun(t, exitUsage, "init", filepath.Join(t.TempDir(), "team.ini"))
	if _, errs := policyRun(t, exitFailed, "init", "--name", "a b"); !strings.Contains(errs, "name is") {
		t.Errorf("a name with a space: %s", errs)
	}
}

func TestPolicyShowAndList(t *testing.T) {
	out, _ := policyRun(t, exitOK, "show", "--json", "plain")
	var plain struct {
		Name, Digest string
		Fusion       struct{ K float64 }
	}
	if err := json.Unmarshal([]byte(out), &plain); err != nil {
		t.Fatal(err)
	}
	if plain.Name != "plain" || len(plain.Digest) != 64 || plain.Fusion.K != 60 {
		t.Errorf("%+v", plain)
	}
	// What is printed is the same policy again, in both forms.
	for _, args := range [][]string{{"show", "plain"}, {"show", "--json", "plain"}} {
		shown, _ := policyRun(t, exitOK, args...)
		path := filepath.Join(t.TempDir(), "shown.yaml")
		if len(args) == 3 {
			path = filepath.Join(t.TempDir(), "shown.json")
		}
		if err := os.WriteFile(path, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
		if again, _ := policyRun(t, exitOK, append(args[:len(args)-1:len(args)-1], path)...); again != shown {
			t.Errorf("%v prints another policy the second time", args)
		}
	}
	list, _ := policyRun(t, exitOK, "list")
	if !strings.Contains(list, "plain") || !strings.Contains(list, plain.Digest) {
		t.Errorf("list:\n%s", list)
	}
	var listed struct {
		Policies []struct{ Name, Digest, Description string }
	}
	asJSON, _ := policyRun(t, exitOK, "list", "--json")
	if err := json.Unmarshal([]byte(asJSON), &listed); err != nil || len(listed.Policies) == 0 {
		t.Errorf("%v: %s", err, asJSON)
	}
	if _, errs := policyRun(t, exitFailed, "show", "plian"); !strings.Contains(errs, `did you mean "plain"?`) {
		t.Errorf("a misspelt name: %s", errs)
	}
	// Parts in several files.
	dir := t.TempDir()
	for name, data := range map[string]string{"a.yaml": "schema: mmplug.policy/1\nname: parts\n", "b.json": `{"schema": "mmplug.policy/1", "context": {"radius": 2}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, _ := policyRun(t, exitOK, "show", filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.json")); !strings.Contains(out, "radius: 2") {
		t.Errorf("two files:\n%s", out)
	}
}

func TestPolicyValidate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "team.policy.yaml")
	if err := os.WriteFile(path, []byte("schema: mmplug.policy/1\nname: team\ncontext:\n  radius: \"2\"\n  limmit: 5\n  limit: 2.5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs := policyRun(t, exitCheck, "validate", path)
	want := "mmplug: " + path + ":4: `context.radius` is the text \"2\", it must be a number: remove the quotes\n" +
		"mmplug: " + path + ":5: unknown key `context.limmit`, did you mean `context.limit`?\n" +
		"mmplug: " + path + ":6: `context.limit` is the number 2.5, it must be a whole number: it is not rounded\n"
	if errs != want || out != "" {
		t.Errorf("stdout %q, stderr\n%swant\n%s", out, errs, want)
	}
	if _, errs := policyRun(t, exitFailed, "validate", path+".none.yaml"); !strings.Contains(errs, "no such file") {
		t.Errorf("no file: %s", errs)
	}
	policyRun(t, exitUsage, "validate")
	policyRun(t, exitUsage, "valdate", path)
}

func TestPolicyFreezeAndVerify(t *testing.T) {
	dir := t.TempDir()
	path, report := filepath.Join(dir, "team.policy.yaml"), filepath.Join(dir, "report.json")
	policyRun(t, exitOK, "init", path)
	if err := os.WriteFile(report, []byte(`{"ndcg@3": 0.5}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs := policyRun(t, exitCheck, "verify", path); !strings.Contains(errs, "is not frozen") {
		t.Errorf("verify before: %s", errs)
	}
	if _, errs := policyRun(t, exitUsage, "freeze", path); !strings.Contains(errs, "--evidence REPORT") {
		t.Errorf("freeze without evidence: %s", errs)
	}
	other := filepath.Join(dir, "frozen.policy.toml")
	policyRun(t, exitOK, "freeze", path, "--evidence", report, "--out", other)
	policyRun(t, exitOK, "verify", other)
	policyRun(t, exitCheck, "verify", path)

	policyRun(t, exitOK, "freeze", path, "--evidence", report)
	if out, _ := policyRun(t, exitOK, "verify", path, "--evidence", report); !strings.Contains(out, "is as it was frozen") {
		t.Errorf("verify: %s", out)
	}
	if _, errs := policyRun(t, exitCheck, "verify", path, "--evidence", other); !strings.Contains(errs, "was frozen on a report with the SHA-256") {
		t.Errorf("verify with another report: %s", errs)
	}
	if _, errs := policyRun(t, exitCheck, "freeze", path, "--evidence", report); !strings.Contains(errs, "policy is frozen already") {
		t.Errorf("freeze again: %s", errs)
	}
	changed := edited(t, path, "transition_weight: 1", "transition_weight: 0.5")
	for _, command := range []string{"verify", "validate"} {
		if _, errs := policyRun(t, exitCheck, command, changed); !strings.Contains(errs, "policy is frozen: it was frozen with the digest") {
			t.Errorf("%s a changed one: %s", command, errs)
		}
	}
	if _, errs := policyRun(t, exitFailed, "show", changed); !strings.Contains(errs, "policy is frozen") {
		t.Errorf("show a changed one: %s", errs)
	}
	if out, _ := policyRun(t, exitOK, "diff", path, other); !strings.HasPrefix(out, "the same policy, digest ") {
		t.Errorf("diff: %s", out)
	}
}

func TestPolicyDiff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "team.policy.yaml")
	policyRun(t, exitOK, "init", path)
	changed := edited(t, path, "transition_weight: 1", "transition_weight: 0.5")
	if out, _ := policyRun(t, exitOK, "diff", path, "plain"); !strings.HasPrefix(out, "the same policy, digest ") {
		t.Errorf("%s", out)
	}
	if out, _ := policyRun(t, exitCheck, "diff", path, changed); out != "decode.transition_weight 1 → 0.5\n" {
		t.Errorf("%s", out)
	}
	var diff struct {
		Changes []map[string]string
		Digests []string
	}
	out, _ := policyRun(t, exitCheck, "diff", "--json", path, changed)
	if err := json.Unmarshal([]byte(out), &diff); err != nil {
		t.Fatal(err)
	}
	if len(diff.Changes) != 1 || diff.Changes[0]["key"] != "decode.transition_weight" || len(diff.Digests) != 2 || diff.Digests[0] == diff.Digests[1] {
		t.Errorf("%+v", diff)
	}
	if out, _ := policyRun(t, exitOK, "diff", "--json", "plain", "plain"); !strings.Contains(out, `"changes": []`) {
		t.Errorf("%s", out)
	}
	policyRun(t, exitFailed, "diff", "plain", "other")
}

func TestPolicySchema(t *testing.T) {
	out, _ := policyRun(t, exitOK, "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(out), &schema); err != nil || schema["$schema"] == nil {
		t.Errorf("%v: %.200s", err, out)
	}
	if out, _ := policyRun(t, exitOK); !strings.Contains(out, "validate") {
		t.Errorf("help:\n%s", out)
	}
}
