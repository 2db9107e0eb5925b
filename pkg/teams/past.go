package teams

import (
	"context"
	"time"

	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// Moment is a team as it was after a record.
type Moment struct {
	Seq         int64     // of the record; see [Event.Seq]
	At          time.Time // when it was recorded
	Info        TeamInfo
	Members     []Member
	Tasks       []Task // without deleted ones
	Permissions []Permission
	Notes       []Note
	// Attention is what waited for a person, according to the records. The records do not say which
	// processes were alive.
	Attention []Attention
}

// At returns the team as it was after the record seq, from 1 to the Seq of the last event. Only the
// first call for a part of a long history reads that part. It returns ErrNotFound for a record that
// does not exist, and ErrDamaged if damage hides the state. The text of ErrDamaged says which
// states can be shown.
func (v *View) At(ctx context.Context, seq int64) (Moment, error) {
	s, err := v.of.Past().At(ctx, seq)
	if err != nil {
		return Moment{}, public(err)
	}
	of := s.Team()
	m := Moment{Seq: s.Seq(), At: clock(of.UpdatedAt), Info: infoOf(of),
		Attention: attentionOf(v.name, s.Attention(of.UpdatedAt, nil))}
	for _, one := range s.Roster() {
		m.Members = append(m.Members, memberOf(one))
	}
	for t := range s.Tasks() {
		m.Tasks = append(m.Tasks, taskOf(t))
	}
	for _, p := range s.Permissions() {
		m.Permissions = append(m.Permissions, permissionOf(p))
	}
	for _, n := range s.Notes() {
		m.Notes = append(m.Notes, noteOf(n))
	}
	return m, nil
}

// MarkKind says why a record is worth a look.
type MarkKind string

// The kinds of marks.
const (
	MarkFailure MarkKind = MarkKind(history.MarkFailure) // a task, a member, a check or the lead failed
	MarkWait    MarkKind = MarkKind(history.MarkWait)    // a member began to wait for a person
	MarkCommit  MarkKind = MarkKind(history.MarkCommit)  // work was committed or rolled back
)

// Mark is a record worth a look with [View.At].
type Mark struct {
	Seq    int64
	At     time.Time
	Kind   MarkKind
	Member string // that it concerns; "" for none
	Task   string // id of the task that it concerns; "" for none
}

// Marks returns the marks of the team's history in the order of the records. A later call reads
// only what was recorded since.
func (v *View) Marks(ctx context.Context) (all []Mark, err error) {
	marks, err := v.of.Marks(ctx)
	for _, m := range marks {
		all = append(all, Mark{m.Seq, clock(m.At), MarkKind(m.Kind), m.Member, m.Task})
	}
	return all, public(err)
}

// Summary describes what happened between two visits to a team.
type Summary struct {
	From, To  int64    // the first and the last record; 0 if nothing happened
	Completed []string // ids of tasks that are completed since
	Failed    []string // ids of tasks whose last attempt failed
	Created   int      // tasks that were added
	Joined    []string // members that were added
	Ended     []string // members that stopped or failed
	Waiting   int      // requests, plans and questions that came and still wait for a person
	Messages  int      // to the person who leads
	Commits   []string // of the team's work
	Usage     Usage
	// Lines describes the same in sentences, the most urgent first. They quote what agents wrote,
	// and are for people only.
	Lines []string
}

// Since returns what happened after the record seq: the Seq of the last event that the person has
// seen, or 0 for the whole history.
func (v *View) Since(ctx context.Context, seq int64) (Summary, error) {
	if err := v.of.Refresh(ctx); err != nil {
		return Summary{}, public(err)
	}
	sum, err := v.of.Since(ctx, seq)
	if err != nil {
		return Summary{}, public(err)
	}
	s := Summary{From: sum.From, To: sum.To, Completed: sum.Completed, Created: sum.Created, Joined: sum.Joined,
		Waiting: len(sum.Waiting), Messages: int(sum.Messages), Commits: sum.Commits, Usage: Usage(sum.Usage)}
	for _, f := range sum.Failed {
		s.Failed = append(s.Failed, f.Task)
	}
	for _, e := range sum.Ended {
		s.Ended = append(s.Ended, e.Member)
	}
	v.of.View(func(state *team.State) { s.Lines = sum.Lines(state.Called) })
	return s, nil
}
