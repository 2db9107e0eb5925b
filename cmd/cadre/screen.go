package main

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"cadre/internal/observe"
	"cadre/internal/show"
	"cadre/internal/team"
)

// screen shows a team on a terminal for as long as it is watched, on a page of its own, and leaves the last of it where the command was called.
type screen struct {
	out  *os.File
	what string                  // is awaited: a team, a session
	view func(func(*team.State)) // shows the team while nobody changes it
	bare bool                    // without colors

	mu   sync.Mutex // guards what follows
	said []show.Saying
	note string // the last warning

	wake chan struct{} // something has changed
	stop chan struct{}
	done chan struct{}
}

const (
	// mostSaid is how many messages are remembered: more than any screen shows.
	mostSaid = 200
	// frame is the shortest time between two drawings.
	frame = 40 * time.Millisecond
)

// The page that a full-screen program has for itself, without a cursor and without wrapped lines; and the way back.
const (
	openPage  = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	closePage = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// openScreen begins to show the team.
func openScreen(out *os.File, what string, view func(func(*team.State))) *screen {
	p := &screen{out: out, what: what, view: view, bare: os.Getenv("NO_COLOR") != "", wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	io.WriteString(out, openPage)
	go p.run()
	return p
}

func (p *screen) run() {
	defer close(p.done)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		width, height := p.size()
		io.WriteString(p.out, page(p.draw(width, height), height))
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

// page puts lines in the place of what is on the screen. Each is cleared before it is written, because behind one of the whole width the cursor is still on its
// last column; and so is what is below them.
func page(lines string, height int) string {
	below := ""
	if strings.Count(lines, "\n")+1 < height {
		below = "\r\n\x1b[J"
	}
	return "\x1b[H\x1b[K" + strings.ReplaceAll(lines, "\n", "\r\n\x1b[K") + below
}

// see takes what was seen.
func (p *screen) see(seen observe.Seen) {
	p.mu.Lock()
	for _, r := range seen.Records {
		if _, first := r.Events[0].(*team.TeamCreated); first {
			p.said = nil
		}
		p.said = append(p.said, show.Sayings(r)...)
	}
	if n := len(p.said) - mostSaid; n > 0 {
		p.said = append([]show.Saying(nil), p.said[n:]...)
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

// close goes back from the page, and leaves there what it showed last.
func (p *screen) close() {
	close(p.stop)
	<-p.done
	width, height := p.size()
	io.WriteString(p.out, closePage+p.draw(width, height-2)+"\n") // with room for what is said in the end
}

func (p *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(p.out.Fd()))
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// draw returns the lines of the board, with the colors of the terminal.
func (p *screen) draw(width, height int) string {
	p.mu.Lock()
	said, note := append([]show.Saying(nil), p.said...), p.note
	p.mu.Unlock()
	if note != "" {
		height--
	}
	var lines []show.Line
	p.view(func(s *team.State) {
		if s == nil {
			lines = []show.Line{{Text: "There is no " + p.what + " yet. It is shown when one begins.", Tone: show.Faint}}
			return
		}
		lines = show.Board(s, said, width, height-1)
	})
	if note != "" {
		lines = append(lines, show.Line{Text: show.Cut(show.Clean(note), width), Tone: show.Alarm})
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.colored(line))
	}
	return b.String()
}

var colors = map[show.Tone]string{show.Strong: "\x1b[1m", show.Live: "\x1b[32m", show.Faint: "\x1b[2m", show.Alarm: "\x1b[31m"}

func (p *screen) colored(line show.Line) string {
	color := colors[line.Tone]
	if p.bare || color == "" || line.Text == "" {
		return line.Text
	}
	return color + line.Text + "\x1b[0m"
}
