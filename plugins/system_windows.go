package plugins

import (
	"io/fs"
	"os"
	"syscall"
)

// maxSocketPath bounds the path of a run directory, where plugins listen on
// TCP.
const maxSocketPath = 240

func processAttributes() *syscall.SysProcAttr { return nil }

func isOwn(fs.FileInfo) bool { return true }

// killGroup kills a plugin; what it started goes on.
func killGroup(p *os.Process) {
	_ = p.Kill() // it is gone
}

// killedState is how a process ends that was killed.
const killedState = "exit status 1"

func keepFiles() {} // handles are inherited by name only

func executable(fs.FileMode) bool { return true }

// exeSuffix ends the names of programs.
const exeSuffix = ".exe"

// systemVariables are those that a program needs to start.
func systemVariables() []string { return []string{"SystemRoot"} }
