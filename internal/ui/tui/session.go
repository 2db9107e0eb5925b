package tui

import (
	"strings"

	"cadre/internal/render"
	"cadre/internal/ui/sessionview"
)

// session is what the session of the open member shows. Its lines are harmless.
type session struct {
	lines   []sessionview.Line
	writing []string // of a text that is not whole yet
	ended   bool     // nothing more comes
	trouble string   // why there is nothing to show
	pos     position
	search  string
}

// position says which row is the last one that is shown. A line is as many rows as it needs.
type position struct {
	back  int // how many lines are hidden below; 0 with no hidden rows follows the session
	above int // how many rows of the last line are hidden
}

// mostSession bounds the lines that are kept. The log of a session is bounded, too.
const mostSession = 20_000

// sessionMsg is what comes from a session.
type sessionMsg struct {
	ref, member string
	lines       []sessionview.Line // new ones
	writing     []string
	ended       bool
	err         string
}

// add takes what comes from the session. What is read stays where it is.
func (s *session) add(msg sessionMsg) {
	if s.pos != (position{}) {
		s.pos.back += len(msg.lines)
	}
	s.lines = append(s.lines, msg.lines...)
	if over := len(s.lines) - mostSession; over > mostSession/10 {
		s.lines = append([]sessionview.Line(nil), s.lines[over:]...)
	}
	if s.pos.back >= len(s.lines) && len(s.lines) > 0 { // what was read is not kept any more
		s.pos = position{back: len(s.lines) - 1}
	}
	s.writing, s.ended = msg.writing, msg.ended
	if msg.err != "" {
		s.trouble = msg.err
	}
}

// timeColumn is the width of the time before a line.
const timeColumn = len("15:04:05  ")

// rows returns the rows of a line, painted.
func (s *session) rows(l sessionview.Line, width int) []string {
	at := strings.Repeat(" ", timeColumn)
	if width < 60 {
		at = ""
	} else if l.At != 0 {
		at = render.Clock(l.At) + "  "
	}
	symbol, rest := symbolOf(l.Text)
	quoted := strings.HasPrefix(l.Text, bar)
	indent := "  "
	if quoted {
		symbol, rest = faint.on(bar), l.Text[len(bar):]
		indent = faint.on(bar) + " "
	}
	room := width - 1 - len(at) - 1 - visible(symbol)
	var out []string
	for i, part := range wrap(rest, room) {
		part = s.highlighted(part)
		if i == 0 {
			out = append(out, " "+faint.on(at)+symbol+part)
			continue
		}
		out = append(out, " "+strings.Repeat(" ", len(at))+indent+part)
	}
	return out
}

// bar is before the text of an agent.
const bar = "│"

// highlighted marks the first place in the row that was searched for.
func (s *session) highlighted(row string) string {
	if s.search == "" {
		return row
	}
	from := find(row, s.search)
	if from < 0 {
		return row
	}
	to := from + len(s.search)
	return row[:from] + style{reverse: true}.on(row[from:to]) + row[to:]
}

// find returns where the text is in the line, without regard to upper and lower case; -1 if it is
// not.
func find(line, text string) int {
	for i := 0; i+len(text) <= len(line); i++ {
		if strings.EqualFold(line[i:i+len(text)], text) {
			return i
		}
	}
	return -1
}

// shown returns the last rows down to the position, as many as there is room for.
func (s *session) shown(width, height int) []string {
	var out []string // from the last one to the first one
	if s.pos == (position{}) {
		for i := len(s.writing) - 1; i >= 0 && len(out) < height; i-- {
			text := "│ " + s.writing[i]
			rows := s.rows(sessionview.Line{Text: text}, width)
			for j := len(rows) - 1; j >= 0 && len(out) < height; j-- {
				out = append(out, rows[j])
			}
		}
	}
	skip := s.pos.above
	for i := len(s.lines) - 1 - s.pos.back; i >= 0 && len(out) < height; i-- {
		rows := s.rows(s.lines[i], width)
		for j := len(rows) - 1 - skip; j >= 0 && len(out) < height; j-- {
			out = append(out, rows[j])
		}
		skip = 0
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// move scrolls by that many rows; a negative number is towards the beginning.
func (s *session) move(by, width, height int) {
	switch {
	case by >= farAway:
		s.pos = position{}
		return
	case by <= -farAway:
		s.top(width, height)
		return
	}
	for ; by < 0; by++ {
		i := len(s.lines) - 1 - s.pos.back
		if i < 0 {
			break
		}
		if s.pos.above++; s.pos.above >= len(s.rows(s.lines[i], width)) {
			s.pos = position{back: s.pos.back + 1}
		}
	}
	for ; by > 0 && s.pos != (position{}); by-- {
		if s.pos.above > 0 {
			s.pos.above--
			continue
		}
		s.pos.back--
		s.pos.above = len(s.rows(s.lines[len(s.lines)-1-s.pos.back], width)) - 1
	}
	if s.pos != (position{}) && len(s.shown(width, height)) < height { // the beginning is on the screen
		s.top(width, height)
	}
}

// top shows the beginning.
func (s *session) top(width, height int) {
	rows := 0
	for i, l := range s.lines {
		n := len(s.rows(l, width))
		if rows+n >= height {
			s.pos = position{back: len(s.lines) - 1 - i, above: rows + n - height}
			return
		}
		rows += n
	}
	s.pos = position{} // all of it fits
}

// seek shows the next line towards the beginning with the text, or with later towards the end. With
// here it may be the last line that is shown. It reports whether there is one.
func (s *session) seek(text string, later, here bool) bool {
	s.search = text
	if text == "" {
		return true
	}
	by, from := 1, s.pos.back
	if later {
		by = -1
	}
	if !here {
		from += by
	}
	for back := from; back >= 0 && back < len(s.lines); back += by {
		if find(s.lines[len(s.lines)-1-back].Text, text) >= 0 {
			s.pos = position{back: back}
			return true
		}
	}
	return false
}
