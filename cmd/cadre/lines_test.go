package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// severalLines as the value of asProgram makes the test binary run the lines of [call.lines].
const severalLines = "lines"

// line is a command line, and the directory in which it runs.
type line struct {
	Dir  string
	Args []string
}

// answer is what a line printed.
type answer struct {
	Out, Err []byte
	Code     int
}

// lines starts a process that runs lines one after the other, in the environment of c. Most of the
// time of a process that runs a single line is its start.
func (c call) lines(t *testing.T) func(dir string, args ...string) printed {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(c.env, asProgram+"="+severalLines), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	asks, answers := json.NewEncoder(in), json.NewDecoder(out)
	return func(dir string, args ...string) printed {
		t.Helper()
		hangs := time.AfterFunc(patience, func() { cmd.Process.Signal(syscall.SIGQUIT) })
		defer hangs.Stop()
		var a answer
		if err := asks.Encode(line{dir, args}); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if err := answers.Decode(&a); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return printed{a.Out, a.Err, a.Code}
	}
}

// runLines is the process of [call.lines].
func runLines() {
	os.Setenv(asProgram, "1") // for the processes that a line starts
	asked, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var err error
	if os.Stdin, err = os.Open(os.DevNull); err != nil {
		panic(err)
	}
	for {
		var l line
		if asked.Decode(&l) != nil {
			os.Exit(0)
		}
		a, err := l.run()
		if err != nil {
			panic(err)
		}
		answers.Encode(a)
	}
}

// run runs the line in this process.
func (l line) run() (a answer, err error) {
	if err := os.Chdir(l.Dir); err != nil {
		return a, err
	}
	dir, err := os.MkdirTemp("", "line-")
	if err != nil {
		return a, err
	}
	defer os.RemoveAll(dir)
	defer func(out, errs *os.File) { os.Stdout, os.Stderr = out, errs }(os.Stdout, os.Stderr)
	os.Stdout, err = os.Create(dir + "/out")
	if err != nil {
		return a, err
	}
	defer os.Stdout.Close()
	os.Stderr, err = os.Create(dir + "/err")
	if err != nil {
		return a, err
	}
	defer os.Stderr.Close()
	a.Code = execute(context.Background(), haste{}, asTeammate(l.Args))
	if a.Out, err = os.ReadFile(os.Stdout.Name()); err != nil {
		return a, err
	}
	a.Err, err = os.ReadFile(os.Stderr.Name())
	return a, err
}
