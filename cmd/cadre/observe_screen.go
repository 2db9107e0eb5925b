package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"cadre/internal/observe"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// screen shows a team on the terminal while it is watched, on an alternate page. At the end it
// leaves the last state on the normal page.
type screen struct {
	out  output
	what string                  // what it waits for: a team, a session
	keys bool                    // a person can type
	view func(func(*team.State)) // shows the team while it does not change

	mu   sync.Mutex // guards the fields below
	said []render.Saying
	note string // the last warning

	wake chan struct{} // something has changed
	stop chan struct{}
	done chan struct{}
}

const (
	// mostSaid bounds how many messages are remembered: more than fit any screen.
	mostSaid = 200
	// frame is the minimum time between two drawings.
	frame = 40 * time.Millisecond
)

// openScreen starts to show the team.
func openScreen(out output, what string, keys bool, view func(func(*team.State))) *screen {
	p := &screen{out: out, what: what, keys: keys, view: view,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	out.Draw(sanitize.OpenPage)
	go p.run()
	return p
}

func (p *screen) run() {
	defer close(p.done)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		width, height := p.out.size()
		lines := p.lines(width, height)
		if p.keys && len(lines) < height {
			lines = append(lines, render.Line{Text: render.Cut("q: quit", width), Tone: render.Faint})
		}
		p.out.Draw(p.page(lines, height)...)
		select {
		case <-time.After(frame):
		case <-p.stop:
			return
		}
		select {
		case <-p.wake:
		case <-resized:
		case <-p.stop:
			return
		}
	}
}

// page replaces the content of the screen.
func (p *screen) page(lines []render.Line, height int) []any {
	var parts []any
	next := sanitize.TopOfPage
	for _, line := range lines {
		parts = append(append(parts, next), p.colored(line)...)
		next = sanitize.NextLine
	}
	if len(lines) < height {
		parts = append(parts, sanitize.RestOff)
	}
	return parts
}

// see adds an observation.
func (p *screen) see(seen observe.Seen) {
	p.mu.Lock()
	for _, r := range seen.Records {
		if _, first := r.Events[0].(*team.TeamCreated); first {
			p.said = nil
		}
		p.said = append(p.said, render.Sayings(r)...)
	}
	if n := len(p.said) - mostSaid; n > 0 {
		p.said = append([]render.Saying(nil), p.said[n:]...)
	}
	for _, text := range seen.Warnings {
		p.note = text
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it knows already
	}
}

// close leaves the alternate page, and prints what it showed last.
func (p *screen) close() {
	close(p.stop)
	<-p.done
	width, height := p.out.size()
	parts := []any{sanitize.ClosePage}
	for _, line := range p.lines(width, height-2) { // with room for the final messages
		parts = append(append(parts, p.colored(line)...), sanitize.LineFeed)
	}
	p.out.Draw(parts...)
}

// lines returns the lines of the board.
func (p *screen) lines(width, height int) []render.Line {
	p.mu.Lock()
	said, note := append([]render.Saying(nil), p.said...), p.note
	p.mu.Unlock()
	if note != "" {
		height--
	}
	var lines []render.Line
	p.view(func(s *team.State) {
		if s == nil {
			lines = []render.Line{{Text: "There is no " + p.what + " yet. It is shown when one begins.",
				Tone: render.Faint}}
			return
		}
		lines = render.Board(s, said, width, height-1)
	})
	if note != "" {
		lines = append(lines, render.Line{Text: render.Cut(render.Clean(note), width), Tone: render.Alarm})
	}
	return lines
}

// colored returns the line in the color of its tone.
func (p *screen) colored(line render.Line) []any {
	color := line.Tone.Look()
	if !p.out.Colors || color == "" || line.Text == "" {
		return []any{line.Text}
	}
	return []any{color, line.Text, sanitize.Normal}
}
