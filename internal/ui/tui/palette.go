package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/access"
)

// palette asks for a command of cadre, for the open or the selected team. The line starts with
// text.
func (m *Model) palette(text string) { m.paletteFor(m.commanded(), text) }

// mostTyped bounds the lines of the palette that Up brings back.
const mostTyped = 100

// typedBefore keeps a line of the palette for Up.
func (m *Model) typedBefore(text string) {
	if n := len(m.typedLines); strings.TrimSpace(text) == "" || n > 0 && m.typedLines[n-1] == text {
		return
	}
	m.typedLines = append(m.typedLines, text)
	m.typedLines = m.typedLines[max(0, len(m.typedLines)-mostTyped):]
}

// earlier shows an earlier line of the palette, or a later one for -1. After the last one comes the
// line that the person had begun.
func (m *Model) earlier(by int) tea.Cmd {
	p, n := m.input, len(m.typedLines)
	if p.earlier == 0 {
		p.begun = p.field.String()
	}
	at := p.earlier + by
	switch {
	case at > n:
		m.notice = notice{"There is no earlier line.", faint}
		return nil
	case at < 0:
		return nil
	}
	if p.earlier = at; at == 0 {
		p.field.set(p.begun)
		return nil
	}
	p.field.set(m.typedLines[n-at])
	return nil
}

func noEarlier(m *Model) string {
	switch {
	case m.input.ask == nil:
		return "Up and Down bring back lines of the palette alone."
	case len(m.typedLines) == 0:
		return "There is no earlier line."
	}
	return ""
}

// paletteFor asks for a command for that team. The line stays with the team, whichever team the
// person opens later.
func (m *Model) paletteFor(ref, text string) {
	m.asks("", strong, text, func(m *Model, text string, _ bool) tea.Cmd {
		m.typedBefore(text)
		words, err := split(text)
		if err != nil {
			m.paletteFor(ref, text)
			m.notice = notice{unreadable(err), alarm}
			return nil
		}
		if len(words) > 0 && words[0] == "cadre" {
			words = words[1:]
		}
		if len(words) == 0 {
			return nil
		}
		if m.away() && access.Changes(words) {
			m.paletteFor(ref, text)
			m.notice = notice{inPast, waits}
			return nil
		}
		if asks := m.endingOf(ref, words); asks != "" {
			m.ask = yesOrNo(asks+" [y/N]", func(m *Model) tea.Cmd { return m.runCommandFor(ref, words) })
			return nil
		}
		return m.runCommandFor(ref, words)
	})
	m.input.ref = ref
	m.input.ask = (*Model).completeCommand
	if ref == "" {
		m.input.says = func(string) (string, style) {
			return "No team is selected: name the team in a command that needs one.", waits
		}
	}
}

// unreadable says why a line cannot be divided into words.
func unreadable(err error) string { return "The command was not run: " + err.Error() + "." }

// endingOf returns the question whether to end the command of a shell member, if the line of the
// palette would: it interrupts a member, or sends it an urgent message. Otherwise it returns "". On
// a terminal the command asks by itself. What members of a team run that is not open is not known
// here, so the question is asked for any of them.
func (m *Model) endingOf(ref string, words []string) string {
	of, name := steered(words)
	if name == "" {
		return ""
	}
	if v := m.presentView(); v != nil && (of == "" && ref == m.ref || of != "" &&
		slices.Contains([]string{m.ref, v.id, v.name}, of)) {
		for _, one := range v.members {
			if one.name == name {
				return one.ending
			}
		}
		return ""
	}
	if of = oneLine(of); of == "" {
		of = m.teamName(ref)
	}
	return fmt.Sprintf("If %s of team %s is a shell member, this ends its command, and its task fails. End it?",
		oneLine(name), of)
}

// valued are the flags of those commands whose value may be the next word.
var valued = []string{"--as", "--color", "--from", "--intent", "--meta", "--metadata", "--priority", "--to"}

// steered returns the member that a command line interrupts or sends an urgent message, and the
// team that the line names; "" for none. A line with --yes is not to be asked about, and names no
// member here.
func steered(words []string) (of, name string) {
	var args []string
	flags := map[string]string{}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			args = append(args, words[i+1:]...)
			break
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			args = append(args, w)
			continue
		}
		flag, value, has := strings.Cut(w, "=")
		if !has && slices.Contains(valued, flag) && i+1 < len(words) {
			i++
			value = words[i]
		}
		flags[flag] = value
	}
	if yes, is := flags["--yes"]; len(args) == 0 || is && yes != "false" {
		return "", ""
	}
	command, args := args[0], args[1:]
	switch {
	case command == "interrupt" && len(args) > 0:
		name = args[len(args)-1]
	case command == "send" && flags["--priority"] == "urgent" && flags["--to"] != "*":
		name = flags["--to"]
	}
	if len(args) == 2 { // the other one is the name, or the text
		of = args[0]
	}
	return of, name
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
		m.notice = notice{unreadable(err), alarm}
		return nil
	}
	if len(words) > 0 && words[0] == "cadre" {
		words = words[1:]
	}
	args := append(append([]string{"__complete"}, words...), before[from:])
	out, ref := m.out, m.input.ref
	return func() tea.Msg {
		answer, _ := out.Command(context.Background(), 0, ref, args).(outputMsg)
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
	number int    // of the command
	ref    string // the team that the command ran for
	args   []string
	text   string
	code   int
	asked  string     // the confirmation that the command asks for; it has done nothing yet
	line   *prompting // the line of a command that failed or asks; nil for none
}

// commanded returns the team for a command that names none: the selected team, or the open one
// where no list is shown; "" for none. Commands refuse a team of Claude Code that is not observed;
// see [StrangerPrefix].
func (m *Model) commanded() string {
	switch m.place {
	case atTeams:
		if len(m.teams) == 0 {
			return ""
		}
		return m.teams[m.teamIndex()].ref
	case atAttention: // the team that was open before is not shown
		one, _ := m.item()
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
	if m.away() && access.Changes(args) {
		m.notice = notice{inPast, waits}
		return nil
	}
	out := m.out
	m.notice = notice{"cadre " + oneLine(strings.Join(args, " ")) + " …", faint}
	m.stirred = false
	ctx, one := m.begins(args)
	return func() tea.Msg {
		msg := out.Command(ctx, one.number, ref, args)
		if output, is := msg.(outputMsg); is {
			one.cancel()
			output.ref, output.number = ref, one.number
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
	one, watched := m.finished(msg.number)
	lines := strings.Split(strings.TrimRight(msg.text, "\n"), "\n")
	short := msg.asked == "" && len(lines) == 1 && len(lines[0]) < m.width-2
	if one != nil && one.cancelled {
		if msg.code, msg.asked, msg.line, short = 0, "", nil, false; strings.TrimSpace(msg.text) == "" {
			m.notice = notice{command + " is cancelled. It printed nothing.", waits}
			return
		}
		command += " · cancelled"
	}
	if !short && !watched && m.types() {
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
	lay := func(width int) []string { return outputLines(msg.text, width) }
	m.overlay = &pager{title: command, text: lay(m.width), lay: lay}
	if watched { // the person has read the beginning
		m.overlay.top = farAway
	}
	if msg.asked == "" && msg.line != nil && msg.line.ask == nil { // Up brings a line of the palette back
		m.returns(msg.line)
	}
}

// types reports whether the next key may be meant for something that is on the screen already: a
// line, a question, or whatever the keys before it did.
func (m *Model) types() bool {
	f := m.typed()
	return m.stirred || m.ask != nil || m.input != nil || f != nil && !f.empty()
}

// catchUp shows what a command printed while the person typed. It is called once a second, so that
// a second without a key has passed.
func (m *Model) catchUp() {
	if m.refused != nil {
		m.returns(m.refused)
	}
	stirred := m.stirred
	if m.moved {
		m.moved, m.stirred = stirred, false
	}
	m.watchesRunning(stirred)
	if len(m.late) > 0 {
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
		other := map[rune]rune{'\'': '"', '"': '\''}[quote]
		return nil, fmt.Errorf("%c begins a quote that does not end. To type it, put the word between two %c, "+
			"as in %[2]cdon%[1]ct%[2]c", quote, other)
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
		}},
		{[]string{"up"}, inPrompt, "", "bring back an earlier line of the palette", noEarlier,
			func(m *Model) tea.Cmd { return m.earlier(1) }},
		{[]string{"down"}, inPrompt, "", "bring back a later line of the palette", noEarlier,
			func(m *Model) tea.Cmd { return m.earlier(-1) }}}
}
