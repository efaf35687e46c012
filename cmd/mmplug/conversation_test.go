package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/examples/handbook"
)

const (
	lasts = "How long does an access token last?"
	renew = "How do I renew it?"
)

func TestAsk(t *testing.T) {
	idx := handbookIdx(t)
	args := []string{"ask", "--index", idx}
	for _, turn := range handbook.Conversation {
		args = append(args, turn.Question)
	}
	golden(t, "ask.txt", fine(t, "", args...))
	out := fine(t, "", append(args, "--json")...)
	if out != fine(t, "", append(args, "--json")...) {
		t.Error("two runs differ")
	}
	turns := unmarshal[struct{ Turns []demoTurn }](t, out).Turns
	demo := unmarshal[struct{ Turns []demoTurn }](t, fine(t, "", "demo", "--json")).Turns
	for i, turn := range turns {
		if turn.ChunkID != demo[i].ChunkID || turn.Query != demo[i].Query || turn.Texts[turn.ChunkID] == "" {
			t.Errorf("turn %d: %+v, in the demo %+v", i, turn, demo[i])
		}
	}
	if len(turns) != len(demo) {
		t.Errorf("%d turns, want %d", len(turns), len(demo))
	}
}

// A conversation in two calls is the same as in one, byte for byte.
func TestAskSession(t *testing.T) {
	idx := handbookIdx(t)
	session := filepath.Join(t.TempDir(), "talk.json")
	first := turnsOf(t, fine(t, "", "ask", "--index", idx, "--session", session, "--json", lasts))
	second := turnsOf(t, fine(t, "", "ask", "--index", idx, "--session", session, "--json", renew))
	whole := turnsOf(t, fine(t, "", "ask", "--index", idx, "--json", lasts, renew))
	if !slices.Equal(append(first, second...), whole) {
		t.Errorf("in two calls\n%s\n%s\nin one\n%s", first, second, whole)
	}
	if left := names(t, filepath.Dir(session)); !slices.Equal(left, []string{"talk.json"}) {
		t.Errorf("left: %q", left)
	}
}

// chat answers what ask answers.
func TestChatIsAsk(t *testing.T) {
	idx, in := handbookIdx(t), lasts+"\n\n  \t\n  "+renew+"  \r\n"
	dir := t.TempDir()
	asked := fine(t, "", "ask", "--index", idx, "--session", filepath.Join(dir, "ask.json"), "--html", filepath.Join(dir, "ask.html"), lasts, renew)
	chatted := fine(t, in, "chat", "--index", idx, "--session", filepath.Join(dir, "chat.json"), "--html", filepath.Join(dir, "chat.html"))
	if chatted != asked {
		t.Errorf("chat\n%s\nask\n%s", chatted, asked)
	}
	for _, kind := range []string{".json", ".html"} {
		if get(t, filepath.Join(dir, "chat"+kind)) != get(t, filepath.Join(dir, "ask"+kind)) {
			t.Errorf("the %s files differ", kind)
		}
	}
	var lines []string
	for line := range strings.Lines(fine(t, strings.TrimSpace(in), "chat", "--index", idx, "--json")) {
		lines = append(lines, compact(t, []byte(line)))
	}
	if turns := turnsOf(t, fine(t, "", "ask", "--index", idx, "--json", lasts, renew)); !slices.Equal(lines, turns) {
		t.Errorf("chat\n%s\nask\n%s", lines, turns)
	}
}

func TestChatCommands(t *testing.T) {
	idx := handbookIdx(t)
	r := mmplug(t, lasts+"\n/trace\n/help\n/quit\n"+renew+"\n", "chat", "--index", idx)
	if r.code != exitOK || strings.Count(r.out, "[1]") != 1 || strings.Contains(r.out, "[2]") || !strings.Contains(r.out, "path: access-tokens.md#lifetime\n") {
		t.Errorf("exit status %d\n%s", r.code, r.out)
	}
	wantComplaint(t, r.err, "there is no command /help; the commands are /trace and /quit")
	// A path or a sentence that begins with a slash is a question.
	if r := mmplug(t, "/etc/toll is what?\n", "chat", "--index", idx); r.code != exitOK || r.err != "" || !strings.Contains(r.out, "[1] /etc/toll is what?") {
		t.Errorf("got %+v", r)
	}
	if out := fine(t, "", "chat", "--index", idx); out != "" {
		t.Errorf("no questions are answered by %q", out)
	}
	r = mmplug(t, lasts+"\n"+strings.Repeat("x", maxLine+1)+"\n", "chat", "--index", idx)
	wantComplaint(t, r.err, "standard input: line 2 is longer than 1048576 bytes")
	if r.code != exitFailed || !strings.Contains(r.out, "[1]") {
		t.Errorf("exit status %d\n%s", r.code, r.out)
	}
}

// Whatever is asked in whatever script is answered, recorded as it was asked
// and shown without driving the terminal.
func TestQuestions(t *testing.T) {
	idx := handbookIdx(t)
	for _, question := range []string{
		"故乡はどこですか", "كيف أجدد token؟", "\u202eesrever token", "🚀🚀 token 👩‍👩‍👧", "\x1b[31mtoken\x07\x00", "e\u0301 token", "the",
		"say \"hi\"\n\\a </script><b>", strings.Repeat("token ", 20000), strings.Repeat("故", 5000), "/trace?", "-",
	} {
		r := mmplug(t, "", "ask", "--index", idx, "--", question)
		if r.code != exitOK || r.err != "" || !strings.HasPrefix(r.out, "[1] ") {
			t.Errorf("%.40q: %+v", question, r)
		}
		for _, c := range r.out {
			if c != '\n' && printable(string(c)) == "" {
				t.Errorf("%.40q: the output has %q", question, c)
			}
		}
		for line := range strings.Lines(r.out) {
			if columns(strings.TrimSuffix(line, "\n")) > 100 {
				t.Errorf("%.40q: a line has %d columns", question, columns(line))
			}
		}
		turns := unmarshal[struct{ Turns []demoTurn }](t, fine(t, "", "ask", "--index", idx, "--json", "--", question)).Turns
		if len(turns) != 1 || turns[0].Query != strings.TrimSpace(question) {
			t.Errorf("%.40q is recorded as %.40q", question, turns[0].Query)
		}
	}
	// Bytes that are not UTF-8 are replaced before they are searched, so that
	// a saved conversation is the one that was held.
	dir := t.TempDir()
	session := filepath.Join(dir, "s.json")
	once := turnsOf(t, fine(t, "", "ask", "--index", idx, "--json", "\xff token", "renew \xfe it"))
	first := turnsOf(t, fine(t, "", "ask", "--index", idx, "--json", "--session", session, "\xff token"))
	second := turnsOf(t, fine(t, "", "ask", "--index", idx, "--json", "--session", session, "renew \xfe it"))
	if !slices.Equal(once, append(first, second...)) || !strings.Contains(once[0], `"query":"`+"\ufffd"+` token"`) {
		t.Errorf("in one call %s, in two %s %s", once, first, second)
	}
}

// Documents with control characters do not drive the terminal either.
func TestDocumentsAreShownHarmless(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "docs", "a.md"), "# Danger\n\nword \x1b]0;owned\x07 \x1b[2J \u202e 故乡 "+strings.Repeat("x", 300)+"\n")
	idx := filepath.Join(dir, "idx")
	fine(t, "", "index", filepath.Join(dir, "docs"), "--out", idx)
	out := fine(t, "word\n/trace\n", "chat", "--index", idx)
	if strings.ContainsAny(out, "\x1b\x07\u202e") || !strings.Contains(out, "故乡") {
		t.Errorf("%q", out)
	}
}

func TestConversationRefuses(t *testing.T) {
	idx, dir := handbookIdx(t), t.TempDir()
	file := filepath.Join(dir, "file")
	put(t, file, "no index, no session\n")
	session := func(content string) []string {
		path := filepath.Join(t.TempDir(), "session.json")
		put(t, path, content)
		return []string{"ask", "--index", idx, "--policy", "plain", "--session", path, lasts}
	}
	good := filepath.Join(dir, "good.json")
	fine(t, "", "ask", "--index", idx, "--policy", "plain", "--session", good, lasts)
	saved := get(t, good)
	other := filepath.Join(dir, "other.idx")
	fine(t, "", "index", docsWithoutFaults(t), "--out", other)
	for _, c := range []struct {
		code  int
		args  []string
		texts []string
	}{
		{exitUsage, []string{"ask"}, []string{"no question; write it in quotes"}},
		{exitUsage, []string{"ask", lasts}, []string{"say which index to ask: --index IDX"}},
		{exitUsage, []string{"chat"}, []string{"say which index to ask: --index IDX"}},
		{exitUsage, []string{"ask", "--index", idx, ""}, []string{"question 1 is empty"}},
		{exitUsage, []string{"ask", "--index", idx, lasts, " \n"}, []string{"question 2 is empty"}},
		{exitUsage, []string{"ask", "--index", idx, "--session", "-", lasts}, []string{"--session: standard output has the answers already; name a file"}},
		{exitUsage, []string{"chat", "--index", idx, "--html", "-"}, []string{"--html: standard output has the answers already; name a file"}},
		{exitUsage, []string{"chat", "--index", idx, lasts}, []string{"1 argument given; usage: mmplug chat --index IDX"}},
		{exitFailed, []string{"ask", "--index", filepath.Join(dir, "none"), lasts}, []string{"none: file does not exist: make an index there with mmplug index"}},
		{exitFailed, []string{"ask", "--index", file, lasts}, []string{"file: not an index: it is a file"}},
		{exitFailed, []string{"ask", "--index", dir, lasts}, []string{"not an index: it has no manifest.json"}},
		{exitFailed, []string{"ask", "--index", idx, "--html", dir, lasts}, []string{"cannot write " + dir, "; name a file"}},
		{exitFailed, []string{"ask", "--index", idx, "--html", filepath.Join(file, "x"), lasts}, []string{"cannot write", "; check the path"}},
		{exitFailed, []string{"ask", "--index", idx, "--session", dir, lasts}, []string{"cannot write " + dir, "; name a file"}},
		{exitFailed, []string{"ask", "--index", idx, "--session", filepath.Join(dir, "none", "s.json"), lasts}, []string{"cannot write", "; check the path"}},
		{exitFailed, []string{"chat", "--index", other, "--policy", "plain", "--session", good}, []string{"good.json: it belongs to another index than " + other, "start a new session file"}},
		{exitFailed, session(""), []string{"session.json: ", "not a saved conversation: it is empty; start a new session file"}},
		{exitFailed, session("{}"), []string{`schema ""`, "; start a new session file"}},
		{exitFailed, session("junk"), []string{"not a saved conversation: it is not JSON at byte 1", "; start a new session file"}},
		{exitFailed, session("\x00\x01\x02"), []string{"not a saved conversation: it is not JSON at byte 1"}},
		{exitFailed, session(saved[:len(saved)/2]), []string{"not a saved conversation: the JSON ends in the middle"}},
		{exitFailed, session(saved + saved), []string{"something follows the JSON value"}},
		{exitFailed, session(strings.Replace(saved, `"candidate_limit":20`, `"candidate_limit":3`, 1)), []string{"candidate_limit was 3, not 20"}},
	} {
		fails(t, c.code, "", c.args, c.texts...)
	}
	if get(t, good) != saved {
		t.Error("a refused call changed the session")
	}
	if left := names(t, dir); !slices.Equal(left, []string{"file", "good.json", "other.idx"}) {
		t.Errorf("left: %q", left)
	}
}

func docsWithoutFaults(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.md"), "# A\n\nanother corpus\n")
	return dir
}

// Of two processes on one conversation the second is refused, and no turn is
// lost without a word.
func TestSessionIsHeldByOne(t *testing.T) {
	idx, session := handbookIdx(t), filepath.Join(t.TempDir(), "talk.json")
	in, questions := io.Pipe()
	var wg sync.WaitGroup
	var chatted int
	out := &signalling{wrote: make(chan struct{}, 100)}
	wg.Go(func() {
		chatted = run(t.Context(), []string{"chat", "--index", idx, "--session", session}, stdio{in, out, io.Discard})
	})
	if _, err := io.WriteString(questions, lasts+"\n"); err != nil {
		t.Fatal(err)
	}
	<-out.wrote
	fails(t, exitFailed, "", []string{"ask", "--index", idx, "--session", session, renew}, "talk.json: another mmplug is holding this conversation: wait until it ends or use another session file")
	if err := questions.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if chatted != exitOK {
		t.Errorf("chat ended with %d", chatted)
	}

	var answered, refused int
	var lock sync.Mutex
	for range 8 {
		wg.Go(func() {
			r := mmplugContext(t.Context(), "", "ask", "--index", idx, "--session", session, renew)
			lock.Lock()
			defer lock.Unlock()
			switch {
			case r.code == exitOK:
				answered++
			case strings.Contains(r.err, "another mmplug is holding"):
				refused++
			default:
				t.Errorf("got %+v", r)
			}
		})
	}
	wg.Wait()
	trace := fine(t, "", "trace", "show", session)
	if rows := strings.Count(trace, "access-tokens.md#renewing  "); answered == 0 || answered+refused != 8 || rows != answered {
		t.Errorf("%d answered, %d refused, the session has\n%s", answered, refused, trace)
	}
	if left := names(t, filepath.Dir(session)); !slices.Equal(left, []string{"talk.json"}) {
		t.Errorf("left: %q", left)
	}
}

// signalling is a writer that says when it was written to.
type signalling struct{ wrote chan struct{} }

func (s *signalling) Write(p []byte) (int, error) {
	s.wrote <- struct{}{}
	return len(p), nil
}

// An interrupt ends a chat that waits for a line, and the turns so far are in
// the session.
func TestChatInterrupted(t *testing.T) {
	idx, session := handbookIdx(t), filepath.Join(t.TempDir(), "talk.json")
	ctx, interrupt := context.WithCancel(t.Context())
	in, questions := io.Pipe()
	defer questions.Close() //nolint:errcheck // nobody reads any more
	out := &signalling{wrote: make(chan struct{}, 100)}
	var stderr bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"chat", "--index", idx, "--session", session}, stdio{in, out, &stderr})
	}()
	if _, err := io.WriteString(questions, lasts+"\n"); err != nil {
		t.Fatal(err)
	}
	<-out.wrote
	interrupt()
	if code := <-done; code != exitFailed {
		t.Errorf("exit status %d", code)
	}
	wantComplaint(t, stderr.String(), "interrupted")
	if trace := fine(t, "", "trace", "show", session); !strings.Contains(trace, "path: access-tokens.md#lifetime\n") {
		t.Errorf("the session has\n%s", trace)
	}
}

// A session that cannot be written is as it was, and the answer that would be
// lost is an error.
func TestSessionKeptWhenWritingFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.json")
	put(t, path, "old")
	full := errors.New("no space")
	err := writeFile(stdio{}, path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return full
	})
	if !errors.Is(err, full) || get(t, path) != "old" || len(names(t, filepath.Dir(path))) != 1 {
		t.Errorf("%v leaves %q in %q", err, get(t, path), names(t, filepath.Dir(path)))
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	path, link, dead := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dead")
	put(t, path, "old and longer")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := os.Symlink("none", dead); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(stdio{}, link, text("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 || get(t, path) != "new" {
		t.Errorf("the link was replaced: %v, %v, %q", info, err, get(t, path))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info, err)
	}
	if err := writeFile(stdio{}, dead, text("new")); err == nil || !strings.Contains(err.Error(), "symbolic link that leads nowhere") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if err := writeFile(stdio{}, "/dev/full", text("new")); err == nil || err.Error() != "cannot write /dev/full: no space left on device; free some space" {
			t.Errorf("got %v", err)
		}
	}
	var out bytes.Buffer
	if err := writeFile(stdio{out: &out}, "-", text("new")); err != nil || out.String() != "new" {
		t.Errorf("standard output has %q, %v", out.String(), err)
	}
}
