package upkeep

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"cadre/internal/consolidate/branches"
	"cadre/internal/git/checkout"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Removal says how a team is removed.
type Removal struct {
	Home     layout.Home
	Force    bool // end running members, and remove branches whose commits would be lost
	Branches bool // also remove its branches
	// Needed says that branches of the teams in it stay. Then its checkpoints stay too: they say
	// which teams were in it.
	Needed bool
	// Shared says that a later team of the project has the team's name, and with it the branches
	// and the references of that name. They stay.
	Shared bool

	kept bool // what the remote has of it stays, because it could not be brought here
}

// Removed says what Remove removed.
type Removed struct {
	Team     team.Team
	Branches []branches.Branch
	// Replaced says that another team took the name meanwhile. The branches and the folder of that
	// name belong to that team, and stay.
	Replaced bool
}

// Lost returns the branches that stay because no other branch has their commits.
func (r Removed) Lost() (all []branches.Branch) {
	for _, b := range r.Branches {
		if len(b.Lost) > 0 {
			all = append(all, b)
		}
	}
	return all
}

// UnreachableError says that the repository of a team is missing. Its branches cannot be listed,
// and the work in its worktrees cannot be committed to them.
type UnreachableError struct {
	Team    string
	Missing *checkout.MissingError
}

func (e *UnreachableError) Error() string {
	return "team " + e.Team + " is not removed: " + e.Missing.Path + " " + e.Missing.Why + ", and the branches of " +
		"the team are in that repository"
}

func (e *UnreachableError) Unwrap() error {
	return team.Refuse(team.Invalid, "%s", e.Error()).With(team.Hint{Action: team.ActMove, Team: e.Team},
		team.Hint{Action: team.ActForceCleanUp, Team: e.Team})
}

// Remove removes an open team, and closes it. It removes its folder with its history, and its files
// for Claude Code. It refuses while a teammate runs, unless it is forced.
func Remove(ctx context.Context, t Team, how Removal) (Removed, error) {
	r := Removed{Team: t.lasting()}
	if !how.Force {
		if err := reachable(r.Team); err != nil {
			return r, errors.Join(err, t.Close())
		}
	}
	how.kept = !t.gather(ctx)
	_, err := t.Do(ctx, team.Command{Actor: t.Actor, Body: &team.CleanUp{Force: how.Force}})
	var members []team.Member
	t.View(func(s *team.State) { members = s.Members() })
	if err := t.Close(); err != nil {
		t.Warn(err)
	}
	if team.CodeOf(err) == team.NotReady {
		err = dormant(ctx, t, members, err)
	}
	if err != nil {
		return r, err
	}
	return Clear(ctx, t, r.Team, members, how)
}

// dormant returns the refusal to remove a team whose members have not ended. The core does not know
// whether a host runs their sessions; where none does, the refusal says so.
func dormant(ctx context.Context, t Team, members []team.Member, err error) error {
	of := t.Replica.Team()
	var paused []string
	for _, m := range members {
		switch {
		case m.Name == of.Lead || !m.Status.Running():
		case m.Agent == team.External:
			return err
		default:
			paused = append(paused, m.Name)
		}
	}
	if len(paused) == 0 || host.Hosted(ctx, t.shared()) {
		return err
	}
	return team.Refuse(team.NotReady, "team %s is dormant: %s can be resumed, and no process runs their sessions",
		of.Name, strings.Join(paused, ", ")).With(team.Hint{Action: team.ActResume, Team: of.Name},
		team.Hint{Action: team.ActForceCleanUp, Team: of.Name})
}

// Clear removes what is left of a team that is recorded as removed and whose replica is closed.
func Clear(ctx context.Context, t Team, was team.Team, members []team.Member, how Removal) (Removed, error) {
	r := Removed{Team: was}
	if r.Replaced = Replaced(ctx, how.Home, t.Dir, was.ID, t.Log); r.Replaced {
		return r, nil
	}
	if err := host.Settle(ctx, t.shared(), filepath.Join(t.Dir, "hosts"), was.Dir, t.Log); err != nil {
		return r, &LingeringError{Ended: "ended", What: "a process of it is still there", Err: err}
	}
	if r.Replaced = Replaced(ctx, how.Home, t.Dir, was.ID, t.Log); r.Replaced { // meanwhile
		return r, nil
	}
	if how.Shared {
		return r, RemoveFolder(ctx, how.Home, was, t.Dir, t.Log)
	}
	var err error
	if r.Branches, err = branchesOf(ctx, was, members, how); err != nil {
		return r, err
	}
	if err := host.DropWork(ctx, was); err != nil {
		t.Warn(err)
	}
	if !how.kept {
		if err := host.DropSent(ctx, was); err != nil {
			t.Warn(err)
		}
	}
	if err := keepRemoved(how.Home, was, r.Branches); err != nil {
		return r, err
	}
	return r, RemoveFolder(ctx, how.Home, was, t.Dir, t.Log)
}

// gather brings the branches of members on other machines here, where they are listed. It reports
// whether it could: without the remote they stay there.
func (t Team) gather(ctx context.Context) bool {
	procs, err := proc.Open("")
	if err == nil {
		err = errors.Join(host.Arrive(ctx, t.Replica, procs, ""), procs.Close(context.WithoutCancel(ctx)))
	}
	if err != nil {
		t.Log("the work of members on other machines stays on the remote " + t.Team().Remote + ": " + err.Error())
	}
	return err == nil
}

// Replaced reports whether the folder belongs to another team than the one with that id by now.
// Then the first team was removed before, and the processes and worktrees there belong to the other
// one.
func Replaced(ctx context.Context, home layout.Home, dir, id string, log func(string)) bool {
	now, err := inspect.GlanceIn(ctx, home, dir, log)
	return err == nil && now.ID != id
}

// keepRemoved records that the team is removed here while its checkpoints stay, so that these can
// be removed later without force.
func keepRemoved(home layout.Home, t team.Team, left []branches.Branch) error {
	if commit := checkpointsLeft(left); commit != "" {
		return home.KeepRemoved(t.ID, commit)
	}
	return home.DropRemoved(t.ID)
}

// checkpointsLeft returns the commit of the last checkpoint if the branch of checkpoints stays,
// else "".
func checkpointsLeft(left []branches.Branch) string {
	for _, b := range left {
		if b.Checkpoints && !b.Removed {
			return b.Commit
		}
	}
	return ""
}

// reachable refuses a team whose repository is missing, before anything is removed. A team outside
// a repository has neither branches nor worktrees.
func reachable(t team.Team) error {
	missing, ok := errors.AsType[*checkout.MissingError](checkout.Glance(t))
	if !ok || t.Base.Top == "" {
		return nil
	}
	return &UnreachableError{t.Name, missing}
}

// RemoveFolder removes the folder of a team, and keeps work that is nowhere else. It leaves the
// folder of another team that has the name by now.
func RemoveFolder(ctx context.Context, home layout.Home, t team.Team, dir string, log func(string)) error {
	return home.Remove(dir, func() (bool, error) {
		if Replaced(ctx, home, dir, t.ID, log) {
			return false, nil
		}
		kept, err := home.KeepWorktrees(dir)
		if kept != "" {
			log("worktrees whose work could not be committed to their branches are kept in " + kept)
		}
		return true, err
	})
}

// RunningError says that a host of a damaged team is still running.
type RunningError struct{ Team, Hosts string }

func (e *RunningError) Error() string {
	return "a host of the damaged team " + e.Team + " is running; end its process, which " +
		filepath.Join(e.Hosts, "*", proc.AliveFile) + " names, and try again"
}

func (e *RunningError) Unwrap() error { return team.Refuse(team.NotReady, "%s", e.Error()) }

// SetAside moves a damaged team away, and returns where it is kept. Before that it commits the work
// in members' worktrees to their branches.
func SetAside(ctx context.Context, home layout.Home, name string, log func(string)) (string, error) {
	dir, err := home.Own(name)
	if err != nil {
		return "", err
	}
	return setAside(ctx, home, name, dir, log)
}

// setAside is SetAside for the team in that folder.
func setAside(ctx context.Context, home layout.Home, name, dir string, log func(string)) (string, error) {
	shared, err := home.Shared(dir)
	if err != nil {
		return "", err
	}
	if host.Hosted(ctx, shared) {
		return "", &RunningError{name, filepath.Join(dir, "hosts")}
	}
	if err := host.KeepWork(ctx, dir, "", log); err != nil {
		return "", err
	}
	return home.SetAside(dir, layout.Damaged)
}
