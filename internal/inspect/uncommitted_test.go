package inspect_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/inspect"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestUncommitted follows a complete team whose files are not committed, and checks that git runs
// only after a change.
func TestUncommitted(t *testing.T) {
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	// a git that counts its calls
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	script := "#!/bin/sh\necho x >> '" + calls + "'\nexec '" + real + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	project, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		c := exec.Command(real, append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
		c.Dir = project
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	write("old.txt", "old\n")
	git("add", "old.txt")
	git("commit", "-q", "-m", "first")

	h := layout.Home{Root: t.TempDir()}
	at := team.Time(time.Now().UnixMilli())
	var commands []team.Command
	for i, body := range []team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: project,
		Base: consolidate.Look(t.Context(), project)}, &team.CreateTask{Subject: "one"}} {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: at + team.Time(i),
			Body: body})
	}
	if err := h.Create("demo", commands); err != nil {
		t.Fatal(err)
	}
	j, dir, err := h.Open("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	looker, now := &inspect.Looker{Replica: rep, Home: h, Dir: dir}, time.Now()
	look := func(after string, asks bool, want ...string) {
		t.Helper()
		os.Remove(calls)
		now = now.Add(2 * inspect.MaxAge)
		found, err := looker.Look(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(found.Uncommitted, want) {
			t.Errorf("%s: %q is not committed, not %q", after, found.Uncommitted, want)
		}
		asked, _ := os.ReadFile(calls)
		if (len(asked) > 0) != asks {
			t.Errorf("%s: git ran %d times", after, strings.Count(string(asked), "x"))
		}
	}
	write("new.txt", "new\n")
	write("old.txt", "changed\n")
	look("while it works", false)
	for _, body := range []team.Body{&team.CompleteTask{Task: "1"}, &team.SetStatus{Status: team.TeamComplete}} {
		if _, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	look("when it is complete", true, "old.txt", "new.txt")
	look("again", false, "old.txt", "new.txt")
	git("commit", "-q", "-m", "by hand", "old.txt")
	look("after a commit of one file", true, "new.txt")
	if err := os.Remove(filepath.Join(project, "new.txt")); err != nil {
		t.Fatal(err)
	}
	look("after the other one is removed", true)
	look("after that", false)
	now = now.Add(time.Hour)
	look("an hour later", true)
}
