package e2e

import (
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

// TestRestoredTeamInATeam: in another home, in the same repository and in a clone, a new child team
// does the task of a restored team. The branch of the old one stays as it was.
func TestRestoredTeamInATeam(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"the same repository", "a clone"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.git("init", "-q")
			w.nest(1, "  - {id: one, run: 'echo begun >>began; test -e ok || sleep 100'}\n")
			w.git("add", ".")
			w.git("commit", "-q", "-m", "first")
			p := w.start("run", "up.yaml", "--plain")
			w.awaitState(p, "up", func(s *team.State) bool { return len(w.lines("began")) > 0 })
			w.must("pause", "up")
			<-p.gone
			old, branch := w.gitSays("rev-parse", "cadre/up-sub"), "cadre/up-sub"
			if place == "a clone" {
				clone := filepath.Join(w.root, "clone")
				w.git("clone", "-q", w.dir, clone)
				w.dir, branch = clone, "origin/cadre/up-sub"
			}
			w.home = filepath.Join(w.root, "other")
			w.env = append(w.env, "CADRE_HOME="+w.home)
			w.write("ok", "")
			list := w.must("ls", "--git")
			names(t, list+w.must("ls"), "cadre resume up --from-git", "cadre resume up-sub")
			w.refused(w.cadre("resume", "up-sub", "--from-git"), 2, "is not restored by itself", "cadre resume up --from-git")
			w.must("resume", "up", "--from-git", "--plain")
			rep := w.replica("up")
			defer rep.Close()
			links := rep.Team().Children
			if len(links) != 2 || links[1].Name != "up-sub-2" || !w.completed(links[1].Team) || !w.completed("up") {
				t.Errorf("the child teams are %+v", links)
			}
			if now := w.gitSays("rev-parse", branch); now != old {
				t.Errorf("the branch of the old child was at %s, and is at %s", old, now)
			}
		})
	}
}
