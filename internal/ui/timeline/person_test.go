package timeline

import (
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// TestWaitsForAPerson: a member waits for a person after an interrupt, until it gets a message, and
// after a turn in which it asked the person who leads, until the question is read. A question to an
// agent that leads is no such wait.
func TestWaitsForAPerson(t *testing.T) {
	h := historytest.New()
	var line Timeline
	does := func(member string, want Kind) {
		t.Helper()
		for _, r := range h.Records[line.Through():] {
			line.Add(r)
		}
		var restored Timeline
		restored.Restore(h.State)
		for _, one := range []*Timeline{&line, &restored} {
			if got := one.named[member].kind(); got != want {
				t.Errorf("%s: %s, not %s", member, got, want)
			}
		}
	}
	do := func(actor string, body team.Body) {
		t.Helper()
		if !h.Do(actor, body) {
			t.Fatalf("%+v is refused", body)
		}
	}
	host := team.Host("h")
	do(team.User, &team.SpawnMember{Name: "ann", Agent: team.Claude})
	do(host, &team.AttachMember{Member: "ann"})
	do(host, &team.ReportStarted{Member: "ann", Session: "s"})

	do(team.User, &team.Interrupt{Member: "ann"})
	does("ann", Working) // its turn has not ended yet
	do(host, &team.ReportStatus{Member: "ann", Status: team.Idle})
	does("ann", Person)
	do(team.User, &team.SendMessage{To: "ann", Body: "go on"})
	do(host, &team.ReceiveMessages{Member: "ann"})
	does("ann", Idle)
	do(host, &team.ReportStatus{Member: "ann", Status: team.Active})

	do("ann", &team.SendMessage{To: "lead", Body: "which grammar?", Intent: "question"})
	does("ann", Working) // it goes on meanwhile
	do(host, &team.ReportStatus{Member: "ann", Status: team.Idle})
	does("ann", Person)
	do("lead", &team.ReceiveMessages{})
	does("ann", Idle)

	do("ann", &team.SendMessage{To: "lead", Body: "done"})
	does("ann", Idle)
	do("lead", &team.ReceiveMessages{})
	do("ann", &team.SendMessage{To: "lead", Body: "and the tests?", Intent: "question"})
	does("ann", Person)
	do(team.User, &team.AttachLead{Session: "of-an-agent", Agent: true})
	does("ann", Idle)
}
