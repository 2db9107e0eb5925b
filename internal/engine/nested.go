package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/claude/projection"
	"cadre/internal/consolidate"
	"cadre/internal/consolidate/branches"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/project"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// children returns the child teams of the team that are in the home, each with its folder, and
// whether it has nothing more to do.
func (t *Team) children() (all []childTeam) {
	if !t.OnDisk() {
		return nil
	}
	of := t.Team()
	for _, c := range of.Children {
		if dir := t.childDir(c.Team); dir != "" {
			all = append(all, childTeam{dir, c.Over || of.Ended() || of.CleanedUp})
		}
	}
	return all
}

// childDir returns the folder of the child team, which is archived with this one; "" for none.
func (t *Team) childDir(id string) string {
	dir := t.engine.Home.Has(id)
	if dir == "" && t.engine.Home.Archived(t.Dir) {
		dir = t.engine.Home.InArchive(id)
	}
	return dir
}

// childTeam is the folder of a child team.
type childTeam struct {
	dir  string
	over bool
}

// childTeams describes the child teams of the team, which are at that level, each followed by the
// teams in it.
func (t *Team) childTeams(ctx context.Context, level int) (all []catalog.ChildTeam, err error) {
	if !t.OnDisk() || level > team.MostDepth {
		return nil, nil
	}
	for _, c := range t.Team().Children {
		one := catalog.ChildTeam{ID: c.Team, Name: c.Name, Parent: t.Team().ID, Level: level, Member: c.Member,
			Task: c.Task, Over: c.Over, Status: catalog.Removed}
		dir := t.childDir(c.Team)
		if dir == "" {
			all = append(all, one)
			continue
		}
		of, err := t.engine.LookIn(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("team %s: %w", c.Name, err)
		}
		of.View(one.Describe)
		below, err := of.childTeams(ctx, level+1)
		if err := errors.Join(err, of.Close()); err != nil {
			return nil, err
		}
		all = append(append(all, one), below...)
	}
	return all, nil
}

// NamesOnBranches returns the names of the teams whose members have branches in the repository of
// the home's directory.
func (e *Engine) NamesOnBranches(ctx context.Context) ([]string, error) {
	if _, repository := project.Of(e.Home.Dir); !repository { // then there is no need for git
		return nil, nil
	}
	return branches.Teams(ctx, e.Home.Dir)
}

// ConsolidateChild is [Team.Consolidate] for a child team, which its parent's host runs. Only the
// teams of one member work in its worktree, one after the other, so all changes there are work of
// that member, and no other team is asked about.
func (t *Team) ConsolidateChild(ctx context.Context, o consolidate.Options) (*consolidate.Record, error) {
	o, err := t.placed(ctx, o)
	if err != nil {
		return nil, err
	}
	return consolidate.Run(ctx, o)
}

// EndChildren aborts the child teams that have nothing more to do and have not ended, with the
// teams in them. It may be called again at any time: after a kill it ends what is left.
func (t *Team) EndChildren(ctx context.Context) error {
	var errs []error
	for _, c := range t.children() {
		if !c.over {
			continue
		}
		of, err := t.engine.LookIn(ctx, c.dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		now := of.Team()
		if err := of.Close(); err != nil {
			errs = append(errs, err)
		}
		if now.Ended() && len(now.Children) == 0 {
			continue
		}
		child, err := t.engine.OpenIn(ctx, now.Name, c.dir)
		if err == nil {
			err = errors.Join(child.end(ctx, t.Team()), child.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// end aborts a child team of that parent, unless it has ended, and the teams in it.
func (t *Team) end(ctx context.Context, parent team.Team) error {
	if of := t.Team(); of.Ended() {
		defer host.HoldAbort(ctx, t.Shared())()
		return t.EndChildren(ctx)
	}
	why := fmt.Sprintf("team %s needs it no more", parent.Name)
	if parent.Status == team.TeamComplete || parent.Status == team.TeamAborted {
		why = fmt.Sprintf("team %s is %s", parent.Name, parent.Status)
	}
	return t.Abort(ctx, team.User, why)
}

// Abort ends the team and the teams in it at once, as [upkeep.Abort] does, and with its errors.
// A [upkeep.LingeringError] also names the processes that run in the teams in it.
func (t *Team) Abort(ctx context.Context, actor, reason string) error {
	if t.Team().Status != team.TeamComplete { // it refuses, and nothing of it changes
		defer host.HoldAbort(ctx, t.Shared())()
	}
	its, err := t.upkeepInTree(ctx, actor)
	if err == nil {
		err = upkeep.Abort(ctx, its, reason)
	}
	if err == nil {
		return t.EndChildren(ctx)
	}
	if lingers, is := errors.AsType[*upkeep.LingeringError](err); is {
		below, failure := t.sessionsBelow(context.WithoutCancel(ctx))
		if failure == nil && len(below) > 0 {
			lingers.Err = fmt.Errorf("%w; %s", lingers.Err, strings.Join(below, "; "))
		}
	}
	return err
}

// sessionsBelow names the processes that run in the teams in this one, a line for each team.
func (t *Team) sessionsBelow(ctx context.Context) (all []string, err error) {
	for _, c := range t.children() {
		of, err := t.engine.LookIn(ctx, c.dir)
		if err != nil {
			return nil, err
		}
		if words := host.Sessions(of.Hosts()); words != "" {
			all = append(all, "in team "+of.Team().Name+words)
		}
		below, err := of.sessionsBelow(ctx)
		if err := errors.Join(err, of.Close()); err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// ArchiveChildren archives the child teams of a team that has ended, with the teams in them, before
// the team is archived: then its name is free for a new run, and theirs are too.
func (t *Team) ArchiveChildren(ctx context.Context) error {
	if err := t.EndChildren(ctx); err != nil {
		return err
	}
	for _, c := range t.children() {
		of, err := t.engine.LookIn(ctx, c.dir)
		if err != nil {
			return err
		}
		top, err := of.outermost(ctx)
		if err == nil {
			err = errors.Join(of.ArchiveChildren(ctx), host.KeepWork(ctx, c.dir, top.Dir, t.engine.Note))
		}
		if err := errors.Join(err, of.Close()); err != nil {
			return err
		}
		if err := of.PutInArchive(); err != nil {
			return err
		}
	}
	return nil
}

// PutInArchive moves the folder of the team to the archive, and takes back what Claude Code's
// folders show of it: its name is free then, there too.
func (t *Team) PutInArchive() error {
	of := t.Team()
	projector := t.engine.Projector(t.Dir)
	archived, err := t.engine.Home.PutInArchive(t.Dir, of.ID)
	if err != nil {
		return err
	}
	projector.Mark = filepath.Join(archived, projection.MarkFile)
	return projector.Withdraw(of)
}

// removeChildren removes the child teams, with the teams in them, before their parent is removed:
// afterwards nothing would name them. It returns the branches of the whole tree below the parent,
// also of child teams that were removed before. A parent that is still at work is ended first,
// because it would replace a child that ends.
func (t *Team) removeChildren(ctx context.Context, r Removal) (removed []branches.Branch, err error) {
	children, now := t.children(), t.Team()
	defer host.HoldAbort(ctx, t.Shared())()
	if len(children) > 0 && !now.Ended() {
		its, err := t.upkeepInTree(ctx, r.Actor)
		if err == nil {
			err = upkeep.Abort(ctx, its, "it is removed")
		}
		if err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, c := range children {
		of, err := t.engine.LookIn(ctx, c.dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		id := of.Team().ID
		if err := of.Close(); err != nil {
			errs = append(errs, err)
		}
		with, err := t.engine.RemoveTeam(ctx, id, r)
		removed = append(removed, with.Branches...)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || len(now.Children) == 0 {
		return removed, err
	}
	top, err := t.outermost(ctx)
	if err != nil {
		return removed, err
	}
	now.Dir = top.Dir
	before, err := upkeep.NestedBranches(ctx, now, upkeep.Removal{Home: t.engine.Home, Force: r.Force,
		Branches: r.Branches})
	for _, b := range before {
		if !slices.ContainsFunc(removed, func(known branches.Branch) bool { return known.Name == b.Name }) {
			removed = append(removed, b)
		}
	}
	return removed, err
}

// removable reports whether the core would let the team be removed now.
func (t *Team) removable(r Removal) bool {
	var err error
	t.View(func(s *team.State) { _, err = team.Decide(s, Command(r.Actor, &team.CleanUp{Force: r.Force})) })
	return err == nil
}

// nestedIn refuses to do with the team what [Engine.WithParent] refuses.
func (t *Team) nestedIn(ctx context.Context, what string, how team.Action) error {
	return t.engine.WithParent(ctx, t.Team(), what, how)
}

// WithParent refuses to do with a nested team what is done with the team that it belongs to, as
// long as that exists. what says so in words, such as "paused". how is the action that does it to
// the outermost team; "" if no action does.
func (e *Engine) WithParent(ctx context.Context, nested team.Team, what string, how team.Action) error {
	p := nested.Parent
	folder := ""
	if p.Team != "" {
		folder = e.Home.Has(p.Team)
	}
	if folder == "" {
		return nil
	}
	parent, err := e.LookIn(ctx, folder)
	if err != nil {
		return err
	}
	of, task := parent.Team(), ""
	parent.View(func(s *team.State) { task = s.Called(p.Task) })
	if err := parent.Close(); err != nil {
		return err
	}
	if of.Status == team.TeamAborted {
		return team.Refuse(team.Finished, "team %s is aborted, and team %s in it ends with it", p.Name, nested.Name).
			With(team.Hint{Action: team.ActAbort, Team: p.Name})
	}
	refusal := team.Refuse(team.Invalid, "team %s does task %s of team %s, and is %s with that team", nested.Name, task,
		p.Name, what)
	if how != "" {
		refusal = refusal.With(nested.Aim(team.Hint{Action: how}))
	}
	return refusal
}

// Outermost returns the team that the team is nested in and that is nested in no other team of the
// home: the team itself if it is not nested.
func (e *Engine) Outermost(ctx context.Context, of team.Team) (team.Team, error) {
	return e.around(ctx, of, e.Home.Has)
}

// outermost is [Engine.Outermost] for a team that may be archived, with the teams around it.
func (t *Team) outermost(ctx context.Context) (team.Team, error) {
	return t.engine.around(ctx, t.Team(), func(id string) string {
		return cmp.Or(t.engine.Home.Has(id), t.engine.Home.InArchive(id))
	})
}

// around returns the outermost of the teams that the team is in and whose folders are found.
func (e *Engine) around(ctx context.Context, of team.Team, folderOf func(id string) string) (team.Team, error) {
	for range team.MostDepth {
		folder := ""
		if of.Parent.Team != "" {
			folder = folderOf(of.Parent.Team)
		}
		if folder == "" {
			break
		}
		var err error
		if of, err = inspect.GlanceIn(ctx, e.Home, folder, e.Note); err != nil {
			return of, err
		}
	}
	return of, nil
}

// upkeepInTree is [Team.Upkeep] for what goes through the whole tree: a nested team that has ended
// may have lost the worktree in which it worked.
func (t *Team) upkeepInTree(ctx context.Context, actor string) (upkeep.Team, error) {
	its, of := t.Upkeep(actor), t.Team()
	if of.Parent.Team == "" {
		return its, nil
	}
	top, err := t.outermost(ctx)
	if err == nil && top.ID != of.ID {
		its.Outermost = top
	}
	return its, err
}
