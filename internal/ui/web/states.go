package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"cadre/internal/render"
	"cadre/internal/team"
)

// part is an encoded value, or nil for none.
type part = json.RawMessage

// tracker holds a team's state as the page has it, and finds what a record changes in it.
//
// The page's state is one JSON object. Members, tasks, notes, requests and items that wait are
// objects by their names, ids and keys, so that a merge patch can change one of them.
type tracker struct {
	clean   func([]byte) []byte // what replaces secrets in a JSON value; nil for nothing
	single  map[string]part
	keyed   map[string]map[string]part
	marks   []fingerprint // of the tasks, by their numbers; the zero value for none
	noteSeq int64         // the last change of a note that it has
}

// fingerprint changes with each change of a task that its own event does not name.
type fingerprint struct {
	status                           team.TaskStatus
	state, owner, completedBy        string
	fence, attempts, failures, words int64
	updated                          team.Time
	usage                            team.Usage
	open, waits, blocks              int
	holds                            int
	behind                           string // what it waits for
	judged                           string // what came of its result
	path                             string // for which it waits
}

func fingerprintOf(t *team.Task, state string) fingerprint {
	return fingerprint{t.Status, state, t.Owner, t.CompletedBy, t.Fence, t.Attempts, t.Failures,
		int64(len(t.Subject) + len(t.Description) + len(t.Result) + len(t.Failure)), t.UpdatedAt, t.Usage,
		len(t.Blocked()), len(t.BlockedBy), len(t.Blocks), len(t.Holds), strings.Join(t.Blocked(), " "),
		judgedOf(t), t.WaitsForPath()}
}

// judgedOf changes with each result of the task, with what others said of it, and with its work.
func judgedOf(t *team.Task) string {
	var words []string
	if b := t.Submission; b != nil {
		words = append(words, "submitted", strconv.FormatInt(b.Round, 10))
	}
	if r := t.Rejected; r != nil {
		words = append(words, r.By, r.Feedback)
	}
	if t.Work != nil {
		words = append(words, t.Work.Commit, strconv.Itoa(len(t.Work.Files)))
	}
	return strings.Join(append(append(words, t.LastWords, t.Skipped), t.Verified...), " ")
}

func newTracker() *tracker {
	return &tracker{single: map[string]part{}, keyed: map[string]map[string]part{}}
}

// item is something that waits, with the command line that would help.
type item struct {
	team.Item
	Command string `json:"command,omitempty"`
}

// update takes over the state as it was after the records, and returns the merge patch that leads
// to it.
func (k *tracker) update(s *team.State, records ...*team.Record) map[string]any {
	patch := map[string]any{}
	if ids, known := touched(records, s); known && k.keyed["tasks"] != nil {
		for _, id := range ids {
			if t, is := s.Task(id); is && t.Status != team.Deleted {
				k.task(patch, t)
			}
		}
	} else {
		k.tasks(patch, s)
	}
	return k.rest(patch, s, records[len(records)-1].At)
}

// take takes over the state as it was at that time, whatever led to it.
func (k *tracker) take(s *team.State, at team.Time) map[string]any {
	patch := map[string]any{}
	k.tasks(patch, s)
	return k.rest(patch, s, at)
}

// rest updates everything but the tasks.
func (k *tracker) rest(patch map[string]any, s *team.State, at team.Time) map[string]any {
	of := s.Team()
	of.FileDigests, of.Facts, of.Hooks, of.HooksOff = nil, nil, nil, nil
	k.sub(patch, "team", of)

	members, phases, order := map[string]part{}, map[string]team.Phase{}, []string{}
	for _, m := range s.Roster() {
		m.Program, m.Args, m.Env, m.FileDigests, m.Told, m.Late, m.Change = "", nil, nil, nil, team.Told{}, nil, 0
		if waits := render.WaitsFor(s, m.Name); waits != "" {
			m.Summary = waits
		}
		members[m.Name] = k.encode(m)
		phases[m.Name] = s.Standing(m.Name, nil)
		order = append(order, m.Name)
	}
	k.replace(patch, "members", members)
	k.set(patch, "order", order)
	k.set(patch, "phases", phases)

	requests := map[string]part{}
	for _, p := range s.Permissions() {
		requests[p.Request] = k.encode(p)
	}
	k.replace(patch, "requests", requests)

	items, waiting := map[string]part{}, []string{}
	for _, i := range s.Attention(at, nil) {
		key := i.Key()
		items[key] = k.encode(item{i, render.CommandFor(i.Hint).String()})
		waiting = append(waiting, key)
	}
	k.replace(patch, "items", items)
	k.notes(patch, s)
	k.set(patch, "waiting", waiting)
	k.set(patch, "budget", append([]team.Spent{}, s.Spending(at)...))
	k.set(patch, "messages", s.MessageCount())
	k.set(patch, "lastMessage", s.MessageSeq())
	patch["seq"], patch["at"] = s.Seq(), at
	return patch
}

// noteHead is a note without its text, which the page reads where it shows it.
type noteHead struct {
	Key       string    `json:"key"`
	Begin     string    `json:"begin"` // how the text begins, on one line
	Bytes     int       `json:"bytes"` // of the text
	SetBy     string    `json:"setBy"`
	SetAt     team.Time `json:"setAt"`
	UpdatedBy string    `json:"updatedBy"`
	UpdatedAt team.Time `json:"updatedAt"`
	Seq       int64     `json:"seq"`
}

// mostOfANote bounds how much of a note its head has, in characters.
const mostOfANote = 160

func noteHeadOf(n team.Note) noteHead {
	return noteHead{n.Key, render.Cut(render.Clean(n.Text), mostOfANote), len(n.Text), n.SetBy, n.SetAt, n.UpdatedBy,
		n.UpdatedAt, n.Seq}
}

// notes updates the heads of the notes, if any note changed.
func (k *tracker) notes(patch map[string]any, s *team.State) {
	if k.keyed["notes"] != nil && k.noteSeq == s.NoteSeq() {
		return
	}
	notes := map[string]part{}
	for _, n := range s.Notes() {
		notes[n.Key] = k.keyed["notes"][n.Key]
		if n.Seq > k.noteSeq || notes[n.Key] == nil {
			notes[n.Key] = k.encode(noteHeadOf(n))
		}
	}
	k.replace(patch, "notes", notes)
	k.noteSeq = s.NoteSeq()
}

// touched returns the tasks that records can have changed, s being a state after them. It returns
// false if those could be any.
func touched(records []*team.Record, s *team.State) (ids []string, known bool) {
	for _, r := range records {
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.MessageSent, *team.MessagesDelivered, *team.MessagesRead, *team.MemberStatusChanged,
				*team.PermissionRequested, *team.PermissionAnswered, *team.PlanSubmitted, *team.PlanAnswered,
				*team.NoteSet, *team.NoteAppended, *team.NoteDeleted, *team.RateLimited, *team.RateLimitLifted,
				*team.TurnGranted:
			case *team.UsageReported:
				ids = append(ids, e.Task)
			case *team.TaskClaimed:
				if changesPaths(s, e.Task) {
					return nil, false
				}
				ids = append(ids, e.Task)
			case *team.TaskCreated:
				if changesPaths(s, e.Task.ID) {
					return nil, false
				}
				ids = append(append(ids, e.Task.ID), e.Task.BlockedBy...)
			case *team.TaskCompleted:
				t, _ := s.Task(e.Task)
				if changesPaths(s, e.Task) {
					return nil, false
				}
				ids = append(append(ids, e.Task), t.Blocks...)
			default:
				return nil, false
			}
		}
	}
	return ids, true
}

// changesPaths reports whether the task has paths, so that others may wait for it, or no longer.
func changesPaths(s *team.State, id string) bool {
	t, _ := s.Task(id)
	return len(t.Paths) > 0
}

// tasks updates all tasks.
func (k *tracker) tasks(patch map[string]any, s *team.State) {
	if k.keyed["tasks"] == nil {
		k.keyed["tasks"], patch["tasks"] = map[string]part{}, map[string]any{}
	}
	seen, all := 0, k.keyed["tasks"]
	for t := range s.Tasks() {
		seen++
		k.task(patch, t)
	}
	if seen == len(all) {
		return
	}
	for id := range all { // some were removed
		if t, is := s.Task(id); !is || t.Status == team.Deleted {
			delete(all, id)
			inner(patch, "tasks")[id] = nil
		}
	}
}

// task updates a task, if its fingerprint changed.
func (k *tracker) task(patch map[string]any, t team.Task) {
	number, err := strconv.Atoi(t.ID)
	if err != nil {
		panic(err) // the ids of tasks are numbers
	}
	for len(k.marks) <= number {
		k.marks = append(k.marks, fingerprint{})
	}
	mark := fingerprintOf(&t, t.State())
	if k.marks[number] == mark {
		return
	}
	k.marks[number] = mark
	t.Env, t.FileDigests, t.Saved, t.Work = nil, nil, nil, filesOf(t)
	k.change(patch, "tasks", t.ID, k.keyed["tasks"], k.encode(t))
}

// filesOf returns the part of a task's work that the page shows: which files it changed.
func filesOf(t team.Task) *team.Work {
	sum := t.Summary()
	if len(sum.Files) == 0 {
		return nil
	}
	files := sum.Files
	if sum.More > 0 {
		files = append(files, "and "+strconv.Itoa(sum.More)+" more")
	}
	return &team.Work{Files: files, Others: sum.Others}
}

// replace updates the section to the values.
func (k *tracker) replace(patch map[string]any, section string, now map[string]part) {
	before := k.keyed[section]
	if before == nil {
		before = map[string]part{}
		k.keyed[section] = before
		patch[section] = map[string]any{}
	}
	for key := range before {
		if now[key] == nil {
			delete(before, key)
			inner(patch, section)[key] = nil
		}
	}
	for key, value := range now {
		k.change(patch, section, key, before, value)
	}
}

// change sets one value of a section.
func (k *tracker) change(patch map[string]any, section, key string, all map[string]part, now part) {
	before := all[key]
	if bytes.Equal(before, now) {
		return
	}
	all[key] = now
	inner(patch, section)[key] = difference(before, now)
}

// inner returns the part of the patch that is for the section.
func inner(patch map[string]any, section string) map[string]any {
	of, is := patch[section].(map[string]any)
	if !is {
		of = map[string]any{}
		patch[section] = of
	}
	return of
}

// sub sets an object by the fields that changed.
func (k *tracker) sub(patch map[string]any, name string, value any) {
	now := k.encode(value)
	if before := k.single[name]; !bytes.Equal(before, now) {
		k.single[name] = now
		patch[name] = difference(before, now)
	}
}

// set sets a value as a whole.
func (k *tracker) set(patch map[string]any, name string, value any) {
	now := k.encode(value)
	if !bytes.Equal(k.single[name], now) {
		k.single[name] = now
		patch[name] = now
	}
}

func (k *tracker) encode(value any) part {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // the values of the core can always be written
	}
	if k.clean != nil {
		data = k.clean(data)
	}
	return data
}

// difference returns the merge patch between two objects; the whole object if there was none.
func difference(before, now part) any {
	if before == nil {
		return now
	}
	var old, fields map[string]part
	if json.Unmarshal(before, &old) != nil || json.Unmarshal(now, &fields) != nil {
		return now
	}
	changed := map[string]any{}
	for name := range old {
		if fields[name] == nil {
			changed[name] = nil
		}
	}
	for name, value := range fields {
		if is := old[name]; bytes.Equal(is, value) {
			continue
		} else if len(is) > 0 && is[0] == '{' && value[0] == '{' {
			changed[name] = difference(is, value)
		} else {
			changed[name] = value
		}
	}
	return changed
}

// whole returns the state that the tracker has, as the page has it.
func (k *tracker) whole(seq int64, at team.Time) map[string]any {
	all := map[string]any{"seq": seq, "at": at}
	for name, value := range k.single {
		all[name] = value
	}
	for name, values := range k.keyed {
		all[name] = maps.Clone(values)
	}
	return all
}

// empty returns the state before the first record.
func empty() *team.State {
	s, err := team.DecodeSnapshot(0, "")
	if err != nil {
		panic(err)
	}
	return s
}
