package tui

import (
	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
)

// prompting is a line that the screen asks for, and what it does with the line.
type prompting struct {
	label string
	look  style
	field field
	done  func(m *Model, text string, urgent bool) tea.Cmd
	// says describes what was typed, in the line above; nil for no description.
	says func(text string) (string, style)
	// complete returns what could replace text[from:cursor]; nil for no completion.
	complete func(text string, cursor int) (from int, terms []string)
	// ask asks for the same for a line of the palette, and the answer comes as a completionMsg; nil
	// for any other line.
	ask func(m *Model, before string) tea.Cmd
	ref string // the team that a line of the palette is for
	// earlier is how many lines back Up has gone; begun is the line before that
	earlier int
	begun   string
}

// asks asks for a line. The line starts with text.
func (m *Model) asks(label string, look style, text string, done func(*Model, string, bool) tea.Cmd) {
	m.input = &prompting{label: label, look: look, done: done}
	m.input.field.set(text)
}

// inputKeys returns the keys of a line that the screen asks for.
func inputKeys() []key {
	return []key{
		{[]string{"enter"}, inPrompt, "done", "do it", nil, (*Model).enters},
		{[]string{"esc", "ctrl+c"}, inPrompt, "cancel", "do nothing", nil, func(m *Model) tea.Cmd {
			m.input = nil
			return nil
		}},
	}
}

// enters ends the line and does what it is for. A question about it keeps the line, and a refusal
// brings it back.
func (m *Model) enters() tea.Cmd {
	p := m.input
	m.input = nil
	cmd := p.done(m, p.field.String(), false)
	if m.ask != nil {
		m.ask.line = p
	}
	return refusable(p, cmd)
}

// refusable returns the command with which a line ends. A refusal brings the line back.
func refusable(p *prompting, cmd tea.Cmd) tea.Cmd {
	if cmd == nil || p == nil {
		return cmd
	}
	return func() tea.Msg {
		switch msg := cmd().(type) {
		case actedMsg:
			if msg.err != "" && msg.draft == nil {
				msg.line = p
			}
			return msg
		case outputMsg:
			if msg.code != 0 || msg.asked != "" {
				msg.line = p
			}
			return msg
		case busyMsg:
			msg.line = p
			return msg
		case foundMsg:
			if msg.err != "" {
				msg.line = p
			}
			return msg
		default:
			return msg
		}
	}
}

// returns opens a line again that was refused. While the keys go to something else, it waits.
func (m *Model) returns(p *prompting) {
	if p == nil {
		return
	}
	if f := m.typed(); m.ask == nil && m.overlay == nil && m.menu == nil && m.input == nil && (f == nil || f.empty()) {
		m.input, m.refused = p, nil
		return
	}
	m.refused = p
}

// typed returns the field that receives letters; nil if letters are keys now.
func (m *Model) typed() *field {
	switch {
	case m.ask != nil || m.overlay != nil:
		return nil
	case m.input != nil:
		return &m.input.field
	case m.place == atMember && m.typing && m.menu == nil:
		return m.draft()
	}
	return nil
}

// inputLine shows the line that is typed, with its recipient in that member's color. cursor is the
// cursor's column; -1 if the cursor is not in the line.
func (m *Model) inputLine() (text string, cursor int) {
	label, look, f := " to "+m.member+" ▸ ", style{}, (*field)(nil)
	switch {
	case m.input != nil:
		label, look, f = m.input.label, m.input.look, &m.input.field
		if m.input.ask != nil {
			label = " : cadre "
			if m.input.ref != "" {
				label = " " + render.Cut(m.teamName(m.input.ref), max(4, m.width/4)) + label
			}
		}
	case m.place == atMember && m.member != "" && m.menu == nil && m.overlay == nil &&
		(noLine(m) == "" || !m.draft().empty()):
		look, f = style{color: m.opened().color, bold: true}, m.draft()
	default:
		return "", -1
	}
	label = render.Cut(label, max(4, m.width/2))
	used := drawn(label)
	part, at := f.shown(m.width - used - 1)
	if m.typed() == nil {
		return look.on(label) + faint.on(part), -1
	}
	return look.on(label) + part, used + at
}
