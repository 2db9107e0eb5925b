package team

import (
	"fmt"
	"strings"
)

// ReportOffline notifies the lead that a teammate is offline, once each time. The teammate has been
// silent for too long, or its session is known to have ended. It keeps everything that it holds. A
// host sends it, or any process that finds that out.
type ReportOffline struct {
	Member      string
	Incarnation int64  // of the silent session
	Seen        Time   // its last heartbeat; 0 for none
	Gone        string // why its session is known to have ended; "" where it is only silent
}

func (b *ReportOffline) decide(d *decision) error {
	m, err := d.seenFromOutside(b.Member)
	if err != nil {
		return err
	}
	reason := clipTo(strings.TrimSpace(b.Gone), MaxSubject)
	silent := d.At.Sub(b.Seen)
	switch {
	case b.Incarnation != m.Incarnation:
		return refuse(Conflict, "this is session %d of %s, whose present session is %d", b.Incarnation, m.Name,
			m.Incarnation)
	case m.Offline != 0 || d.team.LeadLost != 0: // no lead can be notified; once one can, it is found again
		return nil
	case reason == "" && silent < d.team.Timing.OrDefaults().Offline:
		return refuse(NotReady, "%s was seen %s ago", m.Name, Span(silent))
	}
	why := reason
	switch {
	case reason == "":
		reason = "it sent no heartbeat for " + Span(silent)
		why = reason
	case !isOwn(reason):
		why = Quoted(reason)
	}
	d.emit(&MemberOffline{Member: m.Name, Seen: b.Seen, Reason: reason})
	note := fmt.Sprintf("%s is offline: %s.", m.Name, why)
	if held := d.holds(m.Name); len(held) > 0 {
		var ids []string
		for _, t := range held {
			ids = append(ids, t.Called())
		}
		note += fmt.Sprintf(" It holds task %s: give that to another member, or wait: it continues with it when it "+
			"is back.", strings.Join(ids, ", "))
	}
	d.tell(d.team.Lead, "", "%s", note)
	return nil
}

// ReportOnline says that an offline member sent a heartbeat again.
type ReportOnline struct {
	Member      string
	Incarnation int64
}

func (b *ReportOnline) decide(d *decision) error {
	m, err := d.seenFromOutside(b.Member)
	if err != nil || m.Offline == 0 || b.Incarnation != m.Incarnation {
		return err
	}
	d.emit(&MemberOnline{Member: m.Name})
	d.hint(d.team.Lead, m.Name+" is online again.")
	return nil
}

// seenFromOutside returns the running teammate. It checks that the actor may report whether that
// member is alive.
func (d *decision) seenFromOutside(name string) (*Member, error) {
	if d.Actor != User && !d.isHost() {
		return nil, refuse(Denied, "a host finds out who is offline")
	}
	m, err := d.running(name)
	if err == nil && m.Name == d.team.Lead {
		return nil, refuse(Invalid, "%s is the lead, which is lost, or leads", m.Name)
	}
	return m, err
}

// MemberOffline says that the member has stopped sending heartbeats, and that the lead was
// notified.
type MemberOffline struct {
	Member string
	Seen   Time
	Reason string
}

// MemberOnline says that the member sends heartbeats again.
type MemberOnline struct{ Member string }

func (e *MemberOffline) fields(c *coder) {
	c.str("member", &e.Member)
	c.int("seen", (*int64)(&e.Seen))
	c.str("reason", &e.Reason)
}

func (e *MemberOnline) fields(c *coder) { c.str("member", &e.Member) }

func (e *MemberOffline) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Offline = max(r.At, 1)
	}
}

func (e *MemberOnline) apply(s *State, _ *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Offline = 0
	}
}
