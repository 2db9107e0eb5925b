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
