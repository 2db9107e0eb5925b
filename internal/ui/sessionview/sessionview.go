// Package sessionview turns what a session shows into lines for people.
//
// # Guarantees
//
//   - A line begins with the symbol of its kind, or with a bar where it quotes. So nothing that an agent
//     writes passes for a line of cadre.
//   - A line has no line break and no character that controls a terminal, whatever the agent wrote.
//   - Nothing is shown twice: a text that came in parts is one text.
package sessionview

import (
	"iter"
	"strconv"
	"strings"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Line is one line of what a session shows.
type Line struct {
	At   team.Time // 0 for a line that continues the one before
	Text string
}

// These bound the lines of a text that is not the agent's own: a prompt, or the output of a tool.
// The lines that are left out are counted.
const (
	mostOfAPrompt = 12
	mostOfAResult = 6
)

// Lines turns the entries of one log into lines, in order. The zero value starts a log.
type Lines struct {
	parts string // of an unfinished text
	since team.Time
}

// Add returns the lines that the entry completes. It holds an unfinished text back until the text
// is finished, or another entry follows.
func (l *Lines) Add(e sessionlog.Entry) (lines []Line) {
	switch e.Kind {
	case sessionlog.Part:
		if l.parts == "" {
			l.since = e.At
		}
		l.parts += e.Text
		return nil
	case sessionlog.Text:
		l.parts = ""
	default:
		lines = l.Rest()
	}
	return append(lines, of(e)...)
}

// All returns the lines of the entries, and at the end those of an unfinished text. It stops at an
// error.
func All(entries iter.Seq2[sessionlog.Entry, error]) iter.Seq2[[]Line, error] {
	return func(yield func([]Line, error) bool) {
		var lines Lines
		for e, err := range entries {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(lines.Add(e), nil) {
				return
			}
		}
		yield(lines.Rest(), nil)
	}
}

// Rest returns the lines of an unfinished text, and does not return them again.
func (l *Lines) Rest() []Line {
	text := l.parts
	l.parts = ""
	return paragraph(l.since, quoted, text, 0)
}

// Writing returns the unfinished text of the agent.
func (l *Lines) Writing() string { return l.parts }

// of returns the lines of an entry that is complete by itself.
func of(e sessionlog.Entry) []Line {
	one := func(text string) []Line { return []Line{{e.At, text}} }
	because := ""
	if e.Text != "" {
		because = ": " + sanitize.Line(e.Text)
	}
	cut := ""
	if e.Cut {
		cut = " …"
	}
	switch e.Kind {
	case sessionlog.Started:
		return one("· the session started" + because)
	case sessionlog.Prompt:
		if strings.TrimSpace(e.Text) == "" { // such as a prompt that only wakes a shell
			return nil
		}
		return paragraph(e.At, "· ", "it was given: "+e.Text, mostOfAPrompt)
	case sessionlog.Turn:
		if e.Text != "" {
			return one("· " + sanitize.Line(e.Text))
		}
	case sessionlog.Text:
		return paragraph(e.At, quoted, e.Text+cut, 0)
	case sessionlog.Tool:
		return one("▸ " + use(e))
	case sessionlog.Result:
		symbol := "✓ "
		if e.Failed {
			symbol = "✗ "
		}
		if strings.TrimSpace(e.Text) == "" {
			return one(symbol + map[bool]string{true: "failed", false: "done"}[e.Failed])
		}
		if e.Failed {
			return ending(e.At, symbol, e.Text, e.Cut)
		}
		return paragraph(e.At, symbol, e.Text+cut, mostOfAResult)
	case sessionlog.Question:
		return one("? it asks to use " + use(e))
	case sessionlog.Plan:
		return paragraph(e.At, "? ", "its plan: "+e.Text+cut, 0)
	case sessionlog.Answer:
		if e.Failed {
			return one("✗ refused" + because)
		}
		return one("✓ allowed" + because)
	case sessionlog.Compacted:
		return one("! its context was compacted")
	case sessionlog.Retry:
		return one("↺ it tries again" + because)
	case sessionlog.TurnEnded:
		switch {
		case e.Interrupted:
			return one("! its turn was interrupted")
		case e.Failed:
			return one("✗ its turn failed" + because)
		}
		return one("· its turn ended")
	case sessionlog.Ended:
		if e.Failed {
			return one("✗ the session ended" + because)
		}
		return one("· the session ended")
	case sessionlog.Lost:
		if e.Count == 1 {
			return one("! 1 earlier entry was dropped")
		}
		return one("! " + strconv.FormatInt(e.Count, 10) + " earlier entries were dropped")
	}
	return nil
}

// use describes the use of a tool.
func use(e sessionlog.Entry) string {
	if input := render.Input(e.Text); input != "" && input != "{}" {
		return sanitize.Line(e.Tool) + ": " + input
	}
	return sanitize.Line(e.Tool)
}

// quoted stands before each line of an agent's text, and before the later lines of other texts.
const quoted = "│ "

// ending returns the last lines of a failed result, which say why it failed.
func ending(at team.Time, symbol, text string, cut bool) (lines []Line) {
	all := strings.Split(strings.TrimRight(sanitize.Lines(text), " \t\n"), "\n")
	left := len(all) - mostOfAResult
	switch {
	case left > 1:
		lines, all = []Line{{at, symbol + "… " + strconv.Itoa(left) + " lines before"}}, all[left:]
	case cut:
		lines = []Line{{at, symbol + "…"}}
	}
	for _, line := range all {
		if len(lines) == 0 {
			lines = append(lines, Line{at, symbol + sanitize.Line(line)})
			continue
		}
		lines = append(lines, Line{0, quoted + sanitize.Line(line)})
	}
	return lines
}

// paragraph returns the lines of a text; most of them at most, or all if most is 0.
func paragraph(at team.Time, symbol, text string, most int) (lines []Line) {
	text = strings.TrimRight(sanitize.Lines(text), " \t\n")
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		switch {
		case i == 0:
			lines = append(lines, Line{at, symbol + sanitize.Line(line)})
		case most > 0 && i == most && len(all) > most+1:
			return append(lines, Line{0, quoted + "… " + strconv.Itoa(len(all)-i) + " more lines"})
		default:
			lines = append(lines, Line{0, quoted + sanitize.Line(line)})
		}
	}
	return lines
}
