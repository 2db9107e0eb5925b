package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/team"
)

// spending is a budget and what was used of it.
type spending struct {
	budget    team.Budget
	used      team.Usage
	since     team.Time
	exhausted string // the limit that was reached; "" for none
}

// modeWords describes what a permission mode allows.
func modeWords(mode string) string {
	return map[string]string{
		"default":           "It asks before it changes something.",
		"acceptEdits":       "It changes files without asking.",
		"auto":              "Its agent decides what it asks about.",
		"bypassPermissions": "It asks nothing.",
		"dontAsk":           "It denies what no rule allows, without asking.",
		"plan":              "It changes nothing.",
	}[mode]
}

// modes shows the menu of a member's permission modes.
func (m *Model) modes(one memberRow) tea.Cmd {
	ref := m.ref
	var choices []choice
	for _, mode := range team.PermissionModes {
		about := modeWords(mode)
		if mode == one.mode {
			about += " This is the mode now."
		}
		set := func(m *Model) tea.Cmd {
			return m.act(ref, &team.SetMode{Member: one.name, Mode: mode}, one.name+" is in permission mode "+mode+".")
		}
		do := set
		if mode == "bypassPermissions" {
			do = func(m *Model) tea.Cmd {
				m.ask = yesOrNo("Let "+one.name+" do everything without asking? [y/N]", set)
				return nil
			}
		}
		choices = append(choices, choice{"mode " + one.name + " " + mode, about, "", do})
	}
	m.opens("permission mode of "+one.name, nil, choices)
	m.menu.selected = max(0, slices.Index(team.PermissionModes, one.mode))
	return nil
}

// budgets shows the limits and the use of the team's budget, or of a member's. A person can change
// each limit.
func (m *Model) budgets(member string) tea.Cmd {
	of, whose := m.team.spending, "the team "+m.team.name
	words := []string{"budget", m.team.id}
	for _, one := range m.team.members {
		if one.name == member && member != "" {
			of, whose = one.spending, member
			words = append(words, "--member", member)
		}
	}
	tokens, cost, span := "", "", ""
	if of.budget.Tokens > 0 {
		tokens = fmt.Sprint(of.budget.Tokens)
	}
	if of.budget.CostMicroUSD > 0 {
		cost = strings.TrimPrefix(team.Dollars(of.budget.CostMicroUSD), "$")
	}
	if of.budget.Time > 0 {
		span = of.budget.Time.String()
	}
	used := max(0, m.now.Sub(of.since))
	var choices []choice
	for _, l := range []struct {
		flag, set string
		team.Spent
		free string // what is used, where there is no limit
	}{
		{"--tokens", tokens, team.Spent{What: "tokens", Used: of.used.Tokens(), Limit: of.budget.Tokens},
			fmt.Sprintf("%d tokens", of.used.Tokens())},
		{"--usd", cost, team.Spent{What: "cost", Used: of.used.CostMicroUSD, Limit: of.budget.CostMicroUSD},
			team.Dollars(of.used.CostMicroUSD)},
		{"--time", span, team.Spent{What: "time", Used: used.Milliseconds(), Limit: of.budget.Time.Milliseconds()},
			team.Span(used.Round(time.Second))},
	} {
		about := "No limit; " + l.free + " used."
		if l.Limit > 0 {
			about = fmt.Sprintf("%s, %d %%.", l.Spent, l.Percent())
		}
		if of.exhausted == l.What {
			about = "Spent: " + about
		}
		choices = append(choices, choice{"budget " + l.flag, about, "", func(m *Model) tea.Cmd {
			m.asks(" "+l.What+" of "+whose+" ▸ ", plain, l.set, func(m *Model, text string, _ bool) tea.Cmd {
				if text = strings.TrimSpace(text); text == "" {
					text = "0"
				}
				return m.runCommand(append(slices.Clone(words), l.flag, text))
			})
			m.input.says = func(string) (string, style) {
				return about + " 0 or an empty line removes the limit. Write time as 2h or 90m.", plain
			}
			return nil
		}})
	}
	m.opens("budget of "+whose, nil, choices)
	return nil
}

// ruleList shows the permission rules of the team. A person can remove the rules that were added
// later.
func (m *Model) ruleList() tea.Cmd {
	ref, dir := m.ref, m.team.dir
	choices := []choice{{"permission add", "Let all members use a tool without asking.", "", func(m *Model) tea.Cmd {
		m.asks(" rule for all members ▸ ", plain, "", func(m *Model, rule string, _ bool) tea.Cmd {
			return m.addRule(ref, dir, &team.AddRule{Rule: strings.TrimSpace(rule)})
		})
		m.input.says = func(rule string) (string, style) { return ruleWords(strings.TrimSpace(rule), dir) }
		return nil
	}}}
	for _, r := range m.team.rules {
		rule := oneLine(r.Rule)
		about := fmt.Sprintf("For %s: %s.", strings.ToLower(orAll(r.Member)[:1])+orAll(r.Member)[1:],
			oneLine(team.RuleMeaning(r.Rule)))
		why := ""
		if r.At == 0 {
			why = "The team was created with this rule. Change it in the team file."
		} else {
			about += " Added " + render.Ago(m.now, r.At) + "."
		}
		choices = append(choices, choice{rule, about, why, func(m *Model) tea.Cmd {
			m.ask = yesOrNo("Remove the rule "+rule+"? [y/N]", func(m *Model) tea.Cmd {
				return m.act(ref, &team.RemoveRule{Rule: r.Rule, Member: r.Member}, "The rule "+rule+" is removed.")
			})
			return nil
		}})
	}
	m.opens("permission rules of the team "+m.team.name, nil, choices)
	return nil
}
