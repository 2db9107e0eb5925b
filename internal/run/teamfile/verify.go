package teamfile

import (
	"cadre/internal/team"
)

// verify reads who verifies a task.
func (p *parser) verify(of *mapping) (v Verify, m *mapping) {
	n := of.values["verify"]
	if n == nil {
		return v, nil
	}
	if m = p.mapping(n, "verify", "by", "count", "rule", "rounds"); m == nil {
		return v, nil
	}
	v = Verify{By: m.line("by"), Count: int(m.integer("count", 1, 1, team.MaxVerifiers)),
		Rule:   m.oneOf("rule", team.RuleAll, team.VerifyRules),
		Rounds: int(m.integer("rounds", team.DefaultVerifyRounds, 1, team.MaxVerifyRounds))}
	if v.By == "" {
		p.fail(m.at("by"), "verify says nobody; add by: with a member or a role")
	}
	return v, m
}

// checkVerify checks that the members who verify the task exist, and that there are enough of them
// beside the one that does it.
func (p *parser) checkVerify(t taskNode, c memberIndex) {
	v, m := t.Verify, t.verify
	if m == nil || v.By == "" {
		return
	}
	if one := c.by["owner "+v.By]; len(one) > 0 {
		switch {
		case v.By == t.Owner:
			p.fail(m.at("by"), "%q does task %q, and nobody verifies their own work; name another member, or a role",
				v.By, shorten(t.ID))
		case p.commandsOnly(one[0].Agent):
			p.fail(m.at("by"), "%q only runs commands and cannot verify the work of others; name another member, or "+
				"have the team's checks run a command", v.By)
		case p.kind(one[0].Agent).Nests:
			p.fail(m.at("by"), "%q is a team and cannot verify the work of others; name another member, or a role", v.By)
		case v.Count > 1:
			p.fail(m.at("count"), "%q is one member, and %d are to verify task %q; name a role, or leave count out",
				v.By, v.Count, shorten(t.ID))
		}
		return
	}
	if p.led || len(c.names) == 0 { // the lead can spawn a member, or another check reports the missing members
		return
	}
	able, author := 0, false
	takers := c.takers(t)
	for _, one := range c.by["role "+v.By] {
		if k := p.kind(one.Agent); k.CommandsOnly || k.Nests {
			continue
		}
		able++
		for _, taker := range takers {
			author = author || taker.Name == one.Name
		}
	}
	if author {
		able--
	}
	switch {
	case len(c.by["role "+v.By]) == 0:
		p.fail(m.at("by"), "%q is not a member, and no member has this role%s", shorten(v.By), p.didYouMean(v.By,
			append(append([]string{}, c.names...), c.roles...)))
	case able < v.Count && author:
		p.fail(m.at("by"), "task %q needs %d members with the role %q to verify it, besides the one that does it, "+
			"and there are %d; add a member with the role, or lower count", shorten(t.ID), v.Count, shorten(v.By), able)
	case able < v.Count:
		p.fail(m.at("by"), "task %q needs %d members with the role %q to verify it, and there are %d, because shells "+
			"and teams cannot; add a member with the role, or lower count", shorten(t.ID), v.Count, shorten(v.By), able)
	}
}
