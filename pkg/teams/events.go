package teams

import (
	"slices"
	"time"

	"cadre/internal/team"
)

// Event is one event in a team. Events with the same Seq happened together.
type Event struct {
	Seq  int64 // of the record it is in; a cursor for [View.EventsAfter]
	At   time.Time
	By   string // name of a member or a host, or [User]
	Fact Fact   // what happened, for a type switch
}

// Fact is what happened: one of the types below.
type Fact interface{ fact() }

// eventsOf returns the events of records, without those about hosts only.
func eventsOf(records ...*team.Record) (all []Event) {
	for _, r := range records {
		for _, e := range r.Events {
			if fact := factOf(e, r); fact != nil {
				all = append(all, Event{Seq: r.Seq, At: clock(r.At), By: r.Actor, Fact: fact})
			}
		}
	}
	return all
}

// factOf returns the event's public form; nil for an event about hosts only.
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
		return BudgetChanged{Budget(e.Budget)}
	case *team.BudgetExhausted:
		return BudgetExhausted{BudgetKind(e.What)}
	case *team.BudgetAlerted:
		return BudgetAlerted{e.Member, BudgetKind(e.What), int(e.Percent)}
	case *team.MemberBudgetChanged:
		return MemberBudgetChanged{e.Member, Budget(e.Budget)}
	case *team.MemberBudgetExhausted:
		return MemberBudgetExhausted{e.Member, BudgetKind(e.What)}
	case *team.ReportAsked:
		return ReportAsked{}
	case *team.ReportGiven:
		return ReportGiven(*e)
	case *team.TeamMoved:
		return TeamMoved{From: e.From, Dir: e.Dir}
	case *team.GapNoticed:
		return GapNoticed(*e)
	case *team.HookRejected:
		return HookRejected{HookName(e.Hook), e.Member, e.Task, e.Feedback, e.Count}
	case *team.TeamRevised:
		return TeamRevised{slices.Clone(e.Fields)}
	case *team.HookSwitched:
		return HookSwitched{e.ID, HookName(e.Event), HookSource(e.Source), e.Command, e.Off}
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
	case *team.MemberRevised:
		return MemberRevised{e.Member.Name, slices.Clone(e.Fields), e.Member.Dropped}
	case *team.MemberStarted:
		return MemberStarted(*e)
	case *team.MemberStatusChanged:
		return MemberStatusChanged{e.Member, MemberStatus(e.Status), e.Summary, Trouble(e.Trouble)}
	case *team.MemberDetached:
		return MemberDetached(*e)
	case *team.MemberTroubled:
		return MemberTroubled{e.Member, Trouble(e.Trouble), e.Text, e.Setbacks, clock(e.RetryAt)}
	case *team.RateLimited:
		return RateLimited{e.Pool, clock(e.Until), e.By, e.Text, e.Tries, e.Ended}
	case *team.RateLimitLifted:
		return RateLimitLifted(*e)
	case *team.TurnGranted:
		return TurnGranted(*e)
	case *team.HandoverRequested:
		return HandoverRequested(*e)
	case *team.InterruptRequested:
		return InterruptRequested(*e)
	case *team.MemberStopped:
		return MemberStopped(*e)
	case *team.MemberFailed:
		return MemberFailed(*e)
	case *team.ModeChanged:
		return ModeChanged{e.Member, PermissionMode(e.Mode)}
	case *team.RuleAdded:
		return RuleAdded(*e)
	case *team.RuleRemoved:
		return RuleRemoved(*e)
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
		return PermissionAnswered{e.Request, e.Member, Outcome(e.Outcome), e.By, e.Reason}
	}
	return nil
}

func workFact(e team.Event, r *team.Record) Fact {
	switch e := e.(type) {
	case *team.TaskCreated:
		e.Task.CreatedAt, e.Task.UpdatedAt = r.At, r.At
		return TaskCreated{taskOf(e.Task)}
	case *team.TaskUpdated:
		return TaskUpdated{e.Task, changesOf(e.Changes())}
	case *team.TaskClaimed:
		return TaskClaimed(*e)
	case *team.TaskReleased:
		return TaskReleased(*e)
	case *team.TaskRolledBack:
		return TaskRolledBack(*e)
	case *team.TaskRevised:
		return TaskRevised{e.Task.ID, slices.Clone(e.Fields)}
	case *team.TaskFailed:
		return TaskFailed{e.Task, e.By, e.Reason, e.Result, slices.Clone(e.Unblocked)}
	case *team.TaskCompleted:
		return TaskCompleted{e.Task, e.By, e.Result, slices.Clone(e.Unblocked), slices.Clone(e.Verified),
			Verdict(e.Verdict)}
	case *team.TaskSubmitted:
		return TaskSubmitted{e.Task, e.By, e.Result, int(e.Round), slices.Clone(e.Tasks)}
	case *team.TaskRejected:
		return TaskSentBack(*e)
	case *team.TaskSkipped:
		return TaskSkipped{e.Task, e.Reason, slices.Clone(e.Unblocked)}
	case *team.WordsRecorded:
		return WordsRecorded(*e)
	case *team.TaskDeleted:
		return TaskDeleted{e.Task, slices.Clone(e.Unblocked)}
	case *team.PathsChanged:
		return PathsChanged{e.Task, e.By, slices.Clone(e.Added), slices.Clone(e.Removed)}
	case *team.WritesFound:
		return WritesFound{e.Member, e.Task, e.Holder, slices.Clone(e.Files), e.Unsure}
	case *team.NoteSet:
		return NoteSet(*e)
	case *team.NoteAppended:
		return NoteAppended(*e)
	case *team.NoteDeleted:
		return NoteDeleted(*e)
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
