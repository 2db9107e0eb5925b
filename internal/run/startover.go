package run

import (
	"context"
	"fmt"
	"strings"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/git/worktree"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// merged refuses to start a team over while its members' branches have work that HEAD does not
// have: the new members would start with that work.
func merged(ctx context.Context, t team.Team, members []team.Member) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	for _, m := range members {
		if m.Isolation != team.Worktree {
			continue
		}
		branch := team.BranchOf(t.Name, m.Name)
		if ahead, err := worktree.Ahead(ctx, procs, t.Dir, branch); err != nil { // the repository no longer exists
			return nil
		} else if ahead == "" {
			continue
		}
		refusal := team.Refuse(team.NotReady, "the earlier team %s is %s, and work of %s is on the branch %s, which "+
			"is not merged", t.Name, t.Status, m.Name, branch)
		merge := team.Hint{Action: team.ActMergeBranch, Team: t.Name, Name: branch, Dir: t.Dir}
		if t.Status == team.TeamComplete && t.Consolidation.Step != team.Done {
			merge = team.Hint{Action: team.ActConsolidate, Team: t.Name}
		}
		return refusal.With(merge, team.Hint{Action: team.ActDeleteBranch, Team: t.Name, Name: branch, Dir: t.Dir})
	}
	return nil
}

// StartOverError is the refusal to begin with a new team while an earlier one of that name has work
// that would be lost from sight.
type StartOverError struct{ error }

func (e *StartOverError) Unwrap() error { return e.error }

// unfinishedInGit refuses to make a team while the repository has an unfinished one of that name.
// The new one would do its tasks again, and its checkpoints would take the branch.
func (a *attempt) unfinishedInGit(ctx context.Context) error {
	if a.StartOver || a.nested != nil {
		return nil
	}
	of, there := a.Engine.UnfinishedInGit(ctx, a.Dir, a.File.Name)
	if !there {
		return nil
	}
	return &StartOverError{team.Refuse(team.NotReady, "the branch %s has checkpoints of an unfinished team %s, which is "+
		"not in this home", of.Where(), of.Name).With(team.Hint{Action: team.ActContinueCopy, Team: of.Name})}
}

// uncommitted refuses to start a complete team over while its work in the shared directory is not
// committed: the new team would find these files as changes of the user.
func (a *attempt) uncommitted(ctx context.Context, of *engine.Team) error {
	if a.StartOver {
		return nil
	}
	files, err := consolidate.Uncommitted(ctx, of.Consolidation(), nil)
	if err != nil || len(files) == 0 { // the directory does not exist any more, or git fails: nothing can be committed
		return ctx.Err()
	}
	t := of.Team()
	const most = 5
	names := strings.Join(files[:min(most, len(files))], ", ")
	if more := len(files) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	are := "are"
	if len(files) == 1 {
		are = "is"
	}
	return &StartOverError{team.Refuse(team.NotReady, "the earlier team %s is complete, and %s of its work %s not "+
		"committed: %s", t.Name, team.Count(len(files), "file"), are, names).
		With(team.Hint{Action: team.ActConsolidate, Team: t.Name})}
}
