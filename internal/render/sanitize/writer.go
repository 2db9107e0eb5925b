package sanitize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Sequence is a control sequence of cadre's own. Only the constants of this package are sequences.
type Sequence string

// The control sequences.
const (
	LineFeed  Sequence = "\n"
	EraseLine Sequence = "\r\x1b[K" // erase the line and go to its start

	LineStart Sequence = "\r" // go to the start of the line

	PasteMarksOn  Sequence = "\x1b[?2004h" // the terminal marks where a paste begins and ends
	PasteMarksOff Sequence = "\x1b[?2004l"

	// open the page of a full-screen program, without a cursor and without line wrap
	OpenPage  Sequence = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	ClosePage Sequence = "\x1b[?7h\x1b[?25h\x1b[?1049l" // leave the page
	TopOfPage Sequence = "\x1b[H\x1b[K"
	// erase before writing: after a line of the full width the cursor is still in its last column
	NextLine Sequence = "\r\n\x1b[K"
	RestOff  Sequence = "\r\n\x1b[J" // erases all lines below

	// empty the terminal with the lines that it scrolled away
	WipeTerminal Sequence = "\x1b[H\x1b[2J\x1b[3J"

	TitleBegin Sequence = "\x1b]2;" // what follows is the title of the window or pane
	TitleEnd   Sequence = "\x1b\\"

	Bold    Sequence = "\x1b[1m"
	Dim     Sequence = "\x1b[2m"
	Red     Sequence = "\x1b[31m"
	Green   Sequence = "\x1b[32m"
	Yellow  Sequence = "\x1b[33m"
	Cyan    Sequence = "\x1b[36m"
	Blue    Sequence = "\x1b[94m" // the bright ones: the others are hard to read on black
	Magenta Sequence = "\x1b[95m"
	Normal  Sequence = "\x1b[0m"
)

// looks are the sequences that change how the text after them looks.
var looks = []Sequence{Bold, Dim, Red, Green, Yellow, Cyan, Blue, Magenta, Normal}

// Writer sanitizes what is written to it. Several goroutines may use it. Each call makes one write
// to the underlying writer.
type Writer struct {
	// Columns returns the width of the terminal, for wrapping; nil if there is no terminal.
	Columns func() int
	// Colors says that [Styled] text has its look. Without it such text is like any other.
	Colors bool

	mu   sync.Mutex
	to   io.Writer
	text cleaner
}

// NewWriter returns a writer that writes to to.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes p with its line breaks. Use it for text that has no untrusted parts, or is sanitized
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

// Width returns the width of the terminal; 0 if there is no terminal.
func (w *Writer) Width() int {
	if w.Columns == nil {
		return 0
	}
	return w.Columns()
}

// Styled is text with a look, as an argument of [Writer.Printf]. Look is one of the sequences for
// text; "" for none.
type Styled struct {
	Look Sequence
	Text any // untrusted, and one line
}

// Printf formats like [fmt.Fprintf]. The format is cadre's own, and the arguments are untrusted:
// each becomes one line, however it is formatted, unless it is a [Block] or a [Hanging].
func (w *Writer) Printf(format string, args ...any) error {
	painted := false
	for i, arg := range args {
		switch arg := arg.(type) {
		case Block:
			args[i] = wrapped(arg.wrapped(w.Width()))
		case Hanging:
			args[i] = wrapped(arg.Wrapped(w.Width()))
		case Styled:
			args[i] = argument(arg.Text)
			if w.Colors && arg.Look != "" {
				args[i], painted = styled{arg.Look, args[i]}, true
			}
		default:
			args[i] = argument(arg)
		}
	}
	if columns := w.Width(); columns > 0 {
		return w.Print(Parts(fold(fmt.Sprintf(format, args...), columns))...)
	}
	if painted {
		// No argument has brought a look: each was made one line before, which has no escape
		// character.
		return w.Print(Parts(fmt.Sprintf(format, args...))...)
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// styled formats a harmless value with its look.
type styled struct {
	look  Sequence
	value any
}

// Format implements [fmt.Formatter].
func (s styled) Format(f fmt.State, verb rune) {
	io.WriteString(f, string(s.look)+fmt.Sprintf(fmt.FormatString(f, verb), s.value)+string(Normal))
}

// Print writes the parts in one write: a [Sequence] for text where the writer has colors, and
// everything else as text with its line breaks.
func (w *Writer) Print(parts ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []byte
	for _, part := range parts {
		look, is := part.(Sequence)
		switch {
		case is && !w.Colors:
		case is:
			out = append(append(out, w.text.end()...), look...)
			w.text.prev = 0
		default:
			out = append(out, w.text.clean([]byte(fmt.Sprint(part)))...)
		}
	}
	_, err := w.to.Write(out)
	return err
}

// Parts divides a line that a Writer with colors has written into its looks and the text between
// them, as arguments of [Writer.Draw].
func Parts(line string) (parts []any) {
	for line != "" {
		at := strings.IndexByte(line, '\x1b')
		if at != 0 {
			if at < 0 {
				at = len(line)
			}
			parts, line = append(parts, line[:at]), line[at:]
			continue
		}
		i := slices.IndexFunc(looks, func(l Sequence) bool { return strings.HasPrefix(line, string(l)) })
		if i < 0 {
			return append(parts, line)
		}
		parts, line = append(parts, looks[i]), line[len(looks[i]):]
	}
	return parts
}

// argument returns the harmless form of arg, which is formatted in its place.
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

// Draw writes the parts in one write: a [Sequence] as it is, everything else as one line.
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

// Others returns a writer for the output of another program. It writes whole lines behind the
// [Gutter], so that none passes for one of cadre's, whatever is written between them. Close ends
// the last line.
func (w *Writer) Others() io.WriteCloser { return &othersWriter{to: w} }

// longestLine bounds how much of an incomplete line is held.
const longestLine = 64 << 10

type othersWriter struct {
	to *Writer

	mu   sync.Mutex
	line []byte // the incomplete last line
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

// Close writes the rest of a text that ended within a character. It closes nothing else.
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
