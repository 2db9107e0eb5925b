package team

import "fmt"

// limited records that the member's model takes no more requests for now. All members of its pool
// wait. That counts as no setback, and nobody's task is returned for it.
func (b *ReportTrouble) limited(d *decision, m *Member, reason string) error {
	if err := limit(text{"pool", b.Pool, MaxSubject}); err != nil {
		return err
	}
	before := d.rateLimit(b.Pool)
	lasts := before != nil && before.Lifted == 0
	e := &RateLimited{Pool: b.Pool, By: m.Name, Text: reason, Ended: !b.Retrying && !b.Gone, Tries: 1}
	e.Until = d.limitEnd(b, before, e)
	later := !lasts || e.Until > before.Until
	switch {
	case b.Retrying:
		if again := lasts && before.By == m.Name && m.Status == Active; !again {
			b.retries(d, m, reason)
		}
		if later || m.Pool != b.Pool {
			d.emit(e)
		}
		return nil
	case b.Gone:
		d.emit(e)
		if d.detached(m, &MemberDetached{Member: m.Name, Reason: reason, Note: clip(b.Note)}) {
			return nil
		}
	default:
		d.emit(e)
		d.denyAll(m, reason)
	}
	if m.Name != d.team.Lead && later {
		d.hint(d.team.Lead, fmt.Sprintf("%s waits for a rate limit, for %s%s\nIt keeps its task, and continues by itself.",
			m.Name, Span(max(0, e.Until.Sub(d.At))), because(reason)))
	}
	return nil
}

// limitEnd returns until when the pool is limited. It counts the refusal if it is a new one: a
// member that was refused before it knew of the limit says nothing new.
func (d *decision) limitEnd(b *ReportTrouble, before *RateLimit, e *RateLimited) Time {
	named := min(b.Until, d.At.Add(longestLimit))
	if before != nil {
		switch {
		case before.Lifted == 0 && d.At < before.Until:
			e.Tries = before.Tries
			return max(before.Until, named)
		case before.Lifted == 0 || d.At.Sub(before.Lifted) <= liftedFor:
			e.Tries = min(before.Tries+1, MaxSetbacks)
		}
	}
	if named > d.At {
		return named
	}
	return d.At.Add(patience(e.Tries))
}

// unlimited refuses that a host gives a task to a member that waits for a rate limit: others can do
// it meanwhile.
func (d *decision) unlimited(m *Member) error {
	if until := d.limitedUntil(m); d.isHost() && m.Status != Active && until > d.At {
		return refuse(NotReady, "%s waits for a rate limit, for %s", m.Name, Span(until.Sub(d.At)))
	}
	return nil
}

// LiftLimit says that the pool of the member takes turns again: its model has answered the member,
// or the lead or a person wants it tried at once.
type LiftLimit struct{ Member string }

func (b *LiftLimit) decide(d *decision) error {
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	l := d.rateLimit(m.Pool)
	lasts := l != nil && l.Lifted == 0
	if d.isHost() {
		if _, err := d.hosted(b.Member); err != nil {
			return err
		}
		if !lasts || d.At < l.Until { // this answer was on its way when the limit came
			return nil
		}
	} else if err := d.leads("lift a rate limit"); err != nil {
		return err
	} else if !lasts {
		return Refuse(NotReady, "%s waits for no rate limit", m.Name).With(d.team.hint(ActShowTeam))
	}
	d.emit(&RateLimitLifted{Pool: l.Pool, By: d.Actor})
	return nil
}
