// Package graph draws which tasks of a team wait for which, in characters.
//
// It has no authority: the tasks say what they wait for. It knows no terminal.
//
// # How it looks
//
// Each task has a line, below all tasks that it waits for. A task that others wait for opens a
// lane, which goes down to the last one of them:
//
//	┬─── ✓ lint
//	│ ┬─ ▸ build
//	├─│→ · #3 test
//	└─┴→ ○ ship
//
// Here test waits for lint, and ship for lint and build. ┬ opens a lane, ├ and ┼ take it up, └ and
// ┴ take it up and close it, │ passes. Tasks that depend on nothing, and that nothing depends on,
// come last.
//
// # Guarantees
//
//   - No line is wider than what was asked for, by the columns that a terminal gives to its
//     characters, and each line has one task.
//   - An edge that follows from others is left out: where c waits for b and b for a, no edge from a
//     to c is drawn. Whatever else is left out is counted.
//   - The order depends on the tasks alone, so a redrawn graph does not jump.
package graph

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"cadre/internal/render"
	"cadre/internal/team"
)

// Most is how many tasks a graph shows.
const Most = 40

// Options configure how a graph is drawn.
type Options struct {
	Columns int  // width of the lines; at least [Least]
	Most    int  // tasks; 0 for [Most]
	Plain   bool // with ASCII characters only
}

// Least is the width below which lines are not narrowed further.
const Least = 16

// Graph is a drawn graph.
type Graph struct {
	Lines []Line
	// Omitted is a sentence that lists what the graph does not show; "" if it shows everything.
	Omitted string
}

// Line is the line of one task.
type Line struct {
	Task  string // its id
	State string // as [team.Task.State]
	Lanes string // the lanes and the arrow, with a space after them
	Label string // a symbol of the state and the name of the task, as wide as it fits
	// Waits lists the blocking tasks whose edges have no room for a lane.
	Waits []string
}

// Text returns the line as shown.
func (l Line) Text() string { return l.Lanes + l.Label }

// node is a task with its edges.
type node struct {
	task   team.Task
	place  int
	from   []*node // the tasks that block it
	to     []*node
	column int   // of its lane; -1 for none
	last   *node // the last task that its lane reaches
}

// Draw draws the tasks that [Pick] chooses. It may iterate over the tasks twice.
func Draw(tasks iter.Seq[team.Task], o Options) Graph { return Pick(tasks, o.Most).Draw(o) }

// Picked holds the tasks of a graph. It does not change.
type Picked struct {
	tasks   []team.Task    // in the order of ids
	missing map[string]int // number of the other tasks, by state
}

// Draw draws the tasks.
func (p Picked) Draw(o Options) Graph {
	width := max(o.Columns, Least)
	nodes := make([]*node, len(p.tasks))
	for i, t := range p.tasks {
		nodes[i] = &node{task: t, column: -1}
	}
	edges, unseen := connect(nodes)
	order := arrange(nodes)
	columns := lanes(order, (width-Least)/2)
	signs := &drawn
	if o.Plain {
		signs = &ascii
	}
	g := Graph{}
	undrawn := 0
	for i, n := range order {
		line := Line{Task: n.task.ID, State: n.task.State()}
		if columns > 0 {
			line.Lanes = signs.lanes(order, i, columns)
		}
		for _, from := range n.from {
			if from.column < 0 {
				line.Waits = append(line.Waits, from.task.Ref())
				undrawn++
			}
		}
		line.Label = render.Cut(signs.label(n.task, line.Waits), width-render.Width(line.Lanes))
		g.Lines = append(g.Lines, line)
	}
	g.Omitted = omitted(p.missing, unseen, undrawn, edges)
	return g
}

// omitted returns the sentence for [Graph].Omitted.
func omitted(missing map[string]int, unseen, undrawn, edges int) string {
	var parts []string
	total := 0
	for _, state := range states {
		if n := missing[state]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(state, "_", " ")))
		}
	}
	var sentences []string
	if total > 0 {
		word := "tasks are"
		if total == 1 {
			word = "task is"
		}
		sentences = append(sentences, fmt.Sprintf("%d %s not shown (%s).", total, word, strings.Join(parts, ", ")))
	}
	if unseen > 0 {
		sentences = append(sentences, fmt.Sprintf("%d of the dependencies lead to them.", unseen))
	}
	if undrawn > 0 {
		sentences = append(sentences, fmt.Sprintf("%d of %d dependencies have no line, because there is no room.",
			undrawn, edges))
	}
	return strings.Join(sentences, " ")
}

// Pick chooses the tasks to show: at most as many as most says, or [Most] for 0. It leaves out
// completed tasks first, beginning with those that were completed first. It may iterate over the
// tasks twice.
func Pick(tasks iter.Seq[team.Task], most int) (p Picked) {
	type key struct { // a task is large, and there may be thousands
		rank        int
		id          string
		completedAt team.Time
	}
	most = cmp.Or(most, Most)
	var keys []key
	keep := func() {
		slices.SortFunc(keys, func(a, b key) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), -cmp.Compare(a.completedAt, b.completedAt),
				team.CompareIDs(a.id, b.id))
		})
		keys = keys[:min(most, len(keys))]
	}
	p.missing = map[string]int{}
	for t := range tasks {
		if t.Status == team.Deleted {
			continue
		}
		state := t.State()
		p.missing[state]++
		if keys = append(keys, key{slices.Index(states, state), t.ID, t.CompletedAt}); len(keys) > 8*most {
			keep()
		}
	}
	keep()
	shown := map[string]bool{}
	for _, k := range keys {
		shown[k.id] = true
		p.missing[states[k.rank]]--
	}
	for t := range tasks {
		if shown[t.ID] && t.Status != team.Deleted {
			p.tasks = append(p.tasks, t)
		}
	}
	slices.SortFunc(p.tasks, func(a, b team.Task) int { return team.CompareIDs(a.ID, b.ID) })
	return p
}

// states are the states of tasks, the most important first. They are those of [team.TaskStates].
var states = []string{"in_progress", "failed", "pending", "verifying", "blocked", "completed", "skipped"}

// connect adds the edges that do not follow from others. It returns how many dependencies there
// are, and how many of them lead to tasks that are not shown.
func connect(nodes []*node) (edges, unseen int) {
	known := make(map[string]*node, len(nodes))
	for _, n := range nodes {
		known[n.task.ID] = n
	}
	for _, n := range nodes {
		for _, id := range n.task.BlockedBy {
			if from := known[id]; from != nil && from != n {
				n.from = append(n.from, from)
			} else if from == nil {
				unseen++
			}
		}
	}
	// reaches reports whether want blocks n through other tasks.
	var reaches func(n, want *node, seen map[*node]bool) bool
	reaches = func(n, want *node, seen map[*node]bool) bool {
		for _, from := range n.from {
			if from == want {
				return true
			}
			if !seen[from] {
				seen[from] = true
				if reaches(from, want, seen) {
					return true
				}
			}
		}
		return false
	}
	kept := make([][]*node, len(nodes))
	for i, n := range nodes {
		for _, from := range n.from {
			follows := slices.ContainsFunc(n.from, func(other *node) bool {
				return other != from && reaches(other, from, map[*node]bool{})
			})
			if !follows && !slices.Contains(kept[i], from) {
				kept[i] = append(kept[i], from)
			}
		}
	}
	for i, n := range nodes {
		n.from = kept[i]
		edges += len(n.from)
		for _, from := range n.from {
			from.to = append(from.to, n)
		}
	}
	return edges, unseen
}

// arrange orders the tasks so that each one follows the tasks that block it. Connected tasks come
// first. Among possible tasks, the lowest id comes first.
func arrange(nodes []*node) (order []*node) {
	var alone []*node
	waiting := map[*node]int{}
	var ready []*node
	for _, n := range nodes {
		switch waiting[n] = len(n.from); {
		case len(n.from)+len(n.to) == 0:
			alone = append(alone, n)
		case len(n.from) == 0:
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		order = append(order, n)
		for _, to := range n.to {
			if waiting[to]--; waiting[to] == 0 {
				i, _ := slices.BinarySearchFunc(ready, to, func(a, b *node) int {
					return team.CompareIDs(a.task.ID, b.task.ID)
				})
				ready = slices.Insert(ready, i, to)
			}
		}
	}
	order = append(order, alone...)
	for i, n := range order {
		n.place = i
	}
	return order
}

// lanes assigns lanes to the tasks that block others. It puts at most that many side by side, and
// returns the number of columns.
func lanes(order []*node, most int) (columns int) {
	var ends []int // for each column, the index at which its lane ends
	for i, n := range order {
		if len(n.to) == 0 {
			continue
		}
		n.last = slices.MaxFunc(n.to, func(a, b *node) int { return cmp.Compare(a.place, b.place) })
		column := slices.IndexFunc(ends, func(end int) bool { return end < i })
		switch {
		case column >= 0:
			ends[column] = n.last.place
		case len(ends) < most:
			column = len(ends)
			ends = append(ends, n.last.place)
		default:
			continue
		}
		n.column = column
		columns = max(columns, column+1)
	}
	return columns
}

// signs are the characters that a graph is drawn with.
type signs struct {
	open, takeFirst, take, closeFirst, close, pass, line, arrow string
	states                                                      map[string]string
}

var (
	drawn = signs{"┬", "├", "┼", "└", "┴", "│", "─", "→",
		map[string]string{"in_progress": "▸", "completed": "✓",
			"failed": "✗", "blocked": "○", "verifying": "◇", "skipped": "-", "pending": "·"}}
	ascii = signs{"+", "+", "+", "`", "'", "|", "-", ">", map[string]string{"in_progress": ">", "completed": "v",
		"failed": "x", "blocked": "o", "verifying": "?", "skipped": "-", "pending": "."}}
)

// lanes returns the lanes on the line of the task at index place.
func (s *signs) lanes(order []*node, place, columns int) string {
	n := order[place]
	at := make([]*node, columns) // the task whose lane is in each column of this line
	for _, other := range order[:place] {
		if other.column >= 0 && other.last.place >= place {
			at[other.column] = other
		}
	}
	first := columns // the first column of this task's own line
	for c, other := range at {
		if other != nil && slices.Contains(n.from, other) {
			first = min(first, c)
		}
	}
	takes := first < columns
	if n.column >= 0 {
		first = min(first, n.column)
	}
	var b strings.Builder
	for c, other := range at {
		joins := other != nil && slices.Contains(n.from, other)
		switch {
		case n.column == c:
			b.WriteString(s.open)
		case joins && other.last == n && c == first:
			b.WriteString(s.closeFirst)
		case joins && other.last == n:
			b.WriteString(s.close)
		case joins && c == first:
			b.WriteString(s.takeFirst)
		case joins:
			b.WriteString(s.take)
		case other != nil:
			b.WriteString(s.pass)
		case c > first:
			b.WriteString(s.line)
		default:
			b.WriteString(" ")
		}
		switch {
		case c < first:
			b.WriteString(" ")
		case c == columns-1 && takes:
			b.WriteString(s.arrow)
		default:
			b.WriteString(s.line)
		}
	}
	b.WriteString(" ")
	return b.String()
}

// label returns the name of the task, after a symbol of its state. undrawn are blocking tasks
// without a lane.
func (s *signs) label(t team.Task, undrawn []string) string {
	text := s.states[t.State()] + " " + t.Ref()
	if t.Subject != "" && t.Subject != t.Name {
		text += " " + t.Subject
	}
	if len(undrawn) > 0 {
		text = s.states[t.State()] + " " + t.Ref() + " (after " + strings.Join(undrawn, ", ") + ") " + t.Subject
	}
	return strings.TrimSpace(render.Clean(text))
}
