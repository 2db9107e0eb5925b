package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
)

// Hosted configures the screen of a process that also runs the open team. On quitting, the screen
// then asks what happens to the team.
type Hosted struct {
	Name   string          // what the person calls the team
	Opened func()          // is called when the screen takes the terminal
	Ended  <-chan struct{} // is closed when the process has run the team to its end
	Stays  func() bool     // once Ended is closed: whether something of the team needs the person; nil for never
	Notes  <-chan string   // what the process tells the person beside the history; nil for nothing
}

// Leave is the reason why the screen of a [Hosted] team closed.
type Leave int

// The reasons.
const (
	Closed     Leave = iota // the team has ended, or the context did
	Pause                   // the person wants the team to be paused
	Background              // the person wants the team to continue without the terminal
)

// attentive is how long the screen of a team that has ended stays open for a person who looks at a
// question or a list. It counts from the last key.
const attentive = 30 * time.Second

// RunHosted shows the screen of a team that this process runs. It returns when the person decides
// what happens to the team, or when the team or ctx ends. The screen of a team that has ended stays
// open while a line has text, and where something of the team needs the person until the person
// quits.
func RunHosted(ctx context.Context, o Options, h Hosted) (Leave, error) {
	return show(ctx, o, &h)
}

// quits quits. It asks first if this process runs a team, or a command of the palette.
func (m *Model) quits() tea.Cmd {
	one, warns := m.ending(), ""
	if one != nil {
		warns = render.Cut(one.command, 40) + " has not ended, and ends with the screen. "
	}
	switch {
	case m.hosted == "" && one != nil:
		m.ask = yesOrNo(warns+"Quit? [y/N]", func(*Model) tea.Cmd { return quit })
		return nil
	case m.hosted == "":
		return quit
	}
	name := oneLine(m.hosted)
	leave := func(how Leave) func(*Model) tea.Cmd {
		return func(*Model) tea.Cmd { return func() tea.Msg { return quitMsg{how} } }
	}
	m.ask = &question{text: warns + "Pause team " + name + ", or let it continue in the background?",
		options: []option{{[]string{"p", "P", "s", "S"}, "pause it", leave(Pause)},
			{[]string{"b", "B"}, "background", leave(Background)}}, no: "cancel", leaves: true}
	return nil
}

// interrupts reports whether the key interrupts the process, as Ctrl-C does outside the screen. In
// a line with text, the key clears the line instead.
func (m *Model) interrupts(name string) bool {
	f := m.typed()
	return name == "ctrl+c" && m.hosted != "" && m.input == nil && (f == nil || f.empty())
}

// busy reports whether closing the screen now would lose something that the person types or reads.
func (m *Model) busy() bool {
	f := m.typed()
	return m.ask != nil || m.overlay != nil || m.menu != nil || m.input != nil || m.ending() != nil ||
		f != nil && !f.empty()
}

// unsaid reports whether a line has text that the end of the screen would lose.
func (m *Model) unsaid() bool {
	if m.input != nil {
		return !m.input.field.empty()
	}
	return m.place == atMember && !m.draft().empty()
}

// noteMsg is what the process tells the person.
type noteMsg string

// passOn forwards the messages of the process to the program, until ctx ends.
func (h *Hosted) passOn(ctx context.Context, send func(tea.Msg)) {
	ended := h.Ended
	for {
		select {
		case <-ended:
			send(endedMsg{stays: h.Stays != nil && h.Stays()})
			ended = nil
		case text := <-h.Notes:
			send(noteMsg(text))
		case <-ctx.Done():
			return
		}
	}
}

// endedMsg says that the process has run the team to its end.
type endedMsg struct{ stays bool }

// endKeys names the keys that a person needs after the end of a run, as they work now.
func (m *Model) endKeys() string {
	const keys = "a lists it, q closes the screen."
	switch m.scope() {
	case inTeams, inTeam, inMember, inTask:
		return keys
	case inAttention:
		return "it is in this list. q closes the screen."
	}
	return "Esc, then " + keys
}

// ends closes the screen of a team that has ended, unless the person types or is needed.
func (p *program) ends() bool {
	if !p.ended {
		return false
	}
	if p.stays {
		if p.notice.text == "" && !p.away() && len(p.running) == 0 { // those have a line of their own there
			p.notice = notice{"The run has ended, and something needs you: " + p.endKeys(), waits}
		}
		return false
	}
	if one := p.ending(); one != nil { // its time is limited
		if p.notice.text == "" {
			p.notice = notice{"The team has ended. The screen closes when " + render.Cut(one.command, 40) +
				" has ended.", waits}
		}
		return false
	}
	if p.unsaid() || p.busy() && p.now.Sub(p.pressed) < attentive {
		p.notice = notice{"The team has ended. The screen closes when you have finished here.", waits}
		return false
	}
	return true
}
