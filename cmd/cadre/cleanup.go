package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/branches"
	"cadre/internal/checkpoint"
	"cadre/internal/coord"
	"cadre/internal/proc"
	"cadre/internal/sanitize"
	"cadre/internal/show"
	"cadre/internal/team"
)

// cleaning says how a team is removed.
type cleaning struct {
	force    bool // end whoever still runs
	branches bool // remove its branches too
}

func (a *app) cleanupCommand() *cobra.Command {
	var how cleaning
	c := a.onTeam(0, &cobra.Command{
		Use: "cleanup [TEAM]", Short: "Remove a team and everything that belongs to it",
		Long: `Remove a team: its folder with its history, and what Claude Code was shown of it. It is refused while a teammate runs,
unless it is forced; then the sessions are ended first. It may be called again at any time.

The team's branches stay in the repository, and are named: cadre/TEAM with its checkpoints, and those of members that worked in worktrees.
With --branches they are removed, whether or not their work is merged; what each was is printed. Branches that are checked out stay. Where the
team is gone already, those of the repository that you are in are removed: cadre cleanup TEAM --branches. A worktree
whose repository cannot be reached is kept, and named.`,
	}, func(c *cobra.Command, name string, _ []string) error {
		ctx, cancel := context.WithTimeoutCause(c.Context(), time.Minute, fmt.Errorf("team %s could not be cleaned up within a minute", name))
		defer cancel()
		return a.cleanup(ctx, name, how)
	})
	c.Flags().BoolVar(&how.force, "force", false, "end whoever still runs")
	c.Flags().BoolVar(&how.branches, "branches", false, "remove the team's branches from the repository too")
	return c
}

func (a *app) cleanup(ctx context.Context, name string, how cleaning) error {
	if t, err := a.glance(ctx, name); team.CodeOf(err) == team.NotFound || err == nil && t.Observed != "" {
		if done, err := a.forget(ctx, name, t); done || err != nil {
			return err
		}
	}
	d, dir, err := a.open(ctx, name, true)
	if team.CodeOf(err) == team.NotFound { // as after a cleanup before this one
		if err := a.home.Sweep(); err != nil {
			return err
		}
		return a.cleanUpAfter(ctx, name, how)
	}
	if err != nil {
		return err
	}
	t := d.Team()
	_, err = d.Do(ctx, team.Command{Actor: a.actor, Body: &team.CleanUp{Force: how.force}})
	var members []team.Member
	d.View(func(s *team.State) { members = s.Members() })
	if err := d.Close(); err != nil {
		a.note(err.Error())
	}
	if err != nil {
		return err
	}
	if err := coord.Settle(ctx, filepath.Join(dir, "hosts"), t.Dir, a.note); err != nil {
		return &team.Error{Code: team.NotReady, Text: "the team is ended, but a process of it is still there: " + err.Error() + "; run cadre cleanup again"}
	}
	if now, err := a.glance(ctx, name); err == nil && now.ID != t.ID {
		return a.print(t, said("team %s is removed; another one of that name has begun meanwhile", name))
	}
	left, err := branchesOf(ctx, t, members, how.branches)
	if err != nil {
		return err
	}
	if err := coord.DropWork(ctx, t); err != nil {
		a.note(err.Error())
	}
	if err := a.removeFolder(dir); err != nil {
		return err
	}
	return a.cleaned(t, left, fmt.Sprintf("team %s is removed", name))
}

// removeFolder removes the folder of a team, and keeps what is nowhere else.
func (a *app) removeFolder(dir string) error {
	kept, err := a.home.KeepWorktrees(dir)
	if err != nil {
		return err
	}
	if kept != "" {
		a.note("worktrees that could not be put on their branches are kept in " + kept)
	}
	return a.home.Remove(dir)
}

// branchesOf lists the branches of the team, and removes them first if that is wished.
func branchesOf(ctx context.Context, t team.Team, members []team.Member, remove bool) ([]branches.Branch, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	all, err := branches.Of(ctx, procs, t, members)
	if err != nil || !remove {
		return all, err
	}
	return branches.Remove(ctx, procs, t, all)
}

// cleanUpAfter removes the branches of a team that is not here any more from the repository that the command was called in, if that is wished. The
// checkpoints there say whose they are.
func (a *app) cleanUpAfter(ctx context.Context, name string, how cleaning) error {
	gone := team.Team{Name: name, CleanedUp: true}
	nothing := fmt.Sprintf("there is no team %s; nothing is left to remove", name)
	if !how.branches {
		return a.print(gone, said("%s", nothing))
	}
	here, err := workDir(".")
	if err != nil {
		return err
	}
	all, err := checkpointsIn(ctx, here)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Name != name || one.Remote != "" || one.Team == "" {
			continue
		}
		if one.Status != team.TeamComplete && one.Status != team.TeamAborted && !how.force {
			return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("team %s is not here, and by its checkpoints in %s it is %s: it may run elsewhere. Continue it here: cadre resume %s --from-git; to remove its branches all the same: cadre cleanup %s --branches --force",
				name, here, one.Status, name, name)}
		}
		gone.ID, gone.Dir = one.Team, here
		var members []team.Member
		for _, member := range one.Members {
			members = append(members, team.Member{Name: member, Isolation: team.Worktree})
		}
		left, err := branchesOf(ctx, gone, members, true)
		if err != nil {
			return err
		}
		return a.cleaned(gone, left, "there is no team "+name)
	}
	return a.print(gone, said("%s", nothing))
}

// checkpointsIn lists the checkpoints in the repository of the directory.
func checkpointsIn(ctx context.Context, dir string) ([]checkpoint.Listed, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	return checkpoint.List(ctx, procs, dir)
}

// cleaned prints what became of a team that was removed, and of its branches.
func (a *app) cleaned(t team.Team, left []branches.Branch, what string) error {
	value := map[string]any{}
	text, err := json.Marshal(t)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return err
	}
	maps.Copy(value, map[string]any{"branches": append([]branches.Branch{}, left...)})
	return a.print(value, func(w *sanitize.Writer) error {
		w.Printf("%s\n", what)
		if len(left) == 0 {
			return nil
		}
		stay := false
		for _, b := range left {
			stay = stay || !b.Removed && b.Unknown == "" && b.CheckedOut == ""
		}
		w.Printf("its branches in %s:\n", t.Dir)
		var table show.Table
		for _, b := range left {
			table.Row("", b.Name, b.String())
		}
		if err := table.Write(w); err != nil || !stay {
			return err
		}
		return w.Printf("to remove them: cd %s && cadre cleanup %s --branches --force\n", t.Dir, t.Name)
	})
}
