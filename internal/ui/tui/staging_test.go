package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/consolidate"
	"cadre/internal/team"
)

// Staging implements [outside].
func (x *screen) Staging(ref string, include, only []string) tea.Msg {
	asked := "staging " + ref
	if len(include)+len(only) > 0 {
		asked = fmt.Sprintf("staging %s include %q only %q", ref, include, only)
	}
	x.asked = append(x.asked, asked)
	x.staged.include, x.staged.only = include, only
	return x.staged
}

// stagingOf is an example of a plan.
func stagingOf(refused error) stagingMsg {
	msg := stagingMsg{ref: "demo", plan: &consolidate.Plan{Team: "demo", Checks: []string{"test"}, Refused: refused,
		Paths: []consolidate.Staged{
			{Path: "parser.go", Fate: consolidate.Conflicts, From: []string{"bob"}, Branch: "cadre/demo@bob",
				Why: "the branch does not merge; task 7 says how"},
			{Path: "token.go", Fate: consolidate.Commits, Change: "A", From: []string{"ann"}},
			{Path: "文書/evil\x1b[2J.md", Fate: consolidate.Commits, Change: "M", From: []string{"ann", "bob"}},
			{Path: "notes.txt", Fate: consolidate.LeftOut, Why: "it is as it was before the team was created"}}}}
	if refused != nil {
		msg.why = refused.Error()
	}
	return msg
}

// TestStaging shows what a consolidation would commit, asks before it runs, shows its steps, and
// then its result.
func TestStaging(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.open(s)
	x.staged = stagingOf(nil)
	x.keys(".")
	x.picks("consolidate")
	x.wants("staging demo")
	for _, want := range []string{"2 paths to commit, 1 path in conflict, 1 path left out, 1 check.",
		"added    token.go  ann",
		"parser.go  bob (cadre/demo@bob): the branch does not merge; task 7 says how", "Checks that run first: test.",
		"notes.txt: it is as it was before the team was created"} {
		x.says(want)
	}
	x.keys("enter")
	x.says("Consolidate the team demo: 2 paths to commit")
	asked := len(x.asked)
	x.keys("n")
	if len(x.asked) != asked {
		t.Errorf("it ran without a yes: %s", x.last())
	}
	x.holds = true
	x.keys("enter", "y")
	x.wants(`command demo ["consolidate" "demo-1"]`)
	msg := s.message()
	msg.fresh, msg.steps = false, stepsOf(&team.Record{Events: []team.Event{&team.CheckPassed{Check: "test"}}})
	x.send(msg)
	x.says("✓ check test")
	x.keys("esc")
	for range 5 { // the person has seen that it runs
		x.Update(clockMsg(x.now + 1000))
	}
	if x.overlay != nil {
		t.Errorf("%q opens by itself", x.overlay.title)
	}
	x.send(outputMsg{number: x.commands, args: []string{"consolidate", "demo-1"},
		text: "✓ check test\nteam demo is complete: commit " +
			"1a2b3c4d5e6f\n"})
	x.Update(clockMsg(x.now + 1000))
	x.Update(clockMsg(x.now + 1000))
	x.says("team demo is complete: commit 1a2b3c4d5e6f")

	x.keys("esc")
	x.staged = stagingOf(errors.New("ann works on task lexer. To wait for it: cadre wait demo"))
	x.keys(".")
	x.picks("consolidate")
	x.says("Not now: ann works on task lexer. To wait for it: cadre wait demo")
	asked = len(x.asked)
	x.keys("enter")
	if x.ask != nil || len(x.asked) != asked {
		t.Error("a plan that is refused can be run")
	}
	x.keys("esc")
	x.staged = stagingMsg{ref: "demo", err: "the repository is damaged"}
	x.keys(".")
	x.picks("consolidate")
	x.says("the repository is damaged")
	if strings.Contains(strings.Join(x.frame(), ""), "\x1b[2J") {
		t.Error("a path reaches the terminal as it is")
	}
}

// TestStagingChoosesPaths: a key leaves a path out or takes it in, the plan follows, and the
// consolidation gets the paths. Paths on a branch stay as they are.
func TestStagingChoosesPaths(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.open(s)
	plan := func(paths ...consolidate.Staged) stagingMsg {
		return stagingMsg{ref: "demo", plan: &consolidate.Plan{Team: "demo", Top: "/home/me/app", Paths: paths}}
	}
	parser := consolidate.Staged{Path: "parser.go", Fate: consolidate.Commits, Change: "A", From: []string{"bob"},
		Branch: "cadre/demo@bob"}
	token := consolidate.Staged{Path: "token.go", Fate: consolidate.Commits, Change: "A", From: []string{"ann"}}
	tree := consolidate.Staged{Path: "dir/tree.go", Fate: consolidate.Commits, Change: "M", From: []string{"ann"}}
	notes := consolidate.Staged{Path: "notes.txt", Fate: consolidate.LeftOut, Why: "it is yours"}
	out := func(one consolidate.Staged) consolidate.Staged { one.Fate = consolidate.LeftOut; return one }
	x.staged = plan(parser, token, tree, notes)
	x.keys(".")
	x.picks("consolidate")
	for _, want := range []string{"▸     added    parser.go", "  [x] added    token.go", "  [ ]          notes.txt"} {
		x.says(want)
	}
	x.keys(" ")
	x.says("It is on a branch, which is merged as a whole.")
	x.staged = plan(parser, tree, notes, out(token))
	x.keys("j", " ")
	x.wants(`staging demo include [] only ["dir/tree.go"]`)
	x.says("▸ [ ] added    token.go")
	x.keys("k")
	x.says("▸ [ ]          notes.txt")
	in := notes
	in.Fate = consolidate.Commits
	x.staged = plan(parser, tree, in, out(token))
	x.keys(" ")
	x.wants(`staging demo include ["notes.txt"] only ["dir/tree.go" "notes.txt"]`)
	x.says("▸ [x]          notes.txt")
	x.keys("enter", "y")
	x.wants(`command demo ["consolidate" "demo-1" "--include" "/home/me/app/notes.txt" "--only" "/home/me/app/dir/tree.go" ` +
		`"--only" "/home/me/app/notes.txt"]`)
	x.keys("esc")

	x.staged = plan(token)
	x.keys(".")
	x.picks("consolidate")
	x.keys(" ")
	x.says("To commit nothing: cadre consolidate demo --no-commit --complete")
}
