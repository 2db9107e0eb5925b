package tui

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/consolidate"
	"cadre/internal/render"
	"cadre/internal/team"
)

// stagingMsg carries what a consolidation of the team would do.
type stagingMsg struct {
	ref           string
	include, only []string // the options that the plan was made with
	plan          *consolidate.Plan
	why           string // why it is refused now, with what helps; "" if nothing is in the way
	err           string
}

// Staging implements [outside].
func (s *source) Staging(ref string, include, only []string) tea.Msg {
	msg := stagingMsg{ref: ref, include: include, only: only}
	t, err := s.engine.Open(s.ctx, ref)
	if err == nil {
		defer t.Close()
		msg.plan, err = t.PlanConsolidation(s.ctx, consolidate.Options{Actor: team.User, Include: include, Only: only})
	}
	switch {
	case err != nil:
		msg.err = oneLine(explain(err))
	case msg.plan.Refused != nil:
		msg.why = oneLine(explain(msg.plan.Refused))
	}
	return msg
}

// stage is a plan whose paths can be chosen.
type stage struct {
	first    *consolidate.Plan // the plan without options
	msg      stagingMsg        // the plan that is shown
	chosen   map[string]bool   // the paths of the work tree that are to be committed
	selected int               // index of the selected path in the shown plan
	line     int               // the line on which it is shown
}

// newStage returns a stage that commits what a consolidation without options would.
func newStage(msg stagingMsg) *stage {
	s := &stage{first: msg.plan, msg: msg, chosen: map[string]bool{}}
	for _, one := range msg.plan.Paths {
		if one.Fate == consolidate.Commits && one.Branch == "" {
			s.chosen[one.Path] = true
		}
	}
	return s
}

// move selects another path.
func (s *stage) move(by int) { s.selected = max(0, moved(s.selected, by, len(s.msg.plan.Paths))) }

// fixed says why the path cannot be chosen; "" if it can.
func fixed(one consolidate.Staged) string {
	switch {
	case one.Branch != "" && one.Fate == consolidate.Conflicts:
		return "The branch conflicts, and is merged as a whole or not at all."
	case one.Branch != "" && one.Fate == consolidate.LeftOut:
		return "Its branch conflicts, and is merged as a whole or not at all."
	case one.Branch != "":
		return "It is on a branch, which is merged as a whole."
	}
	return ""
}

// options returns the options with which a consolidation commits exactly the chosen paths of the
// work tree.
func (s *stage) options() (include, only []string) {
	all := true
	for _, one := range s.first.Paths {
		switch taken := one.Fate == consolidate.Commits; {
		case one.Branch != "":
		case taken && !s.chosen[one.Path]:
			all = false
		case !taken && s.chosen[one.Path]:
			include = append(include, one.Path)
		}
	}
	if !all {
		only = slices.Sorted(maps.Keys(s.chosen))
	}
	return include, only
}

// toggle chooses the selected path, or no longer.
func (m *Model) toggle() tea.Cmd {
	s := m.overlay.stage
	one := s.msg.plan.Paths[s.selected]
	if why := fixed(one); why != "" {
		m.notice = notice{why, waits}
		return nil
	}
	if !s.chosen[one.Path] {
		s.chosen[one.Path] = true
	} else if len(s.chosen) == 1 {
		m.notice = notice{"To commit nothing: cadre consolidate " + m.team.name + " --no-commit --complete", waits}
		return nil
	} else {
		delete(s.chosen, one.Path)
	}
	out, ref := m.out, m.ref
	include, only := s.options()
	m.stageText()
	return func() tea.Msg { return out.Staging(ref, include, only) }
}

// plansConsolidation asks what a consolidation of the open team would commit.
func (m *Model) plansConsolidation() tea.Cmd {
	out, ref := m.out, m.ref
	m.notice = notice{"Looking at what would be committed …", faint}
	return func() tea.Msg { return out.Staging(ref, nil, nil) }
}

// stages shows what a consolidation would do, path by path. Keys choose paths, and start it.
func (m *Model) stages(msg stagingMsg) {
	if msg.ref != m.ref || m.team == nil {
		return // the team was closed meanwhile
	}
	options := len(msg.include)+len(msg.only) > 0
	if m.overlay != nil && m.overlay.stage != nil {
		m.restages(msg)
		return
	}
	if options { // the view was left
		return
	}
	if m.notice = (notice{}); msg.err != "" {
		m.notice = notice{msg.err, alarm}
		return
	}
	m.overlay = &pager{title: "consolidate " + m.team.name, stage: newStage(msg), confirm: (*Model).consolidates}
	m.stageText()
}

// restages shows the plan for the paths that are chosen now. A plan for an earlier choice is left
// out.
func (m *Model) restages(msg stagingMsg) {
	s := m.overlay.stage
	include, only := s.options()
	if !slices.Equal(include, msg.include) || !slices.Equal(only, msg.only) {
		return
	}
	if m.notice = (notice{}); msg.err != "" {
		m.notice = notice{msg.err, alarm}
		return
	}
	path := s.msg.plan.Paths[s.selected].Path
	s.msg = msg
	s.selected = max(0, slices.IndexFunc(msg.plan.Paths, func(one consolidate.Staged) bool { return one.Path == path }))
	m.stageText()
}

// consolidates asks before it runs the consolidation that is shown.
func (m *Model) consolidates() tea.Cmd {
	s, name, args := m.overlay.stage, m.team.name, []string{"consolidate", m.team.id}
	include, only := s.options()
	for _, path := range include {
		args = append(args, "--include", filepath.Join(s.first.Top, path))
	}
	for _, path := range only {
		args = append(args, "--only", filepath.Join(s.first.Top, path))
	}
	text := fmt.Sprintf("Consolidate the team %s: %s? [y/N]", name, oneLine(s.msg.plan.String()))
	ref := s.msg.ref
	m.ask = yesOrNo(text, func(m *Model) tea.Cmd {
		if m.away() { // the moment has arrived since
			m.notice = notice{inPast, waits}
			return nil
		}
		p := &pager{title: "consolidate " + name, follows: ref}
		p.lay = func(width int) []string {
			text := wrapAll("It runs. Esc leaves this view, and the result is shown when it is there.", width, faint)
			for _, step := range p.steps {
				text = append(text, "  "+render.Cut(step, width-3))
			}
			return text
		}
		m.overlay = p
		p.resized(m.width)
		cmd := m.runCommand(args)
		if n := len(m.running); n > 0 { // this view shows it
			m.running[n-1].seen = true
		}
		return cmd
	})
	return nil
}

// stageText lays the plan out: what is in the way, and each path with the members that it is from.
func (m *Model) stageText() {
	s := m.overlay.stage
	p := s.msg.plan
	m.overlay.why = s.msg.why
	text := wrapAll(p.String()+".", m.width, strong)
	if len(p.Checks) > 0 {
		text = append(text, wrapAll("Checks that run first: "+oneLine(strings.Join(p.Checks, ", "))+".", m.width,
			plain)...)
	}
	if s.msg.why != "" {
		text = append(text, wrapAll("Not now: "+s.msg.why, m.width, alarm)...)
	}
	looks := map[consolidate.Fate]style{consolidate.Conflicts: alarm, consolidate.Unclear: waits,
		consolidate.Commits: good,
		consolidate.LeftOut: faint}
	s.line = 0
	var last consolidate.Fate
	for n, one := range p.Paths {
		if one.Fate != last {
			last = one.Fate
			text = append(text, "", "  "+looks[one.Fate].on(one.Fate.String()))
		}
		if n == s.selected {
			s.line = len(text)
		}
		text = append(text, m.stagedPath(one, n == s.selected)...)
	}
	m.overlay.text = text
}

// stagedPath returns the lines of a path, with a box where it can be chosen.
func (m *Model) stagedPath(one consolidate.Staged, selected bool) (lines []string) {
	box := "   "
	switch {
	case fixed(one) != "":
	case m.overlay.stage.chosen[one.Path]:
		box = "[x]"
	default:
		box = "[ ]"
	}
	mark := "  "
	if selected {
		mark = "▸ "
	}
	why, rest := render.Clean(one.Why), strings.TrimSpace(render.Clean(one.Origin()))
	if why != "" {
		why = ": " + why
	}
	if rest != "" {
		rest = "  " + rest
	}
	text := fmt.Sprintf("%-8s %s%s%s", one.Changes(), render.Clean(one.Path), rest, why)
	parts := wrap(text, m.width-8)
	if len(parts) > 1 { // the lines below the first are indented
		parts = wrap(text, m.width-17)
	}
	for i, part := range parts {
		begin := mark + box
		if i > 0 {
			begin, part = "     ", "         "+strings.TrimLeft(part, " ")
		}
		line := render.Cut(begin+" "+part, m.width-1)
		if selected {
			line = strong.on(line)
		}
		lines = append(lines, line)
	}
	return lines
}

// steps adds the steps of a consolidation to the view that follows it.
func (m *Model) steps(msg teamMsg) {
	if m.overlay == nil || m.overlay.follows != msg.ref || msg.fresh {
		return
	}
	m.overlay.steps = append(m.overlay.steps, msg.steps...)
	m.overlay.resized(m.width)
	m.overlay.top = farAway
}

// nothingToConfirm returns why the key does nothing.
func nothingToConfirm(m *Model) string {
	switch {
	case m.overlay.confirm == nil:
		return "There is nothing to confirm here."
	case m.overlay.why != "":
		return m.overlay.why
	}
	return ""
}

// nothingToChoose says why no path can be chosen.
func nothingToChoose(m *Model) string {
	if len(m.overlay.stage.msg.plan.Paths) == 0 {
		return "There is no path to choose."
	}
	return ""
}

// stagingKeys are the keys of a plan.
func stagingKeys() []key {
	return []key{
		{[]string{"space"}, inStaging, "choose", "commit the path, or leave it out", nothingToChoose, (*Model).toggle},
		{[]string{"enter"}, inStaging, "run it", "do what is shown", nothingToConfirm,
			func(m *Model) tea.Cmd { return m.overlay.confirm(m) }},
	}
}
