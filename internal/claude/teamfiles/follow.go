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

// Change is one thing that changed in the files: one of the types below.
type Change interface{ change() }

// The changes of a team. What is there at the beginning comes first, as if it had just been made.
type (
	// TeamSeen says that the team is there. It is said again, and then everything else, when it was
	// made anew under its name between two looks.
	TeamSeen struct{ Config projection.Config }
	// TeamGone says that it is not any more: its config.json went.
	TeamGone struct{}
	// MemberJoined, MemberChanged and MemberLeft are said of the roster.
	MemberJoined  struct{ Member Member }
	MemberChanged struct{ Before, Member Member }
	MemberLeft    struct{ Member Member }
	// TaskAdded, TaskChanged and TaskRemoved are said of the task list.
	TaskAdded   struct{ Task Task }
	TaskChanged struct{ Before, Task Task }
	TaskRemoved struct{ Task Task }
	// TasksSwept says that the whole folder of tasks went, as Claude Code's cleaning does with old
	// ones. Nobody deleted a task.
	TasksSwept struct{}
	// Sent says that an entry is in the inbox of To.
	Sent struct {
		To    string
		Entry Entry
	}
	// Delivered says that it was taken from there.
	Delivered struct {
		To    string
		Entry Entry
	}
	// Whole says that everything that is there was told by now, once: the ids of the tasks, nil
	// where there is no folder of them, and what waits in each inbox that can be read. What
	// somebody knew from before and is not in it went while nobody looked.
	Whole struct {
		Tasks   []string
		Waiting map[string][]Entry
	}
	// Damaged says that a file is not what it should be, once until it changes. What was last read
	// of it stands.
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
	// halfWritten is how long a file may be no JSON before it counts as damaged.
	halfWritten = 500 * time.Millisecond
	// sweeping is how long the folder of tasks must have lost nothing before what it lost counts as
	// removed: a folder that goes loses its files one by one.
	sweeping = 100 * time.Millisecond
	// settled is how old a change must be for the file's time to tell it from a later one: clocks
	// of file systems tick slowly.
	settled = 2 * time.Second
)

// Follow yields what is in the files and then every change, each with a time at which it was so,
// until ctx ends or the team is gone, which is the last change. It only reads. What came and went
// between two looks, a few milliseconds apart, is not seen.
func (t *Team) Follow(ctx context.Context) iter.Seq2[time.Time, Change] {
	return func(yield func(time.Time, Change) bool) {
		f := newFollower(t)
		wake := &waker{folders: fswatch.New(), everything: true}
		defer wake.folders.Close()
		for {
			wake.cover(t.roster, t.inboxes(), t.tasks)
			at := time.Now() // before the look: what is read may be changed by the end of it
			if files, everything := wake.taken(); everything {
				wake.folders.Look(func() { f.look(nil, true) })
			} else {
				f.look(files, false)
			}
			for _, c := range f.said {
				if !yield(at, c) {
					return
				}
			}
			f.said = f.said[:0]
			if f.over || !wake.wait(ctx, len(f.again) > 0) {
				return
			}
		}
	}
}

// follower knows what the files said last.
type follower struct {
	team    *Team
	files   map[string]*file
	seen    bool
	config  projection.Config
	tasks   map[string]Task
	ids     []string        // of the tasks that have a file, also one that cannot be read
	missing map[string]bool // of these, those whose file went
	lost    time.Time       // when the last of them was missed
	swept   bool            // there is no folder of tasks
	inboxes map[string][]Entry

	said  []Change
	again map[string]bool // files that are to be looked at soon, whatever the system says
	whole bool            // that all was told was said
	anew  bool            // the team is another one than at the last look: everything is to be looked at
	over  bool
}

// file is one of them as it was read last.
type file struct {
	info  fs.FileInfo
	read  time.Time
	since time.Time // since when it cannot be read, or is no JSON; zero while it is
	told  bool      // that it is damaged
}

func newFollower(t *Team) *follower {
	return &follower{team: t, files: map[string]*file{}, tasks: map[string]Task{}, missing: map[string]bool{},
		inboxes: map[string][]Entry{}, again: map[string]bool{}}
}

func (f *follower) say(c Change) { f.said = append(f.said, c) }

// look looks at these files, or at everything, and at those files that it is to look at again.
func (f *follower) look(files []string, everything bool) {
	for path := range f.again {
		files = append(files, path)
	}
	clear(f.again)
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
	if everything || f.anew || slices.Contains(files, f.team.tasks) {
		f.anew = false
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
	if f.seen && len(f.again) == 0 && !f.whole {
		f.whole = true
		f.say(f.all())
	}
}

// all is what is there.
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

// fresh reads a file that may have changed since it was read last. It reports whether into holds
// something new.
func (f *follower) fresh(path string, into any) (news bool, err error) {
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
	if !same { // what was no JSON before may be half written now
		known.since, known.told = time.Time{}, false
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
		case known.told:
		case known.read.Sub(known.since) > halfWritten:
			known.told = true
			f.say(&Damaged{&DamagedError{path, err}})
		default:
			f.again[path] = true
		}
		return false, nil
	}
	known.since, known.told = time.Time{}, false
	return true, nil
}

func (f *follower) roster() {
	var c projection.Config
	news, err := f.fresh(f.team.config(), &c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.say(&TeamGone{})
		f.over = true
		return
	case err != nil || !news:
		return
	}
	if f.seen && f.config.CreatedAt != c.CreatedAt {
		said := f.said
		*f = *newFollower(f.team)
		f.said, f.anew = said, true
	}
	if !f.seen {
		f.seen = true
		f.say(&TeamSeen{c})
	}
	for _, before := range f.config.Members {
		if c.Member(before.Name) == nil {
			f.say(&MemberLeft{before})
		}
	}
	for _, m := range c.Members {
		switch before := f.config.Member(m.Name); {
		case before == nil:
			f.say(&MemberJoined{m})
		case !reflect.DeepEqual(*before, m):
			f.say(&MemberChanged{*before, m})
		}
	}
	f.config = c
}

func (f *follower) list() {
	if _, err := os.Stat(f.team.tasks); errors.Is(err, fs.ErrNotExist) {
		if !f.swept && len(f.tasks) > 0 {
			f.say(&TasksSwept{})
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
			f.miss(id)
		}
	}
}

func (f *follower) task(id string) {
	if number(id) == 0 {
		return
	}
	var task Task
	news, err := f.fresh(f.team.task(id), &task)
	before, known := f.tasks[id]
	switch {
	case errors.Is(err, fs.ErrNotExist) && known:
		f.miss(id)
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
		f.say(&TaskAdded{task})
	case !reflect.DeepEqual(before, task):
		f.say(&TaskChanged{before, task})
	}
	f.tasks[id] = task
}

// miss takes note of a task whose file went.
func (f *follower) miss(id string) {
	if !f.missing[id] {
		f.missing[id], f.lost = true, time.Now()
	}
}

// removed tells which tasks have no file any more, once their folder stands still.
func (f *follower) removed() {
	if len(f.missing) > 0 && time.Since(f.lost) < sweeping {
		f.again[f.team.tasks] = true
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.missing), byNumber) {
		f.say(&TaskRemoved{f.tasks[id]})
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
	if news, err := f.fresh(f.team.inbox(name), &now); err != nil || !news {
		return
	}
	f.compare(name, f.inboxes[name], now)
	f.inboxes[name] = now
}

// compare tells what came and what was delivered. Of entries that cannot be told apart as many are
// the same as there were.
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
			f.say(&Delivered{to, e})
		}
	}
	for _, e := range before {
		if rest := left[e.Key()]; len(rest) > 0 {
			left[e.Key()] = rest[1:]
			if !rest[0].Read {
				f.say(&Delivered{to, rest[0]})
			}
		}
	}
	f.said = append(f.said, came...)
}
