package teamfile

import (
	"fmt"
	"slices"
	"strings"
)

// checkNames checks that every member has a name of its own, which is not the lead's.
func (p *parser) checkNames(lead string) {
	taken := map[string]int{} // name to line; compared without case, as some file systems do
	for _, n := range p.members {
		for _, member := range n.members {
			name := strings.ToLower(member.Name)
			if name == strings.ToLower(lead) {
				p.fail(n.at("name"), "%q is the lead's name; give the member another, or the lead one with lead:",
					member.Name)
			} else if line, twice := taken[name]; twice {
				p.fail(n.at("name"), "a member %q is already on line %d; choose another name, or use count: to "+
					"have several", member.Name, line)
				break
			}
			taken[name] = n.at("name").Line
		}
	}
}

// checkTasks checks that ids are unique, that blockers exist, and that a member can do each task.
func (p *parser) checkTasks() {
	lines := make(map[string]int, len(p.tasks))
	ids := make([]string, 0, len(p.tasks))
	for _, t := range p.tasks {
		if line, twice := lines[t.ID]; twice {
			p.fail(t.at("id"), "a task %q is already on line %d; give this one another id", shorten(t.ID), line)
			continue
		}
		lines[t.ID] = t.at("id").Line
		ids = append(ids, t.ID)
	}
	index := p.memberIndex()
	for _, t := range p.tasks {
		seen := make(map[string]bool, len(t.BlockedBy))
		for i, id := range t.BlockedBy {
			switch {
			case id == t.ID:
				p.fail(t.blockers[i], "task %q is blocked by itself; remove this entry", shorten(id))
			case lines[id] == 0:
				p.fail(t.blockers[i], "task %q is blocked by %q, which is not the id of a task%s", shorten(t.ID),
					shorten(id), p.didYouMean(id, ids))
			case seen[id]:
				p.fail(t.blockers[i], "%q is listed twice; keep one of them", shorten(id))
			}
			seen[id] = true
		}
		p.checkTaker(t, index)
		p.checkPlace(t, index)
		p.checkVerify(t, index)
	}
	p.checkSight(index)
	p.checkMade()
}

// inMerged is the value of the key in for a task that runs in the merged worktree.
const inMerged = "merged"

// checkPlace checks that a task in the merged worktree has a command and a member that only runs
// commands.
func (p *parser) checkPlace(t taskNode, c memberIndex) {
	if t.In == "" {
		return
	}
	if t.Run == "" {
		p.fail(t.at("in"), "task %q has in: %s and no run; only commands run in the merged worktree. Add run: with a "+
			"command, or give the task to a member with isolation: worktree", shorten(t.ID), t.In)
		return
	}
	if takers := c.takers(t); len(takers) > 0 && !slices.ContainsFunc(takers,
		func(m Member) bool { return p.commandsOnly(m.Agent) && len(m.RunsOn) == 0 }) {
		p.fail(t.at("in"), "task %q has in: %s, which needs a member that only runs commands, where the "+
			"team is run; %s cannot do it. Add a "+
			"member with agent: shell, or leave in: out for one with isolation: worktree",
			shorten(t.ID), t.In, list(namesOf(takers)))
	}
}

// checkSight checks that the member of a task can see the work that the task builds on. Such work
// may be on a branch, because a member that may take the blocker works in a worktree. Then the task
// needs a member in a worktree too, where that work is merged first, or the merged worktree.
func (p *parser) checkSight(c memberIndex) {
	byID := map[string]taskNode{}
	for _, t := range p.tasks {
		byID[t.ID] = t
	}
	isolated := func(m Member) bool { return m.Isolation != "" }
	if !slices.ContainsFunc(c.by[""], isolated) {
		return
	}
	for _, t := range p.tasks {
		takers := c.takers(t)
		// the lead looks for it itself, or spawns a member for the task
		if t.In != "" || len(takers) == 0 || p.led && (t.Owner == "" || t.Owner == p.leader.Name) {
			continue
		}
		if slices.ContainsFunc(takers, isolated) ||
			slices.ContainsFunc(takers, func(m Member) bool { return m.Agent == "external" }) {
			continue
		}
		for i, id := range t.BlockedBy {
			one, by := c.onBranch(byID, id, isolated, map[string]bool{})
			if one == "" || i >= len(t.blockers) {
				continue
			}
			p.fail(t.blockers[i], "task %q builds on %q, which %s does in a worktree of its own, and %s works in the "+
				"team's directory, which does not have that work. "+
				"Give the task to a member with isolation: worktree, or have its command run where all work is "+
				"merged: in: %s",
				shorten(t.ID), shorten(one), by, list(namesOf(takers)), inMerged)
		}
	}
}

// onBranch returns the task whose work is on a branch, and its member: the task with that id, or
// one that it builds on if it runs in the merged worktree; "" for none.
func (c memberIndex) onBranch(byID map[string]taskNode, id string, isolated func(Member) bool,
	seen map[string]bool) (task, by string) {
	t, there := byID[id]
	if !there || seen[id] {
		return "", ""
	}
	seen[id] = true
	if t.In == "" {
		on := c.takers(t)
		if n := slices.IndexFunc(on, isolated); n >= 0 {
			return id, on[n].Name
		}
		return "", ""
	}
	for _, before := range t.BlockedBy {
		if task, by := c.onBranch(byID, before, isolated, seen); task != "" {
			return task, by
		}
	}
	return "", ""
}

// takers returns the members that may take the task.
func (c memberIndex) takers(t taskNode) []Member {
	switch {
	case t.Owner != "":
		return c.by["owner "+t.Owner]
	case t.Role != "":
		return c.by["role "+t.Role]
	}
	return c.by[""]
}

func namesOf(members []Member) []string {
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

// memberIndex groups the members by the ways in which a task can ask for one.
type memberIndex struct {
	names, roles []string            // in file order
	by           map[string][]Member // by "owner NAME", "role ROLE", and "" for all
}

func (p *parser) memberIndex() memberIndex {
	c := memberIndex{by: map[string][]Member{}}
	if p.led { // it takes tasks that name it as the owner
		c.names = append(c.names, p.leader.Name)
		c.by["owner "+p.leader.Name] = []Member{p.leader}
	}
	for _, n := range p.members {
		for _, m := range n.members {
			c.names = append(c.names, m.Name)
			c.by[""] = append(c.by[""], m)
			c.by["owner "+m.Name] = []Member{m}
			if m.Role != "" {
				if c.by["role "+m.Role] == nil {
					c.roles = append(c.roles, m.Role)
				}
				c.by["role "+m.Role] = append(c.by["role "+m.Role], m)
			}
		}
	}
	return c
}

// checkTaker checks that the task's owner or role exists, and that a member who may take the task
// is able to do it.
func (p *parser) checkTaker(t taskNode, c memberIndex) {
	wanted := ""
	switch {
	case t.Owner != "" && t.Role != "":
		p.fail(t.at("role"), "task %q has an owner and a role; keep the owner for one member, or the role for "+
			"any member with it", shorten(t.ID))
		return
	case t.Owner != "":
		wanted = "owner " + t.Owner
	case t.Role != "":
		wanted = "role " + t.Role
	}
	takers := c.by[wanted]
	switch {
	case len(c.names) == 0: // another check reports that
	case p.led && t.Owner == "": // the lead can spawn a member for the task
	case len(takers) == 0 && t.Role != "":
		p.fail(t.at("role"), "no member has the role %q%s", shorten(t.Role), p.didYouMean(t.Role, c.roles))
	case len(takers) == 0:
		for _, n := range p.members {
			if n.name == t.Owner {
				p.fail(t.at("owner"), "%q stands for %d members; name one of them, such as %s, or give them a role "+
					"and use it here",
					t.Owner, len(n.members), n.members[0].Name)
				return
			}
		}
		if t.Owner == p.lead {
			p.fail(t.at("owner"), "owner %q leads the team, and is not an agent that does tasks; name a teammate",
				shorten(t.Owner))
			return
		}
		p.fail(t.at("owner"), "owner %q is not a member%s", shorten(t.Owner), p.didYouMean(t.Owner, c.names))
	case t.Run != "" && !slices.ContainsFunc(takers, func(m Member) bool { return !p.kind(m.Agent).Nests }):
		p.fail(t.at("run"), "task %q has run:, and every member that may take it is a team, which runs no commands (%s); "+
			"leave run out, or give the task to a member with another agent, such as agent: shell",
			shorten(t.ID), list(namesOf(takers)))
	case t.Run == "" && t.isBlank("run") && !slices.ContainsFunc(takers,
		func(m Member) bool { return m.Name == "" || !p.commandsOnly(m.Agent) }): // that is a mistake already
		p.fail(t.node, "task %q has no run, and every member that may take it only runs commands (%s); add run: with "+
			"a command, or a member with another agent",
			shorten(t.ID), list(namesOf(takers)))
	}
}

func (p *parser) commandsOnly(agent string) bool { return p.kind(agent).CommandsOnly }

func (p *parser) boundless(agent string) bool { return p.kind(agent).Boundless }

// kind returns the properties of the agent of that name.
func (p *parser) kind(agent string) Agent {
	for _, a := range p.agents {
		if a.Name == agent || strings.HasSuffix(a.Name, ":") && strings.HasPrefix(agent, a.Name) {
			return a
		}
	}
	return Agent{}
}

// checkCycles checks that no task waits for itself, directly or through others. No two reported
// cycles share a task: once the first is fixed the others may be gone, and there can be more cycles
// than tasks.
func (p *parser) checkCycles() {
	index := make(map[string]int, len(p.tasks))
	for i, t := range slices.Backward(p.tasks) {
		if t.ID != "" {
			index[t.ID] = i
		}
	}
	type step struct {
		task int
		free int // from here on the path has no task of a reported cycle
	}
	var path []step
	const unseen, left = -1, -2
	place := slices.Repeat([]int{unseen}, len(p.tasks)) // place of each task on the path

	var visit func(i, free int)
	visit = func(i, free int) {
		place[i] = len(path)
		path = append(path, step{i, free})
		for _, id := range p.tasks[i].BlockedBy {
			b, known := index[id]
			switch {
			case !known || b == i: // another check reports that
			case place[b] == unseen:
				visit(b, path[place[i]].free)
			case place[b] >= path[place[i]].free:
				var cycle []int
				for k := place[b]; k < len(path); k++ {
					cycle = append(cycle, path[k].task)
					path[k].free = k + 1
				}
				p.reportCycle(cycle)
			}
		}
		place[i], path = left, path[:len(path)-1]
	}
	for i := range p.tasks {
		if place[i] == unseen {
			visit(i, 0)
		}
	}
}

// reportCycle lists the tasks of a cycle, from the first one in the file, with the lines of the
// blockedBy entries that form it, each line once.
func (p *parser) reportCycle(cycle []int) {
	first := slices.Index(cycle, slices.Min(cycle))
	cycle = append(slices.Clone(cycle[first:]), cycle[:first]...)
	var names, lines []string
	for k, i := range cycle {
		next := p.tasks[cycle[(k+1)%len(cycle)]].ID
		entry := p.tasks[i].blockers[slices.Index(p.tasks[i].BlockedBy, next)]
		names = append(names, p.tasks[i].ID)
		if line := fmt.Sprint(entry.Line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	names = append(names, names[0])
	const shown = 20
	if n := len(names); n > shown {
		names = append(append(slices.Clone(names[:shown/2]), fmt.Sprintf("… %d more …", n-shown)),
			names[n-shown/2:]...)
	}
	t := p.tasks[cycle[0]]
	at := t.blockers[slices.Index(t.BlockedBy, p.tasks[cycle[1]].ID)]
	p.fail(at, "these tasks wait for each other: %s; remove one of the blockedBy entries on line %s",
		strings.Join(names, " → "), list(lines))
}
