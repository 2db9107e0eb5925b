package team

import "fmt"

// EndOfCommand returns the question whether to end the command that a shell member runs. It says
// what an interrupt, or an urgent message of the user, costs there: the task's attempt. It returns
// "" for a member that runs no command. An agent that is interrupted keeps its task.
func (s *State) EndOfCommand(member string) string {
	m := s.member(member)
	if m == nil || m.Agent != Shell {
		return ""
	}
	held := s.holds(member)
	if len(held) == 0 {
		return ""
	}
	what := "its task " + held[0].Called()
	if held[0].Failures < held[0].Retries {
		what = "this attempt of " + what
	}
	return fmt.Sprintf("This ends the command of %s, and %s fails. End it?", m.Name, what)
}

// AfterInterrupt says what a member does whose turn was interrupted.
func (m Member) AfterInterrupt() string {
	if m.IsTeam() {
		return "starts no team until it gets a message"
	}
	if m.Agent == Shell {
		return "starts no command until it gets a message"
	}
	return "waits for a message"
}

// interrupted adds the members that were interrupted and wait for a message. The lead interrupts in
// its own session, and knows.
func (a *attention) interrupted() {
	for i := range a.s.members {
		m := &a.s.members[i]
		if m.Interrupt == 0 || m.Status != Idle || a.s.wakes(m) {
			continue
		}
		item := Item{Kind: ItemHeld, Member: m.Name, Since: m.Since, Hint: Hint{Action: ActAsk, Member: m.Name}}
		holds := ""
		if held := a.s.holds(m.Name); len(held) > 0 {
			item.Task = held[0].ID
			holds = " It holds task " + held[0].Called() + "."
		}
		if m.IsTeam() {
			item.Hint = a.continues(m, item.Hint)
		}
		or := ""
		if t := a.s.cutIn(m.Name); t != nil && m.runs() {
			or = ", or until task " + t.Called() + " is released"
		}
		a.add(item, "%s was interrupted, and %s%s.%s", m.Name, m.AfterInterrupt(), or, holds)
	}
}

// cutIn returns the first task that the member failed and that is out of retries; nil for none. The
// release of such a task continues a member that was interrupted.
func (s *State) cutIn(member string) *Task {
	for t := range s.OutOfRetries() {
		if t.FailedBy == member {
			return &t
		}
	}
	return nil
}

// continues returns the action that continues a member which is a team. Where nobody reads mail for
// it, that is not ask, but the release of the task that it was to do.
func (a *attention) continues(m *Member, ask Hint) Hint {
	for i := range a.s.tasks {
		switch t := &a.s.tasks[i]; {
		case !t.Status.open() || t.Owner != m.Name && t.FailedBy != m.Name:
		case t.Status == InProgress && a.s.readsMail(t):
			return ask
		default:
			return t.Hint(a.t, ActRetryTask)
		}
	}
	return Hint{Action: ActShowTasks}
}
