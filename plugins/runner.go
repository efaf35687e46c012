package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// programRunner starts a program for go-plugin, in its own process group and
// bound to the life of this process, and reads all that it prints: go-plugin
// sees nothing but the line of the handshake.
type programRunner struct {
	cmd  *exec.Cmd
	log  hostLog
	tail tail

	handshake *io.PipeReader
	done      chan struct{} // closed when the process has ended and its output is read

	mu      sync.Mutex
	line    string           // the first line of stdout
	fault   error            // what is wrong with it
	closed  bool             // stdout ended before the first line
	process *os.Process      // nil before the start
	state   *os.ProcessState // nil until it has ended
	killed  bool             // to be killed as soon as it is there
}

var _ runner.Runner = (*programRunner)(nil)

func newRunner(cmd *exec.Cmd, log hostLog) *programRunner {
	return &programRunner{cmd: cmd, log: log, done: make(chan struct{})}
}

// Start implements runner.Runner.
func (r *programRunner) Start(context.Context) error {
	var pipes [6]*os.File // stdin, stdout, stderr; each first the end for reading
	closeAll := func() {
		for _, f := range pipes {
			if f != nil {
				_ = f.Close() // pipes without data
			}
		}
	}
	for i := 0; i < len(pipes); i += 2 {
		var err error
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			closeAll()
			return err
		}
	}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = pipes[0], pipes[3], pipes[5]
	r.cmd.SysProcAttr = processAttributes()
	keepFiles()
	handshake, lines := io.Pipe()
	started := make(chan error)
	var output sync.WaitGroup
	output.Add(2) // stdout and stderr
	go func() {
		// The death signal comes when this thread ends, so it has to live as
		// long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		if err != nil {
			started <- err
			return
		}
		r.mu.Lock()
		if r.process = r.cmd.Process; r.killed {
			killGroup(r.process)
		}
		r.mu.Unlock()
		started <- nil
		_ = r.cmd.Wait() // the state says how it ended
		r.mu.Lock()
		r.state = r.cmd.ProcessState
		killGroup(r.process) // what it started
		r.mu.Unlock()
		_ = pipes[1].Close()
		_ = lines.Close()
		// Somebody who left the group may hold the pipes open for ever.
		late := time.Now().Add(drainTime)
		_ = pipes[2].SetReadDeadline(late)
		_ = pipes[4].SetReadDeadline(late)
		output.Wait()
		_ = pipes[2].Close()
		_ = pipes[4].Close()
		close(r.done)
	}()
	if err := <-started; err != nil {
		closeAll()
		return err
	}
	for _, i := range []int{0, 3, 5} {
		_ = pipes[i].Close() // the process has them
	}
	r.handshake = handshake
	go func() {
		defer output.Done()
		r.readStdout(pipes[2], lines)
	}()
	go func() {
		defer output.Done()
		readLines(pipes[4], func(line []byte) {
			record := parseLog(line)
			if record.Level >= levelCrash || !strings.HasPrefix(string(line), "{") {
				r.tail.add(tailText(line, record.Message))
			}
			r.log.record(record)
		})
	}()
	return nil
}

// drainTime is how long output is read after the process has ended.
const drainTime = time.Second

// levelCrash is the lowest level of a log record that may say why a plugin
// ended.
const levelCrash = 4 // warn

// tailText is a line as the tail keeps it: of a log line its text.
func tailText(line []byte, message string) string {
	if strings.HasPrefix(string(line), "{") {
		return message
	}
	return string(line)
}

// readStdout hands the first line to go-plugin if it is a handshake and logs
// all others.
func (r *programRunner) readStdout(stdout io.Reader, lines *io.PipeWriter) {
	rest := &lineWriter{log: r.log, source: "stdout"}
	first := true
	readLines(stdout, func(line []byte) {
		if !first {
			_, _ = rest.Write(append(line, '\n')) // never fails
			return
		}
		first = false
		_, err := parseHandshake(string(line))
		r.mu.Lock()
		r.line, r.fault = string(line), err
		r.mu.Unlock()
		if err == nil {
			_, _ = lines.Write(append(line, '\n')) // fails when go-plugin has given up
		}
		_ = lines.Close()
	})
	if first {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		_ = lines.Close()
	}
}

// Wait implements runner.Runner.
func (r *programRunner) Wait(context.Context) error {
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.state.Success() {
		return errors.New(r.state.String())
	}
	return nil
}

// Kill implements runner.Runner. It does nothing: go-plugin calls it 2 s after
// it has asked a plugin to end, and how long that may take is for the host to
// say.
func (r *programRunner) Kill(context.Context) error { return nil }

// kill kills the whole process group.
func (r *programRunner) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != nil {
		return // it ended by itself
	}
	r.killed = true
	if r.process != nil {
		killGroup(r.process)
	}
}

// Stdout implements runner.Runner: the line of the handshake.
func (r *programRunner) Stdout() io.ReadCloser { return r.handshake }

// Stderr implements runner.Runner: nothing, because a line of the wrong form
// makes go-plugin panic.
func (r *programRunner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements runner.Runner.
func (r *programRunner) Name() string { return r.cmd.Path }

// ID implements runner.Runner.
func (r *programRunner) ID() string {
	if pid := r.pid(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// pid is the process ID, 0 before the start.
func (r *programRunner) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return 0
	}
	return r.process.Pid
}

// Diagnose implements runner.Runner. The host has words of its own.
func (r *programRunner) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner.
func (r *programRunner) PluginToHost(network, address string) (hostNetwork, hostAddress string, err error) {
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (r *programRunner) HostToPlugin(network, address string) (pluginNetwork, pluginAddress string, err error) {
	return network, address, nil
}

// ended says how the process ended and what it last wrote.
func (r *programRunner) ended() string {
	r.mu.Lock()
	state := r.state
	r.mu.Unlock()
	text := "ended"
	switch {
	case r.killedByHost():
		text = "was killed by the host"
	case state != nil:
		text = "ended with " + state.String()
	}
	return r.quote(text)
}

// killedByHost reports whether the process ended because of kill.
func (r *programRunner) killedByHost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.killed && r.state != nil && r.state.String() == killedState
}

// quote adds what the process last wrote to stderr.
func (r *programRunner) quote(text string) string {
	if last := r.tail.text(); last != "" {
		return fmt.Sprintf("%s; stderr: %s", text, last)
	}
	return text
}

// explain words why a start failed.
func (r *programRunner) explain(err error) error {
	r.mu.Lock()
	fault, line, state, closed := r.fault, r.line, r.state, r.closed
	r.mu.Unlock()
	last := r.tail.text()
	switch {
	case fault != nil:
		return worded{r.quote(fault.Error()), fault}
	case strings.Contains(last, "This binary is a plugin"):
		return fmt.Errorf("it is a plugin of another program and did not accept the cookie in %s; stderr: %s", cookieKey, last)
	case line == "" && state != nil && !r.killedByHost():
		return fmt.Errorf("it %s before the handshake", r.ended())
	case line == "" && closed:
		return errors.New(r.quote("it closed its standard output before the handshake"))
	case line == "":
		return errors.New(r.quote("it printed no handshake"))
	}
	return worded{r.quote(oneLine(err.Error())), err}
}
