package observe

import (
	"cadre/internal/observe/model"
	"cadre/internal/observe/present"
	"cadre/internal/team"
)

// Options configures an observer.
type Options = model.Options

// Counts are statistics about the input.
type Counts = model.Counts

// Errors of [Restore].
var (
	ErrNewer = model.ErrNewer
	ErrOther = model.ErrOther
)

// Observer watches one team at a time. It belongs to one goroutine.
type Observer struct {
	*model.Watcher
	notices []present.Notice
}

// Seen is the result of one line. Most lines do not concern a team; Seen is zero then.
type Seen struct {
	// TeamToolUse says that the line calls a tool of the team, or has the result of such a call. It
	// is the flag on the original message, which is passed on unchanged.
	TeamToolUse bool
	// Supplements are messages to show beside the original one.
	Supplements []present.Supplement
	// Records are for the team's state and a journal. A record with seq 1 begins a new team.
	Records []*team.Record
	// Notices are the events for consumers that follow from the records.
	Notices []present.Notice
	// Warnings are for a log.
	Warnings []string
}

// New returns an observer that has seen no lines.
func New(options Options) *Observer {
	o := &Observer{}
	o.Watcher = model.New(options, o.recorded)
	return o
}

func (o *Observer) recorded(s *team.State, r *team.Record, session string) {
	o.notices = append(o.notices, present.NoticesOf(s, r, session)...)
}

// Line processes one line of a source, with or without its line break, at its arrival time. It
// neither keeps nor changes the line. A relay passes the line on unchanged, whatever the result.
func (o *Observer) Line(source string, line []byte, now team.Time) Seen {
	return o.seen(o.Watcher.Line(source, line, now))
}

// Gap records that part of a source was lost: a connection was down, a file was truncated. The
// team's state is kept.
func (o *Observer) Gap(source, reason string, now team.Time) Seen {
	return o.seen(o.Watcher.Gap(source, reason, now))
}

// seen adds notices and supplements to a report.
func (o *Observer) seen(r model.Report) Seen {
	s := Seen{TeamToolUse: r.TeamToolUse, Records: r.Records, Notices: o.notices, Warnings: r.Warnings}
	for i := range r.Uses {
		s.Supplements = append(s.Supplements, present.SupplementOf(&r.Uses[i]))
	}
	o.notices = nil
	return s
}

// State returns the team as consumers see it, or nil if there is none.
func (o *Observer) State() *present.TeamState { return present.StateOf(o.Team()) }

// Restore returns an observer with the knowledge that [Observer.Save] saved. newer is the journal's
// state, or nil. It replaces the saved state if it is newer, because the journal is written more
// often. Without saved data, newer is all there is.
func Restore(options Options, saved []byte, newer *team.State) (*Observer, error) {
	o := &Observer{}
	var err error
	if o.Watcher, err = model.Restore(options, o.recorded, saved, newer); err != nil {
		return nil, err
	}
	return o, nil
}

// FromTeamState returns an observer for a team that was kept only as consumers saw it. Seen has the
// records that create the team, for a journal.
func FromTeamState(options Options, t *present.TeamState, now team.Time) (*Observer, Seen) {
	o := &Observer{}
	members, tasks := t.Known()
	return o.known(options, t.Name, t.Role == present.RoleLead, members, tasks, now)
}

// FromAgents returns an observer for a session from an older version, which kept only the names of
// the agents. Its team has no name until one is seen.
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
