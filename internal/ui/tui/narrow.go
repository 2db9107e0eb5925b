package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/inspect/attention"
	"cadre/internal/render"
	"cadre/internal/ui/filter"
)

// narrowing is the filter of a list, with its text as typed.
type narrowing struct {
	text   string
	filter filter.Filter
}

// narrowKeys returns the keys that filter lists.
func narrowKeys() []key {
	return []key{
		{[]string{"/", "f"}, inTeams | inTeam, "filter",
			"narrow the list: m:ann s:blocked t:core #12 words, - for anything but",
			noList, (*Model).narrow},
		{[]string{"z"}, inTeam, "", "show the tasks that groups made, or fold them under their groups", noGroup,
			(*Model).fold},
		{[]string{"tab"}, inPrompt, "", "complete what is typed", noCompletion, (*Model).complete},
	}
}

func noList(m *Model) string {
	if m.place == atTeam && m.team == nil {
		return "The team has not been read yet."
	}
	return ""
}

func noCompletion(m *Model) string {
	if m.input == nil || m.input.complete == nil && m.input.ask == nil {
		return "This line has no completion."
	}
	return ""
}

// narrow asks for a filter. An empty filter shows the whole list.
func (m *Model) narrow() tea.Cmd {
	at, label := &m.narrowTeams, " teams ▸ "
	complete := filter.Known{}
	for _, one := range m.everyTeam {
		complete.Teams = append(complete.Teams, one.name)
		for _, name := range one.roster {
			if !slices.Contains(complete.Members, name) {
				complete.Members = append(complete.Members, name)
			}
		}
	}
	if m.place == atTeam {
		complete = filter.Known{Teams: complete.Teams}
		at, label = &m.narrowTasks, " tasks ▸ "
		if m.tab != tabTasks {
			m.tab = tabTasks
		}
		for _, one := range m.team.members {
			complete.Members = append(complete.Members, one.name)
		}
		for _, one := range m.team.everyTask {
			complete.Tasks = append(complete.Tasks, one.called)
		}
	}
	m.asks(label, strong, at.text, func(m *Model, text string, _ bool) tea.Cmd {
		f, err := filter.Parse(text)
		if err != nil {
			again := m.narrow()
			m.input.field.set(text)
			m.notice = notice{oneLine(err.Error()), alarm}
			return again
		}
		*at = narrowing{strings.TrimSpace(text), f}
		m.applyTeams()
		m.applyTasks(m.team)
		return nil
	})
	m.input.complete = func(text string, cursor int) (int, []string) { return filter.Complete(text, cursor, complete) }
	return nil
}

// complete extends the term at the cursor as far as all candidates agree, and lists the candidates.
func (m *Model) complete() tea.Cmd {
	f := &m.input.field
	before := f.Before()
	if m.input.ask != nil {
		return m.input.ask(m, before)
	}
	from, terms := m.input.complete(before, len(before))
	m.completes(before, from, terms)
	return nil
}

// completes puts what all terms begin with in place of before[from:], and lists them.
func (m *Model) completes(before string, from int, terms []string) {
	f := &m.input.field
	if len(terms) == 0 {
		m.notice = notice{"Nothing is known that continues this.", faint}
		return
	}
	common := terms[0]
	for _, one := range terms[1:] {
		for !strings.HasPrefix(one, common) {
			common = common[:len(common)-1]
		}
	}
	if typed := before[from:]; len(common) > len(typed) || len(terms) == 1 {
		f.Cut(len([]rune(before[:from])), len([]rune(before)))
		f.insert(strings.ToValidUTF8(common, ""))
	}
	if len(terms) > 1 {
		m.notice = notice{oneLine(strings.Join(terms, "  ")), faint}
	}
}

// applyTeams filters the list of teams.
func (m *Model) applyTeams() {
	m.teams = nil
	for _, one := range m.everyTeam {
		if m.narrowTeams.filter.Match(one.item()) {
			m.teams = append(m.teams, one)
		}
	}
}

// item returns a team of the list in the form that filters match.
func (r teamRow) item() filter.Item {
	return filter.Item{Team: r.name, Members: r.roster, States: []string{r.state, firstWord(r.state)},
		Words: []string{r.name, r.project, r.goal}}
}

// applyTasks filters the tasks of the view.
func (m *Model) applyTasks(v *teamView) {
	if v == nil {
		return
	}
	narrowed := m.narrowTasks.text != ""
	folds := m.folds() && slices.ContainsFunc(v.everyTask, func(r taskRow) bool { return r.made })
	if !narrowed && !folds { // all, without a copy
		v.tasks = v.everyTask
		return
	}
	v.tasks = nil
	for _, one := range v.everyTask {
		if narrowed && m.narrowTasks.filter.Match(one.item(v.name)) || !narrowed && !one.made {
			v.tasks = append(v.tasks, one)
		}
	}
}

// folds reports whether the tasks that groups made are folded. A narrowed list has all that match.
func (m *Model) folds() bool { return !m.unfolded && m.narrowTasks.text == "" }

// more returns how many tasks the list has no row for, beside those that are folded.
func (m *Model) more() int {
	if m.folds() {
		return m.team.moreTasks
	}
	return m.team.moreTasks + m.team.moreMade
}

// fold folds the tasks that groups made, or shows them.
func (m *Model) fold() tea.Cmd {
	m.unfolded, m.tab = !m.unfolded, tabTasks
	m.applyTasks(m.team)
	return nil
}

func noGroup(m *Model) string {
	switch {
	case m.team == nil:
		return noList(m)
	case m.narrowTasks.text != "":
		return "A narrowed list has all tasks that match."
	case !slices.ContainsFunc(m.team.everyTask, func(r taskRow) bool { return r.made }):
		return "No task of this team makes others."
	}
	return ""
}

func (r taskRow) item(of string) filter.Item {
	i := filter.Item{Team: of, States: []string{firstWord(r.state), string(r.status)}, Number: r.id, Name: r.called,
		Words: []string{r.called, r.subject, of}}
	if r.owner != "" {
		i.Members = []string{r.owner}
	}
	if r.outOfRetries {
		i.States = append(i.States, "failed")
	}
	return i
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// narrowed returns a note about the filter and how many rows it hides; "" for a whole list.
func (m *Model) narrowed() string {
	n, all, text := len(m.teams), len(m.everyTeam), m.narrowTeams.text
	if m.place == atTeam && m.team != nil {
		n, all, text = len(m.team.tasks), len(m.team.everyTask), m.narrowTasks.text
		if m.tab != tabTasks && m.width < wide {
			return ""
		}
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%d of %d: %s  (/ changes this)", n, all, render.Clean(text))
}

// rosterOf returns the names of the members that have not ended, or whose items wait.
func rosterOf(e attention.Found) (names []string) {
	names = slices.Clone(e.Members)
	for _, i := range e.Items {
		if i.Member != "" && !slices.Contains(names, i.Member) {
			names = append(names, i.Member)
		}
	}
	return names
}
