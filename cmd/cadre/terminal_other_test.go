//go:build !linux

package main

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// terminals reports whether the tests can open a terminal. Systems other than Linux need package
// unsafe for that.
const terminals = false

func openTerminal(*testing.T) (ours, theirs *os.File) { panic("no terminal on this system") }

func runOnTerminal(*testing.T, *exec.Cmd, io.Writer, string) error {
	panic("no terminal on this system")
}
