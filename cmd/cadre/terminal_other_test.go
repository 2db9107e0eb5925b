//go:build !linux

package main

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// terminals reports whether the tests can open one. Other systems than Linux do so by calls that
// need package unsafe.
const terminals = false

func openTerminal(*testing.T) (ours, theirs *os.File) { panic("there is no terminal") }

func runOnTerminal(*testing.T, *exec.Cmd, io.Writer, string) error { panic("there is no terminal") }
