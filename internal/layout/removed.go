package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// A checkpoint does not say that its team was removed, only what the team was then. So the home
// keeps which commit had the last checkpoint of a team that was removed here while its branches
// stayed. A team that continued elsewhere has another one.

// KeepRemoved records that the team of that id was removed here, and which commit had its last
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

// Removed reports whether the team of that id was removed here, and this commit had its last
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

// DropRemoved removes the record of a team whose branches are gone. Where there is none it does
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

// removed is the path of the record of a team. An id may come from a checkpoint that somebody else
// made.
func (h Home) removed(id string) (path string, ok bool) {
	if id == "." || id == "" || filepath.Base(id) != id || !filepath.IsLocal(id) {
		return "", false
	}
	return filepath.Join(h.Root, "removed", id), true
}
