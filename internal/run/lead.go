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
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/team"
)

// Lead sees one team to its end, beside the host of its sessions: it asks a lead that is an agent
// for its report, dismisses the teammates, writes the report and completes the team. Whoever has
// [engine.Team.Claim]ed the team may have one, and [Lead.Hold]s it while it works.
type Lead struct {
	Team *engine.Team
	// by the name that members have for it; nil where nobody is to be looked for
	Agent   func(name string) agent.Agent
	Session string // id of the session that leads; unique for ever
	Title   string // of the report; "" for the usual one
	// ids from the team file, of the tasks whose results the report shows; tasks that are in no
	// file are always shown
	Sections  []string
	Report    string // where the report is written, an absolute path; "" for nowhere
	TakesMail bool   // it takes the mail of a lead that is no agent, because nobody else does
	Seen      int64  // seq of the last record that Saw was told
	Saw       func(r *team.Record, rep *replica.Replica)
	Log       func(string)
}

// Result is how a run ended.
type Result struct {
	Team      team.Team
	Report    string // path of the report
	Text      string // the report
	Completed int    // tasks
	Failed    int
	Open      int // tasks that are neither
	Pending   consolidate.Pending
	Attention []team.Item // what waits for a person, now that the run has ended
	Short     error       // why not everything is done; nil when it is
	Seconds   float64
}

// Done reports whether everything that was asked for is done.
func (r Result) Done() bool { return r.Short == nil }

// Broken is the code of a team whose lead cannot go on; the other reasons have codes of the core.
const Broken team.Code = "broken"

// ErrHostEnded says that sessions are hosted no more, and the team is not at its end.
var ErrHostEnded = errors.New("the host ended")

// finishTime bounds what is done when the work has ended.
const finishTime = time.Minute

// Retry puts what an earlier run gave up back on the list, and a teammate beside each one that has
// ended since, to do its work. One whose program is still not there could do no more than that one.
func (l *Lead) Retry(ctx context.Context) error {
	var again, troubled []string
	var ended []team.Member
	l.Team.View(func(s *team.State) {
		for t := range s.Tasks() {
			if t.GivenUp() {
				again = append(again, t.ID)
			}
		}
		for _, m := range s.Members() {
			if m.Status.Running() && m.Setbacks > 0 {
				troubled = append(troubled, m.Name)
			}
		}
		if !workLeft(s) {
			return
		}
		for _, m := range s.Members() {
			if !m.Status.Running() && m.Agent != team.External && !replaced(s, m.Name) {
				ended = append(ended, m)
			}
		}
	})
	for _, name := range troubled {
		if err := l.do(ctx, team.User, &team.RetryMember{Member: name}); err != nil {
			return err
		}
	}
	for _, m := range ended {
		if err := l.missing(m); err != nil {
			l.Log(fmt.Sprintf("nobody starts in the place of %s: %s cannot work here: %v", m.Name, m.Agent, err))
			continue
		}
		for n := 2; ; n++ {
			err := l.do(ctx, team.User, &team.SpawnMember{Name: successor(m.Name, n), Agent: m.Agent, Model: m.Model,
				Role: m.Role, Prompt: m.Prompt,
				Mode: m.PermissionMode, PlanApproval: m.Plan.Required, Program: m.Program, Args: m.Args, Env: m.Env,
				Isolation: m.Isolation, Resume: m.Session})
			if err == nil {
				break
			}
			if team.CodeOf(err) == team.MaxTeammatesReached { // others joined since
				l.Log(fmt.Sprintf("nobody starts in the place of %s: %v", m.Name, err))
				break
			}
			if team.CodeOf(err) != team.Taken {
				return err
			}
		}
	}
	for _, id := range again {
		if err := l.do(ctx, team.User, &team.ReleaseTask{Task: id, Reason: "the team is run again"}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lead) missing(m team.Member) error {
	if l.Agent == nil {
		return nil
	}
	return agent.Missing(l.Agent(m.Agent), m.Program)
}

// workLeft reports whether there is a task that is not for somebody outside alone.
func workLeft(s *team.State) bool {
	for t := range s.Tasks() {
		if t.Status == team.Completed {
			continue
		}
		if owner, ok := s.Member(t.Owner); !ok || owner.Agent != team.External {
			return true
		}
	}
	return false
}

// successor is the nth name of a teammate that goes on for another one.
func successor(name string, n int) string {
	suffix := fmt.Sprintf("-again-%d", n)
	return name[:min(len(name), 64-len(suffix))] + suffix
}

// replaced reports whether somebody goes on for the member already, or did.
func replaced(s *team.State, name string) bool {
	_, ok := s.Member(successor(name, 2))
	return ok
}

// Hold takes the lead until release is called. The context that it returns ends when another
// session has taken it over. Nothing is to be done for the team before: whoever is refused has
// touched nothing.
func (l *Lead) Hold(ctx context.Context) (_ context.Context, release func(), err error) {
	if !l.Team.OnDisk() { // nobody can miss its lead
		return ctx, func() {}, nil
	}
	held, err := leader.Take(ctx, leader.Options{Replica: l.Team.Replica, Dir: l.Team.Dir, Session: l.Session,
		Beats: !l.look().led, Log: l.Log})
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
			cancel(reason(team.Conflict, "%v", leader.ErrTakenOver))
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
// ends. short says why it ended early, the end of ctx included; without a reason [Lead.Undone]
// tells what is left once the host has ended.
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
		waiting, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-hosting: // it never ends by itself but with the team, or with an error
				cancel()
			case <-waiting.Done():
			}
		}()
		err = l.Team.Wait(waiting, l.Seen)
		alone := ctx.Err() == nil && waiting.Err() != nil
		cancel()
		switch {
		case alone && !l.look().over:
			return nil, ErrHostEnded
		case !alone && err != nil:
			return stopped(ctx, err)
		}
	}
}

// next does what is to be done now, and says whether the end has come, and why it is an early one.
func (l *Lead) next(ctx context.Context, at situation) (end bool, short, err error) {
	if !at.led && l.TakesMail {
		if err := l.readMail(ctx); err != nil {
			return false, nil, err
		}
	}
	switch {
	case at.over:
		return true, reason(team.Finished, "the team was ended by somebody else"), nil
	case at.exhausted != "":
		t := l.Team.Team()
		return !at.sessions, team.Refuse(team.Exhausted, "%s", at.exhausted).
			With(team.Hint{Action: team.ActRaiseBudget, Team: t.Name, Budget: t.Exhausted}), nil
	case at.lost != "":
		return true, reason(Broken, "the lead cannot go on: %s", at.lost), nil
	case at.busy:
		return false, nil, nil
	case at.led && at.said:
		if len(at.members) == 0 {
			return true, nil, nil
		}
		return false, nil, l.dismiss(ctx, at.members)
	case at.led && len(at.isolated) > 0:
		// so that their work is on their branches before the lead reports
		return false, nil, l.dismiss(ctx, at.isolated)
	case at.led:
		return false, nil, l.askReport(ctx)
	case at.undone > 0 || len(at.members) == 0:
		return true, nil, nil
	}
	return false, nil, l.dismiss(ctx, at.members)
}

// askReport asks the lead for its report, once the work of all members is merged for it to look at.
// Where that has become work for the lead, because branches conflict, it is asked after that.
func (l *Lead) askReport(ctx context.Context) error {
	dir := ""
	if !l.Team.Team().ReportAsked {
		merged, err := consolidate.Merge(ctx, l.Team.Consolidation())
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			l.Log("the work of members could not be merged for the lead to look at: " + err.Error())
		}
		dir = merged.Dir
		if l.look().busy {
			return nil
		}
	}
	return l.do(ctx, team.User, &team.AskReport{Merged: dir})
}

// Undone says why not everything is done although nothing more happens; nil when it is. Of a team
// whose host has ended it knows what came of the last sessions too.
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

// show tells of what happened since it was called last.
func (l *Lead) show(ctx context.Context) error {
	for r, err := range l.Team.Read(ctx, l.Seen) {
		if err != nil {
			return err
		}
		// The journal may be ahead of the replica. What is seen is to be in the state: who then
		// looks, and waits for more, misses nothing.
		if l.Team.Seq() < r.Seq {
			if err := l.Team.Refresh(ctx); err != nil {
				return err
			}
		}
		l.Seen = r.Seq
		if l.Saw != nil {
			l.Saw(r, l.Team.Replica)
		}
	}
	return nil
}

// stopped tells the end of ctx from a failure.
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

// readMail takes the lead's mail: what it says is in the record, and in the report by way of the
// tasks.
func (l *Lead) readMail(ctx context.Context) error {
	var through int64
	lead := l.Team.Team().Lead
	l.Team.View(func(s *team.State) {
		if mail := s.Inbox(lead); len(mail) > 0 {
			through = mail[len(mail)-1].Seq
		}
	})
	if through == 0 {
		return nil
	}
	if err := l.do(ctx, lead, &team.ReceiveMessages{}); err != nil {
		return err
	}
	return l.do(ctx, lead, &team.MarkRead{Through: through})
}

func (l *Lead) do(ctx context.Context, actor string, body team.Body) error {
	_, err := l.Team.Do(ctx, team.Command{Actor: actor, Body: body})
	return err
}

// Finish writes the report and, where nothing is short, completes the team. A team with checks, or
// with work on branches that is not merged, waits for its consolidation instead. It is not cut
// short by the end of ctx, which may have ended the work.
func (l *Lead) Finish(ctx context.Context, short error) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if err := l.Team.Refresh(ctx); err != nil {
		return Result{}, err
	}
	r := Result{Team: l.Team.Team(), Report: l.Report, Short: short}
	waits := len(r.Team.Checks) > 0
	l.Team.View(func(s *team.State) {
		waits = waits || len(s.Unmerged()) > 0
		for t := range s.Tasks() {
			switch {
			case t.Status == team.Completed:
				r.Completed++
			case t.GivenUp():
				r.Failed++
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
	// Where the report is, is recorded also of a run that was cut short: it is none of the team's
	// work.
	over := r.Team.CleanedUp || r.Team.Status == team.TeamComplete || r.Team.Status == team.TeamAborted
	if r.Team.Status != end || r.Team.Report != l.Report && !over {
		if err := l.do(ctx, r.Team.Lead, &team.SetStatus{Status: end, Report: l.Report}); err != nil && short == nil {
			return r, err
		} else if err != nil {
			l.Log("where the report is could not be recorded: " + err.Error())
		}
	}
	r.Team = l.Team.Team()
	if err := l.show(ctx); err != nil {
		l.Log(err.Error())
	}
	return r, nil
}

// write puts the text into the file in one step.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Replace(path, []byte(text), atomicfile.Passing{Mode: 0o644,
		Name: filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text())})
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
