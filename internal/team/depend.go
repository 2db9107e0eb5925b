package team

// InMerged is the [Task].In of a task whose command runs in the merged worktree. That worktree has
// the commit of HEAD, the team's changes in its directory, and the branches of its members.
const InMerged = "merged"

// onBranch returns the member in whose worktree the task is, or was, done. It returns nil for a
// task in the team's directory, and for one whose owner is not known yet.
func (s *State) onBranch(t *Task) *Member {
	if t.In != "" { // it runs in the merged worktree, and leaves no work there
		return nil
	}
	owner := t.Owner
	if t.Submission != nil {
		owner = t.Submission.Author()
	}
	for _, name := range []string{owner, t.CompletedBy} {
		if m := s.member(name); m != nil && m.Isolation == Worktree {
			return m
		}
	}
	return nil
}

// onBranches returns the tasks on branches among these blockers and behind them. A command in the
// merged worktree sees such work and leaves none of its own. So a task that waits for the command
// builds on that work too.
func (s *State) onBranches(blockers []string) (all []*Task) {
	seen := map[string]bool{}
	var look func(ids []string)
	look = func(ids []string) {
		for _, id := range ids {
			b := s.task(id)
			// a verification leaves no work that others build on
			if b == nil || b.Status == Deleted || seen[id] || b.Verifies != "" {
				continue
			}
			seen[id] = true
			switch {
			case b.In != "" || b.ForEach != nil: // the work of a group is that of its tasks
				look(b.BlockedBy)
			case s.onBranch(b) != nil:
				all = append(all, b)
			}
		}
	}
	look(blockers)
	return all
}

// hidden returns a blocker whose work is on a branch that the member would not see where it works;
// nil for none. Members with a worktree get that work merged. The lead and external members look
// for it themselves.
func (s *State) hidden(m *Member, in string, blockers []string) *Task {
	if m.Isolation == Worktree || m.Agent == External || m.Name == s.team.Lead || in == InMerged {
		return nil
	}
	if all := s.onBranches(blockers); len(all) > 0 {
		return all[0]
	}
	return nil
}

// sees refuses a task if the member would not see the work that it builds on.
func (d *decision) sees(m *Member, t *Task, blockers []string) error {
	if t.In == InMerged && len(m.RunsOn) > 0 {
		return refuse(Invalid, "%s runs in the merged worktree, which is where the team is run, and %s runs on another "+
			"machine; give the task to another shell", t.label(), m.Name)
	}
	if t.In == InMerged && m.Agent != Shell {
		return refuse(Invalid, "%s runs in the merged worktree, where only shell members run the commands of tasks, "+
			"and %s is not one", t.label(), m.Name)
	}
	b := d.hidden(m, t.In, blockers)
	if b == nil {
		return nil
	}
	return refuse(Invalid, "%s builds on task %s, which is done on the branch %s, and %s works in the team's "+
		"directory, which does not have that. "+
		"Give it to a member with a worktree, or have its command run in the merged worktree (in: merged)", t.label(),
		b.Called(), BranchOf(d.team.Name, d.onBranch(b).Name), m.Name)
}

// bound reports whether the place of the task's work decides who may take it.
func (s *State) bound(t *Task) bool {
	return t.In != "" || len(s.onBranches(t.BlockedBy)) > 0
}

// NeedsWorktree reports whether the task builds on work on branches, so that no member without a
// worktree takes it.
func (s *State) NeedsWorktree(task string) bool {
	t := s.task(task)
	return t != nil && t.In == "" && s.bound(t)
}

// Next returns the task that the member would be given now.
func (s *State) Next(member string) (Task, bool) {
	if m := s.member(member); m != nil {
		if t := s.next(m); t != nil {
			return s.show(t), true
		}
	}
	return Task{}, false
}

// BuildsOn returns the completed blockers of the task whose work is on members' branches. A
// verification builds on the submitted task.
func (s *State) BuildsOn(task string) (all []Task) {
	t := s.task(task)
	if t == nil {
		return nil
	}
	for _, b := range s.onBranches(t.BlockedBy) {
		if b.Status == Completed {
			all = append(all, s.show(b))
		}
	}
	if b := s.verified(t); b != nil && s.onBranch(b) != nil {
		all = append(all, s.show(b))
	}
	return all
}
