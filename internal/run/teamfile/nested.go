package teamfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/team"
)

// Nested says what the teams of a member are made from. One of File, Template and Goal is set for a
// member whose agent is a team.
type Nested struct {
	File     string // path of a team file, as it is written
	Path     string // absolute path of that file, once it was read; "" before
	Digest   string // SHA-256 of that file or template, once it was read; "" before
	Template string
	Goal     string
	Lead     string    // agent that leads to the goal; "" for the first installed one
	Set      []Setting // values for the parameters of the file or template, in file order
	Unknown  []string  // parameters of Set whose values are examples, in a file that is read without values
	Of       *File     // that file or template, once it was read; nil before

	entry *entry // where it is in the file
}

// entry is the part of a file that says what the teams of a member are made from.
type entry struct {
	of     *source
	places map[string]*yaml.Node // by key; of a value in set by set.NAME
}

// Beside reports whether both are of the same entry in the file, which has a count.
func (n Nested) Beside(other Nested) bool { return n.entry != nil && n.entry == other.entry }

// Mistake returns an error at the place of the key, of set.NAME for a value, or of the nearest key
// that the entry has.
func (n Nested) Mistake(key, format string, args ...any) *Error {
	if n.entry == nil {
		return &Error{Message: fmt.Sprintf(format, args...)}
	}
	for _, key := range []string{key, "set", "file", "template", "agent"} {
		if at := n.entry.places[key]; at != nil {
			own := &source{name: n.entry.of.name, data: n.entry.of.data, lines: n.entry.of.lines}
			own.failAt(at.Line, at.Column, format, args...)
			return own.errs[0]
		}
	}
	return &Error{File: n.entry.of.name, Message: fmt.Sprintf(format, args...)}
}

// nestedKeys are the keys that say what the teams of a member are made from.
var nestedKeys = []string{"file", "template", "goal"}

// nested reads what the teams of a member are made from, and refuses those keys for other members.
func (p *parser) nested(m *mapping, of Member) Nested {
	n := Nested{File: m.line("file"), Template: m.line("template"), Goal: m.text("goal"), Lead: m.line("lead")}
	n.entry = &entry{p.source, m.values}
	if !p.kind(of.Agent).Nests {
		for _, key := range append(nestedKeys, "lead", "set") {
			if m.values[key] != nil {
				p.fail(m.at(key), "only a team has %s:; set agent: %s for %s, or leave %s out", key, team.NestedTeam,
					shorten(of.Name), key)
			}
		}
		return Nested{}
	}
	if p.maxDepth == 0 {
		p.fail(m.at("agent"), "%q is a team, and the file allows no teams in its team (%s); add maxDepth: 1 to the file, or "+
			"take another agent", shorten(of.Name), team.NestedTeamsNotAllowed)
	}
	var has []string
	for _, key := range nestedKeys {
		if m.values[key] != nil {
			has = append(has, key)
		}
		if m.values[key] != nil && m.isBlank(key) {
			p.fail(m.at(key), "%s: is empty; write what the team of %q is made from", key, shorten(of.Name))
		}
	}
	switch {
	case len(has) == 0:
		p.fail(m.node, "%q is a team; say what it is made from with file:, template: or goal:", shorten(of.Name))
	case len(has) > 1:
		p.fail(m.at(has[1]), "%q has %s; keep one of them", shorten(of.Name), strings.Join(has, ": and ")+":")
	}
	if p.template && m.values["file"] != nil {
		p.fail(m.at("file"), "a template takes no file:, whose commands nobody was shown when the template was trusted; "+
			"make that file a template and write template: with its name")
	}
	p.valuesOf(m, &n)
	if n.Lead != "" && n.Goal == "" {
		p.fail(m.at("lead"), "%q has lead: without goal:; a team file or a template says who leads", shorten(of.Name))
	}
	if lead := p.kind(n.Lead); n.Lead != "" && (lead.Name == "" || lead.CommandsOnly || lead.FollowsOnly ||
		n.Lead == team.External) {
		p.fail(m.at("lead"), "%q is not an agent that can lead; use one with a model, such as claude", shorten(n.Lead))
	}
	for _, key := range []string{"model", "prompt", "command", "args", "planApproval"} {
		if m.values[key] != nil && (key != "model" || n.Goal == "") {
			p.fail(m.at(key), "%q is a team, and %s: is for one session; leave it out, or set it for the members of that "+
				"team", shorten(of.Name), key)
		}
	}
	return n
}

// Inside says for which member the file is, where it is for a team in a team.
type Inside struct {
	Member   string // that is the team
	Worktree bool   // it has a worktree of its own, and does not work in the directory of its team
}

// checkInner refuses what a team in a team cannot have: names that its members cannot have, and
// checks and commits of its own in the directory of its parent.
func (p *parser) checkInner(m *mapping, f *File) {
	if p.inner == nil {
		return
	}
	not := func(at *yaml.Node, key string) {
		if !p.inner.Worktree {
			p.fail(at, "%v", team.OnlyInWorktree("it can have no "+key, p.inner.Member))
		}
	}
	if len(f.Checks) > 0 {
		not(m.at("checks"), "checks")
	}
	if f.Consolidate {
		not(m.at("consolidate"), "consolidate")
	}
	if err := team.CheckNotParent(f.Lead); err != nil {
		p.fail(m.at("lead"), "%v", err)
	}
	for _, n := range p.members {
		if len(n.members) > 0 && n.members[0].Isolation != "" {
			not(n.at("isolation"), "isolation")
		}
		if err := team.CheckNotParent(n.name); err != nil {
			p.fail(n.at("name"), "%v", err)
		}
	}
}

// valuesOf reads the values for the parameters of the file or template.
func (p *parser) valuesOf(m *mapping, n *Nested) {
	set := m.values["set"]
	switch {
	case set == nil || set.Tag == "!!null":
		return
	case n.Goal != "":
		p.fail(set, "a goal has no parameters; write the values into goal:, or leave set out")
		return
	case set.Kind != yaml.MappingNode:
		p.fail(set, "set is a mapping of the names of parameters to values, such as {rounds: 3}, but this is %s",
			kind(set))
		return
	case len(set.Content) > 2*MaxParameters:
		p.fail(set, "set has %d values; a file has at most %d parameters", len(set.Content)/2, MaxParameters)
		return
	}
	places := maps.Clone(m.values)
	n.entry.places = places
	for i := 0; i+1 < len(set.Content); i += 2 {
		key, value := set.Content[i], set.Content[i+1]
		name, ok := p.scalar(key, "the name of a parameter")
		switch {
		case !ok:
		case !nameForm().MatchString(name):
			p.fail(key, "%q cannot be the name of a parameter; use %s", shorten(name), inWords(nameForm()))
		case places["set."+name] != nil:
			p.fail(key, "the parameter %q is here a second time; keep one of them", name)
		default:
			places["set."+name] = value
			if own := p.settingsFor(name, value); p.isExample(value) {
				n.Unknown = append(n.Unknown, name)
			} else {
				n.Set = append(n.Set, own...)
			}
		}
	}
}

// settingsFor returns a value in a file as settings: of a list, one for each entry.
func (p *parser) settingsFor(name string, value *yaml.Node) (all []Setting) {
	if value.Kind != yaml.SequenceNode {
		text, ok := p.scalar(value, "the value of "+name)
		if !ok && meant(value).Tag == "!!null" {
			p.fail(value, "the parameter %s has no value here; write one, or leave it out", name)
		}
		return []Setting{{name, text}}
	}
	for _, one := range value.Content {
		text, _ := p.scalar(one, "an entry of "+name)
		if text == "" || strings.HasPrefix(text, "[") { // it is not a list itself
			data, _ := json.Marshal([]string{text}) // texts can always be JSON
			text = string(data)
		}
		all = append(all, Setting{name, text})
	}
	if all == nil {
		all = []Setting{{name, ""}} // a list without entries
	}
	return all
}

// isExample reports whether a value, or a part of it, is an example of one that is not known yet.
func (p *parser) isExample(n *yaml.Node) bool {
	return p.examples[meant(n)] || slices.ContainsFunc(n.Content, p.isExample)
}

// runsOn returns the labels of the machine that runs the member.
func (p *parser) runsOn(m *mapping, member Member) []string {
	labels, _ := m.texts("runsOn", "labels")
	if len(labels) == 0 {
		return nil
	}
	at := m.at("runsOn")
	switch err := team.CheckLabels(labels); {
	case err != nil:
		p.fail(at, "%v", err)
	case member.Agent == team.External || member.Agent == team.NestedTeam:
		p.fail(at, "a member with agent: %s runs where the team is run; leave runsOn out", member.Agent)
	case member.Isolation == "":
		p.fail(at, "other machines do not have the directory of the team; add isolation: worktree, or leave runsOn "+
			"out")
	case p.remote == "":
		p.fail(at, "the work of the member needs a way to this machine; add remote: with the name of a "+
			"remote of the repository, such as origin, to the file, or leave runsOn out")
	}
	return labels
}
