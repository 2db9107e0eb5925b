package render

import (
	"strings"

	"cadre/internal/render/sanitize"

	"github.com/clipperhouse/displaywidth"
)

// HelpLine is a line of a help text that [Reflow] made fit.
type HelpLine struct {
	Text    string // without its line feed
	Heading bool   // it stands alone above indented lines, and ends with a colon
}

// Reflow makes a help text fit that many columns. Lines of prose that follow each other become one
// paragraph. An indented line keeps its beginning; what does not fit continues below its last
// column. The lines of commands stay whole, because people paste them.
func Reflow(text string, width int) (all []HelpLine) {
	var prose []string
	column := 0 // where the last column of a list begins
	add := func(text string) {
		for line := range strings.SplitSeq(text, "\n") {
			all = append(all, HelpLine{Text: line})
		}
	}
	end := func(indented bool) {
		if len(prose) == 0 {
			return
		}
		column = 0
		heading := indented && len(prose) == 1 && strings.HasSuffix(prose[0], ":")
		add(sanitize.Hanging{Text: strings.Join(prose, " ")}.Wrapped(width))
		all[len(all)-1].Heading = heading
		prose = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if indented := strings.HasPrefix(line, " "); line != "" && !indented {
			prose = append(prose, line)
			continue
		} else {
			end(indented)
		}
		line, column = hang(line, column, width)
		add(line)
	}
	end(false)
	return all
}

// hang wraps an indented line below its last column, and returns where that begins. That is after
// three spaces, or where it begins in the line before. It is 0 for a line without columns.
func hang(line string, column, width int) (string, int) {
	content := strings.TrimLeft(line, " ")
	indent := len(line) - len(content)
	if gap := strings.LastIndex(line, "   "); gap > indent {
		column = len(line) - len(strings.TrimLeft(line[gap:], " "))
	} else if indent == 0 || column >= len(line) || column == 0 || line[column-1] != ' ' {
		column = 0
	}
	switch {
	case displaywidth.String(line) <= width || strings.HasPrefix(content, "cadre "):
		return line, column
	case column == 0 || column > width/2: // there is no room below it
		return line[:indent] + sanitize.Hanging{Text: content, At: indent, Indent: indent + 4}.Wrapped(width), column
	}
	return line[:column] + sanitize.Hanging{Text: line[column:], At: column, Indent: column}.Wrapped(width), column
}
