package team

import "slices"

// RequestShutdown asks a teammate to end. At the deadline its session ends, whatever it answered. A
// teammate that refused may be asked again, with another reason and deadline.
type RequestShutdown struct {
	Member   string
	Reason   string
	Deadline Time // a deadline that has passed, perhaps on its way here, means now
}

func (b *RequestShutdown) decide(d *decision) error {
	if err := d.leads("shut teammates down"); err != nil {
		return err
	}
	m, err := d.teammate(b.Member, "shut down")
	deadline := max(b.Deadline, d.At)
	switch {
	case err != nil:
		return err
	case m.Shutdown.Answer == "approved":
		return refuse(Conflict, "%s agreed to shut down already and is ending", m.Name)
	case m.Shutdown.Request != "" && m.Shutdown.Answer == "" && deadline >= m.Shutdown.Deadline:
		return refuse(Conflict, "%s was asked to shut down already (%s); withdraw that, or give an earlier deadline",
			m.Name, m.Shutdown.Request)
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	request := d.newRequest("shutdown", m.Name)
	d.emit(&ShutdownRequested{Member: m.Name, Request: request, Incarnation: m.Incarnation, Reason: b.Reason,
		Deadline: deadline})
	body := b.Reason
	if body == "" {
		body = "Please finish and shut down."
	}
	d.post(Message{From: d.Actor, To: m.Name, Type: TypeShutdownRequest, Priority: "normal", Body: body, Ref: request,
		Incarnation: m.Incarnation})
	return nil
}

// AnswerShutdown is the teammate's answer to a request.
type AnswerShutdown struct {
	Member   string // "" for the actor
	Request  string
	Approved bool
	Reason   string
}

func (b *AnswerShutdown) decide(d *decision) error {
	m, err := d.self(b.Member)
	switch {
	case err != nil:
		return err
	case m.Shutdown.Request == "" || m.Shutdown.Request != b.Request:
		return refuse(Conflict, "there is no shutdown request %q for the present session of %s",
			brief(b.Request), m.Name)
	case m.Shutdown.Answer != "":
		return refuse(Conflict, "%s has %s this request already", m.Name, m.Shutdown.Answer)
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	d.answerShutdown(m, b.Approved, b.Reason)
	return nil
}

// answerShutdown records the answer to the member's request, and ends a member without a session.
func (d *decision) answerShutdown(m *Member, approved bool, reason string) {
	request := m.Shutdown.Request
	d.emit(&ShutdownAnswered{Member: m.Name, Request: request, Approved: approved, Reason: reason})
	word := "refuses to shut down and is ended at the deadline unless the request is withdrawn"
	if approved {
		word = "agrees to shut down"
	}
	if reason != "" {
		word += ": " + reason
	}
	d.post(Message{From: m.Name, To: d.team.Lead, Type: TypeShutdownResponse, Priority: "normal",
		Body: m.Name + " " + word, Ref: request,
		Quiet: approved}) // a refusal wants an answer; an approval does not
	if approved && (m.Agent == External || m.Host == "") { // no session of ours has to end first
		d.end(m, &MemberStopped{Member: m.Name, Reason: AsAsked}, false)
	}
}

// letsGo reports whether a member that ends its turn has silently accepted a shutdown: it has read
// the request, did not answer, and holds no task. Otherwise it would only wait for the deadline.
func (d *decision) letsGo(m *Member) bool {
	unread := func(seq int64) bool {
		msg := d.messages[seq]
		return msg != nil && (msg.Ref == m.Shutdown.Request || !msg.Quiet)
	}
	return m.Shutdown.Request != "" && m.Shutdown.Answer == "" && m.Status == Active && m.Plan.State != "submitted" &&
		len(d.holds(m.Name)) == 0 &&
		!slices.ContainsFunc(m.Inbox, unread)
}

// WithdrawShutdown withdraws a request, for example because the teammate gave a good reason.
type WithdrawShutdown struct{ Member string }

func (b *WithdrawShutdown) decide(d *decision) error {
	if err := d.leads("withdraw a shutdown"); err != nil {
		return err
	}
	m, err := d.running(b.Member)
	switch {
	case err != nil:
		return err
	case m.Shutdown.Request == "":
		return refuse(Conflict, "%s was not asked to shut down", m.Name)
	case m.Shutdown.Answer == "approved":
		return refuse(Conflict, "%s agreed to shut down and is ending", m.Name)
	}
	d.emit(&ShutdownWithdrawn{Member: m.Name, Request: m.Shutdown.Request})
	d.tell(m.Name, m.Shutdown.Request, "The request to shut down is withdrawn; continue.")
	return nil
}

// ExpireShutdown ends a member without a session of ours at the deadline of its shutdown. The host
// ends all other sessions.
type ExpireShutdown struct{ Member string }

func (b *ExpireShutdown) decide(d *decision) error {
	m, err := d.teammate(b.Member, "shut down")
	switch {
	case err != nil:
		return err
	case m.Shutdown.Request == "":
		return nil
	case d.At < m.Shutdown.Deadline:
		return refuse(NotReady, "%s has %s left to shut down", m.Name, Span(m.Shutdown.Deadline.Sub(d.At)))
	case m.Agent != External && m.Host != "":
		return refuse(NotReady, "the session of %s is ended by its host", m.Name)
	}
	reason := AtDeadline
	if m.Agent != External {
		reason = NoSession
	}
	d.end(m, &MemberStopped{Member: m.Name, Reason: reason}, true)
	return nil
}
