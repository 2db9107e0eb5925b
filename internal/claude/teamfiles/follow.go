package teamfiles

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/sys/fswatch"
)

// Change is one change in the files: one of the types below.
type Change interface{ change() }

// The changes of a team. The content at the start comes first, as if it had just been created.
type (
	// TeamSeen says that the team exists. It is repeated, followed by everything else, if the team
	// was created again under its name between two looks.
	TeamSeen struct{ Config projection.Config }
	// TeamGone says that the team's config.json was removed.
	TeamGone struct{}
	// MemberJoined, MemberChanged and MemberLeft report changes of the roster.
	MemberJoined  struct{ Member Member }
	MemberChanged struct{ Before, Member Member }
	MemberLeft    struct{ Member Member }
	// TaskAdded, TaskChanged and TaskRemoved report changes of the task list.
	TaskAdded   struct{ Task Task }
	TaskChanged struct{ Before, Task Task }
	TaskRemoved struct{ Task Task }
	// TasksSwept says that the whole folder of tasks was removed, as Claude Code does with old
	// ones. No task was deleted.
	TasksSwept struct{}
	// Sent says that an entry was added to the inbox of To.
	Sent struct {
		To    string
		Entry Entry
	}
	// Delivered says that an entry was read from the inbox of To.
	Delivered struct {
		To    string
		Entry Entry
	}
	// Whole says, once, that the whole content at the start has been reported. It has the ids of
	// the tasks, nil if there is no folder of them, and the waiting entries of each readable inbox.
	// Anything that the caller knew before and that is not listed was removed in the meantime.
	Whole struct {
		Tasks   []string
		Waiting map[string][]Entry
	}
	// Damaged says that a file is invalid, once until it changes. The content read last remains in
	// force.
	Damaged struct{ Err *DamagedError }
)

func (*TeamSeen) change()      {}
func (*TeamGone) change()      {}
func (*MemberJoined) change()  {}
func (*MemberChanged) change() {}
func (*MemberLeft) change()    {}
func (*TaskAdded) change()     {}
func (*TaskChanged) change()   {}
func (*TaskRemoved) change()   {}
func (*TasksSwept) change()    {}
func (*Sent) change()          {}
func (*Delivered) change()     {}
func (*Whole) change()         {}
func (*Damaged) change()       {}

const (
	// halfWritten is how long a file may be invalid JSON before it counts as damaged.
	halfWritten = 500 * time.Millisecond
	// sweeping is how long the folder of tasks must have lost no file before lost files count as
	// removed tasks. When the folder itself is removed, its files disappear one by one.
	sweeping = 100 * time.Millisecond
	// settled is the age at which a file's time distinguishes its last change from a later one.
	// Clocks of file systems tick slowly.
	settled = 2 * time.Second
)

// Follow yields the content of the files and then every change, each with a time at which it was
// observed. It ends when ctx does, or with the removal of the team, which is the last change. It
// only reads. It may miss a change that is undone between two looks, which are a few milliseconds
// apart.
func (t *Team) Follow(ctx context.Context) iter.Seq2[time.Time, Change] {
	return func(yield func(time.Time, Change) bool) {
		f := newFollower(t)
		wake := &waker{folders: fswatch.New(), everything: true}
		defer wake.folders.Close()
		for {
			wake.cover(t.roster, t.inboxes(), t.tasks)
			at := time.Now() // before the look: files may change while they are read
			if files, everything := wake.taken(); everything {
				wake.folders.Look(func() { f.look(nil, true) })
			} else {
				f.look(files, false)
			}
			for _, c := range f.changes {
				if !yield(at, c) {
					return
				}
			}
			f.changes = f.changes[:0]
			if f.over || !wake.wait(ctx, len(f.retry) > 0) {
				return
			}
		}
	}
}

// follower holds the content of the files at the last look.
type follower struct {
	team    *Team
	files   map[string]*file
	seen    bool
	config  projection.Config
	tasks   map[string]Task
	ids     []string        // of the tasks that have a file, readable or not
	missing map[string]bool // known tasks whose file has disappeared
	lost    time.Time       // when the last of them disappeared
	swept   bool            // the folder of tasks does not exist
	inboxes map[string][]Entry

	changes   []Change
	retry     map[string]bool // files to look at again soon, even without a notification
	whole     bool            // Whole was reported
	recreated bool            // the team was created again: look at everything
	over      bool
}

// file is the state of one file at the last read.
type file struct {
	info     fs.FileInfo
	read     time.Time
	since    time.Time // start of the time in which it is unreadable or invalid; zero while it is valid
	reported bool      // its damage was reported
}

func newFollower(t *Team) *follower {
	return &follower{team: t, files: map[string]*file{}, tasks: map[string]Task{}, missing: map[string]bool{},
		inboxes: map[string][]Entry{}, retry: map[string]bool{}}
}

func (f *follower) report(c Change) { f.changes = append(f.changes, c) }

// look reads the given files, or everything, and the files in retry.
func (f *follower) look(files []string, everything bool) {
	for path := range f.retry {
		files = append(files, path)
	}
	clear(f.retry)
	in := func(dir string) (names []string) {
		for _, path := range files {
			if name, ok := strings.CutSuffix(filepath.Base(path), ".json"); ok && filepath.Dir(path) == dir {
				names = append(names, name)
			}
		}
		return names
	}
	if everything || slices.Contains(files, f.team.config()) {
		f.roster()
	}
	if f.over {
		return
	}
	if everything || f.recreated || slices.Contains(files, f.team.tasks) {
		f.recreated = false
		f.list()
		f.mail()
	} else {
		for _, id := range in(f.team.tasks) {
			f.task(id)
		}
		for _, name := range in(f.team.inboxes()) {
			f.inbox(name)
		}
	}
	f.removed()
	if f.seen && len(f.retry) == 0 && !f.whole {
		f.whole = true
		f.report(f.all())
	}
}

// all returns the present content.
func (f *follower) all() *Whole {
	w := &Whole{Waiting: map[string][]Entry{}}
	if !f.swept {
		w.Tasks = append([]string{}, f.ids...)
	}
	for name, entries := range f.inboxes {
		w.Waiting[name] = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Read })
	}
	return w
}

// readIfChanged decodes a file into the value into if the file may have changed since the last
// read, and reports whether it did so.
func (f *follower) readIfChanged(path string, into any) (news bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	known := f.files[path]
	if known == nil {
		known = &file{}
		f.files[path] = known
	}
	same := known.info != nil && os.SameFile(known.info, info) && known.info.ModTime().Equal(info.ModTime()) &&
		known.info.Size() == info.Size()
	if same && known.since.IsZero() && known.read.Sub(info.ModTime()) > settled {
		return false, nil
	}
	if !same { // a changed file that is still invalid may be half written
		known.since, known.reported = time.Time{}, false
	}
	known.info, known.read = info, time.Now()
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err == nil {
		err = parse(data, into)
	}
	if err != nil {
		if known.since.IsZero() {
			known.since = known.read
		}
		switch {
		case known.reported:
		case known.read.Sub(known.since) > halfWritten:
			known.reported = true
			f.report(&Damaged{&DamagedError{path, err}})
		default:
			f.retry[path] = true
		}
		return false, nil
	}
	known.since, known.reported = time.Time{}, false
	return true, nil
}

func (f *follower) roster() {
	var c projection.Config
	news, err := f.readIfChanged(f.team.config(), &c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.report(&TeamGone{})
		f.over = true
		return
	case err != nil || !news:
		return
	}
	if f.seen && f.config.CreatedAt != c.CreatedAt {
		said := f.changes
		*f = *newFollower(f.team)
		f.changes, f.recreated = said, true
	}
	if !f.seen {
		f.seen = true
		f.report(&TeamSeen{c})
	}
	for _, before := range f.config.Members {
		if c.Member(before.Name) == nil {
			f.report(&MemberLeft{before})
		}
	}
	for _, m := range c.Members {
		switch before := f.config.Member(m.Name); {
		case before == nil:
			f.report(&MemberJoined{m})
		case !reflect.DeepEqual(*before, m):
			f.report(&MemberChanged{*before, m})
		}
	}
	f.config = c
}

func (f *follower) list() {
	if _, err := os.Stat(f.team.tasks); errors.Is(err, fs.ErrNotExist) {
		if !f.swept && len(f.tasks) > 0 {
			f.report(&TasksSwept{})
		}
		f.swept = true
		clear(f.tasks)
		clear(f.missing)
		return
	}
	f.swept = false
	ids, err := f.team.ids()
	if err != nil {
		return
	}
	f.ids = ids
	for _, id := range ids {
		f.task(id)
	}
	for id := range f.tasks {
		if _, there := slices.BinarySearchFunc(ids, id, byNumber); !there {
			f.markMissing(id)
		}
	}
}

func (f *follower) task(id string) {
	if number(id) == 0 {
		return
	}
	var task Task
	news, err := f.readIfChanged(f.team.task(id), &task)
	before, known := f.tasks[id]
	switch {
	case errors.Is(err, fs.ErrNotExist) && known:
		f.markMissing(id)
		return
	case err == nil:
		delete(f.missing, id)
	}
	if err != nil || !news {
		return
	}
	task.ID = id
	switch {
	case !known:
		f.report(&TaskAdded{task})
	case !reflect.DeepEqual(before, task):
		f.report(&TaskChanged{before, task})
	}
	f.tasks[id] = task
}

// markMissing records a task whose file has disappeared.
func (f *follower) markMissing(id string) {
	if !f.missing[id] {
		f.missing[id], f.lost = true, time.Now()
	}
}

// removed reports the tasks whose files have disappeared, once their folder no longer changes.
func (f *follower) removed() {
	if len(f.missing) > 0 && time.Since(f.lost) < sweeping {
		f.retry[f.team.tasks] = true
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.missing), byNumber) {
		f.report(&TaskRemoved{f.tasks[id]})
		delete(f.tasks, id)
	}
	clear(f.missing)
}

func (f *follower) mail() {
	entries, err := os.ReadDir(f.team.inboxes())
	if err != nil {
		return
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && !e.IsDir() {
			f.inbox(name)
		}
	}
}

func (f *follower) inbox(name string) {
	var now []Entry
	if news, err := f.readIfChanged(f.team.inbox(name), &now); err != nil || !news {
		return
	}
	f.compare(name, f.inboxes[name], now)
	f.inboxes[name] = now
}

// compare reports sent and delivered entries. Among entries with equal keys, it matches as many as
// possible.
func (f *follower) compare(to string, before, now []Entry) {
	left := map[string][]Entry{}
	for _, e := range before {
		left[e.Key()] = append(left[e.Key()], e)
	}
	var came []Change
	for _, e := range now {
		same := left[e.Key()]
		if len(same) == 0 {
			came = append(came, &Sent{to, e})
			if e.Read {
				came = append(came, &Delivered{to, e})
			}
			continue
		}
		left[e.Key()] = same[1:]
		if e.Read && !same[0].Read {
			f.report(&Delivered{to, e})
		}
	}
	for _, e := range before {
		if rest := left[e.Key()]; len(rest) > 0 {
			left[e.Key()] = rest[1:]
			if !rest[0].Read {
				f.report(&Delivered{to, rest[0]})
			}
		}
	}
	f.changes = append(f.changes, came...)
}
