package teams

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// Mailbox is the mail of one member. It keeps mail until the recipient has it. The host delivers
// mail to a member with a session; there the mailbox is for sending. External members, and a
// program that leads, receive their mail here.
type Mailbox struct{ actor }

// Send sends a message to the member To and returns the sent message. It returns ErrNotFound, with
// the valid names, if the recipient does not exist or has ended, and ErrTooLarge above 1 MiB.
func (b *Mailbox) Send(ctx context.Context, m Message) (Message, error) {
	return b.sent(b.do(ctx, &team.SendMessage{To: m.To, Intent: string(m.Intent), Priority: string(m.Priority),
		Body: m.Body, Metadata: m.Metadata}))
}

// Broadcast sends one message to all members but the sender; To is not used. Each recipient spends
// tokens on it.
func (b *Mailbox) Broadcast(ctx context.Context, m Message) (Message, error) {
	return b.sent(b.do(ctx, &team.Broadcast{Intent: string(m.Intent), Priority: string(m.Priority), Body: m.Body,
		Metadata: m.Metadata}))
}

func (b *Mailbox) sent(r *team.Record, err error) (Message, error) {
	if err != nil {
		return Message{}, err
	}
	e, _ := team.EventIn[*team.MessageSent](r)
	m := messageOf(e.Message)
	m.SentAt = clock(r.At)
	return m, nil
}

// Peek returns the pending messages, and leaves them pending.
func (b *Mailbox) Peek(ctx context.Context) (mail []Message, err error) {
	if b.name == team.User {
		return nil, refuse(ErrDenied, b.team.lead+" is an agent and has the lead's mail itself; the user sends, and "+
			"hears of what happens from Events")
	}
	err = b.look(ctx, func(s *team.State) { mail = messagesOf(s.Inbox(b.name)) })
	return mail, err
}

// History returns all messages that were sent to the member, the oldest first, with the times of
// delivery and reading. It reads the team's whole history, and records nothing.
func (b *Mailbox) History(ctx context.Context) (mail []Message, err error) {
	if b.name == team.User {
		return nil, refuse(ErrDenied, b.team.lead+" is an agent and has the lead's mail itself; the user sends, and "+
			"hears of what happens from Events")
	}
	if err := b.look(ctx, func(*team.State) {}); err != nil {
		return nil, err
	}
	messages, err := history.Mail(b.team.of.Read(ctx, 0), b.name)
	for _, l := range messages {
		mail = append(mail, letterOf(l))
	}
	return mail, public(err)
}

func letterOf(l history.MailboxMessage) Message {
	m := messageOf(l.Message)
	m.DeliveredAt, m.ReadAt = clock(l.DeliveredAt), clock(l.ReadAt)
	return m
}

// Receive returns the pending messages in order, and records them as delivered. It does not wait;
// without mail it returns an empty list.
func (b *Mailbox) Receive(ctx context.Context) ([]Message, error) { return b.take(ctx, 0) }

// take receives up to max messages; 0 means all.
func (b *Mailbox) take(ctx context.Context, max int) ([]Message, error) {
	for {
		mail, err := b.Peek(ctx)
		if err != nil || len(mail) == 0 {
			return nil, err
		}
		if max > 0 && len(mail) > max {
			mail = mail[:max]
		}
		seqs := make([]int64, len(mail))
		for i, m := range mail {
			seqs[i] = m.Seq
		}
		r, err := b.do(ctx, &team.ReceiveMessages{Seqs: seqs})
		if errors.Is(err, ErrConflict) { // another process took some of them meanwhile
			if b.replaced(ctx) {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range mail {
			mail[i].DeliveredAt = clock(r.At)
		}
		return mail, nil
	}
}

// replaced reports whether a newer session of the member has replaced this one.
func (b *Mailbox) replaced(context.Context) (gone bool) {
	b.team.of.View(func(s *team.State) {
		m, _ := s.Member(b.name)
		gone = b.incarnation != 0 && m.Incarnation != b.incarnation
	})
	return gone
}

// closed returns an error if no more mail can arrive, because the team or the member has ended.
func (b *Mailbox) closed() (err error) {
	b.team.of.View(func(s *team.State) {
		m, _ := s.Member(b.name)
		switch {
		case ended(s):
			err = refuse(ErrFinished, fmt.Sprintf("team %s has ended, so no more mail comes", b.team.name))
		case !m.Status.Running():
			err = refuse(ErrFinished, fmt.Sprintf("%s has ended, so no more mail comes", b.name))
		}
	})
	return err
}

// Wait is Receive that waits until mail arrives or ctx ends. Once the team or the member has ended
// and all mail is taken, it returns ErrFinished.
func (b *Mailbox) Wait(ctx context.Context) ([]Message, error) {
	return b.wait(ctx, 0)
}

func (b *Mailbox) wait(ctx context.Context, max int) ([]Message, error) {
	for {
		seq := b.team.of.Seq()
		mail, err := b.take(ctx, max)
		if err == nil && len(mail) == 0 {
			err = b.closed()
		}
		if err != nil || len(mail) > 0 {
			return mail, err
		}
		if err := b.team.of.Await(ctx, seq); err != nil {
			return nil, public(err)
		}
	}
}

// All yields the member's messages as they arrive. It records each as delivered just before it
// yields it. It ends when Wait would, with that error as the last pair. After a break, the
// remaining messages stay pending.
func (b *Mailbox) All(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			mail, err := b.wait(ctx, 1)
			if err != nil {
				yield(Message{}, err)
				return
			}
			if !yield(mail[0], nil) {
				return
			}
		}
	}
}

// MarkRead records that the member has read its delivered messages up to the one with Seq through.
func (b *Mailbox) MarkRead(ctx context.Context, through int64) error {
	_, err := b.do(ctx, &team.MarkRead{Through: through})
	return err
}
