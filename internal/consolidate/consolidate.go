package consolidate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options say what to consolidate. Of the functions all may be nil.
type Options struct {
	Replica  *replica.Replica
	Dir      string   // the team's folder
	Actor    string   // who consolidates: the user, or the lead
	Except   []string // folders in which cadre keeps its own things
	Message  string   // of the commit; "" for one that is made from the tasks
	Include  []string // paths from the top of the work tree; see [team.Consolidation]
	Only     []string
	NoCommit bool
	Clean    bool     // the checks run in a clean checkout of what is to be committed
	Changes  bool     // files that the checks write are committed with the work
	Without  []string // tasks whose missing work the team is completed without
	// Anew gives up an attempt that is under way, and begins another one with these options; else
	// that one is gone on with, with its own.
	Anew bool
	// Beside names the other teams for which [Beside] holds. Where there are any, only paths that
	// were named are committed; nil for none.
	Beside func(ctx context.Context) ([]string, error)
	// Staged is told what the commit is of, once: each path with the letter that git has for what
	// became of it.
	Staged func(changes []string)
	// Saw is told every record of this consolidation, and Checking the name of each check that
	// begins.
	Saw      func(*team.Record)
	Checking func(check string)
	Log      func(string)

	at       func(string)  // for tests: called between any two steps, with the name of the one before
	patience time.Duration // for tests: with other git commands
}

const (
	lockFile     = "consolidate.lock"
	scratch      = "consolidation" // folder in the team's
	children     = "processes"     // folder in that one
	saveTime     = time.Minute     // for a checkpoint
	checkTimeout = 30 * time.Minute
	endPatience  = 3 * time.Minute // for a member to end, and its work to be merged
)

// within are the options with the folders that do not count as git names them, and the team's among
// these.
func (o Options) within() Options {
	o.Except = realPaths(append(slices.Clip(o.Except), o.Dir))
	return o
}

// Running reports whether a process of this machine consolidates the team whose folder that is, or
// takes a consolidation back.
func Running(teamDir string) bool { return filelock.Held(filepath.Join(teamDir, lockFile)) }

// Run consolidates the team, from where an attempt before this one was. It returns the record of
// the team.
func Run(ctx context.Context, o Options) (*Record, error) {
	w, done, err := prepare(ctx, o, false)
	if err != nil {
		return nil, err
	}
	defer done()
	if c := w.state(); c.Open() && o.Anew {
		if err := w.takeBack(ctx, "it is begun anew"); err != nil {
			return nil, err
		}
	}
	t := o.Replica.Team()
	if c := w.state(); t.Status == team.TeamComplete && c.Step == team.Done {
		w.tell(ctx, c)
		return w.seal(ctx)
	} else if !c.Open() {
		if err := w.begin(ctx); err != nil {
			return nil, err
		}
		w.step("began")
	}
	told := false
	for {
		c := w.state()
		if !told && c.Tree != "" {
			w.tell(ctx, c)
			told = true
		}
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
			return w.seal(ctx)
		default:
			err = w.ended()
		}
		if err != nil {
			return nil, w.failed(ctx, err)
		}
		w.step(string(w.state().Step))
	}
}

// RollBack gives up the attempt that is under way: nothing is committed, the work tree is as it
// was, and the team goes on. So does one that was only marked for its end. It is refused when HEAD
// names the commit already.
func RollBack(ctx context.Context, o Options, reason string) error {
	w, done, err := prepare(ctx, o, false)
	if err != nil {
		return err
	}
	defer done()
	c := w.state()
	if t := o.Replica.Team(); !c.Open() && t.Status == team.TeamConsolidating { // it was only marked for its end
		return w.do(ctx, &team.SetStatus{Status: team.TeamActive, Reason: reason})
	}
	if !c.Open() {
		return &team.Error{Code: team.Nothing, Text: fmt.Sprintf("no consolidation of team %s is under way",
			o.Replica.Team().Name)}
	}
	return w.takeBack(ctx, reason)
}

// Settle ends what is left of an attempt that the end of the team has just ended: it waits for
// whoever was at it, and takes out of the work tree what one that was killed had brought there.
func Settle(ctx context.Context, o Options) error {
	w, done, err := prepare(ctx, o, true)
	if err != nil {
		return err
	}
	defer done()
	if c := w.state(); c.Step == team.Abandoned {
		return w.lift(ctx, c)
	}
	return nil
}

// work is a consolidation under way in this process.
type work struct {
	Options
	procs  *proc.Register
	repo   *repository // its top is "" where there is none
	fresh  bool        // what is staged was staged by this process, just now
	notice string      // on where its checkpoints are, that was told
	once   bool        // the lead is asked once to merge a commit
}

// prepare makes sure that nobody else consolidates the team, and that nothing of somebody who was
// killed at it still runs. With wait it waits for the other one.
func prepare(ctx context.Context, o Options, wait bool) (w *work, done func(), err error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	path := filepath.Join(o.Dir, lockFile)
	lock, err := filelock.New(path)
	if wait && errors.Is(err, filelock.ErrHeld) {
		lock, err = filelock.Wait(ctx, path)
	}
	if errors.Is(err, filelock.ErrHeld) {
		return nil, nil, notReady("team %s is being consolidated by another process", o.Replica.Team().Name)
	}
	if err != nil {
		return nil, nil, err
	}
	w = &work{Options: o.within()}
	done = func() {
		if w.procs != nil {
			if err := w.sweep(context.WithoutCancel(ctx)); err != nil {
				w.Log("the clean checkout of the checks stays where it is: " + err.Error())
			}
			// the next one ends what is left, by its record
			if err := w.procs.Close(context.WithoutCancel(ctx)); err != nil {
				w.Log(err.Error())
			} else {
				os.RemoveAll(filepath.Join(o.Dir, scratch))
			}
		}
		lock.Unlock()
	}
	if err := w.start(ctx); err != nil {
		done()
		return nil, nil, err
	}
	return w, done, nil
}

func (w *work) start(ctx context.Context) error {
	host := filepath.Join(w.Dir, scratch, children)
	strays, err := proc.EndStrays(ctx, host)
	for _, stray := range strays {
		w.Log(fmt.Sprintf("ended what a consolidation that was killed had left running (%s): process %d",
			stray.Task, stray.Pid))
	}
	if err != nil {
		return err
	}
	// It is listed because this process may be a host of sessions, too: then its checks are the
	// user's by their records.
	list := proc.Listing{Folder: filepath.Join(filepath.Dir(w.Dir), proc.ListFolder), Team: filepath.Base(w.Dir)}
	if w.procs, err = proc.OpenListed(host, list); err != nil {
		return err
	}
	if err := w.Replica.Refresh(ctx); err != nil {
		return err
	}
	if w.repo, err = open(ctx, w.procs, w.Replica.Team().Dir); err != nil {
		return err
	}
	w.repo.Patience = w.patience
	return nil
}

func (w *work) step(name string) {
	if w.at != nil {
		w.at(name)
	}
}

func (w *work) state() team.Consolidation { return w.Replica.Team().Consolidation }

// do sends a command and tells of its record.
func (w *work) do(ctx context.Context, body team.Body) error {
	receipt, err := w.Replica.Do(ctx, team.Command{Actor: w.Actor, Body: body})
	if err == nil && receipt.Record != nil && w.Saw != nil {
		w.Saw(receipt.Record)
	}
	return err
}

// index is that of what is to be committed; a check finds it as CADRE_INDEX.
func (w *work) index() string { return w.scratch("index") }

func (w *work) scratch(name string) string { return filepath.Join(w.Dir, scratch, name) }

// commits reports whether there is a commit to be made, and refuses where nobody can tell what of.
func (w *work) commits(ctx context.Context, c team.Consolidation) (bool, error) {
	t := w.Replica.Team()
	switch {
	case c.NoCommit:
		return false, nil
	case w.repo.top == "" && t.Base.Top != "":
		return false, w.gone()
	case w.repo.top == "":
		return false, nil
	case t.Base.Unknown != "":
		return false, notReady("what team %s did cannot be told from what was there before: %s. Commit it yourself "+
			"first", t.Name, t.Base.Unknown).With(w.hint(team.ActSkipCommit))
	case t.Base.Top != w.repo.top:
		was := "in no repository, or nobody looked"
		if t.Base.Top != "" {
			was = "in " + t.Base.Top
		}
		return false, notReady("what team %s did cannot be told from what was there before: when it was created it "+
			"worked %s, and now in the repository %s. Commit it yourself first", t.Name, was, w.repo.top).
			With(w.hint(team.ActSkipCommit))
	}
	branch, err := w.repo.checkpoints(ctx)
	if err != nil {
		return false, err
	}
	if branch != "" {
		return false, notReady("the branch of checkpoints %s is checked out in %s, and what is there is no work of "+
			"anybody; check out another one", branch, w.repo.top)
	}
	return true, w.repo.quiet()
}

// gone says that the repository in which the team has worked is not to be found.
func (w *work) gone() error {
	t := w.Replica.Team()
	if err := git.Installed(); err != nil {
		return notReady("team %s has worked in the repository %s, and there is no git to commit that with: %v. Have "+
			"git be found by PATH", t.Name, t.Base.Top, err).With(w.hint(team.ActSkipCommit))
	}
	return notReady("team %s has worked in the repository %s, and %s is in none any more. Bring it back",
		t.Name, t.Base.Top, t.Dir).With(w.hint(team.ActSkipCommit))
}

// lost is gone for an attempt that has staged something. It is given up only where nothing of it
// can be anywhere any more: without git nobody knows, and what it has brought into the work tree
// would stay there.
func (w *work) lost(c team.Consolidation) error {
	if err := git.Installed(); err != nil || c.Step == team.Made {
		// without the code, for which it would be given up
		gone := w.gone()
		return team.Hinted(fmt.Errorf("the consolidation stays as it is: %v", gone), team.HintsOf(gone)...)
	}
	return w.gone()
}

// selected is the team's work in the work tree. What is shown before a consolidation and what that
// stages both come from here.
func (w *work) selected(ctx context.Context, c team.Consolidation) (selection, error) {
	return w.repo.sort(ctx, w.Replica.Team().Base, c, w.aside(c))
}

// ours is what is to be committed, or why that cannot be said.
func (w *work) ours(ctx context.Context, c team.Consolidation) ([]string, error) {
	s, err := w.selected(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(s.both) > 0 {
		return nil, notReady("%s had changes before the team was there, and was changed since; nobody can tell whose "+
			"they are. Commit or stash them (git stash), or have all of it committed", names(s.both)).
			With(team.Hint{Action: team.ActIncludeFiles, Team: w.Replica.Team().Name, Paths: s.both[:1]})
	}
	if len(c.Only) > 0 || len(s.ours) == 0 || w.Beside == nil {
		return s.ours, nil
	}
	others, err := w.Beside(ctx)
	if err != nil || len(others) == 0 {
		return s.ours, err
	}
	t := w.Replica.Team()
	return nil, team.Refuse(team.Conflict, "team %s works in %s too, or did since team %s was created, and nobody can "+
		"tell whose work this is: %s. Say what is to be committed for %s", strings.Join(others, ", "), t.Base.Top, t.Name,
		names(s.ours), t.Name).With(w.hint(team.ActCommitOnly))
}

// begin looks first whether anything stands in the way, so that nothing is recorded for nothing.
func (w *work) begin(ctx context.Context) error {
	c := team.Consolidation{Include: w.Include, Only: w.Only, NoCommit: w.NoCommit}
	commits, err := w.commits(ctx, c)
	if err == nil {
		err = w.whole(c)
	}
	if err == nil && commits {
		_, err = w.ours(ctx, c)
	}
	if err != nil {
		return err
	}
	return w.do(ctx, &team.Consolidate{Message: w.Message, Include: w.Include, Only: w.Only, NoCommit: w.NoCommit,
		Clean: w.Clean, Changes: w.Changes, Without: w.Without})
}

// merge has what members did in worktrees of their own on their branches.
func (w *work) merge(ctx context.Context) error {
	if err := host.RecordWork(ctx, w.Replica, w.procs, w.Dir, "", w.Log); err != nil {
		return err
	}
	w.save(ctx)
	w.step("checkpoint")
	var home []string
	for _, m := range w.isolated() {
		if err := w.home(ctx, m); err != nil {
			return err
		}
		home = append(home, m.Name)
		w.step("home")
	}
	return w.do(ctx, &team.ReportMerged{Attempt: w.state().Attempt, Members: home})
}

// save makes a checkpoint of the team. That it cannot be made, or not on its branch, is told, and
// no more.
func (w *work) save(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, saveTime, fmt.Errorf("it took longer than %s", saveTime))
	defer cancel()
	switch made, err := host.Checkpoint(ctx, w.Replica, w.Dir); {
	case err != nil:
		w.Log("no checkpoint of the consolidation: " + err.Error())
	case made.Notice != "" && w.repo.top != "" && w.notice != made.Notice:
		w.Log(made.Notice)
		w.notice = made.Notice
	}
}

// isolated are the members whose work may still be in a worktree of its own.
func (w *work) isolated() (all []team.Member) {
	w.Replica.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Isolation == team.Worktree && (m.Status.Running() || host.Worktree(w.Dir, m.Name)) {
				all = append(all, m)
			}
		}
	})
	return all
}

// home ends the member and has its work on its branch: by its host, or here where none lives.
func (w *work) home(ctx context.Context, m team.Member) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endPatience, fmt.Errorf("%s has not ended", m.Name))
	defer cancel()
	if m.Status.Running() && m.Shutdown.Request == "" {
		var request *team.RequestShutdown
		w.Replica.View(func(s *team.State) { request = host.Dismissal(s, m.Name) })
		err := w.do(ctx, request)
		if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
			return err
		}
	}
	hosts := filepath.Join(w.Dir, "hosts")
	for {
		var seq int64
		w.Replica.View(func(s *team.State) { m, _ = s.Member(m.Name); seq = s.Seq() })
		if m.Host == "" || !host.Hosted(hosts) {
			if err := host.Clear(ctx, hosts, w.Log); err != nil {
				return err
			}
			if err := host.LeaveWork(ctx, w.Replica, w.procs, w.Dir, m.Name, w.Log); err != nil {
				return err
			}
			if !m.Status.Running() {
				return nil
			}
			_, err := w.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.ReportStopped{Member: m.Name,
				Reason: team.WorkIsHome}})
			if team.CodeOf(err) == team.Finished {
				return nil
			}
			return err
		}
		waiting, stop := context.WithTimeout(ctx, time.Second) // its host may die meanwhile
		err := w.Replica.Wait(waiting, seq)
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
	commits, err := w.commits(ctx, c)
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
		before, err := w.repo.stage(ctx, w.index(), body.Parent, paths)
		if err != nil {
			return err
		}
		if body.Tree, body.Branches, err = w.join(ctx, body.Parent, before); err != nil {
			return err
		}
		changes, err := w.repo.changes(ctx, body.Parent, body.Tree)
		if err != nil {
			return err
		}
		switch body.Files = int64(len(changes)); {
		case len(body.Branches) > 0: // they are to be known as merged, also where nothing of them is left
			body.Before = before
		case body.Files == 0:
			body.Tree = ""
		}
	} else if err := w.leave(ctx); err != nil {
		return err
	}
	w.step("tree")
	w.fresh = true
	return w.do(ctx, body)
}

// tell tells what the commit is of, where that can be said still.
func (w *work) tell(ctx context.Context, c team.Consolidation) {
	if w.Staged == nil || c.Tree == "" || w.repo.top == "" {
		return
	}
	changes, err := w.repo.changes(ctx, c.Parent, c.Tree)
	if err == nil {
		var all []string
		for _, one := range changes {
			all = append(all, one.Letter+" "+one.Path)
		}
		w.Staged(all)
	}
}

// seal saves the team as it is complete, and writes its record.
func (w *work) seal(ctx context.Context) (*Record, error) {
	// nobody needs it any more
	if err := worktree.Hide(ctx, w.procs, w.Replica.Team().Dir, host.MergedDir(w.Dir)); err != nil {
		w.Log("the merged worktree stays where it is: " + err.Error())
	}
	if err := w.forgetMissing(); err != nil {
		return nil, err
	}
	w.save(ctx) // whoever is killed here has the end of the team in a checkpoint
	r, err := seal(ctx, w.Replica, w.Dir)
	if err == nil {
		w.save(ctx) // with the record
	}
	return r, err
}

// failed gives the attempt up when it cannot be finished as things are. Whatever else went wrong,
// the same attempt is tried again.
func (w *work) failed(ctx context.Context, err error) error {
	c := w.state()
	code := team.CodeOf(err)
	if c.Step == team.Abandoned && !errors.Is(err, ErrCheck) { // by somebody else
		return errors.Join(err, w.lift(context.WithoutCancel(ctx), c))
	}
	if !c.Open() || errors.Is(err, ErrCheck) || code != team.NotReady && code != team.Invalid {
		return err
	}
	if gone := w.giveUp(ctx, err.Error()); gone != nil {
		return errors.Join(err, gone)
	}
	return err
}

// takeBack ends the attempt without a commit, because somebody wants that. A worktree that was just
// being removed is gone first.
func (w *work) takeBack(ctx context.Context, reason string) error {
	if w.state().Step == team.Began {
		for _, m := range w.isolated() {
			if m.Status.Running() && m.Shutdown.Request == "" {
				continue // it was not its turn
			}
			if err := w.home(ctx, m); err != nil {
				return err
			}
		}
	}
	return w.giveUp(ctx, reason)
}

// giveUp ends the attempt without a commit.
func (w *work) giveUp(ctx context.Context, reason string) error {
	c := w.state()
	if c.Tree != "" && w.repo.top == "" {
		if err := w.lost(c); team.CodeOf(err) == "" {
			return err
		}
	}
	if c.Step == team.Made && c.Commit != "" {
		head, err := w.repo.head(ctx)
		if err != nil {
			return err
		}
		if there, err := w.repo.follows(ctx, c.Commit, c.Parent, head); err != nil {
			return err
		} else if there {
			return notReady("the work is committed already (%.12s)", c.Commit).With(w.hint(team.ActFinish))
		}
	}
	if err := w.lift(ctx, c); err != nil {
		return err
	}
	w.step("lifted")
	return w.do(ctx, &team.AbandonConsolidation{Attempt: c.Attempt, Reason: reason, Left: w.left(ctx, c)})
}
