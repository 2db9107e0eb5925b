package engine_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// nestedLab has the team demo, whose member sub runs the team demo-sub for its task. A person's
// session works in that.
func nestedLab(t *testing.T) (l *lab, parent, child *engine.Team) {
	l = newLab(t)
	const id = "demo-sub-aaaaaaaaaaaaaaaaaaaaaaaaaa"
	l.create(&team.CreateTask{Subject: "the manual", Name: "manual"})
	parent = l.open()
	as := func(actor string, body team.Body) {
		t.Helper()
		l.do(parent, actor, body)
	}
	as(team.User, &team.ReviseTeam{To: team.Team{MaxDepth: 1}, Fields: []string{"maxDepth"}})
	as(team.User, &team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Nested: &team.Nested{Goal: "Do it."}})
	as(team.User, &team.ClaimTask{Task: "1", Member: "sub"})
	as("sub", &team.BeginChild{Task: "1", Team: id, Name: "demo-sub"})
	var commands []team.Command
	of := parent.Team()
	l.git("worktree", "add", "-q", "-b", "cadre/demo@sub", worktreeOf(parent))
	for _, body := range []team.Body{
		&team.CreateTeam{TeamID: id, Name: "demo-sub", Dir: worktreeOf(parent), Depth: 1,
			Parent: team.Parent{Team: of.ID, Name: of.Name, Member: "sub", Task: "1", Worktree: true}},
		&team.SpawnMember{Name: "ann", Agent: team.External},
		&team.CreateTask{Subject: "for ann", Owner: "ann", Retries: 0},
	} {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body})
	}
	if err := l.Create("demo-sub", commands); err != nil {
		t.Fatal(err)
	}
	child, err := l.Open(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Close() })
	return l, parent, child
}

// worktreeOf returns the worktree of the member sub, in which the child team works.
func worktreeOf(parent *engine.Team) string { return filepath.Join(parent.Dir, "worktrees", "sub") }

// endSub removes that worktree, as when the member has ended.
func (l *lab) endSub(parent *engine.Team) {
	l.git("worktree", "remove", worktreeOf(parent))
	l.git("branch", "-D", "cadre/demo@sub")
}

// kindsOf returns the kinds of what waits for the user in the team, after that time.
func kindsOf(t *testing.T, of *engine.Team, later time.Duration) (kinds []team.ItemKind, first team.Item) {
	t.Helper()
	if err := of.Refresh(within(t)); err != nil {
		t.Fatal(err)
	}
	outside, err := (&inspect.Looker{Replica: of.Replica, Dir: of.Dir}).Look(within(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	of.View(func(s *team.State) {
		for _, i := range s.Attention(replica.Now()+team.Time(later.Milliseconds()), outside) {
			if kinds = append(kinds, i.Kind); i.Kind == team.ItemNested {
				first = i
			}
		}
	})
	return kinds, first
}

// TestChildWaitsInItsParent: what waits for a person in a team in a team is in the Attention of the
// parent, and the child is not resumed by itself.
func TestChildWaitsInItsParent(t *testing.T) {
	t.Parallel()
	l, parent, child := nestedLab(t)
	l.do(child, "ann", &team.ClaimTask{Task: "1"})
	l.do(child, "ann", &team.FailTask{Task: "1", Reason: "no key"})
	if _, nested := kindsOf(t, parent, 0); nested.Member != "sub" || nested.Hint.Action != team.ActShowWaiting ||
		nested.Text != "In team demo-sub, which does task manual, 1 thing waits for you: Task 1 (for ann) failed: no key" {
		t.Errorf("in the parent waits %+v", nested)
	}
	if kinds, _ := kindsOf(t, child, 0); len(kinds) != 1 || kinds[0] != team.ItemTaskFailed {
		t.Errorf("in the child wait %v", kinds)
	}
	_, err := child.Prepare(within(t), upkeep.Resumption{})
	if h := team.HintsOf(err); team.CodeOf(err) != team.Invalid || len(h) != 1 || h[0].Team != "demo" {
		t.Errorf("the child is resumed by itself: %v, %+v", err, h)
	}
}

// TestKilledAbortIsNamed: a child that a killed abort has left is named until the abort is called
// again, and cannot be resumed. It is not named while the abort may still be at work.
func TestKilledAbortIsNamed(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l, parent, child := nestedLab(t)
	l.do(parent, team.User, &team.SetStatus{Status: team.TeamAborted, Reason: "stop"}) // the kill comes now
	if kinds, _ := kindsOf(t, parent, 0); len(kinds) > 0 {
		t.Errorf("during the abort, in the parent wait %v", kinds)
	}
	done := host.HoldAbort(t.Context(), parent.Shared()) // another one is at work, however long it takes
	if kinds, _ := kindsOf(t, parent, time.Minute); len(kinds) > 0 {
		t.Errorf("during a long abort, in the parent wait %v", kinds)
	}
	done()
	_, nested := kindsOf(t, parent, time.Minute)
	for end := time.Now().Add(10 * time.Second); nested.Hint.Action != team.ActAbort && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // a child of another test has the lock up to its exec
		_, nested = kindsOf(t, parent, time.Minute)
	}
	if nested.Hint.Action != team.ActAbort {
		t.Errorf("in the parent waits %+v", nested)
	}
	if _, err := child.Prepare(within(t), upkeep.Resumption{}); team.CodeOf(err) != team.Finished ||
		!hinted(err, team.ActAbort) {
		t.Errorf("the child is resumed: %v", err)
	}
	if err := parent.Abort(within(t), team.User, "stop"); err != nil {
		t.Fatal(err)
	}
	if kinds, _ := kindsOf(t, parent, time.Minute); len(kinds) > 0 {
		t.Errorf("after another abort, in the parent wait %v", kinds)
	}
	until(t, child, func(s *team.State) bool { of := s.Team(); return of.Status == team.TeamAborted })
}

// TestRemovalEndsTheParentFirst: a forced removal leaves no team in the team, and no parent that
// could make another one.
func TestRemovalEndsTheParentFirst(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l, parent, child := nestedLab(t)
	parent.Close()
	child.Close()
	if _, err := l.RemoveTeam(within(t), "demo", engine.Removal{Actor: team.User, Force: true}); err != nil {
		t.Fatal(err)
	}
	if names, err := l.Home.Names(); err != nil || len(names) > 0 {
		t.Errorf("%v are left, %v", names, err)
	}
}

// TestBranchesOfATree: a removal names the branches of the teams in the team too, and so does a
// later one, which removes them. What a team in the team has nowhere else stays, and with it the
// checkpoints that lead to it.
func TestBranchesOfATree(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const demo, child, bobs, other = "cadre/demo", "cadre/demo-sub", "cadre/demo-sub@bob", "cadre/demo-sub2"
	for name, first := range map[string]func(*lab) engine.Removal{
		"together": func(*lab) engine.Removal { return engine.Removal{Force: true} },
		"at once": func(l *lab) engine.Removal {
			if err := l.open().Abort(within(l.t), team.User, "enough"); err != nil {
				l.t.Fatal(err)
			}
			return engine.Removal{Branches: true}
		},
		"after a kill": func(l *lab) engine.Removal { // the team in the team is removed already
			child, err := l.Open(within(l.t), "demo-sub")
			if err != nil {
				l.t.Fatal(err)
			}
			id := child.Team().ID
			child.Close()
			if _, err := l.RemoveTeam(within(l.t), id, engine.Removal{Actor: team.User, Force: true}); err != nil {
				l.t.Error(err)
			}
			return engine.Removal{Force: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, parent, nested := nestedLab(t)
			l.do(nested, team.User, &team.SpawnMember{Name: "bob", Agent: team.Shell, Isolation: team.Worktree})
			for _, of := range []*engine.Team{parent, nested} {
				if _, err := of.Checkpoint(within(t)); err != nil {
					t.Fatal(err)
				}
				of.Close()
			}
			l.endSub(parent)
			l.git("branch", other)
			l.git("checkout", "-q", "-b", bobs)
			l.git("commit", "-q", "--allow-empty", "-m", "bob's")
			l.git("checkout", "-q", "main")
			remove := func(r engine.Removal) (stay, gone []string) {
				t.Helper()
				r.Actor, r.Dir = team.User, l.project
				removed, err := l.RemoveTeam(within(t), "demo", r)
				if err != nil {
					t.Fatal(err)
				}
				if of := removed.Team; of.Name != "demo" {
					t.Errorf("%+v is removed", of)
				}
				for _, b := range removed.Branches {
					if b.Removed {
						gone = append(gone, b.Name)
					} else {
						stay = append(stay, b.Name)
					}
				}
				return stay, gone
			}
			same := func(when string, got []string, want ...string) {
				t.Helper()
				if !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", when, got, want)
				}
			}
			stay, gone := remove(first(l))
			same("named", stay, bobs, child, demo)
			same("removed", gone)
			stay, gone = remove(engine.Removal{Branches: true})
			same("with a commit that nothing else has", stay, bobs, child, demo)
			same("removed then", gone)
			l.git("branch", "kept", bobs)
			stay, gone = remove(engine.Removal{Branches: true})
			same("that stay at last", stay)
			same("removed at last", gone, bobs, child, demo)
			same("in the repository", strings.Fields(l.git("branch", "--format=%(refname:short)")), other, "kept", "main")
		})
	}
}

// TestBranchesOfAnArchivedTree: no checkpoint names the branches of a team in an archived team, but
// its history does.
func TestBranchesOfAnArchivedTree(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const bobs = "cadre/demo-sub@bob"
	l, parent, nested := nestedLab(t)
	l.do(nested, team.User, &team.SpawnMember{Name: "bob", Agent: team.Shell, Isolation: team.Worktree})
	l.endSub(parent)
	if err := parent.Abort(within(t), team.User, "enough"); err != nil {
		t.Fatal(err)
	}
	if err := parent.ArchiveChildren(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := parent.PutInArchive(); err != nil {
		t.Fatal(err)
	}
	parent.Close()
	nested.Close()
	l.git("branch", bobs)
	r, err := l.RemoveTeam(within(t), "demo", engine.Removal{Actor: team.User, Branches: true, Dir: l.project})
	if err != nil || len(r.Branches) != 1 || r.Branches[0].Name != bobs || !r.Branches[0].Removed || r.Team.Name != "demo" {
		t.Errorf("removed are %+v of %s, %v", r.Branches, r.Team.Name, err)
	}
}

// TestChildWithoutItsWorktree: a team in a team belongs to the project of its parent also when the
// worktree in which it worked was removed, and nobody is asked where that is.
func TestChildWithoutItsWorktree(t *testing.T) {
	t.Parallel()
	l, parent, child := nestedLab(t)
	if err := child.Abort(within(t), team.User, "enough"); err != nil {
		t.Fatal(err)
	}
	l.endSub(parent)
	home := l.Home.In(l.project)
	if folder, err := home.Own("demo-sub"); err != nil || folder != child.Dir {
		t.Errorf("its folder is %s, %v", folder, err)
	}
	all, err := catalog.List(within(t), home, false, func(text string) { t.Log(text) })
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, e := range all {
		if o := e.Overview; !o.Here || o.Unusable != "" {
			t.Errorf("%s is in the project %s (here: %t), and its directory %s %s", e.Name, o.Project, o.Here, o.Dir, o.Unusable)
		}
	}
}
