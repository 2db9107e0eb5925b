package consolidate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cadre/internal/render/sanitize"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// absentFile is in the team's folder, and not in the scratch of an attempt: later attempts read it.
const absentFile = "missing.json"

// absent is a file that an attempt had staged in a tree, and that could not be put back when that
// ended. A later attempt would take it for removed by the team, and commit without it.
type absent struct {
	Tree string `json:"tree"`
	Path string `json:"path"`
}

// absents reads which files are missing still.
func (w *work) absents() (missing []absent, err error) {
	data, err := regularfile.Read(filepath.Join(w.Dir, absentFile), 1<<30)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &missing); err != nil && !firstForm(data, &missing) {
		return nil, fmt.Errorf("%s says which files checks removed, and cannot be read: %w. Look whether all is "+
			"there, and remove it",
			filepath.Join(w.Dir, absentFile), err)
	}
	return slices.DeleteFunc(missing, func(a absent) bool {
		return !filepath.IsLocal(a.Path) ||
			w.repo.isFile(a.Path)
	}), nil
}

// firstForm reads the note as the first version wrote it: of one attempt, with one tree for all
// files.
func firstForm(data []byte, missing *[]absent) bool {
	var first struct {
		Tree  string   `json:"tree"`
		Files []string `json:"files"`
	}
	if json.Unmarshal(data, &first) != nil {
		return false
	}
	*missing = nil
	for _, path := range first.Files {
		*missing = append(*missing, absent{first.Tree, path})
	}
	return true
}

// noteMissing notes files of the tree beside those that are missing since an attempt before.
func (w *work) noteMissing(tree string, paths []string) error {
	missing, err := w.absents()
	if err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(a absent) bool { return slices.Contains(paths, a.Path) })
	for _, path := range paths {
		missing = append(missing, absent{tree, path})
	}
	data, err := json.Marshal(missing)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(w.Dir, absentFile), data)
}

// whole refuses to begin an attempt while a file that one before had staged is missing. Somebody
// who names what is to be committed, or commits nothing, needs no file besides.
func (w *work) whole(c team.Consolidation) error {
	if w.repo.top == "" || c.NoCommit || len(c.Only) > 0 {
		return nil
	}
	missing, err := w.absents()
	if err != nil || len(missing) == 0 {
		return err
	}
	var paths []string
	for _, a := range missing {
		paths = append(paths, a.Path)
	}
	return notReady("%s was staged by a consolidation before, is missing since its checks ran, and would not be "+
		"committed. To see it: %s. Put it back, or name what is to be committed without it",
		names(paths), w.repo.showing(missing[0].Tree, missing[0].Path)).With(w.hint(team.ActCommitOnly))
}

// forgetMissing is for a team that was consolidated without the files.
func (w *work) forgetMissing() error {
	if err := os.Remove(filepath.Join(w.Dir, absentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// showing is the command that prints a file of the tree.
func (r *repository) showing(tree, path string) string {
	return fmt.Sprintf("git -C %s show %s", sanitize.Quote(r.top), sanitize.Quote(fmt.Sprintf("%.12s:%s", tree, path)))
}
