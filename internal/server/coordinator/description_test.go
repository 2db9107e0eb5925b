package coordinator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"cadre/internal/observe/present"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

type object = map[string]any

// sent is a message that the server sends by itself or as an answer.
type sent struct {
	kind, about string
	payload     reflect.Type
}

// sentByUs are the events of the protocol and the answers to requests without an id.
func sentByUs() []sent {
	return []sent{
		{teamCreated, "A team was created.", reflect.TypeFor[TeamPayload]()},
		{teammateSpawned, "A teammate was added.", reflect.TypeFor[MemberPayload]()},
		{teamMessage, "A message was sent.", reflect.TypeFor[MessagePayload]()},
		{messageDelivered, "Messages were delivered to a member.", reflect.TypeFor[Delivery]()},
		{messageRead, "A member has read its messages.", reflect.TypeFor[Reading]()},
		{teamTaskUpdate, "A task was added or changed.", reflect.TypeFor[TaskPayload]()},
		{teamTaskDeleted, "A task was removed.", reflect.TypeFor[TaskRef]()},
		{teamNoteUpdate, "A note was set, extended or restored.", reflect.TypeFor[NotePayload]()},
		{teamNoteDeleted, "A note was deleted.", reflect.TypeFor[NoteRef]()},
		{teamStatusUpdate, "The team or one of its members changed.", reflect.TypeFor[TeamPayload]()},
		{teammateIdle, "A teammate ended its turn and waits.", reflect.TypeFor[MemberRef]()},
		{teammateShutdown, "A teammate has ended.", reflect.TypeFor[MemberRef]()},
		{teamCleanedUp, "The team was removed. It is the last event of a team.", reflect.TypeFor[TeamRef]()},
		{"subscribed", "The answer to subscribe.", reflect.TypeFor[Subscribed]()},
		{"unsubscribed", "The answer to unsubscribe.", reflect.TypeFor[TeamRef]()},
		{"pong", "The answer to ping.", reflect.TypeFor[Empty]()},
		{daemonStatus, "The answer to daemon_status, and the last message of a server that stops.",
			reflect.TypeFor[DaemonStatus]()},
		{"health_check_response", "The answer to health_check.", reflect.TypeFor[Health]()},
	}
}

// describer makes the description from the types and the comments of their fields.
type describer struct {
	comments map[string]string // by Type and by Type.Field
	schemas  object
}

func newDescriber(t testing.TB) *describer {
	d := &describer{comments: map[string]string{}, schemas: object{}}
	for _, file := range []string{"requests.go", "shapes.go", "notes.go", "../../team/hint.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, s := range decl.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				doc := spec.Doc.Text()
				if doc == "" {
					doc = decl.Doc.Text()
				}
				d.comments[spec.Name.Name] = sentence(strings.TrimPrefix(strings.TrimPrefix(doc, spec.Name.Name+" "),
					"is "))
				if fields, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range fields.Fields.List {
						for _, name := range f.Names {
							d.comments[spec.Name.Name+"."+name.Name] = sentence(f.Doc.Text() + f.Comment.Text())
						}
					}
				}
			}
			return true
		})
	}
	return d
}

// sentence returns a comment as a sentence on one line.
func sentence(s string) string {
	s = strings.TrimSuffix(strings.Join(strings.Fields(s), " "), ".")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// of returns the schema of a type. Structs are among the schemas, and referred to.
func (d *describer) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": d.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		if d.schemas[t.Name()] == nil {
			d.schemas[t.Name()] = object{} // of a type that has itself
			d.schemas[t.Name()] = d.structOf(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	panic(t.String())
}

func (d *describer) structOf(t reflect.Type) object {
	properties, required := object{}, []string{}
	for f := range t.Fields() {
		name, optional := nameOf(f)
		is := d.of(f.Type)
		if list, ok := f.Tag.Lookup("enum"); ok {
			is["enum"] = strings.Fields(list)
		}
		if value, ok := f.Tag.Lookup("default"); ok {
			if json.Unmarshal([]byte(value), new(any)) != nil {
				value = strconv.Quote(value)
			}
			is["default"] = json.RawMessage(value)
		}
		if f.Type.Kind() == reflect.Pointer && !optional {
			is["type"] = []any{is["type"], "null"}
		}
		about := d.comments[t.Name()+"."+f.Name]
		if ref := is["$ref"]; ref != nil {
			is = object{"allOf": []any{is}}
		}
		is["description"] = about
		properties[name] = is
		if !optional {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "description": d.comments[t.Name()], "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// message returns a message with a type and a payload, and further properties.
func message(kind, about string, payload object, more object, required ...string) object {
	properties := object{"type": object{"const": kind}, "payload": payload}
	maps.Copy(properties, more)
	return object{"name": kind, "summary": about, "payload": object{"type": "object", "properties": properties,
		"required": append([]string{"type"}, required...)}}
}

var (
	idSchema   = object{"type": []string{"string", "number"}, "description": "What the client chose for the reply."}
	teamSchema = object{"type": "string", "description": "Id of the team."}
	seqSchema  = object{"type": "integer", "description": "The record after which the payload is true. In an event " +
		"of a subscription, the cursor."}
	partSchema = object{"type": "integer", "description": "Part of the record, where further events of it follow. It " +
		"belongs to the cursor."}
)

// describe returns the description of the protocol.
func describe(t testing.TB) object {
	d := newDescriber(t)
	messages, operations := object{}, object{}
	inChannel := func(name string) object { return object{"$ref": "#/channels/ws/messages/" + name} }
	channel := object{"$ref": "#/channels/ws"}
	for _, r := range requests() {
		payload := d.of(r.Payload)
		d.schemas[r.Payload.Name()].(object)["additionalProperties"] = false
		need := []string{}
		if d.schemas[r.Payload.Name()].(object)["required"] != nil {
			need = append(need, "payload")
		}
		m := message(r.Type, r.About, payload, object{"id": idSchema,
			"key": object{"type": "string", "maxLength": team.MaxID, "description": "Makes the request safe to send " +
				"again: a request with the same key changes nothing more."}}, need...)
		m["payload"].(object)["additionalProperties"] = false
		messages["request."+r.Type] = m
		messages["reply."+r.Type] = message("reply", "The answer to "+r.Type+" with an id.", d.of(r.Reply),
			object{"id": idSchema, "teamId": teamSchema, "seq": seqSchema}, "id", "payload")
		operations[r.Type] = object{"action": "receive", "channel": channel, "summary": r.About,
			"description": "Role of a token: " + r.Role.String() + ". A member may send it if it may call cadre " +
				r.Command + ".", "messages": []any{inChannel("request." + r.Type)},
			"reply": object{"channel": channel, "messages": []any{inChannel("reply." + r.Type),
				inChannel("event." + r.Answer), inChannel("error")}}}
	}
	event := object{"teamId": teamSchema, "seq": seqSchema, "part": partSchema}
	var events []any
	for _, e := range sentByUs() {
		messages["event."+e.kind] = message(e.kind, e.about, d.of(e.payload), event, "payload")
		events = append(events, inChannel("event."+e.kind))
	}
	for _, name := range slices.Sorted(maps.Keys(observedSchemas(t))) {
		is := observedSchemas(t)[name].(object)
		d.schemas[observedPrefix+name] = is
		properties, _ := is["properties"].(object)
		of, _ := properties["type"].(object)
		kind, _ := of["const"].(string)
		if strings.HasPrefix(kind, "team:") || strings.HasPrefix(kind, "session:") {
			about, _ := is["description"].(string)
			key := "event." + strings.ReplaceAll(kind, ":", ".")
			ref := object{"$ref": "#/components/schemas/" + observedPrefix + name}
			messages[key] = message(kind, "For observed teams: "+about, ref, event, "payload")
			events = append(events, inChannel(key))
		}
	}
	messages["error"] = message("error", "A request failed, a frame was no request, or a subscription ended.",
		d.of(reflect.TypeFor[Failure]()), object{"id": idSchema, "teamId": teamSchema}, "payload")
	operations["events"] = object{"action": "send", "channel": channel, "summary": "Send the events of the teams " +
		"that the client follows.", "messages": events}
	all := object{}
	for name := range messages {
		all[name] = object{"$ref": "#/components/messages/" + name}
	}
	return object{"asyncapi": "3.0.0", "defaultContentType": "application/json",
		"info": object{"title": "cadre", "version": "1", "description": "The WebSocket protocol of cadre serve. " +
			"Newer versions may add messages and fields; pass over what you do not know.",
			"license": object{"name": "Apache-2.0"}},
		"servers": object{
			"socket": object{"host": "cadre", "protocol": "ws", "description": "The unix socket server/socket below " +
				"the folder of cadre."}, "tcp": object{"host": "{address}", "protocol": "ws",
				"description": "The address of cadre serve --listen, with a token as Authorization: Bearer.",
				"variables":   object{"address": object{"default": "127.0.0.1:7433"}}}},
		"channels": object{"ws": object{"address": "/ws", "messages": all}}, "operations": operations,
		"components": object{"messages": messages, "schemas": d.schemas}}
}

// observedPrefix tells the schemas of observed teams from those of other teams.
const observedPrefix = "Observed"

// observedSchemas returns the schemas of package present that events of observed teams have.
func observedSchemas(t testing.TB) object {
	var all object
	text := strings.ReplaceAll(present.Schema, "#/$defs/", "#/components/schemas/"+observedPrefix)
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	defs := all["$defs"].(object)
	for _, unused := range []string{"Event", "Supplement", "SessionLine", "TeamStateChange", "TeamTaskUpdate",
		"TeamMessage",
		"SupplementMetadata"} {
		delete(defs, unused)
	}
	return defs
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDescription: the description that is served is the one of the tables and types, and says
// something of each message and field.
func TestDescription(t *testing.T) {
	data := encoded(t, describe(t))
	golden.File(t, "asyncapi.json", string(data))
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	refs(t, all, all)
	for name, schema := range all.(object)["components"].(object)["schemas"].(object) {
		properties, _ := schema.(object)["properties"].(object)
		for property, is := range properties {
			if is.(object)["description"] == "" {
				t.Errorf("%s.%s has no comment", name, property)
			}
		}
	}
}

// refs checks that each reference below v leads somewhere in the document.
func refs(t *testing.T, document, v any) {
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			at := document
			for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				at = at.(object)[part]
				if at == nil {
					t.Errorf("%s leads nowhere", ref)
					return
				}
			}
		}
		for _, one := range v {
			refs(t, document, one)
		}
	case []any:
		for _, one := range v {
			refs(t, document, one)
		}
	}
}

// TestEachAnswerIsDescribed: each request names a described answer.
func TestEachAnswerIsDescribed(t *testing.T) {
	for _, r := range requests() {
		if !slices.ContainsFunc(sentByUs(), func(s sent) bool { return s.kind == r.Answer }) {
			t.Errorf("%s is answered by %s, which is not described", r.Type, r.Answer)
		}
	}
}

// seenMessages are the messages that tests have validated.
var seenMessages sync.Map

// Unseen returns the described messages that no test has seen, except those of observed teams.
func Unseen() (all []string) {
	for name := range document()["components"].(object)["messages"].(object) {
		if _, seen := seenMessages.Load(name); !seen && !strings.HasPrefix(name, "event.team.") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// document is the description, with its objects closed.
var document = sync.OnceValue(func() (all object) {
	if err := json.Unmarshal(Description, &all); err != nil {
		panic(err)
	}
	closed(all)
	return all
})

var (
	resolving sync.Mutex
	resolved  = map[string]*jsonschema.Resolved{}
)

// closed makes the schemas of all objects below v reject further properties.
func closed(v any) {
	switch v := v.(type) {
	case object:
		if v["type"] == "object" && v["properties"] != nil && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, one := range v {
			closed(one)
		}
	case []any:
		for _, one := range v {
			closed(one)
		}
	}
}

// ValidFrame checks a frame of the server against the description. about is the type of the request
// that a reply answers.
func ValidFrame(data []byte, about string) error {
	var f struct{ Type string }
	var value any
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	json.Unmarshal(data, &value)
	name := "event." + strings.ReplaceAll(f.Type, ":", ".")
	switch f.Type {
	case "reply":
		name = "reply." + about
	case "error":
		name = "error"
	}
	return validMessage(name, value)
}

// validMessage checks a frame against the description of a message.
func validMessage(name string, value any) error {
	resolving.Lock()
	defer resolving.Unlock()
	if resolved[name] == nil {
		components := document()["components"].(object)
		is, ok := components["messages"].(object)[name].(object)
		if !ok {
			return fmt.Errorf("there is no message %s", name)
		}
		whole := maps.Clone(is["payload"].(object))
		whole["$defs"] = components["schemas"]
		data, err := json.Marshal(whole)
		if err != nil {
			return err
		}
		var one jsonschema.Schema
		data = bytes.ReplaceAll(data, []byte("#/components/schemas/"), []byte("#/$defs/"))
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		if resolved[name], err = one.Resolve(nil); err != nil {
			return err
		}
	}
	seenMessages.Store(name, true)
	return resolved[name].Validate(value)
}
