// Package doctest reads the commands of a document, and the output that it shows of them, so that a
// test can run the ones and compare the other.
//
// # Authority
//
// The package knows how documents write commands:
//
//   - A block of sh has a command on each line. What follows " #" is a comment.
//   - A block of text has a command behind "$ ", and below it what the command prints. A line "…" in
//     that stands for any number of lines.
//
// What a command needs to run is its caller's affair.
//
// # Guarantees
//
//   - Two outputs are the same if they differ in times, durations, sizes of spaces, ids and numbers
//     of teammates alone.
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

// withoutComment cuts the comment off a line of shell. A # within quotes begins none.
func withoutComment(line string) string {
	hidden := quoted.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("x", len(s)) })
	return line[:len(comment.ReplaceAllString(hidden, ""))]
}

// Written returns the document with what the command really printed in place of what is shown. Where
// the document shows a part, each line that is not printed any more is replaced by the one that has
// most words in common with it.
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

// nearest is the index of the line that has most words in common with the one.
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

// masked is the line without what differs from run to run.
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

// Differs says how what a command printed differs from what the document shows, or returns "".
// Members work at the same time, so for lines that begin with a time the order does not count.
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

// normal masks the lines, and sorts those of each run of lines that begin with a time.
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
