package team

import (
	"slices"
)

// A task may name the paths that it changes. While it is in progress, they belong to it: a task of
// another member that works in the same directory, and names a path in common, waits. Such a task
// also waits for an earlier one that waits, so that a task with many paths gets its turn. All
// paths of a task are taken when it is claimed. A path that its owner adds later is refused where
// it belongs to another task, and nothing ever waits for it. So tasks cannot wait for each other in
// a circle.
//
// A member with a worktree changes files of its own, so its tasks hold up none and wait for none.
// Neither does a task in the merged worktree.

// heldUp says why a task with paths waits, although its blockers are done.
type heldUp struct {
	holders []int    // places of the tasks in progress that have a path of it
	paths   []string // of the task, one for each holder: what both have
	behind  int      // place of an earlier task that waits and has a path of it; -1 for none
	path    string   // of the task: what it has with that one
	beside  bool     // a member with a worktree may take it: it waits only for members in the team's directory
}

// lineup finds which tasks of a state are held up. It goes through them in the order of their ids,
// as far as it is asked: a later task waits behind an earlier one, whatever their priorities. A nil
// lineup is that of a state in which no paths are taken, and nothing is held up.
type lineup struct {
	*State
	holding []int // places of the tasks whose paths are taken
	next    int   // the tasks before this place were looked at
	asked   int   // how often it was asked about one task
	waiting pathTree
	held    map[int]*heldUp // by place; nil for a task that is not held up
}

// line begins a lineup of the state as it is.
func (s *State) line() (l *lineup) {
	for i := range s.holding.all() {
		if l == nil {
			l = &lineup{State: s, held: map[int]*heldUp{}}
		}
		l.holding = append(l.holding, i)
	}
	return l
}

// takesPaths reports whether the task, which is in progress, keeps others from its paths.
func (s *State) takesPaths(t *Task) bool {
	return t.Status == InProgress && len(t.Holds) > 0 && s.shares(t, t.Owner)
}

// shares reports whether that member does the task in the team's directory, as far as is known.
func (s *State) shares(t *Task, member string) bool {
	m := s.member(member)
	return t.In == "" && (m == nil || m.Isolation != Worktree)
}

// few is how many tasks a lineup looks at one by one, before it goes through all.
const few = 4

// heldUp returns why the task at i waits for paths; nil if it does not.
func (l *lineup) heldUp(i int) *heldUp {
	if l == nil || !l.lines(i) {
		return nil
	}
	if h, looked := l.held[i]; looked {
		return h
	}
	if l.asked++; l.asked <= few {
		return l.look(i, l.before)
	}
	for ; l.next <= i; l.next++ {
		if l.lines(l.next) {
			if h := l.look(l.next, l.inTree); h != nil {
				for _, path := range l.tasks[l.next].Paths {
					l.waiting.add(treeEntry{path, l.next})
				}
			}
		}
	}
	return l.held[i]
}

// lines reports whether the task at i has paths, could be claimed, and is done in the team's
// directory.
func (l *lineup) lines(i int) bool {
	t := &l.tasks[i]
	return len(t.Paths) > 0 && l.ready[priorityIndex(t.Priority)].has(i) && l.shares(t, t.Owner)
}

// look finds out whether the task at i is held up. first returns the first waiting task before it
// that has a path of it, and that path.
func (l *lineup) look(i int, first func(i int) (int, string)) *heldUp {
	t := &l.tasks[i]
	h := &heldUp{}
	for _, j := range l.holding {
		if holder := &l.tasks[j]; holder.Owner != t.Owner {
			if path, _, common := commonPath(t.Paths, holder.Holds); common {
				h.holders, h.paths = append(h.holders, j), append(h.paths, path)
			}
		}
	}
	if h.behind, h.path = first(i); h.behind < 0 && len(h.holders) == 0 {
		h = nil
	}
	l.held[i] = h
	for j := range l.members {
		m := &l.members[j]
		if h != nil && t.Owner == "" && m.Isolation == Worktree && m.Status.Running() && l.takes(m, t) {
			h.beside = true
		}
	}
	return h
}

// inTree is for a lineup in which all tasks before i were looked at.
func (l *lineup) inTree(i int) (int, string) { return l.waiting.meets(l.tasks[i].Paths) }

// before looks at the tasks before i that have a path of it, until one waits.
func (l *lineup) before(i int) (int, string) {
	for j := range i {
		if !l.lines(j) {
			continue
		}
		path, _, common := commonPath(l.tasks[i].Paths, l.tasks[j].Paths)
		if !common {
			continue
		}
		h, looked := l.held[j]
		if !looked {
			h = l.look(j, l.before)
		}
		if h != nil {
			return j, path
		}
	}
	return -1, ""
}

// heldUpFor returns the task for which the member must wait before it takes the task at i, and the
// path that both have. It returns nil if it need not wait.
func (l *lineup) heldUpFor(i int, m *Member) (by *Task, path string) {
	h := l.heldUp(i)
	if h == nil || m.Isolation == Worktree {
		return nil, ""
	}
	for k, j := range h.holders {
		if l.tasks[j].Owner != m.Name {
			return &l.tasks[j], h.paths[k]
		}
	}
	if h.behind >= 0 {
		return &l.tasks[h.behind], h.path
	}
	return nil, ""
}

// blockers returns the ids of the tasks for whose paths t waits, whoever takes it, and a path of it
// that is not free.
func (l *lineup) blockers(t *Task) (ids []string, path string) {
	h := l.heldUp(taskIndex(t.ID))
	if h == nil || h.beside {
		return nil, ""
	}
	for _, j := range h.holders {
		ids = append(ids, l.tasks[j].ID)
	}
	if len(ids) > 0 {
		return ids, h.paths[0]
	}
	return []string{l.tasks[h.behind].ID}, h.path
}

// count returns how many tasks wait for paths alone.
func (l *lineup) count() (n int) {
	if l == nil {
		return 0
	}
	for i := range l.tasks {
		if h := l.heldUp(i); h != nil && !h.beside {
			n++
		}
	}
	return n
}

// freedByPaths returns the assigned tasks that wait for these paths of t alone.
func (s *State) freedByPaths(t *Task, paths []string) (free []string) {
	l := s.line()
	if l == nil || len(paths) == 0 || !s.takesPaths(t) {
		return nil
	}
	var left []string
	for _, path := range t.Holds {
		if !slices.Contains(paths, path) {
			left = append(left, path)
		}
	}
	for p := range s.ready {
		for i := range s.ready[p].all() {
			w := &s.tasks[i]
			if w.Owner == "" {
				continue
			}
			h := l.heldUp(i)
			if h == nil || len(h.holders) != 1 || h.behind >= 0 || s.tasks[h.holders[0]].ID != t.ID {
				continue
			}
			if _, _, still := commonPath(w.Paths, left); !still {
				free = append(free, w.ID)
			}
		}
	}
	return free
}

// MayWrite refuses that the member writes the file while it belongs to a task of another one. The
// file is named by its path from the team's directory, with slashes. For a member that is a team,
// whoever writes the file there reads the refusal.
func (s *State) MayWrite(member, file string) error {
	m := s.member(member)
	for i := range s.holding.all() {
		t := &s.tasks[i]
		at := slices.IndexFunc(t.Holds, func(path string) bool { return Covers(path, file) })
		if t.Owner == member || at < 0 {
			continue
		}
		in, advice := "", s.askFor(member, t.Owner)+" with a message, or do something else first"
		if m != nil && m.IsTeam() {
			in, advice = " of team "+s.team.Name, "Do something else first"
			if slices.ContainsFunc(s.Held(member), func(t Task) bool { return s.readsMail(&t) }) {
				advice += ", or have the lead of your team write to " + ParentName
			}
		}
		return refuse(Denied, "%s belongs to task %s%s while %s works on it (%s). %s", Quoted(brief(file)), t.Called(), in,
			t.Owner, t.Holds[at], advice)
	}
	return nil
}

// askFor names whom the member can ask for what the holder has, as "Ask ann": the lead, if the
// holder is a team, to which nobody else writes.
func (s *State) askFor(member, holder string) string {
	if h := s.member(holder); h != nil && h.IsTeam() && member != s.team.Lead {
		holder = s.team.Lead
	}
	return "Ask " + holder
}

// WithPaths returns the tasks whose paths are kept from other members, and those that wait for
// paths, each in the order of their ids.
func (s *State) WithPaths() (all []Task) {
	all = s.PathHolders()
	l := s.line()
	for i := range s.tasks {
		if h := l.heldUp(i); h != nil && !h.beside {
			all = append(all, s.shown(&s.tasks[i], l))
		}
	}
	return all
}

// PathsHeld reports whether paths of any task are kept from other members.
func (s *State) PathsHeld() bool { return s.holding.from(0) >= 0 }

// PathHolders returns the tasks whose paths are kept from other members, in the order of their ids.
func (s *State) PathHolders() (all []Task) {
	for i := range s.holding.all() {
		all = append(all, s.tasks[i])
	}
	return all
}

// HeldFrom returns the tasks of other members whose paths the member may not change, in the order
// of their ids.
func (s *State) HeldFrom(member string) (all []Task) {
	m := s.member(member)
	if m == nil || m.Isolation == Worktree {
		return nil
	}
	return slices.DeleteFunc(s.PathHolders(), func(t Task) bool { return t.Owner == member })
}
