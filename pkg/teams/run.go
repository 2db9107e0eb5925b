package teams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/consolidate"
	"cadre/internal/replica"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// RunOptions say where the team's report is written, and what happens if the team file changed. The
// zero RunOptions write no report.
type RunOptions struct {
	ReportFile  string // path, relative to the team's directory; "" for no file
	ReportTitle string // "" for the default

	// Changed is called when the options come from a team file that changed since the unfinished
	// team was made from it. If it returns nil, the changes are applied; otherwise Run returns its
	// error. A nil Changed refuses the changes with ErrNotReady.
	Changed func([]FileChange) error
	// Redo names completed tasks to do again, for options that come from a team file.
	Redo []string

	// Consolidate, if not nil, is how Run consolidates the team once everything is done, as cadre
	// run --consolidate does and [Team.Consolidate] would. If an earlier Run was killed meanwhile,
	// the consolidation is finished, and nothing is run.
	Consolidate *ConsolidateOptions

	sections []string // names of the tasks whose results the report shows first
	leftOut  []string // names of the tasks whose results it does not show
	file     *teamfile.File
	origin   string // path of file
}

// RunResult is the state of a team after a run.
type RunResult struct {
	Team      TeamInfo
	Report    string   // in Markdown: the words of an agent that leads, then every task with its result
	Completed int      // tasks
	Failed    int      // tasks that failed and are out of retries
	Open      int      // tasks that are neither
	Unmerged  []string // branches with work of members that is not merged yet, as far as that is recorded

	Consolidated *ConsolidatedRecord // nil if the team was not consolidated
}

// Run runs the team to its end. It waits until nothing more can happen: every task is completed or
// out of retries, and all members are idle. An agent that leads then gives its report, unless it
// adds new work instead. The teammates end, the report is written and the team is complete, as with
// [Team.Complete]. A team with checks, or with branches that are not merged, is consolidating
// instead: [Team.Consolidate] checks and commits its work, or the program merges the branches and
// then completes the team.
//
//	working ──all tasks done──▶ report of the lead ──▶ teammates ended ──▶ complete
//	   │  ▲                           └─ new work ─▶ working
//	   └──┴─ ctx ended, budget spent, tasks out of retries: the report says so, and the team stays as it is
//
// The error is nil when everything is done. With one of the following errors, RunResult is valid
// too, the report is written, and the team is unfinished:
//
//   - the cause of ctx: its sessions continue until the manager is closed;
//   - ErrBudgetExhausted: the budget is spent; [Team.SetBudget] raises it;
//   - ErrNotReady: tasks failed, or wait for this program as the lead; [Team.Retry] tries failed
//     tasks again;
//   - ErrSessionFailed: the lead's agent cannot continue, in its own words, and only a person can
//     help;
//   - ErrFinished: another process ended the team;
//   - with RunOptions.Consolidate, the errors of [Team.Consolidate]: all tasks are done, and nothing is
//     committed.
//
// After any other error RunResult is empty: ErrNotReady if the team runs already, also with cadre
// run; ErrDenied for the manager of a teammate; ErrFinished if the manager was closed; or the error
// of the host or of the report's file. Run can be called again, in any process.
//
// While it runs, a program or person should answer the team's [Team.Questions]: questions without
// an answer are denied. If this program leads, Run does not read its mail, and does not wait for
// further work that the program may plan.
func (t *Team) Run(ctx context.Context, report RunOptions) (RunResult, error) {
	if err := t.pass("Team.Run", nil); err != nil {
		return RunResult{}, err
	}
	if t.host == nil {
		return RunResult{}, refuse(ErrDenied, fmt.Sprintf("this manager acts as %s and runs no sessions; the lead's "+
			"manager runs the team", t.me.name))
	}
	steps := run.Steps{Work: func(ctx context.Context) (run.Result, error) { return t.work(ctx, report) }}
	if how := report.Consolidate; how != nil {
		if err := t.consolidates("Team.Consolidate"); err != nil {
			return RunResult{}, err
		}
		if err := t.of.Refresh(ctx); err != nil {
			return RunResult{}, cause(ctx, err)
		}
		now := t.of.Team()
		steps.Interrupted = now.Consolidation.Open()
		steps.Consolidate = func(ctx context.Context) (*consolidate.Record, error) {
			return t.of.Consolidate(ctx, how.core())
		}
	}
	end, err := run.Through(ctx, steps)
	if err != nil {
		return RunResult{}, err
	}
	t.of.Project(context.WithoutCancel(ctx))
	return t.result(end), public(cmp.Or(end.Short, end.Failure))
}

// result returns how a run and its consolidation ended.
func (t *Team) result(end run.Ended) RunResult {
	r := RunResult{Report: end.Text, Completed: end.Completed, Failed: end.Failed, Open: end.Open}
	if end.Record != nil {
		r.Consolidated = recordOf(end.Record)
	}
	t.of.View(func(s *team.State) {
		r.Team = infoOf(s.Team())
		for _, m := range s.Unmerged() {
			r.Unmerged = append(r.Unmerged, m.Left.Branch)
		}
		if !end.Ran {
			r.Completed, r.Failed = s.Count(team.Completed), len(slices.Collect(s.OutOfRetries()))
			r.Open = s.Count(team.Pending) + s.Count(team.InProgress) - r.Failed
		}
	})
	return r
}

// work runs the team until nothing more can happen, and writes the report. The error is one for the
// caller of [Team.Run].
func (t *Team) work(ctx context.Context, report RunOptions) (end run.Result, err error) {
	lease, err := t.of.Claim(ctx)
	if err != nil {
		return end, cause(ctx, err)
	}
	defer lease.Release()
	if err := t.follow(ctx, report); err != nil {
		return end, cause(ctx, err)
	}
	l := t.runner(report)
	l.Lease, l.Session = lease, "go-"+strings.ToLower(replica.NewID())
	led, release, err := l.Hold(ctx)
	if err != nil {
		return end, cause(ctx, err)
	}
	short, err := l.Work(led, t.host.Done())
	release()
	switch {
	case errors.Is(err, run.ErrHostEnded):
		if err := t.host.Err(); err != nil {
			return end, fmt.Errorf("the host of team %s has ended: %w", t.name, public(err))
		}
		return end, refuse(ErrFinished, fmt.Sprintf("the manager released team %s while it ran", t.name))
	case err != nil:
		return end, public(err)
	}
	if short == nil {
		short = l.Undone()
	}
	end, err = l.Finish(ctx, short)
	return end, public(err)
}

// cause returns why ctx ended, if err says only that it did.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return public(err)
}

// Retry prepares another run of a team that could not finish. Call it before Run. Tasks that are
// out of retries return to the queue, and members in trouble are retried at once. While work is
// left, each teammate that has ended gets a successor: NAME-again-2 for NAME,
// and then NAME-again-3.
func (t *Team) Retry(ctx context.Context) error {
	if _, err := t.asUser("Team.Retry", "give the team another try"); err != nil {
		return err
	}
	if err := t.of.Refresh(ctx); err != nil {
		return public(err)
	}
	return public(t.runner(RunOptions{}).Retry(ctx))
}

func (t *Team) runner(r RunOptions) *run.Lead {
	if r.ReportFile != "" && !filepath.IsAbs(r.ReportFile) {
		r.ReportFile = filepath.Join(t.dir, r.ReportFile)
	}
	return &run.Lead{Team: t.of, Agent: t.opts.agents(t), Title: r.ReportTitle, Sections: r.sections,
		LeftOut: r.leftOut,
		Report:  r.ReportFile, Seen: t.of.Seq(), Log: t.opts.log}
}

// Interrupt ends the member's turn. The member then waits for a message. It returns [ErrNotReady]
// if no turn runs.
func (t *Team) Interrupt(ctx context.Context, member string) error {
	if err := t.pass("Team.Interrupt", nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.Interrupt{Member: member})
	return err
}

// LiftRateLimit has the model of the member tried again now, although its provider named a later
// time. The members that share the rate limit try again with it; if the model still takes no
// requests, they wait again. Only the lead and the user can do that. It returns [ErrNotReady] if
// the member waits for no rate limit.
func (t *Team) LiftRateLimit(ctx context.Context, member string) error {
	if err := t.pass("Team.LiftRateLimit", nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.LiftLimit{Member: member})
	return err
}

// HandOver ends a member's session and starts a fresh one that continues its task and mail, with a
// note about the earlier work. Use it if the context is full or misleading. It does not wait for
// the new session. A handover also happens by itself when a context is nearly full; see
// TeamConfig.HandoverAt. Members without a context, [Shell] and [External], return ErrInvalid.
func (t *Team) HandOver(ctx context.Context, member, reason string) error {
	if err := t.pass("Team.HandOver", nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.HandOver{Member: member, Reason: reason})
	return err
}
