package team

// untaken returns the tasks that could be claimed and that no running teammate takes: yours are for
// the lead itself. theirs are for an external teammate, which may take them. The most urgent come
// first.
func (s *State) untaken() (yours, theirs, others []*Task) {
	lead := s.lead()
	takes := s.takers()
	var plain [2]bool // whether tasks without an owner are taken: [0] without a command, [1] with one
	for i, probe := range []*Task{{}, {Run: "true"}} {
		plain[i] = takes(probe)
	}
	for p := len(s.ready) - 1; p >= 0; p-- {
		for i := range s.ready[p].all() {
			t := &s.tasks[i]
			switch {
			case t.Owner == "" && t.Role == "" && t.Verify == nil && !s.bound(t): // nearly always
				if plain[0] || plain[1] && t.Run != "" {
					continue
				}
				others = append(others, t)
			case t.Owner == lead.Name && lead.Agent == External:
				if s.asks(t.ID) != nil { // the item about the branch covers it
					continue
				}
				yours = append(yours, t)
			case s.spent(t.Owner): // the item about the budget covers it
			case !takes(t):
				others = append(others, t)
			default:
				if m := s.member(t.Owner); m != nil && m.Agent == External {
					theirs = append(theirs, t)
				}
			}
		}
	}
	return yours, theirs, others
}

// takers returns a function that reports whether a running teammate takes a task. It remembers the
// answer for tasks of one owner and role.
func (s *State) takers() func(*Task) bool {
	type class struct {
		owner, role string
		runs        bool
	}
	taken := map[class]bool{}
	return func(t *Task) bool {
		if s.bound(t) || t.Verify != nil || t.Verifies != "" {
			return s.anyTakes(t)
		}
		c := class{t.Owner, t.Role, t.Run != ""}
		known, ok := taken[c]
		if !ok {
			known = s.anyTakes(t)
			taken[c] = known
		}
		return known
	}
}

// anyTakes reports whether a running teammate takes the task.
func (s *State) anyTakes(t *Task) bool {
	for i := range s.members {
		m := &s.members[i]
		if m.Exhausted != "" { // the item about its budget covers what it would take
			rich := *m
			rich.Exhausted, m = "", &rich
		}
		if m.Status.Running() && (i > 0 || m.Agent != External) && s.takes(m, t) {
			return true
		}
	}
	return false
}
