package team

import "strconv"

// questions adds what members ask the person who leads, until the person reads it. A lead that is an
// agent gets its mail in its session.
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
