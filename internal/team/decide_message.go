package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SendMessage sends a message to one member.
type SendMessage struct {
	To       string
	Intent   string // info, question, challenge, resolution, or ""
	Priority string // normal, urgent, or "" for normal
	Body     string
	Metadata map[string]json.RawMessage
	// the number of a message from To that waits in the lead's inbox, which this one answers; 0 for
	// none. It counts as delivered then.
	Answers int64
}

// Broadcast sends one message to all members but the sender. Where the user leads, a broadcast of
// the user does not go to the lead.
type Broadcast struct {
	Intent   string
	Priority string
	Body     string
	Metadata map[string]json.RawMessage
}

var intents = []string{"", "info", "question", "challenge", "resolution"}

func checkMessage(d *decision, intent, priority, body string) error {
	if err := limit(text{"message", body, MaxText}); err != nil {
		return err
	}
	switch {
	case d.isHost():
		return refuse(Denied, "a host sends no messages of its own")
	case strings.TrimSpace(body) == "":
		return refuse(Invalid, "the message is empty")
	case !slices.Contains(intents, intent):
		return refuse(Invalid, "%q is not an intent; use one of: %s", brief(intent), strings.Join(intents[1:], ", "))
	case priority != "" && priority != "normal" && priority != "urgent":
		return refuse(Invalid, "%q is not a priority of a message; use normal or urgent", brief(priority))
	}
	return nil
}

func (b *SendMessage) decide(d *decision) error {
	if err := checkMessage(d, b.Intent, b.Priority, b.Body); err != nil {
		return err
	}
	ref, err := d.addressee(b)
	if err != nil {
		return err
	}
	meta, err := metadata(nil, b.Metadata)
	if err != nil {
		return err
	}
	if err := d.answers(b); err != nil {
		return err
	}
	d.post(Message{From: d.Actor, To: b.To, Type: TypeMessage, Ref: ref, Intent: b.Intent,
		Priority: orNormal(b.Priority), Body: b.Body, Metadata: merged(nil, meta)})
	return nil
}

// answers delivers the message that b answers. Only the first answer counts.
func (d *decision) answers(b *SendMessage) error {
	if b.Answers == 0 {
		return nil
	}
	if err := d.leads("answer messages to the lead"); err != nil {
		return err
	}
	question := d.messages[b.Answers]
	if _, waits := slices.BinarySearch(d.lead().Inbox, b.Answers); !waits || question == nil || question.From != b.To {
		return refuse(Conflict, "message #%d of %s needs no answer: it was read or answered already", b.Answers,
			b.To)
	}
	d.emit(&MessagesDelivered{Member: d.team.Lead, Seqs: []int64{b.Answers}})
	return nil
}

func (b *Broadcast) decide(d *decision) error {
	if err := checkMessage(d, b.Intent, b.Priority, b.Body); err != nil {
		return err
	}
	to := d.others()
	if d.Actor == User && d.lead().Agent == External && !d.ledBySession() { // the lead's inbox is the user's own
		to = slices.DeleteFunc(to, func(n string) bool { return n == d.team.Lead })
	}
	if len(to) == 0 {
		return refuse(NotReady, "team %s has no other member yet", d.team.Name)
	}
	meta, err := metadata(nil, b.Metadata)
	if err != nil {
		return err
	}
	d.post(Message{From: d.Actor, To: "*", Recipients: to, Type: TypeBroadcast, Intent: b.Intent,
		Priority: orNormal(b.Priority), Body: b.Body, Metadata: merged(nil, meta)})
	return nil
}

// others returns the members that the actor can send to.
func (d *decision) others() []string {
	return slices.DeleteFunc(d.Recipients(), func(n string) bool { return n == d.Actor || d.member(n).IsTeam() })
}

func orNormal(priority string) string {
	if priority == "" {
		return "normal"
	}
	return priority
}

// ReceiveMessages delivers waiting messages to a member, in order, and records that. The record is
// the answer: it lists the messages that were delivered.
type ReceiveMessages struct {
	Member string  // "" for the actor
	Max    int     // 0 for all
	Seqs   []int64 // only these, and all of them; nil for any
}

// mailReading marks the commands that a finished team still accepts: they read earlier messages.
type mailReading interface{ readsMail() }

func (*ReceiveMessages) readsMail() {}
func (*MarkRead) readsMail()        {}

func (b *ReceiveMessages) decide(d *decision) error {
	m, err := d.reader(b.Member)
	if err != nil {
		return err
	}
	if b.Max < 0 {
		return refuse(Invalid, "the limit of messages cannot be %d; 0 is for all", b.Max)
	}
	seqs := d.ripe(m)
	if b.Seqs != nil {
		seqs = slices.Compact(slices.Sorted(slices.Values(b.Seqs))) // in order, each once
		for _, seq := range seqs {
			if _, waits := slices.BinarySearch(m.Inbox, seq); !waits {
				return refuse(Conflict,
					"message %d does not wait for %s: it was delivered already, or never sent to it", seq, m.Name)
			}
		}
	}
	if b.Max > 0 && len(seqs) > b.Max {
		seqs = seqs[:b.Max]
	}
	if len(seqs) > 0 {
		d.emit(&MessagesDelivered{Member: m.Name, Seqs: slices.Clone(seqs)})
	}
	return nil
}

// ripe returns the messages in the inbox of m that do not wait for a lead, here or in a child team.
func (s *State) ripe(m *Member) []int64 {
	if s.team.LeadLost == 0 && !m.IsTeam() {
		return m.Inbox
	}
	var seqs []int64
	for _, seq := range m.Inbox {
		if msg := s.messages[seq]; msg != nil && !s.held(msg) && !m.forChild(msg) {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// reader returns the member whose mail the actor may take: the actor, or the named member where the
// user or a host asks.
func (d *decision) reader(name string) (*Member, error) {
	if d.Actor == User && name != "" {
		return d.known(name)
	}
	return d.self(name)
}

// MarkRead records that a member has read all delivered messages up to Through.
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
		return refuse(Invalid, "%s received messages up to %d; it cannot have read up to %d", m.Name,
			m.DeliveredSeq, b.Through)
	}
	if b.Through > m.ReadSeq {
		d.emit(&MessagesRead{Member: m.Name, Through: b.Through})
	}
	return nil
}

// returnMail returns the mail of a member that will never read it.
func (d *decision) returnMail(m *Member, why string) { d.returns(m, m.Inbox, why) }

// returns returns these messages to m. Each sender gets one message. If a sender cannot receive it,
// the lead does. After a kill nobody knows here whether the last messages to a team were passed on.
func (d *decision) returns(m *Member, seqs []int64, why string) {
	if len(seqs) == 0 {
		return
	}
	d.emit(&MessagesReturned{Member: m.Name, Seqs: slices.Clone(seqs)})
	var to []string
	texts := map[string]*strings.Builder{}
	more := map[string]int{}
	for _, seq := range seqs {
		msg := d.messages[seq]
		// messages of the team or of a request about this member no longer matter
		if msg == nil || msg.Type != TypeMessage && msg.Type != TypeBroadcast {
			continue
		}
		name := msg.From
		if s := d.member(name); s == nil || !s.Status.Running() || d.ending[name] {
			name = d.team.Lead
		}
		if texts[name] == nil {
			texts[name] = &strings.Builder{}
			to = append(to, name)
		}
		if text := texts[name]; text.Len() < MaxText/2 {
			// the journal has the whole text
			fmt.Fprintf(text, "\n#%d from %s:%s", seq, msg.From, cited(clipTo(msg.Body, MaxSubject)))
		} else {
			more[name]++
		}
	}
	not := "Not delivered"
	if m.IsTeam() {
		not = "Perhaps not delivered"
	}
	for _, name := range to {
		if n := more[name]; n > 0 {
			fmt.Fprintf(texts[name], "\nand %d more", n)
		}
		d.tell(name, "", "%s, because %s %s:%s", not, m.Name, why, texts[name])
	}
}
