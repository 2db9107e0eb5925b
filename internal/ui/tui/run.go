package tui

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"cadre/internal/engine"
	"cadre/internal/team"
	"cadre/internal/ui/presence"
)

// Options configure the screen. All fields but Team and Presence must be set.
type Options struct {
	Engine  *engine.Engine
	Team    string   // the team to open; "" for the list of teams
	In, Out *os.File // the terminal
	Env     []string
	// Self is the program that the palette runs. TeamVariable is the environment variable that
	// names the team to it.
	Self, TeamVariable string
	// Asks returns the confirmation that a command asks for, from its output and its exit status;
	// "" for none. With --yes the command does not ask.
	Asks func(output string, status int) string
	// Sync is false for a terminal that garbles synchronized output, as some versions of tmux do.
	Sync bool
	// NoMouse leaves the mouse to the terminal, until the person takes it with a key.
	NoMouse bool
	// Notes is what the process tells the person on the screen; nil for nothing.
	Notes <-chan string
	// Presence records what the person looks at; nil records nothing.
	Presence *presence.Viewer
}

// framesASecond is the rate of a library whose rate cannot be changed; see [pace].
const framesASecond = 20

// Run shows the screen until the person quits or ctx ends. Teams continue.
func Run(ctx context.Context, o Options) error {
	_, err := show(ctx, o, nil)
	return err
}

// endTime is how long the screen may take to close when its context ends.
const endTime = time.Second

// show shows the screen. h is nil for a process that does not run a team.
func show(ctx context.Context, o Options, h *Hosted) (Leave, error) {
	var over <-chan struct{} // with a team, the wait for a terminal's size ends with the team
	if h != nil {
		over = h.Ended
	}
	if err := sized(ctx, over, o.Out); err != nil {
		return Closed, err
	}
	inner, end := context.WithCancel(ctx)
	defer end()
	// A message ends the program, so that it waits for the terminal's answers. A program that does
	// not end is killed.
	killed, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	s := &source{engine: o.Engine, first: o.Team, ctx: inner, self: o.Self, teamVariable: o.TeamVariable,
		env: o.Env, asks: o.Asks}
	m := newModel(s, o.Team, engine.Now)
	m.alone, m.mouseOff = alone(), o.NoMouse
	shapes := new(glyphs)
	top := &program{Model: m, settled: !o.Sync, presence: o.Presence, glyphs: shapes}
	if h != nil {
		m.hosted = h.Name
	}
	var p *tea.Program
	top.begins = func() { top.pace.begin(tickerOf(p)) }
	defer top.pace.end()
	p = tea.NewProgram(top, tea.WithContext(killed), tea.WithInput(o.In),
		tea.WithOutput(terminal{o.Out, shapes, !o.Sync, top.pace.wrote}),
		tea.WithEnvironment(o.Env), tea.WithFPS(framesASecond), tea.WithoutSignalHandler(),
		tea.WithFilter(withSize))
	s.send = p.Send
	s.running.Go(s.teams)
	s.running.Go(s.strangers)
	s.running.Go(func() {
		<-inner.Done()
		if ctx.Err() == nil { // the program has ended by itself
			return
		}
		late := time.AfterFunc(endTime, kill)
		p.Send(quitMsg{})
		<-killed.Done()
		late.Stop()
	})
	if h != nil {
		s.running.Go(func() { h.passOn(inner, p.Send) })
		h.Opened()
	} else if o.Notes != nil {
		s.running.Go(func() { (&Hosted{Notes: o.Notes}).passOn(inner, p.Send) })
	}
	_, err := p.Run()
	end()
	kill()
	s.running.Wait()
	s.ends(commandsEnd)
	if ctx.Err() != nil {
		return Closed, context.Cause(ctx)
	}
	return top.leave, err
}

// alone reports whether the process runs in the first job of its session. Then no shell controls
// jobs here: a suspended process would never be continued. The kernel ignores the suspension.
func alone() bool {
	session, err := unix.Getsid(0)
	return err == nil && session == unix.Getpgrp()
}

// sized waits until the terminal has a size. Some terminals have none before their window is shown.
// It returns an error if ctx ends or over is closed.
func sized(ctx context.Context, over <-chan struct{}, out *os.File) error {
	const again = 200 * time.Millisecond
	for {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width > 0 && height > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return context.Canceled
		case <-time.After(again):
		}
	}
}

// withSize drops a size of 0: at that size the library would write without pause.
func withSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, is := msg.(tea.WindowSizeMsg); is && (size.Width == 0 || size.Height == 0) {
		return nil
	}
	return msg
}

// program wraps the model, and handles the start and the end of the program.
type program struct {
	*Model
	settled  bool // the terminal has answered the questions of the start, or its time is over
	quitting bool
	leave    Leave
	ended    bool      // the process has run the team to its end
	stays    bool      // it stays open after that, until the person quits
	pressed  team.Time // the last key
	presence *presence.Viewer
	glyphs   *glyphs
	width    int // of the last size
	sizes    int // counts sizes
	pace     pace
	begins   func() // is called when the library has started to draw
}

// answerTime is how long a terminal may take to answer the questions that the library asks at the
// start. An answer that came after the program's end would appear on the prompt of the shell.
const answerTime = 300 * time.Millisecond

type settledMsg struct{}

// Init starts the timer for the terminal's answers.
func (p *program) Init() tea.Cmd {
	p.begins()
	return tea.Batch(p.Model.Init(), tea.Tick(answerTime, func(time.Time) tea.Msg { return settledMsg{} }))
}

// Update handles the end of the program, and passes everything else to the model.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	p.pace.after(msg)
	var again tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		again = p.resized(msg.Width)
	case redrawMsg:
		if int(msg) == p.sizes {
			return p, tea.ClearScreen
		}
		return p, nil
	case tea.ModeReportMsg:
		p.glyphs.cluster(msg)
	case settledMsg:
		if p.settled = true; p.quitting {
			return p, tea.Quit
		}
		return p, nil
	case quitMsg:
		return p, p.quit(msg.leave)
	case endedMsg:
		p.ended, p.stays = true, msg.stays
		if p.ask != nil && p.ask.leaves { // the answer has no meaning any more
			p.ask = nil
		}
		p.hosted, p.notice = "", notice{} // quitting has nothing to ask any more
	case outputMsg:
		if p.ended { // the person has not read it yet
			p.pressed = engine.Now()
		}
	case tea.KeyPressMsg:
		p.pressed = engine.Now()
	}
	_, cmd := p.Model.Update(msg)
	present(p.presence, msg, p.Model, engine.Now())
	if p.ends() {
		return p, p.quit(Closed)
	}
	return p, tea.Batch(cmd, again)
}

// redrawMsg asks for a full redraw, if the size is still the one with that number.
type redrawMsg int

// resized redraws a wider screen in full after its first frame. The library assumes that the new
// columns of that frame are empty, and would not clear them later.
func (p *program) resized(width int) tea.Cmd {
	before := p.width
	p.width = width
	if p.sizes++; before == 0 || width <= before {
		return nil
	}
	n := p.sizes
	return tea.Tick(3*steadyEvery, func(time.Time) tea.Msg { return redrawMsg(n) })
}

// View draws the screen.
func (p *program) View() tea.View {
	v := p.Model.View()
	v.Content = p.glyphs.hide(v.Content)
	return v
}

// cluster records whether the terminal counts clusters.
func (g *glyphs) cluster(msg tea.ModeReportMsg) {
	const unicodeCore = 2027
	if msg.Mode.Mode() == unicodeCore && (msg.Value.IsSet() || msg.Value.IsReset() || msg.Value.IsPermanentlySet()) {
		g.mu.Lock()
		g.clustered = true
		g.mu.Unlock()
	}
}

// quit ends the program once the terminal has answered. The first reason counts.
func (p *program) quit(how Leave) tea.Cmd {
	if !p.quitting {
		p.quitting, p.leave = true, how
	}
	if !p.settled {
		return nil
	}
	return tea.Quit
}
