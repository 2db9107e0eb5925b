package team

import (
	"fmt"
	"strings"
)

// ReportOffline tells the lead that a teammate is offline, once for each time that it is: it has
// been silent for too long, or its session is known to be gone. Nothing is taken from it by that. A
// host sends it, or who else finds that out.
type ReportOffline struct {
	Member      string
	Incarnation int64  // whose silence it is
	Seen        Time   // its last sign of life; 0 where it gave none
	Gone        string // why its session is known to be gone; "" where it is silent
}

func (b *ReportOffline) decide(d *decision) error {
	m, err := d.seenFromOutside(b.Member)
	if err != nil {
		return err
	}
	reason := clipTo(strings.TrimSpace(b.Gone), MaxSubject)
	silent := d.At - b.Seen
	switch {
	case b.Incarnation != m.Incarnation:
		return refuse(Conflict, "this is session %d of %s, whose present session is %d", b.Incarnation, m.Name,
			m.Incarnation)
	case m.Offline != 0 || d.team.LeadLost != 0: // there is nobody to be told; when there is, it is found out again
		return nil
	case reason == "" && silent < Time(d.team.Timing.OrDefaults().Offline):
		return refuse(NotReady, "%s was seen %s ago", m.Name, span(silent))
	}
	why := reason
	switch {
	case reason == "":
		reason = "it gave no sign of life for " + span(silent)
		why = reason
	case !isOwn(reason):
		why = Quoted(reason)
	}
	d.emit(&MemberOffline{Member: m.Name, Seen: b.Seen, Reason: reason})
	note := fmt.Sprintf("%s is offline: %s.", m.Name, why)
	if held := d.holds(m.Name); len(held) > 0 {
		var ids []string
		for _, t := range held {
			ids = append(ids, t.ID)
		}
		note += fmt.Sprintf(" It holds task %s: give it to somebody else, or wait: it continues with it when it "+
			"is back.", strings.Join(ids, ", "))
	}
	d.tell(d.team.Lead, TypeSystem, "", "%s", note)
	return nil
}

// ReportOnline takes that back: the member gave a sign of life again.
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

// seenFromOutside returns the running teammate of whose life the actor may tell.
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

// MemberOffline says that nothing is heard of the member any more, and that the lead was told.
type MemberOffline struct {
	Member string
	Seen   Time
	Reason string
}

// MemberOnline says that the member is heard of again.
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
