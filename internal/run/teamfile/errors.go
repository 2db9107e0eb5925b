package teamfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"cadre/internal/sys/lazyregexp"
	"cadre/internal/team"
)

// Error is one error in a team file.
type Error struct {
	File         string
	Line, Column int    // from 1, in characters; 0 for an error in a value that is not in the file
	Message      string // what is wrong, and what to do
	Source       string // the line of the file, without its line break
	Setting      string // parameter whose value is wrong or missing; "" for another error
	Cause        error  // why what the file names cannot be used; nil for another error
	// Namers are the members whose teams the file is for, each with its place, from the innermost
	// on; none for the file that is read.
	Namers []string
}

// In returns the error as one in the file of a team in a team. namer is the place of the member
// that names the file, and its message says which member it is.
func (e *Error) In(namer *Error) *Error {
	own := *e
	own.Namers = append(slices.Clone(e.Namers), fmt.Sprintf("%s, %s:%d:%d", namer.Message, namer.File, namer.Line,
		namer.Column))
	return &own
}

// Repeats reports whether the other error says the same of the same place.
func (e *Error) Repeats(other *Error) bool {
	return e.File == other.File && e.Line == other.Line && e.Column == other.Column && e.Message == other.Message
}

// Words returns the message, with the members whose teams the file is for.
func (e *Error) Words() string {
	if len(e.Namers) == 0 {
		return e.Message
	}
	return e.Message + " (" + strings.Join(e.Namers, "; ") + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Error returns file:line:column: message, and --set NAME: message for an error in a value.
func (e *Error) Error() string {
	switch {
	case e.Line == 0 && e.Setting != "":
		return "--set " + shorten(e.Setting) + ": " + e.Message
	case e.Line == 0:
		return e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Words())
}

// shownWidth bounds how much of a source line an excerpt shows: enough to recognize it, and short
// enough for a terminal.
const shownWidth = 100

// Excerpt shows the source line with a caret under the column, in two lines. It is empty for a
// blank line. It contains no control characters, whatever the file contains, so it can be printed
// on a terminal.
func (e *Error) Excerpt() string {
	line, column := []rune(e.Source), e.Column-1
	if strings.TrimSpace(e.Source) == "" {
		return ""
	}
	ellipsis := ""
	if start := column - shownWidth/2; len(line) > shownWidth && start > 0 {
		start = min(start, len(line)-shownWidth/2)
		line, column, ellipsis = line[start:], column-start+1, "…"
	}
	if len(line) > shownWidth {
		line = append(slices.Clone(line[:shownWidth]), '…')
	}
	for i, r := range line {
		if !unicode.IsPrint(r) {
			line[i] = ' '
		}
	}
	gutter := fmt.Sprintf("%5d", e.Line)
	return fmt.Sprintf("%s | %s%s\n%s | %s^", gutter, ellipsis, string(line),
		strings.Repeat(" ", len(gutter)), strings.Repeat(" ", min(column, len(line)+1)))
}

// Errors are all errors in a team file, in the order of the file. It is never empty.
type Errors []*Error

// shownErrors bounds the text of Errors: a person fixes the errors that are shown and runs again.
const shownErrors = 50

// Error joins all errors, each with its excerpt.
func (es Errors) Error() string {
	var b strings.Builder
	for i, e := range es {
		if i == shownErrors {
			fmt.Fprintf(&b, "\n%s: and %d more", e.File, len(es)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
		if excerpt := e.Excerpt(); excerpt != "" {
			b.WriteByte('\n')
			b.WriteString(excerpt)
		}
	}
	return b.String()
}

// Unwrap lets errors.As and errors.Is look at each error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// source is the text of a file and the errors found in it.
type source struct {
	name  string
	data  []byte
	lines []string // of data; split when first needed
	errs  Errors
	// filled says of each text with a value of a parameter where the value comes from.
	filled map[*yaml.Node]string
	// examples has the texts with a value that is only an example.
	examples map[*yaml.Node]bool
	// refused has the nodes about which everything is said.
	refused map[*yaml.Node]bool

	compared int // words compared so far by didYouMean
}

// failAt records an error at a place in the file.
func (s *source) failAt(line, column int, format string, args ...any) {
	line, column = max(line, 1), max(column, 1)
	text := ""
	if lines := s.split(); line <= len(lines) {
		text = lines[line-1]
	}
	s.errs = append(s.errs, &Error{File: s.name, Line: line, Column: column, Message: fmt.Sprintf(format, args...),
		Source: text})
}

// breaks matches line breaks as the YAML library counts them, so that excerpts count alike.
var breaks = lazyregexp.New("\r\n|[\n\r\u0085\u2028\u2029]")

func (s *source) split() []string {
	if s.lines == nil {
		s.lines = breaks().Split(string(s.data), -1)
	}
	return s.lines
}

// fail records an error at a node.
func (s *source) fail(at *yaml.Node, format string, args ...any) {
	if s.refused[at] {
		return
	}
	s.failAt(at.Line, at.Column, format, args...)
	if from := s.filled[meant(at)]; from != "" {
		s.errs[len(s.errs)-1].Message += " (here is the value of " + from + ")"
	}
}

// problems returns the errors sorted by place.
func (s *source) problems() Errors {
	slices.SortStableFunc(s.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return s.errs
}

// ours returns our key for what other programs' files call like that; "" for none.
func ours(foreign string) string {
	switch strings.ToLower(foreign) {
	case "dependson", "depends_on", "needs", "requires", "after":
		return "blockedBy"
	case "command", "cmd", "script":
		return "run"
	case "title":
		return "subject"
	case "assignee":
		return "owner"
	case "agents", "teammates":
		return "members"
	case "steps", "jobs":
		return "tasks"
	}
	return ""
}

// didYouMean suggests our word for another program's, or the known word nearest to the given one,
// as a clause to append to a message. If there is neither, it lists the known words. It returns ""
// after too many comparisons: for 10,000 wrong words among 10,000 ids it would take minutes.
func (s *source) didYouMean(word string, known []string) string {
	const enough = 100_000
	if s.compared += len(known); s.compared > enough {
		return ""
	}
	best := ours(word)
	if !slices.Contains(known, best) {
		best = team.Nearest(word, known)
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; known: " + list(known)
}

// list writes words as a person would, and stops before the list is too long to read.
func list(words []string) string {
	const shown = 30
	if len(words) == 0 {
		return "none"
	}
	if len(words) > shown {
		return strings.Join(words[:shown], ", ") + fmt.Sprintf(" and %d more", len(words)-shown)
	}
	return strings.Join(words, ", ")
}
