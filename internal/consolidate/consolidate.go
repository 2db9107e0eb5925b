package consolidate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/coord"
	"cadre/internal/desk"
	"cadre/internal/proc"
	"cadre/internal/team"
)

// Options say what to consolidate. Of the functions all may be nil.
type Options struct {
	Desk     *desk.Desk
	Dir      string // the team's folder
	Procs    *proc.Register
	Actor    string   // who consolidates: the user, or the lead
	Except   []string // folders in which cadre keeps its own things
	Message  string   // of the commit; "" for one that is made from the tasks
	Include  []string // paths from the top of the work tree; see [team.Consolidation]
	NoCommit bool
	// Anew gives up an attempt that is under way, and begins another one with these options; else that one is gone on with, with its own.
	Anew bool
	// Checkpoint saves the team before anything is done. Its failure is told, and no more.
	Checkpoint func(context.Context) error
	// Saw is told every record of this consolidation, and Checking the name of each check that begins.
	Saw      func(*team.Record)
	Checking func(check string)
	Log      func(string)

	at func(string) // for tests: called between any two steps, with the name of the one before
}

// ErrCheck is in the chain of what [Run] returns when a check did not pass.
var ErrCheck = errors.New("a check failed")

// FailedCheck is how a check did not pass.
type FailedCheck struct{ Name, How, Output string }

func (e *FailedCheck) Error() string {
	return fmt.Sprintf("the check %s failed: %s; nothing was committed, and the team goes on", e.Name, e.How)
}

func (e *FailedCheck) Unwrap() []error {
	return []error{ErrCheck, &team.Error{Code: team.NotReady, Text: e.Error()}}
}

const (
	lockFile     = "consolidate.lock"
	scratch      = "consolidation" // folder in the team's
	checkTimeout = 30 * time.Minute
	shellGrace   = 10 * time.Second // what a shell has to finish when it is dismissed
	endPatience  = 3 * time.Minute  // for a member to end, and its work to be merged
)

// Run consolidates the team, from where an attempt before this one was. It returns the record of the team.
func Run(ctx context.Context, o Options) (*Record, error) {
	w, done, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	defer done()
	if c := w.state(); c.Open() && o.Anew {
		if err := w.giveUp(ctx, "it is begun anew"); err != nil {
			return nil, err
		}
	}
	t := o.Desk.Team()
	if c := w.state(); t.Status == team.TeamComplete && c.Step == team.Done {
		return seal(ctx, o.Desk, o.Dir)
	} else if !c.Open() {
		if err := w.begin(ctx); err != nil {
			return nil, err
		}
		w.step("began")
	}
	for {
		c := w.state()
		var err error
		switch c.Step {
		case team.Began:
			err = w.merge(ctx)
		case team.Merged:
			err = w.stage(ctx)
		case team.Staged:
			err = w.check(ctx)
		case team.Made:
			err = w.place(ctx)
		case team.Done:
			return seal(ctx, o.Desk, o.Dir)
		default:
			return nil, notReady("the consolidation was given up: %s", c.Reason)
		}
		if err != nil {
			return nil, w.failed(ctx, err)
		}
		w.step(string(w.state().Step))
	}
}

// RollBack gives up the attempt that is under way: nothing is committed, and the team goes on. It is refused when HEAD names the commit already.
func RollBack(ctx context.Context, o Options, reason string) error {
	w, done, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	c := w.state()
	if !c.Open() {
		return &team.Error{Code: team.Nothing, Text: fmt.Sprintf("no consolidation of team %s is under way", o.Desk.Team().Name)}
	}
	return w.giveUp(ctx, reason)
}

// work is a consolidation under way in this process.
type work struct {
	Options
	repo *repository // its top is "" where there is none
}

func prepare(ctx context.Context, o Options) (w *work, done func(), err error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	lock, err := proc.NewLock(filepath.Join(o.Dir, lockFile))
	if errors.Is(err, proc.ErrHeld) {
		return nil, nil, notReady("team %s is being consolidated by another process", o.Desk.Team().Name)
	}
	if err != nil {
		return nil, nil, err
	}
	o.Except = append(realPaths(o.Except), realPaths([]string{o.Dir})...)
	w = &work{Options: o}
	if err = o.Desk.Refresh(ctx); err == nil {
		w.repo, err = open(ctx, o.Procs, o.Desk.Team().Dir)
	}
	if err != nil {
		lock.Unlock()
		return nil, nil, err
	}
	return w, func() {
		os.RemoveAll(filepath.Join(o.Dir, scratch))
		lock.Unlock()
	}, nil
}

func (w *work) step(name string) {
	if w.at != nil {
		w.at(name)
	}
}

func (w *work) state() team.Consolidation { return w.Desk.Team().Consolidation }

// do sends a command and tells of its record.
func (w *work) do(ctx context.Context, body team.Body) error {
	receipt, err := w.Desk.Do(ctx, team.Command{Actor: w.Actor, Body: body})
	if err == nil && receipt.Record != nil && w.Saw != nil {
		w.Saw(receipt.Record)
	}
	return err
}

func (w *work) index() string { return filepath.Join(w.Dir, scratch, "index") }

// commits reports whether there is a commit to be made, and refuses where nobody can tell what of.
func (w *work) commits(c team.Consolidation) (bool, error) {
	t := w.Desk.Team()
	switch {
	case c.NoCommit || w.repo.top == "":
		return false, nil
	case t.Base.Unknown != "":
		return false, notReady("what team %s did cannot be told from what was there before: %s. Commit it yourself, then: cadre consolidate %s --no-commit", t.Name, t.Base.Unknown, t.Name)
	case t.Base.Top != w.repo.top:
		was := "in no repository, or nobody looked"
		if t.Base.Top != "" {
			was = "in " + t.Base.Top
		}
		return false, notReady("what team %s did cannot be told from what was there before: when it was created it worked %s, and now in the repository %s. Commit it yourself, then: cadre consolidate %s --no-commit",
			t.Name, was, w.repo.top, t.Name)
	}
	return true, w.repo.quiet()
}

// ours is what is to be committed, or why that cannot be said.
func (w *work) ours(ctx context.Context, c team.Consolidation) ([]string, error) {
	s, err := w.repo.sort(ctx, w.Desk.Team().Base, c.Include, w.Except)
	if err != nil {
		return nil, err
	}
	if len(s.both) > 0 {
		return nil, notReady("%s had changes before the team was there, and was changed since; nobody can tell whose they are. Commit or stash them (git stash), or have all of it committed: --include %s",
			names(s.both), s.both[0])
	}
	return s.ours, nil
}

// begin looks first whether anything stands in the way, so that nothing is recorded for nothing.
func (w *work) begin(ctx context.Context) error {
	c := team.Consolidation{Include: w.Include, NoCommit: w.NoCommit}
	commits, err := w.commits(c)
	if err == nil && commits {
		_, err = w.ours(ctx, c)
	}
	if err != nil {
		return err
	}
	return w.do(ctx, &team.Consolidate{Message: w.Message, Include: w.Include, NoCommit: w.NoCommit})
}

// merge brings home what members did in worktrees of their own.
func (w *work) merge(ctx context.Context) error {
	if w.Checkpoint != nil {
		if err := w.Checkpoint(ctx); err != nil {
			w.Log("no checkpoint before the consolidation: " + err.Error())
		}
	}
	w.step("checkpoint")
	var isolated []team.Member
	w.Desk.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Isolation == team.Worktree && (m.Status.Running() || coord.Worktree(w.Dir, m.Name)) {
				isolated = append(isolated, m)
			}
		}
	})
	var home []string
	for _, m := range isolated {
		if err := w.home(ctx, m); err != nil {
			return err
		}
		home = append(home, m.Name)
		w.step("home")
	}
	return w.do(ctx, &team.ReportMerged{Attempt: w.state().Attempt, Members: home})
}

// home ends the member and has its work merged: by its host, or here where none lives.
func (w *work) home(ctx context.Context, m team.Member) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endPatience, fmt.Errorf("%s has not ended", m.Name))
	defer cancel()
	if m.Status.Running() && m.Shutdown.Request == "" {
		grace := time.Duration(0)
		if m.Agent == team.Shell {
			grace = shellGrace
		}
		err := w.do(ctx, &team.RequestShutdown{Member: m.Name, Reason: "All tasks are done; thank you.", Deadline: desk.Now() + team.Time(grace.Milliseconds())})
		if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
			return err
		}
	}
	hosts := filepath.Join(w.Dir, "hosts")
	for {
		var seq int64
		w.Desk.View(func(s *team.State) { m, _ = s.Member(m.Name); seq = s.Seq() })
		if m.Host == "" || !coord.Hosted(hosts) {
			if err := coord.Clear(ctx, hosts, w.Log); err != nil {
				return err
			}
			if err := coord.BringHome(ctx, w.Desk, w.Procs, w.Dir, m.Name, w.Log); err != nil {
				return err
			}
			if !m.Status.Running() {
				return nil
			}
			_, err := w.Desk.Do(ctx, team.Command{Actor: team.User, Body: &team.ReportStopped{Member: m.Name, Reason: "its work is home"}})
			if code := team.CodeOf(err); code == team.Finished {
				return nil
			}
			return err
		}
		waiting, stop := context.WithTimeout(ctx, time.Second) // its host may die meanwhile
		err := w.Desk.Wait(waiting, seq)
		stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && waiting.Err() == nil {
			return err
		}
	}
}

// stage makes the tree.
func (w *work) stage(ctx context.Context) error {
	c := w.state()
	body := &team.ReportStaged{Attempt: c.Attempt}
	commits, err := w.commits(c)
	if err != nil {
		return err
	}
	if commits {
		paths, err := w.ours(ctx, c)
		if err != nil {
			return err
		}
		if body.Parent, err = w.repo.head(ctx); err != nil {
			return err
		}
		if body.Tree, err = w.repo.stage(ctx, w.index(), body.Parent, paths); err != nil {
			return err
		}
		changes, err := w.repo.changes(ctx, body.Parent, body.Tree)
		if err != nil {
			return err
		}
		body.Files = int64(len(changes))
	}
	w.step("tree")
	return w.do(ctx, body)
}

// check runs the checks that have not passed yet, and makes the commit.
func (w *work) check(ctx context.Context) error {
	c := w.state()
	if err := w.stands(ctx, c, "before the checks were through"); err != nil {
		return err
	}
	for _, check := range w.Desk.Team().Checks {
		if slices.Contains(c.Passed, check.Name) {
			continue
		}
		if err := w.try(ctx, c, check); err != nil {
			return err
		}
		w.step("check")
	}
	if err := w.stands(ctx, c, "while the checks ran, maybe by them"); err != nil {
		return err
	}
	body := &team.ReportMade{Attempt: c.Attempt}
	if c.Tree != "" {
		var err error
		if body.Commit, err = w.repo.commit(ctx, c.Parent, c.Tree, w.message(c)); err != nil {
			return err
		}
	}
	w.step("commit")
	return w.do(ctx, body)
}

// stands refuses when what was staged is not what is there.
func (w *work) stands(ctx context.Context, c team.Consolidation, when string) error {
	if c.Tree == "" {
		return nil
	}
	if err := w.repo.quiet(); err != nil {
		return err
	}
	head, err := w.repo.head(ctx)
	if err != nil {
		return err
	}
	if head != c.Parent {
		return notReady("HEAD was moved from %.12s to %.12s %s; consolidate again", c.Parent, head, when)
	}
	if _, err := w.repo.text(ctx, "cat-file", "-e", c.Tree); err != nil {
		return notReady("the tree that was staged is gone; consolidate again")
	}
	changed, err := w.repo.unstaged(ctx, w.index(), c.Parent, c.Tree)
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return notReady("%s was changed %s; look at it, and consolidate again", names(changed), when)
	}
	return nil
}

// try runs one check.
func (w *work) try(ctx context.Context, c team.Consolidation, check team.Check) error {
	if w.Checking != nil {
		w.Checking(check.Name)
	}
	t := w.Desk.Team()
	limit := checkTimeout
	if check.Seconds > 0 {
		limit = time.Duration(check.Seconds) * time.Second
	}
	running, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := proc.Capture{Head: team.MaxOutput / 4, Tail: team.MaxOutput / 2}
	env := append(plain(os.Environ()), "CADRE_TREE="+c.Tree, "CADRE_PARENT="+c.Parent)
	if c.Tree != "" {
		env = append(env, "CADRE_INDEX="+w.index())
	}
	exit, err := w.Procs.Run(running, proc.Cmd{Args: []string{"/bin/sh", "-c", check.Command}, Dir: t.Dir, Env: env, Stdout: &out, Stderr: &out, Task: "check " + check.Name}, proc.Ladder{})
	how := ""
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted in the check %s: %w", check.Name, context.Cause(ctx))
	case running.Err() != nil:
		how = fmt.Sprintf("it took longer than %s", limit)
	case err != nil && !errors.Is(err, proc.ErrLeft):
		return err
	case exit.Code != 0:
		how = exit.String()
	}
	report := &team.ReportCheck{Attempt: c.Attempt, Check: check.Name, Millis: exit.Elapsed.Milliseconds(), Failure: how}
	if how == "" {
		return w.do(ctx, report)
	}
	report.Output = out.String()
	report.Left = w.left(ctx, c)
	if err := w.do(ctx, report); err != nil {
		return err
	}
	return &FailedCheck{check.Name, how, report.Output}
}

// left is what the checks left behind.
func (w *work) left(ctx context.Context, c team.Consolidation) []team.Fact {
	if c.Step != team.Staged && c.Step != team.Made || c.NoCommit || w.repo.top == "" {
		return nil
	}
	staged, err := w.repo.changes(ctx, c.Parent, c.Tree)
	if err == nil {
		var left []team.Fact
		if left, err = w.repo.left(ctx, w.Desk.Team().Base, pathsOf(staged), w.Except); err == nil {
			return left
		}
	}
	w.Log("what the checks left behind is not known, and will be taken for the team's: " + err.Error())
	return nil
}

// place has HEAD name the commit, brings the index up to that, and ends the team.
func (w *work) place(ctx context.Context) error {
	c := w.state()
	if c.Commit != "" {
		head, err := w.repo.head(ctx)
		if err != nil {
			return err
		}
		there, err := w.repo.follows(ctx, c.Commit, head)
		if err != nil {
			return err
		}
		if !there {
			if head != c.Parent {
				return notReady("HEAD was moved from %.12s to %.12s before the commit was there; consolidate again", c.Parent, head)
			}
			if err := w.repo.quiet(); err != nil {
				return err
			}
			if err := w.repo.move(ctx, c.Commit, c.Parent, "cadre: team "+w.Desk.Team().Name); err != nil {
				return err
			}
		}
		w.step("head")
		changes, err := w.repo.changes(ctx, c.Parent, c.Tree)
		if err == nil {
			err = w.repo.follow(ctx, w.Desk.Team().ID, changes)
		}
		if err != nil {
			return err
		}
		w.step("index")
	}
	return w.do(ctx, &team.ReportConsolidated{Attempt: c.Attempt})
}

// failed gives the attempt up when it cannot be finished as things are. Whatever else went wrong, the same attempt is tried again.
func (w *work) failed(ctx context.Context, err error) error {
	c := w.state()
	code := team.CodeOf(err)
	if !c.Open() || errors.Is(err, ErrCheck) || code != team.NotReady && code != team.Invalid {
		return err
	}
	if gone := w.giveUp(ctx, err.Error()); gone != nil {
		return errors.Join(err, gone)
	}
	return err
}

// giveUp ends the attempt without a commit.
func (w *work) giveUp(ctx context.Context, reason string) error {
	c := w.state()
	if c.Step == team.Made && c.Commit != "" {
		head, err := w.repo.head(ctx)
		if err != nil {
			return err
		}
		if there, err := w.repo.follows(ctx, c.Commit, head); err != nil {
			return err
		} else if there {
			return notReady("the work is committed already (%.12s); cadre consolidate %s finishes", c.Commit, w.Desk.Team().Name)
		}
	}
	return w.do(ctx, &team.AbandonConsolidation{Attempt: c.Attempt, Reason: reason, Left: w.left(ctx, c)})
}
