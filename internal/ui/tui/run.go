package tui

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// Options configure the screen. All fields but Team and Presence must be set.
type Options struct {
	Engine  *engine.Engine
	Team    string                 // the team to open; "" for the list of teams
	Command func(team.Hint) string // the command line of a hint
	Explain func(error) string     // an error, with what to type next
	In, Out *os.File               // the terminal
	Env     []string
	// Self is the program that the palette runs, and TeamVariable names the team to it.
	Self, TeamVariable string
	// Asks returns the question that a command wants to have confirmed, from what it printed and its exit
	// status; "" for none. With --yes the command does it.
	Asks func(output string, status int) string
	// Sync is false for a terminal that garbles synchronized output, as some versions of tmux do.
	Sync bool
	// Presence gets what the person looks at; nil if nobody asks.
	Presence *Presence
}

// framesASecond is enough for text that people read. Each frame costs something even if nothing changes.
const framesASecond = 20

// Run shows the screen until the person quits or ctx ends. Teams continue.
func Run(ctx context.Context, o Options) error {
	if err := sized(ctx, o.Out); err != nil {
		return err
	}
	inner, end := context.WithCancel(ctx)
	s := &source{engine: o.Engine, explain: o.Explain, ctx: inner, self: o.Self, teamVariable: o.TeamVariable,
		env: o.Env, asks: o.Asks}
	m := newModel(s, o.Command, o.Team, engine.Now())
	p := tea.NewProgram(&program{Model: m, settled: !o.Sync, presence: o.Presence}, tea.WithContext(ctx), tea.WithInput(o.In),
		tea.WithOutput(output(o)), tea.WithEnvironment(o.Env), tea.WithFPS(framesASecond), tea.WithoutSignalHandler(),
		tea.WithFilter(withSize))
	s.send = p.Send
	s.running.Go(s.teams)
	_, err := p.Run()
	end()
	s.running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// sized waits until the terminal has a size: some have none before a window is shown.
func sized(ctx context.Context, out *os.File) error {
	const again = 200 * time.Millisecond
	for {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width > 0 && height > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(again):
		}
	}
}

// withSize drops a size of 0, at which the library would write all the time.
func withSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, is := msg.(tea.WindowSizeMsg); is && (size.Width == 0 || size.Height == 0) {
		return nil
	}
	return msg
}

// program is the model with the start and the end of the program around it.
type program struct {
	*Model
	settled  bool // the terminal has answered what it was asked at the start, or had the time to
	quitting bool
	presence *Presence
}

// answerTime is how long a terminal may take to answer what the library asks it at the start. Answers
// that come after the end of the program would stand on the prompt of the shell.
const answerTime = 300 * time.Millisecond

type settledMsg struct{}

// Init starts the clock for the answers of the terminal.
func (p *program) Init() tea.Cmd {
	return tea.Batch(p.Model.Init(), tea.Tick(answerTime, func(time.Time) tea.Msg { return settledMsg{} }))
}

// Update handles the end of the program, and leaves everything else to the model.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg.(type) {
	case settledMsg:
		if p.settled = true; p.quitting {
			return p, tea.Quit
		}
		return p, nil
	case quitMsg:
		if p.quitting = true; p.settled {
			return p, tea.Quit
		}
		return p, nil
	}
	_, cmd := p.Model.Update(msg)
	p.presence.note(msg, p.Model, engine.Now())
	return p, cmd
}
