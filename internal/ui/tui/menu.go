package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/team"
)

// menu is a list from which a person chooses one entry. It stands in place of the view.
type menu struct {
	title    string
	text     []string // shown above the entries; sanitized
	choices  []choice
	selected int
	under    *menu // the menu that opened this one; nil for none
}

// choice is one entry of a menu.
type choice struct {
	name  string // as the command line calls it
	about string // what it does, or its current value
	why   string // why it cannot be chosen now; "" if it can
	do    func(*Model) tea.Cmd
}

// opens shows a menu, on top of the menu that is open.
func (m *Model) opens(title string, text []string, choices []choice) {
	m.menu = &menu{title: title, text: text, choices: choices, under: m.menu}
}

// choose carries out the selected entry. It closes all menus, unless the entry opens another one.
func (m *Model) choose() tea.Cmd {
	open := m.menu
	if len(open.choices) == 0 {
		return nil
	}
	one := open.choices[open.selected]
	if one.why != "" {
		m.notice = notice{one.why, waits}
		return nil
	}
	cmd := one.do(m)
	if m.menu == open {
		m.menu = nil
	}
	return cmd
}

// lines shows the entries, each with its whole explanation, and below them why the selected one
// cannot be chosen.
func (n *menu) lines(width, height int) []string {
	out := []string{" " + strong.on(render.Cut(n.title, width-2)), ""}
	for _, l := range n.text {
		for _, part := range wrap(l, width-3) {
			out = append(out, "  "+part)
		}
	}
	if len(n.text) > 0 {
		out = append(out, "")
	}
	if len(n.choices) == 0 {
		return out
	}
	var below []string
	if why := n.choices[n.selected].why; why != "" {
		below = append([]string{""}, wrapAll("Not now: "+why, width, waits)...)
	}
	return append(append(out, n.listed(width, height-len(out)-len(below))...), below...)
}

// leastAbout is the least width of explanations beside the names. In a narrower menu they stand
// below.
const leastAbout = 30

// entries returns the lines of each entry.
func (n *menu) entries(width int) (all [][]string) {
	room, indent := width-len("  "), 2 // below the names
	names := 0
	for _, c := range n.choices {
		names = max(names, drawn(c.name))
	}
	under := room-names-gap < leastAbout
	if !under {
		indent = names + gap
	}
	for i, c := range n.choices {
		prefix, look, words := "  ", plain, faint
		if c.why != "" {
			look = faint
		}
		if i == n.selected {
			prefix, look, words = strong.on(mark), strong, plain
		}
		about := wrap(c.about, room-indent)
		first := prefix + look.on(render.Cut(c.name, room))
		if !under {
			first += strings.Repeat(" ", indent-drawn(c.name)) + words.on(about[0])
			about = about[1:]
		}
		lines := []string{first}
		for _, part := range about {
			lines = append(lines, strings.Repeat(" ", len("  ")+indent)+words.on(part))
		}
		all = append(all, lines)
	}
	return all
}

// listed returns the entries that fit, around the selected one, and how many are hidden.
func (n *menu) listed(width, height int) (out []string) {
	all := n.entries(width)
	total := 0
	for _, lines := range all {
		total += len(lines)
	}
	from, to := 0, len(all)
	if total > height {
		from, to = n.selected, n.selected+1
		used := len(all[n.selected]) + 1 // a line says how many are hidden
		for {
			up := from > 0 && used+len(all[max(0, from-1)]) <= height
			down := to < len(all) && used+len(all[min(to, len(all)-1)]) <= height
			switch {
			case up && (!down || n.selected-from < to-n.selected):
				from--
				used += len(all[from])
				continue
			case down:
				used += len(all[to])
				to++
				continue
			}
			break
		}
	}
	for _, lines := range all[from:to] {
		out = append(out, lines...)
	}
	if from > 0 || to < len(all) {
		out = append(out, hiddenRows(from, len(all)-to))
	}
	return out
}

// menuKeys returns the keys of a menu.
func menuKeys() []key {
	return []key{
		{[]string{"enter", "right", "l"}, inMenu, "choose", "carry out the selected action", nil, (*Model).choose},
		{[]string{".", "f2"}, inTeam | inTask | inMember | inAttention, "actions", "what can be done to the team, " +
			"the member or the task that is selected", noActions, (*Model).actions},
		{[]string{".", "f2"}, inTeams, "actions", "what can be done to the team", (*Model).noTeam,
			(*Model).listedActions},
		{[]string{"f2"}, inLine, "", "what can be done to the team and the member", noActions, (*Model).actions},
	}
}

// noActions returns why no actions are offered now.
func noActions(m *Model) string {
	if m.away() {
		return inPast
	}
	if one, is := m.item(); m.place == atAttention && (!is || m.team == nil || m.team.ref != one.ref) {
		return "Select an item first."
	}
	if m.team != nil && m.team.observed {
		return ""
	}
	return closedTeam(m)
}

// asksFirst returns a function that asks for confirmation, and then runs a command of cadre on the
// team.
func asksFirst(text string, args ...string) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		m.ask = yesOrNo(text+" [y/N]", func(m *Model) tea.Cmd { return m.runCommand(args) })
		return nil
	}
}

// listedActions shows what can be done to the team that is selected in the list, once it has been
// read.
func (m *Model) listedActions() tea.Cmd {
	one := m.teams[m.teamIndex()]
	m.chosen.team = one.ref
	if m.ref == one.ref && m.team != nil {
		return m.actions()
	}
	m.menuFor = one.ref
	m.notice = notice{"Reading the team " + oneLine(one.name) + " …", faint}
	return m.open(one.ref)
}

// opensMenu opens the menu that was asked for in the list of teams. A key that was pressed since
// has cancelled it.
func (m *Model) opensMenu() {
	if m.menuFor == "" || m.menuFor != m.ref || m.place != atTeams || m.team == nil {
		return
	}
	m.menuFor, m.notice = "", notice{}
	m.actions()
}

// subject returns the member and the task that actions are for; nil for none.
func (m *Model) subject() (one *memberRow, task *taskRow) {
	name, id := "", ""
	switch {
	case m.place == atTeams:
	case m.place == atMember:
		name = m.member
	case m.place == atTask:
		id = m.shown.id
	case m.place == atAttention:
		item, _ := m.item()
		name, id = item.Member, item.Task
	case m.tab == tabTasks:
		if len(m.team.tasks) > 0 {
			task = &m.team.tasks[m.taskIndex()]
		}
	case m.tab == tabMembers || m.tab == tabTimeline:
		if len(m.team.members) > 0 {
			name = m.team.members[m.memberIndex()].name
		}
	}
	for i := range m.team.members {
		if m.team.members[i].name == name && name != "" {
			one = &m.team.members[i]
		}
	}
	for i := range m.team.everyTask {
		if m.team.everyTask[i].id == id && id != "" {
			task = &m.team.everyTask[i]
		}
	}
	return one, task
}

// actions shows the commands for what is selected, and for its team, in the words of the command
// line.
func (m *Model) actions() tea.Cmd {
	one, task := m.subject()
	if m.team.observed { // nothing can be done to its members and tasks
		one, task = nil, nil
	}
	var choices []choice
	title := "team " + m.team.name
	if task != nil {
		title = "task " + task.called + ", team " + m.team.name
		choices = append(choices, m.taskActions(*task)...)
	}
	if one != nil {
		if title = one.name + ", team " + m.team.name; task != nil {
			title = one.name + ", task " + task.called + ", team " + m.team.name
		}
		choices = append(choices, m.memberActions(*one)...)
	}
	m.menu = nil
	m.opens(title, nil, append(choices, m.teamActions()...))
	return nil
}

// memberActions returns the commands about a member; none about the person who leads.
func (m *Model) memberActions(one memberRow) []choice {
	ref, id := m.ref, m.team.id
	if one.you { // a person has no session that cadre could steer
		return nil
	}
	ended, leads := "", ""
	if !one.running {
		ended = one.name + " has ended."
	}
	if one.lead {
		leads = one.name + " leads. End the team instead, with abort or shutdown --graceful."
	}
	budget := ""
	if one.lead {
		budget = one.name + " leads, and without it the team stops. Set the budget of the team."
	}
	mode := ended
	switch one.agent {
	case team.Shell:
		mode = one.name + " runs the commands of its tasks, and no permission mode limits them."
	case team.External:
		mode = one.name + " runs its own session, and asks by the rules of that session."
	}
	session := ended
	if one.agent == team.External {
		session = one.name + " runs its own session, and cadre cannot replace it."
	}
	ends := "End its turn. It keeps its task, and "
	if one.agent == team.Shell {
		ends = "End its command. Its task fails, and it "
	}
	return []choice{
		{"mode " + one.name, "What it may do without asking: " + one.mode + " now.", mode,
			func(m *Model) tea.Cmd { return m.modes(one) }},
		{"budget " + one.name, "What it may spend.", budget, func(m *Model) tea.Cmd { return m.budgets(one.name) }},
		{"interrupt " + one.name, ends + one.after + ".", cannotInterrupt(one),
			func(m *Model) tea.Cmd { return m.asksInterrupt(ref, one) }},
		{"lift " + one.name, "Have its model tried again now.", cannotLift(one),
			func(m *Model) tea.Cmd { return m.lift(ref, one.name) }},
		{"handover " + one.name, "Replace its session by a fresh one, with a note.", session,
			asksFirst("Replace the session of "+one.name+" by a fresh one?", "handover", id, one.name)},
		{"shutdown " + one.name, "Ask it to finish and end. Its tasks return to the queue.", firstOf(leads, ended),
			asksFirst("Shut down "+one.name+"? Its tasks return to the queue.", "shutdown", id, one.name)},
	}
}

// cannotLift returns why the member has no rate limit to lift.
func cannotLift(one memberRow) string {
	if !one.limited {
		return "It is not rate limited."
	}
	return ""
}

// lift has the rate-limited model of a member tried again now.
func (m *Model) lift(ref, member string) tea.Cmd {
	return m.act(ref, &team.LiftLimit{Member: member}, m.ofTeam(ref, "The model of "+member+" is tried again now."))
}

// taskActions returns the commands about a task.
func (m *Model) taskActions(t taskRow) []choice {
	ref, id, done := m.ref, m.team.id, ""
	if t.status == team.Completed {
		done = "Task " + t.called + " is completed."
	}
	open := done
	if open == "" && t.owner == "" && !t.outOfRetries {
		open = "Task " + t.called + " is in the queue."
	}
	return []choice{
		{"reassign " + t.called, "Give the task to another member.", done, func(m *Model) tea.Cmd {
			return m.asksWho(ref, "#"+t.id, t.called)
		}},
		{"task release " + t.called, "Return the task to the queue, with its failures forgotten.", open,
			asksFirst("Return task "+t.called+" to the queue?", "task", "release", id, "#"+t.id)},
		{"task rm " + t.called, "Delete the task. It no longer blocks other tasks.", done,
			asksFirst("Delete task "+t.called+"?", "task", "rm", id, "#"+t.id)},
	}
}

// teamActions returns the commands about the open team.
func (m *Model) teamActions() []choice {
	v, ended := m.team, ""
	if v.observed {
		return []choice{{"cleanup", "Remove what cadre keeps about the team. The team itself is left as it is.", "",
			asksFirst("Remove what cadre keeps about the observed team "+v.name+"?", "cleanup", v.id, "--yes")}}
	}
	if v.ended {
		ended = "The team has ended."
	}
	delegate := "Delegate mode is off: the lead may use all of its tools."
	if v.delegate {
		delegate = "Delegate mode is on: the lead only coordinates."
	}
	var resume []choice
	if v.dormant && !v.ended {
		resume = []choice{{"resume", "Continue the team in the background: its sessions start again.", "",
			asksFirst("Resume the team "+v.name+" in the background? Its sessions start again.", "resume", v.id)}}
	}
	return append(resume, []choice{
		{"budget", "What the team may spend, and what is spent.", ended, func(m *Model) tea.Cmd { return m.budgets("") }},
		{"permission", team.Count(len(v.rules), "permission rule") + ".", ended, (*Model).ruleList},
		{"delegate", delegate, ended, (*Model).delegate},
		{"checkpoint", "Save the team and its work on the branch cadre/" + v.name + ".", "", func(m *Model) tea.Cmd {
			return m.runCommand([]string{"checkpoint", v.id})
		}},
		{"consolidate", "Show what would be committed, check it, and make it one commit.", "",
			(*Model).plansConsolidation},
		{"pause", "End every session, to resume the team later. Members keep their tasks.", ended,
			asksFirst("End the sessions of the team "+v.name+"? cadre resume continues it.", "pause", v.id)},
		{"shutdown --graceful", "Let the team wind down: members finish their tasks and start no new ones.", ended,
			asksFirst("Let the team "+v.name+" wind down? No new work starts.", "shutdown", v.id, "--graceful")},
		{"abort", "End the team and all of its sessions at once. Its history is kept.", ended,
			asksFirst("End every session of the team "+v.name+" at once? Its history is kept.", "abort", v.id,
				"--yes")},
	}...)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
