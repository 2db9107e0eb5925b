package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/team"
)

// running is a command of the palette that has not ended.
type running struct {
	number    int
	command   string // the command line
	since     team.Time
	text      string // the end of its output so far, sanitized
	cancel    context.CancelFunc
	cancelled bool // by the person
	stays     bool // it continues in the background, and ends neither with the screen nor by a key
	seen      bool // its view was open, or something else was when it would have opened
}

// printingMsg carries what a running command has printed so far. Its text is sanitized.
type printingMsg struct {
	number int
	text   string
}

// watchAfter is how long a command may run before the screen shows it by itself.
const watchAfter = time.Second

// begins records a command that starts, and returns its context.
func (m *Model) begins(args []string) (context.Context, *running) {
	ctx, cancel := context.WithCancel(context.Background())
	m.commands++
	one := &running{number: m.commands, command: "cadre " + oneLine(strings.Join(args, " ")), since: m.clock(),
		cancel: cancel,
		stays:  continues(args)}
	m.running = append(m.running, one)
	return ctx, one
}

// finished removes a command that has ended, and closes its view. It returns nil for a command that
// ended before, and reports whether its view was open.
func (m *Model) finished(number int) (one *running, watched bool) {
	i := slices.IndexFunc(m.running, func(r *running) bool { return r.number == number })
	if i < 0 {
		return nil, false
	}
	one = m.running[i]
	m.running = slices.Delete(m.running, i, i+1)
	if watched = m.overlay != nil && m.overlay.runs == one; watched {
		m.overlay = nil
	}
	if m.ask != nil && m.ask.cancels == one { // the answer has no meaning any more
		m.ask = nil
	}
	return one, watched
}

// ending returns the last running command that the end of the screen would end; nil for none.
func (m *Model) ending() *running {
	for _, one := range slices.Backward(m.running) {
		if !one.stays {
			return one
		}
	}
	return nil
}

// lasts returns how long a command has run. The clock of the screen shows the last tick, which may
// be before the command.
func (m *Model) lasts(one *running) time.Duration { return max(0, m.now.Sub(one.since)) }

// prints stores what a command has printed so far.
func (m *Model) prints(msg printingMsg) {
	for _, one := range m.running {
		if one.number != msg.number {
			continue
		}
		one.text = msg.text
		if p := m.overlay; p != nil && p.runs == one {
			follows := p.top >= p.last
			if p.resized(m.width); follows {
				p.top = farAway
			}
		}
	}
}

// watchesRunning shows a command that has run for a while, if nothing else is open and the person
// does not type. It is called once a second.
func (m *Model) watchesRunning(stirred bool) {
	if len(m.running) == 0 {
		return
	}
	one := m.running[len(m.running)-1]
	if one.seen || m.lasts(one) < watchAfter {
		return
	}
	if m.overlay != nil || m.menu != nil {
		one.seen = true // the line above the keys says that it runs
		return
	}
	if m.stirred = false; !stirred && !m.types() {
		m.watchRunning()
	}
}

// watchRunning shows the last command that has not ended; the one that started before it if that
// one is shown already, and so on.
func (m *Model) watchRunning() tea.Cmd {
	at := len(m.running) - 1
	if m.overlay != nil && m.overlay.runs != nil {
		at += slices.Index(m.running, m.overlay.runs)
	}
	one := m.running[at%len(m.running)]
	one.seen = true
	p := &pager{title: one.command, runs: one}
	p.lay = func(width int) []string {
		if strings.TrimSpace(one.text) == "" {
			return wrapAll("It has printed nothing yet.", width, faint)
		}
		return outputLines(one.text, width)
	}
	p.resized(m.width)
	p.top = farAway
	m.overlay, m.notice = p, notice{}
	return nil
}

// cancels asks whether to end the command that is shown. Its view stays until it has ended.
func (m *Model) cancels() tea.Cmd {
	one := m.overlay.runs
	m.ask = yesOrNo("End "+one.command+", with all of its processes? [y/N]", func(*Model) tea.Cmd {
		one.cancelled = true
		one.cancel()
		return nil
	})
	m.ask.cancels, m.ask.no = one, "let it run"
	return nil
}

// runningLine says which command runs, and since when; "" for none.
func (m *Model) runningLine() string {
	if len(m.running) == 0 || m.overlay != nil {
		return ""
	}
	one := m.running[len(m.running)-1]
	text := fmt.Sprintf(" has run for %s; B shows it", age(m.lasts(one)))
	if n := len(m.running) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s)", team.Count(n, "other command"))
	}
	return render.Cut(one.command, max(12, m.width-2-drawn(text))) + text
}

// runningTitle is the title of the view of a running command.
func (m *Model) runningTitle(one *running) string {
	text := " · running for " + age(m.lasts(one))
	switch {
	case one.cancelled:
		text = " · ends …"
	case one.stays:
		text = " · starts, and continues in the background"
	}
	if n := len(m.running); n > 1 {
		text += fmt.Sprintf(" · %d of %d, B shows the next", n-slices.Index(m.running, one), n)
	}
	return render.Cut(one.command, max(12, m.width-2-drawn(text))) + text
}

// outputLines lays out what a command printed.
func outputLines(output string, width int) (text []string) {
	for _, l := range strings.Split(strings.TrimRight(output, "\n"), "\n") {
		for _, part := range wrap(strings.ReplaceAll(l, "\t", "    "), width-2) {
			text = append(text, " "+diffLook(part).on(part))
		}
	}
	return text
}

// runningKeys returns the keys for commands of the palette that have not ended.
func runningKeys() []key {
	return []key{
		{[]string{"esc", "left", "h", "b", "backspace"}, inRunning, "leave",
			"leave this view; the command goes on, and B shows it again", nil, (*Model).backOut},
		{[]string{"x"}, inRunning, "end it", "ask whether to end the command, with all of its processes", notEnding,
			(*Model).cancels},
		{[]string{"B"}, everywhere &^ inRunning, "", "show the command that is still running; x ends it there",
			noRunning, (*Model).watchRunning},
		{[]string{"B"}, inRunning, "", "show the next command that is still running", noOther, (*Model).watchRunning},
	}
}

// noOther returns why no other command can be shown.
func noOther(m *Model) string {
	if len(m.running) < 2 {
		return "No other command of the palette is running."
	}
	return ""
}

// notEnding returns why the command that is shown cannot be ended.
func notEnding(m *Model) string {
	switch one := m.overlay.runs; {
	case one.cancelled:
		return "The command is being ended."
	case one.stays:
		return "It continues in the background, also when you quit."
	}
	return ""
}

func noRunning(m *Model) string {
	switch {
	case len(m.running) == 0:
		return "No command of the palette is running."
	case m.overlay != nil && m.overlay.stage != nil:
		return "Leave this plan first: its choices would be lost."
	}
	return ""
}
