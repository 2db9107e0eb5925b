package team

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Timing says how long a team waits before it takes silence for a sign, in milliseconds; 0 is for
// the default.
type Timing struct {
	Beat        int64 // between two signs of life of a member; 0 for 30 s
	Offline     int64 // silence after which a member is offline; 0 for 10 min
	LeadLost    int64 // silence after which the lead is lost; 0 for 5 min
	Zombie      int64 // how long a teammate goes on without a lead; 0 for 30 min
	Blocked     int64 // how long a blocked teammate keeps its task without a lead; 0 for 10 min
	Undelivered int64 // how long a message waits before the lead is told of it; 0 for 5 min
	Stale       int64 // silence after which another session may take the lead; 0 for 30 min
	// between two checkpoints of a team in which anything happens, and of a teammate's work without
	// a lead; 0 for 30 s
	Checkpoint int64
}

const second = 1000

// OrDefaults is the timing with the defaults where it says nothing.
func (t Timing) OrDefaults() Timing {
	for _, one := range []struct {
		value *int64
		usual int64
	}{
		{&t.Beat, 30 * second}, {&t.Offline, 600 * second}, {&t.LeadLost, 300 * second}, {&t.Zombie, 1800 * second},
		{&t.Blocked, 600 * second}, {&t.Undelivered, 300 * second}, {&t.Stale, 1800 * second},
		{&t.Checkpoint, 30 * second},
	} {
		if *one.value == 0 {
			*one.value = one.usual
		}
	}
	return t
}

func (t Timing) check() error {
	if min(t.Beat, t.Offline, t.LeadLost, t.Zombie, t.Blocked, t.Undelivered, t.Stale, t.Checkpoint) < 0 {
		return refuse(Invalid, "a period cannot be negative; 0 is for the default")
	}
	if full := t.OrDefaults(); full.LeadLost <= full.Beat || full.Offline <= full.Beat {
		return refuse(Invalid, "a member that gives a sign of life each %d ms cannot be taken for gone after %d ms; "+
			"the periods of silence must be longer",
			full.Beat, min(full.LeadLost, full.Offline))
	}
	return nil
}

// Fact is a file that everybody in the team relies on.
type Fact struct {
	Name   string
	Path   string // absolute, or relative to the team's directory
	SHA256 string // of its content, in hex; "" where there was none
}

func checkFacts(facts []Fact) error {
	var seen []string
	for _, f := range facts {
		switch {
		case f.Name == "" || f.Path == "":
			return refuse(Invalid, "a fact needs a name and the path of its file")
		case slices.Contains(seen, f.Name):
			return refuse(Invalid, "two facts are named %s", brief(f.Name))
		case path.Clean(f.Path) != f.Path:
			return refuse(Invalid, "%q is no plain path", brief(f.Path))
		}
		if err := limit(text{"name of the fact", f.Name, MaxSubject}, text{"path of the fact", f.Path, MaxSubject},
			text{"checksum", f.SHA256, MaxSubject}); err != nil {
			return err
		}
		seen = append(seen, f.Name)
	}
	return nil
}

// RecordFacts takes note of the facts as they are now.
type RecordFacts struct{ Facts []Fact }

func (b *RecordFacts) decide(d *decision) error {
	if err := d.leads("record the facts"); err != nil {
		return err
	}
	if err := checkFacts(b.Facts); err != nil {
		return err
	}
	if !slices.Equal(b.Facts, d.team.Facts) {
		d.emit(&FactsRecorded{Facts: b.Facts})
	}
	return nil
}

// AttachLead takes the lead for a session. It is taken away from another one only when that has
// been silent for [Timing].Stale, or on the user's word.
type AttachLead struct {
	// unique for ever; or [User], who leads by commands, is never lost, and leaves the lead to any
	// session of theirs
	Session string
	// From is the session that leads, so far as the sender knows: nobody takes the lead from
	// another one than the one that it looked at. It may be "" where no session leads, or with
	// TakeOver. A session that names itself takes up what it lost.
	From string
	// Machine is the name of the computer that the session is on; "" for one that nobody knows.
	Machine string
	// Agent says that the session is an agent's own, which is told of what a person sees for
	// themselves.
	Agent bool
	// Left says that From leaves the lead by itself.
	Left bool
	// Seen is the last sign of life of From; 0 where that is known to have ended. Its age is what
	// counts.
	Seen Time
	// Since is when From took the lead, or came back, so far as the sender knows: what was seen
	// before that says nothing.
	Since    Time
	TakeOver bool
}

func (b *AttachLead) decide(d *decision) error {
	if err := d.leads("take the lead"); err != nil {
		return err
	}
	if b.Session == "" {
		return refuse(Invalid, "the session that is to lead has no id")
	}
	if err := limit(text{"id of the session", b.Session, MaxSubject}, text{"name of the machine", b.Machine,
		MaxSubject}); err != nil {
		return err
	}
	now := d.team.LeadSession
	e := &LeadAttached{Session: b.Session, Machine: b.Machine, Agent: b.Agent && b.Session != User}
	switch {
	case b.From != "" && b.From != now:
		return Refuse(Conflict, "session %s does not lead team %s any more", brief(b.From),
			d.team.Name).With(d.team.hint(ActShowAlive))
	case now == b.Session && d.team.LeadLost == 0:
		return nil
	case now == "" || now == b.Session || now == User && d.Actor == User || now == b.From && b.Left:
	case b.TakeOver && d.Actor != User:
		return refuse(Denied, "only the user takes the lead away from another session")
	case b.TakeOver:
		e.TakenOver = now
	default:
		silent := d.At - b.Seen
		if b.From == "" {
			silent = 0 // nobody looked at it
		} else if b.Since != d.team.LeadSince {
			return refuse(Conflict, "session %s has given a sign of life since", brief(now))
		}
		if stale := d.team.Timing.OrDefaults().Stale; silent < Time(stale) {
			return Refuse(Conflict, "Different lead detected. Coordinator override needed. Session %s leads team %s "+
				"and was seen %s ago; it is out of date after %s", brief(now), d.team.Name, span(silent),
				span(Time(stale))).With(d.team.hint(ActTakeOver))
		}
		e.TakenOver = now
	}
	back := d.team.LeadLost != 0
	d.emit(e)
	if back {
		for i := range d.members[1:] {
			d.hint(d.members[i+1].Name, "The lead is back. Go on with your task.")
		}
	}
	return nil
}

// span is a duration for people.
func span(ms Time) string {
	switch s := ms / second; {
	case s < 0:
		return "0 s"
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 120*60:
		return fmt.Sprintf("%d min", s/60)
	default:
		return fmt.Sprintf("%d h", s/3600)
	}
}

// LoseLead records that nobody leads: the session that did has been silent for too long. A host
// sends it, or who else finds that out.
type LoseLead struct {
	Session string // that leads, so far as the sender knows
	Since   Time   // when that took the lead, or came back, so far as the sender knows
	Seen    Time   // its last sign of life
}

func (b *LoseLead) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "a host finds out that the lead is lost")
	}
	switch t := &d.team; {
	case t.LeadLost != 0 || t.LeadSession == "" ||
		t.LeadSession == User: // the user gives no signs of life, and is never lost
		return nil
	case t.LeadSession != b.Session:
		return refuse(Conflict, "session %s leads, not %s", brief(t.LeadSession), brief(b.Session))
	case t.LeadSince != b.Since: // what was seen is of before it came back
		return refuse(Conflict, "session %s has given a sign of life since", brief(t.LeadSession))
	case d.At-b.Seen < Time(t.Timing.OrDefaults().LeadLost):
		return refuse(NotReady, "the lead was seen %s ago", span(d.At-b.Seen))
	}
	d.emit(&LeadLost{Session: b.Session, Seen: b.Seen})
	return nil
}

// Zombie reports whether the member goes on without a lead: with the task that it holds, and
// nothing new.
func (s *State) Zombie(member string) bool {
	m := s.member(member)
	return m != nil && s.orphaned(m) && m.Status != Spawning
}

// orphaned reports whether the running member is a teammate whom nobody leads.
func (s *State) orphaned(m *Member) bool {
	return s.team.LeadLost != 0 && m.Name != s.team.Lead && m.Status.Running()
}

// held reports whether the message waits for a lead. What the user and the lead say never does.
func (s *State) held(msg *Message) bool {
	return s.team.LeadLost != 0 && msg.Seq > s.team.HeldAfter && msg.From != "" && msg.From != User &&
		msg.From != s.team.Lead
}

// Holds reports whether the message of that seq waits for a lead.
func (s *State) Holds(seq int64) bool {
	msg := s.messages[seq]
	return msg != nil && s.held(msg)
}

// HeldMessages returns how many messages wait for a lead.
func (s *State) HeldMessages() (n int) {
	for _, msg := range s.messages {
		if s.held(msg) {
			n++
		}
	}
	return n
}

func (e *LeadAttached) apply(s *State, r *Record) {
	s.team.LeadSession, s.team.LeadMachine, s.team.LeadSince, s.team.LeadLost, s.team.HeldAfter = e.Session,
		e.Machine, r.At, 0, 0
	s.team.LeadAgent = e.Agent
}

// ledByAgent reports whether an agent leads, in a session of ours or of its own. A person looks at
// the list, and an agent has to be told. While the session of an agent is away, its mail waits for
// the next one.
func (s *State) ledByAgent() bool { return s.lead().Agent != External || s.team.LeadAgent }

func (e *LeadLost) apply(s *State, r *Record) {
	if s.team.LeadLost == 0 {
		s.team.LeadLost, s.team.HeldAfter = max(r.At, 1), s.messageSeq
	}
}

func (e *FactsRecorded) apply(s *State, _ *Record) { s.team.Facts = e.Facts }

// Saved is what a member had done of a task when it could not go on with it.
type Saved struct {
	Member string
	Commit string // the last commit below its changes
	Diff   string // of its changes against that
	Note   string // what is not in the diff, and where it is
	Output string // what it said or its command printed last
	At     Time
}

// Limits of what is kept with a task, in bytes.
const (
	MaxDiff   = 64 << 10
	MaxOutput = 8 << 10
)

// SaveWork keeps what a member had done of a task, for whoever goes on with it. What is too long is
// shortened.
type SaveWork struct {
	Task  string
	Saved Saved
}

func (b *SaveWork) decide(d *decision) error {
	if d.leads("") != nil {
		if _, err := d.hosted(b.Saved.Member); err != nil {
			return err
		}
	} else if _, err := d.known(b.Saved.Member); err != nil {
		return err
	}
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	switch {
	case t.Status == Completed:
		return refuse(Conflict, "%s is completed", t.label())
	case t.Status == InProgress && t.Owner != b.Saved.Member: // what that one does of it is newer
		return refuse(Conflict, "%s holds %s by now", t.Owner, t.label())
	}
	if err := limit(text{"commit", b.Saved.Commit, MaxSubject}); err != nil {
		return err
	}
	saved := b.Saved
	saved.Diff, saved.Note, saved.Output = clipTo(saved.Diff, MaxDiff), clipTo(saved.Note, MaxOutput),
		clipTo(saved.Output, MaxOutput)
	if strings.TrimSpace(saved.Diff+saved.Note+saved.Output) == "" || t.Saved != nil && *t.Saved == saved {
		return nil
	}
	d.emit(&WorkSaved{Task: t.ID, Saved: saved})
	return nil
}

func (e *WorkSaved) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) { t.Saved = &e.Saved })
}

func (e *LeadAttached) fields(c *coder) {
	c.str("session", &e.Session)
	c.str("takenOver", &e.TakenOver)
	c.str("machine", &e.Machine)
	c.bool("agent", &e.Agent)
}

func (e *LeadLost) fields(c *coder) {
	c.str("session", &e.Session)
	c.int("seen", (*int64)(&e.Seen))
}
