package teams

import (
	"context"
	"fmt"
	"time"

	"cadre/internal/access"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Team is a manager's handle on its team. Methods that only the lead may call return ErrDenied for
// a teammate.
type Team struct {
	*View
	*presence
	home layout.Home
	opts Options
	me   actor
	who  access.Caller

	functions *hookSet // of the manager

	cleaned bool // guarded by Manager.turn
}

// actor is a member, or the user, who acts in a team.
type actor struct {
	team        *Team
	name        string
	incarnation int64 // the session that acts; 0 for any
}

// do sends a command. The record is nil if the command changed nothing.
func (a actor) do(ctx context.Context, body team.Body) (*team.Record, error) {
	receipt, err := a.team.of.Do(ctx, team.Command{Actor: a.name, Incarnation: a.incarnation, Body: body})
	return receipt.Record, public(err)
}

// look calls [View.look].
func (a actor) look(ctx context.Context, see func(*team.State)) error { return a.team.look(ctx, see) }

// user returns the user as an actor.
func (t *Team) user() actor { return actor{team: t, name: team.User} }

// asUser returns the user as an actor, if the manager is the lead's.
func (t *Team) asUser(entry, what string) (actor, error) {
	if err := t.pass(entry, nil); err != nil {
		return actor{}, err
	}
	if !t.leads() {
		return actor{}, refuse(ErrDenied, "only the lead's program and the user "+what)
	}
	return t.user(), nil
}

// leads reports whether the manager is the lead's: it acts as the lead, or as the user of an agent
// that leads.
func (t *Team) leads() bool { return t.me.name == t.lead || t.me.name == team.User }

// pass calls [Manager.pass].
func (t *Team) pass(entry string, fields map[string]bool) error { return pass(t.who, entry, fields) }

// Tasks returns the task list, as the manager's actor uses it.
func (t *Team) Tasks() *TaskList { return tasksOf(t.me) }

// Mail returns the mailbox of the manager's actor.
func (t *Team) Mail() *Mailbox { return &Mailbox{t.me} }

// UserMail returns the mailbox of the [User], which only sends: members reach the user with
// questions and reports. A coding agent treats its messages as the user's word. It returns
// ErrDenied for the manager of a teammate.
func (t *Team) UserMail() (*Mailbox, error) {
	user, err := t.asUser("Team.UserMail", "write as the user")
	return &Mailbox{user}, err
}

// As returns the handle of a member, for a program that acts as that member: an external member, or
// one of the manager's own. A teammate's manager acts only as its own member. As returns
// ErrNotFound for an unknown name. After another program added a member, call any method that
// reads, and As knows the member.
func (t *Team) As(name string) (*Teammate, error) {
	if (!t.leads() || !t.who.IsUser()) && name != t.me.name {
		return nil, refuse(ErrDenied, fmt.Sprintf("this manager acts as %s, and not as %s", t.me.name, name))
	}
	if err := t.member(name); err != nil {
		return nil, err
	}
	return &Teammate{actor{team: t, name: name}}, nil
}

// await waits until the member satisfies the condition.
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

// Spawn adds a teammate and waits until its session runs, which takes a coding agent some seconds.
// It returns ErrInvalid if the agent is not installed, and ErrNotReady if it is not logged in. Then
// no member is added, and the name stays free. If the session cannot start, the member has failed,
// and Spawn returns ErrSessionFailed with the agent's own words. A passing failure, such as a
// crash, is retried a few times first. If ctx ends first, the teammate exists and its start
// continues.
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

// mayChoose returns an error if a program in a member's session chooses something for a teammate
// that the lead's tools do not offer.
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

// Shutdown asks a teammate to end and waits until it has ended. That takes at most
// Options.ShutdownWithin, whatever the teammate answers, unless the request is withdrawn. If the
// teammate was asked before, Shutdown only waits. Afterwards its tasks return to the queue, and the
// lead gets a message. For other deadlines see [Team.RequestShutdown].
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

// AwaitEnd waits until the member has stopped or failed, and returns its state.
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
	Within time.Duration // when the time is over, the session is ended, whatever the teammate answers; 0 means at once
}

// RequestShutdown asks a teammate to end, and returns the request's id without waiting. An earlier
// deadline replaces a later one. If an earlier deadline is already set, it returns ErrConflict.
func (t *Team) RequestShutdown(ctx context.Context, r ShutdownRequest) (string, error) {
	now := replica.Now()
	record, err := t.me.do(ctx, &team.RequestShutdown{Member: r.Member, Reason: r.Reason,
		Deadline: now.Add(r.Within)})
	if err != nil {
		return "", err
	}
	e, _ := team.EventIn[*team.ShutdownRequested](record)
	return e.Request, nil
}

// leaving reports whether the member was asked to end.
func (t *Team) leaving(name string) (asked bool) {
	t.of.View(func(s *team.State) {
		m, _ := s.Member(name)
		asked = m.Status.Running() && m.Shutdown.Request != "" && t.leads()
	})
	return asked
}

// WithdrawShutdown withdraws a request, for example after the teammate gave a good reason not to
// end.
func (t *Team) WithdrawShutdown(ctx context.Context, member string) error {
	_, err := t.me.do(ctx, &team.WithdrawShutdown{Member: member})
	return err
}

// ApprovePlan approves the plan of that request; feedback may be "".
func (t *Team) ApprovePlan(ctx context.Context, request, feedback string) error {
	_, err := t.me.do(ctx, &team.AnswerPlan{Request: request, Approved: true, Feedback: feedback})
	return err
}

// RejectPlan rejects a plan: the teammate revises and resubmits it. The feedback must say what is
// missing.
func (t *Team) RejectPlan(ctx context.Context, request, feedback string) error {
	_, err := t.me.do(ctx, &team.AnswerPlan{Request: request, Feedback: feedback})
	return err
}

// AllowPermission allows a member's request. The user answers the lead's own requests, and the
// lead's program speaks for the user. The first answer counts. For an answered request, it returns
// ErrConflict and names who answered.
func (t *Team) AllowPermission(ctx context.Context, request, reason string) error {
	return t.answerPermission(ctx, "Team.AllowPermission", team.AnswerPermission{Request: request, Allow: true,
		Reason: reason})
}

// DenyPermission denies a member's request; see AllowPermission.
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

// SetMode changes what a member may do without asking. Depending on its agent, the change holds
// from the next tool or the next turn on. SetMode interrupts no turn. It also changes the mode of
// an agent that leads; a program that leads needs no mode. It returns ErrDenied for ModeBypass if
// the program leads and has another mode itself.
func (t *Team) SetMode(ctx context.Context, member string, mode PermissionMode) error {
	if err := t.pass("Team.SetMode", nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.SetMode{Member: member, Mode: string(mode)})
	return err
}

// EnterDelegateMode restricts the lead to coordination: it claims no task, and [Team.Allows] tells
// its agent which tools it has.
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

// SetBudget gives the team a new budget. A team whose budget was spent continues.
func (t *Team) SetBudget(ctx context.Context, b Budget) error {
	user, err := t.asUser("Team.SetBudget", "set the budget")
	if err == nil {
		_, err = user.do(ctx, &team.SetBudget{Budget: team.Budget(b)})
	}
	return err
}

// SetMemberBudget gives a teammate its own budget, beside the team's; a zero budget removes it. A
// teammate whose budget was spent continues. The lead cannot have one, because without the lead the
// team would stop.
func (t *Team) SetMemberBudget(ctx context.Context, member string, b Budget) error {
	user, err := t.asUser("Team.SetMemberBudget", "set the budget of a member")
	switch {
	case err != nil:
	case member == "":
		err = refuse(ErrInvalid, "say whose budget it is")
	default:
		_, err = user.do(ctx, &team.SetBudget{Member: member, Budget: team.Budget(b)})
	}
	return err
}

// Rollback is the result of a rollback of a task.
type Rollback struct {
	Files  []string // from the top of the repository
	Branch string   // the member's worktree; "" for the team's directory
	Commit string   // that undid the work on the branch
}

// RollBackTask undoes the saved or committed work of a task, and returns the task to the queue;
// reason may be "". It returns an error, and changes nothing, while the task is in progress, or if
// a completed task builds on it. It does the same if files were changed since, if the work is in
// HEAD already, or if no work was saved. After an interruption, the next call finishes it.
//
// It also returns an error if other members worked in the same directory at the same time: the
// owner of the files is not known then. With only, paths relative to the top of the work tree, just
// these files are restored: the caller states that they belong to the task.
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

// Complete ends the team. Its history and results stay, and can no longer change. It returns an
// error while a teammate with a session runs. report is the path of the lead's report, or "".
func (t *Team) Complete(ctx context.Context, report string) error {
	return t.setStatus(ctx, "Team.Complete", team.TeamComplete, "", report)
}

// abortWithin is how long an abort waits for processes. An abort from a session or a hook of its
// own team would otherwise wait for itself.
const abortWithin = time.Minute

// Abort ends the team and all its sessions at once. It waits up to a minute until every session has
// ended, including sessions that other processes run. It removes from the work tree what an
// interrupted consolidation had put there. Work of members in worktrees is then on their branches.
// If it returns ErrNotReady, the team is aborted but something is left, and Abort may be called
// again.
func (t *Team) Abort(ctx context.Context, reason string) error {
	if !t.of.OnDisk() || !t.leads() { // there is no work tree to restore, or the core refuses the abort
		return t.setStatus(ctx, "Team.Abort", team.TeamAborted, reason, "")
	}
	if err := t.pass("Team.Abort", nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, abortWithin)
	defer cancel()
	return public(t.of.Abort(ctx, t.me.name, reason))
}

func (t *Team) setStatus(ctx context.Context, entry string, status team.TeamStatus, reason, report string) error {
	if err := t.pass(entry, nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.SetStatus{Status: status, Reason: reason, Report: report})
	return err
}
