package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"cadre/internal/consolidate"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/checkpoint"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// printing returns what print writes.
func printing(t *testing.T, print func(w *sanitize.Writer) error) string {
	t.Helper()
	var text strings.Builder
	w := sanitize.NewWriter(&text)
	if err := print(w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return text.String()
}

// TestNextLine checks that a status ends with the command to run next.
func TestNextLine(t *testing.T) {
	waits := []team.Item{{Text: "the lead sees to it", WaitsFor: "lead", Hint: team.Hint{Action: team.ActShowLog}},
		{Text: "you do", WaitsFor: team.ForUser, Hint: team.Hint{Action: team.ActResume}}}
	for step, want := range map[catalog.Step]string{
		catalog.Follow:  "nothing waits for you; to follow it: cadre log demo --follow",
		catalog.Answer:  "next: cadre resume demo",
		catalog.Pull:    "next: cadre pull demo",
		catalog.Observe: "next: cadre observe --agent codex ... --as-team kept",
		catalog.Seal:    "not consolidated; to check and commit the team's work: cadre consolidate demo",
		catalog.Bring:   "all tasks are done; next: cadre consolidate demo",
		catalog.Review:  "next: cadre review demo",
		catalog.Staff:   "next: cadre spawn demo NAME",
		catalog.Plan:    "next: cadre task add demo SUBJECT",
	} {
		n := standing{called: "demo", step: step}
		n.Name, n.Observed, n.Session, n.Attention = "kept", "codex", true, waits
		if got := n.next(); got != want {
			t.Errorf("%d: %s", step, got)
		}
	}
}

// TestState checks that a list prefers the current state of a team to the state that was recorded
// last.
func TestState(t *testing.T) {
	for want, o := range map[string]catalog.Overview{
		"active":          {Status: team.TeamActive},
		"released":        {Status: team.TeamActive, Released: 1, Dormant: true},
		"interrupted":     {Status: team.TeamConsolidating, Interrupted: true, Dormant: true},
		"dormant":         {Status: team.TeamActive, Dormant: true},
		"observed":        {Status: team.TeamActive, Observed: "fx", Watched: true},
		"complete":        {Status: team.TeamComplete, Observed: "fx"},
		catalog.Unwatched: {Status: team.TeamActive, Observed: "fx"},
	} {
		if got := o.State(); got != want {
			t.Errorf("%+v has state %s", o, got)
		}
	}
}

// TestStatusText checks that a status has no line for unknown values.
func TestStatusText(t *testing.T) {
	n := standing{called: "demo", works: map[string]string{"ann": "1 look"}, Attach: map[string]string{
		"ann": "cadre attach demo ann"}}
	n.Name, n.Status, n.Goal, n.Dir, n.UpdatedAt = "demo", team.TeamActive, "to look", "/there", now()
	n.Tasks = map[string]int{"pending": 3, "in_progress": 12, "completed": 1}
	n.Ready, n.Blocked, n.Failed = 1, 1, 7
	n.Failures = []team.Task{{ID: "2", Subject: "mend", Status: team.Pending, Failures: 1, Failure: "exit status 2"}}
	n.Members = []team.Member{{Name: "ann", Agent: "claude-tmux", PermissionMode: "default", Context: 40}}
	n.Standings = map[string]team.Phase{"ann": team.Phase("active")}
	n.Checks = []catalog.Checked{{Name: "vet", Result: "passed"}, {Name: "test"}}
	n.Underway = []team.Task{{ID: "1", Subject: "look", Status: team.InProgress, Owner: "ann"}}
	n.Rules = team.Permissions{Policy: "deny", Allow: []string{"Edit", "Read"}}
	n.Added = []team.Rule{{Rule: "Bash(make)"}}
	n.Attention = []team.Item{{Text: "The lead is lost.", WaitsFor: team.ForUser,
		Hint: team.Hint{Action: team.ActResume}}}
	n.RateLimits = []team.ReportedRateLimit{{Pool: "claude, login", Until: now(), Members: []string{"ann", "bob"}}}
	n.step = catalog.Answer
	got := printing(t, n.write)
	for _, want := range []string{
		"demo is active: 1 of 16 tasks done, 12 in progress, 7 failed, 1 ready, 1 blocked\n",
		"goal: to look\n", "in /there, last change", "checks: vet passed, test not run\n",
		"permission policy deny, 3 permission rules\n", "ann has a terminal; to attach: cadre attach demo ann\n",
		"rate limit of claude, login until ", "waits for it: ann, bob; to try again now: cadre lift demo ann\n",
		"40%", "2     failed              mend\n",
		"and 11 in progress, 6 failed, 1 ready, 1 blocked, 1 completed: cadre task list demo\n",
		"1 thing waits:\n! The lead is lost.\n    cadre resume demo\n", "\nnext: cadre resume demo\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the status lacks %q:\n%s", want, got)
		}
	}
	for _, not := range []string{"budget", "MODE", "TOKENS", "delegate"} {
		if strings.Contains(got, not) {
			t.Errorf("the status has %q:\n%s", not, got)
		}
	}
}

// TestRecordsOfARestoredTeam checks that the records before a restoration are counted.
func TestRecordsOfARestoredTeam(t *testing.T) {
	e := &inspect.Examination{Team: team.Team{Name: "demo", ID: "demo-1", Dir: "/there", Status: team.TeamActive,
		Restored: team.Restored{ID: "r", Seq: 36}}, Seq: 1}
	got := printing(t, func(w *sanitize.Writer) error { return writeExamination(w, e, "demo") })
	if want := "team demo (demo-1), 37 records, in /there"; !strings.Contains(got, want) {
		t.Errorf("it lacks %q:\n%s", want, got)
	}
}

// TestMoved checks that a watched status counts every change of the team, but not the passing of
// time.
func TestMoved(t *testing.T) {
	status := func(at team.Time, change func(n *standing)) string {
		n := standing{works: map[string]string{}}
		n.Name, n.LookedAt, n.UpdatedAt = "demo", at, 5
		n.Budget = []team.Spent{{What: "tokens", Used: 1, Limit: 9}, {What: "time", Used: int64(at), Limit: 100}}
		n.Attention = []team.Item{{Kind: team.ItemBudgetLow, Text: fmt.Sprintf("%d ms are spent", at)}}
		change(&n)
		return n.moved()
	}
	same := func(*standing) {}
	if a, b := status(10, same), status(20, same); a != b {
		t.Errorf("the status of an idle team changes:\n%s\n%s", a, b)
	}
	for what, change := range map[string]func(n *standing){
		"a record":   func(n *standing) { n.UpdatedAt++ },
		"tokens":     func(n *standing) { n.Budget[0].Used++ },
		"an item":    func(n *standing) { n.Attention[0].Member = "ann" },
		"who sees":   func(n *standing) { n.Attention[0].WaitsFor = "lead" },
		"a standing": func(n *standing) { n.Standings = map[string]team.Phase{"ann": team.Away} },
		"work":       func(n *standing) { n.works["ann"] = "1 look" },
		"a host":     func(n *standing) { n.Hosted = true },
	} {
		if status(10, same) == status(10, change) {
			t.Errorf("%s changed, but the status is the same", what)
		}
	}
}

// TestReached checks that the progress of an interrupted consolidation is shown step by step.
func TestReached(t *testing.T) {
	checks := []team.Check{{Name: "vet"}, {Name: "test"}}
	for name, c := range map[string]struct {
		at    team.Consolidation
		lines []string
	}{
		"begun": {team.Consolidation{Attempt: 2, By: "@user", Step: team.Began}, []string{
			"consolidation 2, started by user, is not finished", "nothing is staged or checked"}},
		"merged": {team.Consolidation{Attempt: 1, By: "lead", Step: team.Merged}, []string{
			"consolidation 1, started by lead, is not finished",
			"what members did in worktrees is on their branches; nothing is staged or checked"}},
		"nothing to commit": {team.Consolidation{Attempt: 1, By: "lead", Step: team.Staged,
			Passed: []string{"vet"}}, []string{
			"consolidation 1, started by lead, is not finished", "nothing to commit",
			"checks that passed: vet; that are left: test"}},
		"made": {team.Consolidation{Attempt: 1, By: "lead", Step: team.Made, Passed: []string{"vet", "test"},
			Commit: "0123456789abcdef"}, []string{
			"consolidation 1, started by lead, is not finished", "nothing to commit",
			"checks that passed: vet, test; that are left: none", "commit 0123456789ab is made"}},
	} {
		if got := reached(team.Team{Checks: checks, Consolidation: c.at}); strings.Join(got, "\n") !=
			strings.Join(c.lines, "\n") {
			t.Errorf("%s:\n%s", name, strings.Join(got, "\n"))
		}
	}
}

// TestSealedText checks that the record of a team says what was committed, by whom, and what was
// checked.
func TestSealedText(t *testing.T) {
	for want, r := range map[string]*consolidate.Record{
		"team demo is complete: nothing was committed; 0 tasks\n": {Name: "demo",
			Members: make([]consolidate.Member, 1)},
		"team demo is complete: commit 0123456789ab, 1 file; 2 tasks by 1 member; checks: vet, test\n": {Name: "demo",
			Commit: "0123456789abcdef", Files: 1, Tasks: []consolidate.Task{{By: "ann"}, {By: "ann"}},
			Members: make([]consolidate.Member, 2), // the lead did none of the tasks
			Checks:  []consolidate.Checked{{Name: "vet"}, {Name: "test"}}},
		"team demo is complete: nothing was committed; 2 tasks by 1 member and the lead\n": {Name: "demo",
			Tasks:   []consolidate.Task{{By: "ann"}, {By: "lead"}},
			Members: []consolidate.Member{{Name: "lead"}, {Name: "ann"}}},
	} {
		if got := printing(t, func(w *sanitize.Writer) error { return writeSealed(w, r) }); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	got := printing(t, func(w *sanitize.Writer) error {
		return writeRecord(w, &consolidate.Record{Name: "demo"}, false, "/t")
	})
	if !strings.HasSuffix(got, "! the history is not the one that /t/"+consolidate.RecordFile+" describes\n") {
		t.Errorf("for another history: %q", got)
	}
}

// TestPatches checks that the lines of a patch are counted without the file headers.
func TestPatches(t *testing.T) {
	patch := "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-one\n+two\n+three\n"
	if got := tally([]byte(patch)); got != "+2 -1" {
		t.Errorf("the line counts are %s", got)
	}
	binary := "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\nKcmZ\n\n"
	if got := tally([]byte(binary)); got != "binary" {
		t.Errorf("the line counts are %s", got)
	}
	for text, want := range map[string]bool{patch: true, binary: true, "": true,
		"task 1 is completed\n": false, patch + "cadre: all is well\n": false,
		binary + "cadre: all is well\n": false} {
		if isPatch(text) != want {
			t.Errorf("%q is accepted as a patch: %v", text, !want)
		}
	}
}

// TestLists checks that long lists are cut, and say by how much.
func TestLists(t *testing.T) {
	name := func(l checkpoint.Left) string { return l.Path }
	var many []checkpoint.Left
	for i := range mostPaths + 2 {
		many = append(many, checkpoint.Left{Path: fmt.Sprintf("f%d", i)})
	}
	for _, c := range []struct {
		all  []checkpoint.Left
		more int
		want string
	}{
		{many[:2], 0, "f0, f1"},
		{many[:2], 3, "f0, f1 and 3 more"},
		{many, 1, "f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 and 3 more"},
		{nil, 1, "1 path"},
		{nil, 0, ""},
	} {
		if got := listed(c.all, c.more, name); got != c.want {
			t.Errorf("%d and %d more become %q", len(c.all), c.more, got)
		}
	}
}

// TestSmallWords checks the words for numbers; zero has no word.
func TestSmallWords(t *testing.T) {
	for got, want := range map[string]string{
		counted(0, "a", 2, "b", 1, "c"): "2 b, 1 c", counted(0, "a"): "",
		cost(team.Usage{CostMicroUSD: 12_345}): "$0.0123", tokens(team.Usage{InputTokens: 2, OutputTokens: 3}): "5",
		percent(40): "40%", waiting(1): "1 thing waits", waiting(2): "2 things wait",
		firstLine(" one\ntwo "): "one …", firstLine("one"): "one", some(2, ", %d late"): ", 2 late",
		uncounted([]string{"gemini"}): "gemini does not say what the model costs, so the budget in USD does not " +
			"count it: one of tokens or time does",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if tokens(team.Usage{})+cost(team.Usage{})+percent(0)+some(0, "%d")+prefix("x", "") != "" {
		t.Error("zero has words")
	}
}

// TestJSONOrText checks that a command prints its value with --json, and its text otherwise.
func TestJSONOrText(t *testing.T) {
	for json, want := range map[bool]string{true: "{\"name\":\"ann\"}\n", false: "ann is here\n"} {
		var text strings.Builder
		a := &app{json: json, out: output{sanitize.NewWriter(&text), os.Stdout}}
		if err := a.print(map[string]string{"name": "ann"}, said("%s is here", "ann")); err != nil {
			t.Fatal(err)
		}
		a.out.Close()
		if text.String() != want {
			t.Errorf("with JSON %v: %q", json, text.String())
		}
	}
}

// TestRebuiltText checks that fsck counts the files that it wrote again.
func TestRebuiltText(t *testing.T) {
	for n, want := range map[int]string{1: "\nbrought up to date: 1 file in Claude Code's folders\n",
		2: "\nbrought up to date: 2 files in Claude Code's folders\n"} {
		v := verdict{upkeep.Health{Team: "demo", Healthy: true, Rebuilt: n}}
		if got := printing(t, v.write); !strings.Contains(got, want) {
			t.Errorf("with %d: got %q, want %q", n, got, want)
		}
	}
}

// TestByReason checks that files that are left out for one reason are listed together.
func TestByReason(t *testing.T) {
	for want, left := range map[string][]string{
		"a, c d (large); b (secret)":     {"a (large)", "b (secret)", "c d (large)"},
		"a; b (large)":                   {"a", "b (large)"},
		"a (2) (large)":                  {"a (2) (large)"},
		"a, b":                           {"a", "b"},
		"a (large (2 MB)), b (of 3) c d": {"a (large (2 MB))", "b (of 3) c d"},
		"":                               nil,
	} {
		if got := byReason(left); got != want {
			t.Errorf("%q: got %q, want %q", left, got, want)
		}
	}
}
