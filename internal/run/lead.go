package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/liveness/leader"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/team"
)

// Lead leads one team to its end, beside the host of its sessions. It asks an agent that leads for
// its report, dismisses the teammates, writes the report and completes the team. A caller that has
// [engine.Team.Claim]ed the team may use it, and must [Lead.Hold] the lead while it works.
type Lead struct {
	Team *engine.Team
	// by the name that members have for it; nil to look for no agent
	Agent   func(name string) agent.Agent
	Session string      // globally unique id of the session that leads
	Lease   store.Lease // from [engine.Team.Claim]
	Title   string      // of the report; "" for the usual one
	// names of the tasks whose results the report shows first, in this order
	Sections  []string
	LeftOut   []string // names of the tasks whose results the report omits
	Report    string   // path of the report, absolute; "" for none
	Commits   bool     // the team waits for its consolidation, whatever there is to commit
	TakesMail bool     // it takes the mail of a lead that is not an agent
	// reports whether an answer from outside the team is still to come; nil for never. Look has the
	// lead ask again
	Awaits func() bool
	Look   <-chan struct{}
	Seen   int64 // seq of the last record that Saw got
	Saw    func(r *team.Record, t *engine.Team)
	Log    func(string)
}

// Result is how a run ended.
type Result struct {
	Team      team.Team
	Report    string // path of the report
	Text      string // the report
	Completed int    // number of completed tasks
	Failed    int
	Open      int         // number of other tasks
	Failures  []team.Task // the failed tasks, in the order of their numbers
	Pending   consolidate.Pending
	Attention []team.Item // what waits for a person now
	Short     error       // why some work is not done; nil if all is
	Took      time.Duration
}

// Done reports whether everything is done.
func (r Result) Done() bool { return r.Short == nil }

// Broken is the code of a team whose lead cannot continue; the other reasons have codes of the
// core.
const Broken team.Code = "broken"

// ErrHostEnded says that the host of the sessions ended before the team did.
var ErrHostEnded = errors.New("the host ended")

// finishTime bounds what is done after the work has ended.
const finishTime = time.Minute

// Hold takes the lead until release is called. The returned context ends when another session takes
// the lead over, or the lease is lost. Call it before anything else: a caller that is refused has
// then changed nothing.
func (l *Lead) Hold(ctx context.Context) (_ context.Context, release func(), err error) {
	if !l.Team.OnDisk() { // no other process can see its lead
		return ctx, func() {}, nil
	}
	held, err := leader.Take(ctx, leader.Options{Replica: l.Team.Replica, Shared: l.Team.Shared(), Session: l.Session,
		Lease: l.Lease, Beats: !l.look().led, Log: l.Log})
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return ctx, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-held.Lost():
			cancel(reason(team.Conflict, "%v", held.Why()))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
		leaving, done := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
		defer done()
		held.Release(leaving)
	}, nil
}

// Work leads until nothing more can happen. hosting is closed when the host of the team's sessions
// ends. short says why the work ended early, which includes the end of ctx. If short is nil,
// [Lead.Undone] says what is left once the host has ended.
func (l *Lead) Work(ctx context.Context, hosting <-chan struct{}) (short, err error) {
	for {
		if err := l.show(ctx); err != nil {
			return stopped(ctx, err)
		}
		at := l.look()
		end, short, err := l.next(ctx, at)
		if err != nil {
			return stopped(ctx, err)
		}
		if end {
			return short, nil
		}
		switch alone, err := l.wait(ctx, hosting); {
		case alone && !l.look().over:
			return nil, ErrHostEnded
		case !alone && err != nil:
			return stopped(ctx, err)
		}
	}
}

// wait waits for the next record, or for a reason to look again. alone reports that the host has
// ended.
func (l *Lead) wait(ctx context.Context, hosting <-chan struct{}) (alone bool, err error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	reasons := make(chan bool, 1) // true if the host has ended
	go func() {
		defer cancel()
		select {
		case <-hosting: // the host ends only with the team, or with an error
			reasons <- true
		case <-l.Look:
			reasons <- false
		case <-waiting.Done():
		}
	}()
	err = l.Team.Wait(waiting, l.Seen)
	if ctx.Err() != nil {
		return false, err
	}
	select {
	case alone = <-reasons:
		return alone, nil
	default:
		return false, err
	}
}

func endedByAnother() error { return reason(team.Finished, "another process ended the team") }

// next does what is due now. It says whether the end has come, and why if it is an early one.
func (l *Lead) next(ctx context.Context, at situation) (end bool, short, err error) {
	if !at.led && l.TakesMail {
		if err := l.readMail(ctx); err != nil {
			return false, nil, err
		}
	}
	switch {
	case at.over:
		return true, endedByAnother(), nil
	case at.exhausted != "":
		t := l.Team.Team()
		return !at.sessions, team.Refuse(team.Exhausted, "%s", at.exhausted).
			With(team.Hint{Action: team.ActRaiseBudget, Team: t.Name, Budget: t.Exhausted}), nil
	case at.lost != "":
		return true, reason(Broken, "the lead cannot continue: %s", at.lost), nil
	case at.busy:
		return false, nil, nil
	case at.led && at.said:
		if len(at.members) == 0 {
			return true, nil, nil
		}
		return false, nil, l.dismiss(ctx, at.members)
	case at.led && len(at.isolated) > 0:
		// their work must be on their branches before the lead reports
		return false, nil, l.dismiss(ctx, at.isolated)
	case at.led:
		return false, nil, l.askReport(ctx)
	case at.undone > 0 || len(at.members) == 0:
		return true, nil, nil
	}
	return false, nil, l.dismiss(ctx, at.members)
}

// askReport asks the lead for its report, once the work of all members is merged for it to look at.
// If branches conflict, the lead first gets the task to merge them.
func (l *Lead) askReport(ctx context.Context) error {
	dir := ""
	if !l.Team.Team().ReportAsked {
		merged, err := consolidate.Merge(ctx, l.Team.Consolidation())
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			l.Log("the members' work could not be merged for the lead: " + err.Error())
		}
		dir = merged.Dir
		if l.look().busy {
			return nil
		}
	}
	return l.do(ctx, team.User, &team.AskReport{Merged: dir})
}

// Undone says why some work is not done although nothing more happens; nil if all is done. After
// the host has ended it includes what the last sessions left.
func (l *Lead) Undone() error {
	at := l.look()
	if words := at.undoneWords(); words != "" {
		return team.Refuse(team.NotReady, "%s", words).With(at.help...)
	}
	return nil
}

func reason(code team.Code, format string, args ...any) error {
	return &team.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// show passes on the records since its last call.
func (l *Lead) show(ctx context.Context) error {
	for r, err := range l.Team.Read(ctx, l.Seen) {
		if err != nil {
			return err
		}
		// The journal may be ahead of the replica. Bring the state up to the record: a caller that
		// reads the state and then waits for records misses none.
		if l.Team.Seq() < r.Seq {
			if err := l.Team.Refresh(ctx); err != nil {
				return err
			}
		}
		l.Seen = r.Seq
		if l.Saw != nil {
			l.Saw(r, l.Team)
		}
	}
	return nil
}

// stopped separates the end of ctx from a failure.
func stopped(ctx context.Context, err error) (short, _ error) {
	if ctx.Err() != nil {
		return context.Cause(ctx), nil
	}
	return nil, err
}

// dismiss asks the teammates to end.
func (l *Lead) dismiss(ctx context.Context, members []string) error {
	for _, name := range members {
		var request *team.RequestShutdown
		l.Team.View(func(s *team.State) { request = host.Dismissal(s, name) })
		err := l.do(ctx, l.Team.Team().Lead, request)
		if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
			return err
		}
	}
	return nil
}

// readMail takes the lead's mail. Its content is in the record, and through the tasks in the
// report. A question waits for the person who leads, and the mail after it is not marked as read
// before it.
func (l *Lead) readMail(ctx context.Context) error {
	var taken []int64
	through, asked := int64(0), false
	lead := l.Team.Team().Lead
	l.Team.View(func(s *team.State) {
		for _, m := range s.Inbox(lead) {
			if asked = asked || m.Asks(); !asked {
				through = m.Seq
			}
			if !m.Asks() {
				taken = append(taken, m.Seq)
			}
		}
	})
	if len(taken) == 0 {
		return nil
	}
	if err := l.do(ctx, lead, &team.ReceiveMessages{Seqs: taken}); team.CodeOf(err) == team.Conflict {
		return nil // a person has just taken some of it; the record of that brings the lead here again
	} else if err != nil {
		return err
	}
	if through == 0 {
		return nil
	}
	return l.do(ctx, lead, &team.MarkRead{Through: through})
}

func (l *Lead) do(ctx context.Context, actor string, body team.Body) error {
	_, err := l.Team.Do(ctx, team.Command{Actor: actor, Body: body})
	return err
}

// Finish writes the report and, if everything is done, completes the team. A team with checks, or
// with unmerged work on branches, waits for its consolidation instead. The end of ctx, which may
// have ended the work, does not stop Finish.
func (l *Lead) Finish(ctx context.Context, short error) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if err := l.Team.Refresh(ctx); err != nil {
		return Result{}, err
	}
	r := Result{Team: l.Team.Team(), Report: l.Report, Short: short}
	waits := l.Commits || len(r.Team.Checks) > 0
	l.Team.View(func(s *team.State) {
		waits = waits || len(s.Unmerged()) > 0
		for t := range s.Tasks() {
			switch {
			case t.Status == team.Completed:
				r.Completed++
			case t.OutOfRetries():
				r.Failed++
				r.Failures = append(r.Failures, t)
			default:
				r.Open++
			}
		}
	})
	if !r.Team.CleanedUp {
		var err error
		if r.Text, err = l.compose(ctx, short); err == nil && l.Report != "" {
			err = write(l.Report, r.Text)
		}
		if err != nil {
			return r, fmt.Errorf("the report was not written: %w; run it again", err)
		}
	}
	end := r.Team.Status
	switch {
	case short == nil && waits:
		end = team.TeamConsolidating
	case short == nil:
		end = team.TeamComplete
	}
	// The place of the report is recorded for an early end too: it is not part of the team's work.
	over := r.Team.CleanedUp || r.Team.Status == team.TeamComplete || r.Team.Status == team.TeamAborted
	if r.Team.Status != end || r.Team.Report != l.Report && !over {
		if err := l.do(ctx, r.Team.Lead, &team.SetStatus{Status: end, Report: l.Report}); err != nil && short == nil {
			return r, err
		} else if err != nil {
			l.Log("the path of the report was not recorded: " + err.Error())
		}
	}
	r.Team = l.Team.Team()
	if err := l.show(ctx); err != nil {
		l.Log(err.Error())
	}
	return r, nil
}

// write replaces the file with the text in one step.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Replace(path, []byte(text), atomicfile.Passing{Mode: 0o644,
		Name: filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text())})
}
