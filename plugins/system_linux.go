package plugins

import "syscall"

// maxSocketPath is the greatest length of a socket's path in bytes: 108 in the
// kernel's structure with the zero byte at its end.
const maxSocketPath = 107

// processAttributes puts a plugin into a process group of its own, and lets
// the kernel kill it when the thread that starts it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
