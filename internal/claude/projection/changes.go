package projection

import "cadre/internal/team"

// changes says which files must be rewritten.
type changes struct {
	all    bool            // every file must be compared
	roster bool            // config.json
	ids    bool            // ids were assigned or deleted, which affects .highwatermark
	tasks  map[string]bool // task files by id
}

// changesSince collects the changes in the history from the mark to the state. If the history
// cannot be read, it asks for a comparison of everything: the state is complete, and the history
// only saves comparisons.
func (r *run) changesSince(seq int64) *changes {
	// Reading a record is several times cheaper than comparing a task's file with the state.
	if limit := 1024 + 8*int64(highestID(r.state)); r.state.Seq()-seq > limit {
		return &changes{all: true}
	}
	c := &changes{tasks: map[string]bool{}}
	for rec, err := range r.journal.Read(r.ctx, seq) {
		if err != nil {
			break
		}
		if rec.Seq > r.state.Seq() {
			break
		}
		record, err := team.DecodeRecord(rec.Seq, string(rec.Data))
		if err != nil {
			break
		}
		for _, e := range record.Events {
			c.add(r.state, e)
		}
		seq = rec.Seq
	}
	if seq != r.state.Seq() {
		c.all = true
	}
	return c
}

func (c *changes) touch(ids ...string) {
	for _, id := range ids {
		c.tasks[id] = true
	}
}

// add records which files an event affects. The events of the last case do not appear in the
// projection. An event kind that is not listed may affect anything
// and causes a comparison of everything.
func (c *changes) add(s *team.State, e team.Event) {
	switch e := e.(type) {
	case *team.TaskCreated:
		c.touch(e.Task.ID)
		c.touch(e.Task.BlockedBy...)
		c.ids = true
	case *team.TaskUpdated:
		c.touch(e.Task)
		c.touch(e.AddBlockedBy...)
		c.touch(e.RemoveBlockedBy...)
		c.touch(e.AddBlocks...)
		c.touch(e.RemoveBlocks...)
	case *team.TaskRevised:
		c.touch(e.Task.ID)
	case *team.TaskClaimed:
		c.touch(e.Task)
	case *team.TaskRolledBack:
		c.touch(e.Task)
		if t, ok := s.Task(e.Task); ok { // they are blocked again
			c.touch(t.Blocks...)
		}
	case *team.TaskReleased:
		c.touch(e.Task)
	case *team.TaskFailed:
		c.touch(e.Task)
	case *team.TaskCompleted:
		c.touch(e.Task)
	case *team.TaskDeleted:
		c.touch(e.Task)
		c.ids = true
		if t, ok := s.Task(e.Task); ok { // they no longer name it
			c.touch(t.Blocks...)
			c.touch(t.BlockedBy...)
		}
	case *team.TeamStatusChanged, *team.TeamMoved, *team.MemberSpawned, *team.MemberStarted, *team.MemberStatusChanged,
		*team.MemberDetached, *team.MemberReturned, *team.MemberDescribed, *team.MemberRevised, *team.TeamRevised,
		*team.MemberTroubled, *team.RateLimited, *team.MemberStopped, *team.MemberFailed, *team.ModeChanged,
		*team.ShutdownAnswered:
		c.roster = true
	case *team.TasksSkipped, *team.TaskFolded: // its tasks are deleted in the same record
		c.ids = true
	case *team.MessageSent, *team.MessagesDelivered, *team.MessagesRead, *team.MessagesReturned, *team.MessagesLate,
		*team.MessagesResent, *team.MemberAttached, *team.MemberOffline, *team.MemberOnline, *team.HandoverRequested,
		*team.InterruptRequested, *team.ShutdownRequested, *team.ShutdownWithdrawn, *team.PlanSubmitted,
		*team.PlanAnswered,
		*team.PermissionRequested, *team.PermissionAnswered, *team.RuleAdded, *team.RuleRemoved, *team.UsageReported,
		*team.HookRejected, *team.DelegateChanged, *team.BudgetChanged, *team.BudgetExhausted, *team.BudgetAlerted,
		*team.MemberBudgetChanged, *team.MemberBudgetExhausted, *team.HookSwitched, *team.ReportAsked,
		*team.ReportGiven, *team.GapNoticed, *team.LeadAttached, *team.LeadLost, *team.FactsRecorded, *team.WorkSaved,
		*team.WorkRecorded,
		*team.BranchLeft, *team.TeamReleased, *team.TeamTakenBack, *team.WorkFound,
		*team.ConsolidationBegan, *team.WorktreesMerged, *team.WorkStaged, *team.CheckPassed, *team.CheckFailed,
		*team.CommitMade, *team.TeamConsolidated, *team.ConsolidationAbandoned, *team.NoteSet, *team.NoteAppended,
		*team.NoteDeleted, *team.PathsChanged, *team.WritesFound, *team.RateLimitLifted, *team.TurnGranted,
		*team.WordsRecorded, *team.ChildBegan, *team.ChildReported, *team.ChildEnded, *team.ParentHeard,
		*team.MailPassedOn, *team.TeamConfined:
	default:
		c.all = !c.outcome(e) || c.all
	}
}

// outcome adds an event about what came of a task beside its completion or failure, and reports
// whether it is one.
func (c *changes) outcome(e team.Event) bool {
	switch e := e.(type) {
	case *team.TaskSubmitted:
		c.touch(e.Task)
		c.touch(e.Tasks...)
	case *team.TaskRejected:
		c.touch(e.Task)
	case *team.TaskExpanded:
		c.touch(e.Task)
	case *team.TaskSkipped:
		c.touch(e.Task)
	default:
		return false
	}
	return true
}
