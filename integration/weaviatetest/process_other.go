//go:build !linux

package weaviatetest

import "os/exec"

// dieWithParent does nothing: the system has no such setting. The server ends
// with Close.
func dieWithParent(*exec.Cmd) {}
