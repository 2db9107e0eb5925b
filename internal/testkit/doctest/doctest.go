// Package doctest reads the commands of a document and the output that the document shows for them.
// A test can then run the commands and compare the output.
//
// # Authority
//
// The package knows how documents write commands:
//
//   - A block of sh has a command on each line. What follows " #" is a comment.
//   - A block of text has a command behind "$ ", and its output below. A line "…" in the output
//     stands for any number of lines.
//
// The caller prepares whatever a command needs to run.
//
// # Guarantees
//
//   - Two outputs count as equal if they differ only in times, durations, widths of gaps, ids and
//     numbers of teammates.
package doctest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Command is a command line in a document.
type Command struct {
	Line   string   // without its comment
	Shows  bool     // whether the document shows what it prints
	Output []string // the lines that it shows
	at     int      // the line of the document on which Output begins, from 0
}

// rest is a line of a document that stands for any number of lines of output.
const rest = "…"

var (
	comment = regexp.MustCompile(`(?:^|\s+)#.*$`)
	quoted  = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// Commands returns the commands of a document in their order.
func Commands(text string) (found []Command) {
	kind := ""
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && kind != "":
			kind = ""
		case isFence:
			kind = fence
			if fence == "" {
				kind = "plain"
			}
		case kind == "sh":
			if line = strings.TrimSpace(withoutComment(line)); line != "" {
				found = append(found, Command{Line: line})
			}
		case kind == "text":
			if command, is := strings.CutPrefix(line, "$ "); is {
				found = append(found, Command{Line: strings.TrimSpace(withoutComment(command)), Shows: true, at: i + 1})
			} else if len(found) > 0 && found[len(found)-1].Shows &&
				found[len(found)-1].at+len(found[len(found)-1].Output) == i {
				found[len(found)-1].Output = append(found[len(found)-1].Output, line)
			}
		}
	}
	return found
}

// withoutComment removes the comment from a line of shell. A # within quotes starts no comment.
func withoutComment(line string) string {
	hidden := quoted.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("x", len(s)) })
	return line[:len(comment.ReplaceAllString(hidden, ""))]
}

// Written returns the document with the real output in place of the shown output. If the document
// shows an excerpt, Written replaces only the lines that the command no longer prints. Each gets
// the printed line that shares most words with it.
func Written(text string, c Command, printed string) string {
	is := linesOf(printed)
	if slices.Contains(c.Output, rest) {
		var excerpt []string
		for _, line := range c.Output {
			i := slices.IndexFunc(is, func(other string) bool { return masked(other) == masked(line) })
			if line == rest || i >= 0 || len(is) == 0 {
				excerpt = append(excerpt, line)
			} else {
				i = nearest(line, is)
				excerpt = append(excerpt, strings.TrimRight(is[i], " "))
			}
			if i >= 0 {
				is = slices.Delete(is, i, i+1)
			}
		}
		is = excerpt
	}
	lines := strings.Split(text, "\n")
	return strings.Join(slices.Replace(lines, c.at, c.at+len(c.Output), is...), "\n")
}

// nearest returns the index of the line that shares most words with the given line.
func nearest(line string, among []string) (best int) {
	most := -1
	for i, other := range among {
		common := 0
		for _, word := range strings.Fields(masked(other)) {
			if slices.Contains(strings.Fields(masked(line)), word) {
				common++
			}
		}
		if common > most {
			best, most = i, common
		}
	}
	return best
}

var masks = []struct{ pattern, as string }{
	{`\d{4}-\d\d-\d\d `, ""},
	{`\b\d\d:\d\d:\d\d\b`, "TIME"},
	{`\b\d+(\.\d+)? ?(ms|s|min|m|h)\b( \d+ ?(ms|s|min|m)\b)?`, "DURATION"},
	{`\b(worker|auditor|mate)-\d+\b`, "$1-N"},
	{`-([a-z2-7]{26}|[0-9a-f]{6})\b`, "-ID"},
	{`\b[0-9a-f]{7,40}\b`, "HASH"},
	{`#\d+`, "#N"},
	{` +`, " "},
}

// masked returns the line without the parts that differ from run to run.
func masked(line string) string {
	for _, m := range masks {
		line = regexp.MustCompile(m.pattern).ReplaceAllString(line, m.as)
	}
	return strings.TrimSpace(line)
}

func linesOf(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Differs describes how the printed output differs from the shown output, or returns "". Members
// work concurrently, so the order of lines that begin with a time does not count.
func (c Command) Differs(printed string) string {
	shown, is := normal(c.Output), normal(linesOf(printed))
	if !slices.Contains(c.Output, rest) {
		if slices.Equal(shown, is) {
			return ""
		}
		return fmt.Sprintf("the document shows of %s\n%s\nand it prints\n%s", c.Line, strings.Join(c.Output, "\n"),
			printed)
	}
	for _, line := range shown {
		if i := slices.Index(is, line); line != rest && i < 0 {
			return fmt.Sprintf("the document shows of %s\n%s\nwhich is not in\n%s", c.Line, line, printed)
		} else if line != rest {
			is = slices.Delete(is, i, i+1)
		}
	}
	return ""
}

// normal masks the lines. It sorts each run of lines that begin with a time.
func normal(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, masked(line))
	}
	for from := 0; from < len(all); from++ {
		to := from
		for to < len(all) && strings.HasPrefix(all[to], "TIME") {
			to++
		}
		slices.Sort(all[from:to])
		from = max(from, to-1)
	}
	return all
}
