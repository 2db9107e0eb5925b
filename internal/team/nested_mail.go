package team

import (
	"encoding/json"
	"slices"
)

// ParentName is the name under which the lead of a nested team has mail with the lead of its parent
// team. No member of a nested team has it.
const ParentName = "parent"

// notParent refuses a member of a nested team whose mail would seem to come from its parent.
func (d *decision) notParent(name string) error {
	if d.team.Parent.Team == "" {
		return nil
	}
	return CheckNotParent(name)
}

// CheckNotParent refuses a name that no member of a nested team can have: its mail would seem to
// come from the parent team.
func CheckNotParent(name string) error {
	if !claims(name, ParentName) {
		return nil
	}
	return refuse(Invalid, "%q cannot be the name of a member of a team in a team: it is the lead of the parent team; "+
		"choose a name that says what it does, such as reviewer", name)
}

// addressee returns what the mail of b to a member, or to the parent team, refers to. It refuses
// mail that nobody would read, and mail between two teams that is not between their leads.
func (d *decision) addressee(b *SendMessage) (ref string, err error) {
	switch to := d.member(b.To); {
	case to == nil && b.To == ParentName && d.team.Parent.Team != "":
		return "", d.writesToParent()
	case to == nil:
		return "", d.noMember(b.To, d.others())
	case !to.Status.Running():
		return "", Refuse(NotFound, "%s has %s and gets no more mail; valid names: %s", b.To, ended(to.Status),
			names(d.others())).With(d.team.hint(ActShowTeam))
	case b.To == d.Actor:
		return "", refuse(Invalid, "%s cannot write to itself; valid names: %s", b.To, names(d.others()))
	case to.IsTeam():
		return d.writesToTeam(to)
	}
	return "", nil
}

// writesToParent refuses mail to the parent team that is not from the lead of this one.
func (d *decision) writesToParent() error {
	p := d.team.Parent
	switch d.Actor {
	case d.team.Lead:
		return nil
	case User:
		return Refuse(Denied, "only %s writes to the lead of team %s from here; write to a member of team %s there",
			d.team.Lead, p.Name, p.Name).With(Hint{Action: ActShowTeam, Team: p.Name})
	}
	return Refuse(Denied, "only %s writes to the lead of team %s; tell %s what it should write", d.team.Lead, p.Name,
		d.team.Lead).With(Hint{Action: ActAsk, Team: d.team.Name, Member: d.team.Lead})
}

// writesToTeam returns the id of the child team whose lead gets a message to that member, which is
// a team. It refuses mail that is not from the lead or the user, and mail that nobody would read.
func (d *decision) writesToTeam(to *Member) (child string, err error) {
	if d.Actor != User && d.Actor != d.team.Lead {
		return "", Refuse(Denied, "%s is a team of its own, and only %s and the user write to its lead; ask %s", to.Name,
			d.team.Lead, d.team.Lead).With(Hint{Action: ActAsk, Team: d.team.Name, Member: d.team.Lead})
	}
	for _, t := range d.holds(to.Name) {
		c, open := d.ChildOf(t.ID)
		switch {
		case open && c.Lead != "":
			return c.Team, nil
		case open:
			return "", Refuse(Invalid, "%s is a team of its own, and nobody reads mail there: a program leads team %s; say "+
				"what it needs in its task, or write to its members in team %s", to.Name, c.Name, c.Name).
				With(Hint{Action: ActShowTeam, Team: c.Name})
		}
	}
	return "", refuse(NotReady, "%s is a team of its own and does no task now, so nobody reads mail there; say what it "+
		"needs in its task", to.Name)
}

// forChild reports whether the message is for the lead of a child team, which the member runs. Its
// host does not deliver it: the member passes it on.
func (m *Member) forChild(msg *Message) bool { return m.IsTeam() && msg.Type == TypeMessage }

// MailToChild returns the messages for the lead of the child team that were not passed on yet, in
// order.
func (s *State) MailToChild(child string) (mail []Message) {
	for _, c := range s.team.Children {
		m := s.member(c.Member)
		if c.Team != child || m == nil {
			continue
		}
		for _, seq := range m.Inbox {
			if msg := s.messages[seq]; msg != nil && m.forChild(msg) && msg.Ref == child && !s.held(msg) {
				mail = append(mail, *msg)
			}
		}
	}
	return mail
}

// MailToParent returns the messages to the lead of the parent team that were not passed on yet, in
// order.
func (s *State) MailToParent() (mail []Message) {
	for _, seq := range s.team.Outbox {
		if msg := s.messages[seq]; msg != nil {
			mail = append(mail, *msg)
		}
	}
	return mail
}

// HearParent gives a message of the parent team's lead to the lead of this one. A message that was
// given before changes nothing, so it can be sent again after any interruption.
type HearParent struct{ Message Message }

func (b *HearParent) decide(d *decision) error {
	switch {
	case d.team.Parent.Team == "":
		return refuse(Invalid, "team %s is not nested and has no parent that writes to it", d.team.Name)
	case d.Actor != User && !d.isHost():
		return refuse(Denied, "only the host of team %s passes on its mail", d.team.Parent.Name)
	case b.Message.Seq <= d.team.Parent.Heard:
		return nil
	case !d.lead().Status.Running():
		return refuse(NotReady, "the lead of team %s does not run", d.team.Name)
	}
	d.emit(&ParentHeard{Seq: b.Message.Seq})
	d.post(b.Message.passedOn(ParentName, d.team.Lead))
	return nil
}

// HearChild gives a message of a child team's lead to the lead of this one, as mail of the member
// that runs the child team. A message that was given before changes nothing.
type HearChild struct {
	Team    string // id of the child team
	Message Message
}

func (b *HearChild) decide(d *decision) error {
	c, err := d.ownChild(b.Team)
	if err != nil || b.Message.Seq <= c.Heard {
		return err
	}
	d.emit(&ChildReported{Team: c.Team, Usage: c.Usage, Heard: b.Message.Seq})
	d.post(b.Message.passedOn(c.Member, d.team.Lead))
	return nil
}

// PassedToParent records that the messages to the parent team's lead, up to that number, were
// passed on. A team that has ended accepts it.
type PassedToParent struct{ Through int64 }

func (*PassedToParent) readsMail() {}

func (b *PassedToParent) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "only the host of team %s passes on its mail", d.team.Parent.Name)
	}
	if len(d.team.Outbox) > 0 && d.team.Outbox[0] <= b.Through {
		d.emit(&MailPassedOn{Through: b.Through})
	}
	return nil
}

// passedOn returns the message as it reaches the other team.
func (m *Message) passedOn(from, to string) Message {
	return Message{From: from, To: to, Type: TypeMessage, Intent: m.Intent, Priority: orNormal(m.Priority), Body: m.Body,
		Metadata: merged(map[string]json.RawMessage(nil), m.Metadata)}
}

// returnToSenders returns the mail for child teams that ended before it was passed on.
func (d *decision) returnToSenders() {
	if len(d.team.Children) == 0 {
		return
	}
	for _, e := range d.events {
		for i := range d.team.Children {
			if c := &d.team.Children[i]; !c.Over && endsChild(e, c) {
				d.returnFromChild(c)
			}
		}
	}
}

// endsChild reports whether nothing more is expected of the child team after the event.
func endsChild(e Event, c *Child) bool {
	switch e := e.(type) {
	case *ChildEnded:
		return e.Team == c.Team
	case *TaskCompleted:
		return e.Task == c.Task
	case *TaskDeleted:
		return e.Task == c.Task
	case *TaskSubmitted:
		return e.Task == c.Task
	case *TaskSkipped:
		return e.Task == c.Task
	case *TaskRejected:
		return e.Task == c.Task
	case *TaskRolledBack:
		return e.Task == c.Task
	}
	return false
}

// returnFromChild returns the mail for the lead of the child team, which has ended.
func (d *decision) returnFromChild(c *Child) {
	m := d.member(c.Member)
	if m == nil || !m.Status.Running() || d.ending[m.Name] {
		return // all its mail is returned
	}
	var seqs []int64
	for _, seq := range m.Inbox {
		if msg := d.messages[seq]; msg != nil && m.forChild(msg) && msg.Ref == c.Team {
			seqs = append(seqs, seq)
		}
	}
	d.returns(m, seqs, "has finished task "+d.Called(c.Task)+" and team "+c.Name+" has ended")
}

// The events of mail between the leads of nested teams.
type (
	// ParentHeard says which message of the parent team the next message is.
	ParentHeard struct{ Seq int64 }
	// MailPassedOn says that the messages to the parent team up to that number were passed on.
	MailPassedOn struct{ Through int64 }
)

// Kind returns the event's name in the journal.
func (*ParentHeard) Kind() string { return "parent_heard" }

// Kind returns the event's name in the journal.
func (*MailPassedOn) Kind() string { return "mail_passed_on" }

func (e *ParentHeard) fields(c *coder)  { c.int("seq", &e.Seq) }
func (e *MailPassedOn) fields(c *coder) { c.int("through", &e.Through) }

func (e *ParentHeard) apply(s *State, _ *Record) {
	s.team.Parent.Heard, s.team.Parent.Asked = max(s.team.Parent.Heard, e.Seq), 0
}

func (e *MailPassedOn) apply(s *State, _ *Record) {
	n := 0
	for n < len(s.team.Outbox) && s.team.Outbox[n] <= e.Through {
		n++
	}
	s.unwait(s.team.Outbox[:n])
	s.team.Outbox = slices.Clone(s.team.Outbox[n:])
}
