package teamfile

import (
	"bytes"
	"errors"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/team"
)

// ParseTasks reads tasks for an existing team: a YAML list, a mapping with tasks:, or one JSON
// object per line. A task has the keys that it has in a team file, but needs no id, and its
// blockers may be tasks of the team. The result has each task after its blockers. The error is
// [Errors].
func ParseTasks(data []byte, filename string) ([]Task, error) {
	p := &parser{source: &source{name: filename, data: data}, added: true}
	nodes := p.taskNodes()
	if len(p.errs) == 0 && len(nodes) == 0 {
		p.failAt(1, 1, "there is no task here; write a list such as - {id: lint, run: make lint}")
	}
	if len(nodes) > MaxTasks {
		p.fail(nodes[MaxTasks], "there are %d tasks here; a team has at most %d", len(nodes), MaxTasks)
		nodes = nodes[:MaxTasks]
	}
	p.eachTask(nodes, Task{Priority: "medium"})
	p.checkAdded()
	if len(p.errs) > 0 {
		return nil, p.problems()
	}
	f := &File{}
	for _, t := range p.tasks {
		f.Tasks = append(f.Tasks, t.Task)
	}
	return f.Order(), nil
}

// taskNodes finds the tasks in the text.
func (p *parser) taskNodes() []*yaml.Node {
	if len(p.data) > MaxFile {
		p.lines = []string{}
		p.failAt(1, 1, "this has %d bytes; at most %d are read", len(p.data), MaxFile)
		return nil
	}
	if line, column, bad := notText(p.data); bad != "" {
		p.failAt(line, column, "%s; tasks are YAML or JSON text in UTF-8", bad)
		return nil
	}
	if nodes, is := p.jsonLines(); is {
		return nodes
	}
	doc := p.load(p.data, 0, p.syntax)
	if doc == nil {
		return nil
	}
	switch doc.Kind {
	case yaml.SequenceNode:
		return doc.Content
	case yaml.MappingNode:
		if m := p.mapping(doc, "a file of tasks", "tasks"); m != nil {
			return m.list("tasks", "tasks")
		}
		return nil
	}
	p.fail(doc, "tasks are a list, but this is %s", kind(doc))
	return nil
}

// jsonLines reads a text with one object per line. is is false if the text has another form, for
// example if one of the objects is a file of tasks by itself. The first line is a whole object, and
// the others begin with one, so a later line that is cut off is an error of that line.
func (p *parser) jsonLines() (nodes []*yaml.Node, is bool) {
	for _, line := range p.split() {
		if line = strings.TrimSpace(line); line != "" && (line[0] != '{' || !is && line[len(line)-1] != '}') {
			return nil, false
		} else if line != "" {
			is = true
		}
	}
	for i, line := range p.split() {
		if strings.TrimSpace(line) == "" {
			continue
		}
		n := p.load([]byte(line), i, func(err error) { p.jsonSyntax(err, i, line) })
		if n == nil {
			continue
		}
		if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "tasks" {
			return nil, false
		}
		nodes = append(nodes, n)
	}
	return nodes, true
}

// jsonSyntax records an error of the YAML library in an object that has a line of its own, at its
// line and column in the whole text.
func (p *parser) jsonSyntax(err error, above int, line string) {
	column, message := 1, err.Error()
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		message = load.Message
		if load.ContextMsg != "" {
			message += " " + load.ContextMsg
		}
		if column = load.Mark.Column; load.Mark.Line > 1 || column < 1 { // it noticed at the end
			column = len([]rune(line)) + 1
		}
	}
	p.failAt(above+1, column, "not a JSON object: %s; each line has one whole object", message)
}

// load parses one document, which begins after that many lines. failed is called with an error of
// the YAML library.
func (p *parser) load(data []byte, above int, failed func(error)) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false))
	var doc, next yaml.Node
	if err == nil {
		err = loader.Load(&doc)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		failed(err)
		return nil
	case len(doc.Content) == 0:
		return nil
	}
	if err := loader.Load(&next); !errors.Is(err, io.EOF) {
		p.failAt(above+1, 1, "there is a second document here; write one list")
	}
	lower(doc.Content[0], above)
	return doc.Content[0]
}

func lower(n *yaml.Node, lines int) {
	n.Line += lines
	for _, part := range n.Content {
		lower(part, lines)
	}
}

// checkAdded checks that ids are unique and that no task waits for itself. The team checks other
// blockers and owners.
func (p *parser) checkAdded() {
	lines := map[string]int{}
	for _, t := range p.tasks {
		if t.ID == "" {
			continue
		}
		if line, twice := lines[t.ID]; twice {
			p.fail(t.at("id"), "a task %q is already on line %d; give this one another id", shorten(t.ID), line)
		}
		lines[t.ID] = t.at("id").Line
	}
	for _, t := range p.tasks {
		for i, id := range t.BlockedBy {
			if id == t.ID {
				p.fail(t.blockers[i], "task %q is blocked by itself; remove this entry", shorten(id))
			}
		}
	}
	p.checkCycles()
}

// paths reads the patterns of the files that a task changes.
func (p *parser) paths(m *mapping) (clean []string) {
	texts, nodes := m.texts("paths", "patterns of files")
	for i, text := range texts {
		one, err := team.CleanPath(text)
		if err != nil {
			p.fail(nodes[i], "%v", err)
		} else if !slices.Contains(clean, one) {
			clean = append(clean, one)
		}
	}
	if len(clean) > team.MaxPaths {
		p.fail(m.at("paths"), "a task has at most %d paths, and this one has %d; write fewer and wider patterns",
			team.MaxPaths, len(clean))
	}
	return clean
}

// taskDir reads the directory of a task's command.
func (p *parser) taskDir(m *mapping) string {
	dir := m.line("dir")
	if dir == "" {
		return ""
	}
	if !filepath.IsLocal(dir) {
		p.fail(m.at("dir"), "dir is a directory below the one that the member works in, such as services/api, not %q",
			shorten(dir))
		return ""
	}
	if dir = path.Clean(dir); dir == "." {
		return ""
	}
	return dir
}
