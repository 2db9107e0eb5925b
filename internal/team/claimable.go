package team

// takes reports whether m may take t: it is meant for m by name, or for no member by name and for
// m's role or any role. A shell can only run a task's command, so it takes a task without a command
// only if it is meant for the shell by name. The merged worktree is where the team is run, so a
// member on another machine takes no task there. A team runs no commands, so it takes no task with
// one. A lead that is an agent plans work for others, so it takes only its own tasks.
//
// A member whose own budget is spent takes none. Nobody takes the verification of their own work.
func (s *State) takes(m *Member, t *Task) bool {
	if m.Exhausted != "" {
		return false
	}
	if m.Name == s.team.Lead && m.Agent != External && t.Owner != m.Name {
		return false
	}
	if t.In == InMerged && (m.Agent != Shell || len(m.RunsOn) > 0) || len(t.BlockedBy) > 0 && s.hidden(m, t.In, t.BlockedBy) != nil {
		return false
	}
	if t.judges(m.Name) || t.Verifies != "" && s.unfit(m, t) != "" {
		return false
	}
	if m.IsTeam() && t.Run != "" {
		return false
	}
	return t.Owner == m.Name || t.Owner == "" && t.suits(m) && (m.Agent != Shell || t.Run != "")
}

// next returns the task that m would be given: the highest priority first, then the lowest id. A
// member that was interrupted is given none before it got a message.
func (s *State) next(m *Member) *Task {
	if m.Exhausted != "" || m.Interrupt != 0 {
		return nil
	}
	l := s.line()
	for p := len(s.ready) - 1; p >= 0; p-- {
		for i := range s.ready[p].all() {
			if s.takes(m, &s.tasks[i]) {
				if by, _ := l.heldUpFor(i, m); by == nil {
					return &s.tasks[i]
				}
			}
		}
	}
	return nil
}

// Claimable returns the tasks that the member could claim now, in the order in which it would get
// them. For "" it returns those that any member could claim.
func (s *State) Claimable(member string) []Task {
	m := s.member(member)
	var found []Task
	l := s.line()
	for p := len(s.ready) - 1; p >= 0; p-- {
		for i := range s.ready[p].all() {
			if s.claimable(l, i, m, member == "") {
				found = append(found, s.shown(&s.tasks[i], l))
			}
		}
	}
	return found
}

// claimable reports whether m, or with anyone any member, could claim the task at i, which waits
// for no blocker.
func (s *State) claimable(l *lineup, i int, m *Member, anyone bool) bool {
	switch {
	case anyone:
		h := l.heldUp(i)
		return h == nil || h.beside
	case m == nil || !s.takes(m, &s.tasks[i]):
		return false
	}
	by, _ := l.heldUpFor(i, m)
	return by == nil
}

// HasWork reports whether there is a task that the member could claim now. In a team that winds
// down nobody claims one.
func (s *State) HasWork(member string) bool {
	m := s.member(member)
	return m != nil && s.team.Status != TeamConsolidating && s.next(m) != nil
}

// holds returns the tasks in progress by that member.
func (s *State) holds(member string) []*Task {
	var held []*Task
	if s.counts[statusIndex(InProgress)] == 0 {
		return nil
	}
	for i := range s.under.all() {
		if t := &s.tasks[i]; t.Owner == member {
			held = append(held, t)
		}
	}
	return held
}

// Held returns the tasks that the member has in progress.
func (s *State) Held(member string) []Task {
	var held []Task
	for _, t := range s.holds(member) {
		held = append(held, s.show(t))
	}
	return held
}
