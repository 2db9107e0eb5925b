package observe

import (
	"cadre/internal/observe/model"
	"cadre/internal/observe/present"
	"cadre/internal/team"
)

// Options say how to observe.
type Options = model.Options

// Counts say what came and what became of it.
type Counts = model.Counts

// The errors of [Restore].
var (
	ErrNewer = model.ErrNewer
	ErrOther = model.ErrOther
)

// Observer watches one team at a time. It belongs to one goroutine.
type Observer struct {
	*model.Watcher
	notices []present.Notice
}

// Seen is what one line said. Nearly all lines say nothing of a team, and then it is zero.
type Seen struct {
	// TeamToolUse says that the line calls a tool of the team, or has the result of such a call:
	// the flag on the original message, which is passed on unchanged.
	TeamToolUse bool
	// Supplements are the messages beside the original one.
	Supplements []present.Supplement
	// Records are what the team's state and a journal take. One with seq 1 begins a new team.
	Records []*team.Record
	// Notices are the events for consumers that follow from the records.
	Notices []present.Notice
	// Warnings are for a log.
	Warnings []string
}

// New returns an observer that has seen nothing.
func New(options Options) *Observer {
	o := &Observer{}
	o.Watcher = model.New(options, o.recorded)
	return o
}

func (o *Observer) recorded(s *team.State, r *team.Record, session string) {
	o.notices = append(o.notices, present.NoticesOf(s, r, session)...)
}

// Line takes one line of a source, without or with its line break, at the time at which it came.
// The line is not kept and not changed; whoever relays it passes it on as it is, whatever is said
// here.
func (o *Observer) Line(source string, line []byte, now team.Time) Seen {
	return o.seen(o.Watcher.Line(source, line, now))
}

// Gap says that something of a source was lost: a connection that was down, a file that was cut.
// What is known of the team stays.
func (o *Observer) Gap(source, reason string, now team.Time) Seen {
	return o.seen(o.Watcher.Gap(source, reason, now))
}

// seen presents a report.
func (o *Observer) seen(r model.Report) Seen {
	s := Seen{TeamToolUse: r.TeamToolUse, Records: r.Records, Notices: o.notices, Warnings: r.Warnings}
	for i := range r.Uses {
		s.Supplements = append(s.Supplements, present.SupplementOf(&r.Uses[i]))
	}
	o.notices = nil
	return s
}

// State is the team as consumers see it, nil where there is none.
func (o *Observer) State() *present.TeamState { return present.StateOf(o.Team()) }

// Restore reads an observer back that [Observer.Save] wrote. A state that is newer than the
// saved one, because its journal is written more often, takes that one's place; nil for none.
// Without anything saved, the state is all there is.
func Restore(options Options, saved []byte, newer *team.State) (*Observer, error) {
	o := &Observer{}
	var err error
	if o.Watcher, err = model.Restore(options, o.recorded, saved, newer); err != nil {
		return nil, err
	}
	return o, nil
}

// FromTeamState continues with a team of which only what consumers see was kept. The records that
// make it so are in Seen, for a journal.
func FromTeamState(options Options, t *present.TeamState, now team.Time) (*Observer, Seen) {
	o := &Observer{}
	members, tasks := t.Known()
	return o.known(options, t.Name, t.Role == present.RoleLead, members, tasks, now)
}

// FromAgents continues with a session of which an older version kept the names of the agents alone.
// Its team has no name until one is seen.
func FromAgents(options Options, agents []string, now team.Time) (*Observer, Seen) {
	if len(agents) == 0 {
		return New(options), Seen{}
	}
	var members []team.Member
	for _, name := range agents {
		members = append(members, team.Member{Name: name, Status: team.Active})
	}
	return new(Observer).known(options, "", true, members, nil, now)
}

func (o *Observer) known(options Options, name string, led bool, members []team.Member, tasks []team.Task,
	now team.Time) (*Observer, Seen) {
	var r model.Report
	o.Watcher, r = model.Known(options, o.recorded, name, led, members, tasks, now)
	return o, o.seen(r)
}
