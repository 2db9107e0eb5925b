package catalog_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/consolidate"
	"cadre/internal/inspect/catalog"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestListAsksGitOnce checks that a list asks git once for a work tree, however many complete teams
// worked there, and still says for each team which files are not committed.
func TestListAsksGitOnce(t *testing.T) {
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	project, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(real, "init", "-q", project).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h := layout.Home{Root: t.TempDir()}
	for _, name := range []string{"one", "two", "three"} {
		base := consolidate.Look(t.Context(), project)
		if err := os.WriteFile(filepath.Join(project, name+".txt"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		at := replica.Now() // a file that is written after the team is complete is not the team's
		var commands []team.Command
		for i, body := range []team.Body{&team.CreateTeam{TeamID: name + "-1", Name: name, Dir: project, Base: base},
			&team.CreateTask{Subject: name}, &team.CompleteTask{Task: "1"},
			&team.SetStatus{Status: team.TeamComplete}} {
			commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: at + team.Time(1000+i),
				Body: body})
		}
		if err := h.Create(name, commands); err != nil {
			t.Fatal(err)
		}
	}
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	script := "#!/bin/sh\necho x >> '" + calls + "'\nexec '" + real + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	all, err := catalog.List(t.Context(), h, false, func(text string) { t.Log(text) })
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, e := range all {
		waits := func(i team.Item) bool {
			return i.Kind == team.ItemConsolidate && strings.Contains(i.Text, e.Name+".txt")
		}
		if e.Err != nil || !slices.ContainsFunc(e.Overview.Attention, waits) {
			t.Errorf("%s: %+v, %v", e.Name, e.Overview.Attention, e.Err)
		}
	}
	asked, err := os.ReadFile(calls)
	if n := strings.Count(string(asked), "x"); n != 2 || err != nil { // for the work tree, and for its status
		t.Errorf("git ran %d times, %v", n, err)
	}
}
