package team

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// AppendCheckpoint appends what a checkpoint keeps of the state, one JSON object without a line break, to buf: a snapshot without the ids of
// commands and the places of messages, which mean nothing to another journal, and without the tasks that are completed or deleted. Those change no more, nearly, and are kept apart, so that
// a checkpoint does not grow with what is done.
func AppendCheckpoint(buf []byte, s *State) []byte {
	kept := *s
	kept.recent, kept.lastMail = recent{}, nil
	kept.tasks = nil
	for i := range s.tasks {
		if s.tasks[i].Status.open() {
			kept.tasks = append(kept.tasks, s.tasks[i])
		}
	}
	return encode(&kept, false, buf)
}

// DecodeCheckpoint reads the state of a team after the record seq, from what [AppendCheckpoint] wrote and the closed tasks, each as one JSON
// object; of several of one id the last counts. The state keeps the texts, which must not change afterwards.
func DecodeCheckpoint(seq int64, data string, closed []string) (*State, error) {
	s := &State{seq: seq}
	if err := decode(s, data); err != nil {
		return nil, err
	}
	all := slices.Clone(s.tasks)
	open := make(map[string]bool, len(all))
	for i := range all {
		open[all[i].ID] = true
	}
	last := map[string]int{}
	for _, text := range closed {
		var t Task
		if err := decode(&t, text); err != nil {
			return nil, fmt.Errorf("a task: %w", err)
		}
		if open[t.ID] { // it was closed, and is open again
			continue
		}
		if i, again := last[t.ID]; again {
			all[i] = t
			continue
		}
		last[t.ID] = len(all)
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Task) int { return taskIndex(a.ID) - taskIndex(b.ID) })
	for i := range all {
		if taskIndex(all[i].ID) != i {
			return nil, fmt.Errorf("task %d is missing", i+1)
		}
	}
	s.tasks = all
	if err := s.derive(); err != nil {
		return nil, err
	}
	return s, s.whole()
}

// whole checks that what things name is there: a snapshot that is wrong is made again from the history, a checkpoint is all there is.
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

// leap is how far what is counted is moved on when a team is restored. What happened after the checkpoint is lost, but sessions
// may remember it: a message that was sent then must not be taken for a new one of the same number, nor an old claim for a new one.
// What an external member has in hand stays as it is, because it may go on under the number that it knows.
const leap = 1000

// RestoreTeam founds a journal anew from a checkpoint, because the one that the team had is lost. With its journal its hosts are gone: all
// sessions end as when their host dies.
type RestoreTeam struct {
	From *State // as [DecodeCheckpoint] gives it; it is not changed
	Dir  string // where the members work from now on; "" for where they did
}

func (b *RestoreTeam) decide(d *decision) error {
	switch {
	case d.Actor != User:
		return refuse(Denied, "only the user restores a team")
	case d.team.ID != "":
		return refuse(Taken, "there is a team named %s already; what it has is newer than any checkpoint: cadre resume %s", d.team.Name, d.team.Name)
	case b.From == nil || b.From.team.ID == "":
		return refuse(Invalid, "the checkpoint holds no team")
	case b.From.team.CleanedUp:
		return refuse(Finished, "team %s was cleaned up", b.From.team.Name)
	case b.Dir != "" && (!strings.HasPrefix(b.Dir, "/") || path.Clean(b.Dir) != b.Dir):
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
	e := &TeamRestored{Team: s.team, Members: slices.Clone(s.members), MessageSeq: s.messageSeq + leap, RequestSeq: s.requestSeq + leap,
		Permissions: slices.Clone(s.permissions), Strikes: s.strikeList(), Tasks: slices.Clone(s.tasks)}
	e.Team.LeadSession, e.Team.LeadMachine, e.Team.LeadSince, e.Team.LeadLost, e.Team.HeldAfter = "", "", 0, 0, 0 // who led went with the history
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
	s := &State{team: e.Team, members: slices.Clone(e.Members), tasks: slices.Clone(e.Tasks), messages: make(map[int64]*Message, len(e.Messages)),
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
