package team

import "slices"

// resume returns the action that continues the team. A team with a spent budget, or in which only
// the person who leads has something to do, cannot be resumed before that.
func (a *attention) resume() Hint {
	if h, spent := a.spent(); spent {
		return h
	}
	lead := a.s.lead()
	if lead.Agent != External || a.s.Count(InProgress) > 0 || a.s.failed.count() > 0 {
		return Hint{Action: ActResume}
	}
	var theirs *Task
	for p := len(a.s.ready) - 1; p >= 0; p-- {
		for i := range a.s.ready[p].all() {
			if t := &a.s.tasks[i]; t.Owner != lead.Name {
				return Hint{Action: ActResume}
			} else if theirs == nil {
				theirs = t
			}
		}
	}
	switch {
	case theirs == nil:
		return Hint{Action: ActResume}
	case a.s.asks(theirs.ID) != nil:
		return theirs.Hint(a.t, ActShowTask)
	}
	return theirs.Hint(a.t, ActCompleteTask)
}

// spent returns the action that raises a budget, if only that lets the team continue: its own is
// spent, or those of all members that would take the tasks that are left.
func (a *attention) spent() (h Hint, is bool) {
	if a.t.Exhausted != "" {
		return Hint{Action: ActRaiseBudget, Budget: a.t.Exhausted}, true
	}
	if a.s.Count(InProgress) > 0 || a.s.failed.count() > 0 ||
		!slices.ContainsFunc(a.s.members, func(m Member) bool { return m.Exhausted != "" }) {
		return h, false
	}
	for p := range a.s.ready {
		for i := range a.s.ready[p].all() {
			for k, m := range a.s.members {
				t, budget := &a.s.tasks[i], m.Exhausted
				m.Exhausted = "" // of the copy: whether it would take the task
				switch {
				case !m.Status.Running() || !a.s.takes(&m, t) || k == 0 && m.Agent == External && t.Owner != m.Name:
				case budget == "":
					return h, false
				case h.Action == "":
					h = Hint{Action: ActRaiseBudget, Member: m.Name, Budget: budget}
				}
			}
		}
	}
	return h, h.Action != ""
}

// consolidate returns the action that consolidates the team, or the one that comes before it.
func (a *attention) consolidate() Hint {
	refusal := a.s.Consolidatable()
	if refusal == nil {
		return Hint{Action: ActConsolidate}
	}
	for _, h := range HintsOf(refusal) {
		return h
	}
	return Hint{Action: ActShowTeam}
}

// retry is how a task that is out of retries is tried again. When a run of the team is resumed, it
// tries all of them.
func (a *attention) retry(t *Task) Hint {
	if a.t.Origin != "" && a.s.Dormant(a.o) {
		return a.resume()
	}
	if a.s.withoutCommand(t) {
		return t.Hint(a.t, ActSetCommand)
	}
	return t.Hint(a.t, ActRetryTask)
}

// free returns the name with the first number that no member has.
func (a *attention) free(name string) string {
	for n := 2; ; n++ {
		if free := Numbered(name, n); a.s.member(free) == nil {
			return free
		}
	}
}
