package tui

import (
	"strings"

	"cadre/internal/render"
	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

// session is what the screen shows of the open member's session. Its lines are sanitized.
type session struct {
	lines   []sessionview.Line
	writing []string // the lines of a text that is still being written
	ended   bool     // the session shows nothing more
	trouble string   // why the session cannot be shown
	pos     position
	search  string
}

// position says which row of the session is the last one on the screen. A line can take several
// rows.
type position struct {
	back  int // how many lines are hidden below; 0, with above 0, follows the session
	above int // how many rows of the last line are hidden
}

// mostSession bounds the lines that are kept. A session's log is bounded, too.
const mostSession = 20_000

// sessionMsg carries news of a session.
type sessionMsg struct {
	ref, member string
	lines       []sessionview.Line // new ones
	writing     []string
	ended       bool
	err         string
}

// add stores news of the session. The lines that a person reads stay where they are.
func (s *session) add(msg sessionMsg) {
	if s.pos != (position{}) {
		s.pos.back += len(msg.lines)
	}
	s.lines = append(s.lines, msg.lines...)
	if over := len(s.lines) - mostSession; over > mostSession/10 {
		s.lines = append([]sessionview.Line(nil), s.lines[over:]...)
	}
	if s.pos.back >= len(s.lines) && len(s.lines) > 0 { // the lines on the screen were dropped
		s.pos = position{back: len(s.lines) - 1}
	}
	s.writing, s.ended = msg.writing, msg.ended
	if msg.err != "" {
		s.trouble = msg.err
	}
}

// until returns the lines that the session had shown at that time.
func (s *session) until(at team.Time) []sessionview.Line {
	end := len(s.lines)
	for i := end - 1; i >= 0; i-- {
		if l := s.lines[i]; l.At > at {
			end = i
		} else if l.At != 0 {
			break
		}
	}
	return s.lines[:end]
}

// seen returns the session of the open member as the screen shows it: in the past, as it was then.
func (m *Model) seen() *session {
	if !m.away() || m.team == nil {
		return &m.session
	}
	s := &m.travel.session
	s.lines, s.search = m.session.until(m.team.at), m.session.search
	if s.pos.back >= len(s.lines) {
		s.pos = position{back: max(0, len(s.lines)-1)}
	}
	return s
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

// bar stands before the text of an agent.
const bar = "│"

// highlighted marks the first match of the search in the row.
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

// find returns the index of the text in the line, ignoring case; -1 for none.
func find(line, text string) int {
	for i := 0; i+len(text) <= len(line); i++ {
		if strings.EqualFold(line[i:i+len(text)], text) {
			return i
		}
	}
	return -1
}

// shown returns the rows that end at the position, as many as fit.
func (s *session) shown(width, height int) []string {
	var out []string // from the last row to the first one
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

// move scrolls by that many rows, towards the beginning if by is negative.
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
	s.pos = position{} // all rows fit
}

// seek shows the next line with the text, towards the beginning, or towards the end if later is
// set. If here is set, the search starts with the last line on the screen. seek reports whether it
// found a line.
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
