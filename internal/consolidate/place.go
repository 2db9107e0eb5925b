package consolidate

import (
	"context"
	"fmt"
	"slices"

	"cadre/internal/git"
	"cadre/internal/team"
)

// place has HEAD name the commit, brings the index up to that, and ends the team.
func (w *work) place(ctx context.Context) error {
	c := w.state()
	if c.Commit != "" {
		if w.repo.top == "" {
			return w.lost(c)
		}
		head, err := w.repo.head(ctx)
		if err != nil {
			return err
		}
		there, err := w.repo.follows(ctx, c.Commit, c.Parent, head)
		if err != nil {
			return err
		}
		if !there {
			if head != c.Parent {
				return notReady("HEAD was moved from %.12s to %.12s before the commit was there; consolidate again",
					c.Parent, head)
			}
			if err := w.repo.quiet(); err != nil {
				return err
			}
			if err := w.still(ctx, c); err != nil {
				return err
			}
			if err := w.repo.move(ctx, c.Commit, c.Parent, "cadre: team "+w.Replica.Team().Name); err != nil {
				return err
			}
			head = c.Commit
		}
		w.step("head")
		if err := w.follow(ctx, c, head); err != nil {
			return err
		}
		w.step("index")
		for _, b := range c.Branches {
			if err := w.repo.forget(ctx, b); err != nil {
				return err
			}
			w.step("branch")
		}
		w.detached(ctx, c)
	}
	return w.do(ctx, &team.ReportConsolidated{Attempt: c.Attempt})
}

// still makes sure that nobody has given the attempt up meanwhile.
func (w *work) still(ctx context.Context, c team.Consolidation) error {
	if err := w.Replica.Refresh(ctx); err != nil {
		return err
	}
	if now := w.state(); now.Attempt != c.Attempt || !now.Open() {
		return w.ended()
	}
	return nil
}

// ended says that somebody else has given the attempt up.
func (w *work) ended() error {
	return notReady("the consolidation was given up: %s; nothing was committed", w.state().Reason)
}

// detached tells of a commit that no branch has.
func (w *work) detached(ctx context.Context, c team.Consolidation) {
	if _, err := w.repo.Text(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		w.Log(fmt.Sprintf("no branch is checked out in %s, so the commit is on none; to keep it: git branch NAME %.12s",
			w.repo.top, c.Commit))
	}
}

// follow brings the index up to the commit. What somebody has committed on top of it meanwhile is
// theirs in the index too.
func (w *work) follow(ctx context.Context, c team.Consolidation, head string) error {
	changes, err := w.repo.changes(ctx, c.Parent, c.Tree)
	if err != nil {
		return err
	}
	if head != c.Commit {
		theirs, err := w.repo.changed(ctx, c.Commit, head)
		if err != nil {
			return err
		}
		changes = slices.DeleteFunc(changes, func(one git.Change) bool { return theirs[one.Path] })
	}
	return w.repo.follow(ctx, w.Replica.Team().ID, changes)
}
