package teamfile

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/replica/schema"
	"cadre/internal/team"
)

// Command is a command of the team that tasks can name as their check.
type Command struct{ Name, Run string }

// demandKeys are the keys of a task that say what its completion demands.
var demandKeys = []string{"result", "check", "until"}

// commands reads the named commands of the team, in the order of the file.
func (p *parser) commands(root *mapping) (all []Command) {
	n := root.values["commands"]
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "commands is a mapping of names to commands, but this is %s", kind(n))
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, ok := p.scalar(key, "a name in commands")
		if !ok {
			continue
		}
		if line, twice := lines[name]; twice {
			p.fail(key, "a command %q is already on line %d; give this one another name", shorten(name), line)
		}
		lines[name] = key.Line
		if !nameForm().MatchString(name) {
			p.fail(key, "%q cannot be the name of a command; use %s", shorten(name), inWords(nameForm()))
		}
		text, ok := p.scalar(value, "a command")
		if ok && strings.TrimSpace(text) == "" {
			p.fail(value, "the command %s is empty; write what /bin/sh is to run", shorten(name))
		}
		all = append(all, Command{name, text})
	}
	if len(all) > team.MaxCommands {
		p.fail(n, "the file has %d commands; a team has at most %d", len(all), team.MaxCommands)
	}
	return all
}

// demands reads what the completion of a task demands.
func (p *parser) demands(m *mapping, t *Task) {
	t.Result = p.resultSchema(m)
	t.Check = m.text("check")
	if m.values["check"] != nil && !m.isEmpty("check") && strings.TrimSpace(t.Check) == "" {
		p.fail(m.at("check"), "the check is empty; write a command, or leave it out")
	}
	n := m.values["until"]
	if n == nil || n.Tag == "!!null" {
		p.checkName(t)
		return
	}
	if t.Check != "" {
		p.fail(m.at("until"), "task %q has check and until; keep check for one try, or until for several",
			shorten(t.ID))
	}
	u := p.mapping(n, "until", "run", "rounds")
	if u == nil {
		return
	}
	t.Check = u.text("run")
	if strings.TrimSpace(t.Check) == "" {
		p.fail(u.at("run"), "until has no run; add run: with the command that must pass")
	}
	t.Rounds = int(u.integer("rounds", team.DefaultRounds, 1, team.MaxCheckRounds))
	p.checkName(t)
}

// checkName replaces the name of a command of the team by that command.
func (p *parser) checkName(t *Task) {
	for _, c := range p.named {
		if c.Name == strings.TrimSpace(t.Check) {
			t.Check, t.CheckName = c.Run, c.Name
			return
		}
	}
}

// resultSchema reads the JSON Schema of a task's result.
func (p *parser) resultSchema(m *mapping) json.RawMessage {
	n := m.values["result"]
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "result is a JSON Schema, such as {type: object, required: [verdict]}, but this is %s", kind(n))
		return nil
	}
	data, ok := p.json(n)
	if !ok {
		return nil
	}
	if len(data) > team.MaxSchema {
		p.fail(n, "the schema has %d bytes, of at most %d", len(data), team.MaxSchema)
		return nil
	}
	_, err := schema.Parse(data)
	if wrong, is := errors.AsType[*schema.Error](err); is {
		p.fail(within(n, wrong.At), "this is not a JSON Schema: %s", wrong.Text)
	} else if err != nil {
		p.fail(n, "%v", err)
	}
	return data
}

// within returns the node at that JSON Pointer, as far as it leads.
func within(n *yaml.Node, pointer string) *yaml.Node {
	for i, step := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		var next *yaml.Node
		switch n.Kind {
		case yaml.MappingNode:
			for k := 0; k+1 < len(n.Content); k += 2 {
				if n.Content[k].Value == step {
					next = n.Content[k+1]
				}
			}
		case yaml.SequenceNode:
			if k, err := strconv.Atoi(step); err == nil && k >= 0 && k < len(n.Content) {
				next = n.Content[k]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
