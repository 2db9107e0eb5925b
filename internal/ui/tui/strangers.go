package tui

import (
	"slices"
	"time"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/sleep"
)

// strangersMsg carries the teams that Claude Code runs by itself. Their texts are sanitized.
type strangersMsg []teamRow

// StrangerPrefix begins the reference of a team that Claude Code runs and cadre does not observe.
// No name of a team begins with it. A command of the palette gets it in the variable of the team,
// and refuses it where it needs a team. Alone it says that no team is selected, so that the command
// does not take the team of the working directory.
const StrangerPrefix = "claude:"

// strangersEvery is how often the source looks at Claude Code's folder.
const strangersEvery = 5 * time.Second

// strangers sends the teams that Claude Code runs by itself whenever they changed, until ctx ends.
func (s *source) strangers() {
	var read catalog.Strangers
	var last strangersMsg
	for s.ctx.Err() == nil {
		var now strangersMsg
		for _, one := range read.List(s.ctx, s.engine.Home) {
			now = append(now, strangerRow(one))
		}
		if !slices.EqualFunc(now, last, func(a, b teamRow) bool {
			return a.ref == b.ref && a.updated == b.updated &&
				a.section == b.section
		}) {
			last = now
			s.send(now)
		}
		sleep.For(s.ctx, strangersEvery)
	}
}

// strangerRow returns the row of a team that Claude Code runs by itself. It cannot be opened before
// a process observes it.
func strangerRow(s catalog.Stranger) teamRow {
	row := teamRow{ref: StrangerPrefix + s.Name, name: sanitize.Line(s.Name), stranger: sanitize.Line(s.Name),
		project: "Claude Code", state: catalog.Unwatched, section: attention.SectionOf(0, !s.Active), works: s.Active,
		members: s.Teammates, done: s.Tasks["completed"], updated: s.UpdatedAt, goal: render.Clean(s.Goal),
		roster: sanitized(s.Members)}
	for _, status := range []string{"pending", "in_progress", "completed"} {
		row.tasks += s.Tasks[status]
	}
	if s.Err != nil {
		row.goal = "Its files cannot be read: " + render.Clean(s.Err.Error())
	}
	return row
}

// sanitized returns the texts as single lines, sanitized.
func sanitized(texts []string) (out []string) {
	for _, one := range texts {
		out = append(out, sanitize.Line(one))
	}
	return out
}

// withStrangers adds the teams of Claude Code to the list, but for those that a team of cadre's
// observes. Such a team works for as long as that of Claude Code does, also if nothing observes it
// any more.
func (m *Model) withStrangers(all []teamRow) []teamRow {
	for _, one := range m.strangers {
		i := slices.IndexFunc(all, func(r teamRow) bool { return r.observed == one.stranger })
		switch {
		case i < 0:
			all = append(all, one)
		case all[i].state == catalog.Unwatched && all[i].section == attention.Finished:
			all[i].section, all[i].works = one.section, one.works
		}
	}
	return all
}

// unobserved says how the selected team can be shown, if it is one of Claude Code's that cadre does
// not observe.
func (m *Model) unobserved() string {
	if one := m.teams[m.teamIndex()]; one.stranger != "" {
		return "This team of Claude Code is not observed. To show it, type in another terminal: cadre observe " +
			"--claude-team " +
			one.stranger + " --as-team " + one.stranger
	}
	return ""
}
