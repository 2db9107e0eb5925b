package consolidate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options say what to consolidate. Each function may be nil.
type Options struct {
	Replica *replica.Replica
	Dir     string     // the team's folder
	Shared  store.Team // what the team's processes share; nil for what is in Dir
	Actor   string     // the user, or the lead
	// Except are folders in which cadre keeps its own files. One around the work tree excludes
	// nothing: a team in a team works there in the worktree of a member.
	Except   []string
	Message  string   // of the commit; "" for one made from the tasks
	Include  []string // paths from the top of the work tree; see [team.Consolidation]
	Only     []string
	NoCommit bool     // the team is completed without a commit; see [Try] for checks alone
	Clean    bool     // the checks run in a clean checkout of the files to commit
	Changes  bool     // files that the checks write are committed with the work
	Without  []string // tasks without whose missing work the team is completed
	// Unsaved makes no checkpoint of the team, which is kept elsewhere.
	Unsaved bool
	// Restart abandons an open attempt, and starts another one with these options. Otherwise an
	// open attempt continues, with its own options.
	Restart bool
	// Beside returns the other teams for which [Beside] holds. If there are any, only named paths
	// are committed. May be nil.
	Beside func(ctx context.Context) ([]string, error)
	// Foreign returns the paths of files that belong to other teams: reports and team files. They
	// are not committed unless they are named. May be nil.
	Foreign func() []string
	// Staged is called once with the changes that the commit has: each path after git's status
	// letter.
	Staged func(changes []string)
	// Saw is called with every record of this consolidation, and Checking with the name of each
	// check that starts.
	Saw      func(*team.Record)
	Checking func(check string)
	// Tried is called with the end of each check of a trial, which makes no record: a
	// [team.CheckPassed] or a [team.CheckFailed].
	Tried func(end team.Event)
	Log   func(string)
	// Advise receives advice, with what to do about it; if nil, Log receives it.
	Advise func(team.Advice)

	at       func(string)  // for tests: called between any two steps, with the name of the finished one
	patience time.Duration // for tests: with other git commands
}

const (
	scratch      = "consolidation" // folder in the team's
	settledFile  = "settled"       // reports that Settle has finished; the team accepts no attempt after that
	children     = "processes"     // folder in the scratch folder
	saveTime     = time.Minute     // for a checkpoint
	checkTimeout = 30 * time.Minute
	endPatience  = 3 * time.Minute // for a member to end, and its work to be merged
)

// within returns the options with the excluded folders, and the team's own, as git names them.
func (o Options) within() Options {
	o.Except = realPaths(append(slices.Clip(o.Except), o.Dir))
	return o
}

// Running reports whether a process is consolidating the team, or rolling its consolidation back.
func Running(ctx context.Context, leases store.Leases) bool {
	return leases.Held(ctx, store.Consolidation)
}

// Run consolidates the team, and continues an interrupted attempt. It returns the team's record.
func Run(ctx context.Context, o Options) (_ *Record, err error) {
	w, ctx, done, err := prepare(ctx, o, false)
	if err != nil {
		return nil, err
	}
	defer done(&err)
	if c := w.state(); c.Open() && o.Restart {
		if err := w.cancel(ctx, "it is started over"); err != nil {
			return nil, err
		}
	}
	t := o.Replica.Team()
	if c := w.state(); t.Status == team.TeamComplete && c.Step == team.Done {
		if err := w.late(ctx, c); err != nil {
			return nil, err
		}
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

// RollBack abandons the open attempt. It commits nothing, restores the work tree, and the team
// continues. It also resumes a team that was only marked for its end. It fails if HEAD names the
// commit already.
func RollBack(ctx context.Context, o Options, reason string) (err error) {
	w, ctx, done, err := prepare(ctx, o, false)
	if err != nil {
		return err
	}
	defer done(&err)
	c := w.state()
	if t := o.Replica.Team(); !c.Open() && t.Status == team.TeamConsolidating { // the team was only marked for its end
		return w.do(ctx, &team.SetStatus{Status: team.TeamActive, Reason: reason})
	}
	if !c.Open() {
		return &team.Error{Code: team.Nothing, Text: fmt.Sprintf("no consolidation of team %s is in progress",
			o.Replica.Team().Name)}
	}
	return w.cancel(ctx, reason)
}

// Settle cleans up after an attempt that ended with the team. It waits for a running attempt, and
// removes from the work tree what a killed one had put there. It does so once: a file that appears
// later is a person's work.
func Settle(ctx context.Context, o Options) (err error) {
	settled := filepath.Join(o.Dir, settledFile)
	if _, err := os.Stat(settled); err == nil {
		return nil
	}
	w, ctx, done, err := prepare(ctx, o, true)
	if err != nil {
		return err
	}
	defer done(&err)
	if c := w.state(); c.Step == team.Abandoned {
		if err := w.lift(ctx, c); err != nil {
			return err
		}
	}
	return atomicfile.Write(settled, nil)
}

// work is a consolidation that runs in this process.
type work struct {
	Options
	procs  *proc.Register
	repo   *repository // its top is "" if there is no repository
	fresh  bool        // this process has just staged the files
	notice string      // the last notice about its checkpoints
	// advice about files of others was given
	advised bool
	once    bool // the lead was already asked to merge a commit
}

// listen sets defaults for Log and Advise.
func (o *Options) listen() {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Advise == nil {
		log := o.Log
		o.Advise = func(n team.Advice) { log(n.Text) }
	}
}

// prepare makes sure that no other process consolidates the team, and ends the processes that a
// killed one left behind. With wait, it waits for another process. The work must end with the
// returned context, because another process may consolidate the team then. done gets the error of
// the work, and says in it if that is why.
func prepare(ctx context.Context, o Options, wait bool) (w *work, while context.Context, done func(*error), err error) {
	o.listen()
	shared := filestore.Or(o.Shared, o.Dir)
	lease, err := shared.Acquire(ctx, store.Consolidation)
	if wait && errors.Is(err, store.ErrHeld) {
		lease, err = store.Wait(ctx, shared, store.Consolidation)
	}
	if errors.Is(err, store.ErrHeld) {
		return nil, nil, nil, notReady("team %s is being consolidated by another process", o.Replica.Team().Name)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	w = &work{Options: o.within()}
	while, stop := store.While(ctx, lease)
	done = func(failure *error) {
		if w.procs != nil {
			if err := w.sweep(context.WithoutCancel(ctx)); err != nil {
				w.Log("the clean checkout of the checks was not removed: " + err.Error())
			}
			// the next process ends them, by their record
			if err := w.procs.Close(context.WithoutCancel(ctx)); err != nil {
				w.Log(err.Error())
			} else {
				os.RemoveAll(filepath.Join(o.Dir, scratch))
			}
		}
		if *failure != nil && errors.Is(context.Cause(while), store.ErrLost) {
			*failure = notReady("the consolidation of team %s was stopped: %v", o.Replica.Team().Name, store.ErrLost)
		}
		stop()
		lease.Release()
	}
	if err := w.start(while); err != nil {
		done(&err)
		return nil, nil, nil, err
	}
	return w, while, done, nil
}

func (w *work) start(ctx context.Context) error {
	host := filepath.Join(w.Dir, scratch, children)
	strays, err := proc.EndStrays(ctx, host)
	for _, stray := range strays {
		w.Log(fmt.Sprintf("ended a process that a killed consolidation had left running (%s): process %d",
			stray.Task, stray.Pid))
	}
	if err != nil {
		return err
	}
	// The process is listed because it may also host sessions. The records of its checks must then
	// show them as the user's.
	list := proc.Listing{Folder: layout.RunningOf(w.Dir), Team: filepath.Base(w.Dir)}
	if w.procs, err = proc.OpenListed(host, list); err != nil {
		return err
	}
	if err := w.Replica.Refresh(ctx); err != nil {
		return err
	}
	dir := w.Replica.Team().Dir
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return notReady("the directory %s cannot be used: it does not exist", dir).With(w.hint(team.ActMove))
	}
	if w.repo, err = open(ctx, w.procs, dir); err != nil {
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

// do executes a command and reports its record.
func (w *work) do(ctx context.Context, body team.Body) error {
	receipt, err := w.Replica.Do(ctx, team.Command{Actor: w.Actor, Body: body})
	if err == nil && receipt.Record != nil && w.Saw != nil {
		w.Saw(receipt.Record)
	}
	return err
}

// index returns the path of the index of what is committed. A check finds it as CADRE_INDEX.
func (w *work) index() string { return w.scratch("index") }

func (w *work) scratch(name string) string { return filepath.Join(w.Dir, scratch, name) }

// commits reports whether there will be a commit. It fails if the team's work cannot be identified.
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
		return false, notReady("the work of team %s cannot be told from earlier changes: %s. Commit it yourself "+
			"first", t.Name, t.Base.Unknown).With(w.hint(team.ActSkipCommit))
	case t.Base.Top != w.repo.top:
		was := "outside any repository, or unchecked"
		if t.Base.Top != "" {
			was = "in " + t.Base.Top
		}
		return false, notReady("the work of team %s cannot be told from earlier changes: when it was created it "+
			"worked %s, and now it works in the repository %s. Commit the work yourself first", t.Name, was,
			w.repo.top).
			With(w.hint(team.ActSkipCommit))
	}
	branch, err := w.repo.checkpoints(ctx)
	if err != nil {
		return false, err
	}
	if branch != "" {
		return false, notReady("the branch of checkpoints %s is checked out in %s, and its files are no "+
			"member's work; check out another branch", branch, w.repo.top)
	}
	return true, w.repo.quiet()
}

// gone reports that the repository in which the team worked cannot be found.
func (w *work) gone() error {
	t := w.Replica.Team()
	if err := git.Installed(); err != nil {
		return notReady("team %s worked in the repository %s, and git was not found to commit that: %v. Install git, "+
			"or add it to PATH", t.Name, t.Base.Top, err).With(w.hint(team.ActSkipCommit))
	}
	return notReady("team %s worked in the repository %s, and %s is not in a repository any more. Restore it",
		t.Name, t.Base.Top, t.Dir).With(w.hint(team.ActSkipCommit))
}

// lost is [work.gone] for an attempt that has staged something. It abandons the attempt only if
// nothing of it can exist any more. Without git that is unknown, and files that the attempt put
// into the work tree would stay there.
func (w *work) lost(c team.Consolidation) error {
	if err := git.Installed(); err != nil || c.Step == team.Made {
		// the code would abandon the attempt, so it is left out
		gone := w.gone()
		return team.Hinted(fmt.Errorf("the consolidation is unchanged: %v", gone), team.HintsOf(gone)...)
	}
	return w.gone()
}

// selected returns the team's work in the work tree. Both the preview and the staging of a
// consolidation use it.
func (w *work) selected(ctx context.Context, c team.Consolidation) (selection, error) {
	return w.repo.sort(ctx, w.Replica.Team().Base, c, w.aside(c), w.finish())
}

// ours returns the paths to commit, or an error if they cannot be identified.
func (w *work) ours(ctx context.Context, c team.Consolidation) ([]string, error) {
	s, err := w.selected(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(s.both) > 0 {
		return nil,
			notReady("%s had changes before the team was created, and more since; cadre cannot tell whose these are. "+
				"Commit or stash them, or include all of them", names(s.both)).
				With(team.Hint{Action: team.ActIncludeFiles, Team: w.Replica.Team().Name, Paths: s.both})
	}
	if err := w.adviseLeft(ctx, c, s); err != nil {
		return nil, err
	}
	if len(c.Only) > 0 || len(s.ours) == 0 || w.Beside == nil {
		return s.ours, nil
	}
	others, err := w.Beside(ctx)
	if err != nil || len(others) == 0 {
		return s.ours, err
	}
	t := w.Replica.Team()
	who := "team " + others[0] + " also works"
	if len(others) > 1 {
		who = "teams " + strings.Join(others, ", ") + " also work"
	}
	// the hint names no paths: some are the other team's, and a person might type what is proposed
	return nil, team.Refuse(team.Conflict, "%s in %s, or did since team %s was created, so cadre cannot tell whose "+
		"work this is: %s", who, t.Base.Top, t.Name, names(s.ours)).With(w.hint(team.ActCommitOnly))
}

// begin first checks for obstacles, so that no attempt is recorded in vain.
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

// merge commits the work of members in worktrees to their branches.
func (w *work) merge(ctx context.Context) error {
	if err := host.RecordWork(ctx, w.Replica, w.procs, w.Dir, "", w.Log); err != nil {
		return err
	}
	w.save(ctx)
	w.step("checkpoint")
	var home []string
	for _, m := range w.isolated() {
		if err := w.endMember(ctx, m); err != nil {
			return err
		}
		home = append(home, m.Name)
		w.step("home")
	}
	if err := host.ArriveAll(ctx, w.Replica, w.procs); err != nil {
		return err
	}
	return w.do(ctx, &team.ReportMerged{Attempt: w.state().Attempt, Members: home})
}

// save makes a checkpoint of the team. A failure is only logged.
func (w *work) save(ctx context.Context) {
	if w.Unsaved {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, saveTime, fmt.Errorf("it took longer than %s", team.Span(saveTime)))
	defer cancel()
	switch made, err := host.Checkpoint(ctx, w.Replica, w.Dir); {
	case err != nil:
		w.Log("no checkpoint of the consolidation: " + err.Error())
	case made.Notice != "" && w.repo.top != "" && w.notice != made.Notice:
		w.Log(made.Notice)
		w.notice = made.Notice
	}
}

// isolated returns the members whose work may still be in a worktree of their own.
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

// endMember ends the member and commits its work to its branch: through its host, or here if no
// host runs.
func (w *work) endMember(ctx context.Context, m team.Member) error {
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
	hosts, leases := filepath.Join(w.Dir, "hosts"), filestore.Or(w.Shared, w.Dir)
	for {
		var seq int64
		w.Replica.View(func(s *team.State) { m, _ = s.Member(m.Name); seq = s.Seq() })
		if m.Host == "" || !host.Hosted(ctx, leases) {
			if err := host.Clear(ctx, hosts, w.Log); err != nil {
				return err
			}
			if m.Machine == "" { // else its machine has done so
				if err := host.LeaveWork(ctx, w.Replica, w.procs, w.Dir, m.Name, w.Log); err != nil {
					return err
				}
			}
			if !m.Status.Running() {
				return nil
			}
			_, err := w.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.ReportStopped{Member: m.Name,
				Reason: team.WorkMerged}})
			if team.CodeOf(err) == team.Finished {
				return nil
			}
			return err
		}
		waiting, stop := context.WithTimeout(ctx, time.Second) // its host may die in the meantime
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
		case len(body.Branches) > 0: // record the branches as merged even if they contribute nothing
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

// tell reports the changes that the commit has, if they are still known.
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

// seal saves the completed team and writes its record.
func (w *work) seal(ctx context.Context) (*Record, error) {
	// the merged worktree is no longer needed
	if err := worktree.Hide(ctx, w.procs, w.Replica.Team().Dir, host.MergedDir(w.Dir)); err != nil {
		w.Log("the merged worktree was not removed: " + err.Error())
	}
	if err := w.clearMissing(); err != nil {
		return nil, err
	}
	w.save(ctx) // after a kill here, a checkpoint has the end of the team
	r, err := seal(ctx, w.Replica, filestore.Or(w.Shared, w.Dir))
	if err == nil {
		w.save(ctx) // with the record
	}
	return r, err
}
