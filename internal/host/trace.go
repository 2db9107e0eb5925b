package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"cadre/internal/git"
	"cadre/internal/git/project"
	"cadre/internal/git/worktree"
	"cadre/internal/render/excerpt"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

const (
	// tracePatience is how long a claim or a completion waits for the record of the task's work. A
	// large repository takes longer, and the record is then made while the session continues.
	tracePatience = 5 * time.Second
	// traceTries is how often recording is tried. Then the reason for the failure is recorded.
	traceTries = 3
	// refusedPause is how long a record that is refused waits before it is tried again.
	refusedPause = 5 * time.Second
	// mostLeft bounds how many things that no commit contains are named.
	mostLeft = 60
)

// tracer records where tasks start and what they do, as commits. In a member's worktree these are
// commits on its branch; the tracer commits what the member left uncommitted. In the team's
// directory they are snapshots that no branch points at. A reference of the team's own protects
// both from git gc.
//
// The state says what must be recorded, so a kill between any two steps loses no record: the next
// look makes the same commits, or finds them. In one directory one task at a time is recorded, and
// completed tasks before the next one starts there.
type tracer struct {
	replica *replica.Replica
	procs   *proc.Register
	teamDir string
	machine string // name of the host's machine, if it runs members by their labels
	scratch string // folder for our own index
	actor   string
	log     func(string)
	again   func()      // makes the host look again at the wants; nil for no host
	broken  func(error) // called when nothing can be recorded any more; nil for no call
	project Project     // nil for git

	ctx    context.Context // ends running records
	cancel context.CancelFunc
	under  sync.WaitGroup

	mu      sync.Mutex
	running map[string]chan struct{} // by task
	// keys of wants that can neither be fulfilled nor dropped for now, because the journal takes no
	// record
	refused map[string]bool
	places  map[string]*tracedPlace // by directory
	kept    map[string]bool         // commits that the team's reference protects
	tip     string                  // the reference's last commit
}

// tracedPlace is a directory that members work in.
type tracedPlace struct {
	busy  chan struct{} // holds a token while a task is recorded
	shots *worktree.Snapshots
	mine  *personal
	heads map[string]string // what was checked out, by the snapshot's commit
}

func newTracer(rep *replica.Replica, procs *proc.Register, teamDir, scratch, actor string, log func(string)) *tracer {
	ctx, cancel := context.WithCancel(context.Background())
	return &tracer{replica: rep, procs: procs, teamDir: teamDir, scratch: scratch, actor: actor, log: log, ctx: ctx,
		cancel:  cancel,
		running: map[string]chan struct{}{}, refused: map[string]bool{}, places: map[string]*tracedPlace{},
		kept: map[string]bool{}}
}

// RecordWork records what the member's completed tasks did, or all members' where member is "", if
// that is not recorded yet. It is for a process that is not a host, before it changes what the
// members left.
func RecordWork(ctx context.Context, rep *replica.Replica, procs *proc.Register, teamDir, member string,
	log func(string)) error {
	return recordWork(ctx, rep, procs, teamDir, "", member, log)
}

// recordWork is RecordWork for work that was done on that machine, "" where the team is run.
func recordWork(ctx context.Context, rep *replica.Replica, procs *proc.Register, teamDir, machine, member string,
	log func(string)) error {
	none := false
	if rep.View(func(s *team.State) { none = len(s.Unrecorded()) == 0 }); none {
		return nil
	}
	scratch, err := os.MkdirTemp("", "cadre-work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	t := newTracer(rep, procs, teamDir, scratch, team.User, log)
	t.machine = machine
	defer t.close(ctx)
	return t.settle(ctx, member)
}

// DropWork removes the reference that protects the work of a team's tasks. It is for a team that is
// cleaned up. Work on branches stays.
func DropWork(ctx context.Context, t team.Team) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	return worktree.DropCommits(ctx, procs, t.Dir, worktree.WorkRef(t.Name))
}

// settle records what the member's completed tasks did, or all members' tasks where member is "".
func (t *tracer) settle(ctx context.Context, member string) error {
	var open []team.Task
	t.replica.View(func(s *team.State) { open = s.Unrecorded() })
	for _, task := range open {
		if member != "" && task.Work.Member != member {
			continue
		}
		select {
		case <-t.begin(task.ID):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// close waits until no record is being made, or until ctx ends.
func (t *tracer) close(ctx context.Context) {
	stop := context.AfterFunc(ctx, t.cancel)
	t.under.Wait()
	stop()
	t.cancel()
}

// follow records the start or the work of tasks that the events claim, complete or submit, and
// waits for that a limited time.
func (t *tracer) follow(ctx context.Context, events []team.Event) {
	var tasks []string
	for _, e := range events {
		switch e := e.(type) {
		case *team.TaskClaimed:
			tasks = append(tasks, e.Task)
		case *team.TaskCompleted:
			tasks = append(tasks, e.Task)
		case *team.TaskSubmitted:
			tasks = append(tasks, e.Task)
		}
	}
	if len(tasks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tracePatience)
	defer cancel()
	for _, task := range tasks {
		select {
		case <-t.begin(task):
		case <-ctx.Done():
		}
	}
}

// begin starts to record what is wanted for the task. The channel is closed when nothing more is
// wanted, or if it cannot be recorded now.
func (t *tracer) begin(task string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if done := t.running[task]; done != nil {
		return done
	}
	done := make(chan struct{})
	if !t.wanted(task) || t.ctx.Err() != nil {
		close(done)
		return done
	}
	t.running[task] = done
	t.under.Go(func() {
		for {
			t.record(task)
			t.mu.Lock()
			if over := !t.wanted(task) || t.ctx.Err() != nil; over {
				delete(t.running, task)
				close(done)
				t.mu.Unlock()
				return
			}
			t.mu.Unlock()
		}
	})
	return done
}

// wanted reports whether something about the task must and can be recorded. The caller holds mu.
func (t *tracer) wanted(task string) bool {
	j := t.job(task)
	return j != nil && !t.refused[j.key]
}

// job is one record to make about a task.
type job struct {
	key    string
	kind   team.WantKind
	task   team.Task
	member team.Member
	team   team.Team
	alone  bool // no other member had a task in the team's directory since its work began
	dir    string
	branch string // "" in the team's directory
}

func (j *job) place(teamDir string) worktree.Place { return Place(j.team, teamDir, j.member.Name) }

// job returns the record to make about the task now, or nil if none can be made.
func (t *tracer) job(id string) *job {
	var j *job
	t.replica.View(func(s *team.State) {
		kind := s.WorkWanted(id)
		if kind == "" {
			return
		}
		j = &job{kind: kind, team: s.Team()}
		j.task, _ = s.Task(id)
		who := j.task.Owner
		if kind == team.WantRecord {
			who = j.task.Work.Member
		}
		j.member, _ = s.Member(who)
		j.alone = len(s.Alongside(id)) == 0
	})
	if j == nil || j.team.CleanedUp {
		return nil
	}
	on := j.member.Machine
	if j.kind == team.WantRecord {
		on = j.task.Work.Machine
	}
	if on != t.machine { // another machine has that work
		return nil
	}
	j.key = fmt.Sprintf("%s/%s/%d", j.kind, id, j.task.Fence)
	j.dir = j.team.Dir
	if j.member.Isolation == team.Worktree {
		p := j.place(t.teamDir)
		j.dir, j.branch = p.Dir, p.Branch
		if _, err := os.Stat(j.dir); err != nil && j.kind == team.WantBase {
			return nil // its session makes that record
		}
		return j
	}
	if !t.records(j.dir) {
		return nil
	}
	return j
}

// records reports whether the work of tasks in dir can be recorded.
func (t *tracer) records(dir string) bool {
	if t.project != nil {
		return t.project.Records(dir)
	}
	_, ok := project.Top(dir)
	return ok
}

// record makes the wanted record of the task, or records why it cannot be made.
func (t *tracer) record(id string) {
	ctx, cancel := context.WithTimeout(t.ctx, workTime)
	defer cancel()
	var err error
	for try := range traceTries {
		if try > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(lookPause):
			}
		}
		if err = t.attempt(ctx, id); err == nil || t.ctx.Err() != nil {
			return
		}
	}
	j := t.job(id)
	if j == nil {
		return
	}
	work := team.Work{Member: j.member.Name, Machine: t.machine, Branch: j.branch, Fence: j.task.Fence, Left: []string{brief(err)}}
	if j.kind == team.WantRecord {
		work.Base, work.Fence = j.task.Work.Base, j.task.Work.Fence
	}
	t.log(fmt.Sprintf("the work of %s on task %s cannot be recorded: %v", j.member.Name, j.task.Called(), err))
	if err := t.report(context.WithoutCancel(ctx), id, work); err != nil {
		t.log(err.Error())
		t.refuse(j.key)
	}
}

// refuse pauses a want for a while: a full disk may have space again.
func (t *tracer) refuse(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused[key] = true
	time.AfterFunc(refusedPause, func() {
		t.mu.Lock()
		delete(t.refused, key)
		t.mu.Unlock()
		if t.again != nil {
			t.again()
		}
	})
}

func brief(err error) string {
	return excerpt.Line(err.Error(), 500)
}

// report sends the record. A refusal because the state has changed is not an error: the next look
// shows what is wanted now.
func (t *tracer) report(ctx context.Context, task string, work team.Work) error {
	_, err := t.replica.Do(ctx, team.Command{Actor: t.actor, Body: &team.RecordWork{Task: task, Work: work}})
	if replica.Broken(err) && t.broken != nil {
		t.broken(err)
	}
	if team.CodeOf(err) == team.Conflict {
		return nil
	}
	return err
}

// attempt makes the wanted record of the task, while holding its directory.
func (t *tracer) attempt(ctx context.Context, id string) error {
	j := t.job(id)
	if j == nil {
		return nil
	}
	p, done, err := t.hold(ctx, j.dir)
	if err != nil {
		return err
	}
	defer done()
	if j.kind == team.WantBase { // work that was completed here before must not be mixed with this task's
		if err := t.before(ctx, p, j); err != nil {
			return err
		}
	}
	if j = t.job(id); j == nil {
		return nil
	}
	return t.trace(ctx, p, j)
}

// hold waits until the directory is free.
func (t *tracer) hold(ctx context.Context, dir string) (*tracedPlace, func(), error) {
	t.mu.Lock()
	p := t.places[dir]
	if p == nil {
		p = &tracedPlace{busy: make(chan struct{}, 1)}
		t.places[dir] = p
	}
	t.mu.Unlock()
	select {
	case p.busy <- struct{}{}:
		return p, func() { <-p.busy }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// before records what the completed tasks in the directory of j did.
func (t *tracer) before(ctx context.Context, p *tracedPlace, j *job) error {
	var open []team.Task
	t.replica.View(func(s *team.State) { open = s.Unrecorded() })
	for _, task := range open {
		if other := t.job(task.ID); other != nil && other.dir == j.dir && other.kind == team.WantRecord {
			if err := t.trace(ctx, p, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// trace makes the commit and records it.
func (t *tracer) trace(ctx context.Context, p *tracedPlace, j *job) (err error) {
	w := team.Work{Member: j.member.Name, Machine: t.machine, Branch: j.branch, Fence: j.task.Fence}
	if t.project != nil {
		if j.kind == team.WantRecord {
			w.Base, w.Fence = j.task.Work.Base, j.task.Work.Fence
		}
		if err := t.project.Record(ctx, j.kind, j.task, &w); err != nil {
			return err
		}
		return t.report(ctx, j.task.ID, w)
	}
	was := j.task.Work
	switch {
	case j.kind == team.WantBase && j.branch != "":
		err = t.beginInWorktree(ctx, j, &w)
	case j.kind == team.WantBase:
		err = t.beginShared(ctx, p, j, &w)
	case j.branch != "":
		w.Base, w.Fence = was.Base, was.Fence
		w.Commit, w.Left, err = worktree.Commit(ctx, t.procs, j.place(t.teamDir), j.title()+"\n")
	default:
		w.Base, w.Fence = was.Base, was.Fence
		err = t.endShared(ctx, p, j, &w)
	}
	if err != nil {
		return err
	}
	if j.kind == team.WantRecord {
		w.Left = append(slices.Clone(was.Left), w.Left...)
		if late := was.Since.Sub(j.task.StartedAt); j.task.StartedAt != 0 &&
			late > tracePatience {
			w.Left = append(w.Left, fmt.Sprintf("what the task changed in its first %s (the repository was looked at "+
				"only then)", late))
		}
		if err := t.files(ctx, j, &w); err != nil {
			return err
		}
		if j.branch != "" {
			if err := publish(ctx, t.procs, j.team, j.member.Name); err != nil {
				w.Left = append(w.Left, "the branch is on its machine alone: "+brief(err))
			}
		}
	}
	if n := len(w.Left) - mostLeft; n > 0 {
		w.Left = append(w.Left[:mostLeft:mostLeft], fmt.Sprintf("%d more", n))
	}
	if err := t.keep(ctx, j, w); err != nil {
		return err
	}
	return t.report(ctx, j.task.ID, w)
}

// uncommittedError reports that a member's work could not be committed, for a reason that stays.
type uncommittedError struct{ err error }

func (e *uncommittedError) Error() string { return e.err.Error() }
func (e *uncommittedError) Unwrap() error { return e.err }

// commit commits what the member left uncommitted in its worktree, if it has one, for a task that
// has no record. The error is an [uncommittedError] if a later attempt is unlikely to succeed.
func (t *tracer) commit(ctx context.Context, p worktree.Place, message string) error {
	if _, err := os.Stat(p.Dir); err != nil || t.project != nil {
		return nil
	}
	_, done, err := t.hold(ctx, p.Dir)
	if err != nil {
		return err
	}
	defer done()
	_, _, err = worktree.Commit(ctx, t.procs, p, message)
	if _, locked := errors.AsType[*git.LockedError](err); err == nil || locked || ctx.Err() != nil {
		return err
	}
	return &uncommittedError{err}
}

// title returns the subject of the commit with the task's work. It contains no words of an agent.
func (j *job) title() string {
	return fmt.Sprintf("Task %s (%s, team %s)", j.task.ID, j.member.Name, j.team.Name)
}

const earlier = "the work of an earlier attempt at the task (it was there already)"

// beginInWorktree takes the commit that is checked out as the task's start. A task that its member
// continues keeps its old start, while the branch still has that commit and something on top of it.
func (t *tracer) beginInWorktree(ctx context.Context, j *job, w *team.Work) error {
	if w.Base = worktree.Head(ctx, t.procs, j.dir); w.Base == "" {
		return fmt.Errorf("the worktree %s has no commit checked out", j.dir)
	}
	was := j.task.Work
	if was == nil || was.Base == "" || was.Base == w.Base {
		return nil
	}
	if was.Branch == w.Branch {
		follows, err := worktree.Follows(ctx, t.procs, j.dir, was.Base, w.Base)
		if err == nil && follows {
			var merged bool
			if merged, err = worktree.Follows(ctx, t.procs, j.team.Dir, w.Base, "HEAD"); err == nil && !merged {
				w.Base = was.Base
				return nil
			}
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	w.Left = []string{earlier}
	return nil
}

// beginShared takes a snapshot of the team's directory as the task's start. A task that is
// continued keeps its old start, unless others had tasks there since.
func (t *tracer) beginShared(ctx context.Context, p *tracedPlace, j *job, w *team.Work) error {
	was := j.task.Work
	if was != nil && was.Base != "" && was.Branch == "" && j.alone {
		w.Base, w.Left = was.Base, was.Left
		return nil
	}
	snap, err := t.shoot(ctx, p, j, "", "Before task "+j.task.ID+" of team "+j.team.Name+"\n")
	if err != nil {
		return err
	}
	p.heads[snap.Commit] = snap.Head
	if w.Base = snap.Commit; was != nil && was.Base != "" && was.Base != w.Base {
		w.Left = []string{earlier}
	}
	return nil
}

// endShared takes a snapshot of the team's directory as the task's end.
func (t *tracer) endShared(ctx context.Context, p *tracedPlace, j *job, w *team.Work) error {
	snap, err := t.shoot(ctx, p, j, w.Base, j.title()+"\n")
	if err != nil {
		return err
	}
	w.Commit, w.Left = snap.Commit, snap.Left
	w.Left = append(w.Left, worktree.Named(snap.Ignored, "ignored by git")...)
	if snap.Head == "" || snap.Head == w.Base || p.heads[w.Base] == snap.Head {
		return nil
	}
	old, err := worktree.Follows(ctx, t.procs, j.dir, snap.Head, w.Base)
	if err == nil && !old {
		w.Left = append(w.Left, fmt.Sprintf("who made the commits up to %.12s, which were checked out meanwhile: "+
			"their files are among these", snap.Head))
	}
	return err
}

func (t *tracer) shoot(ctx context.Context, p *tracedPlace, j *job, parent,
	message string) (snap worktree.Snapshot, err error) {
	if p.shots == nil {
		if p.shots, err = worktree.OpenSnapshots(ctx, t.procs, j.dir, t.scratch); err != nil {
			return snap, err
		}
		p.heads = map[string]string{}
		p.mine = newPersonal(t.procs, j.team, t.teamDir)
	}
	if parent == "" {
		return p.shots.Take(ctx, parent, message, p.mine.except(ctx))
	}
	return p.shots.TakeAll(ctx, parent, message, p.mine.except(ctx))
}

// files lists the files that differ between the two commits.
func (t *tracer) files(ctx context.Context, j *job, w *team.Work) error {
	files, repositories, err := worktree.Differing(ctx, t.procs, j.team.Dir, w.Base, w.Commit)
	if err != nil {
		return err
	}
	w.Left = append(w.Left, worktree.Named(repositories, "a repository of its own")...)
	if n := len(files) - team.MaxFiles; n > 0 {
		files = files[:team.MaxFiles]
		w.Left = append(w.Left, fmt.Sprintf("the names of %d more files that differ between the commits %.12s and "+
			"%.12s", n, w.Base, w.Commit))
	}
	w.Files = files
	return nil
}

// keep makes the commits reachable from the team's reference.
func (t *tracer) keep(ctx context.Context, j *job, w team.Work) error {
	var commits []string
	t.mu.Lock()
	for _, c := range []string{w.Base, w.Commit} {
		if c != "" && !t.kept[c] && !slices.Contains(commits, c) {
			commits = append(commits, c)
		}
	}
	tip := t.tip
	t.mu.Unlock()
	if len(commits) == 0 {
		return nil
	}
	what := "what it starts from"
	if w.Commit != "" {
		what = "what it did"
	}
	tip, err := worktree.KeepCommits(ctx, t.procs, j.team.Dir, worktree.WorkRef(j.team.Name), tip,
		fmt.Sprintf("Keep of task %s of team %s %s\n", j.task.ID, j.team.Name, what), commits...)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tip = tip
	for _, c := range commits {
		t.kept[c] = true
	}
	return nil
}
