package teams

import (
	"context"
	"fmt"
	"time"

	"cadre/internal/access"
	"cadre/internal/engine/upkeep"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Team is a manager's handle on its team. Methods that only the lead may use are refused with
// Denied for a teammate.
type Team struct {
	*View
	*presence
	home layout.Home
	opts Options
	me   actor
	who  access.Caller

	functions *hookSet // of the manager

	cleaned bool // guarded by the manager's turn
}

// actor is one who acts in a team.
type actor struct {
	team        *Team
	name        string
	incarnation int64 // the session that acts; 0 for whichever
}

// do sends a command. The record is nil when nothing had to change.
func (a actor) do(ctx context.Context, body team.Body) (*team.Record, error) {
	receipt, err := a.team.of.Do(ctx, team.Command{Actor: a.name, Incarnation: a.incarnation, Body: body})
	return receipt.Record, public(err)
}

// look is [View.look].
func (a actor) look(ctx context.Context, see func(*team.State)) error { return a.team.look(ctx, see) }

// found returns the first event of its kind in the record.
func found[E team.Event](r *team.Record) (e E, ok bool) {
	if r != nil {
		for _, one := range r.Events {
			if e, ok = one.(E); ok {
				return e, true
			}
		}
	}
	return e, false
}

// user acts as the human whose team it is.
func (t *Team) user() actor { return actor{team: t, name: team.User} }

// asUser acts as the human where the lead's program does.
func (t *Team) asUser(entry, what string) (actor, error) {
	if err := t.pass(entry, nil); err != nil {
		return actor{}, err
	}
	if !t.leads() {
		return actor{}, refuse(ErrDenied, "only the lead's program and the user "+what)
	}
	return t.user(), nil
}

// leads reports whether the manager is the lead's: it acts as the lead, or as the user where an
// agent is that.
func (t *Team) leads() bool { return t.me.name == t.lead || t.me.name == team.User }

// pass is [Manager.pass].
func (t *Team) pass(entry string, fields map[string]bool) error { return pass(t.who, entry, fields) }

// Tasks is the task list, used as the manager's actor.
func (t *Team) Tasks() *TaskList { return tasksOf(t.me) }

// Mail is the mailbox of the manager's actor.
func (t *Team) Mail() *Mailbox { return &Mailbox{t.me} }

// UserMail is the mailbox of the [User], which sends and receives nothing: what members say to the
// user is in their questions and reports. To a coding agent its messages are the user's word. It is
// refused with ErrDenied for the manager of a teammate.
func (t *Team) UserMail() (*Mailbox, error) {
	user, err := t.asUser("Team.UserMail", "write as the user")
	return &Mailbox{user}, err
}

// As returns the handle of a member, for a program that acts as it: an external one, or the
// manager's own. A teammate's manager acts as its own member only. The error has the code
// ErrNotFound for a name that no member has, as far as the team was read: who was added by another
// program a moment ago is there after any method that reads.
func (t *Team) As(name string) (*Teammate, error) {
	if (!t.leads() || !t.who.IsUser()) && name != t.me.name {
		return nil, refuse(ErrDenied, fmt.Sprintf("this manager acts as %s, and not as %s", t.me.name, name))
	}
	if err := t.member(name); err != nil {
		return nil, err
	}
	return &Teammate{actor{team: t, name: name}}, nil
}

// await waits until the member is as it should be.
func (t *Team) await(ctx context.Context, name string, as func(team.Member) bool) (m Member, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t.host != nil {
		go func() {
			select {
			case <-t.host.Done():
				cancel(fmt.Errorf("the host of team %s has ended", t.name))
			case <-waiting.Done():
			}
		}()
	}
	err = t.until(waiting, func(s *team.State) bool {
		core, _ := s.Member(name)
		m = memberOf(core)
		return as(core)
	})
	if err != nil && waiting.Err() != nil {
		err = context.Cause(waiting)
	}
	return m, err
}

// Spawn adds a teammate and waits until its session runs, which takes a coding agent some seconds. A
// coding agent that is not installed is refused with ErrInvalid, and one to which nobody is logged
// in with ErrNotReady; nobody is added then, and the name stays free. What shows only when a session
// is started is a member that has failed, and the error has the code ErrSessionFailed and the
// agent's own words; what may pass, such as a crash, is tried a few times first. When ctx ends
// first, the teammate is there and its start continues.
func (t *Team) Spawn(ctx context.Context, c MemberConfig) (Member, error) {
	if err := t.mayChoose(c); err != nil {
		return Member{}, err
	}
	if t.opts.As == "" {
		if err := t.opts.check(ctx, c, t.dir); err != nil {
			return Member{}, err
		}
		if err := t.opts.able(ctx, c, t.dir); err != nil {
			return Member{}, err
		}
	}
	if _, err := t.me.do(ctx, c.core()); err != nil {
		return Member{}, err
	}
	spawned, err := t.await(ctx, c.Name, func(m team.Member) bool { return m.Status != team.Spawning })
	if err == nil && spawned.Status == StatusFailed {
		err = refuse(ErrSessionFailed, fmt.Sprintf("%s could not be started: %s", c.Name, spawned.Summary))
	}
	t.of.Project(ctx)
	return spawned, err
}

// mayChoose refuses to a program in a member's session what the lead's tools do not let it choose
// for a teammate.
func (t *Team) mayChoose(c MemberConfig) error {
	if t.who.IsUser() {
		return nil
	}
	fields := map[string]bool{"Program": c.Program != "", "Args": len(c.Args) > 0, "Env": len(c.Env) > 0,
		"PermissionMode": c.PermissionMode != ""}
	if err := t.pass("Team.Spawn", fields); err != nil {
		return err
	}
	return public(t.of.MaySpawn(t.who, c.Agent))
}

// Shutdown asks a teammate to end and waits until it has, which is at Options.ShutdownWithin from
// now at the latest, whatever it answers, unless the request is withdrawn. One that was asked
// already is waited for. Its tasks are returned to the queue then, and the lead has a message. For
// other deadlines see [Team.RequestShutdown].
func (t *Team) Shutdown(ctx context.Context, name string) error {
	_, err := t.RequestShutdown(ctx, ShutdownRequest{Member: name, Within: t.opts.ShutdownWithin})
	if err != nil && !t.leaving(name) {
		return err
	}
	ended, err := t.await(ctx, name, func(m team.Member) bool {
		return !m.Status.Running() || m.Shutdown.Request == ""
	})
	if err == nil && ended.Status.Running() {
		return refuse(ErrConflict, name+" continues: the request to shut down was withdrawn")
	}
	t.of.Project(ctx)
	return err
}

// AwaitEnd waits until the member has stopped or failed, and returns it as it is then.
func (t *Team) AwaitEnd(ctx context.Context, name string) (Member, error) {
	if _, err := t.Member(ctx, name); err != nil {
		return Member{}, err
	}
	return t.await(ctx, name, func(m team.Member) bool { return !m.Status.Running() })
}

// ShutdownRequest asks a teammate to end.
type ShutdownRequest struct {
	Member string
	Reason string        // for the teammate
	Within time.Duration // at this time from now it is ended, whatever it answered; 0 is at once
}

// RequestShutdown asks a teammate to end, does not wait for it, and returns the request's id. A
// later request than one that is under way is refused with ErrConflict; an earlier one replaces it.
func (t *Team) RequestShutdown(ctx context.Context, r ShutdownRequest) (string, error) {
	now := replica.Now()
	record, err := t.me.do(ctx, &team.RequestShutdown{Member: r.Member, Reason: r.Reason,
		Deadline: now.Add(r.Within)})
	if err != nil {
		return "", err
	}
	e, _ := found[*team.ShutdownRequested](record)
	return e.Request, nil
}

// leaving reports whether the member has been asked to end.
func (t *Team) leaving(name string) (asked bool) {
	t.of.View(func(s *team.State) {
		m, _ := s.Member(name)
		asked = m.Status.Running() && m.Shutdown.Request != "" && t.leads()
	})
	return asked
}

// WithdrawShutdown takes a request back, for example after the teammate gave a good reason not to
// end.
func (t *Team) WithdrawShutdown(ctx context.Context, member string) error {
	_, err := t.me.do(ctx, &team.WithdrawShutdown{Member: member})
	return err
}

// ApprovePlan approves the plan that was submitted with that request, with a word on it or none.
func (t *Team) ApprovePlan(ctx context.Context, request, feedback string) error {
	_, err := t.me.do(ctx, &team.AnswerPlan{Request: request, Approved: true, Feedback: feedback})
	return err
}

// RejectPlan sends a plan back: the teammate revises and resubmits it. The feedback must say what
// it lacks.
func (t *Team) RejectPlan(ctx context.Context, request, feedback string) error {
	_, err := t.me.do(ctx, &team.AnswerPlan{Request: request, Feedback: feedback})
	return err
}

// AllowPermission allows what a member asks permission for. The lead's own requests are the user's to
// answer, which the lead's program stands for here. The first answer counts: a request that was
// answered already is refused with ErrConflict and who answered it.
func (t *Team) AllowPermission(ctx context.Context, request, reason string) error {
	return t.answerPermission(ctx, "Team.AllowPermission", team.AnswerPermission{Request: request, Allow: true,
		Reason: reason})
}

// DenyPermission is AllowPermission that denies.
func (t *Team) DenyPermission(ctx context.Context, request, reason string) error {
	return t.answerPermission(ctx, "Team.DenyPermission", team.AnswerPermission{Request: request, Reason: reason})
}

func (t *Team) answerPermission(ctx context.Context, entry string, answer team.AnswerPermission) error {
	if err := t.pass(entry, nil); err != nil {
		return err
	}
	by := t.me
	t.of.View(func(s *team.State) {
		for _, p := range s.Permissions() {
			if p.Request == answer.Request && p.Member == t.lead && by.name == t.lead && t.who.IsUser() {
				by = t.user()
			}
		}
	})
	_, err := by.do(ctx, &answer)
	return err
}

// SetMode changes what a member may do without asking, from its next tool or its next turn on,
// whichever its agent can do. No turn is cut short for it. The mode of a lead that is an agent is
// changed too by this; a program that leads has no use for one. ModeBypass is refused with
// ErrDenied where the program leads and has another mode itself.
func (t *Team) SetMode(ctx context.Context, member string, mode PermissionMode) error {
	if err := t.pass("Team.SetMode", nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.SetMode{Member: member, Mode: string(mode)})
	return err
}

// EnterDelegateMode has the lead coordinate only: it claims no task, and [Team.Allows] tells its
// agent which tools it has.
func (t *Team) EnterDelegateMode(ctx context.Context) error {
	return t.delegate(ctx, "Team.EnterDelegateMode", team.SetDelegate{On: true})
}

// LeaveDelegateMode gives the lead all of its tools again.
func (t *Team) LeaveDelegateMode(ctx context.Context) error {
	return t.delegate(ctx, "Team.LeaveDelegateMode", team.SetDelegate{})
}

func (t *Team) delegate(ctx context.Context, entry string, mode team.SetDelegate) error {
	user, err := t.asUser(entry, "switch delegate mode")
	if err == nil {
		_, err = user.do(ctx, &mode)
	}
	return err
}

// SetBudget gives the team a new budget. A team that had spent its old one continues.
func (t *Team) SetBudget(ctx context.Context, b Budget) error {
	user, err := t.asUser("Team.SetBudget", "set the budget")
	if err == nil {
		_, err = user.do(ctx, &team.SetBudget{Budget: b.core()})
	}
	return err
}

// SetMemberBudget gives a teammate a budget of its own, beside the team's; a zero one takes it away. A
// teammate that had spent its old one continues. The lead has none: without it the team would stop.
func (t *Team) SetMemberBudget(ctx context.Context, member string, b Budget) error {
	user, err := t.asUser("Team.SetMemberBudget", "set the budget of a member")
	switch {
	case err != nil:
	case member == "":
		err = refuse(ErrInvalid, "say whose budget it is")
	default:
		_, err = user.do(ctx, &team.SetBudget{Member: member, Budget: b.core()})
	}
	return err
}

// Rollback is what a rollback of a task did.
type Rollback struct {
	Files  []string // from the top of the repository
	Branch string   // the member's, where it worked in a worktree; "" for the team's directory
	Commit string   // that undid the work on the branch
}

// RollBackTask undoes what a task saved or committed, and returns it to the queue; reason may be
// "". It is refused, and touches nothing, while the task is in progress, where a task that builds
// on it is completed, where files were changed since, where the work is in HEAD already, and where
// nothing was saved. When it was interrupted, the next call finishes.
//
// It is also refused where other members worked in the same directory at the same time, because
// nobody can tell whose the files are. With only, paths from the top of the work tree, just these
// files are restored: the caller says that they are the task's.
func (t *Team) RollBackTask(ctx context.Context, id, reason string, only ...string) (Rollback, error) {
	if _, err := t.asUser("Team.RollBackTask", "roll back a task"); err != nil {
		return Rollback{}, err
	}
	if !t.of.OnDisk() {
		return Rollback{}, refuse(ErrNotReady, "a team in memory has no folder that a rollback could work in")
	}
	u, err := t.of.RollBackTask(ctx, team.User, id, reason, only...)
	return Rollback{Files: u.Files, Branch: u.Branch, Commit: u.Commit}, public(err)
}

// Complete ends the team: its history and results stay, and nothing in it changes any more. It is
// refused while a teammate with a session runs. report is the path of the lead's report, or "".
func (t *Team) Complete(ctx context.Context, report string) error {
	return t.setStatus(ctx, "Team.Complete", team.TeamComplete, "", report)
}

// abortWithin bounds how long an abort waits for processes. One that is called from a session or a
// hook of its own team would wait for itself.
const abortWithin = time.Minute

// Abort ends the team with everybody in it, at once. It waits, for a minute at most, until every
// session has ended, also those that other processes run, and takes out of the work tree what a
// consolidation that was killed had brought there; what members did in worktrees is on their
// branches then. With ErrNotReady the team is aborted and something of it is still there; it may be
// called again.
func (t *Team) Abort(ctx context.Context, reason string) error {
	if !t.of.OnDisk() || !t.leads() { // it has no work tree; or the team refuses
		return t.setStatus(ctx, "Team.Abort", team.TeamAborted, reason, "")
	}
	if err := t.pass("Team.Abort", nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, abortWithin)
	defer cancel()
	return public(upkeep.Abort(ctx, t.of.Upkeep(t.me.name), reason))
}

func (t *Team) setStatus(ctx context.Context, entry string, status team.TeamStatus, reason, report string) error {
	if err := t.pass(entry, nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.SetStatus{Status: status, Reason: reason, Report: report})
	return err
}
