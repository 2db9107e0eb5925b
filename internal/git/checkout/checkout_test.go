package checkout_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/git/checkout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// project is a real repository with a team in its folder app.
type project struct {
	t     *testing.T
	procs *proc.Register
	root  string
	team  team.Team
}

func newProject(t *testing.T) *project {
	t.Helper()
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { procs.Close(context.Background()) })
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, procs: procs, root: root}
	old := p.path("old")
	p.git("init", "-q", "-b", "main", old)
	if err := os.MkdirAll(filepath.Join(old, "app"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "app", "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.git("-C", old, "add", "-A")
	p.git("-C", old, "commit", "-qm", "one")
	p.team = team.Team{ID: "demo-1", Name: "demo", Dir: filepath.Join(old, "app"),
		Base: team.Base{Top: old, Commit: p.git("-C", old, "rev-parse", "HEAD")}}
	return p
}

func (p *project) path(name string) string { return filepath.Join(p.root, name) }

func (p *project) git(args ...string) string {
	p.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=ann", "-c", "user.email=ann@example.org"}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES="+p.root)
	out, err := c.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *project) rename(from, to string) {
	p.t.Helper()
	if err := os.Rename(p.path(from), p.path(to)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) check() error { return checkout.Check(p.t.Context(), p.procs, p.team) }

// TestMoved checks that the team finds its directory if the person names the top of the project or
// the team's folder in it, also through a link.
func TestMoved(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	p.rename("old", "new")
	missing, ok := errors.AsType[*checkout.MissingError](p.check())
	if !ok || missing.What != checkout.Directory || missing.Path != p.team.Dir || len(missing.Help) != 1 ||
		missing.Help[0].Action != team.ActMove || missing.Help[0].Team != "demo" {
		t.Fatalf("it ends with %v", missing)
	}
	if err := os.Symlink(p.path("new"), p.path("link")); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{"new": "new/app", "new/app": "new/app", "link": "link/app",
		"link/app": "link/app"} {
		dir, top, err := checkout.Moved(t.Context(), p.procs, p.team, p.path(to))
		if dir != p.path(want) || top != p.path("new") || err != nil {
			t.Errorf("%s: %s, %s, %v", to, dir, top, err)
		}
	}
	p.rename("new/app", "new/moved")
	if _, _, err := checkout.Moved(t.Context(), p.procs, p.team, p.path("new")); err == nil ||
		!strings.Contains(err.Error(), "works in the folder app of its repository") {
		t.Errorf("without its folder: %v", err)
	}
}

// TestAnotherRepository checks that a repository counts as another one if it has neither the commit
// nor a checkpoint of the team, and that this is unknown for a team without either.
func TestAnotherRepository(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	if _, _, err := checkout.Moved(t.Context(), p.procs, p.team, p.root); err == nil || !strings.Contains(err.Error(),
		"which still exists") {
		t.Errorf("the project is where it was: %v", err)
	}
	p.git("clone", "-q", p.path("old"), p.path("clone"))
	p.rename("old", "gone")
	p.git("init", "-q", "-b", "main", p.path("old"))
	if err := os.Mkdir(p.team.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.check(); !checkout.IsMissing(err) || !strings.Contains(err.Error(), "is in another repository: it "+
		"has neither the commit") {
		t.Errorf("another repository: %v", err)
	}
	if dir, _, err := checkout.Moved(t.Context(), p.procs, p.team, p.path("clone")); dir != p.path(
		"clone/app") || err != nil {
		t.Errorf("a clone: %s, %v", dir, err)
	}
	p.team.Base.Commit = ""
	if err := p.check(); err != nil {
		t.Errorf("without anything to know it by: %v", err)
	}
	state := filepath.Join(p.path("old"), ".claude", "teams", "demo", "state.json")
	if err := os.MkdirAll(filepath.Dir(state), 0o700); err != nil {
		t.Fatal(err)
	}
	for id, its := range map[string]bool{"demo-2": false, "demo-1": true} {
		if err := os.WriteFile(state, []byte(`{"team_id":"`+id+`","team_name":"demo"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		p.git("-C", p.path("old"), "checkout", "-q", "--orphan", "cadre/demo-"+id)
		p.git("-C", p.path("old"), "add", "-A")
		p.git("-C", p.path("old"), "commit", "-qm", "checkpoint")
		p.git("-C", p.path("old"), "branch", "-f", "cadre/demo")
		if err := p.check(); (err == nil) != its {
			t.Errorf("with checkpoints of %s: %v", id, err)
		}
		p.team.CreatedAt = 1 // after the checkpoint
		if err := p.check(); err != nil {
			t.Errorf("with earlier checkpoints of %s: %v", id, err)
		}
		p.team.CreatedAt = 0
	}
}

// TestGlance checks what is visible without git.
func TestGlance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(p *project) error
		says string
	}{
		"whole": {func(*project) error { return nil }, ""},
		"a file": {func(p *project) error {
			return errors.Join(os.RemoveAll(p.team.Dir), os.WriteFile(p.team.Dir, nil, 0o600))
		}, "is not a directory"},
		"no repository": {func(p *project) error { return os.RemoveAll(p.path("old/.git")) },
			"holds no git repository any more"},
		"gone":     {func(p *project) error { return os.RemoveAll(p.path("old")) }, "does not exist"},
		"observed": {func(p *project) error { p.team.Observed = "x"; return os.RemoveAll(p.path("old")) }, ""},
		"from a checkpoint": {func(p *project) error {
			p.team.Restored.ID, p.team.Base.Top = "r", "/elsewhere"
			return nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			if err := c.does(p); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{checkout.Glance(p.team), p.check()} {
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("it ends with %v", err)
				}
			}
		})
	}
}
