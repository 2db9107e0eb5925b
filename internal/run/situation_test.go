package run

import (
	"slices"
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

// TestAnInterruptedMemberIsWaitedFor: where the user leads, a run does not end while a member waits
// for a message after an interrupt and work is left.
func TestAnInterruptedMemberIsWaitedFor(t *testing.T) {
	t.Parallel()
	rep, err := replica.Open(t.Context(), memjournal.New("t").Open(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	l := Lead{Team: &engine.Team{Replica: rep}}
	host := team.Host("h")
	step := func(busy bool, commands ...team.Command) {
		t.Helper()
		for _, c := range commands {
			if _, err := rep.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if at := l.look(); at.busy != busy {
			t.Errorf("busy: %t, in %+v", at.busy, at)
		}
	}
	step(true, team.Command{Actor: team.User, Body: &team.CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"}},
		team.Command{Actor: team.User, Body: &team.SpawnMember{Name: "w", Agent: team.Shell}},
		team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "build", Run: "make"}},
		team.Command{Actor: host, Body: &team.AttachMember{Member: "w"}},
		team.Command{Actor: host, Body: &team.ReportStarted{Member: "w", Session: "s"}},
		team.Command{Actor: "w", Body: &team.ClaimTask{Task: "1"}},
		team.Command{Actor: team.User, Body: &team.Interrupt{Member: "w"}})
	step(true, team.Command{Actor: "w", Body: &team.FailTask{Task: "1", Fence: 1, Reason: "interrupted"}},
		team.Command{Actor: host, Body: &team.ReportStatus{Member: "w", Status: team.Idle}})
	step(false, team.Command{Actor: team.User, Body: &team.SendMessage{To: "w", Body: "leave it"}},
		team.Command{Actor: "w", Body: &team.ReceiveMessages{}},
		team.Command{Actor: host, Body: &team.ReportStatus{Member: "w", Status: team.Idle}})
}

// TestATeamThatWindsDownIsNotWaitedFor: a run waits for the tasks in progress of a team that winds
// down, and not for those that nobody starts any more.
func TestATeamThatWindsDownIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	rep, err := replica.Open(t.Context(), memjournal.New("t").Open(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	l := Lead{Team: &engine.Team{Replica: rep}}
	do := func(actor string, body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	host := team.Host("h")
	do(team.User, &team.CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"})
	do(team.User, &team.SpawnMember{Name: "w", Agent: team.Shell})
	for _, subject := range []string{"build", "test"} {
		do(team.User, &team.CreateTask{Subject: subject, Run: "make"})
	}
	do(host, &team.AttachMember{Member: "w"})
	do(host, &team.ReportStarted{Member: "w", Session: "s"})
	do("w", &team.ClaimTask{Task: "1"})
	do(team.User, &team.SetStatus{Status: team.TeamConsolidating})
	if at := l.look(); !at.busy {
		t.Errorf("a task is in progress, and it is %+v", at)
	}
	do("w", &team.CompleteTask{Task: "1", Fence: 1})
	do(host, &team.ReportStatus{Member: "w", Status: team.Idle})
	if at := l.look(); at.busy || at.undoneWords() != "the team winds down, and 1 task stayed open" {
		t.Errorf("nothing is started any more, and it is %+v: %s", at, at.undoneWords())
	}
	do(team.User, &team.SetStatus{Status: team.TeamActive})
	if at := l.look(); !at.busy {
		t.Errorf("it continues, and it is %+v", at)
	}
}

// TestASuccessorContinuesTheBudget: trying again does not give anybody the same budget twice.
func TestASuccessorContinuesTheBudget(t *testing.T) {
	t.Parallel()
	rep, err := replica.Open(t.Context(), memjournal.New("t").Open(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	var said []string
	l := Lead{Team: &engine.Team{Replica: rep}, Log: func(text string) { said = append(said, text) }}
	do := func(actor string, body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	host := team.Host("h")
	do(team.User, &team.CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"})
	for _, name := range []string{"ann", "bob"} {
		do(team.User, &team.SpawnMember{Name: name, Agent: team.Claude, Budget: team.Budget{Tokens: 100}})
		do(host, &team.AttachMember{Member: name})
	}
	do(host, &team.ReportUsage{Member: "ann", Usage: team.Usage{InputTokens: 70}})
	do(host, &team.ReportUsage{Member: "bob", Usage: team.Usage{InputTokens: 100}})
	for _, name := range []string{"ann", "bob"} {
		do(host, &team.ReportFailed{Member: name, Reason: "gone"})
	}
	do(team.User, &team.SpawnMember{Name: "cy", Agent: team.Shell})
	do(team.User, &team.ReportStopped{Member: "cy", Reason: "shut down"})
	do(team.User, &team.CreateTask{Subject: "look"})
	if err := l.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep.View(func(s *team.State) {
		again, _ := s.Member("ann-again-2")
		if used := again.Charged(); used.Tokens() != 70 || again.Usage.Tokens() != 0 {
			t.Errorf("the successor of ann starts with %d of its budget used", used.Tokens())
		}
		if _, joined := s.Member("bob-again-2"); joined {
			t.Error("bob has a successor, and its budget is spent")
		}
	})
	const why = "bob is not replaced: the token budget of bob is spent, and bob-again-2 would inherit it"
	const continues = "cy has stopped (shut down), and work is left: cy-again-2 takes its place"
	if !slices.Contains(said, why) || !slices.Contains(said, continues) {
		t.Errorf("it said %q", said)
	}
	undone := l.Undone()
	if hints := team.HintsOf(undone); len(hints) != 1 || hints[0].Member != "bob" ||
		hints[0].Action != team.ActRaiseBudget {
		t.Errorf("%v has the hints %+v", undone, hints)
	}
	do(team.User, &team.SetBudget{Member: "bob", Budget: team.Budget{Tokens: 150}})
	if err := l.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(host, &team.AttachMember{Member: "bob-again-2"})
	do(host, &team.ReportUsage{Member: "bob-again-2", Usage: team.Usage{InputTokens: 50}})
	rep.View(func(s *team.State) {
		if m, _ := s.Member("bob-again-2"); m.Exhausted != "tokens" {
			t.Errorf("100 and 50 of 150 tokens are used, and the budget is not spent: %+v", m)
		}
	})
}
