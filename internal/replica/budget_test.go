package replica_test

import (
	"strings"
	"testing"
	"time"

	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestABudgetOfTimeNeedsNoHost checks that the time of a member's budget ends by the clock of the
// process that sends the next command. The member completes what it holds, and what is assigned to
// it stays so.
func TestABudgetOfTimeNeedsNoHost(t *testing.T) {
	now := replica.Now()
	p := newPlace(t, &team.SpawnMember{Name: "eve", Agent: team.External, Budget: team.Budget{Time: time.Hour}},
		&team.CreateTask{Subject: "look"}, &team.CreateTask{Subject: "tell", Owner: "eve"})
	rep := p.open(replica.Options{Now: func() team.Time { return now }})
	do(t, rep, "eve", &team.ClaimTask{Task: "1"})
	now = now.Add(2 * time.Hour)
	_, err := rep.Do(within(t), team.Command{Actor: "eve", Body: &team.ClaimTask{Task: "2"}})
	if team.CodeOf(err) != team.Exhausted {
		t.Errorf("eve claimed a task after her time: %v", err)
	}
	if hints := team.HintsOf(err); len(hints) != 1 || hints[0].Action != team.ActRaiseBudget ||
		hints[0].Member != "eve" {
		t.Errorf("the hints are %+v", hints)
	}
	do(t, rep, "eve", &team.CompleteTask{Task: "1", Result: "seen"})
	if of := task(rep, "1"); of.Status != team.Completed || of.Result != "seen" {
		t.Errorf("the task that she held is %s with the result %q", of.Status, of.Result)
	}
	if of := task(rep, "2"); of.Owner != "eve" {
		t.Errorf("the task that was assigned to her is of %q", of.Owner)
	}
}

// TestAWaitRecordsWhatTheClockBrings checks that a process that only waits records an alert when it
// is due, so the lead of a team without a host is notified in time.
func TestAWaitRecordsWhatTheClockBrings(t *testing.T) {
	p := newPlace(t, &team.SpawnMember{Name: "eve", Agent: team.External,
		Budget: team.Budget{Time: 500 * time.Millisecond}})
	rep := p.open(replica.Options{})
	for mail := inbox(rep, team.DefaultLead); ; mail = inbox(rep, team.DefaultLead) {
		if n := len(mail); n > 0 && strings.Contains(mail[n-1].Body, "The time budget of eve is spent.") {
			break
		}
		if err := rep.Await(within(t), rep.Seq()); err != nil {
			t.Fatalf("%v; the lead has %v", err, mail)
		}
	}
}
