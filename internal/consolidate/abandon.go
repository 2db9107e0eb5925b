package consolidate

import (
	"context"
	"errors"
	"fmt"

	"cadre/internal/journal/store"
	"cadre/internal/team"
)

// failed abandons the attempt if it cannot be finished. After any other error, the next call
// continues the same attempt.
func (w *work) failed(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), store.ErrLost) {
		return err // another process may be at work
	}
	c := w.state()
	code := team.CodeOf(err)
	if c.Step == team.Abandoned && !errors.Is(err, ErrCheck) { // by another process
		return errors.Join(err, w.lift(context.WithoutCancel(ctx), c))
	}
	if c.Open() && code == "" && ctx.Err() != nil && len(team.HintsOf(err)) == 0 { // by a step that does not say it
		return w.interrupted(ctx, "")
	}
	if !c.Open() || errors.Is(err, ErrCheck) || code != team.NotReady && code != team.Invalid {
		return err
	}
	if gone := w.abandon(ctx, err.Error()); gone != nil {
		return errors.Join(err, gone)
	}
	return err
}

// interrupted returns the error of an open attempt that ended with ctx: in which state the team is,
// and what continues it. where says at what the attempt was; "" where nothing says it well.
func (w *work) interrupted(ctx context.Context, where string) error {
	c := w.state()
	state, hints := "nothing was committed", []team.Hint{w.hint(team.ActFinish), w.hint(team.ActRollBack)}
	if c.Step == team.Made && c.Commit != "" {
		state, hints = fmt.Sprintf("the commit %.12s is made", c.Commit), hints[:1]
	}
	return team.Hinted(fmt.Errorf("interrupted%s: %w; %s. Consolidation %d stays open, and team %s starts nothing new",
		where, context.Cause(ctx), state, c.Attempt, w.Replica.Team().Name), hints...)
}

// cancel ends the attempt without a commit, on request. If a worktree is just being removed, it
// finishes that first.
func (w *work) cancel(ctx context.Context, reason string) error {
	if w.state().Step == team.Began {
		for _, m := range w.isolated() {
			if m.Status.Running() && m.Shutdown.Request == "" {
				continue // not this member's turn
			}
			if err := w.endMember(ctx, m); err != nil {
				return err
			}
		}
	}
	return w.abandon(ctx, reason)
}

// abandon ends the attempt without a commit.
func (w *work) abandon(ctx context.Context, reason string) error {
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
