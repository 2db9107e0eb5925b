package teamfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/team"
)

// place says what may stand at a place of the file.
type place int

const (
	fixed   place = iota // only what is written there
	command              // only what is written there: a shell would run what a value contains
	inside               // nothing by itself; its own keys say what may stand below them
	open                 // values of parameters
)

// A key in none of these lists takes no value: a new key is closed until it is here. What names a
// file, a template, an executable, a member or a task, and what allows more, stays closed.
var (
	openKeys = []string{"goal", "prompt", "description", "subject", "title", "agent", "model", "forEach", "glob", "matrix",
		"metadata", "env", "set", "dir", "paths", "count", "rounds", "retries", "timeout", "tokens", "usd", "time",
		"handover", "maxTeammates", "maxParallel", "delegate", "planApproval", "clean", "withCheckChanges", "consolidate",
		"beat", "offline", "leadLost", "zombie", "blocked", "undelivered", "stale", "checkpoint"}
	insideKeys = []string{"defaults", "lead", "members", "tasks", "until", "verify", "budget", "liveness", "report"}
	// commandKeys have commands in them.
	commandKeys = []string{"run", "check", "checks", "hooks", "commands"}
	// freeKeys have mappings whose keys a person chooses, so they do not say what their values are.
	freeKeys = []string{"env", "metadata", "matrix", "set"}
)

// placeOf returns what may stand below a key.
func placeOf(key string) place {
	switch {
	case slices.Contains(openKeys, key):
		return open
	case slices.Contains(insideKeys, key):
		return inside
	case slices.Contains(commandKeys, key):
		return command
	}
	return fixed
}

// references calls visit with every text that refers to a parameter, and the key that it belongs
// to. An alias in a place where no value may stand counts as the text that it stands for. An
// alias of a list or a mapping is refused where it is read.
func references(root *yaml.Node, visit func(n *yaml.Node, where place, key string)) {
	seen := map[*yaml.Node]bool{}
	var walk func(n *yaml.Node, where place, key string, free bool)
	walk = func(n *yaml.Node, where place, key string, free bool) {
		if seen[n] {
			return
		}
		seen[n] = true
		if where == inside && n.Kind != yaml.SequenceNode && n.Kind != yaml.MappingNode {
			where = fixed
		}
		switch n.Kind {
		case yaml.AliasNode:
			if where != open && (refers(n.Alias) || readsIn(n.Alias, where)) {
				visit(n, where, key)
			}
		case yaml.ScalarNode:
			if mentions(n) || readsIn(n, where) {
				visit(n, where, key)
			}
		case yaml.SequenceNode:
			for _, one := range n.Content {
				walk(one, where, key, free || key == "forEach")
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				name, below, word := n.Content[i], where, key
				if mentions(name) || name.Kind == yaml.AliasNode && refers(name.Alias) {
					visit(name, fixed, "a key")
				}
				if (where == open || where == inside) && !free {
					below, word = placeOf(name.Value), name.Value
				}
				walk(n.Content[i+1], below, word, free || slices.Contains(freeKeys, name.Value))
			}
		}
	}
	walk(root, inside, "", false)
}

// readsIn reports whether the text is a command that reads the variable of a parameter.
func readsIn(n *yaml.Node, where place) bool {
	return where == command && n.Kind == yaml.ScalarNode && strings.Contains(n.Value, team.ParameterVariable(""))
}

// A reference is ${{ NAME }}. An escaped one is only a text.
const opening, closing, escaped = "${{", "}}", "$" + opening

func mentions(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, opening)
}

func refers(n *yaml.Node) bool {
	return mentions(n) && strings.Contains(strings.ReplaceAll(n.Value, escaped, ""), opening)
}

// refuseReference records a reference where no value may stand.
func (p *parser) refuseReference(n *yaml.Node, where place, key string) {
	of := meant(n)
	ofTeam := (key == "checks" || key == "hooks") && strings.Contains(of.Value, team.ParameterVariable(""))
	if where == open || !refers(of) && !ofTeam {
		return
	}
	line, column := n.Line, n.Column
	if refers(n) {
		line, column = p.placeIn(n, opening)
	}
	if p.refused == nil {
		p.refused = map[*yaml.Node]bool{}
	}
	defer func() { p.refused[n] = true }()
	switch {
	case key == "checks", key == "hooks":
		p.failAt(line, column, "%s get no parameters; only the commands of tasks do", key)
		return
	case where == fixed:
		p.failAt(line, column, "%s takes no parameter; write out what it is", key)
		return
	}
	name := "NAME"
	if n.Kind == yaml.ScalarNode {
		_, rest, _ := strings.Cut(n.Value, opening)
		if word, _, closed := strings.Cut(rest, closing); closed && nameForm().MatchString(strings.TrimSpace(word)) {
			name = strings.TrimSpace(word)
		}
	}
	p.failAt(line, column, `a value never becomes part of a command; write "$%s" in the command of a task, or $${{ for `+
		"these characters themselves", team.ParameterVariable(name))
}

// placeIn returns where the words are in the text of the node.
func (p *parser) placeIn(n *yaml.Node, words string) (line, column int) {
	lines := p.split()
	for i := n.Line; i <= len(lines); i++ {
		from := 0
		if i == n.Line {
			from = min(max(n.Column-1, 0), len([]rune(lines[i-1])))
		}
		text := string([]rune(lines[i-1])[from:])
		if before, _, is := strings.Cut(text, words); is {
			return i, from + len([]rune(before)) + 1
		}
	}
	return n.Line, n.Column
}
