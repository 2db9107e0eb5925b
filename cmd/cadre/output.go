package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"cadre/internal/render/sanitize"
)

// output is a stream of the process that people read: everything on it passes the sanitizer.
type output struct {
	*sanitize.Writer
	file *os.File
}

func standardOutput() output { return newOutput(os.Stdout) }

func standardError() output { return newOutput(os.Stderr) }

func newOutput(file *os.File) output {
	o := output{sanitize.NewWriter(file), file}
	if o.terminal() {
		o.Columns = func() int { width, _ := o.size(); return width }
	}
	return o
}

// terminal reports whether the stream is a terminal.
func (o output) terminal() bool { return term.IsTerminal(int(o.file.Fd())) }

// size is that of the terminal in columns and lines, or of a usual one.
func (o output) size() (width, height int) {
	width, height, err := term.GetSize(int(o.file.Fd()))
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// protocol is standard output for a program that reads it: what it carries has a form of its own,
// and is not changed. Only commands that say so use it.
func protocol() io.Writer { return os.Stdout }

// atTerminal reports whether somebody sits at standard input.
func atTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// say tells a person something beside the result. Further lines of the text are set off.
func say(to *sanitize.Writer, text string) error {
	first, rest, more := strings.Cut(strings.TrimRight(text, "\n"), "\n")
	if !more {
		return to.Printf("cadre: %s\n", first)
	}
	return to.Printf("cadre: %s\n%s\n", strings.TrimSuffix(first, "\r"), sanitize.Block(rest))
}
