package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

// openMember opens the session of a member, with a line to write to it.
func (m *Model) openMember(name string) tea.Cmd {
	m.chosen.member, m.member, m.session = name, name, session{}
	m.typing = noLine(m) == ""
	m.travel.session = session{}
	m.enter(atMember)
	m.order++
	out, order, ref := m.out, m.order, m.ref
	return func() tea.Msg {
		out.OpenSession(order, ref, name)
		return nil
	}
}

// closeMember closes the session.
func (m *Model) closeMember() tea.Cmd {
	m.member, m.session, m.typing = "", session{}, false
	m.order++
	out, order := m.out, m.order
	return func() tea.Msg {
		out.OpenSession(order, "", "")
		return nil
	}
}

// nextMember opens the session of the member that is by rows further.
func (m *Model) nextMember(by int) tea.Cmd {
	if m.team == nil || len(m.team.members) == 0 {
		return nil
	}
	typing := m.typing
	m.moveMember(by)
	cmd := m.openMember(m.chosen.member)
	m.typing = typing && noLine(m) == ""
	return cmd
}

// opened returns the row of the open member.
func (m *Model) opened() memberRow {
	if m.team != nil {
		for _, one := range m.team.members {
			if one.name == m.member {
				return one
			}
		}
	}
	return memberRow{name: m.member}
}

// memberBody shows what the member works on, and its session.
func (m *Model) memberBody(width, height int) []string {
	one := m.opened()
	var out []string
	if one.works != "" && height > 6 {
		label := " works on  "
		switch {
		case !one.running:
			label = " ended: "
		case !one.holds:
			label = " "
		}
		out = append(out, line(width, []cell{{label, faint}, {one.works, plain}}, nil))
	}
	if one.waits != "" && height > 6 {
		out = append(out, line(width, []cell{{" " + one.waits, waits}}, nil))
	}
	if one.unhosted {
		resume := render.CommandFor(team.Hint{Action: team.ActResume, Team: m.ref}).String()
		out = append(out, wrapAll(sessionview.Unhosted(resume), width, waits)...)
	}
	if m.session.trouble != "" {
		out = append(out, "")
		return append(out, wrapAll(m.session.trouble, width, plain)...)
	}
	seen, room := m.seen(), height-len(out)
	if seen.pos.back > 0 {
		room--
	}
	shown := seen.shown(width, room)
	if len(shown) == 0 {
		shown = []string{" " + faint.on(m.emptySession())}
	}
	if pad := room - len(shown); pad > 0 && len(seen.lines) > 0 { // keep the last line next to the line to type in
		out = append(out, make([]string, pad)...)
	}
	out = append(out, shown...)
	if hidden := seen.pos.back; hidden > 0 {
		out = append(out, " "+faint.on("↓ "+team.Count(hidden, "line")+" below; End shows the latest"))
	}
	return out
}

func (m *Model) emptySession() string {
	if m.away() {
		return "Its session had shown nothing at that time, or that is not kept."
	}
	if m.session.ended {
		return "This member has ended, and its session was not kept."
	}
	return "Its session has shown nothing yet."
}

// room returns the size of the part of the screen that shows the session.
func (m *Model) room() (width, height int) { return m.width, max(1, m.height-5) }

// memberTitle adds details of the member to the title.
func (m *Model) memberTitle(add func(string, style)) {
	one := m.opened()
	add(one.name, style{color: one.color, bold: true})
	if one.state == "" {
		return
	}
	add(one.state, stateStyle(one.state))
	for _, text := range []string{m.since(one.since), one.role, one.agent, one.model, tokens(one.usage),
		cost(one.usage)} {
		if text != "" {
			add(text, faint)
		}
	}
	if one.context > 0 {
		add(fmt.Sprintf("context %d%%", one.context), faint)
	}
}

// draft returns the line that was typed to the open member.
func (m *Model) draft() *field { return m.draftTo(m.ref + "/" + m.member) }

// draftTo returns the line that was typed to a member; key is its team and name.
func (m *Model) draftTo(key string) *field {
	if m.drafts == nil {
		m.drafts = map[string]*field{}
	}
	if m.drafts[key] == nil {
		m.drafts[key] = &field{}
	}
	return m.drafts[key]
}

// say sends the typed line to the member. A line that begins with ! is urgent.
func (m *Model) say(urgent bool) tea.Cmd {
	draft := m.draft()
	text := strings.TrimSpace(draft.String())
	if after, is := strings.CutPrefix(text, "!"); is {
		text, urgent = strings.TrimSpace(after), true
	}
	if text == "" {
		m.notice = notice{"Type a message to " + m.member + " first.", waits}
		return nil
	}
	if m.away() {
		m.notice = notice{inPast, waits}
		return nil
	}
	one := m.opened()
	if urgent && one.ending != "" {
		m.ask = yesOrNo(one.ending+" [y/N]", func(m *Model) tea.Cmd { return m.send(text, true) })
		return nil
	}
	return m.send(text, urgent)
}

// send sends the text of the line to the open member, and empties the line.
func (m *Model) send(text string, urgent bool) tea.Cmd {
	if m.away() { // since the question
		m.notice = notice{inPast, waits}
		return nil
	}
	draft := m.draft()
	body := &team.SendMessage{To: m.member, Body: text}
	one := m.opened()
	said := "Sent to " + m.member + "."
	switch {
	case one.unhosted:
		said = "Sent to " + m.member + ", which gets it when a process runs its session again."
	case urgent && one.ending != "":
		said = "Sent to " + m.member + " as urgent. It ends the command."
	case one.agent == team.Shell && one.held:
		said = "Sent to " + m.member + ". It continues with its tasks."
	case one.agent == team.Shell:
		said = "Sent to " + m.member + ", which reads no messages: it runs the commands of its tasks."
	case urgent && one.turn:
		said = "Sent to " + m.member + " as urgent. It interrupts the turn."
	case urgent:
		said = "Sent to " + m.member + " as urgent."
	case one.turn && one.agent != team.External:
		said = "Sent to " + m.member + ". It gets the message at the next tool boundary."
	}
	if urgent {
		body.Priority = "urgent"
	}
	out, ref, member, typed := m.out, m.ref, m.member, draft.String()
	draft.set("")
	return func() tea.Msg {
		msg := out.Act(ref, body, said)
		if acted, is := msg.(actedMsg); is && acted.err != "" {
			acted.draft = &unsent{ref + "/" + member, typed}
			return acted
		}
		return msg
	}
}

// unsent is a message that was refused. It returns to the line from which it was sent.
type unsent struct{ key, text string }

// diff shows what was changed for the member's task.
func (m *Model) diff() tea.Cmd {
	return m.openDiff(m.opened().task)
}

// noLine returns why the person cannot write to the open member; "" if they can.
func noLine(m *Model) string {
	one := m.opened()
	switch why := notOurs(m); {
	case why != "":
		return why
	case m.away():
		return inPast
	case one.you:
		return "You lead this team: " + one.name + " is you."
	case one.state != "" && !one.running:
		return one.name + " has ended, and reads no messages."
	}
	return ""
}

// closesLine closes the line to a member that has ended since, unless it has a text.
func (m *Model) closesLine() {
	if m.place == atMember && m.typing && m.draft().empty() && noLine(m) != "" {
		m.typing = false
	}
}

func noTask(m *Model) string {
	if why := notInThePast(m); why != "" {
		return why
	}
	if m.opened().task == "" {
		return m.member + " has no task."
	}
	return ""
}

func noSession(m *Model) string {
	if m.session.trouble != "" {
		return "There is no session to search."
	}
	return ""
}

// search asks for a text, and shows the last line with it.
func (m *Model) search() tea.Cmd {
	m.asks(" search ▸ ", plain, m.session.search, func(m *Model, text string, _ bool) tea.Cmd {
		if m.session.search = text; !m.seen().seek(text, false, true) {
			m.notice = notice{"No earlier line has " + oneLine(text) + ".", waits}
		}
		return nil
	})
	return nil
}

// again goes to the next line with the text that was searched for.
func (m *Model) again(later bool) tea.Cmd {
	if m.session.search == "" {
		m.notice = notice{"Search for something first, with /.", waits}
	} else if !m.seen().seek(m.session.search, later, false) {
		m.notice = notice{"No further match in that direction.", waits}
	}
	return nil
}

// toTasks leads back from a member or a task to the list of tasks.
func (m *Model) toTasks() tea.Cmd {
	m.tab = tabTasks
	return m.leave()
}

// memberKeys returns the keys of the view of a member.
func memberKeys() []key {
	type do = func(*Model) tea.Cmd
	scroll := func(by func(*Model) int) do {
		return func(m *Model) tea.Cmd {
			width, height := m.room()
			m.seen().move(by(m), width, height)
			return nil
		}
	}
	next := func(by int) do { return func(m *Model) tea.Cmd { return m.nextMember(by) } }
	return []key{ // in the line, letters are text
		{[]string{"enter"}, inLine, "send", "send the line; the member gets it at the next tool boundary", nil,
			func(m *Model) tea.Cmd { return m.say(false) }},
		{[]string{"ctrl+s", "alt+enter"}, inLine, "send urgent", "send the line as urgent: it interrupts the turn " +
			"(! before its first word does the same)", nil, func(m *Model) tea.Cmd { return m.say(true) }},
		{[]string{"tab"}, inLine, "session", "leave the line, so that letters are keys", nil,
			func(m *Model) tea.Cmd { m.typing = false; return nil }},
		{[]string{"tab", "enter", "i"}, inMember, "write", "write to the member", noLine,
			func(m *Model) tea.Cmd { m.typing = true; return nil }},
		{[]string{"d"}, inMember, "diff", "show what is changed for the member's task, in its worktree as it is now",
			noTask, (*Model).diff},
		{[]string{"p"}, inMember, "plan", "show the last plan of the member", noPlan, (*Model).showPlan},
		{[]string{"/"}, inMember, "search", "search towards the beginning", noSession, (*Model).search},
		{[]string{"n"}, inMember, "", "go to the next match, towards the beginning", nil,
			func(m *Model) tea.Cmd { return m.again(false) }},
		{[]string{"N"}, inMember, "", "go to the next match, towards the end", nil,
			func(m *Model) tea.Cmd { return m.again(true) }},
		{[]string{"x"}, inMember, "interrupt", "interrupt the turn", noInterrupt, (*Model).interrupt},
		{[]string{"esc", "b"}, inMember, "back", "ask whether to interrupt the turn, or go back", nil, (*Model).escape},
		{[]string{"esc"}, inLine, "leave", "with an empty line: ask whether to interrupt the turn, or go back; else " +
			"leave the line", nil, (*Model).escape},
		{[]string{"up"}, inLine, "", "scroll up", nil, scroll(func(*Model) int { return -1 })},
		{[]string{"down"}, inLine, "", "scroll down", nil, scroll(func(*Model) int { return 1 })},
		{[]string{"pgup"}, inLine, "", "go up by a page", nil, scroll(func(m *Model) int { return -m.page() })},
		{[]string{"pgdown"}, inLine, "", "go down by a page", nil, scroll(func(m *Model) int { return m.page() })},
		{[]string{"shift+up", "K"}, inMember, "", "view the member above", noMembers, next(-1)},
		{[]string{"shift+down", "J"}, inMember, "", "view the member below", noMembers, next(1)},
		{[]string{"ctrl+t", "t"}, inMember, "", "show the list of tasks", nil, (*Model).toTasks},
		{[]string{"shift+up"}, inLine, "", "view the member above", noMembers, next(-1)},
		{[]string{"shift+down"}, inLine, "", "view the member below", noMembers, next(1)},
		{[]string{"ctrl+t"}, inLine, "", "show the list of tasks", nil, (*Model).toTasks},
		{[]string{"f1"}, inLine, "help", "show all keys", nil, (*Model).help},
		{[]string{"ctrl+c"}, inLine, "", "clear the line, or quit if it is empty", nil, func(m *Model) tea.Cmd {
			if !m.draft().empty() {
				m.draft().set("")
				return nil
			}
			return m.quits()
		}},
	}
}
