package history

import (
	"slices"
	"strings"

	"cadre/internal/team"
)

// MarkKind says why a person may want to see the team as it was after a record.
type MarkKind string

// The kinds of marks, the most important one first.
const (
	MarkFailure MarkKind = "failure" // a task, a member, a check or the lead failed, or a budget was spent
	MarkWait    MarkKind = "wait"    // a member began to wait for a person
	MarkCommit  MarkKind = "commit"  // the team's work was committed, or a task was rolled back
)

// MarkKinds are the kinds of marks, the most important one first.
var MarkKinds = []MarkKind{MarkFailure, MarkWait, MarkCommit}

// Mark is a record to jump to.
type Mark struct {
	Seq    int64
	At     team.Time
	Kind   MarkKind
	Event  string // kind of the event
	Member string // that it concerns; "" for none
	Task   string // id of the task that it concerns; "" for none
}

// Marks finds the marks of a history, which grows record by record. The zero value begins a
// history.
type Marks struct {
	all     []Mark
	lead    string
	leads   bool // the lead is a person or their own program, so questions wait for the lead
	through int64
}

// Add finds the marks of the next record. It ignores a record that was added before.
func (m *Marks) Add(r *team.Record) {
	if r.Seq <= m.through {
		return
	}
	m.through = r.Seq
	for _, e := range r.Events {
		if mark, is := m.of(e, r); is {
			mark.Seq, mark.At, mark.Event = r.Seq, r.At, e.Kind()
			// the names are parts of the record's line, which is longer
			mark.Member, mark.Task = strings.Clone(mark.Member), strings.Clone(mark.Task)
			m.all = append(m.all, mark)
		}
	}
}

// Through returns the seq of the last record that was added.
func (m *Marks) Through() int64 { return m.through }

// All returns the marks in the order of their records. The caller must not change them.
func (m *Marks) All() []Mark { return slices.Clip(m.all) }

// Next returns the first mark after the record seq of one of the kinds, or of any kind.
func (m *Marks) Next(seq int64, kinds ...MarkKind) (Mark, bool) {
	for _, mark := range m.all[m.after(seq):] {
		if len(kinds) == 0 || slices.Contains(kinds, mark.Kind) {
			return mark, true
		}
	}
	return Mark{}, false
}

// Previous returns the last mark before the record seq of one of the kinds, or of any kind.
func (m *Marks) Previous(seq int64, kinds ...MarkKind) (Mark, bool) {
	for _, mark := range slices.Backward(m.all[:m.after(seq-1)]) {
		if len(kinds) == 0 || slices.Contains(kinds, mark.Kind) {
			return mark, true
		}
	}
	return Mark{}, false
}

// after returns the index of the first mark after the record seq.
func (m *Marks) after(seq int64) int {
	i, _ := slices.BinarySearchFunc(m.all, seq+1, func(mark Mark, seq int64) int {
		return int(min(1, max(-1, mark.Seq-seq)))
	})
	return i
}

// of returns the mark for an event of the record.
func (m *Marks) of(e team.Event, r *team.Record) (Mark, bool) {
	switch e := e.(type) {
	case *team.TeamCreated:
		m.lead, m.leads = e.Lead.Name, e.Lead.Agent == team.External
	case *team.TeamRestored:
		m.lead = e.Team.Lead
		for _, one := range e.Members {
			if one.Name == m.lead {
				m.leads = one.Agent == team.External
			}
		}
	case *team.TaskFailed:
		return Mark{Kind: MarkFailure, Member: e.By, Task: e.Task}, true
	case *team.MemberFailed:
		return Mark{Kind: MarkFailure, Member: e.Member}, true
	case *team.MemberTroubled:
		return Mark{Kind: MarkFailure, Member: e.Member}, e.Setbacks > 0
	case *team.MemberOffline:
		return Mark{Kind: MarkFailure, Member: e.Member}, true
	case *team.HookRejected:
		return Mark{Kind: MarkFailure, Member: e.Member, Task: e.Task}, e.Count >= team.MaxStrikes
	case *team.BudgetExhausted, *team.LeadLost, *team.CheckFailed, *team.ConsolidationAbandoned, *team.GapNoticed:
		return Mark{Kind: MarkFailure}, true
	case *team.MemberBudgetExhausted:
		return Mark{Kind: MarkFailure, Member: e.Member}, true
	case *team.PermissionRequested:
		return Mark{Kind: MarkWait, Member: e.Permission.Member}, !answered(r, e.Permission.Request)
	case *team.PlanSubmitted:
		return Mark{Kind: MarkWait, Member: e.Member}, true
	case *team.MessageSent:
		return Mark{Kind: MarkWait, Member: e.Message.From}, m.leads && asks(e.Message, m.lead)
	case *team.CommitMade:
		return Mark{Kind: MarkCommit}, true
	case *team.TaskRolledBack:
		return Mark{Kind: MarkCommit, Task: e.Task}, true
	}
	return Mark{}, false
}

// answered reports whether the record also has the answer to the request: the rules gave it.
func answered(r *team.Record, request string) bool {
	return slices.ContainsFunc(r.Events, func(e team.Event) bool {
		a, is := e.(*team.PermissionAnswered)
		return is && a.Request == request
	})
}

// asks reports whether the message is a member's question to that reader.
func asks(m team.Message, reader string) bool {
	return m.Intent == "question" && m.From != team.User && m.From != "" && to(m, reader)
}

// to reports whether the reader is among the recipients of the message.
func to(m team.Message, reader string) bool {
	return m.To == reader || slices.Contains(m.Recipients, reader)
}
