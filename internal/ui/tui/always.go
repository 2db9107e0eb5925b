package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/team"
)

// asked is a permission request that is open, and the narrowest rule that would allow it.
type asked struct {
	team.Permission
	rule string
	why  string // why no rule covers it
}

// askedOf returns the open permission requests of the team, by id.
func askedOf(s *team.State) map[string]asked {
	all := map[string]asked{}
	for _, p := range s.Permissions() {
		one := asked{Permission: p}
		var err error
		if one.rule, err = s.RuleFor(p); err != nil {
			one.why = render.Clean(err.Error())
		}
		all[p.Request] = one
	}
	return all
}

// request returns the permission request of the selected item.
func (m *Model) request() (asked, bool) {
	one, is := m.item()
	if !is || m.team == nil || m.team.ref != one.ref {
		return asked{}, false
	}
	p, is := m.team.asked[one.Request]
	return p, is
}

// noRule returns why no rule can answer the selected item.
func noRule(m *Model) string {
	if why := only("Only a request for permission is answered by a rule.", team.ItemPermission)(m); why != "" {
		return why
	}
	p, is := m.request()
	switch {
	case !is:
		return "The request has not been read yet."
	case p.rule == "":
		return strings.ToUpper(p.why[:1]) + p.why[1:] + "."
	}
	return ""
}

// always asks for the rule that answers the selected request from now on, for its member or for all
// members. It proposes the narrowest rule, and shows what the typed rule allows.
func (m *Model) always(everybody bool) tea.Cmd {
	one, _ := m.item()
	p, _ := m.request()
	member, label := p.Member, " rule for "+p.Member+" ▸ "
	if everybody {
		member, label = "", " rule for all members ▸ "
	}
	dir := m.team.dir
	m.asks(label, m.memberStyle(p.Member), p.rule, func(m *Model, rule string, _ bool) tea.Cmd {
		m.mine = one.Request
		return m.addRule(one.ref, dir, &team.AddRule{Rule: strings.TrimSpace(rule), Member: member})
	})
	m.input.says = func(rule string) (string, style) {
		rule = strings.TrimSpace(rule)
		if team.CheckRule(rule) == nil && !p.AllowedBy(rule, dir) {
			return "This rule does not cover the request of " + p.Member + ".", waits
		}
		return ruleWords(rule, dir)
	}
	return nil
}

// addRule adds a permission rule. It asks first if the rule has no limits.
func (m *Model) addRule(ref, dir string, add *team.AddRule) tea.Cmd {
	said := m.ofTeam(ref, fmt.Sprintf("%s may always use: %s.", orAll(add.Member),
		oneLine(team.RuleMeaning(add.Rule))))
	why := team.Unbounded(add.Rule, dir)
	if why == "" {
		return m.act(ref, add, said)
	}
	m.ask = yesOrNo("This rule sets no bounds: "+oneLine(why)+". Add it? [y/N]", func(m *Model) tea.Cmd {
		add.Unbounded = true
		return m.act(ref, add, said)
	})
	return nil
}

// ruleWords says what a typed rule allows, or why it is not a rule.
func ruleWords(rule, dir string) (string, style) {
	if rule == "" {
		return "Type a rule, for example Edit, Bash(go test:*) or Read(docs/**).", plain
	}
	if err := team.CheckRule(rule); err != nil {
		return "Not a rule yet: " + oneLine(err.Error()) + ".", waits
	}
	if tool, _ := team.UnknownTool(rule); tool != "" {
		return "No agent has a tool called " + oneLine(tool) + ".", waits
	}
	if why := team.Unbounded(rule, dir); why != "" {
		return "No bounds: " + oneLine(why) + ".", alarm
	}
	return "Allows " + oneLine(team.RuleMeaning(rule)) + ".", plain
}

func orAll(member string) string {
	if member == "" {
		return "All members"
	}
	return member
}

// answers returns the number of the message to which an answer to the item replies; 0 if there is
// none.
func (i itemRow) answers() int64 {
	if i.Kind != team.ItemQuestion {
		return 0
	}
	seq, err := strconv.ParseInt(strings.TrimPrefix(i.About, "#"), 10, 64)
	if err != nil {
		return 0
	}
	return seq
}
