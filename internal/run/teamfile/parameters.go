package teamfile

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/team"
)

// Limits of the values of parameters. Every command of the team gets all of them in its
// environment.
const (
	MaxParameters = 100
	MaxValue      = 32 << 10 // bytes of one value
	MaxValues     = 64 << 10 // bytes of all values, with the names
)

// The types of parameters.
const (
	TypeString = "string"
	TypeInt    = "int"
	TypeBool   = "bool"
	TypeList   = "list"
	TypePath   = "path"
	TypeEnum   = "enum"
)

// Types are the types of parameters.
var Types = []string{TypeString, TypeInt, TypeBool, TypeList, TypePath, TypeEnum}

// Parameter is a value of a team file that a person gives when the file runs.
type Parameter struct {
	Name     string   `json:"name"`               // name of the parameter
	Type     string   `json:"type"`               // string, int, bool, list, path or enum
	Help     string   `json:"help,omitempty"`     // what it is for
	Values   []string `json:"values,omitempty"`   // the values that an enum can have
	Required bool     `json:"required,omitempty"` // it has no default
	Default  string   `json:"default,omitempty"`  // its default, as --set takes it
}

// Usage returns how a person sets the parameter, behind --set.
func (a Parameter) Usage() string {
	kinds := map[string]string{TypeString: "TEXT", TypeInt: "NUMBER", TypeBool: "true|false", TypeList: "ENTRY",
		TypePath: "PATH", TypeEnum: strings.Join(a.Values, "|")}
	return a.Name + "=" + kinds[a.Type]
}

// Setting is a value for a parameter. The values of a list can come in several settings.
type Setting struct {
	Name string `json:"name"` // name of the parameter
	Text string `json:"text"` // its value, of a list one entry or a JSON list
}

// ParseSettings reads settings as a person writes them: NAME=VALUE.
func ParseSettings(words []string) (all []Setting, err error) {
	for _, word := range words {
		name, text, is := strings.Cut(word, "=")
		if !is || name == "" {
			return nil, fmt.Errorf("--set %s: there is no value; write NAME=VALUE", shorten(word))
		}
		all = append(all, Setting{name, text})
	}
	return all, nil
}

// parameter is a parameter with its value.
type parameter struct {
	Parameter
	at      *yaml.Node
	usual   []string // the default; only a list has not exactly one text
	value   []string
	from    string // where the value comes from, for messages
	broken  bool   // its declaration has an error
	example bool   // its value is only an example
}

// prose returns the value as a part of a text.
func (a parameter) prose() string { return strings.Join(a.value, ", ") }

// parameters reads the parameters of the file, gives each its value, and puts the values where the
// file refers to them.
func (p *parser) parameters(root *yaml.Node, set []Setting) {
	n := valueOf(root, "parameters")
	if n != nil && n.Tag != "!!null" {
		p.declared(n)
	}
	p.give(set)
	if len(p.params) == 0 {
		return
	}
	references(root, p.refuseReference)
	before := len(p.errs)
	references(root, func(n *yaml.Node, where place, key string) {
		switch {
		case n.Kind != yaml.ScalarNode || before != len(p.errs) || p.grown > MaxFile:
		case where == open:
			p.substitute(n, key)
		default:
			n.Value = strings.ReplaceAll(n.Value, escaped, opening)
		}
	})
}

// valueOf returns the value of a key of a mapping.
func valueOf(m *yaml.Node, key string) *yaml.Node {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// declared reads the declarations of the parameters, in the order of the file.
func (p *parser) declared(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "parameters is a mapping of names to mappings, such as {rounds: {type: int, default: 3}}, but this "+
			"is %s", kind(n))
		return
	}
	variables := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, ok := p.scalar(key, "the name of a parameter")
		if !ok {
			continue
		}
		variable := team.ParameterVariable(name)
		other, twice := variables[variable]
		variables[variable] = name
		switch {
		case !nameForm().MatchString(name):
			p.fail(key, "%q cannot be the name of a parameter; use %s", shorten(name), inWords(nameForm()))
		case twice && other == name:
			p.fail(key, "the parameter %q is here a second time; keep one of them", name)
		case twice:
			p.fail(key, "the parameters %q and %q are both %s for commands; give one of them another name", other, name,
				variable)
		case len(p.params) == MaxParameters:
			p.fail(key, "the file has more than %d parameters, which is the most that it can have", MaxParameters)
			return
		default:
			p.params = append(p.params, p.declaration(name, key, value))
		}
	}
}

// declaration reads one parameter.
func (p *parser) declaration(name string, at, n *yaml.Node) (a parameter) {
	before := len(p.errs)
	defer func() { a.broken = len(p.errs) > before }()
	a = parameter{Parameter: Parameter{Name: name, Type: TypeString, Required: true}, at: at}
	if n.Tag == "!!null" {
		return a
	}
	m := p.mapping(n, "a parameter", "type", "default", "help", "values")
	if m == nil {
		return a
	}
	a.Type, a.Help = m.oneOf("type", TypeString, Types), m.line("help")
	a.Values, _ = m.texts("values", "texts")
	switch {
	case a.Type == TypeEnum && m.isEmpty("values"):
		p.fail(m.at("values"), "the parameter %s has no values to choose from; add values: [one, other]", name)
	case a.Type != TypeEnum && m.values["values"] != nil:
		p.fail(m.at("values"), "only an enum has values; write type: enum, or leave values out")
	}
	usual := m.values["default"]
	if usual == nil || usual.Tag == "!!null" {
		return a
	}
	a.Required = false
	var texts []string
	switch text, isText := "", usual.Kind != yaml.SequenceNode; {
	case a.Type == TypeList:
		texts, _ = m.texts("default", "texts")
	case !isText:
		p.fail(usual, "the default of %s is %s, but this is %s", name, a.words(), kind(usual))
		return a
	default:
		if text, isText = p.scalar(usual, "default"); !isText {
			return a
		}
		texts = []string{text}
	}
	var wrong string
	if a.usual, wrong = a.clean(texts); wrong != "" {
		p.fail(usual, "the default of %s %s", name, wrong)
	}
	a.Default = a.written(a.usual)
	return a
}

// written returns a value in one text, as a person would set it.
func (a parameter) written(value []string) string {
	if a.Type != TypeList {
		return strings.Join(value, "")
	}
	data, _ := json.Marshal(append([]string{}, value...)) // texts can always be JSON
	return string(data)
}

// words names the type for messages.
func (a parameter) words() string {
	switch a.Type {
	case TypeInt:
		return "a whole number"
	case TypeBool:
		return "true or false"
	case TypeList:
		return "a list of texts"
	case TypePath:
		return "a path below the team's directory"
	case TypeEnum:
		return "one of " + list(a.Values)
	}
	return "a text"
}

// clean returns the texts in the form in which the team gets them. wrong says why they do not fit
// the type, to follow the name of the parameter.
func (a parameter) clean(texts []string) (clean []string, wrong string) {
	size := 0
	for _, text := range texts {
		size += len(text)
		if _, _, bad := notText([]byte(text)); bad != "" {
			return nil, "is not a text: " + bad
		}
	}
	switch {
	case size > MaxValue:
		return nil, fmt.Sprintf("has %d bytes; a value has at most %d", size, MaxValue)
	case a.Type == TypeList && len(texts) > team.MaxItems:
		return nil, fmt.Sprintf("has %d entries; a list has at most %d", len(texts), team.MaxItems)
	}
	for _, text := range texts {
		one, ok := a.cleanText(text)
		if !ok {
			return nil, fmt.Sprintf("is %s, not %q", a.words(), shorten(text))
		}
		clean = append(clean, one)
	}
	return clean, ""
}

func (a parameter) cleanText(text string) (clean string, ok bool) {
	oneLine := text != "" && !strings.ContainsAny(text, "\r\n")
	switch a.Type {
	case TypeInt:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		return strconv.FormatInt(n, 10), err == nil
	case TypeBool:
		return text, text == "true" || text == "false"
	case TypeEnum:
		return text, slices.Contains(a.Values, text)
	case TypeList:
		return text, oneLine
	case TypePath:
		if !oneLine || !filepath.IsLocal(text) {
			return "", false
		}
		if clean = path.Clean(filepath.ToSlash(text)); strings.HasPrefix(clean, "-") {
			clean = "./" + clean // else a program would read it as an option
		}
		return clean, true
	}
	return text, true
}

// give sets the value of each parameter: from the settings, else its default.
func (p *parser) give(set []Setting) {
	given := map[string][]string{}
	var names []string
	for _, a := range p.params {
		names = append(names, a.Name)
	}
	for _, s := range set {
		i := slices.Index(names, s.Name)
		switch {
		case len(names) == 0:
			p.unplaced(s.Name, "this team file has no parameters")
			continue
		case i < 0:
			p.unplaced(s.Name, "there is no such parameter%s", p.didYouMean(s.Name, names))
			continue
		}
		texts, err := p.params[i].settingOf(s.Text)
		before, again := given[s.Name]
		switch {
		case err != nil:
			p.unplaced(s.Name, "%v", err)
		case again && p.params[i].Type != TypeList:
			p.unplaced(s.Name, "the value is given twice; only a list takes several")
		}
		given[s.Name] = append(before, texts...)
	}
	size := 0
	for i := range p.params {
		a := &p.params[i]
		texts, is := given[a.Name]
		a.value, a.from = a.usual, fmt.Sprintf("the default of the parameter %s", a.Name)
		wrong := ""
		switch {
		case is:
			a.from = "--set " + a.Name
			a.value, wrong = a.clean(texts)
		case slices.Contains(p.unknown, a.Name):
			a.example = true
		case a.Required && !a.broken && !p.sample:
			p.fail(a.at, "the parameter %s has no default, so a run must set it: %s%s", a.Name, a.Usage(),
				after(a.Help))
			p.errs[len(p.errs)-1].Setting = a.Name
		}
		if wrong != "" {
			p.unplaced(a.Name, "the value %s%s", wrong, after(a.Help))
		}
		if a.example = a.example || wrong != "" || !is && (a.Required || a.broken); a.example {
			a.value = a.sample() // so that the rest of the file can be checked
		}
		variable := team.ParameterVariable(a.Name) + "=" + strings.Join(a.value, "\n")
		if size += len(variable); size > MaxValues {
			p.fail(a.at, "with this the values of all parameters have more than %d bytes; shorten them", MaxValues)
			return
		}
		p.variables = append(p.variables, variable)
	}
}

// after returns the help of a parameter as the end of a message.
func after(help string) string {
	if help == "" {
		return ""
	}
	return " (" + help + ")"
}

// settingOf returns the texts of one setting. A list takes one entry, or a JSON list.
func (a parameter) settingOf(text string) ([]string, error) {
	switch {
	case a.Type != TypeList:
		return []string{text}, nil
	case text == "":
		return nil, nil
	case !strings.HasPrefix(text, "["):
		return []string{text}, nil
	}
	var texts []string
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return nil, fmt.Errorf("%q is not a JSON list of texts; write [\"one\", \"other\"], or set it once for each "+
			"entry", shorten(text))
	}
	return texts, nil
}

// sample returns a value of the type, to check a file without values.
func (a parameter) sample() []string {
	switch a.Type {
	case TypeInt:
		return []string{"1"}
	case TypeBool:
		return []string{"false"}
	case TypeEnum:
		return a.Values[:min(len(a.Values), 1)]
	}
	return []string{a.Name}
}

// settings returns the values that differ from the defaults, in the order of the file.
func (p *parser) settings() (all []Setting) {
	for _, a := range p.params {
		if a.Required || !slices.Equal(a.value, a.usual) {
			all = append(all, Setting{a.Name, a.written(a.value)})
		}
	}
	return all
}

// substitute replaces the references in a text by the values of their parameters. A text that is
// nothing but a reference to a list becomes that list.
func (p *parser) substitute(n *yaml.Node, key string) {
	var text strings.Builder
	whole, rest := n.Value, n.Value
	for {
		before, after, is := strings.Cut(rest, opening)
		if !is {
			break
		}
		if plain, is := strings.CutSuffix(before, "$"); is {
			text.WriteString(plain + opening)
			rest = after
			continue
		}
		word, behind, closed := strings.Cut(after, closing)
		line, column := p.placeIn(n, opening+word)
		if !closed {
			p.failAt(line, column, "this reference to a parameter has no end; write ${{ NAME }}, or $${{ for these "+
				"characters themselves")
			return
		}
		i := slices.IndexFunc(p.params, func(a parameter) bool { return a.Name == strings.TrimSpace(word) })
		if i < 0 {
			var names []string
			for _, a := range p.params {
				names = append(names, a.Name)
			}
			p.failAt(line, column, "there is no parameter %q%s", shorten(strings.TrimSpace(word)),
				p.didYouMean(strings.TrimSpace(word), names))
			return
		}
		a := p.params[i]
		if p.filled == nil {
			p.filled, p.examples = map[*yaml.Node]string{}, map[*yaml.Node]bool{}
		}
		p.filled[n], p.examples[n] = a.from, p.examples[n] || a.example
		if before == "" && behind == "" && rest == whole {
			p.replace(n, a)
			return
		}
		value := a.prose()
		if key == "subject" || key == "title" {
			value = strings.Join(strings.Fields(value), " ")
		}
		if p.grown += len(value); p.grown > MaxFile {
			p.failAt(line, column, "with the values of its parameters the file has more than %d bytes; shorten them",
				MaxFile)
			return
		}
		text.WriteString(before + value)
		rest = behind
	}
	n.Value = text.String() + rest
	n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
}

// replace makes the node the value of the parameter.
func (p *parser) replace(n *yaml.Node, a parameter) {
	for _, one := range a.value {
		p.grown += len(one)
	}
	n.Value, n.Tag, n.Style = a.prose(), "!!str", yaml.DoubleQuotedStyle
	switch a.Type {
	case TypeInt:
		n.Tag, n.Style = "!!int", 0
	case TypeBool:
		n.Tag, n.Style = "!!bool", 0
	case TypeList:
		n.Kind, n.Tag, n.Style, n.Value = yaml.SequenceNode, "!!seq", yaml.FlowStyle, ""
		for _, one := range a.value {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle,
				Value: one, Line: n.Line, Column: n.Column})
		}
	}
}

// unplaced records an error in a value for a parameter, which is not in the file.
func (s *source) unplaced(parameter, format string, args ...any) {
	s.errs = append(s.errs, &Error{File: s.name, Setting: parameter, Message: fmt.Sprintf(format, args...)})
}
