package consolidate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// absentFile is in the team's folder, not in the scratch folder of an attempt, because later
// attempts read it.
const absentFile = "missing.json"

// absent is a file that an attempt staged in a tree and could not restore when it ended. A later
// attempt would treat the file as removed by the team, and commit without it.
type absent struct {
	Tree string `json:"tree"`
	Path string `json:"path"`
}

// absents returns the files that are still missing.
func (w *work) absents() (missing []absent, err error) {
	data, err := regularfile.Read(filepath.Join(w.Dir, absentFile), 1<<30)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &missing); err != nil && !firstForm(data, &missing) {
		return nil, fmt.Errorf("%s lists the files that checks removed, and cannot be read: %w. Make sure that no "+
			"file is missing, and delete it",
			filepath.Join(w.Dir, absentFile), err)
	}
	return slices.DeleteFunc(missing, func(a absent) bool {
		return !filepath.IsLocal(a.Path) ||
			w.repo.isFile(a.Path)
	}), nil
}

// firstForm reads the note in its first format: one attempt, with one tree for all files.
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

// recordMissing adds files of the tree to those that earlier attempts recorded as missing.
func (w *work) recordMissing(tree string, paths []string) error {
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

// whole refuses to start an attempt while a file that an earlier one staged is missing. It allows
// an attempt that names the files to commit, or that commits nothing.
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
	return notReady("%s was staged by an earlier consolidation and disappeared when its checks ran, so it would "+
		"not be committed. Restore it, or name the files to commit without it", names(paths)).
		With(w.hint(team.ActCommitOnly), w.showing(missing[0].Tree, missing[0].Path))
}

// clearMissing deletes the note once the team is consolidated without the files.
func (w *work) clearMissing() error {
	if err := os.Remove(filepath.Join(w.Dir, absentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// showing returns the hint to look at a file of the tree.
func (w *work) showing(tree, path string) team.Hint {
	h := w.hint(team.ActShowFile)
	h.Dir, h.From, h.Paths = w.repo.top, tree, []string{path}
	return h
}
