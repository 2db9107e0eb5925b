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
	"time"
	"unicode"

	"cadre/internal/team"
)

// These are the kinds of input fields. A kind accepts what a model may reasonably write for it, and
// says for anything else what it accepts.
type (
	text     struct{ s *string }                    // nil if it is missing
	message  struct{ text }                         // a member's text
	result   struct{ text }                         // of a task: a text, or JSON that fits its schema
	id       struct{ s string }                     // of a task: "3", 3 or "#3"
	ids      struct{ all []string }                 // of tasks
	values   struct{ all []json.RawMessage }        // any values, usually texts
	paths    struct{ all *[]string }                // patterns of files; nil if it is missing
	flag     struct{ on bool }                      // true or false
	seconds  struct{ d *time.Duration }             // a number of them, at most an hour of them
	number   struct{ n *int64 }                     // a whole number; nil if it is missing
	object   struct{ m map[string]json.RawMessage } // any object
	priority struct{ choice }
	status   struct{ choice } // set by TaskUpdate
	listed   struct{ choice } // of a listed task
	intent   struct{ choice }
	kind     struct{ choice }   // of a text that is searched
	verdict  struct{ choice }   // of a task that verifies another one
	choice   struct{ s string } // one of a few words, "" if it is missing
)

var (
	statuses = []string{string(team.Pending), string(team.InProgress), string(team.Completed), string(team.Deleted)}
	intents  = []string{"info", "question", "challenge", "resolution"}
)

const longest = time.Hour // in the future, for a deadline

// field can be read from JSON. The error of read says what the field accepts, and follows its name.
type field interface {
	read(raw json.RawMessage) error
	looks() property // for a model, without name and description
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

func (f *result) read(raw json.RawMessage) error {
	if _, ok := scalar(raw); ok {
		return f.text.read(raw)
	}
	s := string(raw) // an object that was not put into a text
	f.s = &s
	return nil
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
	f.s = strings.TrimSpace(s)
	return nil
}

func (f *ids) read(raw json.RawMessage) error {
	var list []json.RawMessage
	if s, ok := scalar(raw); ok {
		if s = strings.TrimSpace(s); !strings.HasPrefix(s, "[") { // one id, or several with commas
			for one := range strings.SplitSeq(s, ",") {
				if one = strings.TrimSpace(one); one != "" {
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

func (f *values) read(raw json.RawMessage) error {
	if json.Unmarshal(raw, &f.all) == nil {
		return nil
	}
	return errors.New(`takes a list of items, like ["a.go", "b.go"]`)
}

func (f *paths) read(raw json.RawMessage) error {
	all := []string{}
	if s, ok := scalar(raw); ok {
		if s = strings.TrimSpace(s); !strings.HasPrefix(s, `["`) { // one pattern, or several with commas
			for one := range strings.SplitSeq(s, ",") {
				if one = strings.TrimSpace(one); one != "" {
					all = append(all, one)
				}
			}
			f.all = &all
			return nil
		}
		raw = json.RawMessage(s)
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return errors.New(`takes a list of paths, like ["src/parser/**"]`)
	}
	f.all = &all
	return nil
}

// value returns the patterns; none if the field is missing.
func (f paths) value() []string {
	if f.all == nil {
		return nil
	}
	return *f.all
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
	if err != nil || !(n >= 0 && n <= longest.Seconds()) {
		return fmt.Errorf("takes a number of seconds from 0 to %.0f", longest.Seconds())
	}
	whole := time.Duration(math.Ceil(n)) * time.Second
	f.d = &whole
	return nil
}

func (f *number) read(raw json.RawMessage) error {
	s, _ := scalar(raw)
	n, err := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	if err != nil {
		return errors.New("takes a whole number")
	}
	f.n = &n
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
func (f *kind) read(raw json.RawMessage) error     { return f.pick(raw, textKinds()) }
func (f *verdict) read(raw json.RawMessage) error  { return f.pick(raw, team.Verdicts) }

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

// scalar returns a JSON string, number or boolean as a string.
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

// folded returns a name without the differences that models make in names: taskId, task_id, TaskID.
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
	also     []string // other names that models use
	index    int
}

// slots returns the fields of an input struct. Its tags are json, as usual; jsonschema, with the
// description; and also, with other names.
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

// decode reads an input into the struct that into points to. The error names all mistakes.
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
			wrong = append(wrong, fmt.Sprintf("the field %s is unknown%s", quoted(key), meant(fields, key)))
		case string(bytes.TrimSpace(given[key])) == "null": // like a missing field
		case there[fields[i].name]:
			wrong = append(wrong, fields[i].name+" is given twice")
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

// meant returns the field that the writer of key probably meant; "" if none is near.
func meant(fields []slot, key string) string {
	var names []string
	of := map[string]string{} // the field with that folded name
	for _, f := range fields {
		for _, name := range append([]string{f.name}, f.also...) {
			names, of[folded(name)] = append(names, folded(name)), f.name
		}
	}
	if near := of[team.Nearest(folded(key), names)]; near != "" {
		return "; the nearest is " + near
	}
	return ""
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
