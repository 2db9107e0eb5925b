package e2e

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestForEachKilled: a run is killed while the command for the items runs, and again while a task
// for an item does. The command runs again, and each item has one task, which is completed once.
func TestForEachKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("each.yaml", `name: each
members: [{name: w, agent: shell, count: 2}]
tasks:
  - id: items
    forEach: {run: 'echo looked >>looks; while ! test -e listed; do sleep 0.02; done; printf "a\nb\nc\n"'}
    run: 'echo "$CADRE_ITEM" >>begun; while ! test -e go; do sleep 0.02; done; echo "$CADRE_ITEM" >>done'
  - {id: last, run: 'echo "$CADRE_RESULT_ITEMS"', blockedBy: [items]}
`)
	kill := func(p *process) {
		t.Helper()
		if err := syscall.Kill(p.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.wait()
	}
	p := w.start("run", "each.yaml", "--plain")
	eventually(t, "the command for the items runs", func() bool { return len(w.lines("looks")) == 1 })
	kill(p)
	p = w.start("run", "each.yaml", "--plain")
	eventually(t, "the command for the items runs again", func() bool { return len(w.lines("looks")) == 2 })
	w.write("listed", "")
	eventually(t, "tasks for items run", func() bool { return len(w.lines("begun")) == 2 })
	kill(p)
	p = w.start("run", "each.yaml", "--plain")
	// it has ended what the killed run left before it begins them again
	eventually(t, "the tasks run again", func() bool { return len(w.lines("begun")) == 4 })
	w.write("go", "")
	if code := p.wait(); code != 0 {
		t.Fatalf("the last run ended with %d: %s", code, p.said())
	}
	done := w.lines("done")
	if slices.Sort(done); !slices.Equal(done, []string{"a", "b", "c"}) {
		t.Errorf("done are %q", done)
	}
	if looks := w.lines("looks"); len(looks) != 2 {
		t.Errorf("the command for the items ran %d times", len(looks))
	}
}

// TestForEachOnBranches: items are found among the work of earlier tasks that is on branches, by a
// pattern and by a command. Where these branches conflict, the task waits until the lead has merged
// them.
func TestForEachOnBranches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.write("each.yaml", `name: each
members: [{name: ann, agent: shell, isolation: worktree}, {name: bob, agent: shell, isolation: worktree}]
tasks:
  - {id: files, owner: ann, run: mkdir -p sub/out; touch sub/out/a sub/out/b; echo hers >both}
  - {id: globbed, blockedBy: [files], owner: ann, forEach: {glob: 'sub/out/*'}, run: 'cat both; echo "$CADRE_ITEM"'}
  - {id: printed, blockedBy: [files], owner: ann, forEach: {run: ls out}, dir: sub, run: 'ls "out/$CADRE_ITEM"'}
  - {id: looked, owner: bob, forEach: {run: cat both}, in: merged, blockedBy: [globbed], run: 'echo "$CADRE_ITEM"'}
  - {id: other, owner: bob, run: echo his >both}
  - {id: late, owner: ann, blockedBy: [files, other], forEach: {glob: 'sub/out/*'}, run: 'echo "$CADRE_ITEM"'}
`)
	w.git("add", "-A")
	w.git("commit", "-qm", "team")
	w.cadre("run", "each.yaml")
	for task, want := range map[string]string{"globbed-1": "sub/out/a", "globbed-2": "sub/out/b", "printed-1": "out/a",
		"printed-2": "out/b", "looked-1": "hers"} {
		if got := w.must("task", "show", "each", task, "--json"); !strings.Contains(got, want) {
			t.Errorf("task %s is\n%s", task, got)
		}
	}
	if got := w.must("task", "list", "each"); !strings.Contains(got, "Merge the branch cadre/each@bob") ||
		!regexp.MustCompile(`late +blocked by \d+ `).MatchString(got) {
		t.Errorf("the tasks are\n%s", got)
	}
	w.merge("each")
	r := w.cadre("run", "each.yaml")
	if got := r.out + r.err; !strings.Contains(got, "task late makes 2 tasks: late-1 to late-2") {
		t.Errorf("after the merge the run says\n%s", got)
	}
	w.merge("each") // of the work of bob for the tasks of ann
	r = w.cadre("run", "each.yaml")
	for task, want := range map[string]string{"late-1": "sub/out/a", "late-2": "sub/out/b"} {
		got := read[struct{ Status, Result string }](w, "task", "show", "each", task)
		if got.Status != "completed" || strings.TrimSpace(got.Result) != want {
			t.Errorf("after the merge, task %s is %+v\n%s%s", task, got, r.out, r.err)
		}
	}
	if both := w.gitSays("show", "cadre/each@bob:both"); both != "hers\nhis" && both != "his\nhers" {
		t.Errorf("merged is %q", both)
	}
}

// merge does what the open tasks of the lead say that ask to merge a branch. Of a conflict it keeps
// both sides.
func (w *world) merge(of string) {
	w.t.Helper()
	asked := 0
	for _, task := range read[[]struct{ ID, Subject, Status, Description string }](w, "task", "list", of) {
		if task.Status == "completed" || !strings.HasPrefix(task.Subject, "Merge the branch ") {
			continue
		}
		asked++
		script := "cadre() { \"$PROGRAM\" \"$@\"; }\n"
		for line := range strings.SplitSeq(task.Description, "\n") {
			command, is := strings.CutPrefix(line, "    ")
			if !is {
				continue
			}
			if _, files, conflict := strings.Cut(command, "in these files: "); conflict {
				command = "for f in " + strings.ReplaceAll(files, ",", "") +
					"; do sed '/^[<=>][<=>][<=>]/d' $f >$f.new && mv $f.new $f; done"
			}
			script += command + "\n"
		}
		c := exec.Command("sh", "-c", script)
		c.Dir, c.Env = w.dir, append(w.env, "PROGRAM="+cadre)
		if out, err := c.CombinedOutput(); err != nil {
			w.t.Fatalf("the commands of task %s end with %v:\n%s\n%s", task.ID, err, script, out)
		}
	}
	if asked == 0 {
		w.t.Fatalf("no task of %s asks to merge a branch", of)
	}
}
