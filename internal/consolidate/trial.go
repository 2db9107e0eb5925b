package consolidate

import (
	"context"
	"fmt"
	"os"

	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Trial describes checks that passed on work that was not committed.
type Trial struct {
	Team     string    `json:"team"` // its name
	Checks   []Checked `json:"checks"`
	Branches []string  `json:"branches"` // members' branches that were merged for the checks
}

// Try runs the team's checks on its present work, and commits and records nothing. The team can be
// consolidated afterwards. Try is refused when a consolidation would be.
//
// In a repository, the checks run in a temporary checkout of what a consolidation would commit, so
// that they change nothing in the team's directory. Ignored files are not in it. Outside a
// repository, they run in the team's directory. A branch that conflicts is an error, and no task is
// created for it.
func Try(ctx context.Context, o Options) (_ *Trial, err error) {
	w, ctx, done, err := prepare(ctx, o, false)
	if err != nil {
		return nil, err
	}
	defer done(&err)
	if w.Replica.View(func(s *team.State) {
		_, err = team.Decide(s, team.Command{ID: "trial", At: replica.Now(), Actor: w.Actor,
			Body: &team.Consolidate{NoCommit: true, Without: w.Without}})
	}); err != nil {
		return nil, err
	}
	t := w.Replica.Team()
	c := team.Consolidation{Include: w.Include, Only: w.Only, Clean: w.Clean || t.Clean,
		Changes: w.Changes || t.Changes}
	commits, err := w.commits(ctx, c)
	if err == nil {
		err = w.whole(c)
	}
	if err != nil {
		return nil, err
	}
	trial := &Trial{Team: t.Name, Branches: []string{}}
	if !commits {
		if c.Clean {
			return nil, notReady("%s is not in a git repository, so there is no clean checkout of it for the checks",
				t.Dir)
		}
		trial.Checks, err = w.tryChecks(ctx, c, t.Dir, "")
		return trial, err
	}
	c.Clean = true
	branches, err := w.present(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		trial.Branches = append(trial.Branches, b.Name)
	}
	if err := w.tryMerge(ctx, &c, branches); err != nil {
		return nil, err
	}
	w.tell(ctx, c)
	for again := true; again; c.Rounds++ {
		if trial.Checks, again, err = w.tryRound(ctx, &c); err != nil {
			return nil, err
		}
	}
	return trial, nil
}

// tryRound runs the checks in a new checkout of the tree. If they changed files that would be
// committed, it returns an error, or adds these to the tree. In the second case, again reports that
// the checks have to run again.
func (w *work) tryRound(ctx context.Context, c *team.Consolidation) (passed []Checked, again bool, err error) {
	at := site{}
	if at.dir, err = w.showTrial(ctx, *c); err != nil {
		return nil, false, err
	}
	if at.repo, err = open(ctx, w.procs, w.clean()); err != nil {
		return nil, false, err
	}
	passed, err = w.tryChecks(ctx, *c, at.dir, "; it ran in a temporary checkout of what would be committed, which "+
		"has no ignored files")
	if err != nil || len(passed) == 0 {
		return passed, false, err
	}
	found, err := wroteThere(ctx, at)
	if err != nil {
		return nil, false, err
	}
	if again, err = w.judge(*c, found); err != nil {
		return passed, false, err
	}
	if !again {
		if left := found.leftOut(*c); len(left) > 0 {
			w.Advise(team.Advice{Text: fmt.Sprintf("the checks left %s, which a consolidation does not commit",
				names(left)),
				Hints: []team.Hint{w.hint(team.ActKeepCheckChanges)}})
		}
		return passed, false, nil
	}
	all := found.all()
	w.Log(fmt.Sprintf("the checks changed %s: a consolidation commits this too, and the checks run again", names(all)))
	c.Tree, err = at.repo.stage(ctx, w.scratch("settle"), c.Tree, all)
	return passed, true, err
}

// tryChecks runs the checks in dir. The error of a failed check ends with where.
func (w *work) tryChecks(ctx context.Context, c team.Consolidation, dir, where string) ([]Checked, error) {
	if err := w.ready(ctx, c); err != nil {
		return nil, err
	}
	passed := []Checked{}
	for _, check := range w.Replica.Team().Checks {
		ran, err := w.execute(ctx, c, check, dir)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted in the check %s: %w; nothing was committed, and team %s is unchanged",
				check.Name, context.Cause(ctx), w.Replica.Team().Name)
		}
		if err != nil {
			return nil, err
		}
		var end team.Event = &team.CheckPassed{Check: check.Name, Took: ran.took}
		if ran.how != "" {
			end = &team.CheckFailed{Check: check.Name, Took: ran.took}
		}
		if w.Tried != nil {
			w.Tried(end)
		}
		if ran.how != "" {
			return nil, &FailedCheck{check.Name, ran.how, ran.output, "the team stays as it is" + where}
		}
		passed = append(passed, Checked{check.Name, check.Command, team.Duration(ran.took)})
	}
	return passed, nil
}

// present returns the work of members in worktrees that HEAD does not have, committed or not. No
// branch is changed.
func (w *work) present(ctx context.Context) (all []team.Branch, err error) {
	if w.repo.top == "" {
		return nil, nil
	}
	head, err := w.repo.head(ctx)
	if err != nil {
		return nil, err
	}
	if all, err = w.waiting(ctx, head); err != nil || head == "" {
		return nil, err
	}
	if err := os.MkdirAll(w.scratch(""), 0o700); err != nil {
		return nil, err
	}
	for _, m := range w.isolated() {
		place := host.Place(w.Replica.Team(), w.Dir, m.Name)
		if !host.Worktree(w.Dir, m.Name) {
			continue
		}
		shots, err := worktree.OpenSnapshots(ctx, w.procs, place.Dir, w.scratch(""))
		if err != nil {
			return nil, err
		}
		shot, err := shots.Take(ctx, "", "Work of "+m.Name, everything)
		if err != nil {
			return nil, fmt.Errorf("the work of %s in %s cannot be read: %w", m.Name, place.Dir, err)
		}
		if len(shot.Left) > 0 {
			w.Log(fmt.Sprintf("the checks do not see these files of %s: %s", m.Name, names(shot.Left)))
		}
		for i := range all {
			if all[i].Member == m.Name {
				all[i].Commit = shot.Commit
				shot.Commit = shot.Head
			}
		}
		if shot.Commit != shot.Head {
			all = append(all, team.Branch{Member: m.Name, Name: place.Branch, Commit: shot.Commit})
		}
	}
	return all, nil
}

// tryMerge makes the tree of the team's work with the branches. It creates no task for a branch
// that conflicts.
func (w *work) tryMerge(ctx context.Context, c *team.Consolidation, branches []team.Branch) error {
	paths, err := w.ours(ctx, *c)
	if err != nil {
		return err
	}
	if c.Parent, err = w.repo.head(ctx); err != nil {
		return err
	}
	if c.Parent == "" {
		return notReady("there is no commit yet that the checks could be run on top of; make one first")
	}
	before, err := w.repo.stage(ctx, w.index(), c.Parent, paths)
	if err != nil {
		return err
	}
	m, err := w.merging(ctx, c.Parent, before, branches)
	if err != nil {
		return err
	}
	for _, b := range branches {
		next, conflict, err := worktree.Join(ctx, w.procs, w.repo.top, m.ours, b.Commit)
		if err != nil {
			return err
		}
		if !conflict.None() {
			return notReady("the branch %s does not merge (%s), so no check ran. A consolidation creates a task for "+
				"it that says how to merge it", b.Name, conflict).With(w.hint(team.ActConsolidate))
		}
		if err := m.take(ctx, w.repo, b, next); err != nil {
			return err
		}
	}
	c.Tree, c.Branches = m.tree, branches
	return nil
}

// showTrial checks the tree out into a temporary folder. It returns the folder that corresponds to
// the team's directory.
func (w *work) showTrial(ctx context.Context, c team.Consolidation) (string, error) {
	commit, err := w.repo.commit(ctx, c.Tree, w.message(c), c.Parent)
	if err != nil {
		return "", err
	}
	if err := w.sweep(ctx); err != nil {
		return "", err
	}
	dir, err := worktree.Show(ctx, w.procs, w.Replica.Team().Dir, w.clean(), commit)
	return dir, err
}

// everything is a filter that leaves nothing out of a snapshot.
func everything(string) (out bool, why string) { return false, "" }
