package tui

import (
	"bytes"
	"io"
	"os"
)

// terminal is the terminal, without questions about synchronized output. It stays a file for the
// library, which reads its size.
type terminal struct{ *os.File }

// question asks the terminal for a mode: synchronized output, and widths of whole characters.
var questions = [][]byte{[]byte("\x1b[?2026$p"), []byte("\x1b[?2027$p")}

// Write leaves out the questions.
func (t terminal) Write(p []byte) (int, error) {
	short := p
	for _, q := range questions {
		short = bytes.ReplaceAll(short, q, nil)
	}
	if _, err := t.File.Write(short); err != nil {
		return 0, err
	}
	return len(p), nil
}

// output returns where the screen is written.
func output(o Options) io.Writer {
	if o.Sync {
		return o.Out
	}
	return terminal{o.Out}
}

// Restore writes what returns a terminal to its lines, where a screen could not do that itself.
func Restore(out io.Writer) {
	_, _ = io.WriteString(out, "\x1b[<u\x1b[?2026l\x1b[?2027l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l"+
		"\x1b[?2004l\x1b[?1049l\x1b[>4m\x1b[m\x1b[?25h")
}
