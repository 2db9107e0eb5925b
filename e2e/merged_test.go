package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// looksAtAll is a team file whose last two tasks run in the merged worktree. The second of them
// fails until there is a file go.
const looksAtAll = `name: demo
members: [{name: ann, isolation: worktree}, {name: bob}]
tasks:
- {id: one, owner: ann, run: "echo hers >hers.txt; git add -A; git commit -qm hers"}
- {id: two, owner: bob, run: echo his >his.txt}
- {id: three, owner: bob, in: merged, blockedBy: [one, two], run: "echo saw $(cat hers.txt his.txt)"}
- {id: four, owner: bob, in: merged, blockedBy: [three], run: "test -e %s/go && echo saw $(cat hers.txt his.txt) in $(pwd)"}
`

// TestMergedWorktreeMoves checks that the merged worktree follows its team when the project or the
// home is moved, and to another machine. It has the work of all members there. The consolidation
// removes it.
func TestMergedWorktreeMoves(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(w *world) (args []string){
		"the project was moved": func(w *world) []string {
			w.moves("moved")
			return []string{"resume", "demo", "--dir", "."}
		},
		"the home was moved": func(w *world) []string {
			w.movesHome("home")
			return []string{"resume", "demo"}
		},
		"both were moved": func(w *world) []string {
			w.moves("moved")
			w.movesHome("home")
			return []string{"resume", "demo", "--dir", "."}
		},
		"it was pulled on another machine": func(w *world) []string {
			w.must("push", "demo", "--yes", "--release")
			w.git("push", "-q", "origin", "main")
			first, project := w.home, w.dir
			w.git("clone", "-q", filepath.Join(w.root, "bare.git"), filepath.Join(w.root, "clone"))
			w.dir, w.home = filepath.Join(w.root, "clone"), filepath.Join(w.root, "other")
			w.env = append(w.env, "CADRE_HOME="+w.home)
			w.must("pull", "demo")
			if trees := w.gitSays("-C", project, "worktree", "list"); strings.Contains(trees, "\n") ||
				has(first, "teams", "demo", "merged") {
				w.t.Errorf("left in the home that gave it away: %s", trees)
			}
			return []string{"resume", "demo"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository()
			w.git("init", "-q", "--bare", "-b", "main", filepath.Join(w.root, "bare.git"))
			w.git("remote", "add", "origin", filepath.Join(w.root, "bare.git"))
			w.write("demo.yaml", fmt.Sprintf(looksAtAll, w.root))
			w.git("add", "-A")
			w.git("commit", "-qm", "team")
			if r := w.cadre("run", "demo.yaml"); r.code != 1 || !strings.Contains(r.out, "3 of 4 tasks done") {
				t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
			}
			if !has(w.home, "teams", "demo", "merged", "hers.txt") {
				t.Fatal("there is no merged worktree")
			}
			args := move(w)
			put(t, filepath.Join(w.root, "go"))
			if said := w.must(args...); !strings.Contains(said, "4 of 4 tasks done") {
				t.Fatalf("it says\n%s", said)
			}
			merged := filepath.Join(w.home, "teams", "demo", "merged")
			if said := w.must("task", "show", "demo", "4"); !strings.Contains(said, "saw hers his in "+merged) {
				t.Errorf("it says\n%s", said)
			}
			if top := w.gitSays("-C", merged, "rev-parse", "--show-toplevel"); top != merged {
				t.Errorf("its toplevel is %s", top)
			}
			if status := w.gitSays("-C", merged, "status", "--porcelain"); status != "" {
				t.Errorf("its status is %s", status)
			}
			w.must("consolidate", "demo", "--only", "his.txt")
			if got := w.gitSays("show", "HEAD:hers.txt", "HEAD:his.txt"); got != "hers\nhis" {
				t.Errorf("committed is %q", got)
			}
			if trees := w.gitSays("worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
				t.Errorf("got the worktrees %s, want only the project's own", trees)
			}
			if left, _ := os.ReadDir(filepath.Join(w.dir, ".git", "worktrees")); len(left) > 0 || has(merged) {
				t.Errorf("left: %v, and the merged worktree: %t", left, has(merged))
			}
		})
	}
}

// movesHome renames the home, and uses it there.
func (w *world) movesHome(to string) {
	w.t.Helper()
	to = filepath.Join(w.root, to)
	if err := os.Rename(w.home, to); err != nil {
		w.t.Fatal(err)
	}
	w.home = to
	w.env = append(w.env, "CADRE_HOME="+to)
}
