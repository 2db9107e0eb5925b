package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cadre/internal/hook"
	"cadre/internal/inspect/history"
	"cadre/internal/server/api"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
	"cadre/internal/testkit/typedoc"
)

const aboutAPI = "What the command line of cadre does, as resources of teams. docs/api.md explains how to connect, " +
	"the cursor, and what a request that is sent again does."

// schemas makes the schemas of Go types.
type schemas struct {
	t     testing.TB
	words *typedoc.Comments
	all   map[string]*schema // by their names
	types map[string]reflect.Type
}

// schema is a JSON Schema, as far as OpenAPI 3.1 has it. Its fields are in the order of the file.
type schema struct {
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  *schema            `json:"additionalProperties,omitempty"`
	Required    []string           `json:"required,omitempty"`
}

// of returns the schema of a type, or a reference to it.
func (s *schemas) of(t reflect.Type) *schema {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return &schema{}
	case reflect.TypeFor[team.Time]():
		return &schema{Type: "integer", Format: "int64"}
	case reflect.TypeFor[[]team.Event]():
		return &schema{Type: "array", Items: &schema{Type: "object",
			Description: "an event: its kind, and the fields of docs/events.md"}}
	case reflect.TypeFor[hook.Source]():
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return &schema{Type: "array", Items: s.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", Additional: s.of(t.Elem())}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer", Format: "int64"}
	case reflect.Struct:
		return &schema{Ref: "#/components/schemas/" + s.object(t)}
	}
	s.t.Fatalf("no schema for %s", t)
	return nil
}

// object adds the schema of a struct, and returns its name.
func (s *schemas) object(t reflect.Type) string {
	name := s.name(t)
	if s.all[name] != nil {
		return name
	}
	is := &schema{Type: "object", Description: s.words.Type(t), Properties: map[string]*schema{}}
	s.all[name], s.types[name] = is, t
	fields := t
	if t == reflect.TypeFor[history.MailboxMessage]() { // a message with more
		s.add(is, reflect.TypeFor[team.Message]())
	}
	s.add(is, fields)
	for key, text := range s.words.Derived(t) {
		one := &schema{Type: "string", Description: text}
		switch key {
		case "blocked":
			one = &schema{Type: "array", Items: &schema{Type: "string"}, Description: text}
		case "events":
			one = s.of(reflect.TypeFor[[]team.Event]())
			one.Description = text
		case "v", "dirty":
			one = &schema{Type: "integer", Format: "int64", Description: text}
		}
		is.Properties[key] = one
	}
	slices.Sort(is.Required)
	return name
}

// add adds the fields of a struct.
func (s *schemas) add(is *schema, t reflect.Type) {
	for _, f := range s.words.Fields(t) {
		if f.Type == reflect.TypeFor[team.Message]() && f.Anonymous {
			continue
		}
		one := s.of(f.Type)
		if f.Type == reflect.TypeFor[time.Duration]() {
			one = &schema{Type: "integer", Format: "int64"}
		}
		one.Description = f.Text
		if f.Text == "" && one.Ref == "" && (one.Items == nil || one.Items.Ref == "") {
			s.t.Errorf("the field %s of %s has no comment that its description could show", f.Name, t)
		}
		is.Properties[f.Key] = one
		if !f.Coded && f.Tag.Get("json") != "" && !strings.Contains(f.Tag.Get("json"), ",omit") &&
			(one.Type != nil || f.Type.Kind() == reflect.Struct) {
			is.Required = append(is.Required, f.Key)
		}
	}
}

// name returns the name of a type's schema. Types of different packages with one name are told
// apart.
func (s *schemas) name(t reflect.Type) string {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if known, is := s.types[name]; is && known != t {
		pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
		return strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	return name
}

// ordered writes an object with its keys in that order.
type ordered []entry

type entry struct {
	key   string
	value any
}

func (o ordered) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, e := range o {
		if i > 0 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(e.key)
		value, err := json.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// placeholders says what the parts of a path are.
var placeholders = map[string]string{"team": "name or id of the team", "member": "name of the member",
	"task": "id or name of the task",
	"file": "path of the file",
	"key":  "key of the note", "template": "name of the template",
	"request": "id of the request or plan", "hook": "id of the hook, or an event that has just one hook"}

// description returns the OpenAPI description of the routes.
func description(t testing.TB) string {
	s := &schemas{t, typedoc.New(t, "../../.."), map[string]*schema{}, map[string]reflect.Type{}}
	object := func(one any) ordered { return ordered{{"application/json", ordered{{"schema", one}}}} }
	for _, core := range []reflect.Type{reflect.TypeFor[team.Team](), reflect.TypeFor[team.Member](),
		reflect.TypeFor[team.Task](),
		reflect.TypeFor[team.Message]()} { // these have the plain names
		s.of(core)
	}
	problem := ordered{{"description", "why the request failed"}, {"content", ordered{{"application/problem+json",
		ordered{{"schema", s.of(reflect.TypeFor[api.Problem]())}}}}}}
	ifNoneMatch := ordered{{"name", "If-None-Match"}, {"in", "header"},
		{"description", "ETags that the client has: if one fits, the answer is 304"},
		{"schema", &schema{Type: "string"}}}
	ifMatch := ordered{{"name", "If-Match"}, {"in", "header"},
		{"description", "ETag of what the client has: if it was changed since, the answer is 409"},
		{"schema", &schema{Type: "string"}}}
	notModified := entry{"304", ordered{{"description", "the client has it"}}}
	key := ordered{{"name", "Idempotency-Key"}, {"in", "header"},
		{"description", "id of the change: a request that is sent again with it changes nothing"},
		{"schema", &schema{Type: "string"}}}
	paths := ordered{}
	at := map[string]int{}
	add := func(method, path string, operation ordered) {
		i, known := at[path]
		if !known {
			i, at[path] = len(paths), len(paths)
			paths = append(paths, entry{path, ordered{}})
		}
		paths[i].value = append(paths[i].value.(ordered), entry{strings.ToLower(method), operation})
	}
	for _, r := range api.Routes() {
		parameters := parametersOf(t, r.Path, r.Query)
		if r.Tagged {
			parameters = append(parameters, ifNoneMatch)
		}
		if r.Matched {
			parameters = append(parameters, ifMatch)
		}
		if r.Stream && slices.ContainsFunc(r.Query, func(p api.Param) bool { return p.Name == "after" }) {
			parameters = append(parameters, ordered{{"name", "Last-Event-ID"}, {"in", "header"},
				{"description", "like after, which it replaces"}, {"schema", &schema{Type: "string"}}})
		}
		if r.Method != "GET" {
			parameters = append(parameters, ordered{{"$ref", "#/components/parameters/Idempotency-Key"}})
		}
		flags := []string{}
		if r.Flags != nil {
			flags = append(flags, " with other rights for some bodies")
		}
		operation := ordered{{"operationId", r.ID}, {"summary", r.About}, {"x-cadre-command",
			strings.TrimSpace("cadre "+r.Command) + strings.Join(flags, "")}, {"x-cadre-role", r.Role.String()}}
		if parameters != nil {
			operation = append(operation, entry{"parameters", parameters})
		}
		if r.Body != nil {
			operation = append(operation,
				entry{"requestBody", ordered{{"required", true}, {"content", object(s.of(r.Body))}}})
		}
		answers := ordered{answerOf(s, r, object)}
		if r.Tagged {
			answers = append(answers, notModified)
		}
		operation = append(operation, entry{"responses",
			append(answers, entry{"default", ordered{{"$ref", "#/components/responses/Problem"}}})})
		add(r.Method, r.Path, operation)
	}
	for _, b := range api.Besides() {
		operation := ordered{{"operationId", b.ID}, {"summary", b.About}}
		if strings.HasPrefix(b.Path, "/board/") {
			operation = append(operation, entry{"x-internal", true})
		}
		if b.Open {
			operation = append(operation, entry{"security", []any{}})
		} else {
			operation = append(operation, entry{"x-cadre-role", b.Role.String()})
		}
		parameters := parametersOf(t, b.Path, b.Query)
		if b.Tagged {
			parameters = append(parameters, ifNoneMatch)
		}
		if parameters != nil {
			operation = append(operation, entry{"parameters", parameters})
		}
		if b.Body != "" {
			operation = append(operation, entry{"requestBody", ordered{{"required", true},
				{"content", ordered{{b.Body, ordered{{"schema", &schema{}}}}}}}})
		}
		answer := ordered{{"description", "the answer"}}
		if b.Kind == "" {
			answer = ordered{{"description", http.StatusText(b.Status)}}
		} else {
			content := ordered{{"schema", &schema{}}}
			if b.Kind == "text/event-stream" {
				content = append(content, entry{"x-data", &schema{Type: "string"}})
			}
			answer = append(answer, entry{"content", ordered{{b.Kind, content}}})
		}
		answers := ordered{{fmt.Sprint(b.Status), answer}}
		if b.Tagged {
			answers = append(answers, notModified)
		}
		operation = append(operation, entry{"responses",
			append(answers, entry{"default", ordered{{"$ref", "#/components/responses/Problem"}}})})
		add(b.Method, b.Path, operation)
	}
	text, err := json.MarshalIndent(ordered{{"openapi", "3.1.0"},
		{"info", ordered{{"title", "cadre"}, {"version", "1"}, {"description", aboutAPI}}},
		{"servers", []any{ordered{{"url", "/"}}}},
		{"security", []any{ordered{{"token", []string{}}}, ordered{{"cookie", []string{}}}}},
		{"paths", paths},
		{"components", ordered{{"schemas", s.all}, {"responses", ordered{{"Problem", problem}}},
			{"parameters", ordered{{"Idempotency-Key", key}}}, {"securitySchemes", ordered{
				{"token", ordered{{"type", "http"}, {"scheme", "bearer"},
					{"description", "over TCP; the unix socket needs none"}}},
				{"cookie", ordered{{"type", "apiKey"}, {"in", "cookie"}, {"name", "cadre_session"},
					{"description", "of a browser that logged in with a one-time code"}}}}}}}}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// parametersOf describes the parameters of a path and its query.
func parametersOf(t testing.TB, path string, query []api.Param) (all []any) {
	for _, m := range placeholder.FindAllStringSubmatch(path, -1) {
		if placeholders[m[1]] == "" {
			t.Errorf("%s: nothing says what {%s} is", path, m[1])
		}
		all = append(all, ordered{{"name", m[1]}, {"in", "path"}, {"required", true},
			{"description", placeholders[m[1]]}, {"schema", schema{Type: "string"}}})
	}
	for _, p := range query {
		is := &schema{Type: p.Type}
		if least := p.Least(); p.Type == "integer" {
			is.Minimum = &least
		} else if p.Type == "array" {
			is.Items = &schema{Type: "string"}
		}
		all = append(all, ordered{{"name", p.Name}, {"in", "query"}, {"description", p.About}, {"schema", is}})
	}
	return all
}

// answerOf returns the entry for the answer of a route that succeeded.
func answerOf(s *schemas, r api.Route, object func(any) ordered) entry {
	switch {
	case r.Stream:
		about := fmt.Sprintf("server-sent events; the data of an event %q is the value", r.Event)
		return entry{"200", ordered{{"description", about}, {"content", ordered{{"text/event-stream",
			ordered{{"schema", &schema{Type: "string"}}, {"x-event", r.Event}, {"x-data", s.of(r.Answer)}}}}}}}
	case r.Answer == nil:
		return entry{"204", ordered{{"description", "it was done"}}}
	}
	return entry{"200", ordered{{"description", "the answer"}, {"content", object(s.of(r.Answer))}}}
}

// TestOpenAPI checks that the file describes the routes and the types of the API.
func TestOpenAPI(t *testing.T) { golden.File(t, "openapi.json", description(t)) }

// described is the description that the server has, for all tests.
var described struct {
	once sync.Once
	err  error
	ids  map[string]bool // of the routes

	mu      sync.Mutex
	schemas map[string]map[string]json.RawMessage // by the ids of routes; problem for problems
	checks  map[string]*jsonschema.Resolved       // those that were used
}

// read reads the description. Its schemas allow no fields but the described ones.
func read() error {
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]struct {
				Content map[string]struct {
					Schema map[string]json.RawMessage `json:"schema"`
					Data   map[string]json.RawMessage `json:"x-data"`
				} `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas   map[string]map[string]json.RawMessage `json:"schemas"`
			Responses struct {
				Problem struct {
					Content map[string]struct {
						Schema map[string]json.RawMessage `json:"schema"`
					} `json:"content"`
				}
			} `json:"responses"`
		} `json:"components"`
	}
	local := strings.ReplaceAll(string(api.OpenAPI), "#/components/schemas/", "#/$defs/")
	if err := json.Unmarshal([]byte(local), &d); err != nil {
		return err
	}
	for _, one := range d.Components.Schemas {
		if _, free := one["additionalProperties"]; !free {
			one["additionalProperties"] = json.RawMessage("false")
		}
	}
	defs, err := json.Marshal(d.Components.Schemas)
	if err != nil {
		return err
	}
	described.ids, described.checks = map[string]bool{}, map[string]*jsonschema.Resolved{}
	described.schemas = map[string]map[string]json.RawMessage{
		"problem": d.Components.Responses.Problem.Content["application/problem+json"].Schema}
	for _, methods := range d.Paths {
		for _, o := range methods {
			described.ids[o.OperationID] = true
			for kind, content := range o.Responses["200"].Content {
				described.schemas[o.OperationID] = content.Schema
				if kind == "text/event-stream" {
					described.schemas[o.OperationID] = content.Data
				}
			}
		}
	}
	for _, one := range described.schemas {
		one["$defs"] = defs
	}
	return nil
}

// schemaOf returns the schema of the answers of a route; nil for none.
func schemaOf(t testing.TB, id string) *jsonschema.Resolved {
	t.Helper()
	described.mu.Lock()
	defer described.mu.Unlock()
	if known := described.checks[id]; known != nil || described.schemas[id] == nil {
		return known
	}
	whole, err := json.Marshal(described.schemas[id])
	is := &jsonschema.Schema{}
	if err == nil {
		err = json.Unmarshal(whole, is)
	}
	if err == nil {
		described.checks[id], err = is.Resolve(nil)
	}
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
	return described.checks[id]
}

// checker checks that answers are as the description says.
type checker struct {
	mu   sync.Mutex
	used map[string]bool // the ids of routes that answered
}

func newChecker(t testing.TB) *checker {
	t.Helper()
	described.once.Do(func() { described.err = read() })
	if described.err != nil {
		t.Fatal(described.err)
	}
	return &checker{used: map[string]bool{}}
}

// check reports an answer that is not as the description says. id is that of a route, or problem.
func (c *checker) check(t testing.TB, id string, data []byte) {
	t.Helper()
	is := schemaOf(t, id)
	if is == nil {
		t.Errorf("%s answers with a value, and no schema describes it: %.300s", id, data)
		return
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Errorf("the answer of %s is not JSON: %v: %.300s", id, err, data)
		return
	}
	if err := is.Validate(v); err != nil {
		t.Errorf("%s answers otherwise than described: %v\n%.1000s", id, err, data)
	}
	c.uses(id)
}

func (c *checker) uses(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[id] = true
}

// TestRoutesDescribed checks that the description has each route, and no other.
func TestRoutesDescribed(t *testing.T) {
	newChecker(t)
	ids := maps.Clone(described.ids)
	for _, r := range api.Routes() {
		if !ids[r.ID] {
			t.Errorf("%s %s is not described", r.Method, r.Path)
		}
		delete(ids, r.ID)
		if r.Method == http.MethodGet && r.Answer == nil {
			t.Errorf("%s %s answers with nothing", r.Method, r.Path)
		}
	}
	for _, b := range api.Besides() {
		if !ids[b.ID] {
			t.Errorf("%s %s is not described", b.Method, b.Path)
		}
		delete(ids, b.ID)
	}
	for id := range ids {
		t.Errorf("there is no route %s", id)
	}
}
