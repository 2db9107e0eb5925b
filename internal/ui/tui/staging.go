package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/consolidate"
	"cadre/internal/render"
	"cadre/internal/team"
)

// stagingMsg has what a consolidation of the team would do.
type stagingMsg struct {
	ref  string
	plan *consolidate.Plan
	why  string // why it is refused now, with what helps; "" if nothing is in the way
	err  string
}

// Staging implements [outside].
func (s *source) Staging(ref string) tea.Msg {
	msg := stagingMsg{ref: ref}
	t, err := s.engine.Open(s.ctx, ref)
	if err == nil {
		defer t.Close()
		msg.plan, err = t.PlanConsolidation(s.ctx, consolidate.Options{Actor: team.User})
	}
	switch {
	case err != nil:
		msg.err = oneLine(s.explain(err))
	case msg.plan.Refused != nil:
		msg.why = oneLine(s.explain(msg.plan.Refused))
	}
	return msg
}

// plansConsolidation asks what a consolidation of the open team would commit.
func (m *Model) plansConsolidation() tea.Cmd {
	out, ref := m.out, m.ref
	m.notice = notice{"Looking at what would be committed …", faint}
	return func() tea.Msg { return out.Staging(ref) }
}

// stages shows what a consolidation would do, path by path. A key then starts it.
func (m *Model) stages(msg stagingMsg) {
	if msg.ref != m.ref || m.team == nil {
		return // it was closed meanwhile
	}
	if m.notice = (notice{}); msg.err != "" {
		m.notice = notice{msg.err, alarm}
		return
	}
	name, id := m.team.name, m.team.id
	shown := &pager{title: "consolidate " + name, text: m.stagingText(msg), why: msg.why}
	shown.confirm = func(m *Model) tea.Cmd {
		text := fmt.Sprintf("Consolidate the team %s: %s? [y/N]", name, oneLine(msg.plan.String()))
		m.ask = yesOrNo(text, func(m *Model) tea.Cmd {
			m.overlay = &pager{title: "consolidate " + name, follows: msg.ref, text: []string{
				"  " + faint.on("It runs. Esc leaves this view, and the result is shown when it is there.")}}
			return m.runCommand([]string{"consolidate", id})
		})
		return nil
	}
	m.overlay = shown
}

// stagingText lays a plan out: what is in the way, and each path with the members that it is from.
func (m *Model) stagingText(msg stagingMsg) (text []string) {
	p := msg.plan
	text = append(text, wrapAll(p.String()+".", m.width, strong)...)
	if len(p.Checks) > 0 {
		text = append(text, wrapAll("Checks that run first: "+oneLine(strings.Join(p.Checks, ", "))+".", m.width, plain)...)
	}
	if msg.why != "" {
		text = append(text, wrapAll("Not now: "+msg.why, m.width, alarm)...)
	}
	looks := map[consolidate.Fate]style{consolidate.Conflicts: alarm, consolidate.Unclear: waits, consolidate.Commits: good,
		consolidate.LeftOut: faint}
	var last consolidate.Fate
	for _, one := range p.Paths {
		why := ""
		if one.Fate != last {
			last = one.Fate
			text = append(text, "", "  "+looks[one.Fate].on(one.Fate.String()))
		}
		if why = render.Clean(one.Why); why != "" {
			why = ": " + why
		}
		rest := strings.TrimSpace(render.Clean(one.Origin()))
		if rest != "" {
			rest = "  " + rest
		}
		for i, part := range wrap(fmt.Sprintf("%-8s %s%s%s", one.Changes(), render.Clean(one.Path), rest, why), m.width-6) {
			if i > 0 {
				part = "         " + strings.TrimLeft(part, " ")
			}
			text = append(text, "    "+render.Cut(part, m.width-5))
		}
	}
	return text
}

// steps adds what a consolidation has done to the view that follows it.
func (m *Model) steps(msg teamMsg) {
	if m.overlay == nil || m.overlay.follows != msg.ref || msg.fresh {
		return
	}
	for _, step := range msg.steps {
		m.overlay.text = append(m.overlay.text, "  "+render.Cut(step, m.width-3))
	}
	m.overlay.top = farAway
}

// nothingToConfirm says why the key does nothing.
func nothingToConfirm(m *Model) string {
	switch {
	case m.overlay.confirm == nil:
		return "There is nothing to confirm here."
	case m.overlay.why != "":
		return m.overlay.why
	}
	return ""
}

// stagingKeys are the keys of a plan.
func stagingKeys() []key {
	return []key{{[]string{"enter"}, inPager, "run it", "do what is shown", nothingToConfirm,
		func(m *Model) tea.Cmd { return m.overlay.confirm(m) }}}
}
