package weaviatetest

import (
	"os/exec"
	"runtime"
)

// process is a program that runs. It does not outlive this one where the
// system can see to that.
type process struct {
	cmd   *exec.Cmd
	log   tail
	ended chan struct{} // closed when the program ended
	err   error         // how it ended; to be read when ended is closed
}

// start runs a program in a directory.
func start(program string, env []string, dir string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir = env, dir
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	dieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// Linux ends the child with the thread that started it, so that thread
		// has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}
