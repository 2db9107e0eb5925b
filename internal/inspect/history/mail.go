package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	"cadre/internal/team"
)

// MailboxMessage is a message in one member's mailbox.
type MailboxMessage struct {
	team.Message
	DeliveredAt team.Time // when it was last delivered to the member; 0 for not yet
	ReadAt      team.Time // when it was marked as read; 0 for not yet
	ReturnedAt  team.Time // when it was returned to its sender, because the member will never get it; 0 for not
	Task        string    `json:"-"` // the task that it is about, as people call it; "" for none
}

// MarshalJSON writes the message with deliveredAt, readAt and returnedAt. It leaves out those that
// are 0.
func (l MailboxMessage) MarshalJSON() ([]byte, error) {
	message, err := l.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	rest, err := json.Marshal(way{l.DeliveredAt, l.ReadAt, l.ReturnedAt})
	if err != nil || len(rest) == len("{}") {
		return message, err
	}
	return slices.Concat(bytes.TrimSuffix(message, []byte("}")), []byte(","), rest[1:]), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *MailboxMessage) UnmarshalJSON(data []byte) error {
	var w way
	if err := errors.Join(l.Message.UnmarshalJSON(data), json.Unmarshal(data, &w)); err != nil {
		return err
	}
	l.DeliveredAt, l.ReadAt, l.ReturnedAt = w.DeliveredAt, w.ReadAt, w.ReturnedAt
	return nil
}

// way has the fields of a MailboxMessage besides its message.
type way struct {
	DeliveredAt team.Time `json:"deliveredAt,omitempty"`
	ReadAt      team.Time `json:"readAt,omitempty"`
	ReturnedAt  team.Time `json:"returnedAt,omitempty"`
}

// Mail returns every message that was ever sent to the member, the oldest first.
func Mail(source iter.Seq2[*team.Record, error], member string) ([]MailboxMessage, error) {
	b := mailbox{member: member, at: map[int64]int{}}
	for r, err := range source {
		if err != nil {
			return nil, err
		}
		for _, e := range r.Events {
			b.take(e, r.At)
		}
	}
	return b.messages, nil
}

// Messages returns every message that was sent in the team. They do not say when they were
// delivered: a message may have several recipients.
func Messages(source iter.Seq2[*team.Record, error]) (messages []MailboxMessage, err error) {
	for r, err := range source {
		if err != nil {
			return nil, err
		}
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.MessageSent:
				e.Message.SentAt = r.At
				messages = append(messages, MailboxMessage{Message: e.Message})
			case *team.TeamRestored:
				for _, m := range e.Messages {
					messages = append(messages, MailboxMessage{Message: m})
				}
			}
		}
	}
	return messages, nil
}

// MailFilter selects messages. The zero MailFilter selects all of them.
type MailFilter struct {
	Types  []string  // as in [team.Message]; nil for all
	Since  team.Time // when they were sent; 0 for any time
	Unread bool      // only messages that are not marked as read
	Last   int       // only the last of these; 0 for all
}

// Check refuses a type that no message has.
func (f MailFilter) Check() error {
	for _, want := range f.Types {
		if !slices.Contains(team.MessageTypes, want) {
			return team.Refuse(team.Invalid, "no message is of the type %q; the types are %s", want,
				strings.Join(team.MessageTypes, ", "))
		}
	}
	return nil
}

// Select returns the messages that the filter selects.
func (f MailFilter) Select(messages []MailboxMessage) []MailboxMessage {
	selected := []MailboxMessage{}
	for _, l := range messages {
		if l.SentAt >= f.Since && (len(f.Types) == 0 || slices.Contains(f.Types, l.Type)) &&
			!(f.Unread && l.ReadAt != 0) {
			selected = append(selected, l)
		}
	}
	if f.Last > 0 && len(selected) > f.Last {
		selected = selected[len(selected)-f.Last:]
	}
	return selected
}

// mailbox builds one member's mail from the history.
type mailbox struct {
	member   string
	messages []MailboxMessage
	at       map[int64]int // their places, by the number of the message
	read     int           // how many messages were processed at the last mark of reading
	through  int64         // the last message that is marked as read
}

func (b *mailbox) take(e team.Event, at team.Time) {
	switch e := e.(type) {
	case *team.MessageSent:
		b.add(e.Message, at)
	case *team.TeamRestored:
		b.restore(e, at)
	case *team.MessagesDelivered:
		b.change(e.Member, e.Seqs, func(l *MailboxMessage) {
			l.DeliveredAt = at
			if l.Seq <= b.through {
				l.ReadAt = at
			}
		})
	case *team.MessagesReturned:
		b.change(e.Member, e.Seqs, func(l *MailboxMessage) { l.ReturnedAt = at })
	case *team.MessagesResent:
		b.change(e.Member, e.Seqs, func(l *MailboxMessage) { l.ResentAt = at })
	case *team.MessagesRead:
		if e.Member == b.member {
			b.mark(e.Through, at)
		}
	}
}

// restore reads the messages of a checkpoint. A message that is no longer in the inbox was
// delivered before the checkpoint.
func (b *mailbox) restore(e *team.TeamRestored, at team.Time) {
	var waiting []int64
	for _, m := range e.Members {
		if m.Name == b.member {
			waiting, b.through = m.Inbox, m.ReadSeq
		}
	}
	for _, m := range e.Messages {
		if l := b.add(m, m.SentAt); l != nil && !slices.Contains(waiting, m.Seq) {
			l.DeliveredAt = at
			if l.Seq <= b.through {
				l.ReadAt = at
			}
		}
	}
}

// add puts the message into the box, if it is for the member.
func (b *mailbox) add(m team.Message, at team.Time) *MailboxMessage {
	if m.To != b.member && !slices.Contains(m.Recipients, b.member) {
		return nil
	}
	m.SentAt = at
	b.at[m.Seq] = len(b.messages)
	b.messages = append(b.messages, MailboxMessage{Message: m})
	return &b.messages[len(b.messages)-1]
}

func (b *mailbox) change(member string, seqs []int64, change func(*MailboxMessage)) {
	if member != b.member {
		return
	}
	for _, seq := range seqs {
		if i, is := b.at[seq]; is {
			change(&b.messages[i])
		}
	}
}

func (b *mailbox) mark(through int64, at team.Time) {
	b.through = max(b.through, through)
	for ; b.read < len(b.messages) && b.messages[b.read].Seq <= through; b.read++ {
		if l := &b.messages[b.read]; l.DeliveredAt != 0 && l.ReadAt == 0 {
			l.ReadAt = at
		}
	}
}
