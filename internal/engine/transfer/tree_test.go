package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/consolidate"
	"cadre/internal/git/checkpoint"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// tree are the names of the teams of [newTree], each of which does task 1 of the one before.
var tree = []string{"demo", "demo-sub", "demo-sub-sub"}

func treeID(name string) string { return name + "-" + strings.Repeat("a", 26) }

// newTree is newLab with a team in the team, and one in that. In each, ann works for herself. With
// isolated, the member that runs demo-sub has a worktree.
func newTree(t testing.TB, isolated bool) *lab {
	t.Helper()
	l := emptyLab(t)
	dir, isolation := l.laptop.dir, ""
	base, parent := consolidate.Look(t.Context(), dir), team.Parent{}
	if isolated {
		isolation = team.Worktree
	}
	for depth, name := range tree {
		commands := []team.Command{command(team.User, &team.CreateTeam{TeamID: treeID(name), Name: name, Dir: dir,
			Base: base, Parent: parent, Depth: int64(depth), MaxDepth: int64(2 - depth), Origin: l.laptop.dir + "/up.yaml"}),
			command(team.User, &team.SpawnMember{Name: "ann", Agent: team.External})}
		if depth < 2 {
			commands = append(commands, command(team.User, &team.SpawnMember{Name: "sub", Agent: team.NestedTeam,
				Isolation: isolation, Nested: &team.Nested{File: l.laptop.dir + "/sub.yaml", Digest: "d"}}),
				command(team.User, &team.CreateTask{Subject: "inside"}),
				command(team.User, &team.ClaimTask{Task: "1", Member: "sub"}),
				command("sub", &team.BeginChild{Task: "1", Team: treeID(tree[depth+1]), Name: tree[depth+1], Lead: "claude"}))
		}
		l.create(name, commands...)
		l.onTeam(l.laptop, name, func(rep *replica.Replica, folder string) {
			rep.View(func(s *team.State) { parent, _, _ = s.Nest("sub", "1") })
			if isolation != "" {
				p := host.Place(rep.Team(), folder, "sub")
				l.git(dir, "worktree", "add", "-q", "-b", p.Branch, p.Dir)
				dir, isolation = p.Dir, ""
				base = consolidate.Look(t.Context(), dir)
			}
		})
	}
	return l
}

// workIn has ann do a task in the team on the machine. The error is the refusal to continue the
// outermost team.
func (l *lab) workIn(m *machine, name string) (err error) {
	l.Helper()
	there := l.on(m, func(rep *replica.Replica, folder string) { err = Here(l.Context(), rep, folder, false) })
	if !there {
		return &team.Error{Code: team.NotFound, Text: "the team is not here"}
	}
	if err != nil {
		return err
	}
	l.onTeam(m, name, func(rep *replica.Replica, _ string) {
		l.tasks++
		path, text := fmt.Sprintf("%s-%d.txt", name, l.tasks), fmt.Sprintf("of %s, %d\n", m.name, l.tasks)
		do := func(body team.Body) (r *team.Record) {
			if err == nil {
				var receipt replica.Receipt
				receipt, err = rep.Do(l.Context(), team.Command{Actor: team.User, Body: body})
				r = receipt.Record
			}
			return r
		}
		r := do(&team.CreateTask{Subject: "task"})
		if r == nil {
			return
		}
		id := r.Events[0].(*team.TaskCreated).Task.ID
		do(&team.ClaimTask{Task: id, Member: "ann"})
		l.write(filepath.Join(rep.Team().Dir, path), text)
		do(&team.CompleteTask{Task: id, Member: "ann", Result: "file|" + path + "|" + text})
		do(&team.SetNote{Key: fmt.Sprint("note-", l.tasks), Text: text})
		do(&team.SendMessage{To: "ann", Body: text})
	})
	return err
}

// wholeTree checks that the machine has the whole tree, in its clone, and returns how many tasks
// are completed in each team. All their work is there, with as many notes and messages.
func (l *lab) wholeTree(m *machine) (completed map[string]int) {
	l.Helper()
	completed = map[string]int{}
	dir := m.dir
	for depth, name := range tree {
		there := l.onTeam(m, name, func(rep *replica.Replica, folder string) {
			t := rep.Team()
			if t.Parent.Worktree {
				dir = host.Place(t, filepath.Join(m.home.Root, "teams", "demo"), "sub").Dir
			}
			if t.Dir != dir || t.Base.Top != dir || t.ID != treeID(name) || t.Origin != m.dir+"/up.yaml" {
				l.Errorf("on %s team %s (%s) works in %s of %s, and was made from %s", m.name, name, t.ID, t.Dir, t.Base.Top,
					t.Origin)
			}
			rep.View(func(s *team.State) {
				for task := range s.Tasks() {
					if task.Status != team.Completed {
						continue
					}
					completed[name]++
					what := strings.SplitN(task.Result, "|", 3)
					text, err := os.ReadFile(filepath.Join(m.dir, what[1]))
					if dir == m.dir && (err != nil || string(text) != what[2]) {
						l.Errorf("on %s %s of team %s has %q, %v", m.name, what[1], name, text, err)
					}
				}
				ann, _ := s.Member("ann")
				if notes := len(s.Notes()); notes != completed[name] || len(ann.Inbox) != notes {
					l.Errorf("on %s team %s has %d completed tasks, %d notes and %d messages", m.name, name, completed[name], notes,
						len(ann.Inbox))
				}
				if depth == 2 {
					return
				}
				sub, _ := s.Member("sub")
				c, open := s.ChildOf("1")
				if sub.Nested.File != m.dir+"/sub.yaml" || !open || c.Team != treeID(tree[depth+1]) || len(t.Children) != 1 {
					l.Errorf("on %s team %s makes its team from %s, and has the teams %+v", m.name, name, sub.Nested.File, t.Children)
				}
			})
		})
		if !there {
			l.Errorf("on %s there is no team %s", m.name, name)
		}
	}
	return completed
}

// TestATreeThereAndBack moves a team with the teams in it to another machine and back, by its one
// branch. Each arrives with its tasks, notes and mail, and with the paths of that machine. A
// machine that released the tree changes none of its teams.
func TestATreeThereAndBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newTree(t, false)
	from, to := l.laptop, l.desktop
	for round := range 3 {
		for _, name := range tree {
			l.must(l.workIn(from, name))
		}
		_, err := from.push(t.Context(), PushOptions{Yes: true, Release: true})
		l.must(err)
		for _, name := range tree {
			l.onTeam(from, name, func(rep *replica.Replica, _ string) {
				_, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "more"}})
				if h := team.HintsOf(err); team.CodeOf(err) != team.Denied || len(h) != 2 || h[0].Team != "demo" {
					t.Errorf("team %s after its release: %v, %+v", name, err, h)
				}
			})
		}
		if branches := l.git(from.dir, "ls-remote", "--heads", "origin", "cadre/*"); strings.Count(branches, "\n") > 0 {
			t.Errorf("more than one branch was pushed:\n%s", branches)
		}
		pulled, err := to.pull(t.Context(), PullOptions{})
		l.must(err)
		if to.warned() || pulled.Arrived == nil || len(pulled.Arrived.Missing) > 0 {
			t.Errorf("round %d: %v, %+v", round, to.said, pulled.Arrived)
		}
		for name, n := range l.wholeTree(to) {
			if n != round+1 {
				t.Errorf("round %d: in team %s %d tasks are completed", round, name, n)
			}
		}
		from, to = to, from
	}
}

// TestATreeInAWorktree: a team that works in the worktree of its member arrives with what was
// committed nowhere: it is on the branch of the member, from which the worktree is made again.
func TestATreeInAWorktree(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newTree(t, true)
	for _, name := range tree {
		l.must(l.workIn(l.laptop, name))
	}
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
	l.must(err)
	pulled, err := l.desktop.pull(t.Context(), PullOptions{})
	l.must(err)
	if len(pulled.Arrived.Missing) > 0 {
		t.Errorf("%+v are missing", pulled.Arrived.Missing)
	}
	l.wholeTree(l.desktop)
	for n, name := range tree[1:] {
		file := fmt.Sprintf("%s-%d.txt", name, n+2)
		if text, err := l.try(l.desktop.dir, "", "show", "cadre/demo@sub:"+file); text != fmt.Sprintf("of laptop, %d", n+2) {
			t.Errorf("on the branch of the member %s has %q, %v", file, text, err)
		}
	}
}

// TestOneForkOfATree: where only a team in the team continued on two machines, the whole tree has
// two histories. Each command says so, and one choice decides for all of its teams.
func TestOneForkOfATree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for _, chosen := range []string{"theirs", "ours"} {
		t.Run(chosen, func(t *testing.T) {
			t.Parallel()
			l := newTree(t, false)
			_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
			l.must(err)
			_, err = l.desktop.pull(t.Context(), PullOptions{})
			l.must(err)
			l.must(l.workIn(l.desktop, "demo-sub"))
			_, err = l.desktop.push(t.Context(), PushOptions{Yes: true})
			l.must(err)
			l.must(l.workIn(l.laptop, "demo-sub-sub")) // the laptop does not know of that yet
			if _, err := l.laptop.push(t.Context(), PushOptions{Yes: true}); !isFork(err) {
				t.Fatalf("push: %v", err)
			} else if _, ok := errors.AsType[*checkpoint.ForkError](err); !ok {
				t.Fatalf("push takes it for a team without news: %v", err)
			}
			if err := l.workIn(l.laptop, "demo"); !isFork(err) {
				t.Errorf("it continues: %v", err)
			}
			if _, err := l.laptop.pull(t.Context(), PullOptions{}); !isFork(err) {
				t.Errorf("pull: %v", err)
			}
			theirs := l.git(l.laptop.dir, "rev-parse", "origin/cadre/demo")
			want := map[string]int{"demo-sub": 1}
			if chosen == "theirs" {
				_, err = l.laptop.pull(t.Context(), PullOptions{Theirs: true})
			} else {
				want = map[string]int{"demo-sub-sub": 1}
				_, err = l.laptop.push(t.Context(), PushOptions{Yes: true, Ours: true})
			}
			l.must(err)
			left := l.git(l.laptop.dir, "log", "--format=%H", "--all", "--grep=^demo-sub-sub: ")
			if got := l.wholeTree(l.laptop); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("completed are %v, want %v", got, want)
			}
			l.must(l.workIn(l.laptop, "demo-sub"))
			_, err = l.laptop.push(t.Context(), PushOptions{Yes: true})
			l.must(err)
			for _, commit := range append(strings.Fields(left), theirs) {
				if out, err := l.try(l.laptop.dir, "", "merge-base", "--is-ancestor", commit, "origin/cadre/demo"); err != nil {
					t.Errorf("commit %s is lost: %s", commit, out)
				}
			}
		})
	}
}

// TestATreeThatCannotBeRestored: where one team of a tree cannot be restored, the error names it,
// and nothing is restored.
func TestATreeThatCannotBeRestored(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, one := range map[string]struct {
		prepare func(l *lab)
		says    string
	}{
		"its name is taken": {func(l *lab) {
			l.must(l.desktop.home.Create("demo-sub", []team.Command{command(team.User, &team.CreateTeam{
				TeamID: "demo-sub-" + strings.Repeat("b", 26), Name: "demo-sub", Dir: l.desktop.dir})}))
		}, "team demo-sub, which does a task of team demo, cannot be restored: a team named demo-sub exists already"},
		"another team has its branch": {func(l *lab) {
			home := l.desktop.home
			home.Root = filepath.Join(l.root, "other-home")
			l.must(home.Create("demo-sub", []team.Command{command(team.User, &team.CreateTeam{
				TeamID: "demo-sub-" + strings.Repeat("b", 26), Name: "demo-sub", Dir: l.desktop.dir})}))
			l.onTeam(&machine{home: home, dir: l.desktop.dir}, "demo-sub", func(rep *replica.Replica, folder string) {
				_, err := host.Checkpoint(t.Context(), rep, folder)
				l.must(err)
			})
		}, "team demo-sub, which does a task of team demo, cannot be restored: another team of that name has its"},
		"its checkpoint is damaged": {func(l *lab) {
			dir, state := l.laptop.dir, ".claude/teams/demo/state.json"
			text, carried := l.git(dir, "show", "origin/cadre/demo:"+state), l.git(dir, "rev-parse", "cadre/demo-sub")
			forged := strings.ReplaceAll(text, carried, l.git(dir, "rev-parse", "main"))
			index := "GIT_INDEX_FILE=" + filepath.Join(l.root, "index")
			for _, args := range [][]string{{"read-tree", "origin/cadre/demo"}, {"update-index", "--cacheinfo",
				"100644," + l.feed(dir, forged, "hash-object", "-w", "--stdin") + "," + state}} {
				l.git(dir, append([]string{"-c", "alias.with=!env " + index + " git", "with"}, args...)...)
			}
			tree := l.git(dir, "-c", "alias.with=!env "+index+" git", "with", "write-tree")
			l.git(dir, "push", "-q", "origin", l.git(dir, "commit-tree", "-m", "forged", "-p", "origin/cadre/demo",
				tree)+":refs/heads/cadre/demo")
		}, "team demo-sub in team demo cannot be restored, so nothing is: no checkpoint can be read from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTree(t, false)
			_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
			l.must(err)
			one.prepare(l)
			names, _ := l.desktop.home.Names()
			branches := l.git(l.desktop.dir, "branch", "-v")
			_, err = l.desktop.pull(t.Context(), PullOptions{})
			if err == nil || !strings.Contains(err.Error(), one.says) {
				t.Errorf("the error is %v", err)
			}
			if now, _ := l.desktop.home.Names(); !slices.Equal(now, names) {
				t.Errorf("the home has %v, and had %v", now, names)
			}
			if now := l.git(l.desktop.dir, "branch", "-v"); now != branches {
				t.Errorf("the branches are\n%s\nand were\n%s", now, branches)
			}
		})
	}
}

// TestLostParent: where only the folder of the parent was lost, the teams in it stay as they are,
// with what they did since. One that is damaged or older is set aside, and restored with it.
func TestLostParent(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newTree(t, false)
	l.must(l.workIn(l.laptop, "demo-sub"))
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
	l.must(err)
	l.must(l.workIn(l.laptop, "demo-sub"))
	teams := filepath.Join(l.laptop.home.Root, "teams")
	l.must(os.RemoveAll(filepath.Join(teams, "demo")))
	l.must(os.RemoveAll(filepath.Join(teams, "demo-sub-sub", "journal")))
	_, err = Adopt(t.Context(), l.laptop.options())
	l.must(err)
	if got, want := l.wholeTree(l.laptop), map[string]int{"demo-sub": 2}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("completed are %v, want %v", got, want)
	}
	if aside, _ := filepath.Glob(filepath.Join(l.laptop.home.Root, "*", "demo-sub-sub-1")); len(aside) != 1 {
		t.Errorf("the damaged copy is in %v", aside)
	}
}

// TestATreeIsKilled kills the restoration of a tree at any step and at any git command. Until the
// outermost team is there, none of them is visible, and the same command called again ends as if it
// had not been interrupted.
func TestATreeIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes; not with -short")
	}
	for _, what := range []string{"pull", "theirs", "release"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newTree(t, false)
			for _, name := range tree {
				l.must(l.workIn(l.laptop, name))
			}
			m := l.desktop
			switch what {
			case "pull":
				_, err := l.laptop.push(t.Context(), PushOptions{Yes: true, Release: true})
				l.must(err)
			case "release":
				m = l.laptop
			case "theirs":
				_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
				l.must(err)
				_, err = l.desktop.pull(t.Context(), PullOptions{})
				l.must(err)
				l.must(l.workIn(l.desktop, "demo-sub"))
				l.must(l.workIn(l.laptop, "demo-sub-sub"))
				_, err = l.laptop.push(t.Context(), PushOptions{Yes: true})
				l.must(err)
			}
			end := func(label string) {
				if names, err := m.home.Names(); err != nil || what == "pull" && !slices.Contains(names, "demo") && len(names) > 0 {
					t.Errorf("%s: the home has %v, %v", label, names, err)
				}
				var err error
				switch what {
				case "release":
					_, err = m.push(t.Context(), PushOptions{Yes: true, Release: true})
					if err == nil {
						_, err = l.desktop.pull(t.Context(), PullOptions{})
					}
				default:
					_, err = m.pull(t.Context(), PullOptions{Theirs: what == "theirs"})
				}
				if err != nil {
					t.Fatalf("%s: %v", label, err)
				}
				want := map[string]int{"demo": 1, "demo-sub": 1, "demo-sub-sub": 1}
				if what == "theirs" {
					want["demo-sub-sub"] = 2
				}
				if got := l.wholeTree(l.desktop); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s: completed are %v, want %v", label, got, want)
				}
				if names, err := l.desktop.home.Names(); err != nil || !slices.Equal(names, tree) {
					t.Fatalf("%s: the home has %v, %v", label, names, err)
				}
				for _, name := range tree {
					if err := l.workIn(l.desktop, name); err != nil {
						t.Fatalf("%s: team %s does not continue: %v", label, name, err)
					}
				}
				if _, err := l.desktop.push(t.Context(), PushOptions{Yes: true}); err != nil {
					t.Fatalf("%s: %v", label, err)
				}
			}
			restore := l.save()
			every := map[string]int{"step": soak.Of(2, 1), "before": soak.Of(67, 1), "after": soak.Of(67, 1)}
			for i, how := range []string{"step", "before", "after"} {
				n := 1 + i
				for ; ; n += every[how] {
					restore()
					step, git := strconv.Itoa(n), ""
					if how != "step" {
						step, git = "", strconv.Itoa(n)
					}
					dead := l.killed(m, what, step, git, how)
					end(fmt.Sprint(how, " ", n))
					if !dead {
						break
					}
				}
				t.Logf("%s: killed at up to %d places", how, n)
				if n < 3 {
					t.Errorf("there were only %d places to be killed at", n)
				}
			}
		})
	}
}
