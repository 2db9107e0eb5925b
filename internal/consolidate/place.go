package consolidate

import (
	"context"
	"fmt"
	"slices"

	"cadre/internal/git"
	"cadre/internal/team"
)

// place moves HEAD to the commit, updates the index, and ends the team.
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
				return notReady("HEAD was moved from %.12s to %.12s before the commit was made; consolidate again",
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

// still returns an error if the attempt was abandoned in the meantime.
func (w *work) still(ctx context.Context, c team.Consolidation) error {
	if err := w.Replica.Refresh(ctx); err != nil {
		return err
	}
	if now := w.state(); now.Attempt != c.Attempt || !now.Open() {
		return w.ended()
	}
	return nil
}

// ended reports that another process has abandoned the attempt.
func (w *work) ended() error {
	return notReady("the consolidation was abandoned: %s; nothing was committed", w.state().Reason)
}

// detached warns about a commit that is on no branch.
func (w *work) detached(ctx context.Context, c team.Consolidation) {
	if _, err := w.repo.Text(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		keep := w.hint(team.ActKeepCommit)
		keep.Dir, keep.From = w.repo.top, c.Commit
		w.Advise(team.Advice{Text: fmt.Sprintf("no branch is checked out in %s, so the commit %.12s is on none",
			w.repo.top,
			c.Commit), Hints: []team.Hint{keep}})
	}
}

// follow updates the index to the commit. Changes that were committed on top of it in the
// meantime are kept in the index.
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
