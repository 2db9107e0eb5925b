package observe

import (
	"encoding/json"
	"slices"
	"strings"

	"cadre/internal/team"
)

// sent takes a SendMessage that succeeded.
func (o *Observer) sent(f *fact, out *outcome, actor string) {
	var in sendInput
	if lenient(json.Unmarshal(f.Call.Input, &in)) != nil {
		return
	}
	to, body, at := first(in.to(), strings.TrimPrefix(out.Target, "@")), in.body(), f.Result.At
	request := first(out.Request, in.request())
	switch in.kind() {
	case "message":
		to, body = first(strings.TrimPrefix(out.Routing.Target, "@"), to), first(body, out.Routing.Content)
		if o.mail.sent(actor, to, body) {
			o.send(&team.Message{From: actor, To: to, Type: team.TypeMessage, Body: body, Summary: in.Summary})
		}
	case "broadcast":
		o.broadcast(actor, out, body, in.Summary)
	case "shutdown_request":
		o.askedToShutDown(first(strings.TrimPrefix(out.Target, "@"), to, askedOf(request)), request, body, at)
	case "shutdown_response":
		who := askedOf(request)
		if f.Call.By.Member != "" {
			if who != "" && who != f.Call.By.Member {
				o.warn("%s answers %s, which is not its own", f.Call.By.Member, request)
				return
			}
			who = f.Call.By.Member
		}
		o.answeredShutdown(who, request, in.approved(), body, at)
	case "plan_approval_request":
		o.planned(actor, request, body, at)
	case "plan_approval_response":
		o.answeredPlan(first(to, askedOf(request)), request, in.approved(), body, at)
	}
}

// askedOf is whose request that is: "shutdown-1795219526319@alice",
// "plan_approval-1795219518352@carol@fx-team".
func askedOf(request string) string {
	parts := strings.Split(request, "@")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

func (o *Observer) broadcast(actor string, out *outcome, body, summary string) {
	everybody := out.Recipient
	if everybody == nil {
		for _, name := range append([]string{o.lead()}, o.roster.joined()...) {
			if p := o.roster.People[name]; name != actor && (p == nil || p.end() == "") {
				everybody = append(everybody, name)
			}
		}
	}
	var anew []string
	for _, name := range everybody {
		if o.mail.sent(actor, name, body) {
			anew = append(anew, name)
		}
	}
	if len(anew) > 0 || len(everybody) == 0 {
		o.send(&team.Message{From: actor, To: "*", Recipients: anew, Type: team.TypeBroadcast, Body: body,
			Summary: summary})
	}
}

// sending is the call of a broadcast that one of the letters is of and that still waits for its
// result, because the recipient was quicker; "" where there is none. A letter alone does not show
// that it went to everybody.
func (o *Observer) sending(letters []letter, at stamp) string {
	for id, c := range o.correlation.calls {
		var in sendInput
		if c.Tool != "SendMessage" || at.At-c.At.At > TTL || lenient(json.Unmarshal(c.Input, &in)) != nil ||
			in.kind() != "broadcast" {
			continue
		}
		from := first(c.By.Member, o.sideMember(c.By.Agent), o.lead())
		if slices.ContainsFunc(letters, func(l letter) bool { return l.From == from && l.Text == in.body() }) {
			return id
		}
	}
	return ""
}

// send puts a message into the record that is delivered: where nothing says otherwise, Claude Code
// brings it to its recipient by itself.
func (o *Observer) send(m *team.Message) {
	if !o.here() {
		return
	}
	o.post(m)
	to := m.Recipients
	if len(to) == 0 {
		to = []string{m.To}
	}
	for _, name := range to {
		if name == o.lead() || o.roster.isMember(name) {
			o.emit(&team.MessagesDelivered{Member: name, Seqs: []int64{m.Seq}})
		}
	}
}

// post puts a message into the record that waits for its recipient.
func (o *Observer) post(m *team.Message) {
	o.mailed++
	m.Seq, m.Priority = o.s.MessageSeq()+o.mailed, "normal"
	o.emit(&team.MessageSent{Message: *m})
}

// century is how long a teammate has to shut down, in milliseconds: Claude Code knows no deadline,
// so nobody here ends anybody at one.
const century = 100 * 365 * 24 * 60 * 60 * 1000

func (o *Observer) askedToShutDown(member, request, reason string, at stamp) {
	p := o.roster.at(member)
	if p == nil || !o.here() || !o.roster.saidAnew(request, "asked") {
		return
	}
	if p.Asked.Some && at.before(p.Asked.When) {
		return // another was asked since
	}
	p.Asked.learn(request, at)
	p.Reason = reason
	o.emit(&team.ShutdownRequested{Member: member, Request: request, Reason: reason, Deadline: at.At + century})
}

func (o *Observer) answeredShutdown(member, request string, approved bool, reason string, at stamp) {
	if !o.here() || member == "" || !o.roster.saidAnew(request, answer(approved)) {
		return
	}
	p := o.roster.People[member]
	if p == nil {
		return // nobody of the team
	}
	if approved {
		o.roster.at(member).Ended.learn(shutdown, at)
	}
	o.emit(&team.ShutdownAnswered{Member: member, Request: request, Approved: approved, Reason: reason})
}

func answer(approved bool) string {
	if approved {
		return "approved"
	}
	return "rejected"
}

func (o *Observer) planned(member, request, plan string, at stamp) {
	p := o.roster.at(member)
	if p == nil || !o.here() || !o.roster.saidAnew(request, "asked") || p.Plan.Some && at.before(p.Plan.When) {
		return
	}
	p.Plan.learn("submitted", at)
	o.emit(&team.PlanSubmitted{Member: member, Request: request, Plan: plan})
}

func (o *Observer) answeredPlan(member, request string, approved bool, feedback string, at stamp) {
	p := o.roster.at(member)
	if p == nil || !o.here() || !o.roster.saidAnew(request, answer(approved)) || p.Plan.Some && at.before(p.Plan.When) {
		return
	}
	p.Plan.learn(answer(approved), at)
	o.emit(&team.PlanAnswered{Member: member, Request: request, Approved: approved, Feedback: feedback})
}
