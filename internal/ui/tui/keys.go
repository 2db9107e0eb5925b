package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
	"cadre/internal/ui/graph"
)

// scope is a set of places in which a key has a meaning.
type scope int

// The scopes.
const (
	inTeams scope = 1 << iota
	inTeam
	inMember // its session, while letters are keys
	inLine   // the line to the member
	inAttention
	inPager
	inPrompt
	inTask
	inMenu
	inStaging
	inRunning  // the view of a command that has not ended
	everywhere = inTeams | inTeam | inMember | inAttention | inPager | inTask | inMenu | inStaging | inRunning
)

// key declares what a key does. Handling, the bottom line and the help all follow from it.
type key struct {
	names []string // in the spelling of the terminal library; the first one is shown
	in    scope
	label string // in the bottom line; "" for a key that only the help shows
	help  string
	when  func(*Model) string // returns why the key does not apply now, or ""; nil for a key that always applies
	do    func(*Model) tea.Cmd
}

var (
	keysOnce sync.Once
	allKeys  []key
)

// keymap returns all keys, in the order in which the bottom line shows them.
func keymap() []key {
	keysOnce.Do(func() {
		allKeys = slices.Concat(moveKeys(), teamKeys(), memberKeys(), taskKeys(), noteKeys(), searchKeys(),
			attentionKeys(), inputKeys(), menuKeys(), narrowKeys(), delegateKeys(), stagingKeys(), runningKeys(), paletteKeys(),
			mouseKeys(), commonKeys(),
			pastKeys())
	})
	return allKeys
}

func moveKeys() []key {
	step := func(by int) func(*Model) tea.Cmd { return func(m *Model) tea.Cmd { return m.move(by) } }
	return []key{
		{[]string{"up", "k"}, everywhere, "", "select the row above, or scroll up", nil, step(-1)},
		{[]string{"down", "j"}, everywhere, "", "select the row below, or scroll down", nil, step(1)},
		{[]string{"pgup", "ctrl+b"}, everywhere, "", "go up by a page", nil, func(m *Model) tea.Cmd {
			return m.move(-m.page())
		}},
		{[]string{"pgdown", "ctrl+f"}, everywhere, "", "go down by a page", nil, func(m *Model) tea.Cmd {
			return m.move(m.page())
		}},
		{[]string{"space"}, everywhere &^ inStaging, "", "go down by a page", nil, func(m *Model) tea.Cmd {
			return m.move(m.page())
		}},
		{[]string{"home", "g"}, everywhere, "", "go to the beginning", nil, step(-farAway)},
		{[]string{"end", "G"}, everywhere, "", "go to the end", nil, step(farAway)},
	}
}

// farAway is longer than any list.
const farAway = 1 << 20

func teamKeys() []key {
	keys := []key{
		{[]string{"enter", "right", "l"}, inTeams, "open", "open the team", (*Model).noTeam, (*Model).openSelected},
		{[]string{"enter", "right", "l"}, inTeam, "open",
			"open the task, the session of the member and a line to it, or its team",
			(*Model).noView, (*Model).viewSelected},
		{[]string{"tab"}, inTeam, "next tab", "show the next tab", nil, func(m *Model) tea.Cmd {
			m.tab = (m.tab + 1) % tab(len(tabs))
			return nil
		}},
		{[]string{"shift+up", "K"}, inTeam, "", "select the teammate above", noMembers, func(m *Model) tea.Cmd {
			return m.moveMember(-1)
		}},
		{[]string{"shift+down", "J"}, inTeam, "", "select the teammate below", noMembers, func(m *Model) tea.Cmd {
			return m.moveMember(1)
		}},
		{[]string{"ctrl+t", "t"}, inTeam, "", "show the list of tasks", nil, func(m *Model) tea.Cmd {
			m.tab = tabTasks
			return nil
		}},
	}
	for i, name := range tabs {
		keys = append(keys, key{[]string{fmt.Sprint(i + 1)}, inTeam, "", "show the " + name, nil,
			func(m *Model) tea.Cmd {
				m.tab = tab(i)
				return nil
			}})
	}
	return keys
}

func delegateKeys() []key {
	return []key{{[]string{"shift+tab", "D"}, inTeam, "delegate",
		"switch delegate mode, in which the lead only coordinates",
		closedTeam, (*Model).delegate}}
}

func commonKeys() []key {
	return []key{
		{[]string{"esc", "left", "h", "backspace"},
			inTeam | inAttention | inPager | inTask | inMenu | inStaging, "back",
			"go back", nil,
			(*Model).backOut},
		{[]string{"left", "h", "backspace"}, inMember, "", "go back", nil, (*Model).backOut},
		{[]string{"?", "f1"}, everywhere, "help", "show all keys", nil, (*Model).help},
		{[]string{"ctrl+l"}, everywhere | inLine, "", "draw the screen again", nil,
			func(*Model) tea.Cmd { return tea.ClearScreen }},
		{[]string{"ctrl+z"}, everywhere | inLine, "", "suspend cadre; fg continues it", (*Model).noShell,
			func(*Model) tea.Cmd { return tea.Suspend }},
		{[]string{"q", "ctrl+c"}, everywhere, "quit",
			"quit; teams continue. In cadre run, q asks, and Ctrl+C pauses the team", nil,
			(*Model).quits},
	}
}

// quit ends the screen.
func quit() tea.Msg { return quitMsg{} }

// quitMsg asks the program to end; see [program.Update].
type quitMsg struct{ leave Leave }

// scope returns the scope in which keys are handled now.
func (m *Model) scope() scope {
	switch {
	case m.overlay != nil && m.overlay.stage != nil:
		return inStaging
	case m.overlay != nil && m.overlay.runs != nil:
		return inRunning
	case m.overlay != nil:
		return inPager
	case m.input != nil:
		return inPrompt
	case m.menu != nil:
		return inMenu
	case m.place == atMember && m.typing:
		return inLine
	case m.place == atTeam:
		return inTeam
	case m.place == atMember:
		return inMember
	case m.place == atAttention:
		return inAttention
	case m.place == atTask:
		return inTask
	}
	return inTeams
}

// press handles a key.
func (m *Model) press(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	m.stirred = true
	if m.interrupts(name) {
		if m.ending() != nil && (m.ask == nil || !m.ask.leaves) { // pressed again, it pauses the team
			return m.quits()
		}
		m.ask = nil
		return func() tea.Msg { return quitMsg{Pause} }
	}
	if m.ask != nil {
		return m.answer(name)
	}
	m.notice, m.menuFor, m.searching = notice{}, "", 0
	f := m.typed()
	if f != nil && msg.Text != "" && f.press(msg) { // a letter is text, and not a key
		return nil
	}
	for _, k := range keymap() {
		if k.in&m.scope() == 0 || !slices.Contains(k.names, name) {
			continue
		}
		if k.when != nil {
			if why := k.when(m); why != "" {
				m.notice = notice{why, waits}
				return nil
			}
		}
		return k.do(m)
	}
	if f != nil && f.press(msg) {
		return nil
	}
	if strings.HasPrefix(name, "alt+") { // Escape and a key that follows at once arrive as alt+key
		return nil
	}
	m.notice = notice{shown(name) + " does nothing here; ? shows the keys", faint}
	return nil
}

// answer handles the key that answers a question.
func (m *Model) answer(name string) tea.Cmd {
	q := m.ask
	m.ask = nil
	for _, one := range q.options {
		if slices.Contains(one.names, name) {
			return refusable(q.line, one.do(m))
		}
	}
	m.notice = notice{"Nothing was changed.", faint}
	m.returns(q.line)
	return nil
}

// wheel scrolls with the mouse.
func (m *Model) wheel(b tea.MouseButton) tea.Cmd {
	const lines = 3
	switch b {
	case tea.MouseWheelUp:
		return m.move(-lines)
	case tea.MouseWheelDown:
		return m.move(lines)
	}
	return nil
}

// page is how far a page is.
func (m *Model) page() int {
	if m.place == atAttention && m.overlay == nil && m.menu == nil && m.detailPage > 0 {
		return m.detailPage
	}
	return max(1, m.height-6)
}

// move selects another row of the list with the focus, or scrolls.
func (m *Model) move(by int) tea.Cmd {
	switch {
	case m.overlay != nil && m.overlay.stage != nil:
		m.overlay.stage.move(by)
		m.stageText()
	case m.overlay != nil:
		m.overlay.top += by
	case m.menu != nil:
		m.menu.selected = max(0, moved(m.menu.selected, by, len(m.menu.choices)))
	case m.place == atTeams && len(m.teams) > 0:
		m.chosen.team = m.teams[moved(m.teamIndex(), by, len(m.teams))].ref
	case m.place == atMember:
		width, height := m.room()
		m.seen().move(by, width, height)
	case m.place == atTask:
		m.shown.top = max(0, m.shown.top+by)
	case m.place == atAttention && len(m.items) > 0:
		m.moved = false
		if by*by > 1 && by*by < farAway { // page keys scroll the details of the item
			m.detail += by
			return nil
		}
		return m.chooseItem(moved(m.itemIndex(), by, len(m.items)))
	case m.place == atTeam && m.team != nil:
		switch m.tab {
		case tabMembers:
			return m.moveMember(by)
		case tabTasks:
			if n := len(m.team.tasks); n > 0 {
				m.chosen.task = m.team.tasks[moved(m.taskIndex(), by, n)].id
			}
		case tabMessages:
			m.scroll = max(0, m.scroll-by)
		case tabTimeline:
			return m.moveMember(by)
		case tabGraph:
			m.moveGraph(by)
		}
	}
	return nil
}

// moved returns the index that is by rows away, bounded to n rows.
func moved(index, by, n int) int { return max(0, min(index+by, n-1)) }

func (m *Model) moveMember(by int) tea.Cmd {
	if m.team == nil || len(m.team.members) == 0 {
		return nil
	}
	m.chosen.member = m.team.members[moved(m.memberIndex(), by, len(m.team.members))].name
	if m.tab == tabTasks || m.tab == tabMessages {
		m.tab = tabMembers
	}
	return nil
}

func (m *Model) openSelected() tea.Cmd {
	one := m.teams[m.teamIndex()]
	m.chosen.team = one.ref
	m.enter(atTeam)
	return m.open(one.ref)
}

// backOut goes back one place, or closes an overlay.
func (m *Model) backOut() tea.Cmd {
	if m.overlay != nil {
		m.overlay = nil
		m.returns(m.refused)
		return nil
	}
	if m.menu != nil {
		m.menu = m.menu.under
		return nil
	}
	if n := len(m.back); m.away() && (m.place == atTeam || n == 0 || m.back[n-1].ref != m.ref ||
		m.back[n-1].place == atTeams) {
		return m.present() // the next key leaves the team
	}
	return m.leave()
}

// delegate asks whether to switch delegate mode.
func (m *Model) delegate() tea.Cmd {
	on := !m.team.delegate
	text, said := "Switch delegate mode on, so that the lead only coordinates? [y/N]", "Delegate mode is on."
	if !on {
		text, said = "Switch delegate mode off? [y/N]", "Delegate mode is off."
	}
	m.ask = yesOrNo(text, func(m *Model) tea.Cmd { return m.act(m.ref, &team.SetDelegate{On: on}, said) })
	return nil
}

// viewSelected opens the selected member, the team that works for it, or the selected task.
func (m *Model) viewSelected() tea.Cmd {
	if m.tab == tabTasks || m.tab == tabGraph {
		return m.openTask(m.selectedTask())
	}
	one := m.team.members[m.memberIndex()]
	if one.child != "" && !m.away() {
		return m.openChild(one.child)
	}
	return m.openMember(one.name)
}

// openChild opens the team that works for a member. The way back leads to the team of the member.
func (m *Model) openChild(id string) tea.Cmd {
	ref := id
	for _, one := range m.teams {
		if one.id == id {
			ref = one.ref
		}
	}
	m.back, m.notice = append(m.back, stop{m.place, m.ref}), notice{}
	return m.open(ref)
}

// selectedTask returns the id of the selected task of the list or of the graph; "" for none.
func (m *Model) selectedTask() string {
	if m.tab == tabGraph {
		g := m.team.graph.Draw(graph.Options{Columns: m.width - 2})
		for _, l := range g.Lines {
			if l.Task == m.chosen.task {
				return l.Task
			}
		}
		if len(g.Lines) > 0 {
			return g.Lines[0].Task
		}
		return ""
	}
	if len(m.team.tasks) == 0 {
		return ""
	}
	return m.team.tasks[m.taskIndex()].id
}

// noView returns why nothing can be opened.
func (m *Model) noView() string {
	switch {
	case m.team == nil:
		return "The team has not been read yet."
	case m.tab == tabTasks || m.tab == tabGraph:
		if m.selectedTask() == "" {
			return "The team has no tasks."
		}
	case len(m.team.members) == 0:
		return "The team has no members."
	}
	return ""
}

// These return why a key does not apply.

func (m *Model) noTeam() string {
	if len(m.teams) == 0 {
		if len(m.everyTeam) > 0 {
			return "No team matches the filter. / changes it."
		}
		return "There is no team to open."
	}
	return m.unobserved()
}

func (m *Model) noShell() string {
	if m.alone {
		return "No shell started cadre here, so nothing could continue it."
	}
	return ""
}

// closedTeam says why the open team cannot be changed now.
func closedTeam(m *Model) string {
	switch {
	case m.team == nil:
		return "The team has not been read yet."
	case m.away():
		return "Nothing can be done in the past. 0 returns to the present."
	}
	return notOurs(m)
}

// notOurs says why an observed team cannot be changed.
func notOurs(m *Model) string {
	if m.team != nil && m.team.observed {
		return "This team is only observed: its own agents decide what happens in it."
	}
	return ""
}

func noMembers(m *Model) string {
	if m.team == nil || len(m.team.members) == 0 {
		return "The team has no members."
	}
	return ""
}

// shown returns the name of a key as people write it.
func shown(name string) string {
	parts := strings.Split(name, "+")
	if name == "+" {
		return name
	}
	names := map[string]string{"esc": "Esc", "pgup": "PgUp", "pgdown": "PgDn", "up": "↑", "down": "↓",
		"left":  "←",
		"right": "→"}
	for i, part := range parts {
		if other, is := names[part]; is {
			parts[i] = other
		} else if len(part) > 1 {
			parts[i] = strings.ToUpper(part[:1]) + part[1:]
		} else if len(parts) > 1 {
			parts[i] = strings.ToUpper(part)
		}
	}
	return strings.Join(parts, "+")
}

// keyLine shows the keys that apply now, as many as fit.
func (m *Model) keyLine() string {
	if m.ask != nil {
		return m.ask.keyLine(m.width)
	}
	var cells []cell
	needs := func(k key) int { return len([]rune(shown(k.names[0]))) + 1 + len(k.label) + gap }
	// ? and F1 show the keys that do not fit, and q is how to leave
	always := func(k key) bool { return k.names[0] == "?" || k.names[0] == "f1" || k.names[0] == "q" }
	used, all := 1, m.applying()
	for _, k := range all {
		if always(k) {
			used += needs(k)
		}
	}
	for _, k := range all {
		name := shown(k.names[0])
		if !always(k) {
			if used+needs(k) > m.width {
				continue
			}
			used += needs(k)
		}
		cells = append(cells, cell{name, strong}, cell{" " + k.label + "  ", faint})
	}
	text, _ := joined(append([]cell{{" ", plain}}, cells...), m.width)
	return text
}

// keyLine shows the keys that answer the question.
func (q *question) keyLine(width int) string {
	cells := []cell{{" ", plain}}
	for _, one := range q.options {
		cells = append(cells, cell{shown(one.names[0]), strong}, cell{" ", plain}, cell{one.label, faint},
			cell{"  ", plain})
	}
	other := cell{"any other key: " + cmp.Or(q.no, "no"), faint}
	if widthOf(cells)+drawn(other.text) > width {
		other.text = "else: " + cmp.Or(q.no, "no")
	}
	text, _ := joined(append(cells, other), width)
	return text
}

// travelLabels are the labels of the keys that matter in the past. They come first there.
var travelLabels = map[string]string{"[": "earlier", "]": "later", "{": "mark before", "}": "mark after", "0": "now"}

// applying returns the keys with a label that apply now.
func (m *Model) applying() (keys []key) {
	travels := 0
	for _, k := range keymap() {
		if label := travelLabels[k.names[0]]; label != "" && m.away() && k.in&m.scope() != 0 {
			k.label = label
			keys = slices.Insert(keys, travels, k)
			travels++
			continue
		}
		if k.label != "" && k.in&m.scope() != 0 && (k.when == nil || k.when(m) == "") {
			keys = append(keys, k)
		}
	}
	if m.hosted != "" { // the person did not ask for this screen, and must see how to leave it
		slices.SortStableFunc(keys, func(a, b key) int {
			return cmp.Compare(slices.Index(b.names, "q"), slices.Index(a.names, "q"))
		})
	}
	return keys
}
