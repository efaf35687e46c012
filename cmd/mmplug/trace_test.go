package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// traces writes one file of each kind that holds the trace of the same
// conversation.
func traces(t *testing.T) map[string]string {
	t.Helper()
	idx, dir := handbookIdx(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	asked := fine(t, "", "ask", "--index", idx, "--session", at("session"), "--policy", "plain", "--json", lasts, renew)
	put(t, at("ask"), asked)
	put(t, at("chat"), fine(t, lasts+"\n"+renew+"\n", "chat", "--index", idx, "--policy", "plain", "--json"))
	turns := turnsOf(t, asked)
	put(t, at("turn"), turns[1])
	put(t, at("trace"), string(unmarshal[map[string]json.RawMessage](t, turns[1])["trace"]))
	files := map[string]string{}
	for _, name := range []string{"session", "ask", "chat", "turn", "trace"} {
		files[name] = at(name)
	}
	return files
}

func TestTraceOfEveryKind(t *testing.T) {
	files := traces(t)
	want := fine(t, "", "trace", "show", files["session"])
	golden(t, "trace.txt", want)
	golden(t, "trace.json", fine(t, "", "trace", "show", "--json", files["trace"]))
	for kind, path := range files {
		if got := fine(t, "", "trace", "show", path); got != want {
			t.Errorf("%s shows\n%s", kind, got)
		}
		if got := fine(t, get(t, path), "trace", "show", "-"); got != want {
			t.Errorf("%s on standard input shows\n%s", kind, got)
		}
		page := filepath.Join(t.TempDir(), "x.html")
		if out := fine(t, "", "trace", "html", path, "--out", page, "--title", "A <title>"); out != "" {
			t.Errorf("%s: %q", kind, out)
		}
		html := get(t, page)
		if html != fine(t, "", "trace", "html", path, "--title", "A <title>") {
			t.Errorf("%s: the page on standard output differs", kind)
		}
		if !strings.HasPrefix(html, "<!doctype html>") || !strings.Contains(html, "A &lt;title&gt;") || !strings.Contains(html, "access-tokens.md#renewing") {
			t.Errorf("%s: page %.200q", kind, html)
		}
		// Only a session has the candidates beside the path.
		if got := strings.Contains(html, "invitations.md#renewing"); got != (kind == "session") {
			t.Errorf("%s: the page has other candidates: %v", kind, got)
		}
		if r := mmplug(t, "", "trace", "diff", files["session"], path); r.code != exitOK || r.out != "the traces agree in all 2 turns\n" || r.err != "" {
			t.Errorf("%s: diff %+v", kind, r)
		}
	}
	demo := filepath.Join(t.TempDir(), "demo")
	put(t, demo, fine(t, "", "demo", "--json"))
	if got := fine(t, "", "trace", "show", demo); !strings.Contains(fine(t, "", "demo"), got) {
		t.Errorf("what demo printed shows\n%s", got)
	}
	decoded := fine(t, roadTurns, "decode", "--json", "-")
	if got := fine(t, decoded, "trace", "show", "-"); got != fine(t, roadTurns, "decode", "-") {
		t.Errorf("what decode printed shows\n%s", got)
	}
}

func TestTraceDiff(t *testing.T) {
	files := traces(t)
	other := filepath.Join(t.TempDir(), "other")
	put(t, other, fine(t, "", "ask", "--index", handbookIdx(t), "--json", lasts, "What happens when it expires?"))
	r := mmplug(t, "", "trace", "diff", files["ask"], other)
	if r.code != exitCheck || r.err != "" || !strings.Contains(r.out, "turn 1: chunk is access-tokens.md#renewing in the first, access-tokens.md#when-it-expires in the second\n") ||
		!strings.HasSuffix(r.out, "2 of 2 turns in both traces differ\n") {
		t.Errorf("got %+v", r)
	}
	if in := mmplug(t, get(t, other), "trace", "diff", files["ask"], "-"); in != r {
		t.Errorf("from standard input %+v, want %+v", in, r)
	}
	r = mmplug(t, "", "trace", "diff", "--json", files["ask"], other)
	got := unmarshal[struct {
		Turns []struct {
			TurnIndex   int `json:"turn_index"`
			Differences []map[string]string
		}
	}](t, r.out)
	if r.code != exitCheck || r.err != "" || len(got.Turns) != 2 || got.Turns[1].TurnIndex != 1 || got.Turns[1].Differences[0]["first"] != strconv.Quote(renew) {
		t.Errorf("got %+v", r)
	}
	if r := mmplug(t, "", "trace", "diff", "--json", other, other); r != (ran{out: "{}\n"}) {
		t.Errorf("got %+v", r)
	}
}

func TestTraceRefuses(t *testing.T) {
	dir := t.TempDir()
	idx := handbookIdx(t)
	for _, c := range []struct {
		code  int
		in    string
		args  []string
		texts []string
	}{
		{exitUsage, "", []string{"show"}, []string{"0 arguments given; usage: mmplug trace show FILE|-"}},
		{exitUsage, "", []string{"diff", "a"}, []string{"1 argument given; usage: mmplug trace diff FILE FILE"}},
		{exitUsage, "", []string{"diff", "-", "-"}, []string{"only one of the two traces can be standard input"}},
		{exitUsage, "", []string{"html", "-", "--candidates", "-1"}, []string{"--candidates is -1: give 1 or more"}},
		{exitFailed, "", []string{"show", filepath.Join(dir, "none")}, []string{"cannot read", "; check the path"}},
		{exitFailed, "", []string{"show", dir}, []string{"cannot read", "; name a file"}},
		{exitFailed, "", []string{"show", "-"}, []string{"standard input: not a trace: it is empty"}},
		{exitFailed, "\x7fELF", []string{"show", "-"}, []string{`standard input: not a trace: invalid character '\x7f'`}},
		{exitFailed, `{"steps": [`, []string{"html", "-"}, []string{"standard input: not a trace: the JSON ends in the middle"}},
		{exitFailed, `{}`, []string{"html", "-"}, []string{`it needs the keys "steps" and "path_chunk_ids"`}},
		{exitFailed, `[]`, []string{"html", "-"}, []string{"a trace is a JSON object"}},
		{exitFailed, `null`, []string{"show", "-"}, []string{"this is not a trace"}},
		{exitFailed, `{} {}`, []string{"show", "-"}, []string{"not a trace but 2 JSON values; give one of them"}},
		{exitFailed, `{"turns": []}`, []string{"show", "-"}, []string{"there are no turns in it"}},
		{exitFailed, roadTurns, []string{"show", "-"}, []string{"the turns in it have no trace; print the answers with --json"}},
		{exitFailed, `{"turns": [{"trace": {"steps": [{}], "path_chunk_ids": ["a"]}}]}`, []string{"show", "-"}, []string{"steps[0]: turn_index is missing"}},
		{exitFailed, `{"schema": "mapmatched.session/1"}`, []string{"show", "-"}, []string{"restore session"}},
		{exitFailed, `{"schema": "mapmatched.trace/9", "steps": [], "path_chunk_ids": []}`, []string{"show", "-"}, []string{`"mapmatched.trace/9"`, "newer"}},
		{exitFailed, "", []string{"show", filepath.Join(idx, "manifest.json")}, []string{"manifest.json: trace: this is not a trace"}},
		{exitFailed, "", []string{"show", filepath.Join(idx, "text.bin")}, []string{"text.bin: not a trace: "}},
		{exitFailed, `{"steps": [], "path_chunk_ids": []}`, []string{"html", "-", "--out", filepath.Join(dir, "none", "x")}, []string{"cannot write", "; check the path"}},
		{exitFailed, `{"steps": [], "path_chunk_ids": []}`, []string{"html", "-", "--out", dir}, []string{"cannot write", "; name a file"}},
	} {
		fails(t, c.code, c.in, append([]string{"trace"}, c.args...), c.texts...)
	}
}
