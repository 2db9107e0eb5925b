package render

import (
	"strings"

	"cadre/internal/render/sanitize"

	"github.com/clipperhouse/displaywidth"
)

// Reflow makes a help text fit that many columns. Lines of prose that follow each other become one
// paragraph. An indented line keeps its beginning; what does not fit continues below its last
// column. The lines of commands stay whole, because people paste them.
func Reflow(text string, width int) string {
	var out, prose strings.Builder
	column := 0 // where the last column of a list begins
	end := func() {
		if prose.Len() > 0 {
			out.WriteString(sanitize.Hanging{Text: prose.String()}.Wrapped(width) + "\n")
			prose.Reset()
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		indented := strings.TrimLeft(line, " ") != line
		switch {
		case line == "" || indented || strings.HasSuffix(line, ":"):
			if !indented && line != "" && prose.Len() > 0 { // the end of a paragraph
				prose.WriteString(" " + line)
				line = ""
				end()
				continue
			}
			end()
			if !indented {
				column = 0
			}
			line, column = hang(line, column, width)
			out.WriteString(line + "\n")
		case prose.Len() > 0:
			prose.WriteString(" " + line)
		default:
			prose.WriteString(line)
		}
	}
	end()
	return out.String()
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
