package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// take goes through what a line says, in its order.
func (o *Observer) take(name string, src *source, m *message, now team.Time) {
	at := src.stamp(m.At, now, o.lines)
	if m.Sub { // a subagent's tasks and messages are its own
		for _, u := range m.Uses {
			o.none(hash(u.ID))
		}
		for _, r := range m.Results {
			o.none(hash(r.ID))
		}
		return
	}
	by := o.speakerOf(src, m)
	if m.Dir != "" && m.Session != "" && !m.Side {
		o.session(m.Session).Dir = m.Dir
	}
	switch m.Type {
	case "assistant":
		o.fire(src, first(m.ModelMessage, m.UUID))
		for _, u := range m.Uses {
			o.use(name, src, m, u, by, at, now)
		}
	case "user":
		o.letters(&mailLine{UUID: m.UUID, First: m.Parent == "", Text: m.Text, Source: name, By: by, At: at})
		for i := range m.Results {
			o.result(&m.Results[i], at, now)
		}
	case "result", "cost-state":
		o.fire(src, "")
		o.usage(name, m, by, at)
		o.turnEnded(by, at)
	case "system":
		o.system(src, m, by, at)
	}
	o.again()
}

// again goes through the facts that are held, for as long as anything new is known that may tell
// whose they are.
func (o *Observer) again() {
	for o.retry {
		o.retry = false
		held := o.held
		o.held, o.dropping = nil, false
		for _, f := range held {
			o.fact(f)
		}
	}
}

// use takes one tool use.
func (o *Observer) use(name string, src *source, m *message, u use, by speaker, at stamp, now team.Time) {
	root := by.Member == "" && by.Agent == ""
	is, why := recognise(u, !root || o.here() || o.creates(by.Session))
	if is && u.Name == "SendMessage" && o.inBackground(u, by) {
		is = false
	}
	if !is {
		o.none(hash(u.ID))
		if why != "" {
			o.warn("%s: %s", name, why)
			if tools[u.Name].category == "" {
				o.counts.Unknown++
			} else {
				o.counts.Invalid++
			}
		}
		return
	}
	if u.Name == "TaskUpdate" && !o.correlation.knows(u.ID) {
		o.begins(src, u, by, at)
	}
	c := &call{ID: u.ID, Tool: u.Name, Input: u.Input, By: by, At: at, ModelMsg: first(m.ModelMessage,
		m.UUID), Source: name}
	if c.Quiet = o.doubtful(u, by); !c.Quiet {
		o.flagged(func() { o.supplement(c, nil) })
	}
	if r, ok := o.correlation.call(c, now); ok {
		o.answered(c, r)
	}
}

// inBackground reports whether a message is for an agent that its session has in the background,
// and that is no teammate.
func (o *Observer) inBackground(u use, by speaker) bool {
	var in sendInput
	if one := o.sessions[by.Session]; one == nil || len(one.Background) == 0 ||
		lenient(json.Unmarshal(u.Input, &in)) != nil {
		return false
	}
	return slices.Contains(o.sessions[by.Session].Background, in.to()) && !o.roster.isMember(in.to())
}

// doubtful reports whether a call may be no team's after all: that of an agent of whom it is not
// known whether it is a teammate, and one that begins an agent where there is no team. Its result,
// or a name, will tell.
func (o *Observer) doubtful(u use, by speaker) bool {
	switch {
	case by.Agent != "" && by.Member == "":
		return true
	case u.Name == "Agent" && !o.here():
		var in spawnInput
		return lenient(json.Unmarshal(u.Input, &in)) != nil || in.TeamName == ""
	}
	return false
}

// answered takes a call and its result.
func (o *Observer) answered(c *call, r *result) {
	o.retry = o.retry || slices.ContainsFunc(o.held, func(f fact) bool { return f.Mail != nil && f.Mail.Call == c.ID })
	o.flagged(func() {
		if !c.Quiet {
			o.supplement(c, r)
		}
		o.fact(fact{Call: *c, Result: *r})
	})
}

// flagged sets the flag of the line if supplement makes a supplement of it.
func (o *Observer) flagged(supplement func()) {
	n := len(o.out.Supplements)
	supplement()
	o.out.TeamToolUse = o.out.TeamToolUse || len(o.out.Supplements) > n
}

// aloud makes the supplements of a call of which it is known only now that it is a team's.
func (o *Observer) aloud(f *fact) {
	if f.Call.Quiet {
		f.Call.Quiet = false
		o.supplement(&f.Call, nil)
		o.supplement(&f.Call, &f.Result)
	}
}

// begins looks whether a TaskUpdate has its owner begin a task: then it is not idle, whatever it
// has completed before.
func (o *Observer) begins(src *source, u use, by speaker, at stamp) {
	var in taskInput
	if lenient(json.Unmarshal(u.Input, &in)) != nil || value(in.Status) != string(team.InProgress) {
		return
	}
	who := o.ownerOf(in, by.Member)
	src.Arms = slices.DeleteFunc(src.Arms, func(a arm) bool { return a.Member == who })
	if p := o.roster.People[who]; p != nil && p.Began.before(at) {
		p.Began = at
	}
}

// creates reports whether the session is about to create a team.
func (o *Observer) creates(session string) bool {
	for _, c := range o.correlation.calls {
		if c.Tool == "TeamCreate" && c.By.Session == session {
			return true
		}
	}
	return false
}

// ownerOf is the member whom a TaskUpdate is about: the owner that it names, else that of the task,
// else whoever makes it.
func (o *Observer) ownerOf(in taskInput, actor string) string {
	if in.Owner != nil {
		return *in.Owner
	}
	if e := o.board.Tasks[in.TaskID]; e != nil && e.Owner.V != "" {
		return e.Owner.V
	}
	return actor
}

func (o *Observer) result(r *result, at stamp, now team.Time) {
	if r.At = at; o.isNone(hash(r.ID)) {
		return
	}
	c, ok := o.correlation.result(r, now)
	if !ok {
		return
	}
	o.answered(c, r)
}

// fire says idle of the members that completed a task and took no other, now that the message after
// it has ended: another has begun, or the turn is over ("").
func (o *Observer) fire(src *source, message string) {
	var kept []arm
	for _, a := range src.Arms {
		switch {
		case message == a.After && message != "", message == a.Next && message != "":
			kept = append(kept, a)
		case a.Next == "" && message != "":
			a.Next = message
			kept = append(kept, a)
		default:
			if p := o.roster.at(a.Member); p != nil {
				p.Doing.learn(idle, a.When)
				o.settle(o.anID("idle"), a.Member, a.When)
			}
		}
	}
	src.Arms = kept
}

// turnEnded says idle of a teammate whose own stream says that its turn is over.
func (o *Observer) turnEnded(by speaker, at stamp) {
	if p := o.roster.People[by.Member]; p != nil && by.Member != "" && o.mine(by) {
		o.roster.at(by.Member).Doing.learn(idle, at)
		o.settle(o.anID("turn"), by.Member, at)
	}
}

// mine reports whether a teammate is of the team that is observed.
func (o *Observer) mine(by speaker) bool {
	return o.here() && o.called(by.Team)
}

func (o *Observer) system(src *source, m *message, by speaker, at stamp) {
	switch m.Subtype {
	case "init":
		if by.Member == "" && by.Agent == "" {
			one := o.session(m.Session)
			one.Init, one.Agents = true, m.Agents
		}
		if by.Member != "" && by.Team != "" && !o.waits(by, at, "") && o.joins(by, at, "") { // its session begins
			o.settle(o.anID("init"), by.Member, at)
		}
	case "turn_duration":
		o.fire(src, "")
		o.turnEnded(by, at)
	case "task_notification":
		member := o.roster.Spawns[m.Task.Use]
		if member == "" {
			return // a subagent's
		}
		p := o.roster.at(member)
		switch m.Task.Status {
		case "completed", "stopped":
			p.Ended.learn(shutdown, at)
		case "failed", "killed", "error":
			if p.Ended.learn(failed, at) {
				p.Fault = m.Task.Summary
			}
		}
		o.settle(o.anID("end"), member, at)
	}
}

// mailLine is a user's line with letters from other members.
type mailLine struct {
	UUID   string  `json:"uuid,omitempty"`
	First  bool    `json:"first,omitempty"` // of its transcript
	Text   string  `json:"text"`
	Source string  `json:"source"`
	By     speaker `json:"by"` // in whose context it is
	At     stamp   `json:"at"`
	Call   string  `json:"call,omitempty"` // the broadcast whose result it waits for
}

// letters takes what a user's line brings from other members. In a context of which it is not known
// yet whose it is, it waits for that.
func (o *Observer) letters(m *mailLine) {
	by, at, name := m.By, m.At, m.Source
	if !strings.Contains(m.Text, "<teammate-message ") {
		return
	}
	if by.Agent != "" && by.Member == "" {
		by.Member = o.sideMember(by.Agent)
	}
	letters := lettersOf(m.Text)
	switch m.Call = o.sending(letters, at); {
	case by.Agent != "" && by.Member == "", by.Member != "" && o.waits(by, at, name), m.Call != "":
		o.hold(fact{Mail: m})
		return
	case by.Member == "" && (!o.leads(by.Session, name) || o.precedes(at)), by.Member != "" && !o.joins(by, at, name):
		return
	}
	if m.UUID != "" {
		h := hash("letter " + m.UUID)
		if o.correlation.done.has(h) {
			o.counts.Duplicates++
			return
		}
		o.correlation.done.add(h)
	}
	id := "letters-" + first(m.UUID, fmt.Sprint(o.lines))
	if o.s != nil && o.s.Remembers(id) {
		return
	}
	to := first(by.Member, o.lead())
	if p := o.roster.at(by.Member); p != nil { // a turn of its own begins
		p.Doing.learn(active, at)
		if p.Turn.before(at) {
			p.Turn = at
		}
	}
	for i, l := range letters {
		var n notice
		switch {
		case isObject([]byte(l.Text)) && json.Unmarshal([]byte(l.Text), &n) == nil && n.Type != "",
			o.withTail(l.Text, &n):
			o.notice(&n, l.From, to, at)
		case i == 0 && m.First && by.Member != "" && l.From == o.lead(): // its prompt, which its spawn says
		case o.mail.received(name, l.From, to, l.Text) && l.From != "":
			o.send(&team.Message{From: l.From, To: to, Type: team.TypeMessage, Body: l.Text, Summary: l.Summary})
		}
	}
	o.settle(id, to, at)
}

// withTail reads a letter in JSON behind which the program wrote a word of help.
func (o *Observer) withTail(text string, n *notice) bool {
	if !strings.HasPrefix(text, `{"type":"`) {
		return false
	}
	object, _, ok := strings.Cut(text, "}\n")
	return ok && json.Unmarshal([]byte(object+"}"), n) == nil && n.Type != ""
}

// notice takes a letter that the program of a member wrote.
func (o *Observer) notice(n *notice, from, to string, at stamp) {
	if t := parseTime(n.Timestamp); t != 0 {
		at.At = t
	}
	who := first(n.From, from)
	switch n.Type {
	case "idle_notification":
		if p := o.roster.People[who]; p != nil {
			if o.roster.at(who).Doing.learn(idle, at) {
				p.Detail = n.Failure
			}
		}
	case "teammate_terminated":
		name, _, ok := strings.Cut(n.Message, " has shut down")
		if p := o.roster.People[name]; ok && p != nil {
			o.roster.at(name).Ended.learn(shutdown, at)
		}
	case "shutdown_request":
		o.askedToShutDown(to, n.Request, n.Reason, at)
	case "shutdown_approved":
		o.answeredShutdown(who, n.Request, true, n.Reason, at)
	case "shutdown_rejected":
		o.answeredShutdown(who, n.Request, false, n.Reason, at)
	case "plan_approval_request":
		o.planned(who, n.Request, n.Plan, at)
	case "plan_approval_response":
		o.answeredPlan(to, n.Request, n.Approved, n.Feedback, at)
	}
}
