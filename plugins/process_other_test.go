//go:build !unix

package plugins_test

func alive(int) bool { return false }

func hostMain() bool { return false }
