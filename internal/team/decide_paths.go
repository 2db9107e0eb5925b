package team

import (
	"fmt"
	"slices"
	"strings"
)

// ClaimPaths adds paths to a task in progress. They then belong to it until it ends. A path that
// another task has is refused with Conflict, and so is one that an earlier task waits for.
type ClaimPaths struct {
	Task   string // "" for the one task that the member has in progress
	Member string // "" for the actor
	Paths  []string
}

func (b *ClaimPaths) decide(d *decision) error {
	t, m, err := d.inHand(b.Task, b.Member)
	if err != nil {
		return err
	}
	wanted, err := cleanPaths(b.Paths)
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		return refuse(Invalid, "say which paths, as patterns from the project's directory, like src/parser/**")
	}
	added := slices.DeleteFunc(wanted, func(p string) bool { return slices.Contains(t.Holds, p) })
	if err := d.pathsFree(t, m, added); err != nil {
		return err
	}
	if _, err := cleanPaths(slices.Concat(t.Holds, added)); err != nil {
		return err
	}
	if len(added) > 0 {
		d.emit(&PathsChanged{Task: t.ID, By: m.Name, Added: added})
	}
	return nil
}

// mayTakePaths refuses a claim of t while a path of it belongs to another task, or an earlier task
// waits for one.
func (d *decision) mayTakePaths(t *Task, m *Member) error {
	by, path := d.line().heldUpFor(taskIndex(t.ID), m)
	if by == nil {
		return nil
	}
	next := Hint{Action: ActClaimNext, Team: d.team.Name, Member: m.Name}
	if by.Status == InProgress {
		return Refuse(NotReady, "%s waits for task %s: %s works on that, and both change %s", t.label(), by.Called(),
			by.Owner, path).With(next)
	}
	return Refuse(NotReady, "%s waits for task %s, which waits too and comes first: both change %s", t.label(),
		by.Called(), path).With(next)
}

// setPaths adds to the update of t what changes if these are its paths; nil changes nothing. Of a
// task in progress, it returns what changes of the paths that belong to it: only its owner and the
// lead change those, and added ones must be free.
func (d *decision) setPaths(t *Task, paths *[]string, e *TaskUpdated) (*PathsChanged, error) {
	if paths == nil {
		return nil, nil
	}
	now, err := cleanPaths(*paths)
	switch {
	case err != nil:
		return nil, err
	case t.Status == Completed:
		return nil, refuse(NotReady, "%s is completed: its paths are final", t.label())
	}
	e.AddPaths, e.RemovePaths = beyond(now, t.Paths), beyond(t.Paths, now)
	m := d.member(t.Owner)
	if t.Status != InProgress || m == nil {
		return nil, nil
	}
	held := &PathsChanged{Task: t.ID, By: d.Actor, Added: beyond(now, t.Holds), Removed: beyond(t.Holds, now)}
	if len(held.Added)+len(held.Removed) == 0 {
		return nil, nil
	}
	if d.Actor != m.Name {
		if err := d.leads("change the paths of a task that another member works on"); err != nil {
			return nil, err
		}
	}
	return held, d.pathsFree(t, m, held.Added)
}

// beyond returns the paths of a that are not in b.
func beyond(a, b []string) (more []string) {
	for _, p := range a {
		if !slices.Contains(b, p) {
			more = append(more, p)
		}
	}
	return more
}

// pathsSet records the change of paths that belong to t, and tells its owner if another one made
// it.
func (d *decision) pathsSet(t *Task, held *PathsChanged) {
	if held == nil {
		return
	}
	d.emit(held)
	if t.Owner != d.Actor {
		d.tell(t.Owner, t.ID, "%s changed the paths of task %s, on which you work. It has now: %s.",
			strings.TrimPrefix(d.Actor, "@"), t.Called(), names(patched(t.Holds, held.Added, held.Removed)))
	}
	back := strings.Join(held.Removed, ", ")
	d.wakeOwners(d.freedByPaths(t, held.Removed), "task "+t.Called()+" gave back "+back)
}

// givesUp tells the owners of tasks that waited for paths of t alone that they can begin.
func (d *decision) givesUp(t *Task, why string) {
	if free := d.freedByPaths(t, t.Holds); len(free) > 0 {
		d.wakeOwners(free, "task "+t.Called()+" "+why)
	}
}

// pathsFree refuses paths that t, which m has in progress, cannot have now.
func (d *decision) pathsFree(t *Task, m *Member, paths []string) error {
	l := d.line()
	if l == nil || !d.shares(t, m.Name) {
		return nil
	}
	for _, i := range l.holding {
		holder := &d.tasks[i]
		if holder.Owner == m.Name {
			continue
		}
		if path, theirs, common := commonPath(paths, holder.Holds); common {
			what := path + " belongs to"
			if path != theirs {
				what = fmt.Sprintf("%s has files in common with %s of", path, theirs)
			}
			return Refuse(Conflict, "%s task %s, on which %s works. %s to give %s back, or do something else first", what,
				holder.Called(), holder.Owner, d.askFor(m.Name, holder.Owner), theirs).
				With(holder.Hint(&d.team, ActShowTask))
		}
	}
	// A task that waits for other tasks would wait for this one, too. One that waits for it already
	// loses nothing.
	for p := range d.ready {
		for i := range d.ready[p].all() {
			w := &d.tasks[i]
			if w.Owner == m.Name {
				continue
			}
			path, _, common := commonPath(paths, w.Paths)
			if !common {
				continue
			}
			if h := l.heldUp(i); h != nil && !slices.Contains(h.holders, taskIndex(t.ID)) {
				return Refuse(Conflict, "%s cannot be added to %s now: task %s changes it too, waits for other tasks, "+
					"and comes first. Add it when that task is done", path, t.label(), w.Called()).
					With(w.Hint(&d.team, ActShowTask))
			}
		}
	}
	return nil
}

// ReleasePaths gives back paths of a task in progress before it ends, so that others can have them.
type ReleasePaths struct {
	Task   string   // "" for the one task that the member has in progress
	Member string   // "" for the actor
	Paths  []string // as the task has them; empty for all
}

func (b *ReleasePaths) decide(d *decision) error {
	t, m, err := d.inHand(b.Task, b.Member)
	if err != nil {
		return err
	}
	given, err := cleanPaths(b.Paths)
	if err != nil {
		return err
	}
	if len(given) == 0 {
		given = t.Holds
	}
	for _, p := range given {
		if !slices.Contains(t.Holds, p) {
			has := "no paths"
			if len(t.Holds) > 0 {
				has = fmt.Sprintf("no path %s; it has: %s", p, names(t.Holds))
			}
			return refuse(NotFound, "%s has %s", t.label(), has)
		}
	}
	if len(given) == 0 {
		return nil
	}
	d.emit(&PathsChanged{Task: t.ID, By: m.Name, Removed: slices.Clone(given)})
	d.wakeOwners(d.freedByPaths(t, given), fmt.Sprintf("%s gave back %s", m.Name, strings.Join(given, ", ")))
	return nil
}

// inHand returns the task in progress that the command names, or the only one that the member has.
func (d *decision) inHand(task, member string) (*Task, *Member, error) {
	if task != "" {
		return d.held(task, member, 0)
	}
	m, err := d.worker(member)
	if err != nil {
		return nil, nil, err
	}
	switch held := d.holds(m.Name); len(held) {
	case 0:
		return nil, nil, Refuse(NotReady, "%s has no task in progress, and paths belong to a task: claim one first",
			m.Name).
			With(Hint{Action: ActClaimNext, Team: d.team.Name, Member: m.Name})
	case 1:
		return held[0], m, nil
	default:
		var called []string
		for _, t := range held {
			called = append(called, t.Called())
		}
		return nil, nil, refuse(Invalid, "%s has several tasks in progress; say which one: %s", m.Name, names(called))
	}
}

// ReportWrites reports that a member changed files of another member's task. Its host found them
// after the fact: a command wrote them, or the agent asked for nothing.
type ReportWrites struct {
	Member string
	Task   string // to which the files belong
	Holder string // who has, or had, that task
	Files  []string
	More   int64 // how many further files it changed
	Unsure bool  // the holder ran a command at the same time, which may have written them as well
}

// mostFilesNamed bounds how many files a message about writes names.
const mostFilesNamed = 10

func (b *ReportWrites) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	holder := d.member(b.Holder)
	switch {
	case len(b.Files) == 0:
		return nil
	case holder == nil || holder.Name == m.Name:
		return refuse(Invalid, "the files of task %s belong to another member", t.Called())
	}
	if err := limit(text{"list of files", strings.Join(b.Files, "\n"), MaxText}); err != nil {
		return err
	}
	d.emit(&WritesFound{Member: m.Name, Task: t.ID, Holder: holder.Name, Files: b.Files, More: b.More,
		Unsure: b.Unsure})
	var some []string
	for _, file := range b.Files[:min(len(b.Files), mostFilesNamed)] {
		some = append(some, brief(file))
	}
	files := Quoted(strings.Join(some, ", "))
	if more := int64(len(b.Files)-len(some)) + b.More; more > 0 {
		files += fmt.Sprintf(" and %d more", more)
	}
	if b.Unsure {
		d.hint(m.Name, fmt.Sprintf("Files of task %s changed while you and others ran commands: %s. Only %s may "+
			"change them; say so with SendMessage if it was you.", t.Called(), files, holder.Name))
		words := fmt.Sprintf("Files of task %s changed while %s and others ran commands: %s. Only %s may change "+
			"them.", t.Called(), m.Name, files, holder.Name)
		d.hint(holder.Name, words)
		if d.team.Lead != holder.Name && d.team.Lead != m.Name {
			d.hint(d.team.Lead, words)
		}
		return nil
	}
	d.hint(m.Name, fmt.Sprintf("You changed files that belong to task %s of %s: %s. Tell %s what you changed, and "+
		"change them no more while that task is in progress.", t.Called(), holder.Name, files, holder.Name))
	words := fmt.Sprintf("%s changed files that belong to task %s of %s: %s.", m.Name, t.Called(), holder.Name,
		files)
	if holder.runs() { // its command or its team does not read it
		d.hint(holder.Name, words)
	} else {
		d.tell(holder.Name, t.ID, "%s Look at them before you go on.", words)
	}
	if d.team.Lead != holder.Name && d.team.Lead != m.Name {
		d.tell(d.team.Lead, t.ID, "%s Both were told.", words)
	}
	return nil
}

// WritesFound says that a member changed files of another member's task; with Unsure, that perhaps
// it did.
type WritesFound struct {
	Member, Task, Holder string
	Files                []string
	More                 int64 // how many further files
	Unsure               bool
}

// Kind returns the event's name in the journal.
func (*WritesFound) Kind() string { return "writes_found" }

func (e *WritesFound) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("task", &e.Task)
	c.str("holder", &e.Holder)
	c.strs("files", &e.Files)
	c.int("more", &e.More)
	c.bool("unsure", &e.Unsure)
}

func (e *WritesFound) apply(*State, *Record) {}

// PathsChanged says that the owner of a task in progress added paths to it, or gave some back.
type PathsChanged struct {
	Task, By       string
	Added, Removed []string
}

// Kind returns the event's name in the journal.
func (*PathsChanged) Kind() string { return "paths_changed" }

func (e *PathsChanged) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("by", &e.By)
	c.strs("added", &e.Added)
	c.strs("removed", &e.Removed)
}

func (e *PathsChanged) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		if t.Status == InProgress {
			t.Holds = patched(t.Holds, e.Added, e.Removed)
		}
	})
}

// patched returns a new list of paths with some added and some removed.
func patched(paths, added, removed []string) (now []string) {
	for _, p := range slices.Concat(paths, owned(added)) {
		if !slices.Contains(removed, p) && !slices.Contains(now, p) {
			now = append(now, p)
		}
	}
	return now
}
