package report

import (
	"fmt"
	"strings"

	"cadre/internal/render/sanitize"
	"cadre/internal/sys/lazyregexp"
)

// clean makes a text harmless, and removes the terminal sequences by which a program colored or
// overwrote it.
func clean(s string) string {
	return sanitize.Strip(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
}

// cut shortens a text to about n characters, at the end of a word if one is near.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	s = string(r[:n])
	if space := strings.LastIndexByte(s, ' '); space > len(s)*2/3 {
		s = s[:space]
	}
	return s + " …"
}

// markup escapes the characters that have a meaning in the middle of a Markdown line.
var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<",
	"&lt;", "&", "&amp;",
	"|", `\|`, "~", `\~`, "#", `\#`)

// plain returns text on one line that Markdown shows as it is anywhere, even in a heading, in bold
// and in a table cell.
func plain(s string, n int) string {
	return markup.Replace(cut(strings.Join(strings.Fields(clean(s)), " "), n))
}

// code returns a code span that its content cannot end.
func code(s string) string {
	s = cut(strings.Join(strings.Fields(clean(s)), " "), 200)
	if s == "" {
		return ""
	}
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if len(ticks) > 1 {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// cellCode returns code for a table cell, where a pipe ends the cell even in a code span.
func cellCode(s string) string { return strings.ReplaceAll(code(s), "|", `\|`) }

// fence puts output in a fence that is longer than any in it. It keeps the end of a text that is
// too long.
func fence(output string) string {
	output = strings.TrimRight(clean(output), "\n\t ")
	if strings.TrimSpace(output) == "" {
		return ""
	}
	if over := len(output) - MaxText; over > 0 {
		output = strings.ToValidUTF8(output[over:], "")
		if _, rest, found := strings.Cut(output, "\n"); found {
			output = rest
		}
		output = fmt.Sprintf("… (%s bytes before this are left out)\n%s", thousands(int64(over)), output)
	}
	bar := strings.Repeat("`", max(3, longestRun(output, '`')+1))
	return bar + "text\n" + strings.Trim(output, "\n") + "\n" + bar
}

// longestRun returns the length of the longest run of c in s.
func longestRun(s string, c rune) (longest int) {
	run := 0
	for _, r := range s {
		if r == c {
			run++
		} else {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

var (
	fenceLine = lazyregexp.New("^( {0,3})(`{3,}|~{3,})(.*)$")
	atxLine   = lazyregexp.New(`^ {0,3}(#{1,6})([ \t].*)?$`)
	underline = lazyregexp.New(`^ {0,3}(=+|-+)[ \t]*$`)
	// An underline makes a heading only of a paragraph line: not of a list, quote, table, heading
	// or code.
	noParagraph = lazyregexp.New("^(\\s*$| {4,}|\t| {0,3}([-+*>#|]|```|~~~|\\d{1,9}[.)][ \t]))")
)

// demote makes Markdown of unknown origin part of a section. Its headings move down by that many
// levels, a fence that it leaves open is closed, and its HTML becomes text. A fence in a list moves
// to the margin, where its end is unambiguous.
func demote(markdown string, levels int) string {
	markdown = strings.Trim(clean(markdown), "\n")
	note := ""
	if over := len(markdown) - MaxText; over > 0 {
		markdown = strings.ToValidUTF8(markdown[:MaxText], "")
		if end := strings.LastIndexByte(markdown, '\n'); end > MaxText/2 {
			markdown = markdown[:end]
		}
		note = fmt.Sprintf("\n\n*… %s more bytes of this result are left out.*", thousands(int64(over)))
	}
	var out []string
	open, indent := "", "" // the current fence
	for line := range strings.SplitSeq(markdown, "\n") {
		for range len(indent) {
			line = strings.TrimPrefix(line, " ")
		}
		m := fenceLine().FindStringSubmatch(line)
		switch {
		case open != "" && m != nil && m[2][0] == open[0] && len(m[2]) >= len(open) && strings.TrimSpace(m[3]) == "":
			out = append(out, m[2])
			open, indent = "", ""
		case open != "":
			out = append(out, line)
		case m != nil && (m[2][0] == '~' || !strings.Contains(m[3], "`")):
			open, indent = m[2], m[1]
			out = append(out, m[2]+m[3])
		default:
			out = appendText(out, line, levels)
		}
	}
	if open != "" {
		out = append(out, open)
	}
	return strings.Trim(strings.Join(out, "\n"), "\n") + note
}

// appendText appends a line outside of fences to the lines before it.
func appendText(out []string, line string, levels int) []string {
	if m := atxLine().FindStringSubmatch(line); m != nil {
		return append(out, heading(len(m[1])+levels, m[2]))
	}
	m := underline().FindStringSubmatch(line)
	if m == nil || len(out) == 0 || strings.TrimSpace(out[len(out)-1]) == "" {
		return append(out, showHTML(line))
	}
	equals := m[1][0] == '='
	switch last := len(out) - 1; {
	case !noParagraph().MatchString(out[last]) && equals:
		out[last] = heading(1+levels, out[last])
	case !noParagraph().MatchString(out[last]):
		out[last] = heading(2+levels, out[last])
	case equals:
		out = append(out, `\`+strings.TrimSpace(line))
	default: // surely a rule, after an empty line
		out = append(out, "", "---")
	}
	return out
}

func heading(level int, text string) string {
	return strings.Repeat("#", min(level, 6)) + " " + showHTML(strings.TrimSpace(text))
}

var (
	html     = lazyregexp.New(`<[A-Za-z/!?]`)
	autolink = lazyregexp.New(`^<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>`)
)

// showHTML escapes the start of tags and comments outside of code spans. The report then shows
// HTML, and an open tag cannot swallow what follows.
func showHTML(line string) string {
	if !html().MatchString(line) {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		switch {
		case line[i] == '`':
			run := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			end := i + run
			if close := closingRun(line[end:], run); close >= 0 {
				end += close
			}
			b.WriteString(line[i:end])
			i = end
		case line[i] == '<' && !autolink().MatchString(line[i:]) && html().MatchString(line[i:min(i+2, len(line))]):
			b.WriteString("&lt;")
			i++
		default:
			b.WriteByte(line[i])
			i++
		}
	}
	return b.String()
}

// closingRun finds the end of the next run of exactly n backticks, or -1.
func closingRun(s string, n int) int {
	for i := 0; i < len(s); i++ {
		if s[i] != '`' {
			continue
		}
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if run == n {
			return i + run
		}
		i += run - 1
	}
	return -1
}

// firstLine returns the first line of a result if it is a sentence, as Markdown for a list: results
// begin with their verdict. A table, heading, list or code is not a verdict.
func firstLine(markdown string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(clean(markdown)), "\n")
	if noParagraph().MatchString(line) && !strings.HasPrefix(line, "**") || fenceLine().MatchString(line) {
		return ""
	}
	if short := cut(line, 300); short != line {
		return plain(line, 300) // the text is cut, so its marks may not be balanced
	}
	return showHTML(strings.TrimSpace(line))
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
