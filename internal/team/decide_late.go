package team

import (
	"fmt"
	"slices"
	"strings"
)

// late returns the messages that have waited for the member for too long and that the lead was not
// told of, and when the next one will have.
func (s *State) late(m *Member, now Time) (seqs []int64, next Time) {
	if m.Name == s.team.Lead || s.team.LeadLost != 0 { // there is nobody to be told
		return nil, 0
	}
	patience := Time(s.team.Timing.OrDefaults().Undelivered)
	for _, seq := range m.Inbox {
		msg := s.messages[seq]
		if msg == nil || msg.Quiet || s.held(msg) {
			continue
		}
		if _, told := slices.BinarySearch(m.Late, seq); told {
			continue
		}
		since := max(msg.SentAt, msg.ResentAt, s.team.LeadSince)
		due := plus(since, patience)
		if due <= now {
			seqs = append(seqs, seq)
			continue
		}
		if next == 0 || due < next {
			next = due
		}
		// the later ones were sent later; after one from the future, by a clock that is wrong, they
		// need not seem so
		if since <= now {
			break
		}
	}
	return seqs, next
}

// MarkLate tells the lead of messages that a member has not been given for long; it can send them
// again, give the work to somebody else, or wait. The member's host sends it, or who else finds
// that out.
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
	d.tell(d.team.Lead, TypeSystem, "", "Not delivered to %s for %s: %s. Send them again, give its tasks "+
		"to somebody else, or wait: they stay in its inbox.",
		m.Name, span(Time(d.team.Timing.OrDefaults().Undelivered)), strings.Join(list, ", "))
	return nil
}

// ResendMessages has what waits for the member sent again. A message stays the same message: who
// has it already does not see it twice.
type ResendMessages struct {
	Member string
	Seqs   []int64 // nil for all that are late
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
