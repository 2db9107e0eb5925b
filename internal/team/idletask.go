package team

import (
	"fmt"
	"slices"
)

// standing says in a sentence why an open task is not being done although all members are idle.
func (s *State) standing(t *Task) string {
	name := "Task " + t.Called()
	owner := s.member(t.Owner)
	switch {
	case t.Status == InProgress && owner != nil:
		return fmt.Sprintf("%s is in progress: %s holds it and is %s.", name, owner.Name, owner.Status)
	case t.OutOfRetries():
		return fmt.Sprintf("%s failed (out of retries): %s.", name, Quoted(clipTo(t.Failure, 200)))
	case t.isDue():
		return name + " is about to make its tasks: a host finds out for which items."
	case t.Expanded:
		return fmt.Sprintf("%s waits for %s that it made.", name, Count(len(s.blockersOf(t)), "task"))
	case len(s.show(t).open) > 0:
		return fmt.Sprintf("%s is blocked by task %s.", name, andMore(s.CalledAll(s.show(t).open)))
	case s.awaits(t):
		return fmt.Sprintf("%s is assigned to %s, which was not spawned yet.", name, t.Owner)
	case s.spent(t.Owner):
		return fmt.Sprintf("%s is assigned to %s, and the %s is spent.", name, owner.Name,
			BudgetOf(owner.Exhausted, owner.Name))
	case t.Verifies != "" && owner == nil:
		return fmt.Sprintf("%s is open for the role %s, and no other member with it is there to verify the work.", name,
			Quoted(brief(t.Role)))
	case owner != nil:
		return fmt.Sprintf("%s is assigned to %s, which is %s.", name, owner.Name, owner.Status)
	case s.withoutCommand(t):
		return name + " is open and unassigned: it has no command, and every member that could take it is a shell."
	case t.Role != "":
		return fmt.Sprintf("%s is open for the role %s, %s.", name, Quoted(brief(t.Role)), s.noneOfRole(t.Role))
	case t.In == InMerged:
		return name + " is open and unassigned: it runs in the merged worktree, and needs a shell member."
	case s.bound(t):
		return name + " is open and unassigned: it builds on work on a branch, and needs a member with a worktree."
	}
	return name + " is open and unassigned."
}

// withoutCommand reports whether the task has no command, and only shells could take it.
func (s *State) withoutCommand(t *Task) bool {
	shells := 0
	for i := range s.members[1:] {
		switch m := &s.members[1+i]; {
		case !m.Status.Running() || t.Role != "" && m.Role != t.Role || t.Owner != "" && m.Name != t.Owner:
		case m.Agent != Shell:
			return false
		default:
			shells++
		}
	}
	return shells > 0 && t.Run == "" && t.Verifies == ""
}

// noneOfRole says why no member takes a task for that role.
func (s *State) noneOfRole(role string) string {
	has := func(m Member) bool { return m.Status.Running() && m.Role == role }
	if slices.ContainsFunc(s.members, has) {
		return "and no member with it took it"
	}
	return "which no member has"
}

// awaits reports whether the task is for a member that has not joined the team yet.
func (s *State) awaits(t *Task) bool { return t.Owner != "" && s.member(t.Owner) == nil }

// Awaits reports whether the task waits for its owner to be spawned.
func (s *State) Awaits(task string) bool {
	t := s.task(task)
	return t != nil && t.Status == Pending && s.awaits(t)
}

// nextOwner returns the running member that will own a task. It returns nil for a name under which
// the lead may still spawn a member: the task waits for that member. A teammate must name an
// existing member, because the one that it has in mind may never be spawned.
func (d *decision) nextOwner(name string) (*Member, error) {
	if d.member(name) == nil && d.sameName(name) == "" && d.leads("") == nil {
		if err := CheckNewMember(name, d.team.Lead); err != nil {
			return nil, err
		}
		if owner, t := d.awaitedAs(name); owner != "" {
			return nil, refuse(Taken, "task %s waits for a member named %s, and %s differs from that only in case; "+
				"write %s", t, owner, name, owner)
		}
		return nil, nil
	}
	m, err := d.running(name)
	if err == nil {
		err = d.affords(m) // no other member would do the task
	}
	return m, err
}

// taker returns the hint for a task that no member takes. Where no teammate runs, no member can be
// named as its owner.
func (a *attention) taker(t *Task) Hint {
	assign := t.Hint(a.t, ActAssignTask)
	if a.lead != ForUser { // an agent that leads adds teammates itself
		return assign
	}
	if a.s.awaits(t) {
		spawn := t.Hint(a.t, ActSpawn)
		spawn.Name = t.Owner
		return spawn
	}
	if a.s.withoutCommand(t) {
		return t.Hint(a.t, ActSetCommand)
	}
	var like *Member // a teammate that has ended; its successor would take the task
	for i := range a.s.members[1:] {
		m := &a.s.members[1+i]
		if m.Status.Running() {
			return assign
		}
		if (m.Agent != Shell || t.Run != "") && (like == nil || like.Name != t.Owner) {
			like = m
		}
	}
	switch {
	case a.t.Origin != "" || a.s.lead().Agent != External: // cadre run made it, and adds the teammates again
		return Hint{Action: ActResume}
	case like == nil:
		return Hint{Action: ActSpawn, Task: t.ID}
	}
	return Hint{Action: ActSpawn, Task: t.ID, Member: like.Name, Name: a.free(like.Name), Agent: like.Agent}
}
