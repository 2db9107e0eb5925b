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
	"sync"

	"cadre/internal/git/project"
	"cadre/internal/journal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Place is where the teams of a home live instead of in its folders: a database that several
// machines share. Of each team that this machine works with, the home has a folder. It holds what
// belongs to this machine alone, such as worktrees and hosts. A Place connects when it is first
// used. Any goroutine may use it.
type Place struct {
	// Called names the place to a person, without a password.
	Called string
	// Project returns what the directory's project is called in the place, on each machine.
	Project func(dir string) string

	// Environment is what our own programs need to reach the place, and no other program may have:
	// "name=value".
	Environment []string

	connect func(context.Context) (store.Teams, func(), error)

	mu     sync.Mutex
	teams  store.Teams
	leave  func()
	shared map[string]store.Team // of the teams that were opened, by their ids
}

// NewPlace returns a place that connects with that function, which also returns how to disconnect.
// A failed attempt is repeated by the next use.
func NewPlace(called string, project func(dir string) string,
	connect func(context.Context) (store.Teams, func(), error)) *Place {
	return &Place{Called: called, Project: project, connect: connect, shared: map[string]store.Team{}}
}

// Teams returns the list of the teams in the place.
func (p *Place) Teams(ctx context.Context) (store.Teams, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.teams == nil {
		teams, leave, err := p.connect(ctx)
		if err != nil {
			return nil, err
		}
		p.teams, p.leave = teams, leave
	}
	return p.teams, nil
}

// Close disconnects, after what other processes wait for was sent. Every team of the place must be
// closed before.
func (p *Place) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.teams != nil {
		p.leave()
	}
	p.teams, p.shared = nil, map[string]store.Team{}
}

// ForOurs returns the environment for one of our own programs, which reaches the teams of the home
// as this process does.
func (h Home) ForOurs(env []string) []string {
	if h.Place == nil {
		return env
	}
	return slices.Concat(env, h.Place.Environment)
}

// list returns the teams that the place has, archived or not.
func (p *Place) list(archived bool) ([]store.Entry, error) {
	ctx := context.Background() // the place has time limits of its own
	teams, err := p.Teams(ctx)
	if err != nil {
		return nil, err
	}
	all, err := teams.List(ctx)
	return slices.DeleteFunc(all, func(e store.Entry) bool { return e.Archived != archived }), err
}

// ids returns the ids of the teams that the place has, archived or not.
func (p *Place) ids(archived bool) (ids []string, err error) {
	all, err := p.list(archived)
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	return ids, err
}

// archive takes a team out of use.
func (p *Place) archive(id string) error {
	teams, err := p.Teams(context.Background())
	if err != nil {
		return err
	}
	return teams.Archive(context.Background(), id)
}

// remove removes a team. It does nothing for one that is gone.
func (p *Place) remove(id string) error {
	teams, err := p.Teams(context.Background())
	if err != nil {
		return err
	}
	if err := teams.Remove(context.Background(), id); !errors.Is(err, journal.ErrNotFound) {
		return err
	}
	return nil
}

// open opens a team.
func (p *Place) open(id string) (store.Opened, error) {
	ctx := context.Background()
	teams, err := p.Teams(ctx)
	if err != nil {
		return store.Opened{}, err
	}
	opened, err := teams.Open(ctx, id)
	if err == nil {
		p.mu.Lock()
		p.shared[id] = opened.Shared
		p.mu.Unlock()
	}
	return opened, err
}

// Journal is the history of a team, with the id of that history.
type Journal interface {
	journal.Journal
	ID() string
}

// placedJournal is the history of a team in a place.
type placedJournal struct {
	journal.Journal
	id      string
	project string
	seen    string // path of the file with what this machine has seen of the history; "" for none
	mark    string // what was in it
}

func (j placedJournal) ID() string { return j.id }

// seenFile is in the folder of a team of a place. It has a mark of the history as this machine has
// seen it last, so that a restored copy of the place that lacks what was there is noticed.
const seenFile = "seen"

// openSeen opens the journal of the team in that folder. In a place, it refuses a history that
// lacks what this machine has seen of it.
func (h Home) openSeen(dir string, report func(string)) (Journal, error) {
	j, err := h.openFolder(dir, report)
	placed, is := j.(placedJournal)
	if err != nil || !is {
		return j, err
	}
	marked, is := placed.Journal.(journal.Marked)
	if !is {
		return j, nil
	}
	placed.seen = filepath.Join(dir, seenFile)
	const most = 1 << 10
	data, err := regularfile.Read(placed.seen, most)
	if errors.Is(err, fs.ErrNotExist) {
		return placed, nil
	}
	if err == nil {
		placed.mark = strings.TrimSpace(string(data))
		err = marked.Expect(context.Background(), placed.mark)
	}
	if errors.Is(err, journal.ErrNoMark) { // a power loss damaged the file
		return placed, nil
	}
	if _, damage := errors.AsType[*journal.DamageError](err); damage {
		err = fmt.Errorf("%w. If the database was restored on purpose, and its teams are to go on from there, remove %s",
			err, placed.seen)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return placed, nil
}

// Close closes the journal, and notes what was seen of it. Without the note, or with an earlier
// one, less is noticed.
func (j placedJournal) Close() error {
	if marked, is := j.Journal.(journal.Marked); is && j.seen != "" {
		if mark := marked.Mark(); mark != "" && mark != j.mark {
			by := atomicfile.Passing{Name: fmt.Sprintf("%s.%d", j.seen, os.Getpid())} // others close it, too
			_ = atomicfile.Replace(j.seen, []byte(mark+"\n"), by)
		}
	}
	return j.Journal.Close()
}

// Folders of the teams of a place. Each has the id of its team for its name.
const (
	placedFolder  = "placed"
	placedArchive = "placed-archive"
)

// placeFile is in the folder of a team of a place, and names the place.
const placeFile = "place"

// Placed returns the id of the team whose folder this is, if the team lives in a place.
func (h Home) Placed(folder string) (id string, is bool) {
	switch filepath.Dir(folder) {
	case filepath.Join(h.Root, placedFolder), filepath.Join(h.Root, placedArchive):
		return filepath.Base(folder), true
	}
	return "", false
}

// RunningOf returns the list of the hosts that run sessions, for the team in that folder: that of
// its home, or the one beside a team in memory.
func RunningOf(folder string) string {
	teams := filepath.Dir(folder)
	if base := filepath.Base(teams); base == placedFolder || base == placedArchive {
		return Of(folder).Running()
	}
	return filepath.Join(teams, proc.ListFolder)
}

// Shared returns what the processes of the team in that folder share besides its journal.
func (h Home) Shared(folder string) (store.Team, error) {
	id, placed := h.Placed(folder)
	if !placed {
		return filestore.Team(folder), nil
	}
	if h.Place == nil {
		return nil, notConnected(folder)
	}
	h.Place.mu.Lock()
	shared := h.Place.shared[id]
	h.Place.mu.Unlock()
	if shared != nil {
		return shared, nil
	}
	opened, err := h.Place.open(id)
	if err != nil {
		return nil, h.missing(id, err)
	}
	return opened.Shared, opened.Journal.Close()
}

// openPlaced opens the journal of a team of a place.
func (h Home) openPlaced(folder, id string) (Journal, error) {
	if h.Place == nil {
		return nil, notConnected(folder)
	}
	opened, err := h.Place.open(id)
	if err != nil {
		return nil, h.missing(id, err)
	}
	return placedJournal{Journal: opened.Journal, id: opened.ID, project: opened.Project}, nil
}

// missing says in a person's words that a place has no such team.
func (h Home) missing(id string, err error) error {
	if errors.Is(err, journal.ErrNotFound) {
		return team.Refuse(team.NotFound, "team %s is not in %s any more", id, h.Place.Called)
	}
	return err
}

// notConnected refuses a team of a place to a process that does not know the place.
func notConnected(folder string) error {
	where, _ := placeIn(folder)
	return team.Refuse(team.Invalid, "team %s lives in %s; give its address with --store or CADRE_STORE",
		filepath.Base(folder), where)
}

// keepPlaced makes the folder that a team of a place has on this machine, if it is not there. Its
// file names the place, and then the project's directory if the team was made here.
func (h Home) keepPlaced(folder string, project ...string) error {
	path := filepath.Join(folder, placeFile)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeFolder(folder); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(strings.Join(append([]string{h.Place.Called}, project...), "\n")+"\n"))
}

// notElsewhere refuses to make a team on files while a team of that name lives in a place that this
// process does not know, and was made here for the same project: they would do the same tasks.
func (h Home) notElsewhere(of team.Team) error {
	ids, err := subfolders(filepath.Join(h.Root, placedFolder))
	if err != nil {
		return err
	}
	for _, id := range ids {
		folder := filepath.Join(h.Root, placedFolder, id)
		if NameOf(id) != of.Name || id == of.ID {
			continue
		}
		if where, dir := placeIn(folder); dir != "" && project.Same(dir, of.Dir) {
			return team.Refuse(team.Taken, "team %s of this project lives in %s; give its address with --store or "+
				"CADRE_STORE. If it is not there any more, remove %s", of.Name, where, folder)
		}
	}
	return nil
}

// placeIn returns what the file in the folder of a team of a place says.
func placeIn(folder string) (where, project string) {
	const most = 8 << 10
	data, err := regularfile.Read(filepath.Join(folder, placeFile), most)
	if err != nil {
		return "a database", ""
	}
	where, project, _ = strings.Cut(strings.TrimSpace(string(data)), "\n")
	return where, project
}

// Gone returns the folders, of teams that were made on other machines, whose teams are not in the
// place any more.
func (h Home) Gone() (folders []string, err error) {
	ids, err := subfolders(filepath.Join(h.Root, placedFolder))
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, archived := range []bool{false, true} {
		all, err := h.Place.ids(archived)
		if err != nil {
			return nil, err
		}
		for _, id := range all {
			there[id] = true
		}
	}
	for _, id := range ids {
		folder := filepath.Join(h.Root, placedFolder, id)
		if where, project := placeIn(folder); !there[id] && project == "" && where == h.Place.Called {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// placedNamed returns the folders of the teams of that name in the place.
func (h Home) placedNamed(name string) (found []string, err error) {
	all, err := h.Place.list(false)
	for _, e := range all {
		if err == nil && e.Name == name {
			found = append(found, filepath.Join(h.teams(), e.ID))
			err = h.keepPlaced(found[len(found)-1])
		}
	}
	return found, err
}

// placedAs returns the folder if the place has its team, archived or not; else "". Another machine
// may have archived the team since; its folder moves then.
func (h Home) placedAs(folder string, archived bool) (string, error) {
	all, err := h.Place.list(archived)
	if err != nil || !slices.ContainsFunc(all, func(e store.Entry) bool { return e.ID == filepath.Base(folder) }) {
		return "", err
	}
	if before := filepath.Join(h.teams(), filepath.Base(folder)); archived {
		err := makeFolder(h.archive())
		if err == nil {
			err = os.Rename(before, folder)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return folder, h.keepPlaced(folder)
}

// vacantPlaced returns the folder that a new team of the place would have, or why it cannot be
// made.
func (h Home) vacantPlaced(t team.Team) (string, error) {
	all, err := h.Place.list(false)
	if err != nil {
		return "", err
	}
	project := h.Place.Project(t.Dir)
	for _, e := range all {
		if e.ID == t.ID || e.Name == t.Name && e.Project == project {
			return "", h.taken(Known{Team: team.Team{Name: t.Name, ID: e.ID}}, "")
		}
	}
	return filepath.Join(h.teams(), t.ID), nil
}

// createPlaced makes the teams in the place, one after the other. If one cannot be made, it removes
// those before it.
func (h Home) createPlaced(all []founding) error {
	ctx := context.Background()
	teams, err := h.Place.Teams(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		f := &all[i]
		if f.team.MaxDepth > 0 {
			return team.Refuse(team.Invalid, "team %s could have teams in it, which %s does not keep yet; leave maxDepth "+
				"out, or leave --store and CADRE_STORE out", f.team.Name, h.Place.Called)
		}
		if f.team.Observed != "" {
			return team.Refuse(team.Invalid, "what is observed stays on this machine; leave --store and CADRE_STORE out")
		}
		err := teams.Create(ctx, store.Entry{ID: f.team.ID, Name: f.team.Name,
			Project: h.Place.Project(f.team.Dir)}, f.records)
		made := all[:i]
		if err == nil {
			made = all[:i+1]
			f.dir = filepath.Join(h.teams(), f.team.ID)
			err = h.keepPlaced(f.dir, f.team.Dir)
		}
		if err == nil {
			continue
		}
		for _, made := range made {
			err = errors.Join(err, teams.Remove(ctx, made.team.ID))
		}
		if errors.Is(err, journal.ErrUncertain) {
			return fmt.Errorf("create team %s: %w", f.team.Name, err)
		}
		if errors.Is(err, journal.ErrExists) {
			return h.taken(Known{Team: team.Team{Name: f.team.Name}}, "")
		}
		return fmt.Errorf("create team %s: nothing was created: %w", f.team.Name, err)
	}
	return nil
}

// Adopt makes a team that another home has with these records, which are its whole history. It
// returns its folder.
func (h Home) Adopt(of team.Team, records [][]byte) (folder string, err error) {
	return h.found(of, records)
}
