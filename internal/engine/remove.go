package engine

import (
	"context"
	"errors"
	"os"

	"cadre/internal/engine/upkeep"
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
	Observed bool // it was only observed: our data about it is removed, and the team itself is somebody else's
	Gone     bool // it did not exist any more
}

// RemoveTeam removes the named team with everything that belongs to it. It may be called again at
// any time. For a team that is already removed it removes what an earlier call left. With Branches
// it also removes the branches in the repository of Dir that belong to the team according to its
// checkpoints there.
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
	t, err := e.Open(ctx, name)
	if team.CodeOf(err) == team.NotFound { // an earlier call removed it
		return e.removeRest(ctx, name, r.Dir, how)
	}
	if err != nil {
		return Removed{}, err
	}
	removed, err := upkeep.Remove(ctx, t.Upkeep(r.Actor), how)
	return Removed{Removed: removed}, err
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
	return r, err
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
		return true, team.Refuse(team.NotReady, "team %s is being observed by a process that lives; end that first",
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
