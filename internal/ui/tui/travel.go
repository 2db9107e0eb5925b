package tui

import (
	"cmp"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/inspect/history"
	"cadre/internal/render"
)

// travel is the person's position in the history of the open team.
type travel struct {
	seq     int64 // of the record that is shown; 0 for the present
	wanted  int64 // of the record that was requested last; 0 for none
	live    *teamView
	liveLog []feedLine
	items   []itemRow // what waited then
	session session   // of the open member: how far it is scrolled; see seen
}

// inPast is what a person is told who wants to change a team while the screen shows its past.
const inPast = "Nothing can be done in the past. 0 returns to the present."

// away reports whether the screen shows the past.
func (m *Model) away() bool { return m.travel.seq != 0 }

// travelTo requests the state after the record seq. The last record, and any later number, means
// the present.
func (m *Model) travelTo(seq int64) tea.Cmd {
	if seq >= m.past.seq {
		return m.present()
	}
	seq = max(1, seq)
	m.travel.wanted = seq
	ref, out := m.ref, m.out
	return func() tea.Msg { return out.Moment(ref, seq) }
}

// present returns to the present.
func (m *Model) present() tea.Cmd {
	if m.away() {
		m.team, m.feed = m.travel.live, m.travel.liveLog
	}
	m.travel = travel{}
	m.sortItems()
	return m.readTask()
}

// arrives shows a moment. It drops the moment if the person has requested another one since.
func (m *Model) arrives(msg momentMsg) {
	if msg.ref != m.ref || msg.seq != m.travel.wanted {
		return
	}
	m.travel.wanted = 0
	if msg.err != "" {
		m.notice = notice{msg.err, alarm}
		return
	}
	if !m.away() {
		m.travel.live, m.travel.liveLog = m.team, m.feed
	}
	m.applyTasks(msg.view)
	m.travel.seq, m.team, m.feed, m.scroll = msg.seq, msg.view, msg.feed, 0
	m.travel.items, m.travel.session = msg.items, session{}
	m.typing, m.menu = false, nil // they are for the present
	m.sortItems()
	if m.place == atAttention && m.itemIndex() < 0 { // nothing can be answered there
		m.chosen.item, m.detail = "", 0
		m.chooseItem(0)
	}
}

// from returns the record from which a step counts: the requested one, else the one that is shown.
func (m *Model) from() int64 { return cmp.Or(m.travel.wanted, m.travel.seq, m.past.seq) }

// step moves by that many records.
func (m *Model) step(by int64) tea.Cmd { return m.travelTo(m.from() + by) }

// toMark moves to the next mark, or to the previous one.
func (m *Model) toMark(forward bool) tea.Cmd {
	find, what := m.past.marks.Previous, "before"
	if forward {
		find, what = m.past.marks.Next, "after"
	}
	mark, is := find(m.from())
	switch {
	case is:
		return m.travelTo(mark.Seq)
	case forward && m.away():
		return m.present()
	}
	m.notice = notice{"There is no failure, wait or commit " + what + " this moment.", faint}
	return nil
}

// pastKeys returns the keys of time travel.
func pastKeys() []key {
	const where = inTeam | inTask | inMember | inAttention
	far := func(m *Model) int64 { return max(1, m.past.seq/20) }
	return []key{
		{[]string{"["}, where, "", "show the team one record earlier", noPast, func(m *Model) tea.Cmd { return m.step(-1) }},
		{[]string{"]"}, where, "", "show the team one record later", notAway, func(m *Model) tea.Cmd { return m.step(1) }},
		{[]string{"{"}, where, "past", "go back to the last failure, wait or commit", noPast, func(m *Model) tea.Cmd {
			return m.toMark(false)
		}},
		{[]string{"}"}, where, "", "go forward to the next failure, wait or commit", notAway, func(m *Model) tea.Cmd {
			return m.toMark(true)
		}},
		{[]string{"<"}, where, "", "go back by a twentieth of the history", noPast, func(m *Model) tea.Cmd {
			return m.step(-far(m))
		}},
		{[]string{">"}, where, "", "go forward by a twentieth of the history", notAway, func(m *Model) tea.Cmd {
			return m.step(far(m))
		}},
		{[]string{"0"}, where, "", "return to the present", notAway, (*Model).present},
		{[]string{"s"}, inTeam, "", "show what changed since you last looked", noSummary, (*Model).showSince},
	}
}

func noPast(m *Model) string {
	if m.ref == "" {
		return "No team is open."
	}
	if m.past == nil || !m.past.whole {
		return "The history has not been read yet."
	}
	return ""
}

func notAway(m *Model) string {
	if why := noPast(m); why != "" {
		return why
	}
	if !m.away() && m.travel.wanted == 0 {
		return "This is the present. [ shows the team one record earlier."
	}
	return ""
}

func noSummary(m *Model) string {
	switch {
	case m.past == nil || !m.past.whole:
		return "The history has not been read yet."
	case m.past.seen == 0:
		return "You look at this team for the first time."
	case m.past.since == nil || len(m.past.since.Lines(m.called)) == 0:
		return "Nothing changed since you last looked."
	}
	return ""
}

// showSince shows what changed since the person's last visit.
func (m *Model) showSince() tea.Cmd {
	sum := m.past.since
	lines := sum.Lines(m.called)
	lay := func(width int) []string {
		text := []string{"  " + faint.on(fmt.Sprintf("records %d to %d, %s to %s", sum.From, sum.To,
			render.Clock(sum.Began),
			render.Clock(sum.End))), ""}
		for _, l := range lines {
			for i, part := range wrap(oneLine(l), width-4) {
				text = append(text, []string{"· ", "  "}[min(i, 1)]+part)
			}
		}
		return text
	}
	m.overlay = &pager{title: "Since you last looked", text: lay(m.width), lay: lay}
	return nil
}

// slider shows which record is shown, and where it is in the history. { and } go to its marks.
func (m *Model) slider() string {
	left := []cell{{" " + render.Clock(m.team.at), style{color: waits.color, bold: true}},
		{fmt.Sprintf(" record %d of %d ", m.travel.seq, m.past.seq), plain}}
	right := []cell{{" 0 now ", faint}}
	room := m.width - widthOf(left) - widthOf(right) - gap
	if room < 10 {
		return line(m.width, left, right)
	}
	at := int((m.travel.seq - 1) * int64(room) / m.past.seq)
	for i := range room {
		begin := 1 + int64(i)*m.past.seq/int64(room)
		one := cell{"─", faint}
		if next, is := m.past.marks.Next(begin - 1); is && next.Seq < 1+int64(i+1)*m.past.seq/int64(room) {
			one = map[history.MarkKind]cell{history.MarkFailure: {"✗", alarm}, history.MarkWait: {"!", waits},
				history.MarkCommit: {"◆", good}}[next.Kind]
		}
		if i == at {
			one = cell{"●", style{color: waits.color, bold: true}}
		}
		left = append(left, one)
	}
	return line(m.width, left, right)
}
