package filejournal_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

// The test binary is also the child process of these tests, with a role in its environment.
const roleVar = "FILEJOURNAL_TEST_CHILD"

// task describes the work of a child.
type task struct {
	Role        string
	Dir         string
	Name        string // part of the ids of its records
	Count       int    // records to append; 0 for no limit
	SegmentSize int64
	KillAt      int // the step at which it kills itself; 0 for never
	FileLimit   uint64
	Data        string
}

func TestMain(m *testing.M) {
	if env := os.Getenv(roleVar); env != "" {
		var t task
		if err := json.Unmarshal([]byte(env), &t); err != nil {
			panic(err)
		}
		if err := t.run(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	debug.SetGCPercent(800) // thousands of simulated disks are created and dropped
	goleak.VerifyTestMain(m)
}

func (t task) run() error {
	opts := filejournal.Options{SegmentSize: t.SegmentSize, KeyframeEvery: 6}
	if t.KillAt > 0 {
		steps := 0
		opts.Step = func(string) {
			if steps++; steps == t.KillAt {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	if t.FileLimit > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: t.FileLimit,
			Max: t.FileLimit}); err != nil {
			return err
		}
	}
	j, err := filejournal.Open(t.Dir, opts)
	if err != nil {
		return err
	}
	defer j.Close()
	switch t.Role {
	case "append":
		return t.append(j)
	case "on command":
		return t.onCommand(j)
	case "hold":
		return t.hold(j)
	}
	return fmt.Errorf("no such role: %s", t.Role)
}

// id returns the id of a record that a child appends.
func id(name string, n int) string { return fmt.Sprintf("%s-%d", name, n) }

// append adds records and prints which ones were acknowledged. It saves a snapshot now and then.
func (t task) append(j *filejournal.Journal) error {
	ctx := context.Background()
	state, err := j.Snapshot(ctx)
	if err != nil {
		return err
	}
	last := state.Seq
	for n := 0; n < t.Count || t.Count == 0; n++ {
		last, err = j.Append(ctx, last, func(journal.Record) error { return nil }, func() ([]byte, error) {
			return fmt.Appendf(nil, `{"id":"%s","data":"%s"}`, id(t.Name, n), t.Data), nil
		})
		if err != nil {
			return err
		}
		fmt.Printf("%d %s\n", last, id(t.Name, n))
		if n%4 == 3 {
			if err := j.SaveSnapshot(ctx, journal.Snapshot{Seq: last, Data: fmt.Sprintf(`{"at":%d}`,
				last)}.Taken); err != nil {
				return err
			}
		}
	}
	return nil
}

// onCommand appends a burst of records for each line of input, and reports when it is done.
func (t task) onCommand(j *filejournal.Journal) error {
	last := int64(0)
	if s, err := j.Snapshot(context.Background()); err == nil {
		last = s.Seq
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var n int
		fmt.Sscan(in.Text(), &n)
		for range n {
			var err error
			if last, err = journaltest.Add(context.Background(), j, last, t.Data); err != nil {
				return err
			}
		}
		fmt.Println("done")
	}
	return nil
}

// hold keeps the write lock until its input ends.
func (t task) hold(j *filejournal.Journal) error {
	_, err := j.Append(context.Background(), 0, func(journal.Record) error { return nil }, func() ([]byte, error) {
		fmt.Println("ready")
		_, err := io.ReadAll(os.Stdin)
		return nil, err
	})
	return err
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
	return &child{cmd, in, bufio.NewReader(out)}
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
	c.in.Close()
	rest, _ := io.ReadAll(c.out)
	return string(rest), c.cmd.Wait()
}
