//go:build unix && !linux

package plugins

import "syscall"

// maxSocketPath is the greatest length of a socket's path in bytes: 104 in the
// kernel's structure with the zero byte at its end.
const maxSocketPath = 103

// processAttributes puts a plugin into a process group of its own. It ends
// with its host because its standard input does.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
