package tools

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"cadre/internal/team"
)

// schema is the JSON Schema of an input: a closed object, with the fields in the order in which a
// model should consider them.
type schema struct {
	Type       string     `json:"type"`
	Properties properties `json:"properties"` // an empty object too: some clients want it there
	Required   []string   `json:"required,omitempty"`
	Additional bool       `json:"additionalProperties"`
}

// property is a field of an input.
type property struct {
	name        string
	Type        string    `json:"type"`
	Description string    `json:"description,omitempty"`
	Enum        []string  `json:"enum,omitempty"`
	Items       *property `json:"items,omitempty"`
}

// properties are the fields of an object by name.
type properties []property

// MarshalJSON keeps the order of the fields.
func (all properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, p := range all {
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	if len(all) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// These describe the kinds of fields to a model.

func (*text) looks() property     { return property{Type: "string"} }
func (*id) looks() property       { return property{Type: "string"} }
func (*ids) looks() property      { return property{Type: "array", Items: &property{Type: "string"}} }
func (*values) looks() property   { return property{Type: "array", Items: &property{Type: "string"}} }
func (*paths) looks() property    { return property{Type: "array", Items: &property{Type: "string"}} }
func (*flag) looks() property     { return property{Type: "boolean"} }
func (*seconds) looks() property  { return property{Type: "integer"} }
func (*number) looks() property   { return property{Type: "integer"} }
func (*object) looks() property   { return property{Type: "object"} }
func (*priority) looks() property { return property{Type: "string", Enum: team.Priorities} }
func (*status) looks() property   { return property{Type: "string", Enum: statuses} }
func (*listed) looks() property   { return property{Type: "string", Enum: statuses[:3]} }
func (*intent) looks() property   { return property{Type: "string", Enum: intents} }
func (*kind) looks() property     { return property{Type: "string", Enum: textKinds()} }
func (*verdict) looks() property  { return property{Type: "string", Enum: team.Verdicts} }

// schemaOf returns the schema of an input struct.
func schemaOf(input reflect.Type) schema {
	s := schema{Type: "object"}
	for _, f := range slots(input) {
		p := reflect.New(input.Field(f.index).Type).Interface().(field).looks()
		p.name, p.Description = f.name, f.about
		s.Properties = append(s.Properties, p)
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

// schema returns the schema of a tool for the member.
func (b *Set) schema(t *tool) json.RawMessage {
	s := schemaOf(t.input)
	switch agents := b.agents(); {
	case t.name == teamStatus && b.o.Wait == nil:
		s.Properties = slices.DeleteFunc(s.Properties, func(p property) bool { return p.name == "wait_seconds" })
	case t.name == spawnTeammate && len(agents) > 0:
		i := slices.IndexFunc(s.Properties, func(p property) bool { return p.name == "agent" })
		s.Properties[i].Enum = agents
		s.Properties[i].Description += "; " + b.usual(agents) + " by default"
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts only
	}
	return encoded
}
