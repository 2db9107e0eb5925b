package teamfiles

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// Lead is the name of the lead in every Claude Code team.
const Lead = "team-lead"

// Team gives access to the files of one team. It may be used from any goroutine. Every method that
// changes something waits for the lock of the file until its ctx ends.
type Team struct {
	Name   string
	roster string // teams/<team>
	tasks  string // tasks/<team>
}

// Open returns the team of that name, which must exist. claude is Claude Code's folder.
func Open(claude, name string) (*Team, error) {
	t, err := teamAt(claude, name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(t.config()); errors.Is(err, fs.ErrNotExist) {
		return nil, &team.Error{Code: team.NotFound, Text: fmt.Sprintf("Claude Code has no team %s: %s does not exist",
			name, t.config())}
	} else if err != nil {
		return nil, err
	}
	return t, nil
}

// Found creates a team that this program leads. Its folder must not exist.
func Found(claude string, c projection.Config) (*Team, error) {
	t, err := teamAt(claude, c.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(t.roster), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(t.roster, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, &team.Error{Code: team.Taken, Text: fmt.Sprintf(
			"Claude Code's folder already has a team %s", c.Name)}
	} else if err != nil {
		return nil, err
	}
	data, err := projection.Encode(c)
	if err == nil {
		err = errors.Join(os.MkdirAll(t.inboxes(), 0o700), os.MkdirAll(t.tasks, 0o700))
	}
	if err == nil {
		err = replace(t.config(), data)
	}
	if err != nil {
		t.Remove()
		return nil, err
	}
	return t, nil
}

func teamAt(claude, name string) (*Team, error) {
	if err := team.CheckName("team", name); err != nil {
		return nil, err
	}
	return &Team{Name: name, roster: filepath.Join(claude, "teams", name), tasks: filepath.Join(claude, "tasks", name)},
		nil
}

func (t *Team) config() string  { return filepath.Join(t.roster, "config.json") }
func (t *Team) inboxes() string { return filepath.Join(t.roster, "inboxes") }

// Remove removes a team that this program leads.
func (t *Team) Remove() error {
	return errors.Join(os.RemoveAll(t.roster), os.RemoveAll(t.tasks))
}

// DamagedError reports an invalid file. The file is not changed; a person must look at it.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged and was not changed: %v", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Some files are written in place, so a reader may see half a file. It then reads again, for longer
// than any write can take.
const (
	rereads     = 25
	rereadPause = 10 * time.Millisecond
)

// read reads and decodes a file.
func read(ctx context.Context, path string, into any) error {
	return retryDamaged(ctx, func() error { return readOnce(path, into) })
}

// maxFile is the size limit of a team's file, in bytes.
const maxFile = 64 << 20

func readOnce(path string, into any) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	if err := parse(data, into); err != nil {
		return &DamagedError{path, err}
	}
	return nil
}

// readFile reads a file. It reports a special file, or one that is far too large, as damage.
func readFile(path string) ([]byte, error) {
	data, err := regularfile.Read(path, maxFile)
	_, large := errors.AsType[*regularfile.TooLargeError](err)
	if regularfile.Is(err) || large {
		return nil, &DamagedError{path, err}
	}
	return data, err
}

// parse decodes JSON. It rejects a file without the fields that every file of its kind has: an
// empty roster would mean that all members have left.
func parse(data []byte, into any) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return errors.New("it is null")
	}
	if err := json.Unmarshal(data, into); err != nil {
		return err
	}
	switch v := into.(type) {
	case *projection.Config:
		if v.Members == nil {
			return errors.New("it has no members")
		}
	case *Task:
		if v.Status == "" {
			return errNoStatus
		}
	}
	return nil
}

var errNoStatus = errors.New("it has no status")

// retryDamaged calls try again while it finds a file half written.
func retryDamaged(ctx context.Context, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if _, damaged := errors.AsType[*DamagedError](err); !damaged || n == rereads {
			return err
		}
		if sleep.For(ctx, rereadPause) != nil {
			return err
		}
	}
}

// replace replaces a file atomically. The temporary file is named as Claude Code names it.
func replace(path string, data []byte) error {
	var random [4]byte
	rand.Read(random[:])
	return atomicfile.Replace(path, data, atomicfile.Passing{Name: path + ".tmp." + hex.EncodeToString(random[:])})
}

// edit reads a file into into, calls change and replaces the file, under its lock. If the file does
// not exist, into keeps its value and there is false. If change returns false, nothing is written.
// While waiting for a half-written file, edit does not hold the lock, because others would time
// out.
func edit(ctx context.Context, path string, into any, change func(there bool) (bool, error)) error {
	return retryDamaged(ctx, func() error { return editOnce(ctx, path, into, change) })
}

func editOnce(ctx context.Context, path string, into any, change func(there bool) (bool, error)) error {
	lock, err := lockFile(ctx, path)
	if err != nil {
		return err
	}
	defer lock.unlock()
	err = readOnce(path, into)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	write, err := change(err == nil)
	if err != nil || !write {
		return err
	}
	data, err := projection.Encode(into)
	if err != nil {
		return err
	}
	if err := lock.checkHeld(); err != nil {
		return err
	}
	return replace(path, data)
}

// Config reads the roster.
func (t *Team) Config(ctx context.Context) (c projection.Config, err error) {
	err = read(ctx, t.config(), &c)
	if errors.Is(err, fs.ErrNotExist) {
		err = t.gone()
	}
	return c, err
}

func (t *Team) gone() error {
	return &team.Error{Code: team.Finished, Text: fmt.Sprintf("team %s of Claude Code has ended: %s was removed",
		t.Name, t.config())}
}

// rosterFile is the part of config.json that this package changes.
type rosterFile struct {
	config  *object
	members []*object
}

// editRoster changes the list of members.
func (t *Team) editRoster(ctx context.Context, change func(r *rosterFile) (bool, error)) error {
	r := &rosterFile{config: &object{}}
	return edit(ctx, t.config(), r.config, func(there bool) (bool, error) {
		if !there {
			return false, t.gone()
		}
		if err := json.Unmarshal(r.config.values["members"], &r.members); err != nil {
			return false, &DamagedError{t.config(), err}
		}
		write, err := change(r)
		if err != nil || !write {
			return false, err
		}
		return true, r.config.set("members", r.members)
	})
}

func (r *rosterFile) find(name string) int {
	return slices.IndexFunc(r.members, func(o *object) bool {
		var m projection.Member
		return o != nil && o.decode(&m) == nil && m.Name == name
	})
}

// Join adds a member to the roster.
func (t *Team) Join(ctx context.Context, m projection.Member) error {
	if err := team.CheckNewMember(m.Name, Lead); err != nil {
		return err
	}
	return t.editRoster(ctx, func(r *rosterFile) (bool, error) {
		if r.find(m.Name) >= 0 {
			return false, &team.Error{Code: team.Taken, Text: fmt.Sprintf(
				"team %s already has a member %s; choose another name", t.Name, m.Name)}
		}
		o, err := objectOf(m)
		r.members = append(r.members, o)
		return true, err
	})
}

// Leave removes a member from the roster, if it is there.
func (t *Team) Leave(ctx context.Context, name string) error {
	return t.editRoster(ctx, func(r *rosterFile) (bool, error) {
		i := r.find(name)
		if i < 0 {
			return false, nil
		}
		r.members = slices.Delete(r.members, i, i+1)
		return true, nil
	})
}

// SetActive records whether a member is active.
func (t *Team) SetActive(ctx context.Context, name string, active bool) error {
	return t.editRoster(ctx, func(r *rosterFile) (bool, error) {
		i := r.find(name)
		if i < 0 {
			return false, t.unknownMember(name)
		}
		var m projection.Member
		if err := r.members[i].decode(&m); err != nil {
			return false, err
		}
		if m.IsActive != nil && *m.IsActive == active {
			return false, nil
		}
		return true, r.members[i].set("isActive", active)
	})
}

func (t *Team) unknownMember(name string) error {
	return &team.Error{Code: team.NotFound, Text: fmt.Sprintf("team %s has no member %q", t.Name, name)}
}
