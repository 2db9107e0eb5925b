package team

import (
	"slices"
	"strings"
	"unicode"
)

// Rule is a permission rule that was added to the team while it worked. It is asked about before
// every tool, so adding or removing it counts at once. The rules of [Permissions.Allow] are given
// to a session at its start.
type Rule struct {
	Rule   string // as Claude Code writes it: Bash(go test:*)
	Member string // the only member that it is for; "" for all
	By     string // who added it
	At     Time   // when it was added
}

func (r *Rule) fields(c *coder) {
	c.str("rule", &r.Rule)
	c.str("member", &r.Member)
	c.str("by", &r.By)
	c.int("at", (*int64)(&r.At))
}

// covers reports whether the rule is for the member.
func (r *Rule) covers(member string) bool { return r.Member == "" || r.Member == member }

// The events of permission rules.
type (
	// RuleAdded adds a permission rule: for the member, or for all without one.
	RuleAdded struct{ Rule, Member string }
	// RuleRemoved removes a rule that was added for the member, or for all.
	RuleRemoved struct{ Rule, Member string }
)

// Kind returns the event's name in the journal.
func (*RuleAdded) Kind() string { return "rule_added" }

// Kind returns the event's name in the journal.
func (*RuleRemoved) Kind() string { return "rule_removed" }

func (e *RuleAdded) fields(c *coder) {
	c.str("rule", &e.Rule)
	c.str("member", &e.Member)
}

func (e *RuleRemoved) fields(c *coder) {
	c.str("rule", &e.Rule)
	c.str("member", &e.Member)
}

func (e *RuleAdded) apply(s *State, r *Record) {
	// a new list, because readers may hold the old one
	s.team.Rules = append(rulesWithout(s.team.Rules, e.Rule, e.Member),
		Rule{Rule: e.Rule, Member: e.Member, By: r.Actor, At: r.At})
}

func (e *RuleRemoved) apply(s *State, _ *Record) {
	if s.team.Rules = rulesWithout(s.team.Rules, e.Rule, e.Member); len(s.team.Rules) == 0 {
		s.team.Rules = nil
	}
}

// rulesWithout returns a copy of the rules that lacks this one.
func rulesWithout(rules []Rule, rule, member string) []Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Rule == rule && r.Member == member })
}

// AddRule adds a permission rule to the team, and allows the requests that wait and that it covers.
// A rule allows nothing that the team's gate forbids: delegate mode and plans that are not approved
// still hold.
type AddRule struct {
	Rule   string // as Claude Code writes it: Bash(go test:*), Edit(docs/**), mcp__server__tool
	Member string // the only member that it is for; "" for all
	// the user was told that the rule sets no bounds (see [Unbounded]), and wants it all the same
	Unbounded bool
}

func (b *AddRule) decide(d *decision) error {
	if d.Actor != User {
		return refuse(Denied, "%s is not the user and cannot add permission rules",
			brief(strings.TrimPrefix(d.Actor, "@")))
	}
	if b.Member != "" {
		if _, err := d.known(b.Member); err != nil {
			return err
		}
	}
	if err := CheckRule(b.Rule); err != nil {
		return err
	}
	if why := Unbounded(b.Rule, d.team.Dir); why != "" && !b.Unbounded {
		return refuse(Denied, "the rule %s was not added: %s. Narrow it, or confirm that you want it",
			brief(b.Rule), why)
	}
	if slices.ContainsFunc(d.team.Rules, func(r Rule) bool { return r.Rule == b.Rule && r.covers(b.Member) }) {
		return nil
	}
	d.emit(&RuleAdded{Rule: b.Rule, Member: b.Member})
	added := Rule{Rule: b.Rule, Member: b.Member}
	for _, p := range slices.Clone(d.permissions) {
		if added.covers(p.Member) && d.At < p.Deadline && d.Gate(p.Member, p.Tool, false) == nil &&
			ruleAllows(b.Rule, p.Tool, p.Input, d.team.Dir) {
			d.answered(p, "allowed", d.Actor, ruleReason(b.Rule))
		}
	}
	return nil
}

// RemoveRule removes a permission rule that was added to the team. What it allowed stays allowed;
// later requests wait for an answer again.
type RemoveRule struct{ Rule, Member string }

func (b *RemoveRule) decide(d *decision) error {
	if d.Actor != User {
		return refuse(Denied, "%s is not the user and cannot remove permission rules",
			brief(strings.TrimPrefix(d.Actor, "@")))
	}
	var others []string
	for _, r := range d.team.Rules {
		switch {
		case r.Rule != b.Rule:
		case r.Member == b.Member:
			d.emit(&RuleRemoved{Rule: b.Rule, Member: b.Member})
			return nil
		case r.Member == "":
			others = append(others, "all members")
		default:
			others = append(others, r.Member)
		}
	}
	switch {
	case len(others) > 0:
		return refuse(NotFound, "the rule %s was added for %s, and not for %s", brief(b.Rule), andMore(others),
			orAll(b.Member))
	case slices.Contains(d.team.Permissions.Allow, b.Rule):
		return refuse(Conflict, "the rule %s is one that the team was created with, and its sessions got it at their "+
			"start; change it in the team file", brief(b.Rule))
	}
	return refuse(NotFound, "team %s has no rule %s", d.team.Name, brief(b.Rule))
}

func orAll(member string) string {
	if member == "" {
		return "all members"
	}
	return member
}

// Rules returns the permission rules of the team: those that it was created with, and then those
// that were added, the oldest first.
func (s *State) Rules() (all []Rule) {
	for _, rule := range s.team.Permissions.Allow {
		all = append(all, Rule{Rule: rule})
	}
	return append(all, s.team.Rules...)
}

// Pending returns the request, or says why it waits for no answer.
func (s *State) Pending(request string) (Permission, error) {
	return (&decision{State: s}).pending(request)
}

// CheckRule refuses a rule that is not written as one, or that could never allow anything.
func CheckRule(rule string) error {
	if strings.ContainsFunc(rule, unicode.IsControl) {
		return refuse(Invalid, "a permission rule is one line of text")
	}
	if err := (&Permissions{Allow: []string{rule}}).check(); err != nil {
		return err
	}
	tool, pattern, patterned := splitRule(rule)
	switch {
	case patterned && strings.TrimSpace(pattern) == "":
		return refuse(Invalid, "the rule %s allows nothing: its brackets are empty", brief(rule))
	case patterned && strings.HasPrefix(tool, "mcp__"):
		return refuse(Invalid, "the rule %s allows nothing: the tool of a server takes no brackets", brief(rule))
	}
	return nil
}

// ruleReason says to a member why a rule allowed its request.
func ruleReason(rule string) string { return "the rule " + brief(rule) + " allows it" }

// addedRule returns the added rule that allows the member the tool with that input; "" for none.
func (d *decision) addedRule(member, tool, input string) string {
	for _, r := range d.team.Rules {
		if r.covers(member) && ruleAllows(r.Rule, tool, input, d.team.Dir) {
			return r.Rule
		}
	}
	return ""
}
