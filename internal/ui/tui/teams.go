package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cadre/internal/inspect/attention"
	"cadre/internal/team"
)

// teamsBody shows the list of teams. Its three sections are always there.
func (m *Model) teamsBody(width, height int) []string {
	t := table{columns: []column{{head: "TEAM", most: 24, tail: true},
		{head: "PROJECT", most: 24, tail: true}, {head: "STATE", most: 24}, {head: "TASKS", right: true, spare: 1},
		{head: "MEMBERS", right: true, spare: 6}, {head: "NEEDS", right: true}, {head: "TOKENS", right: true, spare: 5},
		{head: "COST", right: true, spare: 4}, {head: "CHANGED", right: true, spare: 3}, {head: "GOAL", flex: true,
			spare: 2}},
		selected: m.teamIndex(), headless: true}
	projects := m.projects(width)
	for i, one := range m.teams {
		t.rows = append(t.rows, m.teamCells(one, projects[i]))
	}
	rows := t.lines(width, len(t.rows)+1)
	head := t
	head.rows, head.headless = t.rows, false
	var top []string
	if len(rows) > 0 {
		top = head.lines(width, 2)[:1]
	}
	out, at := m.sections(top, rows, width, height > 12)
	selected := 0
	if t.selected >= 0 && t.selected < len(at) {
		selected = at[t.selected]
	}
	room := height
	const least = 6 // lines that can spare one to say that more follow
	if len(out) > height && height >= least {
		room--
	}
	from, to := window(len(out), selected, room)
	above, below := 0, 0
	for j, one := range m.teams {
		switch {
		case at[j] < from:
			above++
		case at[j] >= to:
			below++
		default:
			m.clickable = append(m.clickable, spot{frameTop + at[j] - from, 0, width, onTeam, one.ref})
		}
	}
	if shown := out[from:to]; room == height {
		return shown
	}
	return append(slices.Clone(out[from:to]), hiddenRows(above, below))
}

// sections puts the rows of the teams below the names of their sections, after the lines top. at
// has the index of each team's line. spaced puts an empty line between sections.
func (m *Model) sections(top, rows []string, width int, spaced bool) (out []string, at []int) {
	out, at = top, make([]int, len(m.teams))
	for i, name := range attention.Sections {
		n := 0
		for _, one := range m.teams {
			if one.section == attention.Section(i) {
				n++
			}
		}
		look := strong
		if attention.Section(i) == attention.NeedsYou && n > 0 {
			look = style{color: waits.color, bold: true}
		}
		out = append(out, " "+look.on(name)+" "+faint.on(strconv.Itoa(n)))
		for j, one := range m.teams {
			if one.section != attention.Section(i) {
				continue
			}
			at[j] = len(out)
			out = append(out, rows[j])
		}
		if n == 0 {
			for _, part := range wrap(m.emptySection(attention.Section(i)), width-3) {
				out = append(out, "  "+faint.on(part))
			}
		}
		if spaced && i < len(attention.Sections)-1 {
			out = append(out, "")
		}
	}
	return out, at
}

// projects returns what tells teams of one name apart: their projects, or their names in commands.
// It is empty for other teams, and the column is left out if all names differ.
func (m *Model) projects(width int) []string {
	named := map[string]int{}
	for _, one := range m.teams {
		named[one.name]++
		named[one.name+"\x00"+one.project]++
	}
	shared := "" // the parent folder of all projects in the list, if their paths are too long
	if width < 60 {
		shared = sharedFolder(m.teams, named)
	}
	projects := make([]string, len(m.teams))
	for i, one := range m.teams {
		switch {
		case named[one.name+"\x00"+one.project] > 1:
			projects[i] = oneLine(one.ref)
		case named[one.name] > 1:
			projects[i] = strings.TrimPrefix(one.project, shared)
		}
	}
	return projects
}

// sharedFolder returns the common parent folder of the projects whose teams share a name, with a
// slash at its end.
func sharedFolder(teams []teamRow, named map[string]int) (shared string) {
	first := true
	for _, one := range teams {
		if named[one.name] < 2 {
			continue
		}
		if first {
			shared, first = one.project, false
		}
		for !strings.HasPrefix(one.project, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	return shared[:strings.LastIndexByte(shared, '/')+1]
}

// emptySection returns the text of an empty section.
func (m *Model) emptySection(s attention.Section) string {
	switch {
	case !m.listed:
		return "reading …"
	case !m.narrowTeams.filter.Empty():
		return "No team of this section matches the filter."
	case s == attention.NeedsYou:
		return "Nothing waits for you."
	case s == attention.Working && slices.ContainsFunc(m.teams, func(r teamRow) bool { return r.works }):
		return "The teams at work need you."
	case s == attention.Working:
		return "No team is running. Start one in another terminal: cadre run FILE, or cadre create NAME"
	}
	return "No team has ended."
}

func (m *Model) teamCells(one teamRow, project string) []cell {
	needs := cell{}
	if one.needs > 0 {
		needs = cell{strconv.Itoa(one.needs), waits}
	}
	changed := ""
	if one.updated > 0 {
		changed = age(m.now.Sub(one.updated))
	}
	return []cell{{one.name, strong}, {project, faint}, {one.state, stateStyle(one.state)},
		{fmt.Sprintf("%d/%d", one.done, one.tasks), plain}, {nonzero(one.members), plain}, needs,
		{tokens(one.usage), faint}, {cost(one.usage), faint}, {changed, faint}, {one.goal, faint}}
}

// teamIndex returns the index of the selected team; -1 if the list is empty.
func (m *Model) teamIndex() int {
	if i := slices.IndexFunc(m.teams, func(r teamRow) bool { return r.ref == m.chosen.team }); i >= 0 {
		return i
	}
	return min(0, len(m.teams)-1)
}

func nonzero[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// age returns a duration in a few characters.
func age(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// since returns the age of a time; "" for an unknown time.
func (m *Model) since(at team.Time) string {
	if at == 0 {
		return ""
	}
	if m.away() {
		return age(m.team.at.Sub(at))
	}
	return age(m.now.Sub(at))
}
