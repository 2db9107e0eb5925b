package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate/branches"
	"cadre/internal/git/checkout"
	"cadre/internal/git/checkpoint"
	"cadre/internal/host"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
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
With --branches they are removed, and what each was is printed. Branches that are checked out stay, and so does a branch whose commits no other branch,
tag or checkpoint has: the commits are named, and --force removes it too. Where the team is gone already, the branches of the repository that you are in are
removed: cadre cleanup TEAM --branches.

A team whose project directory is missing is removed only with --force. Its worktrees are kept then, and named.

Example:
  cadre cleanup demo --branches

Exit status 0: the team is removed. 1: not now: a teammate runs, or branches stay because commits would be lost. 2: it will not work.`,
	}, func(c *cobra.Command, name string, _ []string) error {
		ctx, cancel := context.WithTimeoutCause(c.Context(), time.Minute,
			fmt.Errorf("team %s could not be cleaned up within a minute", name))
		defer cancel()
		return a.cleanup(ctx, name, how)
	})
	c.Flags().BoolVar(&how.force, "force", false, "end whoever still runs, and remove branches whose commits "+
		"would be lost")
	c.Flags().BoolVar(&how.branches, "branches", false, "remove the team's branches from the repository too")
	return c
}

func (a *app) cleanup(ctx context.Context, name string, how cleaning) error {
	if t, err := a.glance(ctx, name); team.CodeOf(err) == team.NotFound || err == nil && t.Observed != "" {
		if done, err := a.forget(ctx, name, t); done || err != nil {
			return err
		}
	}
	rep, dir, err := a.open(ctx, name, true)
	if team.CodeOf(err) == team.NotFound { // as after a cleanup before this one
		if err := a.home.Sweep(); err != nil {
			return err
		}
		return a.cleanUpAfter(ctx, name, how)
	}
	if err != nil {
		return err
	}
	t := rep.Team()
	if !how.force {
		if err := reachable(t); err != nil {
			return errors.Join(err, rep.Close())
		}
	}
	_, err = rep.Do(ctx, team.Command{Actor: a.actor, Body: &team.CleanUp{Force: how.force}})
	var members []team.Member
	rep.View(func(s *team.State) { members = s.Members() })
	if err := rep.Close(); err != nil {
		a.fail(err)
	}
	if err != nil {
		return err
	}
	if err := host.Settle(ctx, filepath.Join(dir, "hosts"), t.Dir, a.note); err != nil {
		return &team.Error{Code: team.NotReady, Text: "the team is ended, but a process of it is still there: " +
			err.Error() + "; run cadre cleanup again"}
	}
	if now, err := a.glance(ctx, name); err == nil && now.ID != t.ID {
		return a.print(t, said("team %s is removed; another one of that name has begun meanwhile", name))
	}
	left, err := a.branchesOf(ctx, t, members, how)
	if err != nil {
		return err
	}
	if err := host.DropWork(ctx, t); err != nil {
		a.fail(err)
	}
	if err := a.keepRemoved(t, left); err != nil {
		return err
	}
	if err := a.removeFolder(dir); err != nil {
		return err
	}
	return a.cleaned(t, left, fmt.Sprintf("team %s is removed", name))
}

// keepRemoved records that the team is removed here as long as its checkpoints stay, so that they
// can be removed later without force.
func (a *app) keepRemoved(t team.Team, left []branches.Branch) error {
	if commit := checkpointsLeft(left); commit != "" {
		return a.home.KeepRemoved(t.ID, commit)
	}
	return a.home.DropRemoved(t.ID)
}

// checkpointsLeft is the commit of the last checkpoint where the branch of those stays, else "".
func checkpointsLeft(left []branches.Branch) string {
	for _, b := range left {
		if b.Checkpoints && !b.Removed {
			return b.Commit
		}
	}
	return ""
}

// reachable refuses a team whose repository is missing, before anything of it is removed: nobody
// can say which branches it leaves, and what is in its worktrees cannot be put on them. A team that
// is in no repository has neither.
func reachable(t team.Team) error {
	missing, ok := errors.AsType[*checkout.MissingError](checkout.Glance(t))
	if !ok || t.Base.Top == "" {
		return nil
	}
	return &team.Error{Code: team.Invalid, Text: fmt.Sprintf("team %s is not removed: %s %s, and the branches of the "+
		"team are in that repository. If the project was moved, say where it is now: cadre resume %s --dir DIR, then "+
		"cadre cleanup %s. To remove the team without the repository: cadre cleanup %s --force; worktrees are kept "+
		"then, and named",
		t.Name, missing.Path, missing.Why, t.Name, t.Name, t.Name)}
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
func (a *app) branchesOf(ctx context.Context, t team.Team, members []team.Member,
	how cleaning) ([]branches.Branch, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	if err := branches.Forget(ctx, procs, t, func(dir string) bool {
		return a.home.Belonged(t.Name,
			dir)
	}); err != nil {
		return nil, err
	}
	all, err := branches.Of(ctx, procs, t, members)
	if err != nil || !how.branches {
		return all, err
	}
	return branches.Remove(ctx, procs, t, all, how.force)
}

// cleanUpAfter removes the branches of a team that is not here any more from the repository that
// the command was called in, if that is wished. The checkpoints there say whose they are.
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
		if err := unfinished(one, here); err != nil && !how.force && !a.home.Removed(one.Team, one.Commit) {
			return err
		}
		gone.ID, gone.Dir = one.Team, here
		var members []team.Member
		for _, member := range one.Members {
			members = append(members, team.Member{Name: member, Isolation: team.Worktree})
		}
		left, err := a.branchesOf(ctx, gone, members, how)
		if err != nil {
			return err
		}
		if checkpointsLeft(left) == "" {
			if err := a.home.DropRemoved(one.Team); err != nil {
				return err
			}
		}
		return a.cleaned(gone, left, "there is no team "+name)
	}
	return a.print(gone, said("%s", nothing))
}

// unfinished refuses to take its checkpoints from a team that, by the last of them, has not ended.
// It may run on another machine, or on this one from another home: a checkpoint names a machine,
// and no home.
func unfinished(last checkpoint.Listed, here string) error {
	if last.Status == team.TeamComplete || last.Status == team.TeamAborted || last.Released {
		return nil
	}
	is := "not known to have ended"
	if last.Status != "" {
		is = string(last.Status)
	}
	if last.Machine != "" {
		is += " on " + last.Machine
	}
	return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("team %s is not here, and by its checkpoints in %s it "+
		"is %s: it may run there, or under another CADRE_HOME. Continue it here: cadre resume %s --from-git; to "+
		"remove its branches all the same: cadre cleanup %s --branches --force",
		last.Name, here, is, last.Name, last.Name)}
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

// cleaned prints what became of a team that was removed, and of its branches. Where branches were
// to be removed and some stay because their commits would be lost, that is an error, which names
// the commits.
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
	err = a.print(value, func(w *sanitize.Writer) error {
		w.Printf("%s\n", what)
		if len(left) == 0 {
			return nil
		}
		stay, unknown := false, false
		for _, b := range left {
			stay = stay || !b.Removed && b.Unknown == "" && b.CheckedOut == "" && b.Lost == nil
			unknown = unknown || b.Unknown != ""
		}
		w.Printf("its branches in %s:\n", t.Dir)
		var table render.Table
		for _, b := range left {
			table.Row("", b.Name, b.String())
		}
		if err := table.Write(w); err != nil {
			return err
		}
		if unknown {
			return w.Printf("to remove those that are there, in the project: cadre cleanup %s --branches\n", t.Name)
		}
		if stay {
			return w.Printf("to remove them: cd %s && cadre cleanup %s --branches\n", sanitize.Quote(t.Dir), t.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return losing(t, left)
}

// mostLost is how many commits that would be lost are named.
const mostLost = 10

// losing returns an error that names the branches that stay because their commits would be lost. It
// returns nil if no branch stays.
func losing(t team.Team, left []branches.Branch) error {
	var names, commits []string
	seen := map[string]bool{}
	for _, b := range left {
		if len(b.Lost) > 0 {
			names = append(names, b.Name)
		}
		for _, c := range b.Lost {
			if !seen[c.Commit] {
				commits = append(commits, fmt.Sprintf("%.12s %q", c.Commit, render.Cut(c.Subject, 60)))
			}
			seen[c.Commit] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	if more := len(commits) - mostLost; more > 0 {
		commits = append(commits[:mostLost], fmt.Sprintf("and %d more", more))
	}
	return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("not removed: %s. These commits are in no other "+
		"branch, and would be lost: %s. To keep them: git -C %s branch NAME COMMIT; to lose them: cd %s && cadre "+
		"cleanup %s --branches --force",
		strings.Join(names, ", "), strings.Join(commits, ", "), sanitize.Quote(t.Dir), sanitize.Quote(t.Dir), t.Name)}
}
