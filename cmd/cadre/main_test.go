package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"cadre/internal/testkit/soak"
)

// asProgram makes the test binary run as the program, so that a test sees what a process writes to
// its streams.
const asProgram = "CADRE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "1":
		main()
	case severalLines:
		runLines()
	}
	soak.Beside(4)
	soak.InMemory()
	os.Exit(m.Run())
}

// call is one run of the program.
type call struct {
	args   []string
	dir    string
	env    []string // in addition to HOME and the like; the test's own environment is not passed on
	stdin  io.Reader
	until  string // interrupt it when it has printed this; "" to wait for its end
	types  string // the input on the terminal
	onTerm bool   // on a terminal, with both outputs and the input
}

// printed is the output of a run. On a terminal everything is in out.
type printed struct {
	out, err []byte
	code     int
}

// patience limits a run of the program.
const patience = 60 * time.Second

// run runs the program to its end.
func (c call) run(t *testing.T) printed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, c.args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.dir, append(c.env, asProgram+"=1"), c.stdin
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // so that it prints where it hangs
	cmd.WaitDelay = 5 * time.Second
	interrupt := func() { cmd.Process.Signal(syscall.SIGINT) }
	out, errs := &awaited{text: c.until, then: interrupt}, &awaited{text: c.until, then: interrupt}
	if c.onTerm {
		err = runOnTerminal(t, cmd, out, c.types)
	} else {
		cmd.Stdout, cmd.Stderr = out, errs
		err = cmd.Run()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || !exit.Exited()) || ctx.Err() != nil {
		t.Errorf("%q: %v\n%s\n%s", c.args, err, out.kept, errs.kept)
	}
	return printed{out.kept, errs.kept, cmd.ProcessState.ExitCode()}
}

// awaited keeps the output, and calls then once when it contains the text.
type awaited struct {
	kept []byte
	text string
	then func()
}

func (a *awaited) Write(p []byte) (int, error) {
	a.kept = append(a.kept, p...)
	if a.text != "" && bytes.Contains(a.kept, []byte(a.text)) {
		a.text = ""
		a.then()
	}
	return len(p), nil
}
