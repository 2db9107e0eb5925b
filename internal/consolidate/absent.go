package consolidate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/durable"
	"cadre/internal/regularfile"
	"cadre/internal/team"
)

// absentFile is in the team's folder, and not in the scratch of an attempt: the next attempt reads it.
const absentFile = "missing.json"

// absent are files that an attempt had staged in a tree, and that could not be put back when it ended.
// The next attempt would take them for removed by the team, and commit without them.
type absent struct {
	Attempt int64    `json:"attempt"`
	Tree    string   `json:"tree"`
	Files   []string `json:"files"`
}

func (w *work) noteMissing(a absent) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(w.Dir, absentFile), data)
}

// whole refuses to begin an attempt while a file that the one before had staged is missing. Somebody
// who names what is to be committed, or commits nothing, needs no file besides.
func (w *work) whole(c team.Consolidation) error {
	if w.repo.top == "" || c.NoCommit || len(c.Only) > 0 {
		return nil
	}
	data, err := regularfile.Read(filepath.Join(w.Dir, absentFile), 1<<30)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var a absent
	if before := w.state(); json.Unmarshal(data, &a) != nil || before.Step != team.Abandoned || before.Attempt != a.Attempt {
		return nil
	}
	var missing []string
	for _, path := range a.Files {
		if filepath.IsLocal(path) && !w.repo.isFile(path) {
			missing = append(missing, path)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return notReady("%s was staged by the consolidation before, is missing since its checks ran, and would not be committed. To see it: %s. Put it back, or name what is to be committed without it: cadre consolidate %s --only PATH",
		names(missing), w.repo.showing(a.Tree, missing[0]), w.Desk.Team().Name)
}

// forgetMissing is for an attempt that has begun without the files.
func (w *work) forgetMissing() error {
	if err := os.Remove(filepath.Join(w.Dir, absentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// showing is the command that prints a file of the tree.
func (r *repository) showing(tree, path string) string {
	return fmt.Sprintf("git -C %s show %.12s:%s", r.top, tree, path)
}
