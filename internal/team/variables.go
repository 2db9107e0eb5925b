package team

import (
	"encoding/json"
	"slices"
	"strings"
)

// The command of a task and its check get values as environment variables, and never as a part of
// their text: a shell would run what they contain.

// Limits of the variables of a task. A system refuses to start a program with more.
const (
	MaxVariable  = 64 << 10  // bytes of a result, with its name
	MaxVariables = 512 << 10 // bytes of all results
	mostNames    = 8 << 10   // bytes of a list of names
)

// TaskVariables returns the variables that say which task it is, and what became of the tasks for
// which it waited, each as NAME=value.
func (s *State) TaskVariables(t Task) []string {
	results, out := s.ResultVariables(t.ID)
	return slices.Concat([]string{"CADRE_TASK_ID=" + t.ID, "CADRE_TASK_NAME=" + t.Name,
		"CADRE_TASK_SUBJECT=" + oneLine(t.Subject), "CADRE_FAILED_TASKS=" + namesOf(s.failedBefore(t)),
		"CADRE_RESULTS_LEFT_OUT=" + namesOf(out)}, ItemVariables(t.Item), results)
}

// namesOf returns names with commas, as many as fit.
func namesOf(all []string) string {
	names := strings.Join(all, ",")
	if len(names) > mostNames {
		names = names[:strings.LastIndexByte(names[:mostNames], ',')] + ",..."
	}
	return names
}

// oneLine returns the text with a space for each control character.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}

// failedBefore returns what the failed tasks are called for which the task waited, directly or
// through others, in the order of the list.
func (s *State) failedBefore(t Task) (names []string) {
	seen := map[string]bool{}
	for open := t.BlockedBy; len(open) > 0; {
		before := s.task(open[0])
		open = open[1:]
		if before == nil || seen[before.ID] {
			continue
		}
		seen[before.ID] = true
		open = slices.Concat(open, before.BlockedBy)
	}
	for failed := range s.OutOfRetries() {
		if seen[failed.ID] {
			names = append(names, failed.Called())
		}
	}
	return names
}

// ItemVariables returns the variables with the item of a task, each as NAME=value: CADRE_ITEM has
// the item as [ItemText], and of an object CADRE_ITEM_KEY each of its values.
func ItemVariables(item json.RawMessage) (all []string) {
	if len(item) == 0 {
		return nil
	}
	all = append(all, "CADRE_ITEM="+ItemText(item))
	taken := map[string]bool{}
	for _, f := range fieldsOf(string(item)) {
		if name := "CADRE_ITEM_" + variableWord(f.key); !taken[name] {
			taken[name] = true
			all = append(all, name+"="+ItemText(f.value))
		}
	}
	return all
}

// ResultVariable returns the name of the variable with the result of the task of that name, or of
// that number for a task without a name.
func ResultVariable(task string) string { return "CADRE_RESULT_" + variableWord(task) }

// ParameterVariable returns the name of the variable with the value of a parameter of a team file.
func ParameterVariable(name string) string { return "CADRE_PARAM_" + variableWord(name) }

// ResultVariables returns the variables with the results of the completed tasks for which the task
// waited, directly or through others, each as NAME=value. CADRE_RESULT_TASK has a result as a
// whole, without the line breaks at its end, and CADRE_RESULT_TASK_FIELD a field of one that is a
// JSON object. The nearest tasks come first. out are the names of variables that were left out,
// because they or all together would be too long, or because a variable before them has the same
// name.
func (s *State) ResultVariables(task string) (all, out []string) {
	before := s.before(task)
	whole := map[string]bool{}
	for _, t := range before {
		whole[ResultVariable(t.Called())] = true
	}
	size, taken := 0, map[string]bool{}
	add := func(name, value string) {
		one := name + "=" + strings.ReplaceAll(value, "\x00", "") // no variable can have a NUL character
		if taken[name] || len(one) > MaxVariable || size+len(one) > MaxVariables {
			out = append(out, name)
			return
		}
		taken[name] = true
		size += len(one)
		all = append(all, one)
	}
	for _, t := range before {
		name := ResultVariable(t.Called())
		add(name, strings.TrimRight(t.Result, "\n")) // as a shell does with what a command printed
		for _, f := range fieldsOf(t.Result) {
			if field := name + "_" + variableWord(f.key); whole[field] {
				out = append(out, field)
			} else {
				add(field, ItemText(f.value))
			}
		}
	}
	return all, out
}

// before returns the completed tasks for which the task waited, directly or through others, the
// nearest first.
func (s *State) before(task string) (all []*Task) {
	t := s.task(task)
	if t == nil {
		return nil
	}
	seen := map[string]bool{task: true}
	for open := t.BlockedBy; len(open) > 0; {
		var next []string
		for _, id := range open {
			b := s.task(id)
			if b == nil || seen[id] {
				continue
			}
			if seen[id] = true; b.Status == Completed {
				all = append(all, b)
			}
			next = append(next, b.BlockedBy...)
		}
		open = next
	}
	return all
}

type field struct {
	key   string
	value json.RawMessage
}

// fieldsOf returns the fields of a JSON object in the order of their names; nil for any other text.
func fieldsOf(text string) (all []field) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return nil
	}
	var of map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &of) != nil {
		return nil
	}
	for _, key := range sorted(of) {
		all = append(all, field{key, of[key]})
	}
	return slices.Clip(all)
}

// variableWord returns a name as a part of the name of a variable: in upper case, with _ for
// anything but letters and digits.
func variableWord(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}
