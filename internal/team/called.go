package team

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// TaskNames says what the tasks of a team are called, as [State.Called] does. A task has its name
// from the beginning, so that reading them takes a fraction of the time of the state.
type TaskNames struct {
	seq   int64
	count int               // number of tasks
	names map[string]string // names of the tasks that have one, by their ids
	taken map[string]bool   // these names
}

// DecodeTaskNames reads the names from a state that [AppendSnapshot] wrote after the record seq. It
// passes over everything else without a look: whoever calls it has verified the checksum of the
// snapshot. Empty data decodes to the names before the first record. A snapshot whose fields have
// another order is read as a whole.
func DecodeTaskNames(seq int64, data string) (*TaskNames, error) {
	if n := (&TaskNames{seq: seq}); data == "" || n.scan(data) {
		return n, nil
	}
	s, err := DecodeSnapshot(seq, data)
	if err != nil {
		return nil, err
	}
	return s.TaskNames(), nil
}

// TaskNames returns what the tasks are called.
func (s *State) TaskNames() *TaskNames {
	n := &TaskNames{seq: s.seq}
	for i := range s.tasks {
		n.add(s.tasks[i].ID, s.tasks[i].Name)
	}
	return n
}

// Seq returns the seq of the last record that was applied.
func (n *TaskNames) Seq() int64 { return n.seq }

// Called is [State.Called].
func (n *TaskNames) Called(id string) string {
	name, named := n.names[id]
	switch i := taskIndex(id); {
	case named:
		return name
	case i >= 0 && i < n.count && n.taken[id]:
		return "#" + id
	}
	return id
}

// Naming reports whether a record may add tasks. data is its encoding. [TaskNames.Apply] needs no
// other records.
func Naming(data []byte) bool {
	for _, kind := range [...]string{`"task_created"`, `"tasks_skipped"`, `"team_restored"`} {
		if bytes.Contains(data, []byte(kind)) {
			return true
		}
	}
	return false
}

// Apply adds the tasks of a record that follows. Records of which [Naming] says nothing may be left
// out.
func (n *TaskNames) Apply(r *Record) {
	if r.Seq <= n.seq {
		return
	}
	n.seq = r.Seq
	for _, e := range r.Events {
		switch e := e.(type) {
		case *TaskCreated:
			n.add(e.Task.ID, e.Task.Name)
		case *TeamRestored:
			for i := range e.Tasks {
				n.add(e.Tasks[i].ID, e.Tasks[i].Name)
			}
		case *TasksSkipped:
			if e.Through-int64(n.count) <= MaxSkipped {
				n.count = max(n.count, int(e.Through))
			}
		}
	}
}

func (n *TaskNames) add(id, name string) {
	i := taskIndex(id)
	if i < 0 || i > n.count {
		return
	}
	n.count = max(n.count, i+1)
	if name == "" {
		return
	}
	if n.names == nil {
		n.names, n.taken = map[string]string{}, map[string]bool{}
	}
	n.names[id], n.taken[name] = name, true
}

// scan reads the names from a snapshot whose fields have the usual order, and reports whether they
// have it.
func (n *TaskNames) scan(data string) bool {
	c := coder{mode: reading, in: data, first: true}
	if !c.take('{') {
		return false
	}
	if c.version(); c.err != nil {
		return false
	}
	for strings.HasPrefix(data[c.pos:], ",") && !strings.HasPrefix(data[c.pos:], tasksBegin) {
		c.pass(false)
	}
	var tasks int64
	c.int(taskCount, &tasks)
	if !c.field("tasks", false) || !c.take('[') {
		return tasks == 0 && c.ends()
	}
	for c.take('{') {
		var id, name string
		c.first = true
		c.str("id", &id)
		c.str("name", &name)
		if taskIndex(id) != n.count || !utf8.ValidString(name) || c.err != nil {
			return false
		}
		n.add(id, name)
		if c.pass(true); !c.take(',') {
			break
		}
	}
	return c.take(']') && int64(n.count) == tasks && c.ends()
}

// ends reports whether the object ends here, and the text with it.
func (c *coder) ends() bool { return c.take('}') && c.pos == len(c.in) && c.err == nil }

// pass moves past the next field of an object, or past the end of the object. It checks nothing.
func (c *coder) pass(all bool) {
	depth := 0
	for began := c.pos; c.pos < len(c.in); c.pos++ {
		switch c.in[c.pos] {
		case '"':
			c.passText()
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				if all {
					c.pos++
				}
				return
			}
			depth--
		case ',':
			if !all && depth == 0 && c.pos > began {
				return
			}
		}
	}
	c.pos = len(c.in)
}

// passText moves from the quote that begins a text to the quote that ends it.
func (c *coder) passText() {
	for c.pos++; c.pos < len(c.in); c.pos++ {
		end := strings.IndexByte(c.in[c.pos:], '"')
		if end < 0 {
			c.pos = len(c.in)
			return
		}
		text := c.in[c.pos : c.pos+end]
		c.pos += end
		if escapes := len(text) - len(strings.TrimRight(text, `\`)); escapes%2 == 0 {
			return
		}
	}
}
