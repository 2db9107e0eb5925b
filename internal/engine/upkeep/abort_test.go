package upkeep_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/consolidate"
	"cadre/internal/engine/upkeep"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestAbortTakesOut: changes that a killed consolidation made in the work tree are removed by an
// abort, even if the aborting process was killed after it recorded the abort. Changes made after
// the end of an earlier consolidation are a person's work, and stay.
func TestAbortTakesOut(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for name, c := range map[string]struct {
		before []team.Body // after the consolidation was killed
		stays  bool
	}{
		"at once":                {},
		"killed after the abort": {before: []team.Body{&team.SetStatus{Status: team.TeamAborted}}},
		"abandoned before": {before: []team.Body{&team.AbandonConsolidation{Attempt: 1, Reason: "no"}},
			stays: true},
		"abandoned before, killed after the abort": {before: []team.Body{
			&team.AbandonConsolidation{Attempt: 1, Reason: "no"}, &team.SetStatus{Status: team.TeamAborted}},
			stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			home, project := layout.Home{Root: t.TempDir()}, t.TempDir()
			git := func(args ...string) string {
				t.Helper()
				out, err := exec.Command("git", append([]string{"-C", project, "-c", "user.name=Ann", "-c",
					"user.email=ann@example.org"}, args...)...).CombinedOutput()
				if err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			git("init", "-q", "-b", "main")
			git("commit", "-q", "--allow-empty", "-m", "first")
			of := opened(t, home, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: project,
				Base: consolidate.Look(t.Context(), project)}, &team.SpawnMember{Name: "eve", Agent: team.External})

			// Make the state after a kill, with the work of eve in the work tree.
			hers := filepath.Join(project, "hers.txt")
			if err := os.WriteFile(hers, []byte("hers\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			git("add", "hers.txt")
			tree := git("write-tree")
			git("rm", "-q", "--cached", "hers.txt")
			head := git("rev-parse", "HEAD")
			for _, body := range append([]team.Body{&team.Consolidate{}, &team.ReportMerged{Attempt: 1},
				&team.ReportStaged{Attempt: 1, Parent: head, Tree: tree, Before: git("rev-parse", "HEAD^{tree}"),
					Files:    1,
					Branches: []team.Branch{{Member: "eve", Name: "cadre/demo/eve", Commit: head}}}}, c.before...) {
				if _, err := of.Do(t.Context(), team.Command{Actor: team.User, Body: body}); err != nil {
					t.Fatal(err)
				}
			}

			for range 2 { // it may be called again
				if err := upkeep.Abort(t.Context(), of, "enough"); err != nil {
					t.Fatal(err)
				}
			}
			if is := of.Replica.Team(); is.Status != team.TeamAborted || is.Consolidation.Step != team.Abandoned {
				t.Errorf("the team is %s, its consolidation %s", is.Status, is.Consolidation.Step)
			}
			if _, err := os.Stat(hers); os.IsNotExist(err) == c.stays {
				t.Errorf("what eve did is to stay in the work tree: %t; %v", c.stays, err)
			}

			// From then on, even an identical file is a person's work.
			if err := os.WriteFile(hers, []byte("hers\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := upkeep.Abort(t.Context(), of, "enough"); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(hers); err != nil {
				t.Errorf("a later abort removed a person's file: %v", err)
			}
		})
	}
}

// opened creates the team demo in the home, with these commands of the user, and opens it.
func opened(t *testing.T, home layout.Home, bodies ...team.Body) upkeep.Team {
	t.Helper()
	var commands []team.Command
	for _, body := range bodies {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body})
	}
	if err := home.Create("demo", commands); err != nil {
		t.Fatal(err)
	}
	j, dir, err := home.Open("demo", func(what string) { t.Error(what) })
	if err != nil {
		t.Fatal(err)
	}
	of := upkeep.Team{Dir: dir, Actor: team.User, Log: func(what string) { t.Log(what) }}
	if of.Replica, err = replica.Open(t.Context(), j, replica.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { of.Close() })
	return of
}
