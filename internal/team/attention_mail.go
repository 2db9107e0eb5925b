package team

import (
	"strconv"
	"time"
)

// questions adds what members ask the person who leads, until the person reads it. A lead that is
// an agent gets its mail in its session.
func (a *attention) questions() {
	lead := a.s.lead()
	if a.lead != ForUser || lead.Agent != External || !lead.Status.Running() {
		return
	}
	n := 0
	for _, seq := range lead.Inbox {
		msg := a.s.messages[seq]
		if msg == nil || !msg.Asks() {
			continue
		}
		if n++; n > mostAlike {
			return
		}
		a.add(Item{Kind: ItemQuestion, Member: msg.From, About: "#" + strconv.FormatInt(seq, 10), Since: msg.SentAt,
			Hint: Hint{Action: ActReadMail, Member: lead.Name}}, "%s asks you: %s", msg.From, clipTo(msg.Body, 200))
	}
}

// late adds the members that have not received their messages in time.
func (a *attention) late() {
	s := a.s
	for i := range s.members {
		if m := &s.members[i]; m.Status.Running() && len(m.Late) > 0 {
			item := Item{Kind: ItemLate, WaitsFor: a.lead, Member: m.Name,
				Hint: Hint{Action: ActResend, Member: m.Name}}
			if m.Agent == External { // it reads its mail itself
				item.Hint.Action = ActReadMail
			}
			for _, seq := range m.Late {
				if msg := s.messages[seq]; msg != nil {
					item.Since = earlier(item.Since, max(msg.SentAt, msg.ResentAt))
				}
			}
			a.add(item, "%s has not received %s for %s.", m.Name, word(len(m.Late), "1 message",
				strconv.Itoa(len(m.Late))+" messages, the oldest"), Span(a.waited(item.Since)))
		}
	}
}

// waited returns for how long something waits, in whole minutes from one minute on.
func (a *attention) waited(since Time) time.Duration {
	d := max(0, a.now.Sub(since))
	if d < time.Minute {
		return d.Truncate(time.Second)
	}
	return d.Truncate(time.Minute)
}

// earlier returns the earlier time; 0 is unknown.
func earlier(a, b Time) Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
