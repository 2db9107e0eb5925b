package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// A checkpoint does not say whether its team was removed, only what the team was then. So the home
// records the commit of the last checkpoint of each team that was removed here while its branches
// stayed. If the team continued elsewhere, its last checkpoint is another commit.

// KeepRemoved records that the team of that id was removed here, and the commit of its last
// checkpoint.
func (h Home) KeepRemoved(id, commit string) error {
	path, ok := h.removed(id)
	if !ok || commit == "" {
		return nil
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(commit+"\n"))
}

// Removed reports whether the team of that id was removed here with this commit as its last
// checkpoint.
func (h Home) Removed(id, commit string) bool {
	path, ok := h.removed(id)
	if !ok || commit == "" {
		return false
	}
	const most = 1 << 10
	data, err := regularfile.Read(path, most)
	return err == nil && string(data) == commit+"\n"
}

// DropRemoved removes the record of a team whose branches no longer exist. Without a record it does
// nothing.
func (h Home) DropRemoved(id string) error {
	path, ok := h.removed(id)
	if !ok {
		return nil
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removed returns the path of a team's record. The id may come from a foreign checkpoint, so ok is
// false for an invalid one.
func (h Home) removed(id string) (path string, ok bool) {
	if id == "." || id == "" || filepath.Base(id) != id || !filepath.IsLocal(id) {
		return "", false
	}
	return filepath.Join(h.Root, "removed", id), true
}
