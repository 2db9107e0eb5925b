package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/ui/lineedit"
)

// linePrompt is the last line of a terminal, in which a person writes to a member. It names the
// member in the member's color. Everything else that is printed scrolls above it.
//
// It belongs to one goroutine. Without the terminal's settings, the terminal edits and shows the
// line by itself, and this only divides what was typed.
type linePrompt struct {
	lineedit.Keys
	out   output
	to    string // the label that names the member
	label string // what stands before the line now
	look  sanitize.Sequence
	tty   *typing // nil without the terminal's settings
	drawn bool
}

// openPrompt draws a line to write to the member.
func openPrompt(out output, member, color string) *linePrompt {
	p := &linePrompt{Keys: lineedit.Keys{Most: team.MaxText}, out: out, to: "to " + member + " ▸ ",
		look: memberLook(color)}
	p.label = p.to
	if os.Getenv("TERM") != "dumb" {
		p.tty = openTyping(os.Stdin)
	}
	p.Drop = p.tty == nil // the terminal edits the line
	if p.tty != nil {
		out.Draw(sanitize.PasteMarksOn)
		p.draw()
	}
	return p
}

// draw draws the line, unless it is drawn.
func (p *linePrompt) draw() {
	if p.tty == nil || p.drawn {
		return
	}
	width, _ := p.out.size()
	label := render.Cut(p.label, max(4, width/2))
	before, _, after := p.Shown(width - 1 - render.Widest(label))
	begin := []any{sanitize.LineStart, label, before}
	if p.out.Colors {
		begin = []any{sanitize.LineStart, sanitize.Bold, p.look, label, sanitize.Normal, before}
	}
	parts := append([]any{sanitize.EraseLine}, begin...)
	if after != "" { // once more up to the cursor
		parts = append(append(parts, after), begin...)
	}
	p.out.Draw(parts...)
	p.drawn = true
}

// hide erases the line, so that something can be printed in its place.
func (p *linePrompt) hide() {
	if p.drawn {
		p.out.Draw(sanitize.EraseLine)
		p.drawn = false
	}
}

// typed handles what was typed, and returns the lines that were entered. The error says that one is
// too long. Such a line stays for the person to shorten, unless the terminal edits the line.
func (p *linePrompt) typed(data []byte) (entered []string, err error) {
	entered = p.Type(data)
	p.hide()
	if size := p.TooLong(); size > 0 {
		next := "shorten the line, or erase it with Ctrl-U"
		if p.tty == nil {
			next = "write it again in shorter lines"
		}
		err = fmt.Errorf("the line was not sent: it is too long: %d bytes, at most %d; %s", size, p.Most, next)
	}
	return entered, err
}

// close erases the line and restores the terminal.
func (p *linePrompt) close() {
	p.hide()
	if p.tty != nil {
		p.out.Draw(sanitize.PasteMarksOff)
		p.tty.end()
	}
}

// stopPatience is how long the prompt waits for the system to stop the process.
const stopPatience = 200 * time.Millisecond

// stop restores the terminal and stops the process, as Ctrl-Z does. When the process continues,
// stop draws the line again.
//
// The signal is SIGTTOU, because the system ignores it where no shell could continue the process:
// in an orphaned process group, and in process 1. There the process simply continues. SIGSTOP would
// freeze the terminal for ever, and SIGTSTP has a handler of Go's even after [signal.Reset].
func (p *linePrompt) stop(ctx context.Context) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	p.close()
	syscall.Kill(syscall.Getpid(), syscall.SIGTTOU)
	select {
	case <-continued: // this thread may run on for a moment
	case <-time.After(stopPatience):
	case <-ctx.Done():
	}
	if p.tty != nil && p.tty.begin() == nil {
		p.out.Draw(sanitize.PasteMarksOn)
	}
	p.draw()
}

// memberLook returns the look of a member with that color.
func memberLook(color string) sanitize.Sequence {
	switch color {
	case "red":
		return sanitize.Red
	case "green":
		return sanitize.Green
	case "yellow", "orange":
		return sanitize.Yellow
	case "blue":
		return sanitize.Blue
	case "purple", "pink":
		return sanitize.Magenta
	case "cyan":
		return sanitize.Cyan
	}
	return sanitize.Bold
}
