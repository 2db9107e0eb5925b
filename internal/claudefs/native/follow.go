package native

import (
	"context"
	"encoding/json"
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

	"github.com/fsnotify/fsnotify"

	"cadre/internal/claudefs"
)

// Change is one thing that changed in the files: one of the types below.
type Change interface{ change() }

// The changes of a team. What is there at the beginning comes first, as if it had just been made.
type (
	// TeamSeen says that the team is there.
	TeamSeen struct{ Config claudefs.Config }
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
	// TasksSwept says that the whole folder of tasks went, as Claude Code's cleaning does with old ones. Nobody deleted a task.
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
	// Whole says that everything that is there was told by now, once: the ids of the tasks, nil where there is no folder of them, and what waits in each inbox
	// that can be read. What somebody knew from before and is not in it went while nobody looked.
	Whole struct {
		Tasks   []string
		Waiting map[string][]Entry
	}
	// Damaged says that a file is not what it should be, once until it changes. What was last read of it stands.
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

// How often a follower looks by itself: rarely, in case the system lost a change, often where it cannot watch, and soon where a file may be half written.
const (
	lookWatched   = time.Second
	lookUnwatched = 100 * time.Millisecond
	lookAgain     = 20 * time.Millisecond
	// halfWritten is how long a file may be no JSON before it counts as damaged.
	halfWritten = 500 * time.Millisecond
	// sweeping is how long the folder of tasks must have lost nothing before what it lost counts as removed: a folder that goes loses its files one by one.
	sweeping = 100 * time.Millisecond
	// settled is how old a change must be for the file's time to tell it from a later one: clocks of file systems tick slowly.
	settled = 2 * time.Second
)

// Follow yields what is in the files and then every change, each with a time at which it was so, until ctx ends or the team is gone, which is the last change. It
// only reads. What came and went between two looks, a few milliseconds apart, is not seen.
func (t *Team) Follow(ctx context.Context) iter.Seq2[time.Time, Change] {
	return func(yield func(time.Time, Change) bool) {
		f := newFollower(t)
		wake := f.watch()
		defer wake.close()
		for {
			f.again = false
			wake.cover(t.roster, t.inboxes(), t.tasks)
			at := time.Now() // before the look: what is read may be changed by the end of it
			f.look()
			for _, c := range f.said {
				if !yield(at, c) {
					return
				}
			}
			f.said = f.said[:0]
			if f.over {
				return
			}
			every := wake.every
			if f.again {
				every = lookAgain
			}
			next := time.NewTimer(every)
			select {
			case <-wake.changed:
			case <-next.C:
			case <-ctx.Done():
			}
			next.Stop()
			if ctx.Err() != nil {
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
	members []Member
	tasks   map[string]Task
	ids     []string        // of the tasks that have a file, also one that cannot be read
	missing map[string]bool // of these, those whose file went
	lost    time.Time       // when the last of them was missed
	swept   bool            // there is no folder of tasks
	inboxes map[string][]Entry

	said  []Change
	again bool // something is half written
	whole bool // that all was told was said
	over  bool
}

// file is one of them as it was read last.
type file struct {
	info  fs.FileInfo
	read  time.Time
	since time.Time // since when it is no JSON; zero while it is
	told  bool      // that it is damaged
}

func newFollower(t *Team) *follower {
	return &follower{team: t, files: map[string]*file{}, tasks: map[string]Task{}, missing: map[string]bool{}, inboxes: map[string][]Entry{}}
}

func (f *follower) say(c Change) { f.said = append(f.said, c) }

func (f *follower) look() {
	f.roster()
	if f.over {
		return
	}
	f.list()
	f.mail()
	if f.seen && !f.again && !f.whole {
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

// fresh reads a file that may have changed since it was read last. It reports whether into holds something new.
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
	same := known.info != nil && os.SameFile(known.info, info) && known.info.ModTime().Equal(info.ModTime()) && known.info.Size() == info.Size()
	if same && known.since.IsZero() && known.read.Sub(info.ModTime()) > settled {
		return false, nil
	}
	if !same { // what was no JSON before may be half written now
		known.since, known.told = time.Time{}, false
	}
	known.info, known.read = info, time.Now()
	data, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		if known.since.IsZero() {
			known.since = known.read
		}
		switch {
		case known.told:
		case known.read.Sub(known.since) > halfWritten:
			known.told = true
			f.say(&Damaged{&DamagedError{path, err}})
		default:
			f.again = true
		}
		return false, nil
	}
	known.since, known.told = time.Time{}, false
	return true, nil
}

func (f *follower) roster() {
	var c claudefs.Config
	news, err := f.fresh(f.team.config(), &c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.say(&TeamGone{})
		f.over = true
		return
	case err != nil || !news:
		return
	}
	if !f.seen {
		f.seen = true
		f.say(&TeamSeen{c})
	}
	for _, before := range f.members {
		if find(c.Members, before.Name) == nil {
			f.say(&MemberLeft{before})
		}
	}
	for _, m := range c.Members {
		switch before := find(f.members, m.Name); {
		case before == nil:
			f.say(&MemberJoined{m})
		case !reflect.DeepEqual(*before, m):
			f.say(&MemberChanged{*before, m})
		}
	}
	f.members = c.Members
}

func find(members []Member, name string) *Member {
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name }); i >= 0 {
		return &members[i]
	}
	return nil
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
		var task Task
		news, err := f.fresh(f.team.task(id), &task)
		if err != nil || !news {
			continue
		}
		task.ID = id
		switch before, known := f.tasks[id]; {
		case !known:
			f.say(&TaskAdded{task})
		case !reflect.DeepEqual(before, task):
			f.say(&TaskChanged{before, task})
		}
		f.tasks[id] = task
	}
	f.removed(ids)
}

// removed tells which tasks have no file any more, once their folder stands still.
func (f *follower) removed(ids []string) {
	for id := range f.tasks {
		_, there := slices.BinarySearchFunc(ids, id, byNumber)
		switch {
		case there:
			delete(f.missing, id)
		case !f.missing[id]:
			f.missing[id], f.lost = true, time.Now()
		}
	}
	if len(f.missing) > 0 && time.Since(f.lost) < sweeping {
		f.again = true
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
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || e.IsDir() {
			continue
		}
		var now []Entry
		news, err := f.fresh(filepath.Join(f.team.inboxes(), e.Name()), &now)
		if err != nil || !news {
			continue
		}
		f.compare(name, f.inboxes[name], now)
		f.inboxes[name] = now
	}
}

// compare tells what came and what was delivered. Of entries that cannot be told apart as many are the same as there were.
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

// waker is the system's word that something changed in some folders. It only wakes; what there is to read, the files say.
type waker struct {
	watcher *fsnotify.Watcher
	changed chan struct{}
	every   time.Duration // how often to look besides
	over    map[string]fs.FileInfo
}

func (f *follower) watch() *waker {
	w := &waker{changed: make(chan struct{}, 1), every: lookUnwatched, over: map[string]fs.FileInfo{}}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return w
	}
	w.watcher, w.every = watcher, lookWatched
	go func() {
		for {
			select {
			case _, ok := <-watcher.Events:
				if !ok {
					return
				}
			case _, ok := <-watcher.Errors:
				if !ok {
					return
				}
			}
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}()
	return w
}

// cover watches the folders that are there. One that went and came again is another one.
func (w *waker) cover(folders ...string) {
	if w.watcher == nil {
		return
	}
	w.every = lookWatched
	for _, dir := range folders {
		info, err := os.Stat(dir)
		if known := w.over[dir]; err == nil && (known == nil || !os.SameFile(known, info)) {
			if known != nil {
				w.watcher.Remove(dir)
			}
			if err = w.watcher.Add(dir); err == nil {
				w.over[dir] = info
			}
		}
		if err != nil {
			delete(w.over, dir)
			w.every = lookUnwatched // until there is something to watch
		}
	}
}

func (w *waker) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}
