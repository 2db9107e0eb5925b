package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func searchKeys() []key {
	return []key{{[]string{"S"}, inTeams | inTeam | inTask | inAttention, "",
		"search what members wrote, in messages, results, notes and tasks", nil, (*Model).searchTexts}}
}

// searchTexts asks for words, and finds the texts that have all of them: in the open team, or in
// all teams where a list is shown.
func (m *Model) searchTexts() tea.Cmd {
	if m.place == atTeams || m.place == atAttention && !m.away() {
		m.searchIn("")
		return nil
	}
	m.searchIn(m.ref)
	return nil
}

// searchIn asks for the words to search for in a team, or in all teams for "".
func (m *Model) searchIn(ref string) {
	where := "all teams"
	if ref != "" {
		where = m.teamName(ref)
	}
	m.asks(" search "+where+" ▸ ", strong, m.sought, func(m *Model, line string, _ bool) tea.Cmd {
		return m.searchFor(ref, line)
	})
	m.input.says = func(string) (string, style) {
		return `Finds texts that have every word. "Quoted words" follow each other.`, plain
	}
}

// searchFor searches for the words of the line. A key cancels it.
func (m *Model) searchFor(ref, line string) tea.Cmd {
	var until team.Time
	if m.away() && ref == m.ref {
		until = m.team.at
	}
	q := engine.FindWords(ref, line, until)
	if len(q.Words) == 0 {
		m.notice = notice{"Nothing was searched for: the line is empty.", waits}
		return nil
	}
	m.searches++
	m.sought, m.searching = line, m.searches
	m.notice = notice{"Searching … Any key cancels it.", faint}
	out, number := m.out, m.searches
	return func() tea.Msg { return out.Search(number, q) }
}

// foundMsg is the answer to a search.
type foundMsg struct {
	number  int
	query   engine.Search
	found   []engine.Found
	more    bool
	trouble string // why some teams were not searched; "" for none
	err     string
	line    *prompting // the line that was refused
}

// Search implements [outside].
func (s *source) Search(number int, q engine.Search) tea.Msg {
	s.mu.Lock()
	if s.endSearch != nil {
		s.endSearch()
	}
	ctx, end := context.WithCancel(s.ctx)
	s.endSearch = end
	s.mu.Unlock()
	defer end()
	f, err := s.engine.Find(ctx, q)
	msg := foundMsg{number: number, query: q, found: f.Found, more: f.More}
	if f.Trouble != nil {
		msg.trouble = oneLine(explain(f.Trouble))
	}
	if err != nil {
		msg.err = oneLine(explain(err))
	}
	return msg
}

// found lists what a search found, the newest first.
func (m *Model) found(msg foundMsg) {
	if msg.number != m.searching {
		return
	}
	m.searching, m.notice = 0, notice{}
	switch {
	case msg.err != "":
		m.notice = notice{msg.err, alarm}
		m.returns(msg.line)
		return
	case len(msg.found) == 0 && msg.trouble != "":
		m.notice = notice{"Not every team was searched: " + msg.trouble, alarm}
		return
	}
	all := msg.query.Team == ""
	var choices []choice
	for _, f := range msg.found {
		name := render.When(m.now, f.At)
		if all {
			name += "  " + m.teamName(f.Team)
		}
		choices = append(choices, choice{name: name, about: oneLine(f.Title()) + ": " + excerptOf(f),
			do: func(m *Model) tea.Cmd { return m.openFound(f) }})
	}
	title := team.Count(len(choices), "text") + " with " + oneLine(m.sought)
	switch {
	case len(choices) == 0:
		title = "No text with " + oneLine(m.sought)
	case msg.more:
		title = fmt.Sprintf("The newest %d texts with %s", len(choices), oneLine(m.sought))
	}
	var text []string
	if msg.trouble != "" {
		text = []string{"Not every team was searched: " + msg.trouble}
	}
	if !all && !m.away() {
		choices = append(choices, choice{name: "all teams",
			about: "Search for the same in all teams, with the archived runs.",
			do:    func(m *Model) tea.Cmd { return m.searchFor("", m.sought) }})
	}
	if len(msg.found) == 0 {
		m.notice = notice{"Nothing was found.", waits}
		if len(choices) == 0 {
			return
		}
	}
	m.menu = nil
	m.opens(title, text, choices)
}

// excerptOf returns the part of the text around the first word that was found.
func excerptOf(f engine.Found) string {
	var text strings.Builder
	for _, p := range f.Excerpt() {
		text.WriteString(p.Text)
	}
	return oneLine(text.String())
}

// openFound shows the task, the note, the message or the report that was found.
func (m *Model) openFound(f engine.Found) tea.Cmd {
	place := f.Leads()
	if place == engine.ToNote || place == engine.ToReport {
		again := *m.menu // the list stays below the text
		m.menu = &again
		m.overlay = m.foundText(f)
		return nil
	}
	cmd := m.goTo(f.Team)
	if place == engine.ToTask {
		return tea.Batch(cmd, m.openTask(f.Task))
	}
	m.tab, m.seeks = tabMessages, f.Record
	m.seek()
	m.overlay = m.foundText(f)
	return cmd
}

// goTo shows a team. Esc leads back to what was shown before, but for a task: another one may be
// opened next.
func (m *Model) goTo(ref string) tea.Cmd {
	if n := len(m.back); m.place == atTask && n > 0 {
		m.place, m.back = m.back[n-1].place, m.back[:n-1]
	}
	if m.place != atTeam || m.ref != ref {
		m.back = append(slices.Clip(m.back), stop{m.place, m.ref})
		m.place, m.notice = atTeam, notice{}
	}
	return m.open(ref)
}

// foundText shows a whole text that was found, with who wrote it and when.
func (m *Model) foundText(f engine.Found) *pager {
	head := render.When(m.now, f.At) + ", record " + fmt.Sprint(f.Record)
	if f.Archived {
		head += ", an archived run"
	}
	if m.teamName(f.Team) != m.teamName(m.ref) || m.place == atTeams {
		head = "team " + m.teamName(f.Team) + ", " + head
	}
	lay := func(width int) []string {
		text := append(wrapAll(head, width, faint), "")
		for _, l := range markdown(strings.TrimSpace(sanitize.Lines(f.Text)), width-4) {
			text = append(text, "  "+l)
		}
		return text
	}
	title := oneLine(f.Title())
	return &pager{title: strings.ToUpper(title[:1]) + title[1:], text: lay(m.width), lay: lay}
}

// seek scrolls the messages to the record that was found, once they are read.
func (m *Model) seek() {
	if m.seeks == 0 || m.team == nil || m.team.ref != m.ref {
		return
	}
	last := -1
	for i, l := range m.feed {
		if l.seq == m.seeks {
			last = i
		}
	}
	if last >= 0 {
		m.scroll = len(m.feed) - 1 - last
	}
	m.seeks = 0
}
