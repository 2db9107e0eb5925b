package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/team"
)

// View draws the screen: a title, the body, a line for notices and input, and the keys that apply.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.frame(), "\n"))
	v.AltScreen, v.ReportFocus = true, true
	if !m.mouseOff {
		v.MouseMode = tea.MouseModeCellMotion
	}
	v.WindowTitle = "cadre"
	if _, at := m.inputLine(); at >= 0 && m.ask == nil && m.overlay == nil {
		v.Cursor = tea.NewCursor(at, m.height-2)
	}
	if m.team != nil {
		v.WindowTitle += " " + m.team.name
	}
	return v
}

// frame returns all lines of the screen.
func (m *Model) frame() []string {
	m.clickable = m.clickable[:0]
	if m.width <= 0 || m.height <= 0 {
		return nil // the size is not known yet
	}
	if m.height < 3 {
		return fill([]string{m.title()}, m.height)
	}
	bottom := m.bottom()
	height := max(0, m.height-1-len(bottom))
	lines := append([]string{m.title()}, fill(m.body(height), height)...)
	return append(lines, bottom...)[:m.height]
}

// bottom returns the lines below the body: a notice or a question, the line that is typed, and the
// keys.
func (m *Model) bottom() []string {
	input, _ := m.inputLine()
	prompt := m.prompt()
	switch {
	case input == "" || m.ask != nil:
		if prompt == nil {
			prompt = []string{""}
		}
		return append(prompt, m.keyLine())
	default:
		return append(prompt, input, m.keyLine())
	}
}

func (m *Model) body(height int) []string {
	switch {
	case m.overlay != nil:
		if one := m.overlay.runs; one != nil {
			m.overlay.title = m.runningTitle(one)
		}
		return m.overlay.lines(m.width, height)
	case m.menu != nil:
		return m.menu.lines(m.width, height)
	case m.place == atTeams:
		return m.teamsBody(m.width, height)
	case m.place == atTeam:
		return m.teamBody(m.width, height)
	case m.place == atMember:
		return m.memberBody(m.width, height)
	case m.place == atAttention:
		return m.attentionBody(m.width, height)
	case m.place == atTask:
		return m.taskBody(m.width, height)
	}
	return nil
}

// title shows the name and the state of what is open, and how many items wait for the user.
func (m *Model) title() string {
	left := []cell{{" ", plain}}
	add := func(text string, look style) {
		if len(left) > 1 {
			left = append(left, cell{" · ", faint})
		}
		left = append(left, cell{text, look})
	}
	switch {
	case m.place == atTeams:
		add("cadre", strong)
		add(team.Count(len(m.teams), "team"), plain)
	case m.place == atAttention:
		if m.away() {
			add(m.team.name, strong)
			add("what waited for you", strong)
			break
		}
		add("what waits for you", strong)
	case m.team == nil:
		add(m.teamName(m.ref), strong)
	case m.place == atMember:
		add(m.team.name, plain)
		m.memberTitle(add)
	case m.place == atTask:
		add(m.team.name, plain)
		m.taskTitle(add)
	default:
		add(m.team.name, strong)
		add(m.team.state, stateStyle(m.team.state))
		add(team.TasksDone(m.team.done, m.team.all), plain)
		if n := m.team.atWork(); n > 0 {
			add(fmt.Sprintf("%d working", n), live)
		}
		if m.team.delegate {
			add("delegate mode", waits)
		}
	}
	var right []cell
	clock := render.Clock(m.now)
	if m.width < 60 {
		clock = clock[:5]
	}
	if m.away() && m.team != nil { // what waits now says nothing of that moment
		clock = render.Clock(m.team.at)[:len(clock)]
		right = append(right, cell{"as of ", waits})
	} else if text := m.needsText(); text != "" {
		right = append(right, cell{text, style{color: waits.color, bold: true}}, cell{"  ", plain})
	}
	right = append(right, cell{clock + " ", faint})
	return line(m.width, left, right)
}

// needsText says how many items of the open team wait for the user, and how many of other teams do.
// The list of items counts all teams; "" for none.
func (m *Model) needsText() string {
	here, others := 0, 0
	for _, i := range m.everyItem {
		switch {
		case i.WaitsFor != team.ForUser:
		case i.ref == m.ref || m.place == atAttention:
			here++
		default:
			others++
		}
	}
	words, more, both := "! needs you %d", "! %d elsewhere", "! needs you %d, %d elsewhere"
	if m.width < 100 {
		both = "! needs you %d +%d"
	}
	if m.width < 60 {
		words, more, both = "! %d", "! +%d", "! %d +%d"
	}
	switch {
	case m.place == atTeams || here+others == 0:
		return ""
	case others == 0:
		return fmt.Sprintf(words, here)
	case here == 0:
		return fmt.Sprintf(more, others)
	}
	return fmt.Sprintf(both, here, others)
}

// prompt returns the lines above the keys: a question, or a notice.
func (m *Model) prompt() []string {
	switch {
	case m.ask != nil:
		return m.noted(m.ask.text, style{color: waits.color, bold: true})
	case m.notice.text != "":
		return m.noted(m.notice.text, m.notice.look)
	case m.input != nil && m.input.says != nil:
		return m.noted(m.input.says(m.input.field.String()))
	}
	var lines []string
	if text := m.runningLine(); text != "" {
		lines = m.noted(text, waits)
	}
	if m.trouble != "" && m.team != nil {
		lines = append(lines, m.noted(m.trouble, alarm)...)
	}
	switch {
	case m.away():
		lines = append(lines, m.slider())
	case (m.place == atTeams || m.place == atTeam) && m.narrowed() != "":
		lines = append(lines, line(m.width, []cell{{" " + m.narrowed(), waits}}, nil))
	}
	return lines
}

// noted lays out a notice on up to a quarter of the screen. It cuts a longer one in the middle,
// because the command that helps stands at the end.
func (m *Model) noted(text string, look style) (lines []string) {
	parts := wrap(text, m.width-2)
	if most := max(1, m.height/4); len(parts) > most {
		last := parts[len(parts)-most+1:]
		if most == 1 {
			last = nil
		}
		parts = append([]string{render.Cut(parts[0], m.width-4) + " …"}, last...)
	}
	for _, part := range parts {
		lines = append(lines, line(m.width, []cell{{" " + part, look}}, nil))
	}
	return lines
}
