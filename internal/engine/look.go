package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/engine/upkeep"
	"cadre/internal/git/checkpoint"
	"cadre/internal/git/project"
	"cadre/internal/inspect"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/inspect/history"
	"cadre/internal/replica"
	"cadre/internal/sys/paths"
	"cadre/internal/team"
)

// HintsOf returns the hints of an error: actions that would help.
func HintsOf(err error) []team.Hint { return replica.HintsOf(err) }

// Now returns the present time in the teams' type.
func Now() team.Time { return replica.Now() }

// Glance returns the team's present state.
func (e *Engine) Glance(ctx context.Context, name string) (of team.Team, err error) {
	t, err := e.Look(ctx, name)
	if err != nil {
		return of, err
	}
	defer t.Close()
	return t.Team(), nil
}

// List returns the teams of the home by project, and with archive the archived ones, too; see
// [catalog.List].
func (e *Engine) List(ctx context.Context, archive bool) ([]catalog.Entry, error) {
	return catalog.List(ctx, e.Home, archive, e.Note)
}

// Checkpoints lists the checkpoints of teams in the repository of the directory.
func (e *Engine) Checkpoints(ctx context.Context, dir string) ([]catalog.Checkpoint, error) {
	return catalog.InRepository(ctx, e.Home, dir, e.Note)
}

// OnlyInGit returns the checkpoints, in the repository of the directory, of teams whose ids and
// names are not in here: of the named team, or for "" of any. It skips what cannot be read. Outside
// a repository it costs nothing.
func (e *Engine) OnlyInGit(ctx context.Context, dir, name string, here []string) []checkpoint.Listed {
	if _, ok := project.Top(dir); !ok {
		return nil
	}
	found, err := catalog.Checkpoints(ctx, dir)
	if err != nil {
		return nil
	}
	return catalog.OnlyInGit(found, name, here)
}

// UnfinishedInGit finds a checkpoint of an unfinished team of that name that is in the repository
// of the directory and not in this home. A team that was removed from this home does not count.
func (e *Engine) UnfinishedInGit(ctx context.Context, dir, name string) (of checkpoint.Listed, there bool) {
	for _, one := range e.OnlyInGit(ctx, dir, name, nil) {
		if e.Continuable(one) && !e.Home.Removed(one.Team, one.Commit) {
			return one, true
		}
	}
	return checkpoint.Listed{}, false
}

// Continuable reports whether the team of a checkpoint can be continued here from it: it is not in
// this home or its archive, is unfinished, and is not in another team, which continues it.
func (e *Engine) Continuable(of checkpoint.Listed) bool {
	return of.Why == "" && of.Parent == "" && !of.Status.Ended() && e.Home.Has(of.Team) == "" &&
		e.Home.InArchive(of.Team) == ""
}

// OutermostInGit returns the name of the team that contains the team of the checkpoint and all
// others of its tree. It is the checkpoint's own name if the team is not nested, and "" if a team
// between has no checkpoint.
func OutermostInGit(found []checkpoint.Listed, of checkpoint.Listed) string {
	for range team.MostDepth {
		if of.Parent == "" {
			break
		}
		i := slices.IndexFunc(found, func(l checkpoint.Listed) bool { return l.Team == of.Parent })
		if i < 0 {
			return ""
		}
		of = found[i]
	}
	return of.Name
}

// Attention follows what waits for a person in all teams of the home, or in the named one. The
// caller must close it.
func (e *Engine) Attention(only string) *attention.Follower {
	return &attention.Follower{Home: e.Home, Shared: e.Shared, Log: e.Note, Only: only}
}

// Unfinished returns the teams of the home that have not ended, sorted by name. The name is the id
// if the name does not stand for the team here. A team that cannot be read may be unfinished, so it
// is included with its name alone.
func (e *Engine) Unfinished(ctx context.Context) (open []team.Team, err error) {
	names, err := e.Home.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		of, err := e.Glance(ctx, name)
		if err != nil {
			of = team.Team{}
		}
		if of.Name = name; !of.Ended() {
			open = append(open, of)
		}
	}
	return open, nil
}

// Here returns the unfinished teams whose project is the directory, named as [Engine.Unfinished]
// does.
func (e *Engine) Here(ctx context.Context, dir string) ([]team.Team, error) {
	open, err := e.Unfinished(ctx)
	return inProject(dir, open), err
}

// WhichError is returned where no team is named and it is not clear which one is meant.
type WhichError struct {
	Unfinished []team.Team // teams that have not ended
	Finished   []string    // names of the other teams
	Here       bool        // all of Unfinished work in the directory, and others are left out
}

func (e *WhichError) Error() string {
	if len(e.Unfinished) == 0 {
		return "no team is unfinished; finished ones: " + strings.Join(e.Finished, ", ")
	}
	var names []string
	for _, of := range e.Unfinished {
		name := of.Name
		if of.Dir != "" && !e.Here {
			name += " (" + of.Dir + ")"
		}
		names = append(names, name)
	}
	if e.Here {
		return "unfinished teams here: " + strings.Join(names, ", ")
	}
	return "unfinished teams: " + strings.Join(names, ", ")
}

// Meant returns the name or id of the team that is meant where none is named: the one unfinished
// team whose project is the directory, or the team of the member whose worktree it is in. With
// guess it may also be the only team that has not ended, or the only team at all. Otherwise it
// returns a [*WhichError].
func (e *Engine) Meant(ctx context.Context, dir string, guess bool) (string, error) {
	names, err := e.Home.Names()
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", team.Refuse(team.NotFound, "there is no team yet").With(team.Hint{Action: team.ActCreate})
	}
	open, err := e.Unfinished(ctx)
	if err != nil {
		return "", err
	}
	here, around := inProject(dir, open), e.Home.Around(dir)
	switch {
	case len(here) == 1:
		return here[0].Name, nil
	case len(here) > 1: // no other can be meant
		return "", &WhichError{Unfinished: here, Here: true}
	case around != "":
		return around, nil
	case guess && len(open) == 1:
		return open[0].Name, nil
	case guess && len(names) == 1:
		return names[0], nil
	}
	return "", &WhichError{Unfinished: open, Finished: slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(open, func(of team.Team) bool { return of.Name == name })
	})}
}

// inProject returns the teams whose project is the directory: they work in it, or in the nearest
// directory above it in the same repository. It leaves out observed teams, which work under their
// own agent.
func inProject(dir string, teams []team.Team) (here []team.Team) {
	top, repository := project.Top(dir)
	for {
		for _, of := range teams {
			if of.Observed == "" && of.Dir != "" && (of.Dir == dir || paths.Same(of.Dir, dir)) {
				here = append(here, of)
			}
		}
		if len(here) > 0 || !repository || dir == top {
			return here
		}
		dir = filepath.Dir(dir)
	}
}

// Plans returns every plan that was submitted to the team's lead, with its answer, the oldest
// first.
func (t *Team) Plans(ctx context.Context) ([]history.Plan, error) {
	plans, err := history.Plans(t.Read(ctx, 0))
	t.View(func(s *team.State) {
		for i := range plans {
			m, _ := s.Member(plans[i].Member)
			if waits := m.Plan.State == "submitted" && m.Status.Running(); plans[i].State == "submitted" &&
				(!waits || m.Plan.Request != plans[i].Request) {
				plans[i].State = "unanswered"
			}
		}
	})
	return plans, err
}

// Act sends the command to the team as the actor. Then it calls see with the team and the command's
// record, which is nil if nothing changed.
func (e *Engine) Act(ctx context.Context, name, actor string, body team.Body,
	see func(*Team, *team.Record) error) error {
	return e.ActOn(ctx, name, actor, func(s *team.State) (team.Body, error) { return s.Resolve(body) }, see)
}

// ActOn is Act for a command that depends on the team's state.
func (e *Engine) ActOn(ctx context.Context, name, actor string, make func(*team.State) (team.Body, error),
	see func(*Team, *team.Record) error) error {
	ctx, cancel := busy(ctx, name)
	defer cancel()
	t, err := e.Open(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	var body team.Body
	t.View(func(s *team.State) { body, err = make(s) })
	if err != nil {
		return err
	}
	receipt, err := t.Do(ctx, team.Command{Actor: actor, Body: body})
	if err != nil {
		return err
	}
	return see(t, receipt.Record)
}

// ActWhenReady is Act, and waits while the command is refused because there is nothing to act on,
// such as no task to claim. It ends with ctx, and with the refusal once the team has ended.
func (e *Engine) ActWhenReady(ctx context.Context, name, actor string, body team.Body,
	see func(*Team, *team.Record) error) error {
	t, err := e.Open(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	for {
		seq := t.Seq() // a record after it ends the wait
		trying, cancel := busy(ctx, name)
		receipt, err := t.Do(trying, team.Command{Actor: actor, Body: body})
		cancel()
		if err == nil {
			return see(t, receipt.Record)
		}
		if team.CodeOf(err) != team.Nothing {
			return err
		}
		if err := t.Await(ctx, seq); err != nil {
			return err
		}
	}
}

// AnswerShutdown answers the member's shutdown request as the member. It refuses with code NotReady
// if the member has no request, and with code Finished if the member has ended.
func (e *Engine) AnswerShutdown(ctx context.Context, name, member string, approved bool, reason string,
	see func(*Team, *team.ShutdownAnswered) error) error {
	ctx, cancel := busy(ctx, name)
	defer cancel()
	t, err := e.Open(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	var m team.Member
	t.View(func(s *team.State) { m, err = s.Named(member) })
	switch {
	case err != nil:
		return err
	case !m.Status.Running():
		return team.Refuse(team.Finished, "%s has left team %s already", member, t.Name)
	case m.Shutdown.Request == "":
		return team.Refuse(team.NotReady, "%s was not asked to shut down; the lead can ask it", member).
			With(team.Hint{Action: team.ActShutDown, Team: t.Name, Member: member})
	}
	receipt, err := t.Do(ctx, team.Command{Actor: member, Body: &team.AnswerShutdown{Request: m.Shutdown.Request,
		Approved: approved, Reason: reason}})
	if err != nil {
		return err
	}
	if e, ok := team.EventIn[*team.ShutdownAnswered](receipt.Record); ok {
		return see(t, e)
	}
	return nil
}

// Reassign gives a task to another member, as the actor; see [upkeep.Reassign].
func (t *Team) Reassign(ctx context.Context, actor string, r upkeep.Reassignment) (team.Task, error) {
	ctx, cancel := busy(ctx, t.Name)
	defer cancel()
	var err error
	if t.View(func(s *team.State) { r.Task, err = s.TaskID(r.Task) }); err != nil {
		return team.Task{}, err
	}
	return upkeep.Reassign(ctx, t.Upkeep(actor), r)
}

// busy bounds the wait for other writers of the team.
func busy(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, BusyTime, fmt.Errorf("team %s was busy for %s", name, team.Span(BusyTime)))
}

// Standing returns the state of the team at a glance, for a line in a list.
func (t *Team) Standing(ctx context.Context) (n catalog.Standing, err error) {
	outside, err := t.Looker().Look(ctx, time.Now())
	if err != nil {
		return n, err
	}
	t.View(func(s *team.State) { n = catalog.Stand(t.engine.Home, s, outside) })
	n.ChildTeams, err = t.childTeams(ctx, 1)
	return n, err
}

// Looker returns a looker that examines the processes of the team again and again. It is for one
// goroutine, which follows the team.
func (t *Team) Looker() *inspect.Looker {
	l := &inspect.Looker{Replica: t.Replica, Dir: t.Dir, Shared: t.Shared()}
	if t.OnDisk() {
		l.Home = t.engine.Home
	}
	return l
}
