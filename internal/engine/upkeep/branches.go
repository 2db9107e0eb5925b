package upkeep

import (
	"context"
	"slices"

	"cadre/internal/consolidate/branches"
	"cadre/internal/git/checkpoint"
	"cadre/internal/inspect/catalog"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// branchesOf lists the branches of the team, and first removes them if how says so.
func branchesOf(ctx context.Context, t team.Team, members []team.Member, how Removal) ([]branches.Branch, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	belonged := func(dir string) bool { return how.Home.Belonged(t.Name, dir) }
	if err := branches.Forget(ctx, procs, t, belonged); err != nil {
		return nil, err
	}
	all, err := branches.Of(ctx, procs, t, members)
	if err != nil || !how.Branches {
		return all, err
	}
	return branches.Remove(ctx, procs, t, all, branches.Removal{Force: how.Force, Needed: how.Needed})
}

// UnfinishedError says that a team is not in the home and, by its last checkpoint, has not ended.
// It may run on another machine, or on this one from another home: a checkpoint names a machine but
// no home.
type UnfinishedError struct {
	Last checkpoint.Listed
	Dir  string // in the repository
}

// State says in which state the team is by its checkpoint, and where.
func (e *UnfinishedError) State() string {
	is := "not known to have ended"
	if e.Last.Status != "" {
		is = string(e.Last.Status)
	}
	if e.Last.Machine != "" {
		is += " on " + e.Last.Machine
	}
	return is
}

func (e *UnfinishedError) Error() string {
	return "team " + e.Last.Name + " is not here, and by its checkpoints in " + e.Dir + " it is " + e.State()
}

func (e *UnfinishedError) Unwrap() error {
	return team.Refuse(team.NotReady, "%s", e.Error()).With(
		team.Hint{Action: team.ActContinueCopy, Team: e.Last.Name},
		team.Hint{Action: team.ActForceCleanUp, Team: e.Last.Name})
}

// RemoveBranches removes the branches of a team that the home does not have any more, and of the
// teams in it, from the repository of the directory. The checkpoints there say which branches
// belong to the teams; found is false if the team has none.
func RemoveBranches(ctx context.Context, name, dir string, how Removal) (r Removed, found bool, err error) {
	how.Branches = true
	all, err := removable(ctx, name, dir, how)
	if err != nil {
		return r, false, err
	}
	i := slices.IndexFunc(all, func(one checkpoint.Listed) bool { return one.Name == name })
	if i < 0 {
		return r, false, nil
	}
	tree := append(nestedIn(all, all[i].Team, 1), all[i])
	for _, one := range tree {
		if !how.over(one) {
			return r, true, &UnfinishedError{one, dir}
		}
	}
	r.Team = removedTeam(all[i], dir)
	r.Branches, err = ofTree(ctx, tree, dir, how)
	return r, true, err
}

// NestedBranches lists the branches of the teams in the team that the home does not have any more,
// and first removes them if how says so. A killed removal may have left them. It leaves out teams
// that may continue elsewhere.
func NestedBranches(ctx context.Context, of team.Team, how Removal) ([]branches.Branch, error) {
	all, err := removable(ctx, of.Name, of.Dir, how)
	if err != nil {
		return nil, err
	}
	over := slices.DeleteFunc(all, func(one checkpoint.Listed) bool { return !how.over(one) })
	return ofTree(ctx, nestedIn(over, of.ID, 1), of.Dir, how)
}

// removable returns the checkpoints on the branches of the repository itself, without those of
// teams of the home. Those of the team with that name are always among them.
func removable(ctx context.Context, name, dir string, how Removal) ([]checkpoint.Listed, error) {
	all, err := catalog.Checkpoints(ctx, dir)
	return slices.DeleteFunc(all, func(one checkpoint.Listed) bool {
		return one.Remote != "" || one.Team == "" || one.Name != name && how.Home.Has(one.Team) != ""
	}), err
}

// over reports whether the branches of the team that has the checkpoint may be removed: it has
// ended, or it was removed here.
func (how Removal) over(one checkpoint.Listed) bool {
	return one.Status == team.TeamComplete || one.Status == team.TeamAborted || one.Released || how.Force ||
		how.Home.Removed(one.Team, one.Commit)
}

// nestedIn returns the checkpoints of the teams in the team with that id, which are at that level,
// each after those of the teams in it.
func nestedIn(all []checkpoint.Listed, id string, level int) (tree []checkpoint.Listed) {
	for _, one := range all {
		if one.Parent == id && level <= team.MostDepth {
			tree = append(append(tree, nestedIn(all, one.Team, level+1)...), one)
		}
	}
	return tree
}

// ofTree lists the branches of the teams that have the checkpoints, and first removes them if how
// says so. Each team follows the teams in it.
func ofTree(ctx context.Context, tree []checkpoint.Listed, dir string, how Removal) (all []branches.Branch, err error) {
	needed := map[string]bool{} // ids of teams
	for _, one := range tree {
		var members []team.Member
		for _, member := range one.Members {
			members = append(members, team.Member{Name: member, Isolation: team.Worktree})
		}
		how.Needed = needed[one.Team]
		left, err := branchesOf(ctx, removedTeam(one, dir), members, how)
		all = append(all, left...)
		if err == nil && checkpointsLeft(left) == "" {
			err = how.Home.DropRemoved(one.Team)
		}
		if err != nil {
			return all, err
		}
		if slices.ContainsFunc(left, branches.Branch.Stays) {
			needed[one.Parent] = true
		}
	}
	return all, nil
}

func removedTeam(one checkpoint.Listed, dir string) team.Team {
	return team.Team{ID: one.Team, Name: one.Name, Dir: dir, CleanedUp: true}
}

// RemoveArchivedBranches removes the branches of an archived team that no later team of its name
// has.
func RemoveArchivedBranches(ctx context.Context, t team.Team, members []team.Member, how Removal) (Removed, error) {
	how.Branches = true
	all, err := branchesOf(ctx, t, members, how)
	return Removed{Team: t, Branches: all}, err
}
