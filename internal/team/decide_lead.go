package team

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// RunSession begins the id of the session with which a run of a team file or a goal leads.
const RunSession = "run-"

// Timing says how long silence lasts before the team acts on it. 0 is the default.
type Timing struct {
	Beat        time.Duration // between two heartbeats of a member; 0 for 30 s
	Offline     time.Duration // silence after which a member is offline; 0 for 10 min
	LeadLost    time.Duration // silence after which the lead is lost; 0 for 5 min
	Zombie      time.Duration // how long a teammate works without a lead; 0 for 30 min
	Blocked     time.Duration // how long a blocked teammate keeps its task without a lead; 0 for 10 min
	Undelivered time.Duration // wait of a message before the lead is notified; 0 for 5 min
	Stale       time.Duration // silence after which another session may take the lead; 0 for 30 min
	// between two checkpoints of a team, or two saves of a teammate's work without a lead; 0 for 30
	// s
	Checkpoint time.Duration
}

// OrDefaults returns the timing with defaults for the fields that are 0.
func (t Timing) OrDefaults() Timing {
	return Timing{
		Beat:        cmp.Or(t.Beat, 30*time.Second),
		Offline:     cmp.Or(t.Offline, 10*time.Minute),
		LeadLost:    cmp.Or(t.LeadLost, 5*time.Minute),
		Zombie:      cmp.Or(t.Zombie, 30*time.Minute),
		Blocked:     cmp.Or(t.Blocked, 10*time.Minute),
		Undelivered: cmp.Or(t.Undelivered, 5*time.Minute),
		Stale:       cmp.Or(t.Stale, 30*time.Minute),
		Checkpoint:  cmp.Or(t.Checkpoint, 30*time.Second),
	}
}

func (t Timing) check() error {
	if min(t.Beat, t.Offline, t.LeadLost, t.Zombie, t.Blocked, t.Undelivered, t.Stale, t.Checkpoint) < 0 {
		return refuse(Invalid, "a period cannot be negative; 0 is for the default")
	}
	full := t.OrDefaults() // rounded to the units that are recorded
	beat := wholeUnits(full.Beat, time.Millisecond)
	if silence := wholeUnits(min(full.LeadLost, full.Offline), time.Millisecond); silence <= beat {
		return refuse(Invalid, "a member that sends a heartbeat every %s cannot count as lost after %s; "+
			"the periods of silence must be longer", Span(multiple(beat, time.Millisecond)),
			Span(multiple(silence, time.Millisecond)))
	}
	return nil
}

// Fact is a file that all members rely on.
type Fact struct {
	Name   string `json:"name,omitempty"`   // what members call it
	Path   string `json:"path,omitempty"`   // absolute, or relative to the team's directory
	SHA256 string `json:"sha256,omitempty"` // SHA-256 of its content, in hex; "" if the file does not exist
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
			return refuse(Invalid, "%q is not a plain path", brief(f.Path))
		}
		if err := limit(text{"name of the fact", f.Name, MaxSubject}, text{"path of the fact", f.Path, MaxSubject},
			text{"checksum", f.SHA256, MaxSubject}); err != nil {
			return err
		}
		seen = append(seen, f.Name)
	}
	return nil
}

// RecordFacts records the facts as they are now.
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

// AttachLead takes the lead for a session. It takes the lead from another session only when that
// one has been silent for [Timing].Stale, or at the user's order.
type AttachLead struct {
	// globally unique, or [User]. The user leads by commands, is never lost, and gives way to any
	// session of theirs
	Session string
	// From is the session that leads, as far as the sender knows. A session can take the lead only
	// from the session that it looked at. From may be "" where no session leads, or with TakeOver.
	// A session that names itself resumes a lead that it lost.
	From string
	// Machine is the name of the session's computer; "" where it is unknown.
	Machine string
	// Agent says that the session belongs to an agent. It is notified of things that a person would
	// see.
	Agent bool
	// Left says that From gives up the lead itself.
	Left bool
	// Seen is the last heartbeat of From; 0 where From is known to have ended. Its age decides.
	Seen Time
	// Since is when From took the lead, or came back, as far as the sender knows. Heartbeats from
	// before that do not count.
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
	e := &LeadAttached{Session: b.Session, Machine: b.Machine, Agent: b.Agent && b.Session != User, From: now}
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
		silent := d.At.Sub(b.Seen)
		if b.From == "" {
			silent = 0 // the heartbeat is unknown
		} else if b.Since != d.team.LeadSince {
			return refuse(Conflict, "session %s has sent a heartbeat since", brief(now))
		}
		if stale := d.team.Timing.OrDefaults().Stale; silent < stale {
			return Refuse(Conflict, "another session has the lead: session %s leads team %s "+
				"and was seen %s ago; its lead expires after %s without a heartbeat", brief(now), d.team.Name,
				Span(silent), Span(stale)).With(d.team.hint(ActTakeOver))
		}
		e.TakenOver = now
	}
	if e.TakenOver != "" {
		e.From = ""
	}
	back := d.team.LeadLost != 0
	d.emit(e)
	if back {
		for i := range d.members[1:] {
			d.hint(d.members[i+1].Name, "The lead is back. Continue your task.")
		}
	}
	return nil
}

// LoseLead records that no session leads, because the last one has been silent for too long. A host
// sends it, or any process that finds that out.
type LoseLead struct {
	Session string // that leads, as far as the sender knows
	Since   Time   // when it took the lead, or came back, as far as the sender knows
	Seen    Time   // its last heartbeat
}

func (b *LoseLead) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "a host finds out that the lead is lost")
	}
	switch t := &d.team; {
	case t.LeadLost != 0 || t.LeadSession == "" ||
		t.LeadSession == User: // the user sends no heartbeats, and is never lost
		return nil
	case t.LeadSession != b.Session:
		return refuse(Conflict, "session %s leads, not %s", brief(t.LeadSession), brief(b.Session))
	case t.LeadSince != b.Since: // the heartbeat is from before it came back
		return refuse(Conflict, "session %s has sent a heartbeat since", brief(t.LeadSession))
	case d.At.Sub(b.Seen) < t.Timing.OrDefaults().LeadLost:
		return refuse(NotReady, "the lead was seen %s ago", Span(d.At.Sub(b.Seen)))
	}
	d.emit(&LeadLost{Session: b.Session, Seen: b.Seen})
	return nil
}

// Zombie reports whether the member works without a lead: it keeps its task and gets nothing new.
func (s *State) Zombie(member string) bool {
	m := s.member(member)
	return m != nil && s.orphaned(m) && m.Status != Spawning
}

// orphaned reports whether the member is a running teammate without a lead.
func (s *State) orphaned(m *Member) bool {
	return s.team.LeadLost != 0 && m.Name != s.team.Lead && m.Status.Running()
}

// held reports whether the message waits for a lead. Messages of the user and the lead never wait.
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

// ledByAgent reports whether an agent leads, in a session of ours or its own. An agent must be
// notified; a person looks at the list. While an agent's session is away, its mail waits for the
// next one.
func (s *State) ledByAgent() bool { return s.lead().Agent != External || s.team.LeadAgent }

func (e *LeadLost) apply(s *State, r *Record) {
	if s.team.LeadLost == 0 {
		s.team.LeadLost, s.team.HeldAfter = max(r.At, 1), s.messageSeq
	}
}

func (e *FactsRecorded) apply(s *State, _ *Record) { s.team.Facts = e.Facts }

// Saved is a member's unfinished work on a task, saved when the member could not continue.
type Saved struct {
	Member string // who did the work
	Commit string // last commit before its uncommitted changes
	Diff   string // uncommitted changes, as a patch against the commit
	Note   string // what the diff lacks, and where it is
	Output string // last output of the member or its command
	At     Time   // when it was saved
}

// Limits of the work that is saved with a task, in bytes.
const (
	MaxDiff   = 64 << 10
	MaxOutput = 8 << 10
)

// SaveWork saves a member's unfinished work on a task for the member that continues it. Texts that
// are too long are shortened.
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
		return Refuse(Conflict, "%s is completed", t.label()).With(t.Hint(&d.team, ActShowTask))
	case t.Status == InProgress && t.Owner != b.Saved.Member: // the present owner's work is newer
		return refuse(Conflict, "%s holds %s now", t.Owner, t.label())
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
	c.str("from", &e.From)
}

func (e *LeadLost) fields(c *coder) {
	c.str("session", &e.Session)
	c.int("seen", (*int64)(&e.Seen))
}
