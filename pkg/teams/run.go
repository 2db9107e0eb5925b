package teams

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"cadre/internal/replica"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// RunOptions say where a team's report goes, and what happens to a changed team file. The zero
// RunOptions write no report.
type RunOptions struct {
	ReportFile  string // path, from the team's directory; "" for no file
	ReportTitle string // "" for the usual one

	// Changed is called when the options come from a team file that differs from the one that the
	// unfinished team was made from. The changes are applied if it returns nil; otherwise Run
	// returns its error. nil refuses them with ErrNotReady.
	Changed func([]FileChange) error
	// Redo names completed tasks that are done again, for options that come from a team file.
	Redo []string

	sections []string // names of the tasks whose results the report shows first
	leftOut  []string // and of those whose results it does not show
	file     *teamfile.File
	origin   string // path of file
}

// RunResult is how far a team has come.
type RunResult struct {
	Team      TeamInfo
	Report    string   // in Markdown: the words of a lead that is an agent, then every task with what came of it
	Completed int      // tasks
	Failed    int      // tasks that were given up
	Open      int      // tasks that are neither
	Unmerged  []string // branches with work of members that nobody has merged yet, so far as that is recorded
}

// Run sees the team to its end. It waits until nothing more can happen: every task is completed, or
// cannot be, and everybody is idle. A lead that is an agent then gives its report, unless it begins
// new work instead. The teammates are ended, the report is written and the team is complete, as
// with [Team.Complete]. A team with checks, or with branches that are not merged, is consolidating
// instead: [Team.Consolidate] checks and commits what it did, or the program merges the branches
// and then completes it.
//
//	working ──all tasks done──▶ report of the lead ──▶ teammates ended ──▶ complete
//	   │  ▲                           └─ new work ─▶ working
//	   └──┴─ ctx ended, budget spent, tasks given up: the report says so, and the team stays as it is
//
// The error is nil when everything is done. With one of the following, Result is valid too, the
// report is written, and the team is unfinished:
//
//   - the cause of ctx: its sessions continue until the manager is closed;
//   - ErrBudgetExhausted: the budget is spent; [Team.SetBudget] gives more;
//   - ErrNotReady: there are tasks that could not be done, or that wait for this program as the
//     lead; [Team.Retry] has the former tried again;
//   - ErrSessionFailed: the lead's agent cannot continue, in its own words, and only a person can
//     help;
//   - ErrFinished: somebody else ended the team.
//
// After any other error Result is nothing: ErrNotReady where the team is being run already, also by
// cadre run; Denied for the manager of a teammate; Finished where the manager was closed meanwhile;
// or what kept the host or the report's file from working. Run can be called again, in any process.
//
// While it runs, somebody should answer the team's [Team.Questions]: what nobody answers is denied.
// Where this program leads, its mail stays its own, and Run does not wait for what it may still
// have in mind.
func (t *Team) Run(ctx context.Context, report RunOptions) (RunResult, error) {
	if err := t.pass("Team.Run", nil); err != nil {
		return RunResult{}, err
	}
	if t.host == nil {
		return RunResult{}, refuse(ErrDenied, fmt.Sprintf("this manager acts as %s and runs no sessions; the lead's "+
			"manager runs the team", t.me.name))
	}
	leave, err := t.of.Claim(ctx)
	if err != nil {
		return RunResult{}, cause(ctx, err)
	}
	defer leave()
	if err := t.follow(ctx, report); err != nil {
		return RunResult{}, cause(ctx, err)
	}
	l := t.runner(report)
	l.Session = "go-" + strings.ToLower(replica.NewID())
	led, release, err := l.Hold(ctx)
	if err != nil {
		return RunResult{}, cause(ctx, err)
	}
	short, err := l.Work(led, t.host.Done())
	release()
	switch {
	case errors.Is(err, run.ErrHostEnded):
		if err := t.host.Err(); err != nil {
			return RunResult{}, fmt.Errorf("the host of team %s has ended: %w", t.name, public(err))
		}
		return RunResult{}, refuse(ErrFinished, fmt.Sprintf("the manager let go of team %s while it ran", t.name))
	case err != nil:
		return RunResult{}, public(err)
	}
	if short == nil {
		short = l.Undone()
	}
	end, err := l.Finish(ctx, short)
	if err != nil {
		return RunResult{}, public(err)
	}
	t.of.Project(context.WithoutCancel(ctx))
	r := RunResult{Team: infoOf(end.Team), Report: end.Text, Completed: end.Completed, Failed: end.Failed, Open: end.Open}
	t.of.View(func(s *team.State) {
		for _, m := range s.Unmerged() {
			r.Unmerged = append(r.Unmerged, m.Left.Branch)
		}
	})
	return r, public(short)
}

// cause is why ctx ended, in the place of an error that says no more than that it did.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return public(err)
}

// Retry gives a team that stopped short another try, before Run is called again: tasks that were
// given up are back on the list, members in trouble are tried at once, and, while there is
// something left to do, a teammate is put beside each one that has ended, to continue for it:
// NAME-again-2 for NAME.
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

// Interrupt ends the member's turn. The member then waits for a message. It returns [ErrNotReady] if
// no turn runs.
func (t *Team) Interrupt(ctx context.Context, member string) error {
	if err := t.pass("Team.Interrupt", nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.Interrupt{Member: member})
	return err
}

// HandOver ends a member's session and has a fresh one continue for it, with its task, its mail,
// and a note of what the one before did: its context is full, or was led astray. It does not wait
// for that. It happens by itself when a context is nearly full; see TeamConfig.HandoverAt. Members
// without a context, [Shell] and [External], are refused with ErrInvalid.
func (t *Team) HandOver(ctx context.Context, member, reason string) error {
	if err := t.pass("Team.HandOver", nil); err != nil {
		return err
	}
	_, err := t.me.do(ctx, &team.HandOver{Member: member, Reason: reason})
	return err
}
