package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// folders are Claude Code's two folders of one team. They are only changed under the mark's lock.
type folders struct {
	team       team.Team
	claude     string
	name       string // of the folders
	roster     string // <claude>/teams/<name>
	tasks      string // <claude>/tasks/<name>
	tempPrefix string // part of the names of our temporary files; unique to the team
	step       func(string)

	changed int      // number of files written or removed
	aside   []string // new paths of folders that were in place of our files
}

const (
	configName    = "config.json"
	ownerName     = ".cadre"
	highWaterName = ".highwatermark"
	lockName      = ".lock"
)

func foldersOf(claude string, t team.Team, step func(string)) *folders {
	f := &folders{team: t, claude: claude, tempPrefix: ".cadre-" + sessionID(t.ID)[:8], step: step}
	f.use(t.Name)
	return f
}

// use selects the folders of that name.
func (f *folders) use(name string) {
	f.name = name
	f.roster, f.tasks = filepath.Join(f.claude, "teams", name), filepath.Join(f.claude, "tasks", name)
}

func (f *folders) config() string        { return filepath.Join(f.roster, configName) }
func (f *folders) owner() string         { return filepath.Join(f.tasks, ownerName) }
func (f *folders) task(id string) string { return filepath.Join(f.tasks, id+".json") }
func finished(t team.Team) bool          { return t.Status == team.TeamComplete || t.Status == team.TeamAborted }

// at is a hook for the crash tests.
func (f *folders) at(step string) {
	if f.step != nil {
		f.step(step)
	}
}

// intact is a quick check that no file or folder is missing or left over.
func (f *folders) intact() bool {
	if finished(f.team) {
		return missing(f.tasks)
	}
	return !missing(f.config()) && !missing(f.owner())
}

// tasksChanged returns the time at which a file was last added to or removed from tasks/<team>, in
// nanoseconds; 0 if the folder is missing.
func (f *folders) tasksChanged() int64 {
	info, err := os.Lstat(f.tasks)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// holder is the owner of a folder.
type holder int

const (
	free   holder = iota // no owner
	ours                 // this team
	older                // an earlier team of ours, which has lost its name
	others               // another program, or a newer team of ours
)

func (f *folders) holderOf(o Owner) holder {
	created := int64(f.team.CreatedAt)
	switch {
	case o.TeamID == f.team.ID:
		return ours
	case o.CreatedAt < created || o.CreatedAt == created && o.TeamID < f.team.ID:
		return older
	}
	return others
}

// holders returns the owners of both folders.
func (f *folders) holders(known bool) (roster, tasks holder, err error) {
	if roster, err = f.rosterHolder(known); err != nil {
		return 0, 0, err
	}
	tasks, err = f.tasksHolder()
	return roster, tasks, err
}

// rosterHolder returns the owner of teams/<team>. known says that this team was projected there
// before. An invalid config.json is then our own file, damaged by a power loss.
func (f *folders) rosterHolder(known bool) (holder, error) {
	if h, err := folderHolder(f.roster); h != ours {
		return h, err
	}
	o, err := configOwner(f.config())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return free, nil // a folder without a config.json is not a team
	case (errors.Is(err, errGarbled) || regularfile.Is(err)) && known:
		return ours, nil
	case errors.Is(err, errGarbled) || regularfile.Is(err) || err == nil && o == nil:
		return others, nil
	case err != nil:
		return 0, err
	}
	return f.holderOf(*o), nil
}

// tasksHolder returns the owner of tasks/<team>.
func (f *folders) tasksHolder() (holder, error) {
	if h, err := folderHolder(f.tasks); h != ours {
		return h, err
	}
	data, err := regularfile.Read(f.owner(), maxOwner)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(f.tasks)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ownerName) { // a file with our prefix is left by a killed process
				return others, nil
			}
		}
		return free, nil
	}
	if err != nil && !regularfile.Is(err) {
		return 0, err
	}
	var o Owner
	if json.Unmarshal(data, &o) != nil {
		return older, nil // no other program writes a file of this name, so it is a damaged one of ours
	}
	return f.holderOf(o), nil
}

// folderHolder returns the owner if it is clear without reading the folder. Otherwise it returns
// ours, and the caller must read the folder.
func folderHolder(path string) (holder, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return free, nil
	case err != nil:
		return 0, err
	case !info.IsDir():
		return others, nil
	}
	return ours, nil
}

// Size limits, in bytes, of a file in Claude Code's folders, and of one that names the owner of a
// folder.
const (
	maxFile  = 64 << 20
	maxOwner = 64 << 10
)

var errGarbled = errors.New("not the JSON of a team")

// configOwner returns the value of our key in a config.json, or nil if it has none. In our own
// files it is the first key. The rest, which may be megabytes of prompts, is not read then.
func configOwner(path string) (*Owner, error) {
	f, err := regularfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errGarbled
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errGarbled
		}
		if key == "cadre" {
			var o Owner
			if d.Decode(&o) != nil {
				return nil, errGarbled
			}
			return &o, nil
		}
		var other json.RawMessage
		if d.Decode(&other) != nil {
			return nil, errGarbled
		}
	}
	return nil, nil
}

// openTasks creates tasks/<team>, and first of all records its owner.
func (f *folders) openTasks(seq int64) error {
	if err := os.MkdirAll(f.tasks, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(Owner{TeamID: f.team.ID, CreatedAt: int64(f.team.CreatedAt), Seq: seq})
	if err != nil {
		return err
	}
	return f.put(f.owner(), data)
}

// put replaces a file atomically.
func (f *folders) put(path string, data []byte) error {
	passing := filepath.Join(filepath.Dir(path), f.tempPrefix+".tmp")
	f.at("write " + filepath.Base(path))
	err := os.WriteFile(passing, data, 0o600)
	if err == nil {
		err = f.setAside(path)
	}
	if err == nil {
		f.at("rename " + filepath.Base(path))
		err = os.Rename(passing, path)
	}
	if err != nil {
		os.Remove(passing)
		return err
	}
	f.changed++
	return nil
}

// putChanged replaces a file unless it has the same content.
func (f *folders) putChanged(path string, data []byte) error {
	if old, err := regularfile.Read(path, maxFile); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return f.put(path, data)
}

// setAside moves a folder out of the place of one of our files, because a file cannot replace a
// folder. Its content is not ours. It is moved beside the team's folder, because that folder is
// removed with the team.
func (f *folders) setAside(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return nil
	}
	beside := filepath.Dir(filepath.Dir(path))
	for n := 1; ; n++ {
		aside := filepath.Join(beside, fmt.Sprintf("%s.aside-%d-%s", f.tempPrefix, n, filepath.Base(path)))
		if !missing(aside) {
			continue
		}
		f.at("set aside " + filepath.Base(path))
		if err := os.Rename(path, aside); err != nil {
			return err
		}
		f.aside = append(f.aside, aside)
		return nil
	}
}

// drop removes a file; it need not exist.
func (f *folders) drop(path string) error {
	if err := f.setAside(path); err != nil {
		return err
	}
	f.at("remove " + filepath.Base(path))
	err := os.Remove(path)
	if err == nil {
		f.changed++
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// taskFiles returns the ids of the tasks that have a file.
func (f *folders) taskFiles() ([]string, error) {
	entries, err := os.ReadDir(f.tasks)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && id != "" && strings.Trim(id, "0123456789") == "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// remove removes the folders that are ours.
func (f *folders) remove() error {
	tasks, err := f.tasksHolder()
	if err == nil {
		err = f.removeFolder(f.tasks, tasks == ours)
	}
	roster, err2 := f.rosterHolder(false)
	if err2 == nil {
		err2 = f.removeFolder(f.roster, roster == ours)
	}
	return errors.Join(err, err2)
}

// removeFolder renames a folder, so that it disappears atomically, and then deletes it. It also
// deletes the remains of an earlier removal that was killed in between.
func (f *folders) removeFolder(dir string, there bool) error {
	aside := filepath.Join(filepath.Dir(dir), f.tempPrefix+".gone")
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if !there {
		return nil
	}
	f.at("put aside")
	if err := os.Rename(dir, aside); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	f.at("delete")
	return os.RemoveAll(aside)
}
