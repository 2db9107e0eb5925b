package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A task with ForEach is a group: no member works on it. When its blockers are done, it makes one
// task for each item, and waits for them. It is completed in the record that closes the last of
// them.
//
// A list and a matrix are part of the state, so the rules expand them in the record that closed the
// last blocker. The items of a pattern or of a command are outside: a host finds them for
// [WantExpand] and sends [ExpandTask].
//
// A group can become ready in a way that the record of a command does not follow, such as a removed
// dependency. It is then due: [State.Overdue] and [State.Wants] ask for ExpandTask.

// Limits of a group.
const (
	MaxItems = 1000     // tasks that one group makes at once
	MaxItem  = 4 << 10  // bytes of one item, as JSON
	MaxTasks = 10_000   // tasks of a team, beyond which no group makes any
	maxMade  = 16 << 20 // bytes of all tasks that one group makes
)

// ForEach says for which items a task is done. One of the lists, the pattern, or the command is
// set; with none of them there are no items.
type ForEach struct {
	Items   []json.RawMessage // the items themselves
	Matrix  []Axis            // the items are the combinations of the values, the last axis changing fastest
	Exclude []json.RawMessage // objects: combinations that have the values of one of them are left out
	Glob    string            // the items are the files that the pattern covers; see [CleanPath]
	Run     string            // the items are what this command prints: lines, or a JSON list
}

// Axis is one dimension of a matrix.
type Axis struct {
	Name   string            // key of the values in an item
	Values []json.RawMessage // any JSON values
}

func (f *ForEach) fields(c *coder) {
	c.values("items", &f.Items)
	objects(c, "matrix", &f.Matrix)
	c.values("exclude", &f.Exclude)
	c.str("glob", &f.Glob)
	c.str("run", &f.Run)
}

func (a *Axis) fields(c *coder) {
	c.str("name", &a.Name)
	c.values("values", &a.Values)
}

// value codes any JSON value, kept as its text.
func (c *coder) value(key string, v *json.RawMessage) {
	if c.field(key, len(*v) == 0) {
		c.oneValue(v)
	}
}

func (c *coder) values(key string, v *[]json.RawMessage) { list(c, key, v, c.oneValue) }

func (c *coder) oneValue(v *json.RawMessage) {
	switch c.mode {
	case writing:
		c.out = append(c.out, *v...)
	case reading:
		*v = c.raw()
	}
}

// Outside reports whether a host must find the items.
func (f *ForEach) Outside() bool { return f.Glob != "" || f.Run != "" }

// Group reports whether the task is done by the tasks that it makes, one for each item.
func (t Task) Group() bool { return t.ForEach != nil }

// Clean returns the items in their one spelling, with each value on one line, or says what is wrong
// with them. nil stays nil.
func (f *ForEach) Clean() (*ForEach, error) {
	if f == nil {
		return nil, nil
	}
	sources := 0
	for _, given := range []bool{len(f.Items) > 0, len(f.Matrix) > 0, f.Glob != "", f.Run != ""} {
		if given {
			sources++
		}
	}
	clean := &ForEach{Run: f.Run}
	switch {
	case sources > 1:
		return nil, refuse(Invalid, "a task has one source of items: a list, a matrix, a pattern of files, or a command")
	case len(f.Exclude) > 0 && len(f.Matrix) == 0:
		return nil, refuse(Invalid, "exclude leaves out combinations of a matrix, and there is no matrix")
	case f.Run != "" && strings.TrimSpace(f.Run) == "":
		return nil, refuse(Invalid, "the command for the items is empty; write one, such as git ls-files")
	case len(f.Items) > MaxItems:
		return nil, tooMany(len(f.Items))
	}
	if err := limit(text{"command for the items", f.Run, MaxText}); err != nil {
		return nil, err
	}
	var err error
	if clean.Items, err = cleanItems(f.Items); err != nil {
		return nil, err
	}
	if f.Glob != "" {
		if clean.Glob, err = CleanPath(f.Glob); err != nil {
			return nil, err
		}
	}
	return clean, clean.addMatrix(f)
}

// addMatrix sets the matrix of f, checked.
func (clean *ForEach) addMatrix(f *ForEach) (err error) {
	names := map[string]bool{}
	product := 1
	for _, a := range f.Matrix {
		if a.Name == "" || names[a.Name] {
			return refuse(Invalid, "each dimension of a matrix needs a name of its own; %q is empty, or there twice",
				brief(a.Name))
		}
		names[a.Name] = true
		if err := limit(text{"name of a dimension", a.Name, MaxID}); err != nil {
			return err
		}
		values, err := cleanItems(a.Values)
		if err != nil {
			return err
		}
		if product = min(product*len(values), MaxItems*MaxItems); product > 100*MaxItems {
			return tooMany(product)
		}
		clean.Matrix = append(clean.Matrix, Axis{strings.ToValidUTF8(a.Name, "\uFFFD"), values})
	}
	if clean.Exclude, err = cleanItems(f.Exclude); err != nil {
		return err
	}
	for _, one := range clean.Exclude {
		var keys map[string]json.RawMessage
		if json.Unmarshal(one, &keys) != nil {
			return refuse(Invalid, "what a matrix leaves out is an object, such as {\"os\": \"linux\"}, not %s",
				brief(string(one)))
		}
		for key := range keys {
			if !names[key] {
				return refuse(Invalid, "the matrix leaves out combinations by %q, which is not one of its dimensions",
					brief(key))
			}
		}
	}
	items := clean.items()
	if len(items) > MaxItems {
		return tooMany(len(items))
	}
	_, err = cleanItems(items)
	return err
}

func tooMany(n int) error {
	return refuse(TooLarge, "%s items are too many: a task with forEach makes at most %s tasks at once",
		thousands(n), thousands(MaxItems))
}

// thousands writes a number with a comma for each thousand.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// cleanItems checks items, and brings each to one line.
func cleanItems(items []json.RawMessage) (clean []json.RawMessage, err error) {
	for i, item := range items {
		one, err := CleanItem(item)
		if err != nil {
			return nil, refuse(CodeOf(err), "item %d %v", i+1, err)
		}
		clean = append(clean, one)
	}
	return clean, nil
}

// CleanItem returns an item on one line, or says what is wrong with it.
func CleanItem(item json.RawMessage) (json.RawMessage, error) {
	value := strings.ToValidUTF8(string(item), "\uFFFD")
	c := coder{mode: reading, in: value}
	c.skip(maxDepth / 2) // its event nests it deeper
	var one bytes.Buffer
	switch err := json.Compact(&one, []byte(value)); {
	case err != nil || c.err != nil:
		return nil, refuse(Invalid, "is not JSON, or nested more than %d times", maxDepth/2)
	case one.Len() > MaxItem:
		return nil, refuse(TooLarge, "has %d bytes, of at most %d; put the rest into a file and name it", one.Len(),
			MaxItem)
	case strings.Contains(value, `\u0000`) && hasNUL(one.Bytes()):
		return nil, refuse(Invalid, "has a NUL character, which no environment variable can have")
	}
	return one.Bytes(), nil
}

// hasNUL reports whether a text of the value has a NUL character.
func hasNUL(value []byte) bool {
	d := json.NewDecoder(bytes.NewReader(value))
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if text, is := token.(string); is && strings.Contains(text, "\x00") {
			return true
		}
	}
}

// TextItem returns a text as an item.
func TextItem(text string) json.RawMessage { return appendText(nil, text) }

// Known returns the items of a list or a matrix, in the order written. known is false where a host
// must find them.
func (f *ForEach) Known() (items []json.RawMessage, known bool) {
	if f.Outside() {
		return nil, false
	}
	return f.items(), true
}

// items returns the items of a list or a matrix, in the order written.
func (f *ForEach) items() []json.RawMessage {
	if len(f.Matrix) == 0 {
		return f.Items
	}
	var items []json.RawMessage
	at := make([]int, len(f.Matrix))
	for {
		if slices.ContainsFunc(f.Matrix, func(a Axis) bool { return len(a.Values) == 0 }) {
			return nil
		}
		if !f.excludes(at) {
			one := []byte{'{'}
			for i, a := range f.Matrix {
				if i > 0 {
					one = append(one, ',')
				}
				one = append(append(appendText(one, a.Name), ':'), a.Values[at[i]]...)
			}
			items = append(items, append(one, '}'))
		}
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(f.Matrix[i].Values) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return items
		}
	}
}

// excludes reports whether the combination of the values at these places is left out.
func (f *ForEach) excludes(at []int) bool {
	return slices.ContainsFunc(f.Exclude, func(one json.RawMessage) bool {
		var keys map[string]json.RawMessage
		if json.Unmarshal(one, &keys) != nil || len(keys) == 0 {
			return false
		}
		for i, a := range f.Matrix {
			if want, is := keys[a.Name]; is && !bytes.Equal(want, a.Values[at[i]]) {
				return false
			}
		}
		return true
	})
}

// ItemText returns an item as a text: a string without its quotes, any other value as JSON.
func ItemText(item json.RawMessage) string {
	var s string
	if json.Unmarshal(item, &s) == nil && len(item) > 0 && item[0] == '"' {
		return s
	}
	return string(item)
}

// ItemLine returns an item on one short line, for people.
func ItemLine(item json.RawMessage) string {
	line := strings.Join(strings.FieldsFunc(ItemText(item), func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
	}), " ")
	return clipTo(line, 80)
}

// madeBy returns the tasks that the group made and that were not deleted, in the order of the
// items.
func (s *State) madeBy(group *Task) (made []*Task) {
	if !group.Expanded {
		return nil
	}
	for _, id := range group.BlockedBy {
		if t := s.task(id); t != nil && t.Of == group.ID && t.Status != Deleted {
			made = append(made, t)
		}
	}
	return made
}

// Made returns the tasks that the group with that id made and that were not deleted, in the order
// of the items.
func (s *State) Made(group string) (made []Task) {
	if t := s.task(group); t != nil {
		l := s.line()
		for _, one := range s.madeBy(t) {
			made = append(made, s.shown(one, l))
		}
	}
	return made
}

// Expanding reports whether the items of a group are being found, or its tasks are about to be
// made.
func (s *State) Expanding() bool { return s.due.from(0) >= 0 }

// isDue reports whether [ExpandTask] has something to do for the group.
func (t *Task) isDue() bool {
	return t.ForEach != nil && t.Status == Pending && t.waits() == 0 && !t.OutOfRetries()
}

// appendExpandWants appends a want for each group that is due.
func (s *State) appendExpandWants(wants []Want) []Want {
	if s.team.Exhausted != "" || s.team.Status == TeamConsolidating {
		return wants
	}
	for i := range s.due.all() {
		t := &s.tasks[i]
		wants = append(wants, Want{Kind: WantExpand, Key: fmt.Sprintf("expand/%s/%d", t.ID, t.Fence), Task: t.ID})
	}
	return wants
}

// overdueGroups returns the commands for the groups that are due and need nothing from outside.
func (s *State) overdueGroups() (bodies []Body) {
	for i := range s.due.all() {
		if t := &s.tasks[i]; t.Expanded || !t.ForEach.Outside() {
			bodies = append(bodies, &ExpandTask{Task: t.ID, Fence: t.Fence})
		}
	}
	return bodies
}

// Words says in a few words where the items come from.
func (f *ForEach) Words() string {
	switch {
	case f == nil:
		return ""
	case f.Glob != "":
		return "files " + f.Glob
	case f.Run != "":
		return "what this prints: " + clipTo(f.Run, 200)
	case len(f.Matrix) > 0:
		var names []string
		for _, a := range f.Matrix {
			names = append(names, a.Name)
		}
		return fmt.Sprintf("%s of %s", Count(len(f.items()), "combination"), strings.Join(names, ", "))
	}
	return Count(len(f.Items), "item")
}

// Folded reports whether lists for people fold the task under the group that made it. A list that
// is narrowed folds none.
func (s *State) Folded(t Task) bool {
	group := s.task(t.Of)
	return group != nil && group.Status != Deleted
}

// Progress says how many of the tasks that the group made are done, and how many failed; "" for a
// task that made none.
func (s *State) Progress(group string) string {
	t := s.task(group)
	if t == nil || !t.Expanded {
		return ""
	}
	made := s.madeBy(t)
	done, failed := 0, 0
	for _, one := range made {
		switch {
		case one.Status == Completed:
			done++
		case one.OutOfRetries():
			failed++
		}
	}
	words := fmt.Sprintf("%d of %d done", done, len(made))
	if failed > 0 {
		words += fmt.Sprintf(", %d failed", failed)
	}
	return words
}

// Before returns the ids of the tasks in BlockedBy that the task did not make itself and that do
// not verify it.
func (s *State) Before(t Task) (ids []string) {
	for _, id := range t.BlockedBy {
		if b := s.task(id); b == nil || b.Of != t.ID && b.Verifies != t.ID {
			ids = append(ids, id)
		}
	}
	return ids
}
