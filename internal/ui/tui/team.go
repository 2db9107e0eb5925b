package tui

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// tab is a part of the view of a team.
type tab int

// The tabs. A wide screen shows the first three at once, and marks the one that keys act on.
const (
	tabMembers tab = iota
	tabTasks
	tabMessages
	tabTimeline
	tabGraph
	tabCosts
)

var tabs = [...]string{"members", "tasks", "messages", "timeline", "graph", "costs"}

// wide is the width from which members and tasks are shown side by side.
const wide = 120

// teamBody shows the open team.
func (m *Model) teamBody(width, height int) []string {
	switch {
	case m.team == nil && m.trouble != "":
		return wrapAll("This team cannot be read: "+m.trouble, width, alarm)
	case m.team == nil:
		return []string{"  " + faint.on("reading …")}
	case width >= wide && height >= 14 && m.tab <= tabMessages:
		return m.wideTeam(width, height)
	}
	out := []string{m.tabLine(width)}
	height--
	switch m.tab {
	case tabMembers:
		out = append(out, m.withFeed(m.memberTable(), tabMembers, width, height)...)
	case tabTasks:
		out = append(out, m.withFeed(m.taskTable(), tabTasks, width, height)...)
	case tabMessages:
		out = append(out, m.feedLines(width, height)...)
	case tabTimeline:
		out = append(out, m.timelineLines(width, height)...)
	case tabGraph:
		out = append(out, m.graphLines(width, height)...)
	case tabCosts:
		out = append(out, m.costLines(width, height)...)
	}
	return out
}

// tabLine names the tabs and marks the open one.
func (m *Model) tabLine(width int) string {
	var cells []cell
	for i, name := range tabs {
		one := cell{fmt.Sprintf(" %d %s ", i+1, name), faint}
		if width < 50 {
			one.text = fmt.Sprintf(" %d", i+1)
			if tab(i) == m.tab {
				one.text += " " + name + " "
			}
		}
		if tab(i) == m.tab {
			one.look = style{bold: true, reverse: true}
		}
		begin := widthOf(cells)
		cells = append(cells, one, cell{" ", plain})
		m.clickable = append(m.clickable, spot{frameTop, begin, widthOf(cells), onTab, name})
	}
	text, _ := joined(cells, width)
	return text
}

// withFeed shows a table, and the latest messages below it if they fit.
func (m *Model) withFeed(t table, of tab, width, height int) []string {
	defer func() { m.spotsOfTab(&t, of, 1, 0, width) }()
	needs := t.length() + 1
	const leastFeed = 4
	if height-needs < leastFeed {
		return t.listed(width, height)
	}
	out := append(t.lines(width, needs), "", " "+strong.on("Latest"))
	return append(out, m.feedLines(width, height-len(out))...)
}

// wideTeam shows members and tasks side by side, and messages below.
func (m *Model) wideTeam(width, height int) []string {
	members, tasks := m.memberTable(), m.taskTable()
	left := shared(width, &members, &tasks)
	top := min(max(members.length(), tasks.length())+2, max(6, height*3/5))
	heading := func(t tab, text string) string {
		if t == m.tab {
			return style{bold: true, reverse: true}.on(" " + text + " ")
		}
		return " " + strong.on(text) + " "
	}
	if m.tab != tabMembers {
		members.selected = -1
	}
	if m.tab != tabTasks {
		tasks.selected = -1
	}
	one := append([]string{heading(tabMembers, "1 members")}, members.listed(left-2, top-1)...)
	two := append([]string{heading(tabTasks, "2 tasks")}, tasks.listed(width-left, top-1)...)
	m.spotsOfTab(&members, tabMembers, 1, 0, left)
	m.spotsOfTab(&tasks, tabTasks, 1, left, width)
	m.clickable = append(m.clickable, spot{frameTop, 0, left, onTab, tabs[tabMembers]},
		spot{frameTop, left, width, onTab, tabs[tabTasks]})
	messages := heading(tabMessages, "3 messages")
	line := frameTop + top + 1
	m.clickable = append(m.clickable, spot{line, 0, visible(messages), onTab, tabs[tabMessages]})
	for t := tabTimeline; int(t) < len(tabs); t++ {
		begin := visible(messages) + gap
		m.clickable = append(m.clickable, spot{line, begin, begin + len(tabs[t]) + 2, onTab, tabs[t]})
		messages += "  " + faint.on(fmt.Sprintf("%d %s", int(t)+1, tabs[t]))
	}
	out := append(beside(one, two, left, top), "", messages)
	return append(out, m.feedLines(width, height-len(out))...)
}

// shared returns the width of the left one of two tables that stand side by side. A table gets room
// that the other one does not need, and the left one what it needs to show all columns. The width
// moves in steps, so that the tables stay where they are while a cell changes a little.
func shared(width int, left, right *table) int {
	step := width / 20
	at := width * 11 / 20
	all, _ := left.roomIn(2 * left.natural())
	const leastFlex = 12
	fits := func(at int) bool { // the right table loses no column, and its flex column can be read
		columns, _ := right.roomIn(width - at)
		then, spare := right.roomIn(width - at - step)
		return right.natural() <= width-at-step || then == columns && right.flexNeeds()+spare >= leastFlex
	}
	columns, _ := left.roomIn(at - gap)
	for at < width*13/20 && columns < all && fits(at) {
		at += step
		columns, _ = left.roomIn(at - gap)
	}
	for at > width*8/20 && right.natural() > width-at {
		if shown, spare := left.roomIn(at - step - gap); shown != columns || spare < 0 {
			break
		}
		at -= step
	}
	return at
}

func (m *Model) memberTable() table {
	t := table{columns: []column{{head: "MEMBER", most: 20, tail: true}, {head: "STATUS", most: 13},
		{head: "FOR", right: true},
		{head: "NOTE", flex: true}, {head: "MODEL", most: 18, spare: 6}, {head: "TOKENS", right: true, spare: 4},
		{head: "COST", right: true, spare: 3}, {head: "CTX", right: true, spare: 2},
		{head: "MAIL", right: true, spare: 1}}, selected: m.memberIndex()}
	for _, one := range m.team.members {
		state, mail, full := one.state, "", ""
		if one.mail > 0 {
			mail = fmt.Sprint(one.mail)
		}
		if one.context > 0 {
			full = fmt.Sprintf("%d%%", one.context)
		}
		works, look := one.works, plain
		if works == "" && one.lead {
			works, look = "leads", faint
		}
		if one.waits != "" {
			works, look = one.waits, waits
		}
		if !one.running {
			look = faint
		}
		name := style{color: one.color}
		if !one.running {
			name = faint
		}
		t.rows = append(t.rows, []cell{{one.name, name}, {state, stateStyle(state)}, {m.since(one.since), faint},
			{works, look}, {shortModel(one.model), faint}, {tokens(one.usage), faint}, {cost(one.usage), faint},
			{full, faint},
			{mail, waits}})
	}
	return t
}

// shortModel returns what tells the models of one maker apart. The view of a member has the whole
// name.
func shortModel(name string) string { return strings.TrimPrefix(name, "claude-") }

func (m *Model) taskTable() table {
	owner := column{head: "OWNER", most: 12, spare: 1}
	if m.width >= wide { // there is room for it, also beside the members
		owner.spare = 0
	}
	t := table{columns: []column{{head: "TASK", most: 16, tail: true}, {head: "STATUS", most: 22}, owner,
		{head: "TRY", right: true, spare: 2}, {head: "SUBJECT", flex: true}}, selected: m.taskIndex(),
		count: len(m.team.tasks)}
	if m.more() > 0 {
		t.count++
	}
	t.made = func(i int, row []cell) []cell {
		if i == len(m.team.tasks) {
			more := fmt.Sprintf("… and %d more: cadre task list", m.more())
			return append(row, cell{}, cell{}, cell{}, cell{}, cell{more, faint})
		}
		one := &m.team.tasks[i]
		try, look, subject := "", plain, one.subject
		if one.attempts > 1 {
			try = fmt.Sprint(one.attempts)
		}
		if one.status == team.Completed {
			look = faint
		}
		if one.outOfRetries && one.why != "" {
			subject += ": " + one.why
		}
		if subject == one.called {
			subject = ""
		}
		if one.progress != "" {
			subject = strings.TrimSuffix(one.progress+": "+subject, ": ")
		}
		return append(row, cell{one.called, look}, cell{one.state, stateStyle(one.state)},
			cell{one.owner, m.memberStyle(one.owner)}, cell{try, waits}, cell{subject, look})
	}
	return t
}

// has reports whether the team has or had a member of that name.
func (v *teamView) has(name string) bool {
	return slices.ContainsFunc(v.members, func(r memberRow) bool { return r.name == name })
}

// memberStyle returns the style of a member's name.
func (m *Model) memberStyle(name string) style {
	if m.team != nil {
		for _, one := range m.team.members {
			if one.name == name {
				return style{color: one.color}
			}
		}
	}
	return plain
}

func (m *Model) memberIndex() int {
	if i := slices.IndexFunc(m.team.members, func(r memberRow) bool { return r.name == m.chosen.member }); i >= 0 {
		return i
	}
	return min(0, len(m.team.members)-1)
}

func (m *Model) taskIndex() int {
	if i := slices.IndexFunc(m.team.tasks, func(r taskRow) bool { return r.id == m.chosen.task }); i >= 0 {
		return i
	}
	return min(0, len(m.team.tasks)-1)
}

// selectedMember returns the selected member of the open team.
func (m *Model) selectedMember() (memberRow, bool) {
	if m.team == nil || len(m.team.members) == 0 {
		return memberRow{}, false
	}
	return m.team.members[m.memberIndex()], true
}

// atWork returns how many teammates are in a turn. An external one counts while it holds a task. In
// a dormant team no member is at work, whatever the last record says.
func (v *teamView) atWork() (n int) {
	if v.dormant {
		return 0
	}
	for _, one := range v.members {
		if !one.lead && (one.turn && one.agent != team.External || one.agent == team.External && one.holds &&
			one.running) {
			n++
		}
	}
	return n
}

// wrapAll wraps a text, and paints its lines.
func wrapAll(text string, width int, look style) (out []string) {
	for part := range strings.Lines(text) {
		for _, one := range wrap(strings.TrimSuffix(part, "\n"), width-4) {
			out = append(out, "  "+look.on(one))
		}
	}
	return out
}
