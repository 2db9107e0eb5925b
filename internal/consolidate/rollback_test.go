package consolidate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// begin lets the member claim the task, and records its starting point.
func (l *lab) begin(member, task, branch string) {
	l.Helper()
	l.do(member, &team.ClaimTask{Task: task})
	var t team.Task
	l.replica.View(func(s *team.State) { t, _ = s.Task(task) })
	base := l.git("rev-parse", "HEAD")
	if branch != "" {
		base = l.git("rev-parse", branch)
	} else {
		shots, err := worktree.OpenSnapshots(l.ctx, l.procs, l.project, l.TempDir())
		if err != nil {
			l.Fatal(err)
		}
		snap, err := shots.Take(l.ctx, "", "base\n", func(path string) (bool, string) {
			return filepath.Base(path) == "mine.txt", ""
		})
		if err != nil {
			l.Fatal(err)
		}
		base = snap.Commit
	}
	l.do(team.User, &team.RecordWork{Task: task, Work: team.Work{Member: member, Branch: branch, Base: base,
		Fence: t.Fence}})
}

// end lets the member complete the task, and records its work.
func (l *lab) end(member, task string) team.Work {
	l.Helper()
	l.do(member, &team.CompleteTask{Task: task})
	if err := host.RecordWork(l.ctx, l.replica, l.procs, l.folder, "", func(text string) { l.Log(text) }); err != nil {
		l.Fatal(err)
	}
	return l.work(task)
}

func (l *lab) work(task string) team.Work {
	l.Helper()
	var t team.Task
	l.replica.View(func(s *team.State) { t, _ = s.Task(task) })
	if t.Work == nil || t.Work.Commit == "" {
		l.Fatalf("the work of task %s: %+v", task, t.Work)
	}
	return *t.Work
}

func (l *lab) task(id string) (t team.Task) {
	l.replica.View(func(s *team.State) { t, _ = s.Task(id) })
	return t
}

func (l *lab) rollBack(task string) (Undone, error) {
	return RollBackTask(l.ctx, l.options(), task, "test")
}

// notRolledBack tries to roll the task back. This has to fail with that code and these words, and
// to touch nothing.
func (l *lab) notRolledBack(task string, code team.Code, words ...string) {
	l.Helper()
	scene, before := l.scene(), l.task(task)
	_, err := l.rollBack(task)
	if team.CodeOf(err) != code {
		l.Fatalf("task %s: %v is no %s", task, err, code)
	}
	for _, word := range words {
		if !strings.Contains(told(err), word) {
			l.Errorf("%q does not say %q", told(err), word)
		}
	}
	if now := l.scene(); now != scene {
		l.Errorf("it was\n%s\nand is\n%s", scene, now)
	}
	if now := l.task(task); now.Status != before.Status || now.Fence != before.Fence {
		l.Errorf("the task is %+v", now)
	}
	l.tidy()
}

// shared is a project in which ann has changed, made and removed files for task 2. Task 1 is older,
// and changed nothing.
func shared(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.write("gone.txt", "one\n")
	l.git("add", "-A")
	l.git("commit", "-qm", "second")
	l.write("mine.txt", "the person's\n")
	l.found()
	l.do("lead", &team.CreateTask{Subject: "more"})
	l.begin("ann", "2", "")
	l.write("a.txt", "two\n")
	l.write("deep/new.txt", "new\n")
	l.remove("gone.txt")
	l.end("ann", "2")
	return l
}

func TestRollBackInTheTeamsDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := shared(t)
	l.write("later.txt", "somebody's\n")
	u, err := l.rollBack("2")
	if err != nil {
		t.Fatal(err)
	}
	l.want(u.Files, "a.txt", "deep/new.txt", "gone.txt")
	if status := l.git("status", "--porcelain"); status != "?? later.txt\n?? mine.txt" {
		t.Errorf("the status is\n%s", status)
	}
	if task := l.task("2"); task.Status != team.Pending || task.Work != nil || task.Result != "" ||
		task.CompletedBy != "" || task.CompletedAt != 0 {
		t.Errorf("%+v", task)
	}
	if _, err := os.Stat(filepath.Join(l.project, "deep")); err == nil {
		t.Error("an empty folder is left")
	}
	l.notRolledBack("2", team.Nothing, "no work of task 2 (more) was saved")
	l.begin("ann", "2", "") // the task can be done again
	l.write("a.txt", "three\n")
	if w := l.end("ann", "2"); !slices.Equal(w.Files, []string{"a.txt"}) {
		t.Errorf("%+v", w)
	}
}

// TestRollBackSharedFiles checks that a rollback names the true reason where two members worked in
// one directory at the same time, and that naming the files of the task is the way out.
func TestRollBackSharedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.do("lead", &team.SpawnMember{Name: "bob", Agent: team.External})
	l.do("lead", &team.CreateTask{Subject: "hers"})
	l.do("lead", &team.CreateTask{Subject: "his"})
	l.begin("ann", "2", "")
	l.begin("bob", "3", "")
	l.write("hers.txt", "ann\n")
	l.write("his.txt", "bob\n")
	l.end("ann", "2")
	l.end("bob", "3")
	for task, other := range map[string]string{"2": "bob worked on task 3", "3": "ann worked on task 2"} {
		l.notRolledBack(task, team.Conflict, other+" in the same directory at the same time, so cadre cannot tell "+
			"whose these files are: hers.txt, his.txt", `{"action":"rollback_task","team":"demo","task":"`+task+`"}`)
	}
	o := l.options()
	o.Only = []string{"a.txt"}
	if _, err := RollBackTask(l.ctx, o, "2", ""); team.CodeOf(err) != team.Invalid ||
		!strings.Contains(err.Error(), "task 2 did not change a.txt; it changed hers.txt, his.txt") {
		t.Error(err)
	}
	for task, file := range map[string]string{"2": "hers.txt", "3": "his.txt"} {
		o.Only = []string{file}
		if u, err := RollBackTask(l.ctx, o, task, ""); err != nil || !slices.Equal(u.Files, []string{file}) {
			t.Errorf("%+v, %v", u, err)
		}
		if _, err := os.Stat(filepath.Join(l.project, file)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", file, err)
		}
		if got := l.task(task).Status; got != team.Pending {
			t.Errorf("task %s is %s", task, got)
		}
	}
}

// TestRollBackOnly names one of the files of a task: in the team's directory, in a worktree, and of
// work that was saved. Every other file stays as it is.
func TestRollBackOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	only := func(l *lab, path string, want ...string) {
		l.Helper()
		o := l.options()
		o.Only = []string{path}
		u, err := RollBackTask(l.ctx, o, "2", "")
		if err != nil {
			l.Fatal(err)
		}
		l.want(u.Files, want...)
	}
	l := shared(t)
	only(l, "a.txt", "a.txt")
	if status := l.git("status", "--porcelain"); status != " D gone.txt\n?? deep/\n?? mine.txt" {
		t.Errorf("in the team's directory the status is\n%s", status)
	}
	l = shared(t)
	only(l, "deep", "deep/new.txt")
	if status := l.git("status", "--porcelain"); status != " M a.txt\n D gone.txt\n?? mine.txt" {
		t.Errorf("in the team's directory the status is\n%s", status)
	}

	l = newLab(t)
	l.found()
	l.isolate("eve", "hers.txt")
	l.do(team.Host("h"), &team.AttachMember{Member: "eve"})
	l.do(team.User, &team.ReportStarted{Member: "eve", Session: "s"})
	l.do("lead", &team.CreateTask{Subject: "two files", Owner: "eve"})
	l.begin("eve", "2", "cadre/demo@eve")
	l.hers("eve", "a.txt", "hers\n")
	l.hers("eve", "b.txt", "hers\n")
	l.end("eve", "2")
	only(l, "b.txt", "b.txt")
	l.hasHers("a.txt", "hers\n")
	l.hasHers("b.txt", "one\n")
	if status := l.git("-C", filepath.Join(l.folder, "worktrees", "eve"), "status", "--porcelain"); status != "" {
		t.Errorf("in the worktree the status is\n%s", status)
	}

	l = newLab(t)
	l.found()
	l.do("lead", &team.CreateTask{Subject: "more"})
	l.do("ann", &team.ClaimTask{Task: "2"})
	l.write("a.txt", "half of it\n")
	l.write("new.txt", "half\n")
	if err := host.KeepDone(l.ctx, l.replica, l.folder, filestore.Team(l.folder), l.task("2")); err != nil {
		t.Fatal(err)
	}
	l.do("lead", &team.ReleaseTask{Task: "2"})
	only(l, "new.txt", "new.txt")
	if status := l.git("status", "--porcelain"); status != " M a.txt" {
		t.Errorf("with saved work the status is\n%s", status)
	}
}

func TestNoRollBack(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := shared(t)
	l.notRolledBack("1", team.Nothing, "the work of task 1 (port it) is not recorded")
	l.notRolledBack("9", team.NotFound, `no task "9"`)

	l.do("lead", &team.CreateTask{Subject: "after", BlockedBy: []string{"2"}})
	l.begin("ann", "3", "")
	l.notRolledBack("3", team.NotReady, "in progress by ann", `{"action":"retry_task","team":"demo","task":"3"}`)
	l.notRolledBack("2", team.Conflict, "task 3 (after) by ann builds on task 2 (more)")
	l.write("b.txt", "two\n")
	l.end("ann", "3")
	l.notRolledBack("2", team.Conflict, "task 3 (after) builds on task 2 (more) and is completed")
	if _, err := l.rollBack("3"); err != nil {
		t.Fatal(err)
	}

	l.write("a.txt", "the person's since\n")
	l.notRolledBack("2", team.Conflict, "nothing was touched: a.txt (changed since)")
	l.write("a.txt", "two\n")
	l.write("gone.txt", "here again\n")
	l.notRolledBack("2", team.Conflict, "gone.txt (changed since)")
	l.remove("gone.txt")

	l.do("lead", &team.SpawnMember{Name: "bob", Agent: team.External})
	l.do("lead", &team.CreateTask{Subject: "another"})
	l.begin("bob", "4", "")
	l.write("a.txt", "three\n")
	l.end("bob", "4")
	l.notRolledBack("2", team.Conflict, "a.txt (task 4 of bob changed it later)",
		`{"action":"rollback_task","team":"demo","task":"4"}`)
	if _, err := l.rollBack("4"); err != nil {
		t.Fatal(err)
	}
	l.git("add", "a.txt")
	l.git("commit", "-qm", "the person's")
	l.notRolledBack("2", team.Conflict, "is in HEAD")
	_, err := l.rollBack("2")
	hints := team.HintsOf(err)
	if len(hints) != 1 || hints[0].Action != team.ActRevertWork || hints[0].Dir != l.project {
		t.Fatalf("got the hints %+v, want one to revert the work in %s", hints, l.project)
	}
	l.git("add", "-A")
	l.git("commit", "-qm", "the rest")
	patch := filepath.Join(t.TempDir(), "patch")
	l.git("diff", "--binary", "--output="+patch, hints[0].From, hints[0].To)
	l.git("apply", patch)
	if status := l.git("status", "--porcelain"); status != " M a.txt\n D deep/new.txt\n?? gone.txt" {
		t.Errorf("the hint leads to\n%s", status)
	}
}

// TestNoRollBackOfThePerson checks a file of the user that the task changed further. It has no
// recorded state to restore.
func TestNoRollBackOfThePerson(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.write("a.txt", "the person's\n")
	l.found()
	l.do("lead", &team.CreateTask{Subject: "more"})
	l.do("ann", &team.ClaimTask{Task: "2"})
	l.do(team.User, &team.RecordWork{Task: "2", Work: team.Work{Member: "ann",
		Base: l.git("rev-parse", "HEAD"), Fence: 1}})
	l.write("a.txt", "the person's\nand ann's\n")
	l.end("ann", "2")
	l.notRolledBack("2", team.Conflict, "a.txt (had changes of yours before the team was created)")
}

// branched is a project in which eve has done tasks 2 and 3 in her own worktree.
func branched(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.found()
	l.isolate("eve", "hers.txt")
	l.do(team.Host("h"), &team.AttachMember{Member: "eve"})
	l.do(team.User, &team.ReportStarted{Member: "eve", Session: "s"})
	for i, file := range []string{"a.txt", "b.txt"} {
		l.do("lead", &team.CreateTask{Subject: file, Owner: "eve"})
		l.begin("eve", fmt.Sprint(i+2), "cadre/demo@eve")
		l.hers("eve", file, "hers\n")
		l.end("eve", fmt.Sprint(i+2))
	}
	return l
}

func (l *lab) hasHers(file, want string) {
	l.Helper()
	data, err := os.ReadFile(filepath.Join(l.folder, "worktrees", "eve", file))
	if string(data) != want || (want == "") != (err != nil) {
		l.Errorf("%s is %q, %v", file, data, err)
	}
}

func TestRollBackInAWorktree(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := branched(t)
	head := l.git("rev-parse", "HEAD")
	u, err := l.rollBack("2")
	if err != nil {
		t.Fatal(err)
	}
	l.want(u.Files, "a.txt", "hers.txt")
	l.hasHers("a.txt", "one\n")
	l.hasHers("hers.txt", "")
	l.hasHers("b.txt", "hers\n")
	tree := filepath.Join(l.folder, "worktrees", "eve")
	if status := l.git("-C", tree, "status", "--porcelain"); status != "" ||
		l.git("rev-parse", "cadre/demo@eve") != u.Commit || l.git("rev-parse", "HEAD") != head {
		t.Errorf("the worktree is\n%s", status)
	}
	if subjects := l.git("log", "--format=%s", "cadre/demo@eve"); subjects != "Roll back task 2 (eve, team "+
		"demo)\nTask 3 (eve, team demo)\nTask 2 (eve, team demo)\nfirst" {
		t.Errorf("the branch has\n%s", subjects)
	}
	if task := l.task("2"); task.Status != team.Pending || task.Owner != "eve" {
		t.Errorf("%+v", task)
	}

	l.hers("eve", "b.txt", "and more\n")
	l.notRolledBack("3", team.Conflict, "b.txt", "not committed")
	l.git("-C", tree, "commit", "-qam", "more")
	l.notRolledBack("3", team.Conflict, "b.txt (changed since)")
	l.git("-C", tree, "reset", "-q", "--hard", "HEAD^")
	l.begin("eve", "2", "cadre/demo@eve")
	l.notRolledBack("3", team.NotReady, "eve is working on task 2 in the same worktree",
		`{"action":"retry_task","team":"demo","task":"2"}`)
	l.do("eve", &team.ReleaseTask{Task: "2"})

	// Without the worktree, only the branch changes.
	l.git("worktree", "remove", "--force", tree)
	// A killed git left its lock on the branch.
	lock := filepath.Join(l.project, ".git", "refs", "heads", "cadre", "demo@eve.lock")
	if err := errors.Join(os.WriteFile(lock, nil, 0o600),
		os.Chtimes(lock, time.Time{}, time.Now().Add(-time.Minute))); err != nil {
		t.Fatal(err)
	}
	if u, err = l.rollBack("3"); err != nil {
		t.Fatal(err)
	}
	if got := l.git("diff", "--name-only", "main", "cadre/demo@eve"); got != "" ||
		l.git("rev-parse", "cadre/demo@eve") != u.Commit {
		t.Errorf("the branch differs in %q", got)
	}
}

// TestNoRollBackOfWhatIsInHEAD checks that the user has to undo what is in HEAD.
func TestNoRollBackOfWhatIsInHEAD(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := branched(t)
	l.git("merge", "-q", "--no-edit", "cadre/demo@eve")
	l.notRolledBack("3", team.Conflict, "is in HEAD", `"action":"revert_work"`, `"dir":"`+l.project+`"`)
}

// TestRollBackOfWhatWasSaved checks that the saved work of an uncompleted task is taken out, file
// by file.
func TestRollBackOfWhatWasSaved(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found()
	l.do("lead", &team.CreateTask{Subject: "more"})
	l.do("ann", &team.ClaimTask{Task: "2"})
	l.write("a.txt", "half of it\n")
	l.write("new.bin", "\x00half\n")
	l.write("long.txt", strings.Repeat("a line of it\n", 10_000))
	if err := host.KeepDone(l.ctx, l.replica, l.folder, filestore.Team(l.folder), l.task("2")); err != nil {
		t.Fatal(err)
	}
	l.do("lead", &team.ReleaseTask{Task: "2"})
	l.write("a.txt", "the person's since\n")
	l.notRolledBack("2", team.Conflict, "a.txt (changed since)")
	l.write("a.txt", "half of it\n")
	u, err := l.rollBack("2")
	if err != nil {
		t.Fatal(err)
	}
	l.want(u.Files, "a.txt", "long.txt", "new.bin")
	if status := l.git("status", "--porcelain"); status != "" || l.task("2").Saved != nil {
		t.Errorf("the status is\n%s", status)
	}
}

// TestRollBackKilled kills the rollback at each step. The next call finishes: each file restored,
// one commit, one record.
func TestRollBackKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for name, points := range map[string][]string{
		"shared": {"removed", "written", "undone"},
		"branch": {"removed", "written", "files", "moved", "undone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, point := range points {
				var l *lab
				if name == "branch" {
					l = branched(t)
				} else {
					l = shared(t)
				}
				if came, killed := l.consolidating("rollback:" + point); !killed || came[len(came)-1] != point {
					t.Fatalf("it was to be killed at %s; it was: %t, after %v", point, killed, came)
				}
				if err := l.replica.Refresh(l.ctx); err != nil {
					t.Fatal(err)
				}
				if status := l.task("2").Status; status != team.Completed {
					t.Fatalf("killed at %s: %s", point, status)
				}
				if _, err := l.rollBack("2"); err != nil {
					t.Fatalf("killed at %s: %v", point, err)
				}
				if l.task("2").Status != team.Pending {
					t.Errorf("killed at %s: %+v", point, l.task("2"))
				}
				if name == "branch" {
					if n := strings.Count(l.git("log", "--format=%s", "cadre/demo@eve"), "Roll back"); n != 1 {
						t.Errorf("killed at %s: %d commits undo it", point, n)
					}
					if status := l.git("-C", filepath.Join(l.folder, "worktrees", "eve"), "status",
						"--porcelain"); status != "" {
						t.Errorf("killed at %s: the worktree is\n%s", point, status)
					}
				} else if status := l.git("status", "--porcelain"); status != "?? mine.txt" {
					t.Errorf("killed at %s: the status is\n%s", point, status)
				}
			}
		})
	}
}
