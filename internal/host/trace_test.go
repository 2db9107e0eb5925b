package host_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/consolidate"
	gitproject "cadre/internal/git/project"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// worker is a session that takes each task that it can have, lets the test do it, and completes it.
// In a repository it first waits for the record of the task's start. On a busy machine that takes
// longer than a claim waits, and a task that is completed before has no record of its work.
func worker(does func(s *session, task team.Task)) scripted {
	return hasty(func(s *session, task team.Task) {
		if _, in := gitproject.Top(s.Dir); in {
			s.untilBegun(task.ID)
		}
		does(s, task)
	})
}

// untilBegun waits until the start of the task is recorded, for at most a minute.
func (s *session) untilBegun(id string) {
	late := time.After(time.Minute)
	for begun := false; !begun; {
		s.View(func(st *team.State) {
			task, _ := st.Task(id)
			begun = task.Work != nil && task.Work.Fence == task.Fence
		})
		select {
		case <-late:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// hasty is a worker that does not wait for the record of a task's start.
func hasty(does func(s *session, task team.Task)) scripted {
	return func(s *session) error {
		s.updates <- agent.Started{Session: "session of " + s.Member}
		for {
			r, err := s.Do(context.Background(), &team.ClaimTask{})
			if err == nil {
				claim := r.Events[0].(*team.TaskClaimed)
				var task team.Task
				s.View(func(st *team.State) { task, _ = st.Task(claim.Task) })
				s.updates <- agent.TurnStarted{}
				does(s, task)
				if _, err := s.Do(context.Background(), &team.CompleteTask{Task: task.ID,
					Fence: task.Fence}); err != nil {
					return err
				}
				continue
			}
			s.updates <- agent.TurnEnded{}
			select {
			case <-s.wake:
			case <-s.stop:
				return nil
			}
		}
	}
}

// work waits for the record of what the task did.
func (s *stage) work(id string) team.Work {
	s.t.Helper()
	var work team.Work
	s.until("the work of task "+id+" is recorded", func(st *team.State) bool {
		task, _ := st.Task(id)
		if task.Work != nil {
			work = *task.Work
		}
		return work.Done
	})
	return work
}

// changed returns what a task changed, according to git.
func (p *project) changed(w team.Work) string {
	p.t.Helper()
	return strings.ReplaceAll(p.git("diff", "--name-only", w.Base, w.Commit), "\n", " ")
}

// TestWorkInTheTeamsDirectory checks that in the team's directory a task's work is two snapshots.
// They show its own changes, not those of earlier tasks, and nothing of the person's.
func TestWorkInTheTeamsDirectory(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	dir, base := dirty(t)
	p := &project{t: t, dir: dir}
	write(t, dir, map[string]string{".gitignore": "out\n"})
	p.git("add", ".gitignore")
	p.git("-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "ignore")
	head := p.git("rev-parse", "HEAD")
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: dir, Base: base}, spawn("ann"),
		&team.CreateTask{Subject: "one"}, &team.CreateTask{Subject: "two"}, &team.CreateTask{Subject: "nothing"})
	s.start("h1", worker(func(_ *session, task team.Task) {
		switch task.ID {
		case "1":
			write(t, dir, map[string]string{"a.txt": "a\n", "both.txt": "1\n", "out": "made\n",
				"large": strings.Repeat("x", 6<<20)})
		case "2":
			write(t, dir, map[string]string{"both.txt": "2\n", "theirs.txt": "the person's\nand ann's\n"})
		}
	}))
	one, two, none := s.work("1"), s.work("2"), s.work("3")
	if p.changed(one) != "a.txt both.txt" || !slices.Equal(one.Files, []string{"a.txt", "both.txt"}) ||
		one.Base != head || one.Member != "ann" || one.Branch != "" || len(one.Others) > 0 {
		t.Errorf("task 1: %+v changed %s", one, p.changed(one))
	}
	for _, want := range []string{"large (6 MiB; up to 5 MiB are kept)", "out (ignored by git)",
		".env (not committed when the team was created, and as it was)"} {
		if !slices.Contains(one.Left, want) {
			t.Errorf("task 1 left %q, not %s", one.Left, want)
		}
	}
	if p.changed(two) != "both.txt theirs.txt" || two.Base != one.Commit {
		t.Errorf("task 2: %+v changed %s", two, p.changed(two))
	}
	if none.Commit != two.Commit || none.Base != two.Commit || len(none.Files) > 0 {
		t.Errorf("task 3 has the work %+v, want none on top of task 2 (%+v)", none, two)
	}
	p.git("gc", "-q", "--prune=now")
	if all := p.git("log", "--format=", "--name-only", worktree.WorkRef("demo"), "--", ".env", "large",
		"out"); all != "" {
		t.Errorf("what is not the team's is kept: %q", all)
	}
	if p.changed(one) != "a.txt both.txt" || p.git("branch", "--list", "--format=%(refname:short)") == "" ||
		p.git("rev-parse", "HEAD") != head || p.git("diff", "--cached", "--name-only") != "" {
		t.Error("the branches, HEAD or the index of the repository changed; want them unchanged")
	}
	if err := host.DropWork(t.Context(), s.Team()); err != nil {
		t.Fatal(err)
	}
	if refs := p.git("for-each-ref", "refs/cadre"); refs != "" {
		t.Errorf("%q is left", refs)
	}
}

// TestWorkOfSeveralAtOnce checks the record if two members work in one directory at once: it is
// unknown who did what, and the record says so.
func TestWorkOfSeveralAtOnce(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}, spawn("ann"), spawn("bob"),
		&team.CreateTask{Subject: "one", Owner: "ann"}, &team.CreateTask{Subject: "two", Owner: "bob"},
		&team.CreateTask{Subject: "alone", Owner: "bob", BlockedBy: []string{"1", "2"}})
	met := make(chan bool)
	s.start("h1", worker(func(_ *session, task team.Task) {
		write(t, p.dir, map[string]string{"by-" + task.ID: "x\n"})
		switch task.ID {
		case "1":
			met <- true
			<-met
		case "2":
			<-met
			met <- true
		}
	}))
	one, two, alone := s.work("1"), s.work("2"), s.work("3")
	if !slices.Equal(one.Others, []string{"bob"}) || !slices.Equal(two.Others, []string{"ann"}) ||
		len(alone.Others) > 0 {
		t.Errorf("others of tasks 1, 2 and 3: %q, %q, %q, want bob, ann and none", one.Others, two.Others, alone.Others)
	}
	if !slices.Contains(one.Files, "by-1") || !slices.Contains(two.Files, "by-2") || p.changed(alone) != "by-3" {
		t.Errorf("files of tasks 1, 2 and 3: %q, %q, %q, want by-1, by-2 and by-3 in them",
			one.Files, two.Files, alone.Files)
	}
}

// TestWorkInAWorktree checks that in a worktree the work is on the member's branch, with its
// uncommitted changes, task by task. It is recorded before the worktree is removed.
func TestWorkInAWorktree(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	head := p.git("rev-parse", "HEAD")
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}, &team.SpawnMember{Name: "ann",
		Agent: "scripted", Isolation: team.Worktree},
		&team.CreateTask{Subject: "one"}, &team.CreateTask{Subject: "two"})
	h := s.start("h1", worker(func(s *session, task team.Task) {
		write(t, s.Dir, map[string]string{"by-" + task.ID: "x\n"})
		if task.ID == "1" {
			git := &project{t: t, dir: s.Dir}
			git.git("add", "-A")
			git.git("-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "ann's own")
			write(t, s.Dir, map[string]string{"uncommitted": "x\n"})
		}
	}))
	one, two := s.work("1"), s.work("2")
	if one.Base != head || p.changed(one) != "by-1 uncommitted" || one.Branch != "cadre/demo@ann" ||
		two.Base != one.Commit || p.changed(two) != "by-2" || len(one.Left)+len(two.Left) > 0 {
		t.Errorf("task 1: %+v\ntask 2: %+v", one, two)
	}
	if subjects := p.git("log", "--format=%s", head+".."+two.Commit); subjects != "Task 2 (ann, team demo)\nTask 1 "+
		"(ann, team demo)\nann's own" {
		t.Errorf("the branch has\n%s", subjects)
	}
	h.wait()
	p.git("merge-base", "--is-ancestor", two.Commit, "cadre/demo@ann")
}

// dying is a host that left only its folder, as after a kill.
func (s *stage) dying(id string) *proc.Register {
	s.t.Helper()
	procs, _, err := host.Enroll(s.t.Context(), s.shared(), s.hosts, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return procs
}

// TestWorkAfterAKill checks that a host that is killed before it has recorded a task's work leaves
// that to the next host, whatever it had made by then.
func TestWorkAfterAKill(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}, &team.SpawnMember{Name: "ann",
		Agent: team.External}, &team.CreateTask{Subject: "one"}, &team.CreateTask{Subject: "two"})
	head := p.git("rev-parse", "HEAD")
	s.do("ann", &team.ClaimTask{Task: "1"})
	s.do(team.Host("h0"), &team.RecordWork{Task: "1", Work: team.Work{Member: "ann", Base: head, Fence: task(s).Fence}})
	write(t, p.dir, map[string]string{"a.txt": "a\n"})
	s.do("ann", &team.CompleteTask{Task: "1"})
	for range 2 { // made before the kill, twice: commits and references that no record names
		procs := s.dying("h0")
		shots, err := worktree.OpenSnapshots(t.Context(), procs, p.dir, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		snap, err := shots.Take(t.Context(), head, "killed\n", func(string) (bool, string) { return false, "" })
		if err == nil {
			_, err = worktree.KeepCommits(t.Context(), procs, p.dir, worktree.WorkRef("demo"), "", "killed\n",
				head, snap.Commit)
		}
		if err := errors.Join(err, procs.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
	h := s.start("h1", scripted(obedient))
	one := s.work("1")
	if p.changed(one) != "a.txt" || one.Base != head {
		t.Errorf("task 1 has the work %+v, want a.txt on top of %s", one, head)
	}
	h.wait()

	// The next host is killed between a claim and its base. A task that is completed then has no
	// record, because its base cannot be known.
	s.do("ann", &team.ClaimTask{Task: "2"})
	s.do("ann", &team.CompleteTask{Task: "2"})
	s.start("h2", scripted(obedient))
	s.do(team.User, &team.CreateTask{Subject: "three", Owner: "ann"})
	s.do("ann", &team.ClaimTask{Task: "3"})
	s.until("task 3 has a base", func(st *team.State) bool { three, _ := st.Task("3"); return three.Work != nil })
	s.View(func(st *team.State) {
		if two, _ := st.Task("2"); two.Work != nil {
			t.Errorf("task 2 has the work %+v, want none", two.Work)
		}
	})
}

// TestWorkThatCannotBeRecorded checks that work that cannot be recorded is recorded with the
// reason, and delays no caller.
func TestWorkThatCannotBeRecorded(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}, spawn("ann"),
		&team.CreateTask{Subject: "one"})
	s.start("h1", worker(func(*session, team.Task) {
		if err := os.WriteFile(filepath.Join(p.dir, ".git", "HEAD"), []byte("nonsense\n"), 0o600); err != nil {
			t.Error(err)
		}
	}))
	one := s.work("1")
	if one.Commit != "" || one.Base == "" || len(one.Left) != 1 || !strings.Contains(one.Left[0], "git") {
		t.Errorf("task 1 has the work %+v, want a base, no commit and the reason with git", one)
	}
}

// TestWorkOfASecondAttempt checks that a second attempt at a task starts where the first did. If
// others worked there since, it starts from what they left.
func TestWorkOfASecondAttempt(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}, &team.SpawnMember{Name: "ann",
		Agent: team.External}, &team.SpawnMember{Name: "bob", Agent: team.External},
		&team.CreateTask{Subject: "one"}, &team.CreateTask{Subject: "two"})
	s.start("h1", scripted(obedient))
	begin := func(member, id string) {
		t.Helper()
		s.do(member, &team.ClaimTask{Task: id})
		s.until("task "+id+" has a base", func(st *team.State) bool {
			one, _ := st.Task(id)
			return one.Work != nil && one.Work.Fence == one.Fence
		})
	}
	begin("ann", "1")
	write(t, p.dir, map[string]string{"a.txt": "a\n"})
	s.do("ann", &team.ReleaseTask{Task: "1"})
	begin("ann", "1")
	write(t, p.dir, map[string]string{"b.txt": "b\n"})
	s.do("ann", &team.CompleteTask{Task: "1"})
	if one := s.work("1"); p.changed(one) != "a.txt b.txt" {
		t.Errorf("task 1 has the work %+v, want a.txt and b.txt", one)
	}
	begin("ann", "2")
	write(t, p.dir, map[string]string{"c.txt": "c\n"})
	s.do("ann", &team.ReleaseTask{Task: "2"})
	s.do(team.User, &team.CreateTask{Subject: "three"})
	begin("bob", "3")
	write(t, p.dir, map[string]string{"d.txt": "d\n"})
	s.do("bob", &team.CompleteTask{Task: "3"})
	s.work("3")
	begin("ann", "2")
	write(t, p.dir, map[string]string{"e.txt": "e\n"})
	s.do("ann", &team.CompleteTask{Task: "2"})
	two := s.work("2")
	if p.changed(two) != "e.txt" || !slices.ContainsFunc(two.Left,
		func(why string) bool { return strings.HasPrefix(why, "the work of an earlier attempt") }) {
		t.Errorf("task 2 has the work %+v, want e.txt, and the work of the earlier attempt left out", two)
	}
}

// TestRecordWork checks that a consolidation, which ends members, first records their work.
func TestRecordWork(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir, Base: consolidate.Look(t.Context(),
		p.dir)}, &team.SpawnMember{Name: "ann", Agent: team.External}, &team.CreateTask{Subject: "one"})
	s.do("ann", &team.ClaimTask{Task: "1"})
	s.do(team.User, &team.RecordWork{Task: "1", Work: team.Work{Member: "ann",
		Base: p.git("rev-parse", "HEAD"), Fence: 1}})
	write(t, p.dir, map[string]string{"a.txt": "a\n"})
	s.do("ann", &team.CompleteTask{Task: "1"})
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer procs.Close(context.Background())
	if err := host.RecordWork(t.Context(), s.Replica, procs, filepath.Dir(s.hosts), "",
		func(text string) { t.Log(text) }); err != nil {
		t.Fatal(err)
	}
	if one := *task(s).Work; !one.Done || p.changed(one) != "a.txt" {
		t.Errorf("task 1 has the work %+v, want it done with a.txt", one)
	}
}

// TestReportIsNoWork checks that the report of a run that ended early is not the work of the task
// that is completed after it.
func TestReportIsNoWork(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir, Base: consolidate.Look(t.Context(),
		p.dir)}, &team.SpawnMember{Name: "ann", Agent: team.External}, &team.CreateTask{Subject: "one"})
	s.do("ann", &team.ClaimTask{Task: "1"})
	s.do(team.User, &team.RecordWork{Task: "1", Work: team.Work{Member: "ann",
		Base: p.git("rev-parse", "HEAD"), Fence: 1}})
	write(t, p.dir, map[string]string{"a.txt": "a\n", "demo-report.md": "not finished\n"})
	s.do("lead", &team.SetStatus{Status: team.TeamActive, Report: filepath.Join(p.dir, "demo-report.md")})
	s.do("ann", &team.CompleteTask{Task: "1"})
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer procs.Close(context.Background())
	if err := host.RecordWork(t.Context(), s.Replica, procs, filepath.Dir(s.hosts), "",
		func(text string) { t.Log(text) }); err != nil {
		t.Fatal(err)
	}
	if one := *task(s).Work; !one.Done || p.changed(one) != "a.txt" || len(one.Left) > 0 {
		t.Errorf("%+v changed %s", one, p.changed(one))
	}
}

// TestWorkIsRecordedQuickly checks that the record of small work costs little. A task with recorded
// work takes less than a second or, on a busy machine, less than a hundred times as long as git
// takes to look at the project.
func TestWorkIsRecordedQuickly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it measures")
	}
	p := newProject(t)
	const tasks = 10
	bodies := []team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}, spawn("ann")}
	for range tasks {
		bodies = append(bodies, &team.CreateTask{Subject: "one"})
	}
	s := newStageOf(t, bodies...)
	began := time.Now()
	for range 5 {
		p.git("status")
	}
	limit := max(time.Second, 100*time.Since(began)/5)
	began = time.Now()
	s.start("h1", worker(func(_ *session, task team.Task) {
		write(t, p.dir, map[string]string{"by-" + task.ID: "x\n"})
	}))
	s.work("10")
	each := time.Since(began) / tasks
	t.Logf("%s for each task", each)
	if each > limit {
		t.Errorf("a task takes %s, more than %s", each, limit)
	}
}

// TestWorkThatHadNoRoom checks that a record is made once there is room, although the disk was full
// for longer than any caller waits and nothing happens in the team.
func TestWorkThatHadNoRoom(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}, spawn("ann"),
		&team.CreateTask{Subject: "one"})
	j := &failing{kind: []byte(`"done":true`)}
	j.left.Store(4)
	s.start("h1", worker(func(_ *session, task team.Task) {
		write(t, p.dir, map[string]string{"by-" + task.ID: "x\n"})
	}), s.on(j))
	if one := s.work("1"); !slices.Equal(one.Files, []string{"by-1"}) || j.left.Load() >= 0 {
		t.Errorf("task 1 has the work %+v, want by-1", one)
	}
}

// TestWorkOfTheMomentBefore checks that a task has the work of its blocker also if the blocker is
// completed while the task's member asks for one.
func TestWorkOfTheMomentBefore(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const pairs = 6
	p := newProject(t)
	bodies := []team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir}}
	for _, name := range []string{"ann", "bob"} {
		bodies = append(bodies, &team.SpawnMember{Name: name, Agent: "scripted", Isolation: team.Worktree})
	}
	for i := range pairs {
		bodies = append(bodies, &team.CreateTask{Subject: "writes", Owner: "ann"},
			&team.CreateTask{Subject: "reads", Owner: "bob", BlockedBy: []string{strconv.Itoa(2*i + 1)}})
	}
	s := newStageOf(t, bodies...)
	// ann is about to complete a task; bob was refused one. bob asks all the time only between
	// these and its claim, because that leaves git little time.
	near, refused := make(chan struct{}), make(chan struct{})
	h := s.start("h1", scripted(func(s *session) error {
		s.updates <- agent.Started{Session: "session of " + s.Member}
		for range pairs {
			if s.Member == "bob" {
				<-near
			}
			r, err := s.Do(context.Background(), &team.ClaimTask{})
			for asked := false; err != nil; asked = true {
				if !asked && s.Member == "bob" {
					refused <- struct{}{}
				}
				r, err = s.Do(context.Background(), &team.ClaimTask{})
			}
			task := r.Events[0].(*team.TaskClaimed).Task
			if s.Member == "ann" {
				write(t, s.Dir, map[string]string{"by-" + task: "x\n"})
				near <- struct{}{}
				<-refused
			} else if n, err := strconv.Atoi(task); err != nil {
				t.Error(err)
			} else if _, err := os.Stat(filepath.Join(s.Dir, fmt.Sprintf("by-%d", n-1))); err != nil {
				t.Errorf("task %s began without the work of its blocker: %v", task, err)
			}
			if _, err := s.Do(context.Background(), &team.CompleteTask{Task: task}); err != nil {
				return err
			}
		}
		<-s.stop
		return nil
	}))
	s.until("all tasks are done", func(st *team.State) bool { return st.Count(team.Completed) == 2*pairs })
	h.wait()
}

// TestWorkOfATaskWithoutARecord checks that a task has the work of its blocker also if the blocker
// was completed before its start could be recorded.
func TestWorkOfATaskWithoutARecord(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits five seconds; not with -short")
	}
	t.Parallel()
	p := newProject(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir},
		&team.SpawnMember{Name: "ann", Agent: "scripted", Isolation: team.Worktree},
		&team.SpawnMember{Name: "bob", Agent: "scripted", Isolation: team.Worktree},
		&team.CreateTask{Subject: "writes", Owner: "ann"},
		&team.CreateTask{Subject: "reads", Owner: "bob", BlockedBy: []string{"1"}})
	j := &failing{kind: []byte(`"kind":"work_recorded"`)}
	j.left.Store(math.MaxInt64)
	s.start("h1", hasty(func(a *session, task team.Task) {
		switch task.ID {
		case "1":
			write(t, a.Dir, map[string]string{"by-1": "x\n"})
		case "2":
			if _, err := os.Stat(filepath.Join(a.Dir, "by-1")); err != nil {
				t.Errorf("task 2 began without the work of its blocker: %v", err)
			}
		}
	}), s.on(j))
	s.until("both tasks are done", func(st *team.State) bool { return st.Count(team.Completed) == 2 })
	if one := s.task("1"); one.Work != nil || j.left.Load() == math.MaxInt64 {
		t.Errorf("task 1 has the work %+v, want none", one.Work)
	}
}

// TestAHostEndsWithoutTheRecord checks that a host ends in good order, and gives its members back,
// if git does not finish a record.
func TestAHostEndsWithoutTheRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits ten seconds; not with -short")
	}
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "one"})
	begun := make(chan struct{}, 1)
	h := s.start("h1", worker(func(*session, team.Task) {}), func(o *host.Options) {
		o.Machine.Project = stuck{begun}
	})
	<-begun
	h.wait()
	s.until("ann is given back", func(st *team.State) bool {
		m, _ := st.Member("ann")
		return m.Host == ""
	})
}

// stuck is a project in which the record of a task's work does not finish.
type stuck struct{ begun chan struct{} }

func (stuck) Check(context.Context, team.Team) error                 { return nil }
func (stuck) Records(string) bool                                    { return true }
func (stuck) Changes(context.Context, string, *host.SavedWork) error { return nil }

func (s stuck) Record(ctx context.Context, kind team.WantKind, _ team.Task, w *team.Work) error {
	if kind == team.WantBase {
		w.Base = "b45e"
		return nil
	}
	select {
	case s.begun <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}
