package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"nosuch", `there is no command "mmplug nosuch"; see "mmplug --help"`},
		{"demi", `there is no command "mmplug demi"; did you mean "mmplug demo"?`},
		{"trace shw", `there is no command "mmplug trace shw"; did you mean "mmplug trace show"?`},
		{"graph nosuch", `there is no command "mmplug graph nosuch"; see "mmplug graph --help"`},
		{"completion tcsh", `there is no command "mmplug completion tcsh"`},
		{"help nosuch", `there is no command "mmplug nosuch"`},
		{"help trace nosuch", `there is no command "mmplug trace nosuch"`},
		{"help ask more", `there is no command "mmplug ask more"`},
		{"demo extra", `1 argument given; usage: mmplug demo [flags]`},
		{"version extra", `1 argument given; usage: mmplug version [flags]`},
		{"adapters a b", `2 arguments given; usage: mmplug adapters [flags]`},
		{"--nosuch", `unknown flag: --nosuch; see "mmplug --help"`},
		{"index --out", `flag needs an argument: --out; see "mmplug index --help"`},
		{"demo --json=maybe", `invalid argument "maybe" for "--json" flag`},
	} {
		fails(t, exitUsage, "", strings.Fields(c.args), c.want)
	}
}

// Every command has a help that says what it is for, on standard output.
func TestHelp(t *testing.T) {
	for _, command := range []string{"", "demo", "index", "ask", "chat", "decode", "trace", "trace show", "trace html", "trace diff", "graph", "graph stats", "adapters", "version", "completion", "completion bash"} {
		args := strings.Fields(command)
		byFlag, byCommand := fine(t, "", append(args, "--help")...), fine(t, "", append([]string{"help"}, args...)...)
		if byFlag != byCommand || !strings.Contains(byFlag, "Usage:\n  "+strings.TrimSpace("mmplug "+command)) {
			t.Errorf("help of %q:\n%s\n%s", command, byFlag, byCommand)
		}
	}
	for _, parent := range []string{"", "trace", "graph", "completion"} {
		if out := fine(t, "", strings.Fields(parent)...); out != fine(t, "", append(strings.Fields(parent), "--help")...) {
			t.Errorf("%q alone prints\n%s", parent, out)
		}
	}
}

func TestVersion(t *testing.T) {
	out := fine(t, "", "version")
	for _, want := range []string{"mmplug ", runtime.Version(), "index mmplug.embedded/", "session mapmatched.session/1", "trace mapmatched.trace/1", "score model decode_v1"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
	if v := unmarshal[versionInfo](t, fine(t, "", "version", "--json")); v.Version == "" || v.Go != runtime.Version() || v.Formats["trace"] != "mapmatched.trace/1" {
		t.Errorf("got %+v", v)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := fine(t, "", "completion", shell); !strings.Contains(out, "__complete") || !strings.Contains(out, "mmplug") {
			t.Errorf("%s: %.200q", shell, out)
		}
	}
	const files, directories, none = ":0\n", ":16\n", ":4\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"decode", ""}, files},
		{[]string{"trace", "show", ""}, files},
		{[]string{"trace", "html", ""}, files},
		{[]string{"trace", "diff", "a", ""}, files},
		{[]string{"graph", "stats", ""}, files},
		{[]string{"ask", "--session", ""}, files},
		{[]string{"chat", "--html", ""}, files},
		{[]string{"index", ""}, directories},
		{[]string{"index", "--out", ""}, directories},
		{[]string{"ask", "--index", ""}, directories},
		{[]string{"chat", "--index", ""}, directories},
		{[]string{"demo", ""}, none},
		{[]string{"version", ""}, none},
		{[]string{"chat", ""}, none},
		{[]string{"ask", ""}, none},
		{[]string{"tra"}, "trace\tShow, draw or compare traces\n" + none},
		{[]string{"graph", "st"}, "stats\tDescribe a corpus graph: size, degrees, components, reach\n" + none},
	} {
		r := mmplug(t, "", append([]string{"__complete"}, c.args...)...)
		if r.code != exitOK || r.out != c.want {
			t.Errorf("completion of %q is %q, want %q", c.args, r.out, c.want)
		}
	}
}

// failing is a stream that cannot be written to.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Output that is lost is a failure, whatever the command; a reader that went
// away is no reason to complain.
func TestOutputFails(t *testing.T) {
	idx := handbookIdx(t)
	session := filepath.Join(t.TempDir(), "s.json")
	fine(t, "", "ask", "--index", idx, "--session", session, lasts)
	for _, args := range [][]string{
		{}, {"--help"}, {"help", "ask"}, {"completion", "bash"}, {"demo"}, {"demo", "--json"}, {"version"}, {"version", "--json"}, {"adapters"}, {"adapters", "--json"},
		{"ask", "--index", idx, lasts}, {"ask", "--index", idx, "--json", lasts}, {"chat", "--index", idx}, {"chat", "--index", idx, "--json"},
		{"decode", "-"}, {"decode", "-", "--json"}, {"trace", "show", session}, {"trace", "show", "--json", session}, {"trace", "html", session},
		{"trace", "diff", session, session}, {"graph", "stats", idx}, {"graph", "stats", "--json", idx}, {"index", docsWithoutFaults(t), "--out", filepath.Join(t.TempDir(), "x")},
	} {
		in := lasts + "\n/trace\n"
		if len(args) > 0 && args[0] == "decode" {
			in = roadTurns
		}
		var stderr bytes.Buffer
		full := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
		if code := run(t.Context(), args, stdio{strings.NewReader(in), failing{full}, &stderr}); code != exitFailed {
			t.Errorf("%q: exit status %d", args, code)
		}
		wantComplaint(t, stderr.String(), "cannot write standard output: "+syscall.ENOSPC.Error()+"; free some space")
		stderr.Reset()
		gone := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
		if code := run(t.Context(), args, stdio{strings.NewReader(in), failing{gone}, &stderr}); code != exitFailed || stderr.Len() > 0 {
			t.Errorf("%q: exit status %d, %q", args, code, stderr.String())
		}
	}
}

// A command that waits for input, or was interrupted before it began, ends
// with an interrupt.
func TestInterrupted(t *testing.T) {
	idx := handbookIdx(t)
	for _, args := range [][]string{{"decode", "-"}, {"trace", "show", "-"}, {"trace", "html", "-"}, {"trace", "diff", "-", "x"}, {"chat", "--index", idx}} {
		ctx, interrupt := context.WithCancel(t.Context())
		in, silent := io.Pipe()
		reading := make(chan struct{})
		var stderr bytes.Buffer
		done := make(chan int)
		go func() { done <- run(ctx, args, stdio{&announcing{Reader: in, reading: reading}, io.Discard, &stderr}) }()
		<-reading
		interrupt()
		if code := <-done; code != exitFailed {
			t.Errorf("%q: exit status %d", args, code)
		}
		wantComplaint(t, stderr.String(), "interrupted")
		silent.Close() //nolint:errcheck // lets the reader in the background end
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	for _, args := range [][]string{{"demo"}, {"index", docsWithoutFaults(t), "--out", filepath.Join(dir, "x")}, {"ask", "--index", idx, lasts}, {"graph", "stats", idx}} {
		r := mmplugContext(ctx, "", args...)
		wantComplaint(t, r.err, "interrupted")
		if r.code != exitFailed || r.out != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// announcing is a reader that says when it is read from.
type announcing struct {
	io.Reader
	reading chan struct{}
}

func (a *announcing) Read(p []byte) (int, error) {
	close(a.reading)
	return a.Reader.Read(p)
}

// The program itself: exit statuses reach the shell, and so does an interrupt
// the program.
func TestProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		return cmd
	}
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"version"}, exitOK}, {[]string{"decode", "nosuch"}, exitFailed}, {[]string{"nosuch"}, exitUsage}} {
		cmd := command(c.args...)
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%q: exit status %d (%v), want %d", c.args, code, err, c.code)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts to send here")
	}
	cmd := command("chat", "--index", handbookIdx(t))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, lasts+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has answered and waits
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("the interrupted chat ended with %v", err)
	}
	wantComplaint(t, stderr.String(), "interrupted")
}

func TestComplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.Join(errors.New("one"), errors.New("two\r\n\nthree")), "one; two; three"},
		{errors.New("\x1b[31mred\x07 \u202ebidi"), "[31mred bidi"},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, "x: permission denied; check its permissions"},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, "x: too many open files"},
	} {
		var b bytes.Buffer
		complain(&b, c.err)
		if b.String() != "mmplug: "+c.want+"\n" {
			t.Errorf("%q becomes %q", c.err, b.String())
		}
	}
}
