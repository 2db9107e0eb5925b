package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
)

// openMember opens the session of a member, with a line to write to it.
func (m *Model) openMember(name string) tea.Cmd {
	m.chosen.member, m.member, m.session = name, name, session{}
	m.typing = noLine(m) == ""
	past := m.away()
	if m.enter(atMember); past {
		m.notice = notice{"A session is shown as it is now: this is the present again.", waits}
	}
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
	if m.session.trouble != "" {
		out = append(out, "")
		return append(out, wrapAll(m.session.trouble, width, plain)...)
	}
	room := height - len(out)
	if m.session.pos.back > 0 {
		room--
	}
	shown := m.session.shown(width, room)
	if len(shown) == 0 {
		shown = []string{" " + faint.on(m.emptySession())}
	}
	if pad := room - len(shown); pad > 0 && len(m.session.lines) > 0 { // keep the last line next to the line to type in
		out = append(out, make([]string, pad)...)
	}
	out = append(out, shown...)
	if hidden := m.session.pos.back; hidden > 0 {
		out = append(out, " "+faint.on("↓ "+team.Count(hidden, "line")+" below; End shows the latest"))
	}
	return out
}

func (m *Model) emptySession() string {
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
	one := m.opened()
	if urgent && one.agent == team.Shell && one.turn {
		m.ask = yesOrNo("This ends the command of "+m.member+", and its task fails. End it? [y/N]", func(m *Model) tea.Cmd {
			return m.send(text, true)
		})
		return nil
	}
	return m.send(text, urgent)
}

// send sends the text of the line to the open member, and empties the line.
func (m *Model) send(text string, urgent bool) tea.Cmd {
	draft := m.draft()
	body := &team.SendMessage{To: m.member, Body: text}
	one := m.opened()
	said := "Sent to " + m.member + "."
	switch {
	case urgent && one.turn && one.agent == team.Shell:
		said = "Sent to " + m.member + " as urgent. It ends the command."
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

// escape handles Escape. In a line with text it leaves the line. Otherwise it asks whether to
// interrupt the member's turn, or goes back if the member is in no turn.
func (m *Model) escape() tea.Cmd {
	switch {
	case m.typing && !m.draft().empty():
		m.typing = false
		m.notice = notice{"Your text is kept. Tab goes back to it.", faint}
		return nil
	case noInterrupt(m) == "" && m.session.trouble == "":
		return m.interrupt()
	}
	return m.leave()
}

// interrupt asks whether to interrupt the turn of the open member.
func (m *Model) interrupt() tea.Cmd {
	return m.asksInterrupt(m.ref, m.member)
}

// asksInterrupt asks whether to interrupt the turn of a member.
func (m *Model) asksInterrupt(ref, member string) tea.Cmd {
	m.ask = &question{text: "Interrupt the turn of " + member + "? Esc again or y interrupts it.",
		options: []option{{[]string{"esc", "y", "Y"}, "yes", func(m *Model) tea.Cmd {
			return m.act(ref, &team.Interrupt{Member: member}, "The turn of "+member+" is interrupted. It waits for a message.")
		}}}}
	return nil
}

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

func noInterrupt(m *Model) string { return firstOf(notOurs(m), cannotInterrupt(m.opened())) }

// cannotInterrupt returns why the member's turn cannot be interrupted; "" if it can.
func cannotInterrupt(one memberRow) string {
	switch {
	case one.you:
		return "You lead this team: " + one.name + " has no session and no turns."
	case one.agent == team.External:
		return one.name + " runs its own session: its turns cannot be interrupted from here."
	case !one.turn:
		return one.name + " is not in a turn."
	}
	return ""
}

func noTask(m *Model) string {
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
		if !m.session.seek(text, false, true) {
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
	} else if !m.session.seek(m.session.search, later, false) {
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
			m.session.move(by(m), width, height)
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
		{[]string{"d"}, inMember, "diff", "show what is changed for the member's task, in its worktree as it is now", noTask, (*Model).diff},
		{[]string{"p"}, inMember, "plan", "show the last plan of the member", noPlan, (*Model).showPlan},
		{[]string{"/"}, inMember, "search", "search towards the beginning", noSession, (*Model).search},
		{[]string{"n"}, inMember, "", "go to the next match, towards the beginning", nil,
			func(m *Model) tea.Cmd { return m.again(false) }},
		{[]string{"N"}, inMember, "", "go to the next match, towards the end", nil,
			func(m *Model) tea.Cmd { return m.again(true) }},
		{[]string{"x"}, inMember, "interrupt", "interrupt the turn", noInterrupt, (*Model).interrupt},
		{[]string{"esc"}, inLine, "leave", "with an empty line: ask whether to interrupt the turn, or go back; else leave the " +
			"line", nil, (*Model).escape},
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
			return quit
		}},
	}
}
