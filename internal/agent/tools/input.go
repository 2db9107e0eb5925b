package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cadre/internal/team"
)

// The kinds of fields that inputs are made of. A kind takes what a model may well write for it, and
// says of anything else what it takes.
type (
	text     struct{ s *string }                    // nil when it is not there
	message  struct{ text }                         // what a member says
	id       struct{ s string }                     // of a task: "3", 3 or "#3"
	ids      struct{ all []string }                 // of tasks
	flag     struct{ on bool }                      // true or false
	seconds  struct{ n *int64 }                     // a number, at most an hour of them
	object   struct{ m map[string]json.RawMessage } // anything, by name
	priority struct{ choice }
	status   struct{ choice } // that TaskUpdate sets
	listed   struct{ choice } // that a task on the list has
	intent   struct{ choice }
	choice   struct{ s string } // one of a few words, "" when it is not there
)

var (
	statuses = []string{string(team.Pending), string(team.InProgress), string(team.Completed), string(team.Deleted)}
	intents  = []string{"info", "question", "challenge", "resolution"}
)

const longest = 3600 // seconds that a deadline may lie ahead

// field is what can be read from JSON. The error of read says what it takes, to stand behind its
// name.
type field interface {
	read(raw json.RawMessage) error
	looks() property // to a model, without name and description
}

func (f *text) read(raw json.RawMessage) error {
	s, ok := scalar(raw)
	if !ok {
		return errors.New("takes a text")
	}
	f.s = &s
	return nil
}

func (f *message) read(raw json.RawMessage) error {
	if _, ok := scalar(raw); !ok {
		return errors.New("takes a text; requests are answered with RespondToShutdown, RespondToPlan and " +
			"RespondToPermission")
	}
	return f.text.read(raw)
}

func (f text) value() string {
	if f.s == nil {
		return ""
	}
	return *f.s
}

func (f *id) read(raw json.RawMessage) error {
	s, ok := scalar(raw)
	if !ok {
		return errors.New("takes the id of a task")
	}
	f.s = taskID(s)
	return nil
}

func taskID(s string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(s), "task"), "#"))
}

func (f *ids) read(raw json.RawMessage) error {
	var list []json.RawMessage
	if s, ok := scalar(raw); ok {
		if s = strings.TrimSpace(s); !strings.HasPrefix(s, "[") { // one id, or several with commas
			for one := range strings.SplitSeq(s, ",") {
				if one = taskID(one); one != "" {
					f.all = append(f.all, one)
				}
			}
			return nil
		}
		raw = json.RawMessage(s)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New("takes a list of ids of tasks")
	}
	for _, one := range list {
		var i id
		if err := i.read(one); err != nil {
			return errors.New("takes a list of ids of tasks")
		}
		f.all = append(f.all, i.s)
	}
	return nil
}

func (f *flag) read(raw json.RawMessage) error {
	s, _ := scalar(raw)
	var err error
	if f.on, err = strconv.ParseBool(strings.ToLower(s)); err != nil {
		return errors.New("takes true or false")
	}
	return nil
}

func (f *seconds) read(raw json.RawMessage) error {
	s, _ := scalar(raw)
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n <= longest) {
		return fmt.Errorf("takes a number of seconds from 0 to %d", longest)
	}
	whole := int64(math.Ceil(n))
	f.n = &whole
	return nil
}

func (f *object) read(raw json.RawMessage) error {
	if s, ok := scalar(raw); ok {
		raw = json.RawMessage(s)
	}
	if err := json.Unmarshal(raw, &f.m); err != nil {
		return errors.New("takes a JSON object")
	}
	return nil
}

func (f *priority) read(raw json.RawMessage) error { return f.pick(raw, team.Priorities) }
func (f *status) read(raw json.RawMessage) error   { return f.pick(raw, statuses) }
func (f *listed) read(raw json.RawMessage) error   { return f.pick(raw, statuses[:3]) }
func (f *intent) read(raw json.RawMessage) error   { return f.pick(raw, intents) }

func (f *choice) pick(raw json.RawMessage, of []string) error {
	s, ok := scalar(raw)
	if ok && s == "" {
		return nil
	}
	if i := slices.IndexFunc(of, func(word string) bool { return folded(word) == folded(s) }); ok && i >= 0 {
		f.s = of[i]
		return nil
	}
	if !ok {
		s = string(raw)
	}
	return fmt.Errorf("is one of: %s; not %s", strings.Join(of, ", "), quoted(s))
}

// scalar is a JSON string, number or truth value as a string.
func scalar(raw json.RawMessage) (string, bool) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return strconv.FormatInt(n, 10), true
		}
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1e15 { // 3.0 is 3
			return strconv.FormatInt(int64(f), 10), true
		}
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// folded is a name without what models get wrong about names: taskId, task_id, TaskID.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// slot is a field of an input struct.
type slot struct {
	name     string
	required bool
	about    string
	also     []string // names under which models look for it
	index    int
}

// slots returns the fields of an input struct. Its tags are json, as for everybody; jsonschema, with
// the description; and also, with other names.
func slots(t reflect.Type) []slot {
	var all []slot
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, slot{name: name, required: option == "", about: f.Tag.Get("jsonschema"),
			also: strings.Fields(f.Tag.Get("also")), index: i})
	}
	return all
}

// decode reads an input into the struct that into points to. The error names everything that is
// wrong with it.
func decode(tool string, input json.RawMessage, into any) error {
	v := reflect.ValueOf(into).Elem()
	fields := slots(v.Type())
	var given map[string]json.RawMessage
	if len(bytes.TrimSpace(input)) > 0 {
		if s, ok := scalar(input); ok { // an object in a string
			input = json.RawMessage(s)
		}
		if err := json.Unmarshal(input, &given); err != nil {
			return mistake("The input of %s is a JSON object with: %s.", tool, known(fields))
		}
	}
	var wrong []string
	there := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(fields, func(f slot) bool { return folded(f.name) == folded(key) })
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("there is no %s%s", quoted(key), meant(fields, key)))
		case string(bytes.TrimSpace(given[key])) == "null": // as good as not there
		case there[fields[i].name]:
			wrong = append(wrong, fields[i].name+" is there twice")
		default:
			f := fields[i]
			there[f.name] = true
			if err := v.Field(f.index).Addr().Interface().(field).read(given[key]); err != nil {
				wrong = append(wrong, f.name+" "+err.Error())
			}
		}
	}
	for _, f := range fields {
		if f.required && !there[f.name] {
			wrong = append(wrong, fmt.Sprintf("%s is missing: %s", f.name, f.about))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return mistake("Nothing was done: %s. %s takes: %s.", strings.Join(wrong, "; "), tool, known(fields))
}

func known(fields []slot) string {
	if len(fields) == 0 {
		return "nothing"
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// meant names the field that somebody who wrote key was after.
func meant(fields []slot, key string) string {
	best, least := "", math.MaxInt
	for _, f := range fields {
		for _, name := range append([]string{f.name}, f.also...) {
			if d := distance(folded(name), folded(key)); d < least {
				best, least = f.name, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return "; the nearest is " + best
}

// distance is the number of letters to put in, take out or change on the way from a to b; of long
// names it is that of their beginnings.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
