//go:build unix

package plugins

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file is the user's.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// killGroup kills a plugin and everything in its process group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // no such group: it is gone
}

// executable reports whether the mode lets somebody run the file.
func executable(mode fs.FileMode) bool { return mode&0o111 != 0 }

// exeSuffix ends the names of programs.
const exeSuffix = ""

// systemVariables are those that a program needs to start.
func systemVariables() []string { return nil }
