package pgjournal_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
)

// The test binary is also the child process of these tests, with a role in its environment.
const roleVar = "PGJOURNAL_TEST_CHILD"

// task describes the work of a child.
type task struct {
	Role   string
	At     where
	Name   string // part of the ids of its records
	Count  int    // records to append; 0 for no limit
	Beside int    // goroutines that append
	KillAt int    // the step at which it kills itself; 0 for never
	StopAt string // the step at which it waits to be stopped, for a byte of input; "" for never
	Stall  time.Duration
}

func (t task) run() error {
	opts := pgjournal.Options{Schema: t.At.Schema, Stall: t.Stall}
	steps := 0
	opts.Step = func(step string) {
		if steps++; steps == t.KillAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		if step == t.StopAt {
			fmt.Println("waiting")
			_, _ = os.Stdin.Read(make([]byte, 1)) // a signal to itself may come a moment too late
		}
	}
	if t.Beside > 1 {
		opts.Step = nil // it counts for one goroutine
	}
	ctx := context.Background()
	s, err := pgjournal.Connect(ctx, t.At.DSN, opts)
	if err != nil {
		return err
	}
	defer s.Close()
	j, err := s.Open(ctx, teamID)
	if err != nil {
		return err
	}
	defer j.Close()
	switch t.Role {
	case "append":
		return t.append(j)
	case "race":
		return t.race(j)
	case "reread":
		return t.reread(j)
	}
	return fmt.Errorf("no such role: %s", t.Role)
}

// id returns the id of a record that a child appends.
func id(name string, n int) string { return fmt.Sprintf("%s-%d", name, n) }

// append adds records and prints which ones were acknowledged.
func (t task) append(j *pgjournal.Journal) error {
	last := int64(0)
	for n := 0; n < t.Count || t.Count == 0; n++ {
		var err error
		last, err = j.Append(context.Background(), last, func(journal.Record) error { return nil },
			func() ([]byte, error) { return fmt.Appendf(nil, `{"id":"%s"}`, id(t.Name, n)), nil })
		if err != nil {
			return err
		}
		fmt.Printf("%d %s\n", last, id(t.Name, n))
	}
	return nil
}

// reread appends without an end. It has read nothing before each append, so it has much to catch
// up.
func (t task) reread(j *pgjournal.Journal) error {
	fmt.Println("ready")
	for n := 0; ; n++ {
		_, err := j.Append(context.Background(), 0, func(journal.Record) error { return nil },
			func() ([]byte, error) { return fmt.Appendf(nil, `{"id":"%s"}`, id(t.Name, n)), nil })
		if err != nil { // it was stopped for too long
			fmt.Println("error:", err)
		}
	}
}

// decided is a record that says on which state it was decided.
type decided struct {
	Writer string
	N      int
	On     int64
}

// race appends from several goroutines. Each record says on which state it was decided.
func (t task) race(j *pgjournal.Journal) error {
	errs := make(chan error, t.Beside)
	var wg sync.WaitGroup
	for g := range t.Beside {
		wg.Go(func() { errs <- appendDecided(j, id(t.Name, g), t.Count) })
	}
	wg.Wait()
	for range t.Beside {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func appendDecided(j journal.Journal, name string, count int) error {
	state := int64(0)
	for n := range count {
		seq, err := j.Append(context.Background(), state, func(r journal.Record) error {
			if r.Seq != state+1 {
				return fmt.Errorf("after record %d came %d", state, r.Seq)
			}
			state = r.Seq
			return nil
		}, func() ([]byte, error) { return json.Marshal(decided{name, n, state}) })
		if err != nil {
			return err
		}
		if seq != state+1 {
			return fmt.Errorf("decided on %d, and written as %d", state, seq)
		}
		state = seq
	}
	return nil
}

// child is a process that runs a task.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t testing.TB, task task) *child {
	t.Helper()
	env, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVar+"="+string(env))
	cmd.Stderr = os.Stderr
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
	c := &child{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return c
}

// line returns the child's next line of output, or "" at its end.
func (c *child) line() string {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(line, "\n")
}

// end waits for the child to exit and returns the rest of its output.
func (c *child) end() (string, error) {
	rest, _ := io.ReadAll(c.out)
	return string(rest), c.cmd.Wait()
}
