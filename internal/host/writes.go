package host

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/sys/lazyregexp"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// The gate of a driver refuses a tool that writes a file of another member's task. A command can
// write any file, and some agents have no gate. So at the end of a turn the host looks which files
// of others have changed meanwhile, and whose tools were running then.

// act is one use of a tool by a member.
type act struct {
	tool, input string
	files       []string // that it writes, by their paths from the team's directory; nil if it does not say
	within      bool     // it writes only in the member's own worktree
	from, to    time.Time
	reads       func() bool // whether it only reads
}

// grain is how far the time of a file may be from the time of the write: kernels round it.
const grain = 20 * time.Millisecond

// during reports whether the tool was running when the file changed.
func (a *act) during(c changed, now time.Time) bool {
	to := a.to
	if to.IsZero() {
		to = now
	}
	return !c.to.Before(a.from.Add(-grain)) && !c.from.After(to.Add(grain))
}

// mayWrite reports whether the tool could have written the file.
func (a *act) mayWrite(file string) bool {
	if a.files != nil {
		return slices.Contains(a.files, file)
	}
	return !a.reads()
}

// names reports whether the input of the tool has the name of the file, as a word.
func (a *act) names(file string) bool {
	name := path.Base(file)
	for rest := a.input; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if !wordEnds().MatchString(before) && !wordBegins().MatchString(after) {
			return true
		}
		rest = after
	}
}

// These match text that makes the name of a file a part of a longer name.
var (
	wordEnds   = lazyregexp.New(`[\w.-]$`)
	wordBegins = lazyregexp.New(`^[\w-]|^\.\w`)
)

// mostActs is how many uses of tools are remembered for a member.
const mostActs = 500

// mostWatched bounds how many files and folders are visited for a task.
const mostWatched = 50_000

// stamp is what a file was like.
type stamp struct {
	size    int64
	changed time.Time
}

// writes remembers what the members of a host do, and what the files of tasks were like.
type writes struct {
	mu   sync.Mutex
	acts map[string][]act     // by member
	open map[string]int       // by member and id of the use, its place in acts
	were map[string]watched   // by [watchKey]
	gate map[string]time.Time // by member and tool, when the gate was asked for a use that was not told of yet

	looking  sync.Mutex  // held while files are looked at
	missed   atomic.Bool // tasks began or ended meanwhile
	checking sync.WaitGroup
}

// watched is a task in progress with its files, as they were at the last look.
type watched struct {
	task  team.Task
	files map[string]stamp
	at    time.Time
}

// began remembers that the member uses a tool.
func (w *writes) began(member, id string, a act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acts == nil {
		w.acts, w.open = map[string][]act{}, map[string]int{}
	}
	all := w.acts[member]
	if len(all) >= mostActs {
		all = slices.Delete(all, 0, mostActs/2)
		for key, at := range w.open {
			if strings.HasPrefix(key, member+"/") {
				w.open[key] = at - mostActs/2
			}
		}
	}
	w.open[member+"/"+id] = len(all)
	w.acts[member] = append(all, a)
}

// asked remembers that the gate was asked for a tool. Some agents say that they used a tool only
// when it is over: it cannot have begun before it was asked for. A use that is under way already
// was told of before the question.
func (w *writes) asked(member, tool string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, i := range w.open {
		if i >= 0 && strings.HasPrefix(key, member+"/") && w.acts[member][i].tool == tool {
			return
		}
	}
	if w.gate == nil {
		w.gate = map[string]time.Time{}
	}
	w.gate[member+"/"+tool] = at
}

// answered forgets the questions of the member: its turn is over, or what it asked for was refused.
func (w *writes) answered(member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.gate, func(key string, _ time.Time) bool { return strings.HasPrefix(key, member+"/") })
}

// begins returns when the use of a tool began that its agent tells of now.
func (w *writes) begins(member, tool string, told time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, asked := w.gate[member+"/"+tool]
	delete(w.gate, member+"/"+tool)
	if asked {
		return at
	}
	return told
}

// ended remembers that the use of a tool is over. It reports whether the tool wrote only in the
// member's own worktree, and whether the use is known.
func (w *writes) ended(member, id string, at time.Time) (within, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := member + "/" + id
	i, is := w.open[key]
	delete(w.open, key)
	if !is || i < 0 {
		return false, is
	}
	a := &w.acts[member][i]
	a.to = at
	return a.within, true
}

// uses returns the ids of the tools that the member uses at present.
func (w *writes) uses(member string) (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.open {
		if id, is := strings.CutPrefix(key, member+"/"); is {
			ids = append(ids, id)
		}
	}
	return ids
}

// of returns what the member did, and whether this host knows it.
func (w *writes) of(member string) (all []act, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, known = w.acts[member]
	return slices.Clone(all), known
}

// doers returns the members of this host that used a tool.
func (w *writes) doers() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.acts))
}

// watchKey names a claim.
func watchKey(t team.Task) string { return t.ID + "/" + strconv.FormatInt(t.Fence, 10) }

// news returns the tasks that are not watched yet, and the watched ones that are not among these
// any more.
func (w *writes) news(held []team.Task) (begun, over []team.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]bool{}
	for _, t := range held {
		now[watchKey(t)] = true
		if one, is := w.were[watchKey(t)]; !is || !slices.Equal(one.task.Holds, t.Holds) {
			begun = append(begun, t)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.were)) {
		if !now[key] {
			over = append(over, w.were[key].task)
		}
	}
	return begun, over
}

// watch looks at the files of the task for the first time, or for the first time with its present
// paths. A file that changed since the claim counts as changed since that look, unless it belongs
// to the task only since now.
func (w *writes) watch(ctx context.Context, dir string, t team.Task) {
	files := filesOf(ctx, dir, t.Holds)
	w.mu.Lock()
	defer w.mu.Unlock()
	before, again := w.were[watchKey(t)]
	claimed := time.UnixMilli(int64(t.StartedAt))
	for file, is := range files {
		if was, there := before.files[file]; there {
			files[file] = was
		} else if !again && !is.changed.Before(claimed) {
			files[file] = stamp{}
		}
	}
	since := claimed
	if again {
		since = before.at
	}
	if w.were == nil {
		w.were = map[string]watched{}
	}
	w.were[watchKey(t)] = watched{t, files, since}
}

func (w *writes) forget(t team.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.were, watchKey(t))
}

// changed is a file of a task that is not as it was.
type changed struct {
	file string
	from time.Time // it changed not before that
	to   time.Time // and not after that
}

// since returns the files of the task that changed since the last look, and remembers what they are
// like now.
func (w *writes) since(ctx context.Context, dir string, t team.Task) (all []changed) {
	now, files := time.Now(), filesOf(ctx, dir, t.Holds)
	w.mu.Lock()
	before, is := w.were[watchKey(t)]
	if is {
		w.were[watchKey(t)] = watched{t, files, now}
	}
	w.mu.Unlock()
	if !is {
		return nil
	}
	for file, is := range files {
		if was, there := before.files[file]; !there || was != is {
			all = append(all, changed{file, is.changed, is.changed})
		}
	}
	for file := range before.files {
		if _, there := files[file]; !there && covered(t.Holds, file) { // it is gone, and nothing says since when
			all = append(all, changed{file, before.at, now})
		}
	}
	slices.SortFunc(all, func(a, b changed) int { return cmp.Compare(a.file, b.file) })
	return all
}

func covered(patterns []string, file string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return team.Covers(p, file) })
}

// filesOf returns the files that the patterns cover, by their paths from the directory.
func filesOf(ctx context.Context, dir string, patterns []string) map[string]stamp {
	files := map[string]stamp{}
	seen := 0
	for _, pattern := range patterns {
		root := filepath.Join(dir, filepath.FromSlash(team.Beginning(pattern)))
		_ = filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // it is gone, or nobody may read it
			}
			if e.IsDir() && e.Name() == ".git" {
				return fs.SkipDir
			}
			if seen++; ctx.Err() != nil || seen > mostWatched {
				return fs.SkipAll
			}
			name, err := filepath.Rel(dir, at)
			if e.IsDir() || err != nil || !team.Covers(pattern, filepath.ToSlash(name)) {
				return nil
			}
			if info, err := e.Info(); err == nil {
				files[filepath.ToSlash(name)] = stamp{info.Size(), regularfile.ChangedAt(info)}
			}
			return nil
		})
	}
	return files
}

// blame is whether a member changed a file of another member's task.
type blame int

const (
	innocent blame = iota
	unsure         // others ran a command that could have, too
	likely         // it ran the only command that could have, as far as the holder goes
	guilty
)

// judge says whether the member with these acts changed the file, or its holder. The acts of a
// holder whose session another process runs are not known.
func judge(c changed, mine, theirs []act, known bool, now time.Time) blame {
	running := func(all []act) (could []act) {
		for _, a := range all {
			if a.during(c, now) && a.mayWrite(c.file) {
				could = append(could, a)
			}
		}
		return could
	}
	names := func(all []act) bool { return slices.ContainsFunc(all, func(a act) bool { return a.names(c.file) }) }
	said := func(all []act) bool { return slices.ContainsFunc(all, func(a act) bool { return a.files != nil }) }
	my, their := running(mine), running(theirs)
	switch {
	case len(my) == 0 || said(their):
		return innocent
	case said(my):
		return guilty
	case known && len(their) == 0, names(my) && !names(their):
		return likely
	case names(their) && !names(my):
		return innocent
	}
	return unsure
}

// settled makes up the mind about one file, for the members that are judged: who is guilty takes
// the blame alone, and of several that are likely each is unsure.
func settled(blames map[string]blame) map[string]blame {
	count := map[blame]int{}
	for _, b := range blames {
		count[b]++
	}
	final := map[string]blame{}
	for member, b := range blames {
		switch {
		case count[guilty] == 1 && b != guilty:
			b = innocent
		case b != innocent && count[guilty]+count[likely]+count[unsure] > 1 && (b != guilty || count[guilty] > 1):
			b = unsure
		case b == likely:
			b = guilty
		}
		final[member] = b
	}
	return final
}

// inProject returns the paths of the file from the directory, with slashes: as it is written, and
// with all symbolic links followed. It returns none for a file outside.
func inProject(dir, file string) (names []string) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	add := func(dir, file string) {
		name, err := filepath.Rel(dir, file)
		if name = filepath.ToSlash(name); err == nil && filepath.IsLocal(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(dir, filepath.Clean(file))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		add(real, followed(filepath.Clean(file)))
	}
	return names
}

// followed returns the path with all symbolic links followed, as far as it exists.
func followed(file string) string {
	for rest, dir := "", file; ; rest, dir = filepath.Join(filepath.Base(dir), rest), filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		} else if target, err := os.Readlink(dir); err == nil && filepath.IsAbs(target) { // to a file that is not there yet
			return filepath.Join(target, rest)
		} else if filepath.Dir(dir) == dir {
			return file
		}
	}
}
