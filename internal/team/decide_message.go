package team

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SendMessage sends a message to one member.
type SendMessage struct {
	To       string
	Intent   string // info, question, challenge, resolution, or ""
	Priority string // normal, urgent, or "" for normal
	Body     string
}

// Broadcast sends one message to everybody but the sender.
type Broadcast struct {
	Intent   string
	Priority string
	Body     string
}

var intents = []string{"", "info", "question", "challenge", "resolution"}

func checkMessage(d *decision, intent, priority, body string) error {
	if err := limit(text{"message", body, MaxText}); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(d.Actor, hostPrefix):
		return refuse(Denied, "a host sends no messages of its own")
	case strings.TrimSpace(body) == "":
		return refuse(Invalid, "the message is empty")
	case !slices.Contains(intents, intent):
		return refuse(Invalid, "%q is no intent; it is one of: %s", intent, strings.Join(intents[1:], ", "))
	case priority != "" && priority != "normal" && priority != "urgent":
		return refuse(Invalid, "%q is no priority of a message; it is normal or urgent", priority)
	}
	return nil
}

func (b *SendMessage) decide(d *decision) error {
	if err := checkMessage(d, b.Intent, b.Priority, b.Body); err != nil {
		return err
	}
	to := d.member(b.To)
	switch {
	case to == nil:
		return refuse(NotFound, "no member named %q in team %s; valid names: %s", clipTo(b.To, 80), d.team.Name, names(d.others()))
	case !to.Status.Running():
		return refuse(NotFound, "%s has %s and gets no more mail; valid names: %s", b.To, ended(to.Status), names(d.others()))
	case b.To == d.Actor:
		return refuse(Invalid, "%s cannot write to itself; valid names: %s", b.To, names(d.others()))
	}
	d.post(Message{From: d.Actor, To: b.To, Type: TypeMessage, Intent: b.Intent, Priority: orNormal(b.Priority), Body: b.Body})
	return nil
}

func (b *Broadcast) decide(d *decision) error {
	if err := checkMessage(d, b.Intent, b.Priority, b.Body); err != nil {
		return err
	}
	to := d.others()
	if len(to) == 0 {
		return refuse(NotReady, "there is nobody else in team %s yet", d.team.Name)
	}
	d.post(Message{From: d.Actor, To: "*", Recipients: to, Type: TypeBroadcast, Intent: b.Intent, Priority: orNormal(b.Priority), Body: b.Body})
	return nil
}

// others returns whom the actor can write to.
func (d *decision) others() []string {
	return slices.DeleteFunc(d.Recipients(), func(n string) bool { return n == d.Actor })
}

func orNormal(priority string) string {
	if priority == "" {
		return "normal"
	}
	return priority
}

// ReceiveMessages gives a member its undelivered messages, in order, and records that it has them: what the record says was delivered is the answer.
type ReceiveMessages struct {
	Member string  // "" for the actor
	Max    int     // 0 for all
	Seqs   []int64 // only these, and all of them; nil for any
}

// mailReading marks what a finished team still takes: reading what was sent before.
type mailReading interface{ readsMail() }

func (*ReceiveMessages) readsMail() {}
func (*MarkRead) readsMail()        {}

func (b *ReceiveMessages) decide(d *decision) error {
	m, err := d.reader(b.Member)
	if err != nil {
		return err
	}
	seqs := m.Inbox
	if b.Seqs != nil {
		for _, seq := range b.Seqs {
			if !slices.Contains(m.Inbox, seq) {
				return refuse(Conflict, "message %d was delivered to %s already", seq, m.Name)
			}
		}
		seqs = b.Seqs
	}
	if b.Max > 0 && len(seqs) > b.Max {
		seqs = seqs[:b.Max]
	}
	if len(seqs) > 0 {
		d.emit(&MessagesDelivered{Member: m.Name, Seqs: slices.Clone(seqs)})
	}
	return nil
}

// reader returns the member whose mail the actor may take: its own, or, for the user and the host, that of the member named.
func (d *decision) reader(name string) (*Member, error) {
	if name == "" || name == d.Actor {
		if d.actor == nil {
			return nil, refuse(Invalid, "say whose mail it is")
		}
		return d.actor, nil
	}
	if d.Actor == User {
		return d.known(name)
	}
	return d.hosted(name)
}

// MarkRead records that a member has read everything that it was given up to the message Through.
type MarkRead struct {
	Member  string // "" for the actor
	Through int64
}

func (b *MarkRead) decide(d *decision) error {
	m, err := d.reader(b.Member)
	if err != nil {
		return err
	}
	if b.Through > m.DeliveredSeq {
		return refuse(Invalid, "%s was given messages up to %d; it cannot have read up to %d", m.Name, m.DeliveredSeq, b.Through)
	}
	if b.Through > m.ReadSeq {
		d.emit(&MessagesRead{Member: m.Name, Through: b.Through})
	}
	return nil
}

// returnMail sends the mail of a member that will never get it back to its senders, one message for each of them.
func (d *decision) returnMail(m *Member, why string) {
	if len(m.Inbox) == 0 {
		return
	}
	d.emit(&MessagesReturned{Member: m.Name, Seqs: slices.Clone(m.Inbox)})
	var senders []string
	bodies := map[string][]string{}
	for _, seq := range m.Inbox {
		msg := d.messages[seq]
		if msg == nil || msg.From == "" || msg.From == User {
			continue
		}
		from := msg.From
		if s := d.member(from); s == nil || !s.Status.Running() || from == m.Name || d.ending[from] {
			from = d.team.Lead
		}
		if len(bodies[from]) == 0 {
			senders = append(senders, from)
		}
		bodies[from] = append(bodies[from], "#"+strconv.FormatInt(seq, 10)+": "+excerpt(msg.Body))
	}
	for _, from := range senders {
		d.tell(from, TypeSystem, "", "Not delivered, because %s %s:\n%s", m.Name, why, strings.Join(bodies[from], "\n"))
	}
}

// excerpt is enough of a returned message to know it by; the journal has it whole.
func excerpt(body string) string {
	const most = 4 << 10
	if len(body) <= most {
		return body
	}
	cut := most
	for !utf8.RuneStart(body[cut]) {
		cut--
	}
	return body[:cut] + "…"
}
