package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/inspect/catalog"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// nest writes the team file up.yaml, with the member sub, which is a team by inner.yaml. So many
// levels are below.
func (w *world) nest(levels int, tasks string) {
	w.t.Helper()
	for level := range levels {
		name, inner := fmt.Sprintf("inner%d", level), fmt.Sprintf("inner%d.yaml", level+1)
		if level == 0 {
			name = "up"
		}
		w.write(name+".yaml", fmt.Sprintf(`name: %s
maxDepth: %d
defaults: {agent: shell}
members:
  - {name: sub, agent: team, file: %s}
  - {name: w}
tasks:
  - {id: before, owner: w, run: 'echo %[1]s-before >>ran; echo begun'}
  - {id: inside, owner: sub, description: Do the inner part., blockedBy: [before]}
  - {id: after, owner: w, run: 'echo %[1]s-after >>ran; echo "$CADRE_RESULT_INSIDE"', blockedBy: [inside]}
`, name, levels-level, inner))
	}
	w.write(fmt.Sprintf("inner%d.yaml", levels), "name: deepest\ndefaults: {agent: shell}\nmembers: [{name: a}]\ntasks:\n"+
		tasks)
}

// children returns the child teams of the team, each with its status.
func (w *world) children(name string) (all []team.Child, of []team.Team) {
	w.t.Helper()
	rep := w.replica(name)
	defer rep.Close()
	for _, c := range rep.Team().Children {
		all = append(all, c)
		child := w.replica(c.Team)
		of = append(of, child.Team())
		child.Close()
	}
	return all, of
}

// completed reports whether the team exists and is complete.
func (w *world) completed(name string) bool {
	_, err := layout.Home{Root: w.home}.Folder(name)
	if err != nil { // the run was killed before it made the team
		return false
	}
	rep := w.replica(name)
	defer rep.Close()
	return rep.Team().Status == team.TeamComplete
}

// TestTeamInATeam: the report of a team in a team is the result of its member's task, two teams
// deep. Each has a journal of its own, and knows its parent.
func TestTeamInATeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nest(2, "  - {id: one, run: echo the deep answer}\n")
	w.must("run", "up.yaml", "--plain")
	if ran := strings.Join(w.lines("ran"), " "); ran != "up-before inner1-before inner1-after up-after" {
		t.Errorf("the tasks ran as %s", ran)
	}
	links, teams := w.children("up")
	if len(links) != 1 || !links[0].Over || links[0].Name != "up-sub" || teams[0].Status != team.TeamComplete ||
		teams[0].Parent.Member != "sub" || teams[0].Parent.Name != "up" || teams[0].Depth != 1 ||
		!strings.Contains(teams[0].Goal, "Do the inner part.") {
		t.Fatalf("the child teams are %+v, %+v", links, teams)
	}
	deep, teams := w.children(links[0].Team)
	if len(deep) != 1 || teams[0].Depth != 2 || teams[0].MaxDepth != 0 || teams[0].Parent.Team != links[0].Team {
		t.Errorf("the teams in the child are %+v, %+v", deep, teams)
	}
	if list := w.must("ls"); !regexp.MustCompile(`(?m)^up .*\n  up-sub .*\n    up-sub-sub `).MatchString(list) {
		t.Errorf("the list of teams is not a tree:\n%s", list)
	}
	status := read[catalog.Standing](w, "status", "up")
	if of := status.ChildTeams; len(of) != 2 || of[0].Member != "sub" || !of[0].Over || of[0].Completed != 3 ||
		of[0].Tasks != 3 || of[1].Parent != of[0].ID || of[1].Level != 2 || of[1].Status != team.TeamComplete {
		t.Errorf("the status has the child teams %+v", of)
	}
	shown := w.must("task", "show", "up", "after", "--json")
	for _, word := range []string{"the deep answer", "inside"} {
		if !strings.Contains(shown, word) {
			t.Errorf("the report of the child lacks %q: %s", word, shown)
		}
	}
}

// TestTeamsInTeamsAreOff: a team file that does not allow teams in its team is refused with the
// code of that, and so is one that contains itself.
func TestTeamsInTeamsAreOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("off.yaml", "name: off\nmembers: [{name: sub, agent: team, goal: Build it}]\ntasks: [{id: a}]\n")
	w.refused(w.cadre("run", "off.yaml"), 2, "NESTED_TEAMS_NOT_ALLOWED", "maxDepth: 1", "off.yaml:2")
	w.write("self.yaml", "name: self\nmaxDepth: 3\nmembers: [{name: sub, agent: team, file: self.yaml}]\ntasks: [{id: a}]\n")
	w.refused(w.cadre("run", "self.yaml"), 2, "NESTED_TEAMS_NOT_ALLOWED", "contain itself")
	w.must("create", "demo")
	w.refused(w.cadre("spawn", "demo", "sub", "--agent", "team", "--prompt", "Build it"), 2, "NESTED_TEAMS_NOT_ALLOWED")
}

// TestTeamInATeamFails: the failure of a child team is the failure of its task, and the next run
// continues the same child team: what is done there is not done again.
func TestTeamInATeamFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nest(1, "  - {id: one, run: 'echo one >>ran'}\n  - {id: two, run: 'echo two >>ran; test -e ok', blockedBy: [one]}\n")
	r := w.cadre("run", "up.yaml", "--plain")
	if r.code != 1 || !strings.Contains(r.out, "team up-sub is not done") {
		t.Fatalf("exit status %d: %s%s", r.code, r.out, r.err)
	}
	first, _ := w.children("up")
	w.write("ok", "")
	w.must("run", "up.yaml", "--plain")
	if ran := strings.Join(w.lines("ran"), " "); ran != "up-before one two two up-after" {
		t.Errorf("the tasks ran as %s", ran)
	}
	links, teams := w.children("up")
	if len(links) != 1 || links[0].Team != first[0].Team || teams[0].Status != team.TeamComplete {
		t.Errorf("the child teams are %+v, %+v", links, teams)
	}
}

// TestTeamInATeamIsKilled kills the run of a tree of teams again and again, at any moment. The last
// run finishes it: there is one child team for each task, every task is completed once, and what
// was completed is not done again.
func TestTeamInATeamIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	tasks := ""
	for i := range 6 {
		tasks += fmt.Sprintf("  - {id: t%d, run: 'echo t%[1]d >>ran; sleep 0.05; : %s', blockedBy: [%s]}\n", i, mark,
			strings.Repeat(fmt.Sprintf("t%d", i-1), min(i, 1)))
	}
	w.nest(2, tasks)
	kills := 0
	for over := false; !over; {
		p := w.start("run", "up.yaml", "--plain")
		select {
		case <-p.gone:
			over = true
			if code := p.ProcessState.ExitCode(); code != 0 {
				t.Fatalf("after %d kills: exit status %d: %s", kills, code, p.said())
			}
		case <-time.After(time.Duration(rand.Int64N(int64(min(400+100*kills, 6000)))) * time.Millisecond):
			p.kill()
			kills++
			over = w.completed("up")
		}
	}
	t.Logf("%d runs were killed", kills)
	noneLeft(t, mark)
	links, teams := w.children("up")
	deep, deeper := w.children(links[0].Team)
	if len(links) != 1 || len(deep) != 1 || teams[0].Status != team.TeamComplete || deeper[0].Status != team.TeamComplete {
		t.Errorf("the teams are %+v %+v", links, deep)
	}
	for _, name := range []string{"up", links[0].Team, deep[0].Team} {
		completed := map[any]int{}
		for _, e := range w.history(name) {
			if e.is("task_completed") {
				completed[e["task"]]++
			}
		}
		for id, n := range completed {
			if n != 1 {
				t.Errorf("task %v of %s was completed %d times", id, name, n)
			}
		}
	}
	ran := w.lines("ran")
	if last := slices.Index(ran, "t5"); last < 0 || slices.Contains(ran[last:], "t4") {
		t.Errorf("the tasks ran as %s", ran)
	}
}

// TestTeamsInTeamsEndTogether: an abort ends the whole tree of teams and its processes, and a
// cleanup removes it.
func TestTeamsInTeamsEndTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	w.nest(2, "  - {id: one, run: 'echo deep >>ran; sleep "+mark+"'}\n")
	p := w.start("run", "up.yaml", "--plain")
	eventually(t, "the deepest team works", func() bool { return slices.Contains(w.lines("ran"), "deep") })
	if status := w.must("status", "up"); !regexp.MustCompile(
		`(?m)^sub .*\n  up-sub .*active.*\n    up-sub-sub .*active.*0 of 1 task done`).MatchString(status) {
		t.Errorf("the status is not a tree:\n%s", status)
	}
	links, _ := w.children("up")
	deep, _ := w.children(links[0].Team)
	w.refused(w.cadre("pause", links[0].Team), 2, "team up")
	w.must("abort", "up", "--reason", "the test ends it")
	p.wait()
	if said := p.said(); strings.Contains(said, "has not ended") {
		t.Errorf("the run alarms during the abort:\n%s", said)
	}
	noneLeft(t, mark)
	for _, name := range []string{"up", links[0].Team, deep[0].Team} {
		if of := read[struct{ Status team.TeamStatus }](w, "status", name); of.Status != team.TeamAborted {
			t.Errorf("%s is %s", name, of.Status)
		}
	}
	w.must("cleanup", "up", "--force")
	if left := read[[]struct{ Name string }](w, "ls"); len(left) != 0 {
		t.Errorf("the cleanup left %v", left)
	}
}

// TestTeamsInTeamsEndAfterAKill: a tree whose process was killed ends as a whole, too.
func TestTeamsInTeamsEndAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	w.nest(1, "  - {id: one, run: 'echo deep >>ran; sleep "+mark+"'}\n")
	p := w.start("run", "up.yaml", "--plain")
	eventually(t, "the team in the team works", func() bool { return slices.Contains(w.lines("ran"), "deep") })
	p.kill()
	links, _ := w.children("up")
	w.refused(w.cadre("resume", links[0].Team), 2, "team up")
	w.must("abort", "up", "--reason", "the test ends it")
	noneLeft(t, mark)
	if of := read[struct{ Status team.TeamStatus }](w, "status", links[0].Team); of.Status != team.TeamAborted {
		t.Errorf("the child is %s", of.Status)
	}
}

// TestTeamInATeamFromAGoal: an agent leads a team in a team to its goal, and its report is the
// result of the task.
func TestTeamInATeamFromAGoal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.write("up.yaml", fmt.Sprintf("name: up\nmaxDepth: 1\nmembers:\n  - {name: sub, agent: team, goal: Write it, lead: "+
		"%q, env: {%s: actor}}\ntasks: [{id: inside, owner: sub, description: The first part.}]\n",
		fmt.Sprintf("acp:'%s' '%s' nobody", self, filepath.Join(w.root, "histories")), helperMode))
	w.must("run", "up.yaml", "--plain")
	links, teams := w.children("up")
	if len(links) != 1 || !strings.HasPrefix(links[0].Lead, "acp:") || teams[0].Status != team.TeamComplete ||
		!strings.HasPrefix(teams[0].Goal, "Write it\n\nThis team does task inside") ||
		!strings.Contains(teams[0].Goal, "The first part.") {
		t.Errorf("the child teams are %+v, %+v", links, teams)
	}
	if shown := w.must("task", "show", "up", "inside", "--json"); !strings.Contains(shown, "I see.") {
		t.Errorf("the result is not the report of the child: %s", shown)
	}
}

// TestTeamInATeamFromATemplate: a template of the program is run as a team in a team.
func TestTeamInATeamFromATemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git("init", "-q")
	w.write("up.yaml", "name: up\nmaxDepth: 1\nmembers: [{name: sub, agent: team, template: health}]\n"+
		"tasks: [{id: inside, owner: sub}]\n")
	w.must("run", "up.yaml", "--plain")
	_, teams := w.children("up")
	if len(teams) != 1 || teams[0].Status != team.TeamComplete || teams[0].Origin != "template:health" {
		t.Errorf("the child teams are %+v", teams)
	}
	if shown := w.must("task", "show", "up", "inside", "--json"); !strings.Contains(shown, "no commits yet") {
		t.Errorf("the result is not the report of the child: %s", shown)
	}
}

// TestTheFileOfATeamInATeamChanges: another text of the file than the one that the person agreed to
// is not run, until they agree to it.
func TestTheFileOfATeamInATeamChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("inner.yaml", "name: inner\nmembers: [{name: a, agent: shell}]\ntasks: [{id: one, run: echo old >>ran}]\n")
	w.write("up.yaml", "name: up\nmaxDepth: 1\nmembers:\n  - {name: w, agent: shell}\n  - {name: sub, agent: team, file: "+
		"inner.yaml}\ntasks:\n  - {id: before, owner: w, run: 'sed -i s/old/new/ inner.yaml'}\n"+
		"  - {id: inside, owner: sub, blockedBy: [before]}\n")
	r := w.cadre("run", "up.yaml", "--plain")
	if r.code != 1 || len(w.lines("ran")) > 0 {
		t.Fatalf("exit status %d, and %v ran: %s%s", r.code, w.lines("ran"), r.out, r.err)
	}
	if shown := w.must("task", "show", "up", "inside"); !strings.Contains(shown, "inner.yaml was changed since team up") {
		t.Errorf("the task says %s", shown)
	}
	w.refused(w.cadre("run", "up.yaml", "--plain"), 2, "inner.yaml")
	w.must("run", "up.yaml", "--plain", "--yes")
	if ran := w.lines("ran"); !slices.Equal(ran, []string{"new"}) {
		t.Errorf("%v ran", ran)
	}
}

// TestTemplatesBelowAWorktree: a team that works in the worktree of a member finds the templates of
// the project for the teams in it, with the trust that the user gave them there.
func TestTemplatesBelowAWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("up.yaml", "name: up\nmaxDepth: 2\nmembers: [{name: sub, agent: team, isolation: worktree, file: inner.yaml}]\n"+
		"tasks: [{id: inside, owner: sub}]\n")
	w.write("inner.yaml", "name: inner\nmaxDepth: 1\nmembers: [{name: deep, agent: team, template: ours}]\n"+
		"tasks: [{id: deeper, owner: deep}]\n")
	w.write(".gitignore", "up.yaml\ninner.yaml\n.cadre/\n")
	w.git("init", "-q")
	w.git("add", ".gitignore")
	w.git("commit", "-q", "-m", "first")
	w.write(filepath.Join(".cadre", "templates", "ours.yaml"), "# Ours.\nname: ours\ndefaults: {agent: shell}\n"+
		"members: [{name: a}]\ntasks: [{id: one, run: pwd}]\n")
	w.must("trust", "--yes")
	w.must("run", "up.yaml", "--plain")
	links, teams := w.children("up")
	if len(teams) != 1 || teams[0].Status != team.TeamComplete || teams[0].Dir == w.dir {
		t.Fatalf("the child teams are %+v", teams)
	}
	deep, teams := w.children(links[0].Team)
	if len(deep) != 1 || teams[0].Status != team.TeamComplete || teams[0].Dir == w.dir ||
		teams[0].Origin != filepath.Join(w.dir, ".cadre", "templates", "ours.yaml") {
		t.Errorf("the teams in the child are %+v", teams)
	}
}

// TestBranchesOfATree: a cleanup names the branches of the whole tree of teams. A later one removes
// them.
func TestBranchesOfATree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git("init", "-q")
	w.git("commit", "-q", "--allow-empty", "-m", "first")
	w.nest(2, "  - {id: one, run: echo the deep answer}\n")
	w.must("run", "up.yaml", "--plain")
	order(t, w.must("cleanup", "up", "--yes"), "its branches in "+w.dir, "cadre/up-sub-sub ", "cadre/up-sub ", "cadre/up ",
		"cadre cleanup up --branches")
	order(t, w.must("cleanup", "up", "--branches", "--yes"), "team up was removed before", "cadre/up-sub-sub  removed",
		"cadre/up-sub      removed", "cadre/up          removed")
	if left := w.gitSays("branch", "--list", "cadre/*"); left != "" {
		t.Errorf("the cleanup left %s", left)
	}
}

// TestTeamInATeamWithOneTurn: a member that is a team takes no turn of the machine, for which its
// own members would wait for ever.
func TestTeamInATeamWithOneTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nest(2, "  - {id: one, run: echo the deep answer}\n")
	w.env = append(w.env, "CADRE_MAX_PARALLEL=1")
	w.must("run", "up.yaml", "--plain")
	if ran := strings.Join(w.lines("ran"), " "); ran != "up-before inner1-before inner1-after up-after" {
		t.Errorf("the tasks ran as %s", ran)
	}
}

// TestServeTeamsInTeams: the server runs a team in a team with that team, never by itself.
func TestServeTeamsInTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nest(2, "  - {id: one, run: 'echo deep >>ran; until test -e ok; do sleep 0.1; done'}\n")
	p := w.start("run", "up.yaml", "--plain")
	works := func() bool { return slices.Contains(w.lines("ran"), "deep") }
	eventually(t, "the deepest team works", works)
	p.kill()
	links, _ := w.children("up")
	deep, _ := w.children(links[0].Team)
	for _, one := range []string{links[0].Team, deep[0].Team} {
		w.refused(w.cadre("serve", one), 2, "is run with that team", "cadre serve up")
		w.refused(w.cadre("host", one), 2, "is run with that team")
	}
	w.write("ran", "")
	server := w.serve("--all", "--yes")
	eventually(t, "the deepest team works again", works)
	if all := w.keeping(); len(all) != 1 || all["up"] != "running" {
		t.Errorf("the server keeps %v", all)
	}
	w.refused(w.cadre("serve", deep[0].Team), 2, "is run with that team", "cadre serve up")
	w.write("ok", "")
	eventually(t, "the tree is complete", func() bool { return w.completed("up") })
	w.must("serve", "--stop")
	server.wait()
	if said := server.said(); strings.Contains(said, "team "+links[0].Name+" is resumed") {
		t.Errorf("the server resumed a team in a team:\n%s", said)
	}
}
