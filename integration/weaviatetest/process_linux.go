package weaviatetest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the program when this one ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
