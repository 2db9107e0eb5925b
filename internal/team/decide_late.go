package team

import (
	"fmt"
	"slices"
	"strings"
)

// late returns the messages that have waited too long for the member and that the lead was not
// notified of. It also returns when the next message becomes late.
func (s *State) late(m *Member, now Time) (seqs []int64, next Time) {
	if m.Name == s.team.Lead || s.team.LeadLost != 0 { // no lead can be notified
		return nil, 0
	}
	patience := s.team.Timing.OrDefaults().Undelivered
	for _, seq := range m.Inbox {
		msg := s.messages[seq]
		if msg == nil || msg.Quiet || s.held(msg) {
			continue
		}
		if _, told := slices.BinarySearch(m.Late, seq); told {
			continue
		}
		since := max(msg.SentAt, msg.ResentAt, s.team.LeadSince)
		due := since.Add(patience)
		if due <= now {
			seqs = append(seqs, seq)
			continue
		}
		if next == 0 || due < next {
			next = due
		}
		// later messages were sent later; but after a message from the future, by a wrong clock,
		// they may be due earlier
		if since <= now {
			break
		}
	}
	return seqs, next
}

// MarkLate notifies the lead of messages that have waited too long for a member. The lead can send
// them again, reassign the work, or wait. The member's host sends it, or any process that finds
// late messages.
type MarkLate struct{ Member string }

func (b *MarkLate) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "a host finds out that messages are late")
	}
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	seqs, _ := d.late(m, d.At)
	if len(seqs) == 0 {
		return nil
	}
	d.emit(&MessagesLate{Member: m.Name, Seqs: seqs})
	var list []string
	for _, seq := range seqs[:min(len(seqs), 20)] {
		from := d.messages[seq].From
		if from == "" {
			from = "the team"
		}
		list = append(list, fmt.Sprintf("#%d from %s", seq, from))
	}
	if more := len(seqs) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	d.tell(d.team.Lead, "", "Not delivered to %s for %s: %s. Send them again, give its tasks "+
		"to another member, or wait: they stay in its inbox.",
		m.Name, Span(d.team.Timing.OrDefaults().Undelivered), strings.Join(list, ", "))
	return nil
}

// ResendMessages sends the messages that wait for the member again. A message stays the same
// message: a member that has it already does not see it twice.
type ResendMessages struct {
	Member string
	Seqs   []int64 // nil for all late ones
}

func (b *ResendMessages) decide(d *decision) error {
	if err := d.leads("send messages again"); err != nil {
		return err
	}
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	seqs := slices.Compact(slices.Sorted(slices.Values(b.Seqs)))
	if b.Seqs == nil {
		if seqs = slices.Clone(m.Late); len(seqs) == 0 {
			return refuse(Nothing, "no message for %s is late", m.Name)
		}
	}
	for _, seq := range seqs {
		if _, waits := slices.BinarySearch(m.Inbox, seq); !waits {
			return refuse(Conflict, "message %d does not wait for %s: it was delivered already, or never sent to it",
				seq, m.Name)
		}
	}
	if len(seqs) > 0 {
		d.emit(&MessagesResent{Member: m.Name, Seqs: seqs})
	}
	return nil
}

func (e *MessagesLate) apply(s *State, _ *Record) {
	m := s.member(e.Member)
	if m == nil {
		return
	}
	late := slices.Concat(m.Late, e.Seqs)
	slices.Sort(late)
	late = slices.DeleteFunc(slices.Compact(late), func(seq int64) bool {
		_, waits := slices.BinarySearch(m.Inbox, seq)
		return !waits
	})
	m.Late = late
}

func (e *MessagesResent) apply(s *State, r *Record) {
	m := s.member(e.Member)
	if m == nil {
		return
	}
	m.Resent++
	m.Late = notIn(m.Late, e.Seqs)
	for _, seq := range e.Seqs {
		if msg := s.messages[seq]; msg != nil {
			msg.ResentAt = max(msg.ResentAt, r.At)
		}
	}
}
