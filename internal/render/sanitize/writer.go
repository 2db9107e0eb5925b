package sanitize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Sequence is a control sequence of cadre's own. Only the constants of this package are sequences.
type Sequence string

// The control sequences.
const (
	LineFeed  Sequence = "\n"
	EraseLine Sequence = "\r\x1b[K" // and go to its beginning

	// the page of a full-screen program, without a cursor and without wrapped lines
	OpenPage  Sequence = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	ClosePage Sequence = "\x1b[?7h\x1b[?25h\x1b[?1049l" // back from it
	TopOfPage Sequence = "\x1b[H\x1b[K"
	// erased before it is written: behind a line of the whole width the cursor is still on its last
	// column
	NextLine Sequence = "\r\n\x1b[K"
	RestOff  Sequence = "\r\n\x1b[J" // erases all lines below

	Bold   Sequence = "\x1b[1m"
	Dim    Sequence = "\x1b[2m"
	Red    Sequence = "\x1b[31m"
	Green  Sequence = "\x1b[32m"
	Normal Sequence = "\x1b[0m"
)

// Writer sanitizes what is written to it. Several goroutines may use it; each call is one write
// below.
type Writer struct {
	// Columns returns how wide the terminal is, for what is to be wrapped; nil where there is none.
	Columns func() int

	mu   sync.Mutex
	to   io.Writer
	text cleaner
}

// NewWriter returns a writer to that one.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes p with its lines. It is for what has no text of others in it, or has sanitized it
// already: help, tables.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.text.clean(p)
	if len(out) == 0 {
		return len(p), nil
	}
	if n, err := w.to.Write(out); err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// Printf formats like [fmt.Fprintf]. The format is cadre's own. An argument is anybody's: it
// becomes one line, however it is formatted, unless it is a [Block].
func (w *Writer) Printf(format string, args ...any) error {
	for i, arg := range args {
		if b, ok := arg.(Block); ok && w.Columns != nil {
			args[i] = wrapped(b.wrapped(w.Columns()))
		} else {
			args[i] = argument(arg)
		}
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// argument returns what is formatted in the place of arg.
func argument(arg any) any {
	switch arg := arg.(type) {
	case Block, wrapped, int, int32, int64, uint64, float64, bool, oneLine:
		return arg
	case string:
		if plainLine(arg) {
			return arg
		}
	}
	return oneLine{arg}
}

// wrapped is a block with its gutter.
type wrapped string

// oneLine formats a value as one line.
type oneLine struct{ value any }

// Format implements [fmt.Formatter].
func (o oneLine) Format(f fmt.State, verb rune) {
	io.WriteString(f, Line(fmt.Sprintf(fmt.FormatString(f, verb), o.value)))
}

// Value writes v as JSON, on a line of its own.
func (w *Writer) Value(v any) error {
	out, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.JSON().Write(append(out, '\n'))
	return err
}

// JSON returns a writer for encoded JSON.
func (w *Writer) JSON() io.Writer { return &jsonWriter{w: w, clean: cleaner{escape: asJSON}} }

type jsonWriter struct {
	w     *Writer
	clean cleaner
}

func (j *jsonWriter) Write(p []byte) (int, error) {
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	out := j.clean.clean(p)
	if cut := j.w.text.end(); len(cut) > 0 {
		out = append(cut, out...)
	}
	if n, err := j.w.to.Write(out); err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// Draw writes the parts as one piece: a [Sequence] as it is, everything else as one line.
func (w *Writer) Draw(parts ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.text.end()
	for _, part := range parts {
		if s, ok := part.(Sequence); ok {
			out = append(out, s...)
			continue
		}
		out = append(out, Line(fmt.Sprint(part))...)
	}
	w.text.prev = 0
	_, err := w.to.Write(out)
	return err
}

// Others returns a writer for the output of another program. It writes whole lines, each with the
// [Gutter], so that none passes for one of cadre's, whatever is written between them. Close ends
// the last one.
func (w *Writer) Others() io.WriteCloser { return &othersWriter{to: w} }

// longestLine is how much of a line that does not end is held.
const longestLine = 64 << 10

type othersWriter struct {
	to *Writer

	mu   sync.Mutex
	line []byte // what has come of the last one
}

func (o *othersWriter) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line = append(o.line, p...)
	end := bytes.LastIndexByte(o.line, '\n')
	if end < 0 && len(o.line) < longestLine {
		return len(p), nil
	}
	if end < 0 {
		end = len(o.line)
	}
	err := o.put(o.line[:end])
	o.line = append(o.line[:0], o.line[min(end+1, len(o.line)):]...)
	return len(p), err
}

func (o *othersWriter) put(text []byte) error {
	var out strings.Builder
	for line := range strings.SplitSeq(string(text), "\n") {
		out.WriteString(Block(strings.TrimSuffix(line, "\r")).String() + "\n")
	}
	_, err := io.WriteString(o.to, out.String())
	return err
}

func (o *othersWriter) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) == 0 {
		return nil
	}
	line := o.line
	o.line = nil
	return o.put(line)
}

// Close writes what is left of a text that ended within a character. It closes nothing else.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.text.end()
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}
