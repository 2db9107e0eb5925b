package tui

import (
	"slices"
	"strings"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// feedLine is one event of the open team. Its text is sanitized.
type feedLine struct {
	seq  int64
	at   team.Time
	text string
}

// mostFeed bounds the lines that are kept. The whole history is in cadre log.
const mostFeed = 500

// feedOf returns the lines of records that follow each other. s is a state after them.
func feedOf(records []*team.Record, s *team.State) (lines []feedLine) {
	render.Headlines(records, s, func(r *team.Record, line string) {
		lines = append(lines, feedLine{r.Seq, r.At, render.Clean(strings.TrimLeft(line, " "))})
	})
	return lines
}

// stepsOf returns the steps of a consolidation that the record has, as lines.
func stepsOf(r *team.Record) (lines []string) {
	for _, e := range r.Events {
		if text := render.Step(e); text != "" {
			lines = append(lines, render.Clean(text))
		}
	}
	return lines
}

// oneLine sanitizes a text from outside, and makes it one line.
func oneLine(text string) string { return sanitize.Line(strings.TrimSpace(text)) }

// feedLines returns the last height lines of the feed. With scroll, it leaves out that many lines
// at the end.
func (m *Model) feedLines(width, height int) []string {
	if height <= 0 {
		return nil
	}
	if len(m.feed) == 0 {
		return []string{"  " + faint.on("Nothing has happened yet.")}
	}
	m.scroll = max(0, min(m.scroll, len(m.feed)-1))
	const least = 6 // lines that can spare one to say that others are hidden
	if height >= least && m.tab == tabMessages && m.scroll > 0 {
		shown, first := m.feedPart(width, height-1)
		return append(shown, hiddenRows(first, m.scroll))
	}
	shown, _ := m.feedPart(width, height)
	return shown
}

// feedPart returns the lines of the feed that are shown, and the index of the first one.
func (m *Model) feedPart(width, height int) (out []string, first int) {
	for i := len(m.feed) - 1 - m.scroll; i >= 0 && len(out) < height; i-- {
		one := m.feed[i]
		first = i
		at := render.Clock(one.at) + " "
		if width < 60 {
			at = at[:5] + " "
		}
		room := width - len("  ") - len(at) - 1
		parts := wrap(one.text, room)
		if len(parts) > 3 {
			parts = append(parts[:2:2], render.Cut(parts[2]+" "+parts[3], room))
		}
		for j := len(parts) - 1; j >= 0 && len(out) < height; j-- {
			if j > 0 {
				out = append(out, "  "+strings.Repeat(" ", len(at))+" "+parts[j])
				continue
			}
			symbol, rest := symbolOf(parts[0])
			out = append(out, "  "+faint.on(at)+" "+symbol+rest)
		}
	}
	slices.Reverse(out)
	return out, first
}

// symbolOf splits a line into its leading symbol, painted, and the rest.
func symbolOf(text string) (symbol, rest string) {
	styled, rest := render.Symbol(text)
	sign, _ := styled.Text.(string)
	for tone := render.Plain; tone <= render.Wait; tone++ {
		if sign != "" && tone != render.Plain && tone.Look() == styled.Look {
			return toned(tone).on(sign), rest
		}
	}
	return sign, rest
}
