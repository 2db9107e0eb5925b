package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// take processes the content of a line, in order.
func (w *Watcher) take(name string, src *source, m *protocol.Line, now team.Time) {
	at := src.stamp(m.At, now, w.team.lines)
	if m.Sub { // a subagent's tasks and messages are not the team's
		for _, u := range m.Uses {
			w.filter.Ignore(protocol.Hash(u.ID))
		}
		for _, r := range m.Results {
			w.filter.Ignore(protocol.Hash(r.ID))
		}
		return
	}
	by := w.speakers.speakerOf(src, m, w.team.roster)
	if by.Member == w.team.lead() {
		by.Member = ""
	}
	if m.Dir != "" && m.Session != "" && !m.Side {
		w.speakers.session(m.Session).Dir = m.Dir
	}
	switch m.Type {
	case "assistant":
		w.markIdle(src, cmp.Or(m.ModelMessage, m.UUID))
		for _, u := range m.Uses {
			w.use(name, src, m, u, by, at, now)
		}
	case "user":
		w.messages(&mailLine{UUID: m.UUID, First: m.Parent == "", Text: m.Text, Source: name, By: by, At: at})
		for _, r := range m.Results {
			w.result(&result{r, at}, now)
		}
	case "result", "cost-state":
		w.markIdle(src, "")
		if m.Totals != nil && by.Agent == "" &&
			(m.UUID == "" || w.correlation.done.once(protocol.Hash("totals "+m.UUID))) &&
			w.team.take(name, m, by) {
			w.team.recordChanges(w.team.recordID("usage"), by.Member, at)
		}
		w.turnEnded(by, at)
	case "system":
		w.system(src, m, by, at)
	}
	w.again()
}

// again processes the held facts again, while there is news that may identify their authors.
func (w *Watcher) again() {
	for w.speakers.news {
		w.speakers.news = false
		held := w.held
		w.held, w.dropping = nil, false
		for _, f := range held {
			w.fact(f)
		}
	}
}

// use processes one tool use.
func (w *Watcher) use(name string, src *source, m *protocol.Line, u protocol.Use, by speaker, at stamp, now team.Time) {
	root := by.Member == "" && by.Agent == ""
	is, why := protocol.Recognise(u, !root || w.team.exists() || w.creates(by.Session))
	if is && u.Name == "SendMessage" && w.inBackground(u, by) {
		is = false
	}
	if !is {
		w.filter.Ignore(protocol.Hash(u.ID))
		if why != "" {
			w.team.warn("%s: %s", name, why)
			if protocol.CategoryOf(u.Name) == "" {
				w.counts.Unknown++
			} else {
				w.counts.Invalid++
			}
		}
		return
	}
	if u.Name == "TaskUpdate" && !w.correlation.knows(u.ID) {
		w.begins(src, u, by, at)
	}
	c := &call{ID: u.ID, Tool: u.Name, Input: u.Input, By: by, At: at, ModelMsg: cmp.Or(m.ModelMessage,
		m.UUID), Source: name}
	if c.Quiet = w.doubtful(u, by); !c.Quiet {
		w.flagged(func() { w.show(c, nil) })
	}
	if r, ok := w.correlation.call(c, now); ok {
		w.answered(c, r)
	}
}

// inBackground reports whether a message is addressed to a background agent of its session, which
// is not a teammate.
func (w *Watcher) inBackground(u protocol.Use, by speaker) bool {
	var in protocol.SendInput
	if one := w.speakers.sessions[by.Session]; one == nil || len(one.Background) == 0 ||
		protocol.ReadJSON(u.Input, &in) != nil {
		return false
	}
	return slices.Contains(w.speakers.sessions[by.Session].Background, in.Addressee()) &&
		!w.team.roster.isMember(in.Addressee())
}

// doubtful reports whether a call may not belong to a team: an unidentified agent made it, or it
// spawns an agent while there is no team. Its result, or the agent's name, will decide.
func (w *Watcher) doubtful(u protocol.Use, by speaker) bool {
	switch {
	case by.Agent != "" && by.Member == "":
		return true
	case u.Name == "Agent" && !w.team.exists():
		var in protocol.SpawnInput
		return protocol.ReadJSON(u.Input, &in) != nil || in.TeamName == ""
	}
	return false
}

// answered processes a call with its result.
func (w *Watcher) answered(c *call, r *result) {
	w.speakers.news = w.speakers.news ||
		slices.ContainsFunc(w.held, func(f fact) bool { return f.Mail != nil && f.Mail.Call == c.ID })
	w.flagged(func() {
		if !c.Quiet {
			w.show(c, r)
		}
		w.fact(fact{Call: *c, Result: *r})
	})
}

// flagged sets the flag of the line if report adds a tool use.
func (w *Watcher) flagged(report func()) {
	n := len(w.team.out.Uses)
	report()
	w.team.out.TeamToolUse = w.team.out.TeamToolUse || len(w.team.out.Uses) > n
}

// show reports a call, or its result if r is set. A tool without a category is not shown.
func (w *Watcher) show(c *call, r *result) {
	if protocol.CategoryOf(c.Tool) == "" {
		return
	}
	one := protocol.ToolUse{Call: protocol.Use{ID: c.ID, Name: c.Tool, Input: c.Input}}
	if r != nil {
		one.Result = &r.Result
	}
	w.team.out.Uses = append(w.team.out.Uses, one)
}

// reveal reports a call that was not known to belong to the team before.
func (w *Watcher) reveal(f *fact) {
	if f.Call.Quiet {
		f.Call.Quiet = false
		w.show(&f.Call, nil)
		w.show(&f.Call, &f.Result)
	}
}

// begins checks whether a TaskUpdate makes its owner start a task. The owner is then not idle,
// whatever it completed before.
func (w *Watcher) begins(src *source, u protocol.Use, by speaker, at stamp) {
	var in protocol.TaskInput
	if protocol.ReadJSON(u.Input, &in) != nil || value(in.Status) != string(team.InProgress) {
		return
	}
	who := w.team.ownerOf(in, by.Member)
	src.removeIdleCandidate(who)
	if p := w.team.roster.People[who]; p != nil && p.Began.before(at) {
		p.Began = at
	}
}

// creates reports whether the session has a pending call that creates a team.
func (w *Watcher) creates(session string) bool {
	for _, c := range w.correlation.calls {
		if c.Tool == "TeamCreate" && c.By.Session == session {
			return true
		}
	}
	return false
}

func (w *Watcher) result(r *result, now team.Time) {
	if w.filter.Ignores(protocol.Hash(r.ID)) {
		return
	}
	c, ok := w.correlation.result(r, now)
	if !ok {
		return
	}
	w.answered(c, r)
}

// markIdle marks the members as idle that completed a task and started no other.
func (w *Watcher) markIdle(src *source, message string) {
	for _, a := range src.takeIdle(message) {
		if p := w.team.roster.at(a.Member); p != nil {
			p.Doing.learn(idle, a.When)
			w.team.recordChanges(w.team.recordID("idle"), a.Member, a.When)
		}
	}
}

// turnEnded marks a teammate as idle if its own stream says that its turn has ended.
func (w *Watcher) turnEnded(by speaker, at stamp) {
	if p := w.team.roster.People[by.Member]; p != nil && by.Member != "" && w.team.exists() &&
		w.team.matchesName(by.Team) {
		w.team.roster.at(by.Member).Doing.learn(idle, at)
		w.team.recordChanges(w.team.recordID("turn"), by.Member, at)
	}
}

func (w *Watcher) system(src *source, m *protocol.Line, by speaker, at stamp) {
	switch m.Subtype {
	case "init":
		if by.Member == "" && by.Agent == "" {
			one := w.speakers.session(m.Session)
			one.Init, one.Agents = true, m.Agents
		}
		if by.Member != "" && by.Team != "" && !w.team.mustWait(by, at, "") &&
			w.team.joins(by, at, "") { // its session begins
			w.team.recordChanges(w.team.recordID("init"), by.Member, at)
		}
	case "turn_duration":
		w.markIdle(src, "")
		w.turnEnded(by, at)
	case "task_notification":
		member := w.team.roster.Spawns[m.Task.Use]
		if member == "" {
			return // a subagent
		}
		p := w.team.roster.at(member)
		switch m.Task.Status {
		case "completed", "stopped":
			p.Ended.learn(shutdown, at)
		case "failed", "killed", "error":
			if p.Ended.learn(failed, at) {
				p.Fault = m.Task.Summary
			}
		}
		w.team.recordChanges(w.team.recordID("end"), member, at)
	}
}

// mailLine is a user line with messages from other members.
type mailLine struct {
	UUID   string  `json:"uuid,omitempty"`
	First  bool    `json:"first,omitempty"` // it is the first line of its transcript
	Text   string  `json:"text"`
	Source string  `json:"source"`
	By     speaker `json:"by"` // the agent whose context it is in
	At     stamp   `json:"at"`
	Call   string  `json:"call,omitempty"` // id of the broadcast whose result it waits for
}

// messages processes the messages from other members in a user line. If the owner of the context is
// unknown, the line is held until it is known.
func (w *Watcher) messages(m *mailLine) {
	by, at, name := m.By, m.At, m.Source
	if !strings.Contains(m.Text, "<teammate-message ") {
		return
	}
	if by.Agent != "" && by.Member == "" {
		by.Member = w.speakers.sideMember(by.Agent)
	}
	messages := protocol.MailOf(m.Text)
	switch m.Call = w.sending(messages, at); {
	case by.Agent != "" && by.Member == "", by.Member != "" && w.team.mustWait(by, at, name), m.Call != "":
		w.hold(fact{Mail: m})
		return
	case by.Member == "" && (!w.team.leads(by.Session, name) || w.team.precedes(at)),
		by.Member != "" && !w.team.joins(by, at, name):
		return
	}
	if m.UUID != "" && !w.once(protocol.Hash("letter "+m.UUID)) {
		return
	}
	id := "letters-" + cmp.Or(m.UUID, fmt.Sprint(w.team.lines))
	if w.team.remembers(id) {
		return
	}
	to := cmp.Or(by.Member, w.team.lead())
	if p := w.team.roster.at(by.Member); p != nil { // a turn begins
		p.Doing.learn(active, at)
		if p.Turn.before(at) {
			p.Turn = at
		}
	}
	for i, l := range messages {
		n, is := protocol.SignalOf(l.Text)
		if !is {
			n, is = protocol.SignalWithHelp(l.Text)
		}
		switch {
		case is:
			w.signal(n, l.From, to, at)
		case i == 0 && m.First && by.Member != "" && l.From == w.team.lead(): // its prompt, which the spawn has as well
		case w.team.mail.received(name, l.From, to, l.Text) && l.From != "":
			w.team.send(&team.Message{From: l.From, To: to, Type: team.TypeMessage, Body: l.Text, Summary: l.Summary})
		}
	}
	w.team.recordChanges(id, to, at)
}

// signal processes a message written by a member's program.
func (w *Watcher) signal(n *protocol.Signal, from, to string, at stamp) {
	if t := protocol.ParseTime(n.Timestamp); t != 0 {
		at.At = t
	}
	who := cmp.Or(n.From, from)
	switch n.Type {
	case "idle_notification":
		if p := w.team.roster.People[who]; p != nil {
			if w.team.roster.at(who).Doing.learn(idle, at) {
				p.Detail = n.Failure
			}
		}
	case "teammate_terminated":
		name, _, ok := strings.Cut(n.Message, " has shut down")
		if p := w.team.roster.People[name]; ok && p != nil {
			w.team.roster.at(name).Ended.learn(shutdown, at)
		}
	case "shutdown_request":
		w.team.askedToShutDown(to, n.Request, n.Reason, at)
	case "shutdown_approved":
		w.team.answeredShutdown(who, n.Request, true, n.Reason, at)
	case "shutdown_rejected":
		w.team.answeredShutdown(who, n.Request, false, n.Reason, at)
	case "plan_approval_request":
		w.team.planned(who, n.Request, n.Plan, at)
	case "plan_approval_response":
		w.team.answeredPlan(to, n.Request, n.Approved, n.Feedback, at)
	}
}

// hold holds a fact back until more is known. If there are too many, the facts of other teams are
// dropped first. Any other dropped fact is a gap.
func (w *Watcher) hold(f fact) {
	if w.held = append(w.held, f); len(w.held) <= maxHeld {
		return
	}
	oldest := slices.IndexFunc(w.held, func(f fact) bool { return w.team.ofOtherTeam(f.by()) })
	if oldest < 0 {
		oldest = 0
		if w.counts.Dropped++; !w.dropping {
			w.dropping = true
			w.gap(f.source(), w.speakers.source(f.source()),
				"too many facts by teammates that are still unidentified", f.Result.At.At)
		}
	}
	w.held = slices.Delete(w.held, oldest, oldest+1)
}

// sending returns the id of a broadcast call that contains one of the messages and still waits for
// its result; "" for none. A recipient's line may be read before that result, and the message alone
// does not show that it is a broadcast.
func (w *Watcher) sending(messages []protocol.Mail, at stamp) string {
	for id, c := range w.correlation.calls {
		var in protocol.SendInput
		if c.Tool != "SendMessage" || at.At-c.At.At > TTL || protocol.ReadJSON(c.Input, &in) != nil ||
			in.Kind() != "broadcast" {
			continue
		}
		from := cmp.Or(c.By.Member, w.speakers.sideMember(c.By.Agent), w.team.lead())
		if slices.ContainsFunc(messages, func(l protocol.Mail) bool { return l.From == from && l.Text == in.Body() }) {
			return id
		}
	}
	return ""
}
