package replica_test

import (
	"testing"
	"time"

	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestABudgetOfTimeNeedsNoHost: the time of a member's budget ends by the clock of whoever sends
// the next command. Its tasks are then free for others.
func TestABudgetOfTimeNeedsNoHost(t *testing.T) {
	now := replica.Now()
	p := newPlace(t, &team.SpawnMember{Name: "eve", Agent: team.External, Budget: team.Budget{Time: time.Hour}},
		&team.CreateTask{Subject: "look"}, &team.CreateTask{Subject: "tell", Owner: "eve"})
	rep := p.open(replica.Options{Now: func() team.Time { return now }})
	do(t, rep, "eve", &team.ClaimTask{Task: "1"})
	now = now.Add(2 * time.Hour)
	_, err := rep.Do(within(t), team.Command{Actor: "eve", Body: &team.CompleteTask{Task: "1"}})
	if team.CodeOf(err) != team.Exhausted {
		t.Errorf("eve completed a task after her time: %v", err)
	}
	if hints := team.HintsOf(err); len(hints) != 1 || hints[0].Action != team.ActRaiseBudget || hints[0].Member != "eve" {
		t.Errorf("the hints are %+v", hints)
	}
	for _, id := range []string{"1", "2"} {
		do(t, rep, "bob", &team.ClaimTask{Task: id})
	}
}
