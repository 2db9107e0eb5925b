package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/team"
)

// names checks that the text names the first command and none of the others.
func names(t *testing.T, text, command string, not ...string) {
	t.Helper()
	if !strings.Contains(text, command) {
		t.Errorf("it does not name %q:\n%s", command, text)
	}
	for _, other := range not {
		if strings.Contains(text, other) {
			t.Errorf("it names %q:\n%s", other, text)
		}
	}
}

// TestHintsOfATeamInATeam: what a person is told to type about a team in teams works. What is done
// with the whole tree names the outermost team, and the refusals have the status of what never
// works.
func TestHintsOfATeamInATeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git("init", "-q")
	w.git("commit", "-q", "--allow-empty", "-m", "first")
	w.nest(2, "  - {id: one, run: test -e ok}\n")
	if r := w.cadre("run", "up.yaml", "--plain"); r.code != 1 {
		t.Fatalf("exit status %d: %s%s", r.code, r.out, r.err)
	}
	const deep = "up-sub-sub"
	for _, show := range []string{"status", "attention"} {
		names(t, w.must(show, deep), "cadre resume up\n", "cadre resume "+deep, "cadre resume up-")
	}
	w.refused(w.cadre("resume", deep), 2, "is resumed with that team", "cadre resume up\n")
	w.refused(w.cadre("consolidate", deep), 2, "is checked and committed with that team", "cadre consolidate up\n")
	r := w.cadre("pause", deep)
	w.refused(r, 2, "is paused with that team", "cadre pause up\n")
	names(t, r.err, "cadre pause up", "cadre pause "+deep)
	w.write("ok", "")
	w.must("resume", "up", "--plain")
	for _, child := range []string{deep, "up-sub"} {
		names(t, w.must("status", child), "cadre status up\n", "cadre consolidate")
	}
}

// TestBudgetHintsOfATeamInATeam: a budget that is spent in a team in a team is raised where it was
// set, and the tree is resumed.
func TestBudgetHintsOfATeamInATeam(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct{ up, member, deep, raise string }{
		"of the team itself": {deep: "budget: {time: 300ms}\n", raise: "cadre budget up-sub --time "},
		"of the member":      {member: ", budget: {time: 300ms}", raise: "cadre budget up --member sub --time "},
		"of the parent":      {up: "budget: {time: 300ms}\n", raise: "cadre budget up --time "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write("up.yaml", one.up+"name: up\nmaxDepth: 1\nmembers: [{name: sub, agent: team, file: deep.yaml"+
				one.member+"}]\ntasks: [{id: a, owner: sub}]\n")
			w.write("deep.yaml", one.deep+"name: deep\ndefaults: {agent: shell}\nmembers: [{name: x}]\ntasks:\n"+
				"  - {id: one, run: sleep 1}\n  - {id: two, run: 'true', blockedBy: [one]}\n")
			if r := w.cadre("run", "up.yaml", "--plain"); r.code != 1 {
				t.Fatalf("exit status %d: %s%s", r.code, r.out, r.err)
			}
			names(t, w.must("attention", "up-sub"), one.raise)
			words := strings.Fields(one.raise + "1h")
			if one.deep == "" {
				w.refused(w.cadre("budget", "up-sub", "--time", "1h"), 2, one.raise)
			}
			r := w.cadre(words[1:]...)
			if r.code != 0 {
				t.Fatalf("%s: %s", words, r.err)
			}
			if one.member == "" {
				names(t, r.err, "cadre resume up\n")
			}
			w.must("resume", "up", "--plain")
		})
	}
}

// TestInterruptedTeamInATeam: nobody reads mail for a member whose team a program leads, so its
// task is released instead.
func TestInterruptedTeamInATeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nest(1, "  - {id: one, run: 'echo begun >>began; test -e ok || sleep 100'}\n")
	p := w.start("run", "up.yaml", "--plain")
	w.awaitState(p, "up", func(s *team.State) bool { return len(w.lines("began")) > 0 })
	w.must("interrupt", "up", "sub")
	w.write("ok", "")
	w.awaitState(p, "up", func(s *team.State) bool { m, _ := s.Member("sub"); return m.Status == team.Idle })
	names(t, w.must("attention", "up"), "cadre task release up inside", "cadre send")
	w.must("task", "release", "up", "inside")
	<-p.gone
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d: %s", code, p.said())
	}
}

// TestRestoredTeamInATeam: in another home, in the same repository and in a clone that has only the
// branch of the outermost team, the teams in a restored team are restored with it. Each continues:
// what was done is not done again, and no other team is made.
func TestRestoredTeamInATeam(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"the same repository", "a clone", "a clone after a kill"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.git("init", "-q")
			w.nest(2, "  - {id: one, run: 'echo begun >>began; test -e ok || sleep 100'}\n")
			w.git("add", ".")
			w.git("commit", "-q", "-m", "first")
			p := w.start("run", "up.yaml", "--plain")
			w.awaitState(p, "up", func(s *team.State) bool { return len(w.lines("began")) > 0 })
			w.must("note", "set", "up-sub", "place", "the cellar")
			if place == "a clone after a kill" {
				w.must("checkpoint", "up")
				p.kill()
			} else {
				w.must("pause", "up")
				<-p.gone
			}
			if place != "the same repository" {
				w.cloned("up")
			}
			w.home = filepath.Join(w.root, "other")
			w.env = append(w.env, "CADRE_HOME="+w.home)
			w.write("ok", "")
			list := w.must("ls", "--git")
			names(t, list+w.must("ls"), "cadre resume up --from-git", "cadre resume up-sub")
			names(t, list, "up-sub-sub")
			names(t, w.cadre("resume", "up-sub-sub").err, "cadre resume up --from-git")
			if place == "the same repository" {
				w.refused(w.cadre("resume", "up-sub", "--from-git"), 2, "is not restored by itself",
					"cadre resume up --from-git")
			}
			w.must("resume", "up", "--from-git", "--plain")
			for parent, child := range map[string]string{"up": "up-sub", "up-sub": "up-sub-sub"} {
				links, _ := w.children(parent)
				if len(links) != 1 || links[0].Name != child || !w.completed(parent) || !w.completed(child) {
					t.Errorf("the teams in %s are %+v", parent, links)
				}
			}
			if got, want := w.lines("ran"), "up-before inner1-before inner1-after up-after"; strings.Join(got, " ") != want {
				t.Errorf("ran: %q, want %q", got, want)
			}
			if got := len(w.lines("began")); got != 2 {
				t.Errorf("the task that was interrupted began %d times", got)
			}
			names(t, w.must("note", "get", "up-sub", "place"), "the cellar")
		})
	}
}

// cloned moves the world to a clone of its repository that has only one branch of checkpoints. The
// repository itself is not where it was any more.
func (w *world) cloned(name string) {
	w.t.Helper()
	clone := filepath.Join(w.root, "clone")
	w.git("clone", "-q", w.dir, clone)
	if err := os.Rename(w.dir, w.dir+"-elsewhere"); err != nil {
		w.t.Fatal(err)
	}
	w.dir = clone
	for _, ref := range strings.Fields(w.gitSays("for-each-ref", "--format=%(refname)", "refs/remotes/origin/cadre")) {
		if ref != "refs/remotes/origin/cadre/"+name {
			w.git("update-ref", "-d", ref)
		}
	}
}

// TestRestoredTeamInAWorktree: a team that works in the worktree of its member is restored in a
// clone with what it had committed nowhere, and its work arrives on the branch of that member.
func TestRestoredTeamInAWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	allowed := filepath.Join(w.root, "allowed")
	w.nestWork("  - {id: last, owner: c, run: 'test -e " + allowed + " || sleep 100', blockedBy: [three]}\n")
	p := w.start("run", "up.yaml", "--plain")
	w.awaitState(p, "up", func(s *team.State) bool { return len(s.Team().Children) == 1 })
	w.awaitState(p, "up-sub", func(s *team.State) bool { return s.Count(team.Completed) == 4 && s.Count(team.InProgress) == 1 })
	w.must("pause", "up")
	<-p.gone
	files := map[string]string{}
	for _, name := range []string{"up.yaml", "inner.yaml"} { // git ignores them
		text, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	w.cloned("up")
	w.home = filepath.Join(w.root, "other")
	w.env = append(w.env, "CADRE_HOME="+w.home)
	for name, text := range files {
		w.write(name, text)
	}
	if err := os.WriteFile(allowed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("resume", "up", "--from-git", "--plain")
	if links, _ := w.children("up"); len(links) != 1 || !w.completed("up-sub") {
		t.Errorf("the teams in up are %+v", links)
	}
	if got := w.gitSays("diff", "--name-only", "origin/main", "cadre/up@sub"); got != strings.Join(texts, "\n") {
		t.Errorf("the branch of sub changes %q", got)
	}
	if got := w.gitSays("show", "cadre/up@sub:both.txt"); got != "one\ntwo" {
		t.Errorf("both.txt has %q", got)
	}
}

// TestCheckpointsFollowATeamInATeam: while only a team in the team changes, the checkpoints of its
// parent carry what is new there.
func TestCheckpointsFollowATeamInATeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git("init", "-q")
	w.git("commit", "-q", "--allow-empty", "-m", "first")
	w.write("up.yaml", "name: up\nmaxDepth: 1\nliveness: {checkpoint: 500ms}\nmembers: [{name: sub, agent: team, file: "+
		"inner.yaml}]\ntasks: [{id: inside, owner: sub}]\n")
	w.write("inner.yaml", "name: inner\ndefaults: {agent: shell}\nmembers: [{name: a}]\ntasks:\n"+
		"  - {id: one, run: 'until test -e go; do sleep 0.05; done'}\n"+
		"  - {id: two, run: 'until test -e stop; do sleep 0.05; done', blockedBy: [one]}\n")
	p := w.start("run", "up.yaml", "--plain")
	var doc struct {
		Seq   int64 `json:"checkpoint_sequence"`
		Teams []struct {
			Commit string `json:"commit"`
		} `json:"child_teams"`
	}
	carries := func(task string) func() bool {
		return func() bool {
			text, err := w.gitTry("show", "cadre/up:.claude/teams/up/state.json")
			if err != nil || json.Unmarshal([]byte(text), &doc) != nil || len(doc.Teams) == 0 {
				return false
			}
			text, err = w.gitTry("show", doc.Teams[0].Commit+":.claude/teams/up-sub/state.json")
			_, at, _ := strings.Cut(text, `"in_progress"`)
			return err == nil && strings.Contains(at, `"subject": "`+task+`"`)
		}
	}
	eventually(t, "the first task is carried", carries("one"))
	rep := w.replica("up")
	defer rep.Close()
	eventually(t, "nothing is new in the parent", func() bool {
		return carries("one")() && rep.Refresh(t.Context()) == nil && doc.Seq == rep.Seq()
	})
	before := doc.Seq
	w.write("go", "")
	eventually(t, "the second task is carried", carries("two"))
	if doc.Seq != before {
		t.Errorf("the parent changed, too: it has %d records, and had %d", doc.Seq, before)
	}
	w.write("stop", "")
	if code := p.wait(); code != 0 {
		t.Errorf("exit status %d: %s", code, p.said())
	}
}
