package consolidate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// generate writes a tracked file from another one, as go generate does, and fails if the two do not
// match afterwards.
const generate = "tr a-z A-Z < new.txt > b.txt"

// generated is a project whose team has written files that a check changes.
func generated(t *testing.T, change func(*lab)) *lab {
	t.Helper()
	l := newLab(t)
	if change != nil {
		change(l)
	}
	l.found(team.Check{Name: "generate", Command: generate},
		team.Check{Name: "test", Command: `test "$(tr a-z A-Z < new.txt)" = "$(cat b.txt)"`})
	l.write("new.txt", "the team's\n")
	return l
}

// passes checks that a clean clone of the commit passes the checks, and is unchanged afterwards.
func (l *lab) passes() {
	l.Helper()
	clone := filepath.Join(l.TempDir(), "clone")
	l.git("clone", "-q", ".", clone)
	for _, check := range l.replica.Team().Checks {
		if out, err := l.try("-C", clone, "-c", "alias.check=!"+check.Command, "check"); err != nil {
			l.Errorf("the check %s fails in a clone: %v: %s", check.Name, err, out)
		}
	}
	if status := l.git("-C", clone, "status", "--porcelain"); status != "" {
		l.Errorf("the checks change, in a clone,\n%s", status)
	}
}

// TestChecksThatWrite checks a check that writes a tracked file, so that it passed with other files
// than the commit would have.
func TestChecksThatWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := generated(t, nil)
	before := l.commits()
	for range 2 { // nor do its first files count as earlier ones
		l.refused("the checks changed b.txt", `{"action":"keep_check_changes","team":"demo"}`)
		if s := l.replica.Team(); s.Status != team.TeamActive || l.commits() != before {
			t.Fatalf("%+v", s.Consolidation)
		}
		l.tidy()
	}
	o := l.options()
	o.Changes = true
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "M:b.txt", "A:new.txt")
	l.passes()
	if status := l.git("status", "--porcelain"); status != "" {
		t.Errorf("the status is\n%s", status)
	}
	if c := l.replica.Team().Consolidation; c.Rounds != 1 || len(c.Passed) != 2 {
		t.Errorf("%+v", c)
	}
	l.tidy()
}

// TestChecksThatWriteAndFail checks that files that a failing check wrote do not count as earlier
// ones either.
func TestChecksThatWriteAndFail(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "generate", Command: generate}, team.Check{Name: "test", Command: "test -e fixed.txt"})
	l.write("new.txt", "the team's\n")
	l.refused("the check test failed")
	l.write("fixed.txt", "\n")
	l.refused("the checks changed b.txt")
}

// TestNewFilesOfChecks checks that untracked files of checks are reported, and committed on
// request. Files that differ on every run are refused.
func TestNewFilesOfChecks(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "generate", Command: "sort new.txt > made.txt; echo made >> ignored.log"})
	l.write(".git/info/exclude", "*.log\n")
	l.write("new.txt", "the team's\n")
	var said []string
	o := l.options()
	o.Advise = func(note team.Advice) {
		said = append(said, note.Text)
		if len(note.Hints) > 0 { // the team is complete when a person reads it
			t.Errorf("%s: %v cannot be done any more", note.Text, note.Hints)
		}
	}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "A:new.txt")
	if all := strings.Join(said, "\n"); !strings.Contains(all, "the checks left made.txt, which is not committed") {
		t.Errorf("it said %q", all)
	}

	l = newLab(t)
	l.changes = true
	l.found(team.Check{Name: "generate", Command: "sort new.txt > made.txt; echo made >> ignored.log"})
	l.write(".git/info/exclude", "*.log\n")
	l.write("new.txt", "the team's\n")
	l.run()
	l.want(l.committed(), "A:made.txt", "A:new.txt")

	l = newLab(t)
	l.changes = true
	l.found(team.Check{Name: "count", Command: "echo again >> b.txt"})
	l.write("new.txt", "the team's\n")
	l.refused("on every run: b.txt")
	if s := l.replica.Team(); s.Status != team.TeamActive || s.Consolidation.Rounds != team.MaxRounds {
		t.Errorf("%+v", s.Consolidation)
	}
	l.tidy()
}

// TestChecksAndThePerson checks that the user's own changes of tracked files are not committed, and
// are reported if the checks saw them. A check that changes them is refused.
func TestChecksAndThePerson(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for _, touched := range []string{"", "a.txt", "b.txt"} {
		l := newLab(t)
		l.write("a.txt", "the person's\n")
		command := "true"
		if touched != "" {
			command = "echo more >> " + touched
		}
		l.found(team.Check{Name: "test", Command: command})
		l.write("new.txt", "the team's\n")
		if touched == "a.txt" {
			l.refused("the checks changed a.txt")
			continue
		}
		var said []string
		o := l.options()
		o.Advise = func(note team.Advice) {
			said = append(said, note.Text)
			for _, hint := range note.Hints {
				said = append(said, string(hint.Action))
			}
		}
		_, err := Run(l.ctx, o)
		if failed := touched != ""; failed == (err == nil) || failed &&
			!strings.Contains(err.Error(), "the checks changed b.txt") {
			t.Fatal(err)
		}
		if err == nil {
			l.want(l.committed(), "A:new.txt")
		}
		// a team that is complete takes no other options
		if all := strings.Join(said, "\n"); !strings.Contains(all, "your changes of a.txt") ||
			strings.Contains(all, string(team.ActCheckClean)) != (err != nil) {
			t.Errorf("it said %q", all)
		}
	}
}

// TestChecksWithOnly checks a commit of named files. Other files that differ are not the checks',
// but those that the checks change are.
func TestChecksWithOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for _, command := range []string{"true", "echo more >> b.txt"} {
		l := newLab(t)
		l.found(team.Check{Name: "test", Command: command})
		l.write("new.txt", "the team's\n")
		l.write("b.txt", "another team's\n")
		o := l.options()
		o.Only = []string{"new.txt"}
		_, err := Run(l.ctx, o)
		if refused := err != nil && strings.Contains(err.Error(),
			"the checks changed b.txt"); refused != (command != "true") || err != nil && !refused {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestCleanChecks checks that a clean checkout has only what is committed.
func TestCleanChecks(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.clean = true
	l.isolated = true
	l.write("mine.txt", "the person's\n")
	l.write("b.txt", "the person's\n")
	l.write(".git/info/exclude", "*.log\n")
	l.write("local.log", "ignored\n")
	l.found(team.Check{Name: "alone",
		Command: `test "$(git ls-files --others; git status --porcelain; ls)" = "$(printf 'a.txt\nb.txt\nhers.txt\nnew.txt')" && cat b.txt && test "$(cat b.txt)" = one && git rev-parse HEAD > made.log`})
	l.isolate("eve", "hers.txt")
	l.write("new.txt", "the team's\n")
	var head string
	o := l.options()
	o.at = func(point string) {
		if data, err := os.ReadFile(filepath.Join(l.folder, scratch, "clean", "made.log")); point == "check" &&
			err == nil {
			head = strings.TrimSpace(string(data))
		}
	}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "A:hers.txt", "A:new.txt")
	if now := l.git("rev-parse", "HEAD"); head != now {
		t.Errorf("the checks ran at %s, and %s is committed", head, now)
	}
	if status := l.git("status", "--porcelain"); status != " M b.txt\n?? mine.txt" {
		t.Errorf("the status is\n%s", status)
	}
	l.tidy()
	if trees := l.git("worktree", "list"); strings.Contains(trees, "\n") {
		t.Errorf("the worktrees are\n%s", trees)
	}

	l = generated(t, func(l *lab) { l.clean = true })
	scene := l.scene()
	l.refused("the checks changed b.txt")
	if now := l.scene(); now != scene {
		t.Errorf("it was\n%s\nand is\n%s", scene, now)
	}
	l.tidy()
	l = generated(t, func(l *lab) { l.clean, l.changes = true, true })
	l.run()
	l.want(l.committed(), "M:b.txt", "A:new.txt")
	l.passes()
	if status := l.git("status", "--porcelain"); status != "" {
		t.Errorf("the status is\n%s", status)
	}
}

// TestKilledWhileChecksWrite kills the process at each point while the checks change files. The
// next process finishes, or rolls back.
func TestKilledWhileChecksWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for _, clean := range []bool{false, true} {
		l := generated(t, func(l *lab) { l.clean, l.changes = clean, true })
		l.isolate("eve", "hers.txt")
		points := []string{"began", "tree", "staged", "written", "landed", "check", "check", "settled", "staged",
			"landed", "check", "check", "commit", "made", "head", "done"}
		if clean {
			points = []string{"began", "tree", "staged", "landed", "checkout", "check", "checkout", "check", "settled",
				"staged", "written", "landed", "checkout", "check", "commit", "made", "head", "done"}
		}
		for _, point := range points {
			if came, killed := l.consolidating(point); !killed || came[len(came)-1] != point {
				t.Fatalf("clean %t: it was to be killed at %s; it was: %t, after %v", clean, point, killed, came)
			}
		}
		l.consolidating("never")
		if err := l.replica.Refresh(l.ctx); err != nil {
			t.Fatal(err)
		}
		l.want(l.committed(), "M:b.txt", "A:hers.txt", "A:new.txt")
		l.passes()
		l.tidy()
		if trees := l.git("worktree", "list"); strings.Contains(trees, "\n") {
			t.Errorf("the worktrees are\n%s", trees)
		}
		if c := l.replica.Team().Consolidation; c.Attempt != 1 || c.Rounds != 1 {
			t.Errorf("it is %+v", c)
		}
	}
	for _, point := range []string{"settled", "staged", "checkout"} {
		for _, clean := range []bool{false, true} {
			if point == "checkout" && !clean {
				continue
			}
			l := generated(t, func(l *lab) { l.clean, l.changes = clean, true })
			l.isolate("eve", "hers.txt")
			l.consolidating("check") // past the first staged
			if came, killed := l.consolidating(point); !killed {
				t.Fatalf("clean %t: it was not killed at %s, after %v", clean, point, came)
			}
			if err := l.replica.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			if err := RollBack(l.ctx, l.options(), "test"); err != nil {
				t.Fatal(err)
			}
			l.tidy()
			status := l.git("status", "--porcelain")
			if want := map[bool]string{false: " M b.txt\n?? new.txt", true: "?? new.txt"}[clean]; status != want ||
				l.commits() != 1 {
				t.Errorf("clean %t, killed at %s and taken back: %s", clean, point, status)
			}
			if trees := l.git("worktree", "list"); strings.Contains(trees, "\n") {
				t.Errorf("the worktrees are\n%s", trees)
			}
		}
	}
}

// removing is a project with new files of the team, one changed file and one from a branch, and a
// check that removes them all on its first run.
func removing(t *testing.T, isolated bool, then string) *lab {
	l := newLab(t)
	l.isolated = isolated
	l.write(".git/info/exclude", "ran\n")
	command := "test -e ran || { touch ran; rm -r new.txt deep b.txt; " + then + "; }"
	if isolated {
		command = "test -e ran || { touch ran; rm -r new.txt deep b.txt hers.txt a.txt; " + then + "; }"
	}
	l.found(team.Check{Name: "clean up", Command: command})
	if isolated {
		l.isolate("eve", "hers.txt")
		l.hers("eve", "a.txt", "hers\n")
	}
	l.write("new.txt", "the team's\n")
	l.write("deep/er/new.txt", "the team's\n")
	l.write("b.txt", "the team's\n")
	return l
}

// TestTrackedReport checks that the report is not committed, unless HEAD has one: then the checks
// see it, and so does a clone of the commit.
func TestTrackedReport(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		tracked, dirty bool
		only           []string
		check          string
		want           []string
	}{
		"untracked": {want: []string{"A:new.txt"}, check: "test -e new.txt"},
		"tracked": {tracked: true, want: []string{"A:new.txt", "M:rep.md"},
			check: "grep -q fresh rep.md"},
		"tracked, and of an earlier run": {tracked: true, dirty: true, want: []string{"A:new.txt", "M:rep.md"},
			check: "grep -q fresh rep.md"},
		"tracked, and not named": {tracked: true, only: []string{"new.txt"}, want: []string{"A:new.txt"},
			check: "test -e new.txt"},
	} {
		l := newLab(t)
		if c.tracked {
			l.write("rep.md", "of the first run\n")
			l.git("add", "rep.md")
			l.git("commit", "-q", "-m", "the report")
		}
		if c.dirty {
			l.write("rep.md", "of the second run\n")
		}
		l.found(team.Check{Name: "report", Command: c.check})
		l.write("rep.md", "fresh\n")
		l.do(team.User, &team.SetStatus{Status: team.TeamActive, Report: filepath.Join(l.project, "rep.md")})
		l.write("new.txt", "the team's\n")
		var said []string
		o := l.options()
		o.Only, o.Log = c.only, func(text string) { said = append(said, text) }
		if _, err := Run(l.ctx, o); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l.want(l.committed(), c.want...)
		l.passes()
		if noted := strings.Contains(strings.Join(said, "\n"),
			"changes of rep.md, which are not committed"); noted != (c.only != nil) {
			t.Errorf("%s: it said %q", name, said)
		}
	}
}

// TestChecksThatRemove checks that files which the checks removed are restored when the attempt is
// abandoned, so that the next one commits them.
func TestChecksThatRemove(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for _, isolated := range []bool{false, true} {
		for then, words := range map[string]string{"true": "the checks changed", "false": "the check clean up failed"} {
			l := removing(t, isolated, then)
			scene := l.scene()
			l.refused(words)
			if now := l.scene(); now != scene {
				t.Errorf("branch %t, %s: it was\n%s\nand is\n%s", isolated, then, scene, now)
			}
			l.tidy()
			l.run()
			want := []string{"M:b.txt", "A:deep/er/new.txt", "A:new.txt"}
			if isolated {
				want = []string{"M:a.txt", "M:b.txt", "A:deep/er/new.txt", "A:hers.txt", "A:new.txt"}
			}
			l.want(l.committed(), want...)
			if status := l.git("status", "--porcelain"); status != "" {
				t.Errorf("the status is\n%s", status)
			}
		}
	}
}

// TestKilledAfterChecksRemoved kills the program at each point between a check that removes files
// of the team and the end of the attempt. No file is lost.
func TestKilledAfterChecksRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for i, points := range [][]string{{"check"}, {"written"}, {"check", "written"}, {"check", "written", "written"},
		{"lifted"}, {"check", "written", "lifted"}} {
		for _, back := range []bool{false, true} {
			if !soak.Wanted() && back != (i%2 == 0) {
				continue
			}
			l := removing(t, false, "true")
			scene := l.scene()
			for _, point := range points {
				if came, killed := l.consolidating(point); !killed || came[len(came)-1] != point {
					t.Fatalf("%v: it was to be killed at %s; it was: %t, after %v", points, point, killed, came)
				}
			}
			if err := l.replica.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			if back {
				if err := RollBack(l.ctx, l.options(), "test"); err != nil {
					t.Fatal(err)
				}
				if now := l.scene(); now != scene {
					t.Errorf("%v: it was\n%s\nand is\n%s", points, scene, now)
				}
			}
			// it finds what was removed, or, when all is back, commits it
			if _, err := Run(l.ctx, l.options()); err != nil {
				l.run()
			}
			l.want(l.committed(), "M:b.txt", "A:deep/er/new.txt", "A:new.txt")
			l.tidy()
		}
	}
}

// TestBlockedPutBack checks a file that a check removed and that cannot be restored. A hint shows
// the file, and no later attempt commits without it.
func TestBlockedPutBack(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write(".git/info/exclude", "ran\n")
	l.found(team.Check{Name: "clean up", Command: "test -e ran || { touch ran; rm -rf n s; touch n s; false; }"})
	l.write("n/one.txt", "the team's\n")
	l.write("s/two.txt", "bob's\n")
	var said []string
	o := l.options()
	o.Advise = func(n team.Advice) { said = append(said, told(team.Hinted(errors.New(n.Text), n.Hints...))) }
	if _, err := Run(l.ctx, o); err == nil {
		t.Fatal("it was consolidated")
	}
	tree := l.replica.Team().Consolidation.Tree
	show := fmt.Sprintf(`"show_file","team":"demo","dir":%q,"from":%q,"paths":["n/one.txt"]`, l.project, tree)
	if all := strings.Join(said, "\n"); !strings.Contains(all, "not restored") || !strings.Contains(all, "s/two.txt") ||
		!strings.Contains(all, show) {
		t.Errorf("it said %q", all)
	}
	l.refused("n/one.txt, s/two.txt", show) // while the other files are there
	l.remove("n")
	l.remove("s")
	before := l.commits()
	l.refused("s/two.txt", "show_file", "commit_only")
	l.write("n/one.txt", l.git("show", tree+":n/one.txt")+"\n")
	l.refused("s/two.txt was staged")
	if l.commits() != before {
		t.Error("it was committed")
	}
	l.write("s/two.txt", l.git("show", tree+":s/two.txt")+"\n")
	l.run()
	l.want(l.committed(), "A:n/one.txt", "A:s/two.txt")
	if _, err := os.Lstat(filepath.Join(l.folder, absentFile)); err == nil {
		t.Error("the note of what is missing is still there")
	}
}

// TestMissingIsRemembered checks that the record of missing files survives an abandoned attempt
// that names other files.
func TestMissingIsRemembered(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write(".git/info/exclude", "ran\npass\n")
	l.found(team.Check{Name: "clean up", Command: "test -e ran || { touch ran; rm s/two.txt; mkdir s/two.txt; }; " +
		"test -e pass"})
	l.write("n/one.txt", "the team's\n")
	l.write("s/two.txt", "bob's\n")
	l.refused("clean up")
	l.refused("s/two.txt was staged")
	o := l.options()
	o.Only = []string{"n/one.txt"}
	if _, err := Run(l.ctx, o); !errors.Is(err, ErrCheck) {
		t.Fatalf("with other files: %v", err)
	}
	l.write("pass", "")
	l.refused("s/two.txt was staged")
	l.remove("s/two.txt")
	l.refused("s/two.txt was staged")
	note := filepath.Join(l.folder, absentFile)
	if err := os.WriteFile(note, []byte(`{"attempt":1,"tree":"abc","files":["s/two.txt"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l.refused("s/two.txt was staged", `"from":"abc","paths":["s/two.txt"]`) // as the first version wrote it
}

// TestBranchBringsReport checks that a member's file at the path of the report is refused as long
// as cadre's own report is there.
func TestBranchBringsReport(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.isolated = true
	l.found()
	l.isolate("eve", "rep.md")
	l.write("rep.md", "cadre's\n")
	l.do(team.User, &team.SetStatus{Status: team.TeamActive, Report: filepath.Join(l.project, "rep.md")})
	l.refused("the branch cadre/demo@eve has rep.md", "cadre's report on the team", "Move the report elsewhere")
	l.remove("rep.md")
	l.run()
	l.want(l.committed(), "A:rep.md")
}

// TestNotPutBack checks that only the work of the checks is undone. No file is restored through a
// link that replaced a folder, or in the place of another file. A file that the person removed and
// committed stays removed.
func TestNotPutBack(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct{ command, lost string }{
		"a link to elsewhere": {"rm -r deep; ln -s ../elsewhere deep", "deep/er/new.txt"},
		"a file":              {"rm -r deep; echo mine > deep", "deep/er/new.txt"},
		"a folder":            {"rm new.txt; mkdir new.txt; echo mine > new.txt/mine", "new.txt"},
		"a commit":            {"git rm -qf b.txt; git commit -qm mine", "b.txt"},
	} {
		l := removing(t, false, "true")
		elsewhere := filepath.Join(filepath.Dir(l.project), "elsewhere")
		if err := os.Mkdir(elsewhere, 0o700); err != nil {
			t.Fatal(err)
		}
		l.write("ran", "")
		o := l.options()
		o.at = func(point string) {
			if point == "check" {
				if out, err := l.try("-c", "alias.run=!"+c.command, "run"); err != nil {
					t.Errorf("%s: %v: %s", name, err, out)
				}
			}
		}
		if _, err := Run(l.ctx, o); err == nil {
			t.Errorf("%s: it was consolidated", name)
		}
		// where git itself could not continue
		if err := RollBack(l.ctx, l.options(), "test"); err != nil && team.CodeOf(err) != team.Nothing {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Lstat(filepath.Join(l.project, c.lost)); err == nil && info.Mode().IsRegular() {
			t.Errorf("%s: %s is there again", name, c.lost)
		}
		if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
			t.Errorf("%s: %s was written outside of the project", name, left[0].Name())
		}
		l.tidy()
	}
}
