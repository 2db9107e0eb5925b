package engine

import (
	"context"
	"slices"

	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// Reading says how mail is read, and for which reader.
type Reading struct {
	Actor  string // the member itself, or the user
	Member string
	Peek   bool // record nothing
	Unread bool // record the mail as delivered, and leave it to the reader to mark it as read
	Again  bool // also show messages that were delivered before and are not marked as read
	Wait   bool // wait until there is mail
	Follow bool // follow until the team or the member has ended
}

// ReadMail gives show the member's mail, and then records that it was read, unless Unread is set.
// With Again it repeats messages that a killed call may have lost. earlier is the last message that
// was delivered before, if some of those are not marked as read and not repeated; 0 for none.
// Without Wait and Follow, show is called once, even for no mail; with them it is called only for
// mail. A reading that waits ends with code Finished once the team or the member has ended. A
// reading that follows then ends without an error.
func (e *Engine) ReadMail(ctx context.Context, name string, r Reading,
	show func(mail []history.MailboxMessage, earlier int64) error) error {
	open := e.Open
	if r.Peek {
		open = e.Look
	}
	t, err := open(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	waits := r.Wait || r.Follow
	seen := map[int64]bool{} // mail that was shown already; delivered mail is shown once
	for {
		seq, found := t.Seq(), 0
		err := t.read(ctx, r, func(mail []history.MailboxMessage, earlier int64) error {
			if waits && r.Peek {
				mail = slices.DeleteFunc(slices.Clone(mail), func(m history.MailboxMessage) bool { return seen[m.Seq] })
				for _, m := range mail {
					seen[m.Seq] = true
				}
			}
			if found = len(mail); found == 0 && waits {
				return nil
			}
			return show(t.about(mail), earlier)
		})
		if err != nil || !waits || found > 0 && !r.Follow {
			return err
		}
		r.Again = false
		if err := t.expectsMail(r.Member); err != nil {
			if r.Follow && team.CodeOf(err) == team.Finished {
				return nil
			}
			return err
		}
		if err := t.Await(ctx, seq); err != nil {
			return err
		}
	}
}

// expectsMail refuses with code Finished if no more mail can come for the member.
func (t *Team) expectsMail(member string) (err error) {
	t.View(func(s *team.State) {
		m, _ := s.Named(member)
		switch of := s.Team(); {
		case of.Ended():
			err = team.Refuse(team.Finished, "team %s is %s, so no more mail comes for %s", of.Name, of.Status, member)
		case !m.Status.Running():
			err = team.Refuse(team.Finished, "%s has %s, so no more mail comes", member, m.Status)
		}
	})
	return err
}

// MailOf returns all mail that was ever sent to a member and that the filter selects. A member may
// read only its own.
func (e *Engine) MailOf(ctx context.Context, name, actor, member string,
	filter history.MailFilter) ([]history.MailboxMessage, error) {
	t, err := e.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	mail, _, err := t.MailOf(ctx, actor, member, filter)
	return mail, err
}

// MailOf is [Engine.MailOf] in the team. seq is the last record that it knows of.
func (t *Team) MailOf(ctx context.Context, actor, member string,
	filter history.MailFilter) (mail []history.MailboxMessage, seq int64, err error) {
	if err = filter.Check(); err != nil {
		return nil, 0, err
	}
	t.View(func(s *team.State) { _, err = s.Named(member) })
	if err == nil {
		err = ownMail(actor, member)
	}
	if err != nil {
		return nil, 0, err
	}
	messages, err := history.Mail(func(yield func(*team.Record, error) bool) {
		for r, err := range t.Read(ctx, 0) {
			if err == nil {
				seq = r.Seq
			}
			if !yield(r, err) {
				return
			}
		}
	}, member)
	return t.about(filter.Select(messages)), seq, err
}

// about notes in each message which task it is about.
func (t *Team) about(mail []history.MailboxMessage) []history.MailboxMessage {
	t.View(func(s *team.State) {
		for i := range mail {
			if task, is := s.Task(mail[i].Ref); is {
				mail[i].Task = task.Called()
			}
		}
	})
	return mail
}

func ownMail(actor, member string) error {
	if actor != team.User && actor != member {
		return team.Refuse(team.Denied,
			"the mail of %s is its own; this is the session of %s, which reads the mail of "+
				"%s alone", member, actor, actor)
	}
	return nil
}

// read shows the present mail.
func (t *Team) read(ctx context.Context, r Reading,
	show func(mail []history.MailboxMessage, earlier int64) error) (err error) {
	ctx, cancel := busy(ctx, t.Name)
	defer cancel()
	var m team.Member
	mail := []team.Message{}
	t.View(func(s *team.State) {
		m, err = s.Named(r.Member)
		mail = append(mail, s.Inbox(r.Member)...)
	})
	if err != nil {
		return err
	}
	if err := ownMail(r.Actor, r.Member); err != nil {
		return err
	}
	before, earlier := []team.Message{}, int64(0)
	if r.Again {
		if before, err = t.unread(ctx, m); err != nil {
			return err
		}
	} else if m.DeliveredSeq > m.ReadSeq {
		earlier = m.DeliveredSeq
	}
	if r.Peek {
		messages, err := t.messages(ctx, r.Member, append(slices.Clone(before), mail...), len(before), 0)
		if err != nil {
			return err
		}
		return show(messages, earlier)
	}
	var at team.Time
	if len(mail) > 0 || len(before) > 0 || !r.Wait && !r.Follow {
		if mail, at, err = t.take(ctx, r.Actor, r.Member, before); err != nil {
			return err
		}
	}
	messages, err := t.messages(ctx, r.Member, mail, len(before), at)
	if err != nil {
		return err
	}
	if err := show(messages, earlier); err != nil || len(mail) == 0 || r.Unread {
		return err
	}
	_, err = t.Do(ctx, team.Command{Actor: r.Actor, Body: &team.MarkRead{Member: r.Member,
		Through: mail[len(mail)-1].Seq}})
	return err
}

// messages returns the messages with when they were delivered. The first ones, as many as again
// says, were delivered earlier, and the others at that time; 0 is for not yet.
func (t *Team) messages(ctx context.Context, member string, mail []team.Message, again int, at team.Time) (
	messages []history.MailboxMessage, err error) {
	dated := map[int64]history.MailboxMessage{}
	if again > 0 {
		all, err := history.Mail(t.Read(ctx, 0), member)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			dated[l.Seq] = l
		}
	}
	messages = []history.MailboxMessage{}
	for i, m := range mail {
		if l, known := dated[m.Seq]; known && i < again {
			messages = append(messages, l)
		} else {
			messages = append(messages, history.MailboxMessage{Message: m, DeliveredAt: at})
		}
	}
	return messages, nil
}

// take delivers the member's mail, as actor: first the messages in again, then those that were not
// delivered yet. Delivered messages are read once they are marked as read. at is when it did; 0
// where there was nothing to deliver.
func (t *Team) take(ctx context.Context, actor, member string, again []team.Message) (mail []team.Message,
	at team.Time, err error) {
	var looked []team.Message
	t.View(func(s *team.State) { looked = s.Inbox(member) })
	receipt, err := t.Do(ctx, team.Command{Actor: actor, Body: &team.ReceiveMessages{Member: member}})
	if err != nil {
		return nil, 0, err
	}
	mail = append([]team.Message{}, again...)
	if receipt.Record == nil {
		return mail, 0, nil
	}
	at = receipt.Record.At
	// The record has the messages that this call delivered. More may have arrived after the read.
	taken := map[int64]bool{}
	for _, e := range receipt.Record.Events {
		if e, ok := e.(*team.MessagesDelivered); ok {
			for _, seq := range e.Seqs {
				taken[seq] = true
			}
		}
	}
	for _, m := range looked {
		if taken[m.Seq] {
			mail = append(mail, m)
			delete(taken, m.Seq)
		}
	}
	if len(taken) == 0 {
		return mail, at, nil
	}
	for r, err := range t.Read(ctx, 0) {
		if err != nil {
			return nil, 0, err
		}
		mail = append(mail, messagesIn(r, func(seq int64) bool { return taken[seq] })...)
	}
	return mail, at, nil
}

// unread returns, from the history, the messages that were delivered to the member and not marked
// as read.
func (t *Team) unread(ctx context.Context, m team.Member) ([]team.Message, error) {
	given := map[int64]bool{}
	var mail []team.Message
	for r, err := range t.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		for _, e := range r.Events {
			if e, ok := e.(*team.MessagesDelivered); ok && e.Member == m.Name {
				for _, seq := range e.Seqs {
					given[seq] = true
				}
			}
		}
		mail = append(mail, messagesIn(r, func(seq int64) bool { return seq > m.ReadSeq && seq <= m.DeliveredSeq })...)
	}
	kept := mail[:0]
	for _, msg := range mail {
		if given[msg.Seq] {
			kept = append(kept, msg)
		}
	}
	return kept, nil
}

func messagesIn(r *team.Record, want func(int64) bool) []team.Message {
	var mail []team.Message
	for _, e := range r.Events {
		if e, ok := e.(*team.MessageSent); ok && want(e.Message.Seq) {
			e.Message.SentAt = r.At
			mail = append(mail, e.Message)
		}
	}
	return mail
}
