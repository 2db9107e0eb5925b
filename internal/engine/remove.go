package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/consolidate/branches"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/project"
	"cadre/internal/layout"
	"cadre/internal/observe/store"
	"cadre/internal/team"
)

// Removal says how a team of the home is removed.
type Removal struct {
	Actor    string
	Force    bool   // end running members, and remove branches whose commits would be lost
	Branches bool   // also remove its branches
	Dir      string // in the repository with the branches of a team that was removed already; "" for none
}

// Removed says what RemoveTeam removed.
type Removed struct {
	upkeep.Removed
	Observed bool // it was only observed: our data about it is removed, and the team itself belongs to another program
	Gone     bool // it did not exist any more
	// Uncommitted are files of the work tree that differ from the last commit since the team worked
	// there. They stay. It is empty if they cannot be determined.
	Uncommitted []string
}

// RemoveTeam removes the named team with everything that belongs to it. It may be called again at
// any time. For a team that is already removed it removes what an earlier call left. With Branches
// it also removes the branches in the repository of Dir that belong to the team, and to the teams
// in it, according to their checkpoints there.
func (e *Engine) RemoveTeam(ctx context.Context, name string, r Removal) (Removed, error) {
	how := upkeep.Removal{Home: e.Home, Force: r.Force, Branches: r.Branches}
	_, elsewhere := e.Home.Sure(name)
	if _, is := errors.AsType[*layout.ElsewhereError](elsewhere); is {
		removed, err := e.removeRest(ctx, name, r.Dir, how)
		if err == nil && removed.Team.ID == "" {
			err = elsewhere
		}
		return removed, err
	}
	of, err := e.Glance(ctx, name)
	if team.CodeOf(err) == team.NotFound || err == nil && of.Observed != "" {
		if kept, err := e.forget(name, of.Observed != ""); kept || err != nil {
			of.Name, of.CleanedUp = name, true
			return Removed{Removed: upkeep.Removed{Team: of}, Observed: true}, err
		}
	}
	t, err := e.openAny(ctx, name)
	if team.CodeOf(err) == team.NotFound { // an earlier call removed it
		return e.removeRest(ctx, name, r.Dir, how)
	}
	if err != nil {
		return Removed{}, err
	}
	var within []branches.Branch
	if t.removable(r) { // else the removal says why not
		if within, err = t.removeChildren(ctx, r); err != nil {
			return Removed{}, errors.Join(err, t.Close())
		}
	}
	left := t.leaves(ctx)
	how.Needed = slices.ContainsFunc(within, branches.Branch.Stays)
	how.Shared = e.Home.Archived(t.Dir) && e.succeeded(t.Team())
	its, err := t.upkeepInTree(ctx, r.Actor)
	if err != nil {
		return Removed{}, errors.Join(err, t.Close())
	}
	removed, err := upkeep.Remove(ctx, its, how)
	removed.Branches = append(within, removed.Branches...)
	return Removed{Removed: removed, Uncommitted: left}, err
}

// leavePatience bounds how long git may take to list the files that a removed team leaves.
const leavePatience = 5 * time.Second

// leaves returns the files that the team leaves uncommitted in the work tree. An archived team and
// one in a team return none: the later team of that name, or the team around it, has these files.
func (t *Team) leaves(ctx context.Context) []string {
	if of := t.Team(); t.engine.Home.Archived(t.Dir) || of.Parent.Team != "" || of.Base.Top == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	p, err := consolidate.LookPending(ctx, t.Consolidation())
	if err != nil { // the removal does not depend on git
		return nil
	}
	return p.Files
}

// succeeded reports whether the project of an archived team has a team of its name again.
func (e *Engine) succeeded(of team.Team) bool {
	_, err := e.Home.In(of.Dir).Own(of.Name)
	return err == nil
}

// removeRest removes what is left of a team that the home does not have any more.
func (e *Engine) removeRest(ctx context.Context, name, dir string, how upkeep.Removal) (Removed, error) {
	r := Removed{Gone: true, Removed: upkeep.Removed{Team: team.Team{Name: name, CleanedUp: true}}}
	if err := e.Home.Sweep(); err != nil || !how.Branches || dir == "" {
		return r, err
	}
	removed, found, err := upkeep.RemoveBranches(ctx, name, dir, how)
	if found {
		r.Removed = removed
	}
	if err != nil {
		return r, err
	}
	return r, e.removeArchived(ctx, &r, name, dir, how)
}

// removeArchived removes branches of the project's archived teams of that name. A team that was run
// again with other members leaves branches that no later checkpoint names.
func (e *Engine) removeArchived(ctx context.Context, r *Removed, name, dir string, how upkeep.Removal) error {
	archived, err := e.Home.Archive()
	if err != nil {
		return err
	}
	for _, folder := range archived {
		if layout.NameOf(filepath.Base(folder)) != name {
			continue
		}
		if err := e.removeOfArchived(ctx, r, folder, dir, how); err != nil {
			return err
		}
	}
	return nil
}

// removeOfArchived removes the branches of an archived team, after those of the teams in it.
func (e *Engine) removeOfArchived(ctx context.Context, r *Removed, folder, dir string, how upkeep.Removal) error {
	t, err := e.lookIn(ctx, filepath.Base(folder), folder)
	if err != nil {
		e.Note(fmt.Sprintf("the archived team %s cannot be read, so its branches are not known: %v",
			filepath.Base(folder), err))
		return nil
	}
	of, within := t.Team(), t.children()
	top, err := t.outermost(ctx)
	var members []team.Member
	t.View(func(s *team.State) { members = s.Members() })
	if err := errors.Join(err, t.Close()); err != nil {
		return err
	}
	if !project.Same(top.Dir, dir) {
		return nil
	}
	of.Dir = top.Dir
	if r.Team.ID == "" {
		r.Team = of
	}
	for _, c := range within {
		if e.Home.Archived(c.dir) {
			if err := e.removeOfArchived(ctx, r, c.dir, dir, how); err != nil {
				return err
			}
		}
	}
	removed, err := upkeep.RemoveArchivedBranches(ctx, of, members, how)
	if err != nil {
		return err
	}
	for _, b := range removed.Branches {
		if !slices.ContainsFunc(r.Branches, func(known branches.Branch) bool { return known.Name == b.Name }) {
			r.Branches = append(r.Branches, b)
		}
	}
	return nil
}

// forget removes our data about an observed team, and reports whether there was any.
func (e *Engine) forget(name string, observed bool) (bool, error) {
	if team.CheckName("team", name) != nil {
		return false, nil
	}
	kept := e.Home.Observation(name)
	if _, err := os.Stat(kept); err != nil && !observed {
		return false, nil
	}
	k, err := store.OpenKept(kept)
	if errors.Is(err, store.ErrObserved) {
		return true, team.Refuse(team.NotReady, "a running process observes team %s; end that process first",
			name)
	}
	if err != nil {
		return true, err
	}
	defer k.Close()
	if observed {
		dir, err := e.Home.Folder(name)
		if err == nil {
			err = e.Home.Remove(dir, nil)
		}
		if err != nil {
			return true, err
		}
	}
	return true, os.RemoveAll(kept)
}
