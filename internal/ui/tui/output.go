package tui

import (
	"bytes"
	"io"
	"os"
)

// terminal writes to the terminal, with the parts of [glyphs] put back. It has a file descriptor,
// from which the library reads the size of the terminal.
type terminal struct {
	*os.File
	glyphs *glyphs
	quiet  bool   // leave out the questions
	wrote  func() // is called after each write
}

// questions query two modes of the terminal: synchronized output, and widths of whole clusters.
var questions = [][]byte{[]byte("\x1b[?2026$p"), []byte("\x1b[?2027$p")}

// Write puts the parts back. It leaves out the questions if the terminal is quiet.
func (t terminal) Write(p []byte) (int, error) {
	out := t.glyphs.show(p)
	for _, q := range questions {
		if t.quiet {
			out = bytes.ReplaceAll(out, q, nil)
		}
	}
	_, err := t.File.Write(out)
	if t.wrote(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString does what Write does.
func (t terminal) WriteString(s string) (int, error) { return t.Write([]byte(s)) }

// Restore writes the sequences that return a terminal from the screen to its lines. It is for a
// process that ended before its screen could write them.
func Restore(out io.Writer) {
	_, _ = io.WriteString(out, "\x1b[<u\x1b[?2026l\x1b[?2027l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l"+
		"\x1b[?2004l\x1b[?1049l\x1b[>4m\x1b[m\x1b[?25h")
}
