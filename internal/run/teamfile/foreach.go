package teamfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"cadre/internal/sys/lazyregexp"
	"cadre/internal/team"
)

// forEach reads for which items a task makes tasks: the key forEach or the key matrix.
func (p *parser) forEach(m *mapping, id string) *team.ForEach {
	list, matrix := m.values["forEach"], m.values["matrix"]
	given := func(n *yaml.Node) bool { return n != nil && n.Tag != "!!null" }
	var f *team.ForEach
	at := list
	switch {
	case given(list) && given(matrix):
		p.fail(matrix, "task %q has forEach and matrix; keep one of them", shorten(id))
		return nil
	case given(list):
		f = p.itemsOf(list)
	case given(matrix):
		f, at = p.matrix(matrix), matrix
	default:
		return nil
	}
	if f == nil {
		return nil
	}
	clean, err := f.Clean()
	if err != nil {
		p.fail(at, "%v", err)
		return nil
	}
	return clean
}

// itemsOf reads a list, {glob: PATTERN} or {run: COMMAND}.
func (p *parser) itemsOf(n *yaml.Node) *team.ForEach {
	switch n.Kind {
	case yaml.SequenceNode:
		items, ok := p.items(n, "forEach")
		if !ok {
			return nil
		}
		return &team.ForEach{Items: items}
	case yaml.MappingNode:
	default:
		p.fail(n, "forEach is a list, {glob: PATTERN} or {run: COMMAND}, but this is %s", kind(n))
		return nil
	}
	m := p.mapping(n, "forEach", "glob", "run")
	glob, run := m.values["glob"], m.values["run"]
	switch {
	case glob != nil && run != nil:
		p.fail(run, "forEach has glob and run; keep one of them")
	case glob != nil:
		pattern := m.line("glob")
		clean, err := team.CleanPath(pattern)
		if err == nil {
			return &team.ForEach{Glob: clean}
		}
		p.fail(glob, "%v", err)
	case run == nil:
		p.fail(n, "forEach has neither glob nor run; write a list, {glob: PATTERN} or {run: COMMAND}")
	case m.isBlank("run"):
		p.fail(run, "the command of forEach is empty; write one, such as git ls-files")
	default:
		return &team.ForEach{Run: m.text("run")}
	}
	return nil
}

// items reads a list of any values.
func (p *parser) items(n *yaml.Node, key string) (items []json.RawMessage, ok bool) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "%s is a list, but this is %s", key, kind(n))
		return nil, false
	}
	if len(n.Content) > team.MaxItems {
		p.fail(n.Content[team.MaxItems], "%s has %d items; a task makes at most %d tasks", key, len(n.Content),
			team.MaxItems)
		return nil, false
	}
	ok = true
	for _, one := range n.Content {
		item, err := itemOf(one)
		if err != nil {
			p.fail(one, "an item %v", err)
			ok = false
		}
		items = append(items, item)
	}
	return items, ok
}

// itemOf returns a value as JSON.
func itemOf(n *yaml.Node) (json.RawMessage, error) {
	if aliased(n) {
		return nil, errors.New("has an alias; write it out")
	}
	value, err := appendValue(nil, n)
	if err != nil {
		return nil, err
	}
	return team.CleanItem(value)
}

// appendValue appends a value as JSON. A number stays as it is written, so that 1.20 is not 1.2,
// and so does the order of keys.
func appendValue(out []byte, n *yaml.Node) ([]byte, error) {
	var err error
	switch n.Kind {
	case yaml.SequenceNode:
		out = append(out, '[')
		for i, one := range n.Content {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendValue(out, one); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case yaml.MappingNode:
		out = append(out, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				out = append(out, ',')
			}
			if n.Content[i].Kind != yaml.ScalarNode {
				return nil, errors.New("has a key that is not a single value")
			}
			out = append(append(out, team.TextItem(n.Content[i].Value)...), ':')
			if out, err = appendValue(out, n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(out, n.Value...), nil
		}
	case "!!str", "!!timestamp":
		return append(out, team.TextItem(n.Value)...), nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, fmt.Errorf("cannot be kept: %w", err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, errors.New("cannot be kept as JSON; write a text in quotes")
	}
	return append(out, data...), nil
}

// matrix reads the dimensions of a matrix, in the order of the file, and the combinations to leave
// out.
func (p *parser) matrix(n *yaml.Node) *team.ForEach {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "matrix is a mapping of names to lists, such as {os: [linux, darwin]}, but this is %s", kind(n))
		return nil
	}
	f, ok := &team.ForEach{}, true
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, is := p.scalar(key, "a name in matrix")
		if !is {
			ok = false
			continue
		}
		if line, twice := lines[name]; twice {
			p.fail(key, "the key %q is here a second time (first on line %d); keep one of them", shorten(name), line)
			ok = false
			continue
		}
		lines[name] = key.Line
		values, is := p.items(value, name)
		ok = ok && is
		if name == "exclude" {
			f.Exclude = values
		} else {
			f.Matrix = append(f.Matrix, team.Axis{Name: name, Values: values})
		}
	}
	if len(f.Matrix) == 0 && ok {
		p.fail(n, "the matrix is empty; write names with lists, such as {os: [linux, darwin]}")
		return nil
	}
	if !ok {
		return nil
	}
	return f
}

var madeForm = lazyregexp.New(`^(.+)-[0-9]+$`)

// checkMade checks that no task has the name of one that another task makes, and that a command can
// tell the results that it finds by the names of their tasks.
func (p *parser) checkMade() {
	groups := map[string]bool{}
	variables := map[string][]int{} // tasks by the variable of their results
	clash := false
	for i, t := range p.tasks {
		groups[t.ID] = t.ForEach != nil
		name := team.ResultVariable(t.ID)
		clash = clash || len(variables[name]) > 0
		variables[name] = append(variables[name], i)
	}
	for _, t := range p.tasks {
		if found := (*regexp.Regexp)(madeForm()).FindStringSubmatch(t.ID); found != nil && groups[found[1]] {
			p.fail(t.at("id"), "%q is the name of a task that %q makes; give this one another id", shorten(t.ID),
				shorten(found[1]))
		}
	}
	if !clash {
		return
	}
	byID := map[string]int{}
	for i, t := range p.tasks {
		byID[t.ID] = i
	}
	told := map[string]bool{}
	for _, t := range p.tasks {
		if t.Run == "" {
			continue
		}
		found := map[string]string{}
		for _, id := range p.before(t, byID) {
			name := team.ResultVariable(id)
			other, twice := found[name]
			if found[name] = id; !twice || told[name] {
				continue
			}
			told[name] = true
			if byID[id] < byID[other] {
				id, other = other, id
			}
			p.fail(p.tasks[byID[id]].at("id"), "the results of %q and %q are both %s for the command of "+
				"%q, which waits for both; give one of them another id", shorten(other), shorten(id), name,
				shorten(t.ID))
		}
	}
}

// before returns the ids of the tasks for which t waits, directly or through others.
func (p *parser) before(t taskNode, byID map[string]int) (all []string) {
	seen := map[string]bool{t.ID: true}
	for open := slices.Clone(t.BlockedBy); len(open) > 0; {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		i, there := byID[id]
		if seen[id] || !there {
			continue
		}
		seen[id] = true
		all = append(all, id)
		open = append(open, p.tasks[i].BlockedBy...)
	}
	return all
}
