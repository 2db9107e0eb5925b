package teams

import (
	"context"
	"iter"
	"slices"
	"time"

	"cadre/internal/team"
)

// Event is one thing that happened in a team. Events with the same Seq happened together.
type Event struct {
	Seq  int64 // of the record it is in; a cursor for [Team.EventsAfter]
	At   time.Time
	By   string // a member's name, [User], or a host
	Fact Fact   // what happened, to be told apart with a type switch
}

// Fact is what happened: one of the types below.
type Fact interface{ fact() }

// What happens to a team.
type (
	TeamCreated struct {
		Team Info
		Lead Member
	}
	// TeamRestored begins the history of a team whose folder was lost, from a checkpoint.
	TeamRestored      struct{ Team Info }
	TeamStatusChanged struct {
		Status TeamStatus
		Reason string
		Report string
	}
	// TeamCleanedUp is a team's last event.
	TeamCleanedUp struct{ Forced bool }
	// TeamMoved says that the project is in Dir now, and was in From.
	TeamMoved       struct{ From, Dir string }
	DelegateChanged struct{ On bool }
	BudgetChanged   struct{ Budget Budget }
	// BudgetExhausted names what is spent: tokens, cost or time.
	BudgetExhausted struct{ What string }
	ReportAsked     struct{} // of a lead that is an agent: all work is done
	ReportGiven     struct{ Text string }
	// GapNoticed says that something of what Source said of an observed team was lost. What is
	// known stays.
	GapNoticed struct{ Source, Reason string }
)

// What happens to members.
type (
	MemberSpawned struct{ Member Member }
	// MemberStarted says that a session runs; Session is the agent's own id of it.
	MemberStarted       struct{ Member, Session string }
	MemberStatusChanged struct {
		Member  string
		Status  MemberStatus
		Summary string
		Trouble string // why its agent tries again by itself, as in MemberTroubled; "" where it has no trouble
	}
	// MemberDetached says that the member's session is gone and another one is to go on: by
	// resuming it, or a Fresh one.
	MemberDetached struct {
		Member, Reason string
		Fresh          bool
		Note           string // what the next session is told
	}
	// MemberTroubled says what kept the member from going on, Setbacks times in a row now, and when
	// it is tried again. With Setbacks 0 that is forgotten.
	MemberTroubled struct {
		Member, Trouble, Text string // Trouble is login, limit, model, context, missing, crash or ""
		Setbacks              int64
		RetryAt               time.Time
	}
	HandoverRequested struct{ Member, Reason string } // a fresh session is to go on for the present one
	MemberStopped     struct{ Member, Reason string } // as it was asked to
	MemberFailed      struct{ Member, Reason string } // its session ended by itself
	// MemberReturned says that a member of an observed team that had ended is there again.
	MemberReturned struct{ Member Member }
	ModeChanged    struct {
		Member string
		Mode   Mode
	}
	ShutdownRequested struct {
		Member   string
		Request  string
		Reason   string
		Deadline time.Time
	}
	ShutdownAnswered struct {
		Member, Request string
		Approved        bool
		Reason          string
	}
	ShutdownWithdrawn struct{ Member, Request string }
	PlanSubmitted     struct {
		Member, Request, Plan string
		Deadline              time.Time // when it is rejected because nobody answered; zero for never
	}
	PlanAnswered struct {
		Member, Request string
		Approved        bool
		Feedback        string
		By              string // "" where nobody answered in time
	}
	PermissionRequested struct{ Permission Permission }
	// PermissionAnswered has as Outcome allowed, denied or timed_out.
	PermissionAnswered struct{ Request, Member, Outcome, By, Reason string }
	UsageReported      struct {
		Member, Task string
		Usage        Usage
		Context      int // percent of the session's context that is full; 0 where the agent does not say
	}
	// HookRejected says that a hook rejected the same thing, Count times in a row now.
	HookRejected struct {
		Hook, Member, Task, Feedback string
		Count                        int64
	}
)

// What happens to tasks. Task is the id, but for TaskCreated.
type (
	TaskCreated struct{ Task Task }
	// TaskUpdated says that something about the task was changed; [TaskList.Get] shows it.
	TaskUpdated struct{ Task string }
	TaskClaimed struct {
		Task, Member string
		Fence        int64
	}
	// TaskReleased puts the task back on the list, meant for Owner, or for anybody.
	TaskReleased struct{ Task, Owner, Reason string }
	// TaskRolledBack undoes the work of the task and puts it back on the list, meant for Owner, or
	// for anybody. Commit undid it on the member's branch; it is "" where files were put back in
	// the team's directory.
	TaskRolledBack struct{ Task, Owner, Commit, Reason string }
	// TaskFailed ends an attempt.
	TaskFailed struct{ Task, By, Reason, Result string }
	// TaskCompleted completes the task; Unblocked are the tasks that wait for nothing now.
	TaskCompleted struct {
		Task, By, Result string
		Unblocked        []string
	}
	TaskDeleted struct {
		Task      string
		Unblocked []string
	}
)

// What happens to messages, which are named by their seqs.
type (
	MessageSent       struct{ Message Message }
	MessagesDelivered struct {
		Member string
		Seqs   []int64
	}
	MessagesRead struct {
		Member  string
		Through int64
	}
	// MessagesReturned takes mail from a member that will never get it; it went back to its
	// senders.
	MessagesReturned struct {
		Member string
		Seqs   []int64
	}
)

func (TeamCreated) fact()         {}
func (GapNoticed) fact()          {}
func (MemberReturned) fact()      {}
func (TeamRestored) fact()        {}
func (TeamStatusChanged) fact()   {}
func (TeamCleanedUp) fact()       {}
func (TeamMoved) fact()           {}
func (DelegateChanged) fact()     {}
func (BudgetChanged) fact()       {}
func (BudgetExhausted) fact()     {}
func (ReportAsked) fact()         {}
func (ReportGiven) fact()         {}
func (MemberTroubled) fact()      {}
func (HandoverRequested) fact()   {}
func (MemberSpawned) fact()       {}
func (MemberStarted) fact()       {}
func (MemberStatusChanged) fact() {}
func (MemberDetached) fact()      {}
func (MemberStopped) fact()       {}
func (MemberFailed) fact()        {}
func (ModeChanged) fact()         {}
func (ShutdownRequested) fact()   {}
func (ShutdownAnswered) fact()    {}
func (ShutdownWithdrawn) fact()   {}
func (PlanSubmitted) fact()       {}
func (PlanAnswered) fact()        {}
func (PermissionRequested) fact() {}
func (PermissionAnswered) fact()  {}
func (UsageReported) fact()       {}
func (HookRejected) fact()        {}
func (TaskCreated) fact()         {}
func (TaskUpdated) fact()         {}
func (TaskClaimed) fact()         {}
func (TaskReleased) fact()        {}
func (TaskRolledBack) fact()      {}
func (TaskFailed) fact()          {}
func (TaskCompleted) fact()       {}
func (TaskDeleted) fact()         {}
func (MessageSent) fact()         {}
func (MessagesDelivered) fact()   {}
func (MessagesRead) fact()        {}
func (MessagesReturned) fact()    {}

// Events yields what happens from now on, which is when Events is called, as it happens. A slow
// consumer misses nothing as long as the team is there.
//
// It ends without an error once the team is complete, aborted or cleaned up and everything that was
// recorded by then has been yielded. What is recorded of a team after its end, such as a
// consolidation, is seen by another call of EventsAfter. When ctx ends, or the manager lets go of
// the team, the last pair has the error: that of ctx, or one with the code Finished.
func (t *Team) Events(ctx context.Context) iter.Seq2[Event, error] {
	return t.EventsAfter(ctx, t.of.Seq())
}

// EventsAfter yields what happened after the record seq, 0 for the whole history, and goes on as
// Events does.
func (t *Team) EventsAfter(ctx context.Context, seq int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for r, err := range t.records(ctx, seq) {
			if err != nil {
				yield(Event{}, public(err))
				return
			}
			for _, e := range r.Events {
				fact := factOf(e, r)
				if fact != nil && !yield(Event{Seq: r.Seq, At: clock(r.At), By: r.Actor, Fact: fact}, nil) {
					return
				}
				if _, last := fact.(TeamCleanedUp); last {
					return
				}
			}
		}
	}
}

// records yields the records after seq after as they come, until the team has ended and all of them
// are yielded. An error is the last pair.
func (t *Team) records(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		for {
			for r, err := range t.of.Read(ctx, after) {
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
			err := t.of.Refresh(ctx)
			over := false
			t.of.View(func(s *team.State) { over = ended(s) && s.Seq() <= after })
			if err == nil && over {
				return
			}
			if err == nil {
				err = t.of.Wait(ctx, after)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// factOf is the event's public form; nil for what concerns hosts alone.
func factOf(e team.Event, r *team.Record) Fact {
	switch e := e.(type) {
	case *team.TeamCreated:
		e.Team.CreatedAt, e.Team.UpdatedAt, e.Lead.JoinedAt = r.At, r.At, r.At
		return TeamCreated{infoOf(e.Team), memberOf(e.Lead)}
	case *team.TeamRestored:
		return TeamRestored{infoOf(e.Team)}
	case *team.TeamStatusChanged:
		return TeamStatusChanged{TeamStatus(e.Status), e.Reason, e.Report}
	case *team.TeamCleanedUp:
		return TeamCleanedUp(*e)
	case *team.DelegateChanged:
		return DelegateChanged(*e)
	case *team.BudgetChanged:
		return BudgetChanged{budgetOf(e.Budget)}
	case *team.BudgetExhausted:
		return BudgetExhausted(*e)
	case *team.ReportAsked:
		return ReportAsked{}
	case *team.ReportGiven:
		return ReportGiven(*e)
	case *team.TeamMoved:
		return TeamMoved{From: e.From, Dir: e.Dir}
	case *team.GapNoticed:
		return GapNoticed(*e)
	case *team.HookRejected:
		return HookRejected{e.Hook, e.Member, e.Task, e.Feedback, e.Count}
	case *team.UsageReported:
		return UsageReported{e.Member, e.Task, Usage(e.Usage), int(e.Context)}
	}
	if fact := memberFact(e, r); fact != nil {
		return fact
	}
	return workFact(e, r)
}

func memberFact(e team.Event, r *team.Record) Fact {
	switch e := e.(type) {
	case *team.MemberSpawned:
		e.Member.JoinedAt = r.At
		return MemberSpawned{memberOf(e.Member)}
	case *team.MemberReturned:
		return MemberReturned{memberOf(e.Member)}
	case *team.MemberStarted:
		return MemberStarted(*e)
	case *team.MemberStatusChanged:
		return MemberStatusChanged{e.Member, MemberStatus(e.Status), e.Summary, e.Trouble}
	case *team.MemberDetached:
		return MemberDetached(*e)
	case *team.MemberTroubled:
		return MemberTroubled{e.Member, e.Trouble, e.Text, e.Setbacks, clock(e.RetryAt)}
	case *team.HandoverRequested:
		return HandoverRequested(*e)
	case *team.MemberStopped:
		return MemberStopped(*e)
	case *team.MemberFailed:
		return MemberFailed(*e)
	case *team.ModeChanged:
		return ModeChanged{e.Member, Mode(e.Mode)}
	case *team.ShutdownRequested:
		return ShutdownRequested{e.Member, e.Request, e.Reason, clock(e.Deadline)}
	case *team.ShutdownAnswered:
		return ShutdownAnswered(*e)
	case *team.ShutdownWithdrawn:
		return ShutdownWithdrawn(*e)
	case *team.PlanSubmitted:
		return PlanSubmitted{e.Member, e.Request, e.Plan, clock(e.Deadline)}
	case *team.PlanAnswered:
		return PlanAnswered(*e)
	case *team.PermissionRequested:
		return PermissionRequested{permissionOf(e.Permission)}
	case *team.PermissionAnswered:
		return PermissionAnswered(*e)
	}
	return nil
}

func workFact(e team.Event, r *team.Record) Fact {
	switch e := e.(type) {
	case *team.TaskCreated:
		e.Task.CreatedAt, e.Task.UpdatedAt = r.At, r.At
		return TaskCreated{taskOf(e.Task)}
	case *team.TaskUpdated:
		return TaskUpdated{e.Task}
	case *team.TaskClaimed:
		return TaskClaimed(*e)
	case *team.TaskReleased:
		return TaskReleased(*e)
	case *team.TaskRolledBack:
		return TaskRolledBack(*e)
	case *team.TaskFailed:
		return TaskFailed(*e)
	case *team.TaskCompleted:
		return TaskCompleted{e.Task, e.By, e.Result, slices.Clone(e.Unblocked)}
	case *team.TaskDeleted:
		return TaskDeleted{e.Task, slices.Clone(e.Unblocked)}
	case *team.MessageSent:
		m := messageOf(e.Message)
		m.SentAt = clock(r.At)
		return MessageSent{m}
	case *team.MessagesDelivered:
		return MessagesDelivered{e.Member, slices.Clone(e.Seqs)}
	case *team.MessagesRead:
		return MessagesRead(*e)
	case *team.MessagesReturned:
		return MessagesReturned{e.Member, slices.Clone(e.Seqs)}
	}
	return nil
}
