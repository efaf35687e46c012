package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched/eval"
)

// quick are flags that make a search short.
var quick = []string{"--folds", "3", "--generations", "2", "--bootstrap-samples", "20"}

// A policy is tuned, frozen on its report, and followed.
func TestTune(t *testing.T) {
	dir := t.TempDir()
	file, report := filepath.Join(dir, "team.policy.yaml"), filepath.Join(dir, "tuning")
	args := append([]string{"tune", "--synthetic", "--out", file, "--report", report, "--freeze"}, quick...)
	out := fine(t, "", args...)
	if !strings.Contains(out, "held out") || !strings.Contains(out, "follow_up") || !strings.Contains(out, file+": policy team, digest "+digestOf(t, file)) {
		t.Errorf("output\n%s", out)
	}
	fine(t, "", "policy", "verify", file)
	written := unmarshal[eval.TuneReport](t, get(t, filepath.Join(report, "report.json")))
	if written.Policy.Digest != digestOf(t, file) || written.Base.Name != "plain" || !strings.Contains(get(t, filepath.Join(report, "report.md")), "## Parameters") {
		t.Errorf("report of %+v", written.Policy)
	}
	fine(t, "", "ask", "--index", handbookIdx(t), "--policy", file, lasts, renew)
	fails(t, exitFailed, "", args, file+" is there already")
	other := filepath.Join(dir, "other.policy.yaml")
	fails(t, exitFailed, "", append([]string{"tune", "--synthetic", "--out", other, "--report", report}, quick...), "report.json is there already", "give another directory")
	again := filepath.Join(dir, "again.policy.json")
	fine(t, "", append([]string{"tune", "--synthetic", "--out", again, "--name", "team"}, quick...)...)
	if digestOf(t, again) != digestOf(t, file) {
		t.Error("the same tuning makes another policy")
	}
}

// Without labels the moves are learnt, and nothing is frozen.
func TestTuneWithoutLabels(t *testing.T) {
	dir := t.TempDir()
	corpus, talk := filepath.Join(dir, "corpus.jsonl"), filepath.Join(dir, "talk.jsonl")
	put(t, corpus, `{"id":"a#0","doc":"a","title":"Tokens","section":"","ordinal":0,"text":"an access token lasts an hour"}
{"id":"a#1","doc":"a","title":"Tokens","section":"","ordinal":1,"text":"renew it with a refresh call"}
{"id":"b#0","doc":"b","title":"Keys","section":"","ordinal":0,"text":"renew a key once a year"}
`)
	put(t, talk, `{"conversation_id":"c","turns":[{"turn":1,"query":"access token"},{"turn":2,"query":"renew it"}]}
`)
	file := filepath.Join(dir, "learnt.policy.yaml")
	out := fine(t, "", "tune", "--corpus", corpus, "--conversations", talk, "--out", file)
	if !strings.Contains(out, "No labels: moves learnt in ") || !strings.Contains(out, "Nothing was measured") || !strings.Contains(out, "jump") {
		t.Errorf("output\n%s", out)
	}
	fine(t, "", "policy", "validate", file)
	frozen := filepath.Join(dir, "frozen.policy.yaml")
	r := mmplug(t, "", "tune", "--corpus", corpus, "--conversations", talk, "--out", frozen, "--report", filepath.Join(dir, "r"), "--freeze")
	if r.code != exitCheck || !strings.Contains(r.err, "no policy is frozen without evidence") || isThere(frozen) {
		t.Errorf("exit status %d, %s", r.code, r.err)
	}
}

func TestTuneRefuses(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "x.policy.yaml")
	for _, c := range []struct {
		code  int
		args  []string
		texts []string
	}{
		{exitUsage, []string{"tune"}, []string{"say what to tune on", "say where to write the policy"}},
		{exitUsage, []string{"tune", "--synthetic", "--out", "x.txt"}, []string{"--out x.txt"}},
		{exitUsage, []string{"tune", "--synthetic", "--corpus", "x", "--out", out}, []string{"--synthetic has no --corpus"}},
		{exitUsage, []string{"tune", "--corpus", "x", "--out", out}, []string{"give both once for each set"}},
		{exitUsage, []string{"tune", "--corpus", "x", "--conversations", "y", "--scope", "a", "--scope", "all", "--out", out}, []string{"--scope is given 2 times for 1 set", `--scope is "a"`}},
		{exitUsage, []string{"tune", "--synthetic", "--weight", "0", "--replies", "maybe", "--out", out}, []string{`--weight is "0"`, `--replies is "maybe"`}},
		{exitUsage, []string{"tune", "--synthetic", "--freeze", "--folds", "2", "--generations", "0", "--seed", "0", "--bootstrap-samples", "0", "--out", out},
			[]string{"--freeze rests on a report", "--folds is 2", "--generations is 0", "--seed is 0", "--bootstrap-samples is 0"}},
		{exitFailed, []string{"tune", "--synthetic", "--out", filepath.Join(dir, "none", "x.policy.yaml")}, []string{"cannot write", "check the path"}},
		{exitFailed, []string{"tune", "--synthetic", "--policy", "none.policy.yaml", "--out", out}, []string{"none.policy.yaml"}},
		{exitFailed, []string{"tune", "--corpus", filepath.Join(dir, "none"), "--conversations", "y", "--out", out}, []string{"none"}},
		{exitUsage, []string{"eval", "--synthetic", "--gate", "--policy", ""}, []string{"--gate judges policies"}},
	} {
		fails(t, c.code, "", c.args, c.texts...)
	}
}
