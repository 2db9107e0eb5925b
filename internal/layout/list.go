package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/team"
)

// Names returns a reference to each team that the caller may reach, sorted: its name, or its id if
// the name does not stand for it where the caller works, because another team has the name, too.
func (h Home) Names() ([]string, error) {
	all, err := h.inUse()
	if err != nil {
		return nil, err
	}
	folders := map[string][]string{}
	for _, folder := range all {
		folders[NameOf(folder)] = append(folders[NameOf(folder)], folder)
	}
	var names []string
	for name, all := range folders {
		if len(all) == 1 {
			names = append(names, name)
			continue
		}
		own := h.inProject(name, in(h.teams(), all))
		for _, folder := range all {
			if len(own) == 1 && filepath.Base(own[0]) == folder {
				folder = name
			} else if folder == name {
				if id := h.idIn(filepath.Join(h.teams(), folder)); id != "" {
					folder = id
				}
			}
			names = append(names, folder)
		}
	}
	slices.Sort(names)
	return names, nil
}

// inUse returns the names of the folders of the teams in use that the caller may reach.
func (h Home) inUse() (folders []string, err error) {
	if h.Place != nil {
		folders, err = h.Place.ids(false)
	} else {
		folders, err = subfolders(h.teams())
	}
	return slices.DeleteFunc(folders, func(folder string) bool {
		return !team.ValidName(NameOf(folder)) || h.reach(folder) != nil
	}), err
}

// subfolders returns the names of the folders in a folder, which need not exist.
func subfolders(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// in returns the paths of the entries of the directory.
func in(dir string, entries []string) (paths []string) {
	for _, entry := range entries {
		paths = append(paths, filepath.Join(dir, entry))
	}
	return paths
}

// Archive returns the folders of the archived teams that the caller may reach, sorted by their ids.
func (h Home) Archive() ([]string, error) {
	var all []string
	var err error
	if h.Place != nil {
		all, err = h.Place.ids(true)
	} else {
		all, err = subfolders(h.archive())
	}
	all = slices.DeleteFunc(all, func(id string) bool { return strings.HasPrefix(id, ".") || h.reach(id) != nil })
	return in(h.archive(), all), err
}
