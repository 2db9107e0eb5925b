package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// unrun is a command that failed. The next line of the palette for its team starts with it.
type unrun struct{ ref, text string }

// palette asks for a command of cadre, for the open or the selected team. The line starts with text,
// or else with the last command that failed there.
func (m *Model) palette(text string) {
	ref := m.commanded()
	if text == "" && m.unrun.ref == ref {
		text, m.unrun = m.unrun.text, unrun{}
	}
	m.paletteFor(ref, text)
}

// paletteFor asks for a command for that team. The line stays with the team, whichever team the
// person opens later.
func (m *Model) paletteFor(ref, text string) {
	m.asks("", strong, text, func(m *Model, text string, _ bool) tea.Cmd {
		words, err := split(text)
		if err != nil {
			m.paletteFor(ref, text)
			m.notice = notice{strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + ".", alarm}
			return nil
		}
		if len(words) > 0 && words[0] == "cadre" {
			words = words[1:]
		}
		if len(words) == 0 {
			return nil
		}
		return m.runCommandFor(ref, words)
	})
	m.input.ref = ref
	m.input.ask = (*Model).completeCommand
}

// elsewhere returns the name of a command's team, if a person could take another team for it.
// Otherwise it returns "".
func (m *Model) elsewhere(ref string) string {
	if ref == m.ref && ref == m.commanded() {
		return ""
	}
	return m.teamName(ref)
}

// completionMsg is what could stand in place of before[from:], in the line of the palette.
type completionMsg struct {
	before string
	from   int
	terms  []string
}

// completeCommand asks the program what could follow, as a shell does.
func (m *Model) completeCommand(before string) tea.Cmd {
	from := strings.LastIndexByte(before, ' ') + 1
	words, err := split(before[:from])
	if err != nil {
		m.notice = notice{err.Error(), alarm}
		return nil
	}
	if len(words) > 0 && words[0] == "cadre" {
		words = words[1:]
	}
	args := append(append([]string{"__complete"}, words...), before[from:])
	out, ref := m.out, m.input.ref
	return func() tea.Msg {
		answer, _ := out.Command(ref, args).(outputMsg)
		msg := completionMsg{before: before, from: from}
		for line := range strings.Lines(answer.text) {
			if strings.HasPrefix(line, ":") { // what follows is for a shell
				return msg
			}
			term, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			msg.terms = append(msg.terms, term)
		}
		return completionMsg{before: before, from: from} // it did not answer
	}
}

// completed puts the answer into the line, unless that has changed since.
func (m *Model) completed(msg completionMsg) {
	if m.input == nil || m.input.ask == nil || m.input.field.Before() != msg.before {
		return
	}
	if len(msg.terms) == 1 {
		msg.terms[0] += " "
	}
	m.completes(msg.before, msg.from, msg.terms)
}

// outputMsg carries what a command of the palette printed. Its text is sanitized.
type outputMsg struct {
	ref   string // the team that the command ran for
	args  []string
	text  string
	code  int
	asked string     // the confirmation that the command asks for; it has done nothing yet
	line  *prompting // the line of a command that failed or asks; nil for none
}

// commanded returns the team for a command that names none: the selected team, else the open one.
// Commands refuse a team of Claude Code that nobody observes; see [StrangerPrefix].
func (m *Model) commanded() string {
	if m.place == atTeams && len(m.teams) > 0 {
		return m.teams[m.teamIndex()].ref
	}
	if one, is := m.item(); is && m.place == atAttention {
		return one.ref
	}
	return m.ref
}

// runCommand runs a command of cadre on the open or the selected team.
func (m *Model) runCommand(args []string) tea.Cmd {
	return m.runCommandFor(m.commanded(), args)
}

// runCommandFor runs a command of cadre on that team.
func (m *Model) runCommandFor(ref string, args []string) tea.Cmd {
	out := m.out
	m.notice = notice{"cadre " + oneLine(strings.Join(args, " ")) + " …", faint}
	m.stirred = false
	return func() tea.Msg {
		msg := out.Command(ref, args)
		if output, is := msg.(outputMsg); is {
			output.ref = ref
			return output
		}
		return msg
	}
}

// printed shows what a command printed: one line below, more in an overlay. A command that asks for
// a confirmation is asked for here. A view that takes the keys waits until the person has stopped
// typing.
func (m *Model) printed(msg outputMsg) {
	command := "cadre " + oneLine(strings.Join(msg.args, " "))
	lines := strings.Split(strings.TrimRight(msg.text, "\n"), "\n")
	short := msg.asked == "" && len(lines) == 1 && len(lines[0]) < m.width-2
	if !short && m.types() {
		m.late = append(m.late, msg)
		when := "after two seconds without a key."
		if f := m.typed(); m.ask != nil || m.input != nil || f != nil && !f.empty() {
			when = "when you finish here."
		}
		m.notice = notice{command + " has ended. Its output follows " + when, waits}
		return
	}
	m.notice = notice{}
	if msg.asked != "" {
		text := msg.asked + " [y/N]"
		if name := m.elsewhere(msg.ref); name != "" {
			text = "Team " + name + ": " + text
		}
		m.ask = yesOrNo(text, func(m *Model) tea.Cmd {
			return m.runCommandFor(msg.ref, append(slices.Clone(msg.args), "--yes"))
		})
		m.ask.line = msg.line
		if strings.TrimSpace(msg.text) == "" {
			return
		}
	}
	if short {
		look := good
		if msg.code != 0 {
			look = alarm
		}
		if lines[0] == "" {
			lines[0] = command + " printed nothing."
		}
		m.notice = notice{lines[0], look}
		m.returns(msg.line)
		return
	}
	if msg.code != 0 {
		command += fmt.Sprintf(" · exit status %d", msg.code)
	}
	lay := func(width int) (text []string) {
		for _, l := range lines {
			for _, part := range wrap(strings.ReplaceAll(l, "\t", "    "), width-2) {
				text = append(text, " "+diffLook(part).on(part))
			}
		}
		return text
	}
	m.overlay = &pager{title: command, text: lay(m.width), lay: lay}
	switch {
	case msg.asked != "" || msg.line == nil:
	case msg.line.ask != nil: // the next : starts with it, so that the keys are free after the text
		m.unrun = unrun{msg.line.ref, msg.line.field.String()}
	default:
		m.returns(msg.line)
	}
}

// types reports whether the next key may be meant for something that is on the screen already: a line, a
// question, or whatever the keys before it did.
func (m *Model) types() bool {
	f := m.typed()
	return m.stirred || m.ask != nil || m.input != nil || f != nil && !f.empty()
}

// catchUp shows what a command printed while the person typed. It is called once a second, so that a second
// without a key has passed.
func (m *Model) catchUp() {
	if m.refused != nil {
		m.returns(m.refused)
	}
	if stirred := m.stirred; len(m.late) > 0 {
		if m.stirred = false; !stirred && !m.types() && m.overlay == nil {
			msg := m.late[0]
			m.late = m.late[1:]
			m.printed(msg)
		}
	}
}

// diffLook returns how a line looks: those of a patch are green and red.
func diffLook(l string) style {
	switch l = strings.TrimPrefix(l, "  │ "); {
	case strings.HasPrefix(l, "+"):
		return good
	case strings.HasPrefix(l, "-") && !strings.HasPrefix(l, "--"):
		return alarm
	case strings.HasPrefix(l, "@@ "):
		return live
	case strings.HasPrefix(l, "cadre: "):
		return strong
	}
	return plain
}

// split splits a command line into words as a shell does. Quotes keep spaces. It expands nothing.
func split(text string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	in := false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\n' || r == '\t':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// paletteKeys returns the key that opens the palette.
func paletteKeys() []key {
	return []key{{[]string{":", "ctrl+p"}, everywhere, "command", "type any command of cadre", nil,
		func(m *Model) tea.Cmd {
			m.overlay, m.menu = nil, nil
			m.palette("")
			return nil
		}}}
}
