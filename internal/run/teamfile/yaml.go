package teamfile

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// document parses the bytes into the one mapping of a team file. It returns nil for anything else,
// and records why.
func (s *source) document() *yaml.Node {
	if len(s.data) > MaxFile {
		s.lines = []string{} // there is no line to show
		s.failAt(1, 1, "the file has %d bytes; a team file has at most %d", len(s.data), MaxFile)
		return nil
	}
	if line, column, bad := notText(s.data); bad != "" {
		s.failAt(line, column, "%s; a team file is YAML text in UTF-8", bad)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(s.data), yaml.WithUniqueKeys(false))
	if err != nil {
		s.syntax(err)
		return nil
	}
	var doc, next yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || doc.Content[0].Tag == "!!null"):
		s.failAt(1, 1, "the file is empty; a team file has at least name, members and tasks")
		return nil
	case err != nil:
		s.syntax(err)
		return nil
	}
	// Whatever follows, valid or not, is a second document.
	if err := loader.Load(&next); err == nil {
		s.fail(&next, "a second document starts here; a team file is one document, so remove the --- or make two files")
	} else if !errors.Is(err, io.EOF) {
		s.syntax(err)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		s.fail(root, "a team file is a mapping, with keys such as name:, members: and tasks:, but this is %s",
			kind(root))
		return nil
	}
	return root
}

// notText finds the first byte that YAML text cannot contain. The YAML reader would refuse it too,
// but without its place.
func notText(data []byte) (line, column int, bad string) {
	line, column = 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return line, column, "the byte 0x" + strconv.FormatUint(uint64(data[i]), 16) + " is not UTF-8"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85:
			return line, column, "the control character " + strconv.QuoteRuneToASCII(r) + " cannot stand in a file"
		case r == '\n':
			line, column = line+1, 0
		}
		i, column = i+size, column+1
	}
	return 0, 0, ""
}

// syntax records an error of the YAML library, at the place where a person would fix it.
func (s *source) syntax(err error) {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		s.failAt(1, 1, "not YAML: %v", err)
		return
	}
	at, message := load.Mark, load.Message
	if load.ContextMsg != "" {
		message += " " + load.ContextMsg
	}
	// The scanner notices an error late: an open quote at the end of the file, a missing colon a
	// line later. It knows where the broken part began.
	if load.ContextMark.Line > 0 && (load.Stage == yaml.ScannerStage || at.Line >= len(s.split())) {
		at = load.ContextMark
	}
	s.failAt(at.Line, at.Column, "not YAML: %s", message)
	last := s.errs[len(s.errs)-1]
	switch {
	case strings.HasPrefix(strings.TrimLeft(last.Source, " "), "\t"):
		last.Message += "; indent with spaces, YAML allows no tabs there"
	case strings.HasPrefix(message, "mapping values are not allowed"):
		last.Message += `; put a text that holds ": " in quotes, or check the indentation`
	case strings.HasPrefix(message, "did not find expected"):
		last.Message += "; check the indentation and the brackets above"
	case strings.HasPrefix(message, "found character that cannot start"):
		last.Message += "; put a text that starts with this character in quotes"
	}
}

// kind names the kind of a node, for messages.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return "a single value"
}

// mapping is a mapping of the file with known keys. Its methods read the values by type. A value of
// the wrong type is recorded as an error and treated as absent.
type mapping struct {
	*source
	node   *yaml.Node
	values map[string]*yaml.Node
}

// mapping reads a node as a mapping with the given keys. If the node is something else, it returns
// nil and records why.
func (s *source) mapping(n *yaml.Node, what string, keys ...string) *mapping {
	if n.Kind != yaml.MappingNode {
		s.fail(n, "%s is a mapping of %s, but this is %s", what, list(keys), kind(n))
		return nil
	}
	m := &mapping{source: s, node: n, values: make(map[string]*yaml.Node, len(n.Content)/2)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Value == "<<":
			s.fail(key, "merge keys (<<) are not supported; write the keys out, or put them in defaults")
			continue
		case key.Kind != yaml.ScalarNode:
			s.fail(key, "a key is a word, but this is %s", kind(key))
			continue
		case !slices.Contains(keys, key.Value):
			s.fail(key, "unknown key %q of %s%s", key.Value, what, s.didYouMean(key.Value, keys))
			continue
		}
		if first, twice := m.values[key.Value]; twice {
			s.fail(key, "the key %q is here a second time (first on line %d); keep one of them", key.Value, first.Line)
			continue
		}
		m.values[key.Value] = value
	}
	return m
}

// at returns the node to point at for a key: its value, or the mapping without it.
func (m *mapping) at(key string) *yaml.Node {
	if v := m.values[key]; v != nil {
		return v
	}
	return m.node
}

// scalar reads a value as the text of one node, which may be an alias. A key without a value counts
// as absent.
func (s *source) scalar(n *yaml.Node, what string) (string, bool) {
	at := n
	if n.Kind == yaml.AliasNode {
		if n = n.Alias; n.Kind != yaml.ScalarNode {
			s.fail(at, "the alias *%s stands for %s; an alias may only stand for a text or a number, so write it out",
				at.Value, kind(n))
			return "", false
		}
	}
	if n.Kind != yaml.ScalarNode {
		s.fail(at, "%s is a single value, but this is %s", what, kind(n))
		return "", false
	}
	switch n.ShortTag() {
	case "!!null":
		return "", false
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
	default:
		s.fail(at, "the tag %s is not supported; write a plain text", n.Tag)
		return "", false
	}
	switch {
	case len(n.Value) > MaxText:
		s.fail(at, "%s has %d bytes; a text has at most %d", what, len(n.Value), MaxText)
		return "", false
	case strings.ContainsRune(n.Value, 0):
		s.fail(at, "%s holds a NUL character, which no command and no message can carry; remove it", what)
		return "", false
	}
	return n.Value, true
}

// text reads a key's value as a text; "" if it is absent.
func (m *mapping) text(key string) string {
	v := m.values[key]
	if v == nil {
		return ""
	}
	text, _ := m.scalar(v, key)
	return text
}

// line reads a key's value as a text of one line.
func (m *mapping) line(key string) string {
	text := m.text(key)
	if strings.ContainsAny(text, "\n\r") {
		m.fail(m.at(key), "%s is one line; put the rest elsewhere", key)
		text = strings.Join(strings.Fields(text), " ")
	}
	return text
}

// oneOf reads a key's value as one of the known words.
func (m *mapping) oneOf(key, fallback string, known []string) string {
	text := m.text(key)
	if text == "" {
		return fallback
	}
	if !slices.Contains(known, text) {
		m.fail(m.at(key), "%s %q is unknown%s", key, text, m.didYouMean(text, known))
		return fallback
	}
	return text
}

// yes reads a key's value as true or false; false if it is absent.
func (m *mapping) yes(key string) bool {
	switch text := m.text(key); text {
	case "true":
		return true
	case "", "false":
		return false
	default:
		m.fail(m.at(key), "%s is true or false, not %q", key, shorten(text))
		return false
	}
}

// integer reads a key's value as a whole number from least to most.
func (m *mapping) integer(key string, fallback, least, most int64) int64 {
	text := m.text(key)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil || n < least || n > most {
		m.fail(m.at(key), "%s is a whole number from %d to %d, not %q", key, least, most, text)
		return fallback
	}
	return n
}

// duration reads a key's value as a positive duration with a unit.
func (m *mapping) duration(key string, fallback time.Duration) time.Duration {
	text := m.text(key)
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if _, plain := strconv.ParseFloat(text, 64); err != nil && plain == nil {
		m.fail(m.at(key), "%s needs a unit: %ss for seconds, %sm for minutes", key, text, text)
		return fallback
	}
	if err != nil || d <= 0 {
		m.fail(m.at(key), "%s is a duration above zero such as 90s, 10m or 1h30m, not %q", key, text)
		return fallback
	}
	return d
}

// list reads a key's value as a list; nil if it is absent.
func (m *mapping) list(key, of string) []*yaml.Node {
	v := m.values[key]
	if v == nil || v.Tag == "!!null" {
		return nil
	}
	if v.Kind != yaml.SequenceNode {
		m.fail(v, "%s is a list of %s, but this is %s", key, of, kind(v))
		return nil
	}
	return v.Content
}

// meant returns the node that an alias stands for, and any other node itself.
func meant(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// isEmpty reports that a key for a list has no value. A value of the wrong type counts as a value.
func (m *mapping) isEmpty(key string) bool {
	v := m.values[key]
	return v == nil || v.Tag == "!!null" || v.Kind == yaml.SequenceNode && len(v.Content) == 0
}

// isBlank reports that a key for a text has no value. A value of the wrong type counts as a value.
func (m *mapping) isBlank(key string) bool {
	v := m.values[key]
	if v != nil {
		v = meant(v)
	}
	return v == nil || v.Tag == "!!null" || v.Kind == yaml.ScalarNode && strings.TrimSpace(v.Value) == ""
}

// texts reads a key's value as a list of texts, and returns the node of each.
func (m *mapping) texts(key, of string) (texts []string, nodes []*yaml.Node) {
	for _, n := range m.list(key, of) {
		if text, ok := m.scalar(n, "an entry of "+key); ok {
			texts, nodes = append(texts, text), append(nodes, n)
		}
	}
	return texts, nodes
}
