package run

import (
	"testing"

	"cadre/internal/engine"
	"cadre/internal/journal/memjournal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestTheLeadHasWork: a lead that has just got a task, such as a merge, is asked for its report
// only after that, unless it may not do the task.
func TestTheLeadHasWork(t *testing.T) {
	t.Parallel()
	for _, delegate := range []bool{false, true} {
		rep, err := replica.Open(t.Context(), memjournal.New("t").Open(), replica.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer rep.Close()
		host := team.Host("h")
		for _, c := range []team.Command{
			{Actor: team.User, Body: &team.CreateTeam{TeamID: "t", Name: "demo", Dir: "/d", LeadAgent: "claude",
				Delegate: delegate}},
			{Actor: host, Body: &team.AttachMember{Member: "lead"}},
			{Actor: host, Body: &team.ReportStarted{Member: "lead", Session: "s"}},
			{Actor: host, Body: &team.ReportStatus{Member: "lead", Status: team.Idle}},
		} {
			if _, err := rep.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		l := Lead{Team: &engine.Team{Replica: rep}}
		if at := l.look(); at.busy || !at.led {
			t.Fatalf("it is %+v", at)
		}
		if _, err := rep.Do(t.Context(), team.Command{Actor: team.User,
			Body: &team.CreateTask{Subject: "Merge the branch", Owner: "lead"}}); err != nil {
			t.Fatal(err)
		}
		if at := l.look(); at.busy == delegate {
			t.Errorf("with a task for the lead, and delegate mode %t, it is %+v", delegate, at)
		}
	}
}
