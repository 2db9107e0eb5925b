package host_test

import (
	"fmt"
	"slices"
	"testing"

	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/team"
)

// TestWorktreeHints checks that each remedy for a worktree is a hint that says where and on what.
func TestWorktreeHints(t *testing.T) {
	t.Parallel()
	p := worktree.Place{Repo: "/repo", Dir: "/trees/ann", Branch: "cadre/demo@ann"}
	same := func(a, b team.Hint) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
	for does, want := range map[worktree.Remedy]team.Hint{
		worktree.RemoveRecord: {Action: team.ActForgetWorktree, Name: p.Dir},
		worktree.Reconnect:    {Action: team.ActRepairWorktree, Name: p.Dir},
		worktree.Unlock:       {Action: team.ActUnlockWorktree, Name: p.Dir},
		worktree.CheckOut:     {Action: team.ActCheckOut, Name: p.Branch},
		worktree.KeepCommit:   {Action: team.ActKeepCommit, From: "c1"},
		worktree.ListFiles:    {Action: team.ActShowFile, From: "c1"},
	} {
		want.Team, want.Dir = "demo", p.Repo
		err := fmt.Errorf("look: %w", &worktree.BrokenError{Fix: worktree.Fix{Does: does, Dir: p.Repo, ID: "c1"}})
		got := host.WorktreeHints(team.Team{Name: "demo"}, p, err)
		if !slices.EqualFunc(got, []team.Hint{want}, same) {
			t.Errorf("remedy %d: got %+v, want %+v", does, got, want)
		}
	}
	if got := host.WorktreeHints(team.Team{}, p, &worktree.BrokenError{}); got != nil {
		t.Errorf("an error without a remedy has %+v", got)
	}
}
