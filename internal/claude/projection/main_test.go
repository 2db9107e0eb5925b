package projection

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"cadre/internal/journal/filejournal"
	"cadre/internal/team"
)

// The test binary is also the child process of these tests, with its work in its environment.
const childVariable = "CLAUDEFS_TEST_CHILD"

// childWork describes the work of a child.
type childWork struct {
	Dir    string // the team's own folder
	Claude string
	Name   string // name of the child, used in the ids of its commands
	Count  int    // number of tasks to create and claim, with a projection after each
	KillAt int    // the step of a projection at which it kills itself; 0 for never
}

func TestMain(m *testing.M) {
	if env := os.Getenv(childVariable); env != "" {
		var e childWork
		err := json.Unmarshal([]byte(env), &e)
		if err == nil {
			err = e.run(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func (e childWork) run(ctx context.Context) error {
	j, err := filejournal.Open(e.Dir, filejournal.Options{})
	if err != nil {
		return err
	}
	defer j.Close()
	p := projectorOf(e.Dir, e.Claude)
	if e.KillAt > 0 {
		steps := 0
		p.step = func(string) {
			if steps++; steps == e.KillAt {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	h := &history{journal: j, state: &team.State{}, name: e.Name}
	if err := h.refresh(ctx); err != nil {
		return err
	}
	if e.Count == 0 {
		return p.Project(ctx, j, h.state)
	}
	return h.work(ctx, p, e.Count)
}

// start starts a child; the returned function waits for it and returns what Wait did.
func (e childWork) start(t testing.TB) func() error {
	t.Helper()
	env, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+string(env))
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() error {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			t.Log(e.Name, "said:", lines.Text())
		}
		return cmd.Wait()
	}
}
