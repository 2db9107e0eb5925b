// Package layout knows where things are on disk: the folders of teams, and how a team is created,
// archived and removed. It knows these places:
//
//	<root>/teams/<team>/            a team: its journal, snapshot and projection mark (filejournal, projection)
//	<root>/teams/<team id>/         another project's team, if the folder of that name was in use
//	<root>/teams/<team>/hosts/<id>/ a host that runs or ran sessions for it (proc)
//	<root>/teams/.running/          the hosts that run sessions of the home's teams (proc)
//	<root>/archive/<team id>/       a finished team whose name was given to a new one
//	<root>/placed/<team id>/        what this machine has of a team that lives in a database
//	<root>/placed-archive/<team id>/  of a finished one whose name was given to a new one
//	<root>/damaged/<team>-<n>/      a damaged team that was restored from a checkpoint
//	<root>/replaced/<team>-<n>/     a copy of a team that a pull replaced by a newer one
//	<root>/observed/<team>/         what the observer knows of a team that is only observed (observe/store)
//	<root>/stranded/<team>-<n>/     worktrees of a team that was removed, whose repository could not be reached
//	<root>/removed/<team id>        a removed team whose branches stayed
//	<root>/seats/<team>/<member>/   a member of a team that Claude Code runs (guest)
//	<root>/templates/<name>.yaml    team files of the user that run by their names (run/templates)
//	<root>/trust.json               projects whose hooks and templates may run (hook)
//	<root>/names.lock               locked while a team's folder appears or disappears
//	<claude>/teams, <claude>/tasks  Claude Code's folders, for projections only (projection)
//
// docs/architecture/disk.md lists every file below these, and the files of the home that one
// package alone uses and places: those of the server, of settings, notifications and presence.
//
// # Names
//
// A name is unique in a project, which package project defines. The teams of two projects may share
// it. A team's id is unique in the home. In its own project a name stands for the project's team.
// Elsewhere it stands for the only team of that name, and an [AmbiguousError] says if there are
// two. An id stands for its team everywhere.
//
// # Guarantees
//
//   - A team's folder appears complete, with its first records durable, or not at all. When two
//     processes create the same name at once, one of them wins.
//   - Removal is safe at any moment. The folder is first moved away, so a name is either taken or
//     free.
//   - A name that is not a valid team name never becomes a path, and neither does such an id.
package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Home is the pair of root folders. Both paths are absolute.
type Home struct {
	Root   string // ours: $CADRE_HOME, else ~/.cadre
	Claude string // Claude Code's: $CLAUDE_CONFIG_DIR, else ~/.claude
	Scope  Scope  // what the caller may reach of it; nil for everything
	// Dir is the directory in whose project names stand for the project's teams, absolute; "" for
	// none.
	Dir string
	// Place is where the teams live; nil for teams in the home itself. Then the home has no other
	// teams.
	Place *Place
}

// Of returns the home with the folder of a team.
func Of(folder string) Home { return Home{Root: filepath.Dir(filepath.Dir(folder))} }

// In returns the home for a caller who works in the directory.
func (h Home) In(dir string) Home {
	h.Dir = dir
	return h
}

// Scope restricts what a caller may reach in a home. Each method returns the refusal, or nil.
type Scope interface {
	Reach(team string) error  // open the team in the folder of that name: its own name, or its id
	Create(team string) error // make a team of that name
}

func (h Home) reach(name string) error {
	if h.Scope == nil {
		return nil
	}
	return h.Scope.Reach(name)
}

// Find returns the home of the user, from the environment.
func Find() (Home, error) {
	root, err := folder("CADRE_HOME", ".cadre")
	if err != nil {
		return Home{}, err
	}
	claude, err := folder("CLAUDE_CONFIG_DIR", ".claude")
	return Home{Root: root, Claude: claude}, err
}

func folder(variable, name string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return filepath.Abs(dir)
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", &team.Error{Code: team.Invalid, Text: fmt.Sprintf("Neither %s nor HOME is set. Set %s to the "+
			"folder to use.", variable, variable)}
	}
	return filepath.Join(user, name), nil
}

// teams returns the folder of the teams in use.
func (h Home) teams() string {
	if h.Place != nil {
		return filepath.Join(h.Root, placedFolder)
	}
	return filepath.Join(h.Root, teamsFolder)
}

// archive returns the folder of the archived teams.
func (h Home) archive() string {
	if h.Place != nil {
		return filepath.Join(h.Root, placedArchive)
	}
	return filepath.Join(h.Root, archiveFolder)
}

// teamsFolder is the name of the folder of teams in use that live in the home.
const teamsFolder = "teams"

// Observation returns the folder with what is known of an observed team, beside its journal.
func (h Home) Observation(name string) string { return filepath.Join(h.Root, "observed", name) }

// Guests returns the folder of the members in teams that Claude Code runs.
func (h Home) Guests() string { return filepath.Join(h.Root, "seats") }

// Running returns the list of the hosts that run sessions of the home's teams, those of a place
// too. It is kept among the teams, so a process that reaches them by another path finds the same
// list.
func (h Home) Running() string { return filepath.Join(h.Root, teamsFolder, proc.ListFolder) }

// Templates returns the folder of the user's templates.
func (h Home) Templates() string { return filepath.Join(h.Root, "templates") }

// Trust returns the file that says which projects' hooks and templates may run.
func (h Home) Trust() string { return filepath.Join(h.Root, "trust.json") }

// owns returns damage if the journal in a team's folder belongs to another team, whose files were
// copied there.
func owns(j Journal, dir string) error {
	name := filepath.Base(dir)
	id, _, _ := strings.Cut(j.ID(), restoredMark)
	if rest, ok := strings.CutPrefix(id, name); ok && (rest == "" || rest[0] == '-' &&
		!strings.Contains(rest[1:], "-")) {
		return nil // a team's id is its name and a word, and the folder of an archived team has that id
	}
	for r, err := range j.Read(context.Background(), 0) { // the id of an observed team may be made from another name
		if err != nil {
			return nil // readers of the history get the error
		}
		first, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err != nil {
			return nil
		}
		s := &team.State{}
		if s.Apply(first); !s.Exists() || s.Team().Name == name || s.Team().ID == name {
			return nil
		}
		return &journal.DamageError{Team: name, Segment: filepath.Join(dir, "journal"),
			Reason: fmt.Sprintf("it is the history of team %s", s.Team().Name)}
	}
	return nil
}

// Create makes the team with these commands as the beginning of its history, all of them or none.
// The first one must be a CreateTeam. It returns [team.Taken] if the name is in use.
func (h Home) Create(name string, commands []team.Command) error {
	return h.CreateAll(Beginning{name, commands})
}

// Beginning is the beginning of the history of a team that is to be made.
type Beginning struct {
	Name     string
	Commands []team.Command
}

// CreateAll makes the teams as [Home.Create] does. It makes none of them if one cannot be made. The
// teams appear one right after the other, in this order, so nested teams come before their parent.
func (h Home) CreateAll(teams ...Beginning) error {
	all := make([]founding, len(teams))
	for i, b := range teams {
		if err := team.CheckName("team", b.Name); err != nil {
			return err
		}
		state, records, err := team.Begin(b.Commands)
		if err != nil {
			return err
		}
		all[i] = founding{team: state.Team(), records: records}
	}
	return h.foundAll(all)
}

// journalID returns the id of a team's journal. It is the team's id, followed for a team restored
// from a checkpoint by the history that begins here. A team that was moved has one id on both
// machines, and two histories.
func journalID(t team.Team) string {
	if t.Restored.ID == "" {
		return t.ID
	}
	return t.ID + restoredMark + t.Restored.ID
}

const restoredMark = "+" // never part of an id

// Found makes an observed team with these records as the beginning of its history, all of them or
// none, and returns its folder. It returns [team.Taken] if a team of any project has the name.
func (h Home) Found(name, id string, records [][]byte) (dir string, err error) {
	if err := team.CheckName("team", name); err != nil {
		return "", err
	}
	return h.found(team.Team{Name: name, ID: id, Observed: name}, records)
}

// found makes the folder of the team.
func (h Home) found(t team.Team, records [][]byte) (dir string, err error) {
	all := []founding{{team: t, records: records}}
	err = h.foundAll(all)
	return all[0].dir, err
}

// founding is a team whose folder is being made.
type founding struct {
	team    team.Team
	records [][]byte
	making  string // its folder before it is complete
	dir     string
}

// foundAll makes the folders of the teams.
func (h Home) foundAll(all []founding) error {
	for _, f := range all {
		if h.Scope != nil {
			if err := h.Scope.Create(f.team.Name); err != nil {
				return err
			}
		}
		if _, is := nameOfID(f.team.Name); is {
			return team.Refuse(team.Invalid, "%q cannot be the name of a team: it looks like the id of one; leave its "+
				"last part out", f.team.Name)
		}
	}
	if h.Place != nil {
		return h.createPlaced(all)
	}
	for _, f := range all {
		if err := h.notElsewhere(f.team); err != nil && f.team.Observed == "" {
			return err
		}
	}
	if err := makeFolder(h.teams()); err != nil {
		return err
	}
	defer func() {
		for _, f := range all {
			if f.making != "" {
				os.RemoveAll(f.making)
			}
		}
	}()
	for i := range all {
		if err := all[i].make(h.teams()); err != nil {
			return err
		}
	}
	err := h.alone(func() error {
		for i := range all {
			var err error
			if all[i].dir, err = h.vacant(all[i].team); err != nil {
				return err
			}
		}
		for _, f := range all {
			if err := os.Rename(f.making, f.dir); errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
				return h.taken(Known{Team: team.Team{Name: f.team.Name}}, "")
			} else if err != nil {
				return fmt.Errorf("create team %s: %w", f.team.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return atomicfile.Folder(h.teams())
}

// make makes the folder of the team beside its place. Names of teams contain no dot, so it does not
// count as a team before it is complete.
func (f *founding) make(teams string) (err error) {
	if f.making, err = os.MkdirTemp(teams, newMark); err != nil {
		return fmt.Errorf("create team %s: %w", f.team.Name, err)
	}
	if err := filejournal.Create(f.making, journalID(f.team), f.records, filejournal.Options{}); err != nil {
		return fmt.Errorf("create team %s: nothing was created: %w", f.team.Name, err)
	}
	return nil
}

func (h Home) free(name string) string {
	used, err := h.inUse()
	for n := 2; ; n++ {
		free := team.Numbered(name, n)
		if err != nil || !slices.ContainsFunc(used, func(folder string) bool { return NameOf(folder) == free }) {
			return free
		}
	}
}

// PutInArchive moves the folder of a finished team to the archive under its id. Its name becomes
// free, and its record is kept. It returns where the folder is now.
func (h Home) PutInArchive(folder, id string) (archived string, err error) {
	if id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return "", fmt.Errorf("archive the team in %s: its id %q cannot be the name of a folder", folder, id)
	}
	archive := h.archive()
	if err := makeFolder(archive); err != nil {
		return "", err
	}
	dir := filepath.Join(archive, id)
	if h.Place != nil {
		if err := h.Place.archive(id); err != nil {
			return "", err
		}
	}
	err = os.Rename(folder, dir)
	if _, there := os.Stat(dir); h.Place != nil && err != nil && there == nil { // another process saw that it is archived
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("archive team %s: %w", id, err)
	}
	// Sync the new place before the old one: a loss of power in between may leave both names, but
	// never neither.
	return dir, errors.Join(atomicfile.Folder(archive), atomicfile.Folder(h.teams()))
}

// The reasons to set a team aside. They are also the names of the folders it moves to.
const (
	Damaged  = "damaged"  // its history cannot be read
	Replaced = "replaced" // a newer copy of it was pulled
)

// SetAside moves the folder of a team away, so that the team can be restored under its name. No
// file of the team is lost: SetAside returns where the folder is now.
func (h Home) SetAside(folder, why string) (string, error) {
	dir, err := h.aside(why, filepath.Base(folder), folder)
	if err != nil {
		err = fmt.Errorf("set the team in %s aside: %w", folder, err)
	}
	return dir, err
}

// KeepWorktrees moves the worktrees that are left in a team's folder away before the folder is
// removed. Their repository could not be reached, and their content is nowhere else. It returns
// where they are now, or "".
func (h Home) KeepWorktrees(dir string) (string, error) {
	worktrees := filepath.Join(dir, "worktrees")
	left, err := os.ReadDir(worktrees)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// the removal of a folder with a dot had started
	if !slices.ContainsFunc(left, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }) {
		return "", nil
	}
	kept, err := h.aside("stranded", filepath.Base(dir), worktrees)
	if err != nil {
		err = fmt.Errorf("keep the worktrees in %s: %w", worktrees, err)
	}
	return kept, err
}

// Belonged reports whether a directory is, or was, in the folder of a team of that name or of a
// team that was being removed. It decides by the path, because the directory may not exist any
// more. While the folder of teams itself does not exist, nothing is known to have been in it.
func (h Home) Belonged(name, dir string) bool {
	teams, err := filepath.EvalSymlinks(h.teams())
	if err != nil {
		return false
	}
	for _, root := range []string{h.teams(), teams} { // git writes paths without symbolic links
		rest, err := filepath.Rel(root, dir)
		first, _, below := strings.Cut(rest, string(filepath.Separator))
		if err == nil && below && (NameOf(first) == name || strings.HasPrefix(first, goneMark)) {
			return true
		}
	}
	return false
}

// aside moves a folder into one of ours, under a unique name.
func (h Home) aside(into, name, from string) (string, error) {
	into = filepath.Join(h.Root, into)
	if err := makeFolder(into); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		dir := filepath.Join(into, fmt.Sprintf("%s-%d", name, n))
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		err := os.Rename(from, dir)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) { // another process was faster
			continue
		}
		if err != nil {
			return "", err
		}
		return dir, errors.Join(atomicfile.Folder(into), atomicfile.Folder(filepath.Dir(from)))
	}
}

// namesFile is locked while a team's folder appears or disappears.
const namesFile = "names.lock"

// namesWait bounds the wait for other processes, which hold the lock only for a moment.
const namesWait = 30 * time.Second

// alone calls do while no other process creates or removes a team.
func (h Home) alone(do func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), namesWait)
	defer cancel()
	lock, err := filelock.Wait(ctx, filepath.Join(h.Root, namesFile))
	if err != nil {
		return err
	}
	return errors.Join(do(), lock.Unlock())
}

// Remove removes the folder of a team, and what a killed Create or Remove left beside it. If the
// folder does not exist, it does nothing. ready is called first, while no team can take the name;
// if it returns false, the folder stays. It may be nil.
func (h Home) Remove(dir string, ready func() (bool, error)) error {
	beside := filepath.Dir(dir)
	gone, err := os.MkdirTemp(beside, goneMark)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	err = h.alone(func() error {
		if ready != nil {
			if is, err := ready(); !is || err != nil {
				return err
			}
		}
		if id, placed := h.Placed(dir); placed {
			if err := h.Place.remove(id); err != nil {
				return err
			}
		}
		return os.Rename(dir, filepath.Join(gone, "team"))
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		os.Remove(gone)
		return err
	}
	return errors.Join(os.RemoveAll(gone), sweep(beside), atomicfile.Folder(beside))
}

// Sweep removes what a killed Create or Remove left.
func (h Home) Sweep() error { return sweep(h.teams()) }

// Prefixes of folder names that are not names of teams.
const (
	newMark  = ".new-"  // a team that is being created
	goneMark = ".gone-" // one that is being removed
)

// longCreation is the age at which a folder of a new team is abandoned: no process is still
// creating it.
const longCreation = time.Hour

func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		left := strings.HasPrefix(e.Name(), goneMark)
		if strings.HasPrefix(e.Name(), newMark) {
			info, err := e.Info()
			left = err == nil && time.Since(info.ModTime()) > longCreation
		}
		if left {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// makeFolder makes a folder and its parents, and makes the new names durable.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.Folder(filepath.Dir(dir))
}
