package teamfile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cadre/internal/run/teamfile"
)

// closedKeys take no value of a parameter. A key is here for a reason: it names something (a team,
// a member, a task, a file, an executable), it is one of a few words, or it allows more.
var closedKeys = []string{"name", "id", "role", "owner", "by", "blockedBy", "sections", "file", "template", "path",
	"facts", "command", "args", "isolation", "runsOn", "remote", "permissionMode", "permissions", "mode", "allow", "policy", "maxDepth",
	"priority", "when", "in", "rule", "result", "parameters", "type", "default", "help", "values", "matcher",
	"TeammateIdle", "TaskCreated", "TaskCompleted"}

// TestEveryKeyHasAPlace: each key of a team file is known to take values of parameters, or not to.
func TestEveryKeyHasAPlace(t *testing.T) {
	doc, definition := schema(t)
	keys := map[string]bool{}
	for name := range doc["$defs"].(object) {
		if properties, is := definition(name)["properties"].(object); is {
			for key := range properties {
				keys[key] = true
			}
		}
	}
	for key := range definition("")["properties"].(object) {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if place := teamfile.Place(key); (place == "nothing") != slices.Contains(closedKeys, key) {
			t.Errorf("below %s may stand %s; say of it here or in places.go whether it takes values", key, place)
		}
	}
}

// aliasFile has an anchor on a value, with one place left open for what uses it.
const aliasFile = `name: demo
parameters: {x: {}}
metadata: {a: &a '${{ x }}', list: &l ['${{ x }}'], map: &m {a: '${{ x }}'}}
members:
  - {name: w, agent: shell}
  - {name: ann, agent: external}
tasks:
  - {id: one, run: 'true', owner: w}
`

// TestAliasesOfValues: a value that stands in a place where it may is not carried elsewhere by an
// alias or a merge key.
func TestAliasesOfValues(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"agent: external", "agent: *a", "an agent with a command cannot come from a parameter"},
		{"members:", "defaults: {agent: *a}\nmembers:", "an agent with a command cannot come from a parameter"},
		{"members:", "lead: {agent: *a}\ngoal: g\nmembers:", "an agent with a command cannot come from a parameter"},
		{"run: 'true'", "run: *a", "a value never becomes part of a command"},
		{"run: 'true'", "run: 'true', check: *a", "a value never becomes part of a command"},
		{"run: 'true'", "run: 'true', until: {run: *a}", "a value never becomes part of a command"},
		{"run: 'true'", "run: 'true', forEach: {run: *a}", "a value never becomes part of a command"},
		{"members:", "commands: {c: *a}\nmembers:", "a value never becomes part of a command"},
		{"members:", "commands: {*a : 'true'}\nmembers:", "a key takes no parameter"},
		{"members:", "checks: [*a]\nmembers:", "checks get no parameters"},
		{"members:", "checks: [{run: *a}]\nmembers:", "checks get no parameters"},
		{"members:", "hooks: {TaskCreated: [{hooks: [{command: *a}]}]}\nmembers:", "hooks get no parameters"},
		{"agent: external", "agent: external, command: *a", "command takes no parameter"},
		{"agent: external", "agent: external, args: [*a]", "args takes no parameter"},
		{"agent: external", "agent: external, args: *l", "args is a list of arguments, but this is an alias"},
		{"agent: external", "agent: external, permissionMode: *a", "permissionMode takes no parameter"},
		{"agent: external", "agent: external, role: *a", "role takes no parameter"},
		{"agent: external", "agent: external, env: {*a : v}", "a key takes no parameter"},
		{"agent: external", "agent: external, env: *m", "env is a mapping of names to values, but this is an alias"},
		{"agent: external", "<<: *m", "merge keys (<<) are not supported"},
		{"run: 'true'", "run: 'true', <<: *m", "merge keys (<<) are not supported"},
		{"run: 'true'", "run: 'true', env: {<<: *m}", "the tag !!merge is not supported"},
		{"members:", "permissions: {allow: [*a]}\nmembers:", "permissions takes no parameter"},
		{"members:", "permissions: {allow: *l}\nmembers:", "allow is a list of rules, but this is an alias"},
		{"members:", "permissions: {mode: *a}\nmembers:", "permissions takes no parameter"},
		{"members:", "lead: *a\nmembers:", "lead takes no parameter"},
		{"members:", "facts: [*a]\nmembers:", "facts takes no parameter"},
		{"members:", "maxDepth: *a\nmembers:", "maxDepth takes no parameter"},
		{"members:", "report: {file: *a}\nmembers:", "file takes no parameter"},
		{"members:", "report: *m\nmembers:", "report is a mapping of file, title, sections, but this is an alias"},
		{"owner: w", "owner: *a", "owner takes no parameter"},
		{"owner: w", "owner: w, verify: {by: *a}", "by takes no parameter"},
		{"owner: w", "owner: w, verify: *a", "verify takes no parameter"},
		{"owner: w", "owner: w, priority: *a", "priority takes no parameter"},
	} {
		text := strings.Replace(aliasFile, c.from, c.to, 1)
		if text == aliasFile {
			t.Fatalf("%s is not in the file", c.from)
		}
		f, err := with(t, text, "x=acp:touch pwned")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, %v; want %s", c.to, f, err, c.want)
		}
	}
	f, err := with(t, strings.Replace(aliasFile, "agent: external", "agent: external, prompt: *a", 1), "x=be kind")
	if err != nil || f.Members[1].Prompt != "be kind" {
		t.Errorf("an alias where a value may stand: %+v, %v", f, err)
	}
}

// TestPlacesOfValues: a value stands where the manual says so, and nowhere else.
func TestPlacesOfValues(t *testing.T) {
	for from, to := range map[string]string{
		"agent: external": "agent: external, role: '${{ x }}'",
		"name: ann":       "name: '${{ x }}'",
		"owner: w":        "owner: '${{ x }}'",
		"owner: w}":       "owner: w, verify: {by: '${{ x }}'}}",
		"members:":        "report: {file: '${{ x }}'}\nmembers:",
		"tasks:":          "maxDepth: '${{ x }}'\ntasks:",
		"parameters:":     "lead: '${{ x }}'\nparameters:",
		"metadata:":       "facts: ['${{ x }}']\nmetadata:",
		"external}":       "external}\n  - {name: t, agent: team, template: '${{ x }}'}",
		"external}\n":     "external}\n  - {name: t, agent: team, file: '${{ x }}'}\n",
		"  - {name: ann,": "  - {name: t, agent: team, goal: g, lead: '${{ x }}'}\n  - {name: ann,",
	} {
		text := strings.Replace(aliasFile, from, to, 1)
		if _, err := with(t, text, "x=w"); err == nil || !strings.Contains(err.Error(), "takes no parameter") {
			t.Errorf("%s: got %v", to, err)
		}
	}
	f, err := with(t, strings.Replace(aliasFile, "run: 'true'",
		"run: 'true', dir: '${{ x }}', paths: ['${{ x }}'], env: {A: '${{ x }}'}", 1), "x=sub")
	if err != nil || f.Tasks[0].Dir != "sub" || f.Tasks[0].Paths[0] != "sub" || f.Tasks[0].Env[1] != "A=sub" {
		t.Errorf("%+v, %v", f, err)
	}
}
