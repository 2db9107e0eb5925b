// Package history selects the part of a team's history that a person asks for: of some members, of
// some kinds, since a time, or the last records. Every front end that shows a history selects with
// it.
//
// A selected record keeps its number and its time, and has only the selected events. Each record is
// read; there is no index that could be wrong. An event concerns the members that it names in any
// role, and the member that caused it. The release and the deletion of a task also concern the
// member that had it.
package history

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"cadre/internal/team"
)

// Filter selects events. The zero Filter selects all of them.
type Filter struct {
	Since   team.Time // leave out earlier events; 0 for none
	Members []string  // events that concern one of these members; nil for all
	Kinds   []string  // kinds of events, or the first words of their names, such as "task"; nil for all
	Last    int       // only the last selected records; 0 for all

	owners map[string]string // of tasks, after the records that were seen; nil before Track
}

// Track has the filter remember from record to record who has which task. Without it a release
// concerns only the member that caused it. Select does that by itself.
func (f *Filter) Track() { f.owners = map[string]string{} }

// Check refuses a kind that no event has, and lists the first words of the kinds.
func (f Filter) Check() error {
	kinds := team.Kinds()
	for _, want := range f.Kinds {
		if !slices.ContainsFunc(kinds, func(kind string) bool { return is(kind, want) }) {
			return team.Refuse(team.Invalid, "no event is of the kind %q; kinds begin with %s", want,
				strings.Join(Words(), ", "))
		}
	}
	if f.Last < 0 {
		return team.Refuse(team.Invalid, "%d records cannot be shown", f.Last)
	}
	return nil
}

// Words returns the first words of the kinds, sorted.
func Words() []string {
	var words []string
	for _, kind := range team.Kinds() {
		word, _, _ := strings.Cut(singular(kind), "_")
		words = append(words, word)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// is reports whether the kind is the wanted one, or begins with its words. The plural of the first
// word counts as its singular, because some kinds are about one message and some about several.
func is(kind, want string) bool {
	kind, want = singular(kind), singular(want)
	return kind == want || strings.HasPrefix(kind, want+"_")
}

func singular(kind string) string {
	word, rest, more := strings.Cut(kind, "_")
	word = strings.TrimSuffix(word, "s")
	if more {
		word += "_"
	}
	return word + rest
}

// Select returns the records with the selected events, and ends with the first error of the source.
// It leaves out records without such an event. With Last it first reads the source to its end.
func (f Filter) Select(source iter.Seq2[*team.Record, error]) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		var last []*team.Record
		if f.owners == nil {
			f.Track()
		}
		for r, err := range source {
			if err != nil {
				yield(nil, err)
				return
			}
			part := f.Part(r)
			switch {
			case part == nil:
			case f.Last == 0:
				if !yield(part, nil) {
					return
				}
			case len(last) < f.Last:
				last = append(last, part)
			default:
				last = append(last[1:], part)
			}
		}
		for _, r := range last {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Part returns the record with only the selected events. It returns the record itself if all are
// selected, and nil if none is.
func (f Filter) Part(r *team.Record) *team.Record {
	had := f.track(r)
	if r.At < f.Since {
		return nil
	}
	if len(f.Members) == 0 && len(f.Kinds) == 0 {
		return r
	}
	named := f.naming(r)
	part := *r
	part.Events = nil
	for i, e := range r.Events {
		if f.ofKind(e) && (slices.Contains(f.Members, had[i]) || named(i)) {
			part.Events = append(part.Events, e)
		}
	}
	switch len(part.Events) {
	case 0:
		return nil
	case len(r.Events):
		return r
	}
	return &part
}

// track notes who has which task after the record. It returns, by the index of the event, who had
// the task that was released or deleted.
func (f Filter) track(r *team.Record) (had map[int]string) {
	if f.owners == nil {
		return nil
	}
	for i, e := range r.Events {
		task, owner := "", ""
		switch e := e.(type) {
		case *team.TaskCreated:
			task, owner = e.Task.ID, e.Task.Owner
		case *team.TaskClaimed:
			task, owner = e.Task, e.Member
		case *team.TaskUpdated:
			if e.Owner == nil {
				continue
			}
			task, owner = e.Task, *e.Owner
		case *team.TaskReleased:
			task, owner = e.Task, e.Owner
		case *team.TaskDeleted:
			task = e.Task
		default:
			continue
		}
		switch e.(type) {
		case *team.TaskReleased, *team.TaskDeleted:
			if had == nil {
				had = map[int]string{}
			}
			had[i] = f.owners[task]
		}
		f.owners[task] = owner
	}
	return had
}

func (f Filter) ofKind(e team.Event) bool {
	return len(f.Kinds) == 0 || slices.ContainsFunc(f.Kinds, func(want string) bool { return is(e.Kind(), want) })
}

// naming returns a function that reports whether one of the members caused, or is named in, the
// event of that index.
func (f Filter) naming(r *team.Record) func(event int) bool {
	if len(f.Members) == 0 || slices.Contains(f.Members, r.Actor) {
		return func(int) bool { return true }
	}
	var as struct {
		Events []map[string]json.RawMessage `json:"events"`
	}
	if encoded, err := json.Marshal(r); err != nil || json.Unmarshal(encoded, &as) != nil {
		return func(int) bool { return false }
	}
	return func(i int) bool { return i < len(as.Events) && f.named(as.Events[i]) }
}

// roles are the keys of events, and of their tasks and messages, whose values are names of members.
var roles = []string{"member", "from", "to", "owner", "by", "createdBy", "completedBy", "recipients", "lead", "members",
	"answeredBy"}

// named reports whether a member of the filter has a role in the event.
func (f Filter) named(fields map[string]json.RawMessage) bool {
	for _, role := range roles {
		var one string
		var many []string
		switch value := fields[role]; {
		case value == nil:
		case json.Unmarshal(value, &one) == nil:
			if slices.Contains(f.Members, one) {
				return true
			}
		case json.Unmarshal(value, &many) == nil:
			if slices.ContainsFunc(many, func(name string) bool { return slices.Contains(f.Members, name) }) {
				return true
			}
		}
	}
	for _, part := range []string{"task", "message", "member", "lead"} {
		var inner map[string]json.RawMessage
		if value := fields[part]; value != nil && json.Unmarshal(value, &inner) == nil {
			var name string
			if json.Unmarshal(inner["name"], &name) == nil && slices.Contains(f.Members, name) || f.named(inner) {
				return true
			}
		}
	}
	return false
}
