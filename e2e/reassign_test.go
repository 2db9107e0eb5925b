package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestReassignBringsTheWork checks that the changes of a member go with its task. Its host may be
// killed, or may run and not know of them. Changes from before the team do not go with it.
func TestReassignBringsTheWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isolation string
		killed    bool
	}{"a worktree, its host killed": {team.Worktree, true}, "a worktree, living": {team.Worktree, false},
		"the team's directory, its host killed": {"", true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository()
			w.write(".env", "FOO=supersecretvalue\n")
			mark, now := mark(), time.Now()
			commands := founding(now, &team.CreateTeam{Name: "demo", Dir: w.dir,
				Base: consolidate.Look(t.Context(), w.dir)})
			for _, body := range []team.Body{&team.SpawnMember{Name: "ann", Agent: team.Shell, Isolation: c.isolation},
				&team.SpawnMember{Name: "bob", Agent: team.External},
				&team.CreateTask{Subject: "half", Owner: "ann",
					Run: "echo half of it >half && mv half half.txt; sleep " + mark}} {
				commands = append(commands, command(now, body))
			}
			if err := (layout.Home{Root: w.home}).Create("demo", commands); err != nil {
				t.Fatal(err)
			}
			host := w.start("host", "demo")
			where := w.dir
			if c.isolation != "" {
				where = filepath.Join(w.teamDir(), "worktrees", "ann")
			}
			eventually(t, "half of it is done", func() bool { return has(where, "half.txt") })
			reassign := []string{"reassign", "demo", "1", "bob"}
			if c.killed {
				host.killAll(mark)
			} else {
				reassign = append(reassign, "--force")
			}
			order(t, w.must(reassign...), "task 1 is bob's now, with what ann had done of it")
			saved := w.task("1").Saved
			if saved == nil || saved.Member != "ann" || !strings.Contains(saved.Diff, "+half of it") ||
				strings.Contains(saved.Diff, "supersecret") {
				t.Errorf("the task comes with %+v", saved)
			}
			w.must("checkpoint", "demo")
			for file := range strings.FieldsSeq(w.gitSays("ls-tree", "-r", "--name-only", "cadre/demo")) {
				if strings.Contains(w.gitSays("show", "cadre/demo:"+file), "supersecret") {
					t.Errorf("%s contains the secret of the person", file)
				}
			}
			w.must("abort", "demo", "--yes")
			noneLeft(t, mark)
		})
	}
}
