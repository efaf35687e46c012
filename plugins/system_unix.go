//go:build unix

package plugins

import (
	"io/fs"
	"os"
	"strconv"
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

// killedState is how a process ends that was killed.
const killedState = "signal: killed"

// keepFiles makes what this process has inherited open not go on to a plugin.
// What Go opens does not in any case.
func keepFiles() {
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // there is no such list on this system
	}
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// executable reports whether the mode lets somebody run the file.
func executable(mode fs.FileMode) bool { return mode&0o111 != 0 }

// exeSuffix ends the names of programs.
const exeSuffix = ""

// systemVariables are those that a program needs to start.
func systemVariables() []string { return nil }
