package engine

import (
	"context"

	"cadre/internal/replica"
	"cadre/internal/team"
)

// Take hands the member its mail, as actor: the messages again, and behind them those that nobody
// else was given. They are delivered with that, and read when they are marked so.
func Take(ctx context.Context, rep *replica.Replica, actor, member string,
	again []team.Message) ([]team.Message, error) {
	var looked []team.Message
	rep.View(func(s *team.State) { looked = s.Inbox(member) })
	receipt, err := rep.Do(ctx, team.Command{Actor: actor, Body: &team.ReceiveMessages{Member: member}})
	if err != nil {
		return nil, err
	}
	mail := append([]team.Message{}, again...)
	if receipt.Record == nil {
		return mail, nil
	}
	// What the record says is what nobody else was given; more may have come since we looked.
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
		return mail, nil
	}
	for r, err := range rep.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		mail = append(mail, messagesIn(r, func(seq int64) bool { return taken[seq] })...)
	}
	return mail, nil
}

// HandedOut returns the messages that the member was given and has not confirmed, from the history.
func HandedOut(ctx context.Context, rep *replica.Replica, m team.Member) ([]team.Message, error) {
	given := map[int64]bool{}
	var mail []team.Message
	for r, err := range rep.Read(ctx, 0) {
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
