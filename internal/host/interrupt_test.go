package host_test

import (
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// cut waits for an interrupt of the session.
func (s *session) cut(t *testing.T) {
	t.Helper()
	select {
	case <-s.cuts:
	case <-time.After(10 * time.Second):
		t.Fatal("the session was not interrupted within 10 s")
	}
}

// TestInterruptBeforeTheTurn checks that an interrupt that comes after a claim, and before the turn
// for that task has started, ends the turn. An agent without a turn ignores it, so it is sent
// again. The turn after the next message is not interrupted.
func TestInterruptBeforeTheTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.CreateTask{Subject: "look there"})
	s.untilStatus("ann", team.Active)
	s.do(team.User, &team.Interrupt{Member: "ann"})
	ann.cut(t)
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.cut(t)
	ann.updates <- agent.TurnEnded{Interrupted: true}
	s.untilStatus("ann", team.Idle)
	s.do(team.User, &team.SendMessage{To: "ann", Body: "go on"})
	ann.told(t, "go on")
	ann.updates <- agent.TurnStarted{}
	s.untilStatus("ann", team.Active)
	ann.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"seen"}`)
	ann.updates <- agent.TurnEnded{}
	s.untilStatus("ann", team.Idle)
	if n := len(ann.cuts); n != 0 {
		t.Errorf("the next turn was interrupted %d times", n)
	}
}

// TestInterruptOfATurn checks that an interrupt of a running turn is sent once.
func TestInterruptOfATurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "look there"})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.Text{Text: "I look"} // taken after the turn's start was recorded
	s.do(team.User, &team.Interrupt{Member: "ann"})
	ann.cut(t)
	ann.updates <- agent.TurnStarted{} // the agent says that it continues
	ann.updates <- agent.TurnEnded{Interrupted: true}
	s.untilStatus("ann", team.Idle)
	if n := len(ann.cuts); n != 0 {
		t.Errorf("the turn was interrupted %d more times", n)
	}
}
