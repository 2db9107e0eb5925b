package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/layout"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// nestWork writes the team file up.yaml in a repository. Its member sub is a team with a worktree,
// two of whose members have worktrees too. The keys are added to the file of that team.
func (w *world) nestWork(keys string) {
	w.t.Helper()
	w.repository()
	w.write("up.yaml", `name: up
maxDepth: 1
members:
  - {name: sub, agent: team, isolation: worktree, file: inner.yaml}
tasks:
  - {id: inside, owner: sub, description: Write the texts.}
`)
	w.write("inner.yaml", `name: inner
defaults: {agent: shell}
members: [{name: a, isolation: worktree}, {name: b, isolation: worktree}, {name: c}]
tasks:
  - {id: one, owner: a, run: echo one >one.txt}
  - {id: two, owner: b, run: echo two >two.txt}
  - {id: three, owner: c, run: echo three >three.txt}
  - {id: both, owner: a, run: 'cat one.txt two.txt >both.txt', blockedBy: [two]}
`+keys)
	w.write(".gitignore", "*.yaml\n*-report.md\nallowed\n")
	w.git("add", ".gitignore")
	w.git("commit", "-q", "-m", "ignore")
}

// texts are what the team in the team of [world.nestWork] writes.
var texts = []string{"both.txt", "one.txt", "three.txt", "two.txt"}

// brings checks that the branch of sub has the work of its team, as one commit, and that nothing of
// that team is left but the branch of its checkpoints.
func (w *world) brings() {
	w.t.Helper()
	if got := w.gitSays("diff", "--name-only", "main", "cadre/up@sub"); got != strings.Join(texts, "\n") {
		w.t.Errorf("the branch of sub changes %q", got)
	}
	if got := w.gitSays("show", "cadre/up@sub:both.txt"); got != "one\ntwo" {
		w.t.Errorf("both.txt has %q", got)
	}
	if got := w.gitSays("log", "--first-parent", "--format=%s", "main..cadre/up@sub"); !strings.HasPrefix(got,
		"Work of team up-sub: ") || strings.Contains(got, "\n") {
		w.t.Errorf("the branch of sub has the commits %q", got)
	}
	w.noneBut("cadre/up", "cadre/up-sub", "cadre/up@sub")
}

// noneBut checks that the repository has only these branches of cadre, and one work tree.
func (w *world) noneBut(branches ...string) {
	w.t.Helper()
	if got := w.gitSays("branch", "--list", "--format=%(refname:short)", "cadre/*"); got != strings.Join(branches, "\n") {
		w.t.Errorf("the branches are %q", got)
	}
	if got := w.gitSays("worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 1 {
		w.t.Errorf("the worktrees are\n%s", got)
	}
}

// untouchedBy checks that HEAD, the index and the work tree of the person are as they were.
func (w *world) untouchedBy(what string, head string) {
	w.t.Helper()
	if now := w.gitSays("rev-parse", "HEAD"); now != head {
		w.t.Errorf("%s moved HEAD to %s", what, w.gitSays("log", "--oneline", "-1"))
	}
	if status := w.gitSays("status", "--porcelain"); status != "" {
		w.t.Errorf("%s changed the person's files:\n%s", what, status)
	}
}

// TestWorktreesInATeamInATeam: a team in the worktree of its member merges the branches of its own
// members there and runs its checks there, before its task is completed. The person's files change
// only with the consolidation of the parent.
func TestWorktreesInATeamInATeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nestWork("checks: ['test -e allowed || touch allowed; cat one.txt two.txt | cmp - both.txt']\n")
	head := w.gitSays("rev-parse", "HEAD")
	w.must("run", "up.yaml", "--plain")
	w.brings()
	w.untouchedBy("the run", head)
	if _, err := os.Stat(filepath.Join(w.dir, "allowed")); err == nil {
		t.Error("the check of the child ran in the person's directory")
	}
	links, teams := w.children("up")
	if len(links) != 1 || teams[0].Status != team.TeamComplete || teams[0].Consolidation.Step != team.Done {
		t.Errorf("the child teams are %+v", teams)
	}
	if !strings.Contains(w.must("review", "up-sub"), "cmp - both.txt") {
		t.Errorf("the record of the child lacks its check:\n%s", w.must("review", "up-sub"))
	}
	w.must("consolidate", "up")
	for _, name := range texts {
		if _, err := os.Stat(filepath.Join(w.dir, name)); err != nil {
			t.Error(err)
		}
	}
	w.noneBut("cadre/up", "cadre/up-sub")
	w.must("cleanup", "up", "--branches", "--yes")
	w.noneBut()
}

// TestCheckOfATeamInATeamFails: a check that fails is the failure of the task, and nothing is
// committed. The next run continues the same child team, with its check alone.
func TestCheckOfATeamInATeamFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nestWork(fmt.Sprintf("checks: ['echo checks >>%[1]s/ran; test -e %[1]s/ok']\n", w.root))
	head := w.gitSays("rev-parse", "HEAD")
	r := w.cadre("run", "up.yaml", "--plain")
	if r.code != 1 || !strings.Contains(r.out, "the work of team up-sub is not committed: the check") {
		t.Fatalf("exit status %d: %s%s", r.code, r.out, r.err)
	}
	if shown := w.must("task", "show", "up", "inside"); !strings.Contains(shown, "exit status 1") {
		t.Errorf("the task says %s", shown)
	}
	w.untouchedBy("the failed check", head)
	first, _ := w.children("up")
	if err := os.WriteFile(filepath.Join(w.root, "ok"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("run", "up.yaml", "--plain")
	w.brings()
	links, teams := w.children("up")
	if len(links) != 1 || links[0].Team != first[0].Team || teams[0].Status != team.TeamComplete {
		t.Errorf("the child teams are %+v, %+v", links, teams)
	}
	if ran, err := os.ReadFile(filepath.Join(w.root, "ran")); string(ran) != "checks\nchecks\n" {
		t.Errorf("the check ran as %q, %v", ran, err)
	}
}

// TestTeamInATeamCommits: with consolidate in its file, a team without checks and branches makes
// one commit, too.
func TestTeamInATeamCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nestWork("")
	w.write("inner.yaml", "name: inner\nconsolidate: true\nmembers: [{name: c, agent: shell}]\n"+
		"tasks: [{id: one, run: echo one >one.txt}]\n")
	w.must("run", "up.yaml", "--plain")
	if got := w.gitSays("log", "--first-parent", "--format=%an %s", "main..cadre/up@sub"); !strings.Contains(got,
		"Work of team up-sub: ") || strings.Contains(got, "\n") {
		t.Errorf("the branch of sub has the commits %q", got)
	}
}

// TestConsolidationInATeamIsKilled kills the run of the parent at each step of the consolidation of
// the team in it. The next run finishes it: the work is there once, and no branch or worktree is
// left.
func TestConsolidationInATeamIsKilled(t *testing.T) {
	t.Parallel()
	steps := []team.Step{team.Began, team.Merged, team.Staged, team.Made, team.Done}
	every := soak.Of(3, 1) // otherwise a third of the steps
	for i, step := range steps {
		if i%every != 0 {
			continue
		}
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.nestWork("checks: ['sleep 0.2']\n")
			p := w.start("run", "up.yaml", "--plain")
			w.awaitState(p, "up-sub", func(s *team.State) bool {
				return slices.Index(steps, s.Team().Consolidation.Step) >= i
			})
			if p.over() {
				t.Fatalf("the run ended by itself: %s", p.said())
			}
			p.kill()
			w.endsOnce()
		})
	}
	for i, git := range []struct{ when, at string }{{"before", "cadre: team up-sub"}, {"after", "cadre: team up-sub"},
		{"after", "-d refs/heads/cadre/up-sub@a"}} {
		if (i+len(steps)+1)%every != 0 {
			continue
		}
		t.Run(git.when+" "+filepath.Base(git.at), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.nestWork("checks: ['true']\n")
			if !w.killedAtGit(git.when, git.at, "run", "up.yaml", "--plain") {
				t.Fatalf("git was not called with %q", git.at)
			}
			w.endsOnce()
		})
	}
}

// endsOnce runs up.yaml again after a kill, and checks that everything was done once.
func (w *world) endsOnce() {
	w.t.Helper()
	head := w.gitSays("rev-parse", "HEAD")
	w.must("run", "up.yaml", "--plain")
	w.brings()
	w.untouchedBy("the killed consolidation", head)
	links, teams := w.children("up")
	if len(links) != 1 || teams[0].Status != team.TeamComplete {
		w.t.Fatalf("the child teams are %+v, %+v", links, teams)
	}
	for task, n := range w.count(links[0].Team, "task_completed") {
		if n != 1 {
			w.t.Errorf("task %s was completed %d times", task, n)
		}
	}
	w.must("consolidate", "up")
	w.must("cleanup", "up", "--branches", "--yes")
	w.noneBut()
}

// TestConsolidationInATeamEndsWithIt: an abort of the tree during the checks of the team in it
// leaves the person's files as they are, and a cleanup leaves no branch.
func TestConsolidationInATeamEndsWithIt(t *testing.T) {
	t.Parallel()
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", kill), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mark := mark()
			w.nestWork("checks: ['echo checks >>ran; sleep " + mark + "']\n")
			head := w.gitSays("rev-parse", "HEAD")
			p := w.start("run", "up.yaml", "--plain")
			w.awaitState(p, "up-sub", func(s *team.State) bool { return s.Team().Consolidation.Step == team.Staged })
			eventually(t, "the check runs", func() bool { return len(marked(t, mark)) > 0 })
			if kill {
				p.kill()
			}
			w.must("abort", "up", "--reason", "the test ends it")
			p.wait()
			noneLeft(t, mark)
			w.untouchedBy("the abort", head)
			for _, name := range []string{"up", "up-sub"} {
				if of := read[struct{ Status team.TeamStatus }](w, "status", name); of.Status != team.TeamAborted {
					t.Errorf("%s is %s", name, of.Status)
				}
			}
			if got := w.gitSays("show", "cadre/up-sub@b:two.txt"); got != "two" {
				t.Errorf("the branch of b has %q", got)
			}
			w.must("cleanup", "up", "--force", "--branches")
			w.noneBut()
			if left, err := (layout.Home{Root: w.home}).Names(); len(left) > 0 || err != nil {
				t.Errorf("the cleanup left %v, %v", left, err)
			}
		})
	}
}

// TestTeamInATeamWithoutAWorktree: what needs a worktree of the member is refused before anything
// begins, with what to do.
func TestTeamInATeamWithoutAWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nestWork("")
	w.write("up.yaml", "name: up\nmaxDepth: 1\nmembers: [{name: sub, agent: team, file: inner.yaml}]\n"+
		"tasks: [{id: inside, owner: sub}]\n")
	for _, c := range []struct{ keys, what string }{{"checks: ['true']\n", "checks"},
		{"consolidate: true\n", "consolidate"}, {"", "isolation"}} {
		member := "{name: a, agent: shell}"
		if c.keys == "" {
			member = "{name: a, agent: shell, isolation: worktree}"
		}
		w.write("inner.yaml", "name: inner\nmembers: ["+member+"]\ntasks: [{id: one, run: 'true'}]\n"+c.keys)
		for _, args := range [][]string{{"run", "up.yaml"}, {"run", "up.yaml", "--dry-run"}, {"validate", "up.yaml"}} {
			w.refused(w.cadre(args...), 2, "it can have no "+c.what, "give sub isolation: worktree")
		}
	}
	if left, err := (layout.Home{Root: w.home}).Names(); slices.Contains(left, "up") {
		t.Errorf("the refused run left %v, %v", left, err)
	}
}
