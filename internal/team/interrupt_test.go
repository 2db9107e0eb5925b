package team

import "testing"

// TestInterruptedShell checks what a person is asked before the command of a shell member ends, and
// that the member continues when the task that failed because of it is released.
func TestInterruptedShell(t *testing.T) {
	host := Host("h")
	runs := history{&SpawnMember{Name: "dan", Agent: Shell}, host, &AttachMember{Member: "dan"},
		&ReportStarted{Member: "dan", Session: "s"}, User, &CreateTask{Subject: "Docs", Name: "docs", Run: "make docs"}}
	if q := runs.state(t).EndOfCommand("dan"); q != "" {
		t.Errorf("without a command, this is asked: %s", q)
	}
	runs = append(runs, "dan", &ClaimTask{Task: "docs"}, User)
	const question = "This ends the command of dan, and its task docs fails. End it?"
	if q := runs.state(t).EndOfCommand("dan"); q != question {
		t.Errorf("got %q, want %q", q, question)
	}
	ends := history{runs, &Interrupt{Member: "dan"}, "dan", &FailTask{Task: "docs", Reason: "interrupted"}, host,
		&ReportStatus{Member: "dan", Status: Idle}, User}
	s := ends.state(t)
	if s.Wakes("dan") || s.member("dan").Interrupt == 0 {
		t.Error("after the interrupt, dan does not wait")
	}
	s = append(ends, &ReleaseTask{Task: "docs"}).state(t)
	if !s.Wakes("dan") {
		t.Error("dan does not continue with the task that was released")
	}
	s = append(ends, &ReleaseTask{Task: "docs"}, host, &ReceiveMessages{Member: "dan"}).state(t)
	if !s.HasWork("dan") {
		t.Error("dan is not given the task again")
	}
}
