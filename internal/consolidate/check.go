package consolidate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/git"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// ErrCheck is wrapped by the error of [Run] when a check did not pass.
var ErrCheck = errors.New("a check failed")

// FailedCheck describes a check that did not pass.
type FailedCheck struct {
	Name, How, Output string

	then string // what happens to the team and its branches
}

func (e *FailedCheck) Error() string {
	how := e.How
	if strings.TrimSpace(e.Output) == "" {
		how += " without output"
	}
	return fmt.Sprintf("the check %s failed: %s; nothing was committed, and %s", e.Name, how, e.then)
}

func (e *FailedCheck) Unwrap() []error {
	return []error{ErrCheck, &team.Error{Code: team.NotReady, Text: e.Error()}}
}

// check runs the checks that have not passed yet, and makes the commit.
func (w *work) check(ctx context.Context) error {
	c := w.state()
	if c.Tree != "" && w.repo.top == "" {
		return w.lost(c)
	}
	if err := w.kept(ctx, c); err != nil {
		return err
	}
	if err := w.land(ctx, c); err != nil {
		return err
	}
	w.step("landed")
	if !w.fresh || c.Before != "" {
		if err := w.stands(ctx, c, "before the checks were through"); err != nil {
			return err
		}
	}
	if err := w.ready(ctx, c); err != nil {
		return err
	}
	at, err := w.site(ctx, c)
	if err != nil {
		return err
	}
	for _, check := range w.Replica.Team().Checks {
		if slices.Contains(c.Passed, check.Name) && !c.Clean { // a new checkout lacks their files
			continue
		}
		if err := w.try(ctx, c, check, at.dir); err != nil {
			return err
		}
		w.step("check")
	}
	if again, err := w.settle(ctx, c, at); again || err != nil {
		return err
	}
	if err := w.stands(ctx, c, "while the checks ran, possibly by them"); err != nil {
		return err
	}
	body := &team.ReportMade{Attempt: c.Attempt}
	if c.Tree != "" {
		if body.Commit, err = w.make(ctx, c); err != nil {
			return err
		}
	}
	w.step("commit")
	return w.do(ctx, body)
}

// ready makes the index for the checks.
func (w *work) ready(ctx context.Context, c team.Consolidation) error {
	if w.repo.top == "" || w.fresh && c.Before == "" && c.Tree != "" { // or the index exists since the tree was made
		return nil
	}
	tree := c.Tree
	if tree == "" {
		var err error
		if tree, err = w.repo.head(ctx); err != nil {
			return err
		}
	}
	_, err := w.repo.stage(ctx, w.index(), tree, nil)
	return err
}

// stands returns an error if HEAD or the work tree no longer matches what was staged.
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
	if err := w.kept(ctx, c); err != nil {
		return err
	}
	changed, err := w.repo.unstaged(ctx, w.index(), c.Parent, c.Tree)
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return notReady("%s was changed %s; check it, and consolidate again", names(changed), when)
	}
	return nil
}

// kept returns an error if git has removed the staged tree. No reference keeps it, so git may
// remove it.
func (w *work) kept(ctx context.Context, c team.Consolidation) error {
	if c.Tree == "" {
		return nil
	}
	_, err := w.repo.Text(ctx, "cat-file", "-e", c.Tree)
	if refused(err) {
		return notReady("git has removed the staged tree; consolidate again")
	}
	return err
}

// ran is how a check ended.
type ran struct {
	how    string // how it failed; "" if it passed
	output string
	took   time.Duration
}

// execute runs one check in dir. It returns an error if the check could not be run, or if ctx
// ended.
func (w *work) execute(ctx context.Context, c team.Consolidation, check team.Check, dir string) (r ran, err error) {
	if w.Checking != nil {
		w.Checking(check.Name)
	}
	limit := checkTimeout
	if check.Timeout > 0 {
		limit = check.Timeout
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := proc.Capture{Head: team.MaxOutput / 4, Tail: team.MaxOutput / 2}
	env := append(git.Local(os.Environ()), "CADRE_TREE="+c.Tree, "CADRE_PARENT="+c.Parent)
	if w.repo.top != "" {
		env = append(env, "CADRE_INDEX="+w.index())
	}
	exit, err := w.procs.Run(limited, proc.Cmd{Args: []string{"/bin/sh", "-c", check.Command}, Dir: dir, Env: env,
		Stdout: &out, Stderr: &out, Task: "check " + check.Name, Trusted: true, Check: true}, proc.Ladder{})
	r.took = exit.Elapsed
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case limited.Err() != nil:
		r.how = fmt.Sprintf("it took longer than %s", team.Span(limit))
	case err != nil && !errors.Is(err, proc.ErrLeft):
		return r, err
	case exit.Code != 0:
		r.how = exit.String()
	}
	if r.how != "" {
		r.output = sanitize.Strip(out.String())
	}
	return r, nil
}

// try runs one check of the attempt.
func (w *work) try(ctx context.Context, c team.Consolidation, check team.Check, dir string) error {
	running, abandoned := w.watch(ctx, c)
	defer abandoned()
	ran, err := w.execute(running, c, check, dir)
	switch {
	case ctx.Err() != nil:
		return w.interrupted(ctx, " in the check "+check.Name)
	case abandoned():
		return w.ended()
	case err != nil:
		return err
	}
	report := &team.ReportCheck{Attempt: c.Attempt, Check: check.Name,
		Took: ran.took, Failure: ran.how}
	if ran.how == "" {
		return w.do(ctx, report)
	}
	if err := w.lift(ctx, c); err != nil {
		return err
	}
	w.step("lifted")
	report.Output = ran.output
	report.Left = w.left(ctx, c)
	if err := w.do(ctx, report); err != nil {
		return err
	}
	then := "the team stays active"
	if w.Replica.Team().Status == team.TeamComplete {
		then = "the team stays complete"
	}
	for _, b := range c.Branches {
		then += fmt.Sprintf("; the work of %s stays on the branch %s", b.Member, b.Name)
	}
	return &FailedCheck{check.Name, ran.how, report.Output, then}
}

// watch returns a context that ends when the attempt is abandoned. The function stops watching, and
// reports whether that happened.
func (w *work) watch(ctx context.Context, c team.Consolidation) (context.Context, func() bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := errors.New("abandoned")
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			seq := w.Replica.Seq()
			if now := w.state(); now.Attempt != c.Attempt || !now.Open() {
				cancel(over)
				return
			}
			if w.Replica.Wait(ctx, seq) != nil {
				return
			}
		}
	})
	return ctx, func() bool {
		cancel(nil)
		watching.Wait()
		return context.Cause(ctx) == over
	}
}

// left returns the files that the checks left behind.
func (w *work) left(ctx context.Context, c team.Consolidation) []team.Fact {
	// files that were not named cannot be attributed to the checks
	if c.Step != team.Staged && c.Step != team.Made || c.NoCommit || w.repo.top == "" || len(c.Only) > 0 {
		return nil
	}
	staged, err := w.repo.changes(ctx, c.Parent, c.Tree)
	if err == nil {
		var left []team.Fact
		if left, err = w.repo.left(ctx, w.Replica.Team().Base, pathsOf(staged), w.aside(c)); err == nil {
			return left
		}
	}
	w.Log("the files that the checks left behind are not known, and will count as the team's: " + err.Error())
	return nil
}
