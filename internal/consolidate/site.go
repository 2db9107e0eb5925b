package consolidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// site is the place where the checks run: the team's directory, or a clean checkout of what will be
// committed.
type site struct {
	repo   *repository // nil if the checks may change files
	dir    string
	before map[string]string // digests of files that differ from the last commit and are not named for the commit
}

// clean returns the folder of the clean checkout.
func (w *work) clean() string { return w.scratch("clean") }

// site prepares the place where the checks run.
func (w *work) site(ctx context.Context, c team.Consolidation) (at site, err error) {
	t := w.Replica.Team()
	at = site{dir: t.Dir}
	switch {
	case c.Clean && w.repo.top == "":
		return at, notReady("%s is not in a git repository, so there is no clean checkout of it for the checks; "+
			"consolidate without one", t.Dir).With(w.hint(team.ActConsolidate))
	case c.Clean:
		return w.checkout(ctx, c)
	case w.repo.top == "" || c.NoCommit:
		return at, nil
	}
	at.repo = w.repo
	if selected, err := w.selected(ctx, c); err != nil {
		return at, err
	} else if len(c.Only) > 0 || len(selected.strangers) > 0 {
		at.before, err = w.noted(ctx, c)
	}
	return at, err
}

// checkout makes a clean checkout. It replaces one that a killed process left.
func (w *work) checkout(ctx context.Context, c team.Consolidation) (at site, err error) {
	commit := c.Parent
	if c.Tree != "" {
		commit, err = w.make(ctx, c)
	} else if commit == "" {
		commit, err = w.repo.head(ctx)
	}
	if err == nil && commit == "" {
		err = notReady("there is no commit yet to run the checks in; consolidate without a clean checkout").
			With(w.hint(team.ActConsolidate))
	}
	if err == nil {
		err = w.sweep(ctx)
	}
	if err != nil {
		return at, err
	}
	if at.dir, err = worktree.Show(ctx, w.procs, w.Replica.Team().Dir, w.clean(), commit); err != nil {
		return at, err
	}
	w.step("checkout")
	at.repo, err = open(ctx, w.procs, w.clean())
	return at, err
}

// sweep removes the clean checkout, if one may exist.
func (w *work) sweep(ctx context.Context) error {
	if _, err := os.Lstat(w.clean()); errors.Is(err, fs.ErrNotExist) && !w.state().Clean {
		return nil
	}
	return worktree.Hide(ctx, w.procs, w.Replica.Team().Dir, w.clean())
}

// make makes the commit of the staged files. It is the same commit each time, so the checks in a
// clean checkout see the commit that is made later as HEAD.
func (w *work) make(ctx context.Context, c team.Consolidation) (string, error) {
	parents := []string{c.Parent}
	for _, b := range c.Branches {
		parents = append(parents, b.Commit)
	}
	at := fmt.Sprintf("%d %s", int64(c.BeganAt)/1000, time.UnixMilli(int64(c.BeganAt)).Format("-0700"))
	dated := *w.repo
	dated.Runner = w.repo.With("GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
	return dated.commit(ctx, c.Tree, w.message(c), parents...)
}

// noted records the files that differ from the last commit before the first check runs. So a later
// process does not confuse files that checks wrote with earlier ones.
func (w *work) noted(ctx context.Context, c team.Consolidation) (map[string]string, error) {
	var note struct {
		Attempt, Rounds int64
		Files           []team.Fact
	}
	path := w.scratch("before.json")
	data, err := regularfile.Read(path, 1<<30)
	if err == nil && json.Unmarshal(data, &note) == nil && note.Attempt == c.Attempt {
		return digests(note.Files), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files, err := w.repo.differing(ctx, w.aside(c))
	if err != nil {
		return nil, err
	}
	note.Attempt = c.Attempt
	if note.Files, err = w.repo.facts(ctx, files); err != nil {
		return nil, notReady("the changes of the checks could not be told from existing ones: %v", err)
	}
	if data, err = json.Marshal(note); err == nil {
		err = atomicfile.Write(path, data)
	}
	return digests(note.Files), err
}

func digests(files []team.Fact) map[string]string {
	all := make(map[string]string, len(files))
	for _, f := range files {
		all[f.Path] = f.SHA256
	}
	return all
}
