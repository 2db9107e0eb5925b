// Package hosttest runs hosts in the background for tests of front ends. The test program is its
// own host, so that a test needs no other program. Only commands of the user run there. When
// [Await] returns, no host of the test's home writes any more, and no goroutine of the test waits
// for one.
package hosttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/shell"
	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// word is the first argument of a test program that is a host. It also begins the names of the
// files in the home by which a test knows its hosts. The pid and the start time follow.
const word = "host-for-a-test"

// Main hosts a team, if this process is to be a host, and then ends the process. Call it in
// TestMain, before the tests run.
func Main() {
	if len(os.Args) != 5 || os.Args[1] != word {
		return
	}
	if err := host(layout.Home{Root: os.Args[2], Claude: os.Args[3]}, os.Args[4]); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// Command is for [engine.Engine.HostCommand]: it returns the command line of a host for a team in
// that home.
func Command(home layout.Home) func(team string) []string {
	return func(team string) []string { return []string{os.Args[0], word, home.Root, home.Claude, team} }
}

func host(home layout.Home, name string) error {
	start, err := proc.StartTime(os.Getpid())
	if err != nil {
		return err
	}
	mark := fmt.Sprintf("%s %d %x", word, os.Getpid(), start)
	if err := os.WriteFile(filepath.Join(home.Root, mark), nil, 0o600); err != nil {
		return err
	}
	t, err := (&engine.Engine{Home: home}).Open(context.Background(), name)
	if err != nil {
		return err
	}
	defer t.Close()
	h, err := t.Host(context.Background(), engine.HostOptions{Agent: Shells, UntilIdle: true})
	if err != nil {
		return err
	}
	return h.Err()
}

// Shells is for [engine.HostOptions]: members are commands of the user, and end quickly.
func Shells(name string) agent.Agent {
	if name != team.Shell {
		return nil
	}
	return shell.Agent{Ladder: proc.Ladder{Term: 100 * time.Millisecond}}
}

// Await waits until the hosts that [Command] started in that home have ended. A host still writes,
// such as a snapshot, after it has left its team. With the race detector a process ends a second
// after its last statement, and until then a goroutine of the test waits for it.
func Await(t testing.TB, root string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); running(t, root); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("a host in the background does not end")
			return
		}
	}
}

func running(t testing.TB, root string) bool {
	t.Helper()
	marks, err := filepath.Glob(filepath.Join(root, word+" *"))
	if err != nil {
		t.Error(err)
	}
	return slices.ContainsFunc(marks, func(mark string) bool {
		var pid int
		var start string
		if _, err := fmt.Sscanf(filepath.Base(mark), word+" %d %x", &pid, &start); err != nil {
			t.Error(err)
		}
		return proc.Alive(pid, start)
	})
}
