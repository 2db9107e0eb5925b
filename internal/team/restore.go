package team

import (
	"errors"
	"fmt"
	"slices"
)

// Kept is what a checkpoint keeps of a state, in pieces of one JSON object each: what changes often
// apart from what seldom does. The ids of commands and the places of messages, which mean nothing
// to another journal, are not in it, nor are the tasks that are completed or deleted: those change
// no more, nearly, and are kept by whoever makes checkpoints, so that none grows with what is done.
type Kept struct {
	Team     string   // the state without what follows
	Base     string   // what the project was
	Members  []string // in the order in which they joined
	Messages []Piece  // that somebody has not been given yet, in order
	Tasks    []Piece  // that are open, in order
}

// Piece is one of many, by its number.
type Piece struct {
	N    int64
	JSON string
}

// Keep returns what a checkpoint keeps of the state.
func Keep(s *State) Kept {
	rest := *s
	rest.team.Base, rest.recent, rest.lastMail, rest.members, rest.messages, rest.tasks = Base{}, recent{},
		nil, nil, nil, nil
	rest.answers, rest.rejections = nil, nil // they are for whoever is there now
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
	return k
}

// State reads the state of a team after the record seq. Closed are the closed tasks, each as one
// JSON object; of several of one id the last counts. The state keeps the texts.
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
		case !isOpen && !all[i].Status.open(): // one that was closed and is open counts as open
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

// whole checks that what things name is there: a snapshot that is wrong is made again from the
// history, a checkpoint is all there is.
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
		if t.Status == InProgress && s.member(t.Owner) == nil {
			return fmt.Errorf("task %s is in progress by %q, who is no member", t.ID, brief(t.Owner))
		}
	}
	return nil
}

// leap is how far what is counted is moved on when a team is restored. What happened after the
// checkpoint is lost, but sessions may remember it: a message that was sent then must not be taken
// for a new one of the same number, nor an old claim for a new one. What an external member has in
// hand stays as it is, because it may go on under the number that it knows.
const leap = 1000

// RestoreTeam founds a journal anew from a checkpoint, because the one that the team had is lost.
// With its journal its hosts are gone: all sessions end as when their host dies.
type RestoreTeam struct {
	From *State // as [Kept.State] gives it; it is not changed
	Dir  string // where the members work from now on; "" for where they did

	Checks []Check // that are to be what they are here, by their names

	Base    *Base     // what the project is there, without the team's work; nil for what it was
	Missing []Missing // what of the team's work is not there
}

func (b *RestoreTeam) decide(d *decision) error {
	switch {
	case d.Actor != User:
		return refuse(Denied, "only the user restores a team")
	case d.team.ID != "":
		return Refuse(Taken, "there is a team named %s already, and what it has is newer than any checkpoint",
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
	if b.Dir != "" {
		e.Team.Dir = b.Dir
	}
	if b.Base != nil {
		if err := b.Base.check(); err != nil {
			return err
		}
		e.Team.Base = *b.Base
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
	if restored.team.Status == TeamComplete || restored.team.Status == TeamAborted { // its record stays as it is
		return nil
	}
	d.State = restored // what follows is decided on the team as it comes back
	for i := range d.members {
		if m := &d.members[i]; m.Host != "" && m.Status.Running() {
			d.detach(m, "the team was restored from a checkpoint")
		}
	}
	return nil
}

// leapt is the state as an event, with what is counted moved on.
func (s *State) leapt() *TeamRestored {
	e := &TeamRestored{Team: s.team, Members: slices.Clone(s.members), MessageSeq: s.messageSeq + leap,
		RequestSeq:  s.requestSeq + leap,
		Permissions: slices.Clone(s.permissions), Strikes: s.strikeList(), Tasks: slices.Clone(s.tasks)}
	// who led went with the history
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

// state is the one that the event describes. It shares no list that is ever appended to.
func (e *TeamRestored) state() (*State, error) {
	if e.Team.ID == "" {
		return nil, errors.New("it has no id")
	}
	s := &State{team: e.Team, members: slices.Clone(e.Members), tasks: slices.Clone(e.Tasks),
		messages:   make(map[int64]*Message, len(e.Messages)),
		messageSeq: e.MessageSeq, requestSeq: e.RequestSeq, permissions: slices.Clone(e.Permissions)}
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
