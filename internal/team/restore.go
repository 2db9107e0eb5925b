package team

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Kept is the part of a state that a checkpoint keeps, in pieces of one JSON object each, with
// pieces that change often apart from the rest. Ids of commands and places of messages are left
// out, because they mean nothing to another journal. Completed and deleted tasks are left out too:
// they hardly change any more. The maker of checkpoints keeps those by themselves, so that a
// checkpoint does not grow with the finished work.
type Kept struct {
	Team     string   // the state without the fields below
	Base     string   // the project when the team was created
	Members  []string // in the order in which they joined
	Messages []Piece  // not delivered to all recipients yet, in order
	Tasks    []Piece  // open tasks, in order
	Notes    []Piece  // by the numbers of their last changes, in order
}

// Piece is one of many pieces, by its number.
type Piece struct {
	N    int64
	JSON string
}

// Keep returns the part of the state that a checkpoint keeps.
func Keep(s *State) Kept {
	rest := *s
	rest.team.Base, rest.recent, rest.lastMail, rest.members, rest.messages, rest.tasks = Base{}, recent{},
		nil, nil, nil, nil
	rest.notes = nil
	rest.rateLimits = nil                    // its sessions may be in other pools then
	rest.answers, rest.rejections = nil, nil // they mean something only to people who are here now
	text := func(v fielder) string { return string(encode(v, false, nil)) }
	k := Kept{Team: text(&rest), Base: text(&s.team.Base)}
	for i := range s.members {
		k.Members = append(k.Members, text(&s.members[i]))
	}
	for _, seq := range sortedSeqs(s.messages) {
		k.Messages = append(k.Messages, Piece{seq, text(s.messages[seq])})
	}
	for i := range s.tasks {
		if s.tasks[i].Status.open() {
			k.Tasks = append(k.Tasks, Piece{int64(i + 1), text(&s.tasks[i])})
		}
	}
	for _, n := range bySeq(s.notes) {
		k.Notes = append(k.Notes, Piece{n.Seq, text(&n)})
	}
	return k
}

// State reads the state of a team after the record seq. closed has the closed tasks, each as one
// JSON object. If several objects have one id, the last one counts. The state keeps the texts.
func (k Kept) State(seq int64, closed []string) (*State, error) {
	s := &State{seq: seq}
	if err := decode(s, k.Team); err != nil {
		return nil, fmt.Errorf("the team: %w", err)
	}
	if err := decode(&s.team.Base, k.Base); err != nil {
		return nil, fmt.Errorf("what the project was: %w", err)
	}
	s.members, s.messages = make([]Member, len(k.Members)), make(map[int64]*Message, len(k.Messages))
	for i, text := range k.Members {
		if err := decode(&s.members[i], text); err != nil {
			return nil, fmt.Errorf("a member: %w", err)
		}
	}
	for _, p := range k.Messages {
		m := &Message{}
		if err := decode(m, p.JSON); err != nil {
			return nil, fmt.Errorf("a message: %w", err)
		}
		s.messages[m.Seq] = m
	}
	s.notes = make([]Note, len(k.Notes))
	for i, p := range k.Notes {
		if err := decode(&s.notes[i], p.JSON); err != nil {
			return nil, fmt.Errorf("a note: %w", err)
		}
	}
	var err error
	if s.tasks, err = allTasks(k.Tasks, closed); err != nil {
		return nil, err
	}
	if err := s.derive(); err != nil {
		return nil, err
	}
	return s, s.whole()
}

func allTasks(open []Piece, closed []string) ([]Task, error) {
	var all []Task
	at := map[string]int{}
	add := func(text string, isOpen bool) error {
		var t Task
		if err := decode(&t, text); err != nil {
			return fmt.Errorf("a task: %w", err)
		}
		switch i, again := at[t.ID]; {
		case !again:
			at[t.ID] = len(all)
			all = append(all, t)
		case !isOpen && !all[i].Status.open(): // a task that is both closed and open counts as open
			all[i] = t
		}
		return nil
	}
	for _, p := range open {
		if err := add(p.JSON, true); err != nil {
			return nil, err
		}
	}
	for _, text := range closed {
		if err := add(text, false); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Task) int { return taskIndex(a.ID) - taskIndex(b.ID) })
	for i := range all {
		if taskIndex(all[i].ID) != i {
			return nil, fmt.Errorf("task %d is missing", i+1)
		}
	}
	return all, nil
}

// whole checks that everything that is referred to exists. A wrong snapshot can be rebuilt from the
// history, but a checkpoint is all there is.
func (s *State) whole() error {
	for i := range s.members {
		m := &s.members[i]
		if s.named[m.Name] != i {
			return fmt.Errorf("there are two members named %q", brief(m.Name))
		}
		for _, seq := range m.Inbox {
			if s.messages[seq] == nil {
				return fmt.Errorf("message %d to %s is missing", seq, m.Name)
			}
		}
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		for _, id := range slices.Concat(t.BlockedBy, t.Blocks) {
			if s.task(id) == nil {
				return fmt.Errorf("task %s names task %q, which is missing", t.ID, brief(id))
			}
		}
		if t.Submission != nil && slices.ContainsFunc(t.Submission.Tasks, func(id string) bool {
			return s.task(id) == nil
		}) {
			return fmt.Errorf("task %s is verified with tasks that are missing", t.ID)
		}
		if t.Status == InProgress && s.member(t.Owner) == nil {
			return fmt.Errorf("task %s is in progress by %q, which is not a member", t.ID, brief(t.Owner))
		}
	}
	return nil
}

// leap is how far counters jump when a team is restored. What happened after the checkpoint is
// lost, but sessions may remember it. A message that was sent then must not be taken for a new one
// of the same number, nor an old claim for a new one. Claims of an external member do not jump: it
// may continue under the number that it knows.
const leap = 1000

// RestoreTeam begins a journal from a checkpoint, because the team's own journal is lost. Its hosts
// are lost with the journal: all sessions end as if their host had died.
type RestoreTeam struct {
	From *State // from [Kept.State]; never changed
	Dir  string // where the members work from now on; "" for the same directory

	Checks []Check // checks that replace those of the same names

	Base    *Base     // the project there, without the team's work; nil for the old base
	Moved   []Moved   // folders of the teams that it is nested in, the innermost first
	Missing []Missing // work of the team that is missing there
}

func (b *RestoreTeam) decide(d *decision) error {
	switch {
	case d.Actor != User:
		return refuse(Denied, "only the user restores a team")
	case d.team.ID != "":
		return Refuse(Taken, "team %s exists already, and its history is newer than any checkpoint",
			d.team.Name).With(d.team.hint(ActResume))
	case b.From == nil || b.From.team.ID == "":
		return refuse(Invalid, "the checkpoint holds no team")
	case b.From.team.CleanedUp:
		return refuse(Finished, "team %s was cleaned up", b.From.team.Name)
	case b.Dir != "" && !absolute(b.Dir):
		return refuse(Invalid, "the team's directory %q is not an absolute path", brief(b.Dir))
	}
	if err := limit(text{"directory", b.Dir, MaxSubject}); err != nil {
		return err
	}
	e := b.From.leapt()
	e.Team.Restored = Restored{ID: d.ID, From: b.From.team.Restored.ID, Seq: b.From.Position()}
	if err := b.place(e); err != nil {
		return err
	}
	if err := checkMissing(b.Missing); err != nil {
		return err
	}
	e.Team.Missing, e.Team.Released = slices.Clone(b.Missing), Released{}
	e.Team.Checks = slices.Clone(e.Team.Checks)
	for _, c := range b.Checks {
		i := slices.IndexFunc(e.Team.Checks, func(old Check) bool { return old.Name == c.Name })
		if i < 0 {
			return refuse(Invalid, "the team has no check named %q", brief(c.Name))
		}
		e.Team.Checks[i].Command = c.Command
	}
	if err := checkChecks(e.Team.Checks); err != nil {
		return err
	}
	restored, err := e.state()
	if err != nil {
		return refuse(Invalid, "the checkpoint holds no team: %v", err)
	}
	d.emit(e)
	if restored.team.Status == TeamComplete || restored.team.Status == TeamAborted { // its record does not change
		return nil
	}
	d.State = restored // what follows is decided on the restored team
	for i := range d.members {
		if m := &d.members[i]; m.Host != "" && m.Status.Running() {
			d.detach(m, "the team was restored from a checkpoint")
		}
	}
	return nil
}

// place gives the team its directory, the project there, and the paths of its files.
func (b *RestoreTeam) place(e *TeamRestored) error {
	if b.Base != nil {
		if err := b.Base.check(); err != nil {
			return err
		}
		e.Team.Base = *b.Base
	}
	if b.Dir != "" {
		e.Team.Dir = b.Dir
	}
	was := b.From.team
	return e.relocate(was, append([]Moved{{was.Base.Top, e.Team.Base.Top}, {was.Dir, e.Team.Dir}}, b.Moved...))
}

// relocate changes the paths of a team whose folders are elsewhere now.
func (e *TeamRestored) relocate(from Team, all []Moved) error {
	to := func(p string) string { return relocated(p, all...) }
	if e.Team.Report, e.Team.Origin = to(from.Report), to(from.Origin); from.Origin == GoalOrigin+from.Dir {
		e.Team.Origin = GoalOrigin + e.Team.Dir
	}
	e.Team.Facts = slices.Clone(e.Team.Facts)
	for i := range e.Team.Facts {
		e.Team.Facts[i].Path = to(e.Team.Facts[i].Path)
	}
	for i := range e.Members {
		m := &e.Members[i]
		if m.Nested == nil || m.Nested.File == "" {
			continue
		}
		n := *m.Nested
		n.File, m.Nested = to(n.File), &n
		if err := limit(text{"path of the team file of " + m.Name, n.File, MaxSubject}); err != nil {
			return err
		}
	}
	return cmp.Or(limit(text{"path of the team file", e.Team.Origin, MaxSubject}, text{"path of the report",
		e.Team.Report, MaxSubject}), checkFacts(e.Team.Facts))
}

// leapt returns the state as an event, with the counters moved on.
func (s *State) leapt() *TeamRestored {
	e := &TeamRestored{Team: s.team, Members: slices.Clone(s.members), MessageSeq: s.messageSeq + leap,
		Unsent:      s.unsent + leap,
		RequestSeq:  s.requestSeq + leap,
		Permissions: slices.Clone(s.permissions), Strikes: s.strikeList(), Tasks: slices.Clone(s.tasks),
		Notes: slices.Clone(s.notes), NoteEnds: s.noteEnds}
	if s.noteSeq > 0 {
		e.NoteSeq = s.noteSeq + leap
	}
	// the history that is lost says who leads
	e.Team.LeadSession, e.Team.LeadAgent, e.Team.LeadSince, e.Team.LeadLost, e.Team.HeldAfter = "", false, 0, 0, 0
	external := map[string]bool{}
	for i := range e.Members {
		m := &e.Members[i]
		if external[m.Name] = m.Agent == External; !external[m.Name] {
			m.Incarnation += leap
			m.Lease += leap
		}
	}
	for _, seq := range sortedSeqs(s.messages) {
		msg := *s.messages[seq]
		if msg.Incarnation != 0 && !external[msg.To] {
			msg.Incarnation += leap
		}
		e.Messages = append(e.Messages, msg)
	}
	for i := range e.Permissions {
		if p := &e.Permissions[i]; !external[p.Member] {
			p.Incarnation += leap
		}
	}
	for i := range e.Tasks {
		if t := &e.Tasks[i]; t.Status == Pending || t.Status == InProgress && !external[t.Owner] {
			t.Fence += leap
		}
	}
	return e
}

// state returns the state that the event describes. It shares no list that is appended to.
func (e *TeamRestored) state() (*State, error) {
	if e.Team.ID == "" {
		return nil, errors.New("it has no id")
	}
	s := &State{team: e.Team, members: slices.Clone(e.Members), tasks: slices.Clone(e.Tasks),
		messages:   make(map[int64]*Message, len(e.Messages)),
		messageSeq: e.MessageSeq, unsent: e.Unsent, requestSeq: e.RequestSeq, permissions: slices.Clone(e.Permissions),
		notebook: notebook{slices.Clone(e.Notes), e.NoteSeq, e.NoteEnds}}
	for i := range s.members {
		s.members[i].Inbox = slices.Clip(s.members[i].Inbox)
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		t.BlockedBy, t.Blocks = slices.Clip(t.BlockedBy), slices.Clip(t.Blocks)
	}
	for _, msg := range e.Messages {
		msg.waiting = 0
		s.messages[msg.Seq] = &msg
	}
	for _, one := range e.Strikes {
		s.setStrikes(one.Key, one.Count)
	}
	return s, s.derive()
}

func (e *TeamRestored) apply(s *State, _ *Record) {
	if s.team.ID != "" {
		return
	}
	restored, err := e.state()
	if err != nil {
		return
	}
	restored.seq, restored.recent = s.seq, s.recent
	*s = *restored
}
