package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// output is a stream that people read. Everything on it passes the sanitizer.
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
	o.paint(autoColor)
	return o
}

// When texts are colored.
const (
	autoColor   = "auto" // on a terminal that has them, unless the environment says otherwise
	alwaysColor = "always"
	neverColor  = "never"
)

// paint decides whether the stream is colored. NO_COLOR and CLICOLOR_FORCE are conventions of
// no-color.org and bixense.com/clicolors; --color takes precedence.
func (o output) paint(when string) {
	switch {
	case when != autoColor:
		o.Colors = when == alwaysColor
	case os.Getenv("NO_COLOR") != "":
		o.Colors = false
	case os.Getenv("CLICOLOR_FORCE") != "" && os.Getenv("CLICOLOR_FORCE") != "0":
		o.Colors = true
	default:
		o.Colors = o.terminal() && os.Getenv("TERM") != "dumb"
	}
}

// colorFlag is the flag --color. It applies to all output after it was parsed, such as a help text.
type colorFlag struct{ *app }

func (colorFlag) String() string { return autoColor }
func (colorFlag) Type() string   { return "when" }

func (f colorFlag) Set(when string) error {
	if !slices.Contains([]string{autoColor, alwaysColor, neverColor}, when) {
		return errors.New("it is auto, always or never")
	}
	f.out.paint(when)
	f.err.paint(when)
	return nil
}

// terminal reports whether the stream is a terminal.
func (o output) terminal() bool { return term.IsTerminal(int(o.file.Fd())) }

// size returns the size of the terminal in columns and lines, or a default.
func (o output) size() (width, height int) {
	width, height, err := term.GetSize(int(o.file.Fd()))
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// protocol returns standard output for a program. Its data has its own format, and is not changed.
// Only commands that document this use it.
func protocol() io.Writer { return os.Stdout }

// atTerminal reports whether standard input is a terminal.
func atTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// errorPrefix begins errors, and notePrefix messages that report no error.
const errorPrefix, notePrefix = "cadre:", "note:"

// say prints a message beside the result, after the prefix in that tone. Further lines of the text
// are indented.
func say(to *sanitize.Writer, tone render.Tone, prefix, text string) error {
	first, rest, more := strings.Cut(strings.TrimRight(text, "\n"), "\n")
	line := sanitize.Hanging{Text: strings.TrimSuffix(first, "\r"), At: len(prefix + " "), Indent: 4}
	if !more {
		return to.Printf("%s %s\n", tone.On(prefix), line)
	}
	return to.Printf("%s %s\n%s\n", tone.On(prefix), line, sanitize.Block(rest))
}
