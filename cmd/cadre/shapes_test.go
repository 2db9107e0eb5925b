package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/engine/machines"
	"cadre/internal/inspect"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/inspect/history"
	"cadre/internal/run"
	"cadre/internal/run/templates"
	"cadre/internal/server"
	"cadre/internal/server/auth"
	"cadre/internal/team"
	"cadre/internal/testkit/typedoc"
)

// printedForm is what one form of a command prints with --json.
type printedForm struct {
	flags string // that select this form; "" for the usual one
	form  form
	types []reflect.Type
}

// form says how many values a command prints.
type form int

const (
	value form = iota // one
	array             // one, which is a list
	aLine             // a value a line, each of one of the types
)

// prints says which types each command prints. A command may print nothing but these: see
// [TestDocumentsJSON] and [TestJSONEverywhere].
func prints() map[string][]printedForm {
	task, inTeam, member := one[team.Task](""), one[team.Team](""), one[team.Member]("")
	running := printedForm{form: aLine, types: []reflect.Type{reflect.TypeFor[team.Record](),
		reflect.TypeFor[changedFile](), reflect.TypeFor[ended]()}}
	resumed := running
	resumed.types = append([]reflect.Type{reflect.TypeFor[inspect.Examination](), reflect.TypeFor[sealedTeam]()},
		running.types...)
	return map[string][]printedForm{
		"abort":      {inTeam},
		"attach":     {follows[sessionlog.Entry]("")},
		"attention":  {listOf[attention.Item]("")},
		"broadcast":  {one[sentMessage]("")},
		"budget":     {listOf[engine.Limit]("")},
		"checkpoint": {one[checkpointed]("")},
		"cleanup":    {one[removedTeam]("")},
		"consolidate": {one[sealedTeam](""), one[consolidate.Trial]("--no-commit"), one[consolidate.Plan]("--dry-run"),
			one[team.Team]("--rollback"),
			{"--push", aLine, []reflect.Type{reflect.TypeFor[sealedTeam](), reflect.TypeFor[pushed]()}}},
		"create":        {inTeam},
		"delegate":      {one[delegated]("")},
		"doctor":        {listOf[engine.Finding]("")},
		"facts":         {listOf[inspect.Fact]("")},
		"fsck":          {one[verdict]("")},
		"handover":      {one[concerned]("")},
		"hooks":         {one[hooksListed]("")},
		"hosts":         {listOf[machines.Machine](""), one[drained]("--drain")},
		"notify":        {listOf[channel]("")},
		"hooks disable": {one[switched]("")},
		"hooks enable":  {one[switched]("")},
		"hooks try":     {one[engine.HookTrial]("")},
		"store init":    {one[prepared]("")},
		"store migrate": {one[prepared]("")},
		"store move":    {one[movedTeam]("")},
		"inbox":         {listOf[history.MailboxMessage](""), follows[history.MailboxMessage]("--follow")},
		"init":          {one[written](""), listOf[templates.Offer]("--template")},
		"interrupt":     {one[concerned]("")},
		"leave":         {one[agreed]("")},
		"lift":          {one[lifted]("")},
		"log": {{"", array, []reflect.Type{reflect.TypeFor[team.Record](), reflect.TypeFor[failed]()}},
			follows[team.Record]("--follow")},
		"ls":                 {listOf[overview](""), listOf[catalog.Checkpoint]("--git")},
		"mode":               {one[moded]("")},
		"note append":        {one[team.Note]("")},
		"note get":           {one[team.Note]("")},
		"note list":          {listOf[team.Note]("")},
		"note log":           {listOf[history.NoteChange]("")},
		"note rm":            {one[team.Note]("")},
		"note set":           {one[team.Note]("")},
		"search":             {listOf[engine.Found]("")},
		"pause":              {one[engine.Paused]("")},
		"permission":         {listOf[permissionRule]("")},
		"permission add":     {one[permissionRule]("")},
		"permission rm":      {one[permissionRule]("")},
		"permit":             {one[requestAnswer]("")},
		"permit list":        {listOf[team.Permission]("")},
		"plan":               {one[history.Plan](""), one[requestAnswer]("--approve|--reject")},
		"plan list":          {listOf[planned](""), listOf[history.Plan]("--all")},
		"plan submit":        {one[submitted]("")},
		"probe":              {one[inspect.Examination]("")},
		"pull":               {one[pulled]("")},
		"push":               {one[pushed]("")},
		"reassign":           {task},
		"resend":             {one[resent]("")},
		"resume":             {resumed},
		"review":             {one[engine.Review]("")},
		"board":              {one[server.Login]("")},
		"export":             {one[exported]("")},
		"run":                {running, one[run.Preview]("--dry-run"), listOf[templates.Offer]("--template")},
		"send":               {one[sentMessage]("")},
		"serve":              {one[serverStatus]("--status"), one[server.Unit]("--install")},
		"serve token add":    {one[createdToken]("")},
		"serve token ls":     {listOf[auth.Token]("")},
		"serve token rm":     {one[removedToken]("")},
		"shutdown":           {member, one[team.Team]("--graceful"), one[concerned]("--withdraw")},
		"spawn":              {member},
		"status":             {one[standing](""), follows[standing]("--watch")},
		"task add":           {task, listOf[team.Task]("--file")},
		"task claim":         {task},
		"task done":          {task},
		"task fail":          {task},
		"task list":          {listOf[team.Task]("")},
		"task paths":         {listOf[team.Task]("")},
		"task paths claim":   {task},
		"task paths release": {task},
		"task release":       {task},
		"task rm":            {task},
		"task rollback":      {one[consolidate.Undone]("")},
		"task show":          {task, one[taskPatch]("--patch")},
		"task update":        {task},
		"templates":          {listOf[templates.Offer](""), one[templates.Shown]("TEMPLATE")},
		"trust":              {one[trusted](""), listOf[trustedProject]("--list")},
		"validate":           {listOf[validated]("")},
		"version":            {one[built]("")},
	}
}

func one[T any](flags string) printedForm {
	return printedForm{flags, value, []reflect.Type{reflect.TypeFor[T]()}}
}
func listOf[T any](flags string) printedForm {
	return printedForm{flags, array, []reflect.Type{reflect.TypeFor[T]()}}
}
func follows[T any](flags string) printedForm {
	return printedForm{flags, aLine, []reflect.Type{reflect.TypeFor[T]()}}
}

// object is a type that several commands print, or that needs an explanation.
type object struct {
	name   string
	of     reflect.Type
	about  string
	values string // type, or prefix of the names, of the constants to list; "" for none
	key    string // field that has one of them
}

// objects lists them in the order of the page. Those that others contain come first.
func objects() []object {
	return []object{
		{name: "usage", of: reflect.TypeFor[team.Usage](), about: "The tokens that sessions used, and what they cost."},
		{name: "team", of: reflect.TypeFor[team.Team](), about: "A team as it is recorded."},
		{name: "member", of: reflect.TypeFor[team.Member](), about: "The lead or a teammate."},
		{name: "task", of: reflect.TypeFor[team.Task](),
			about: "A task. It is blocked while a task in `blockedBy` is open. It has failed when it has no retries " +
				"left."},
		{name: "message", of: reflect.TypeFor[team.Message](), about: "A message of the mailbox.", values: "Type",
			key: "type"},
		{name: "note", of: reflect.TypeFor[team.Note](), about: "A text that all members of a team share."},
		{name: "permission", of: reflect.TypeFor[team.Permission](),
			about: "A request for permission that waits for an answer."},
		{name: "hint", of: reflect.TypeFor[team.Hint](),
			about: "An action that would help, and what it acts on. Each action uses `team` and some of the other " +
				"fields.",
			values: "Action", key: "action"},
		{name: "item", of: reflect.TypeFor[team.Item](),
			about: "Something that waits for a person, or for an agent that leads.", values: "ItemKind", key: "kind"},
		{name: "log record", of: reflect.TypeFor[team.Record](),
			about: "A record of the history: what one command changed."},
		{name: "entry", of: reflect.TypeFor[sessionlog.Entry](), about: "One thing that a session showed.",
			values: "Kind", key: "kind"},
		{name: "consolidation", of: reflect.TypeFor[consolidate.Record](),
			about: "The record of a consolidation, as in the file `COMPLETED`."},
		{name: "error", of: reflect.TypeFor[failed](),
			about: "Why a command failed: the last line on standard error. A command that no action stands for is a " +
				"hint without `action`."},
	}
}

// Values by which the kind of a field is told in the JSON of a filled value.
const (
	aTime     = int64(1_700_000_000_000)
	aDuration = 7_000_000 * time.Second
	aUsage    = int64(4711) // input tokens
	anyKey    = "ANYKEY"
	anyJSON   = "ANYJSON"
)

// markOf returns the text by which the JSON of an object is recognized in another one.
func markOf(name string) string { return "«" + name + "»" }

// fill sets every field of v that its JSON may show.
func fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[team.Time]():
		v.SetInt(aTime)
		return
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[team.Duration](), reflect.TypeFor[seconds]():
		v.SetInt(int64(aDuration))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`"` + anyJSON + `"`))
		return
	case reflect.TypeFor[[]team.Event]():
		v.Set(reflect.ValueOf([]team.Event{&team.TaskDeleted{Task: "1"}}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("json") != "-" {
				fill(v.Field(i))
			}
		}
		if task, is := v.Addr().Interface().(*team.Task); is { // its derived field
			open := reflect.ValueOf(task).Elem().FieldByName("open")
			*(*[]string)(unsafe.Pointer(open.UnsafeAddr())) = []string{"1"}
		}
		if usage, is := v.Addr().Interface().(*team.Usage); is { // which has no text for a mark
			usage.InputTokens = aUsage
		}
		for _, o := range objects() {
			if o.of == v.Type() {
				sign(v, markOf(o.name))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		inner := reflect.New(v.Type().Elem()).Elem()
		fill(inner)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(anyKey).Convert(v.Type().Key()), inner)
	case reflect.String:
		v.SetString("x")
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("no value for a " + v.Type().String())
	}
}

// sign sets the first text of an object to its mark.
func sign(v reflect.Value, mark string) {
	for i := range v.NumField() {
		if f := v.Field(i); v.Type().Field(i).IsExported() && f.Kind() == reflect.String {
			f.SetString(mark)
			return
		}
	}
}

// shape maps the paths of fields to the kinds of their values.
type shape map[string]string

// shapes has the shape of each object by its name, and knows those of other types.
type shapes struct {
	t       *testing.T
	objects map[string]shape
	known   map[reflect.Type]shape
	words   *typedoc.Comments
}

func newShapes(t *testing.T) *shapes {
	s := &shapes{t, map[string]shape{}, map[reflect.Type]shape{}, typedoc.New(t, top)}
	for _, o := range objects() {
		s.objects[o.name] = s.of(o.of, o.name)
	}
	return s
}

// of returns the shape of a type. self is the type's name if it is an object.
func (s *shapes) of(kind reflect.Type, self string) shape {
	s.t.Helper()
	if found, is := s.known[kind]; is {
		return found
	}
	v := reflect.New(kind)
	fill(v.Elem())
	text, err := json.Marshal(v.Interface())
	if err != nil {
		s.t.Fatalf("%s: %v", kind, err)
	}
	var parsed any
	if err := json.Unmarshal(text, &parsed); err != nil {
		s.t.Fatalf("%s: %v", kind, err)
	}
	found := shape{}
	s.read(found, "", self, parsed)
	s.known[kind] = found
	return found
}

// read adds the fields of a value to the shape. A value that is an object, or contains its fields,
// gets a link to the object, and only the further fields.
func (s *shapes) read(found shape, path, self string, v any) {
	switch v := v.(type) {
	case map[string]any:
		known := shape{}
		for _, o := range objects() {
			used := o.name == "usage" && v["inputTokens"] == float64(aUsage)
			if o.name != self && (used || slices.Contains(slices.Collect(maps.Values(v)), any(markOf(o.name)))) {
				found[path] = article(o.name)
				known = s.objects[o.name]
			}
		}
		if last := path[strings.LastIndexByte(path, '.')+1:]; last == "events[]" {
			found[path] = "an [event](events.md)"
			return
		}
		for key, inner := range v {
			if has(known, key) {
				continue
			}
			at := strings.TrimPrefix(path+"."+key, ".")
			if key == anyKey {
				at = path + "{}"
			}
			s.read(found, at, "", inner)
		}
	case []any:
		for _, inner := range v {
			s.read(found, path+"[]", "", inner)
		}
	case string:
		found[path] = "text"
		if v == anyJSON {
			found[path] = "any JSON"
		}
	case float64:
		found[path] = numbers(v)
	case bool:
		found[path] = "true or false"
	default:
		s.t.Errorf("%s is %v", path, v)
	}
}

// numbers returns the kind of a number in the JSON of a filled value.
func numbers(v float64) string {
	switch v {
	case float64(aTime):
		return "time"
	case float64(aDuration.Milliseconds()):
		return "milliseconds"
	case aDuration.Seconds():
		return "seconds"
	case float64(aDuration):
		return "nanoseconds"
	}
	return "number"
}

// has reports whether the shape has a field of that name, or below it.
func has(s shape, key string) bool {
	for path := range s {
		if path == key || strings.HasPrefix(path, key) && strings.ContainsRune(".[{", rune(path[len(key)])) {
			return true
		}
	}
	return false
}

// unlike returns what is in a value and not in the shape, such as a field; nil for nothing.
func (s *shapes) unlike(is shape, path string, v any) (wrong []string) {
	kind := is[path]
	if kind == "any JSON" {
		return nil
	}
	if name, _, linked := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(kind, "a ["), "an ["), "]("); linked {
		if name == "event" {
			return nil
		}
		if of, isMap := v.(map[string]any); isMap {
			own, rest := map[string]any{}, map[string]any{}
			for key, inner := range of {
				if has(s.objects[name], key) {
					own[key] = inner
				} else {
					rest[key] = inner
				}
			}
			wrong = s.unlike(s.objects[name], "", own)
			v = rest
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			at := strings.TrimPrefix(path+"."+key, ".")
			if _, free := is[path+"{}"]; free || has(is, path+"{}") {
				at = path + "{}"
			}
			wrong = append(wrong, s.unlike(is, at, inner)...)
		}
		return wrong
	case []any:
		for _, inner := range v {
			wrong = append(wrong, s.unlike(is, path+"[]", inner)...)
		}
		return wrong
	case string:
		if kind == "text" {
			return nil
		}
	case float64:
		if slices.Contains([]string{"number", "time", "milliseconds", "seconds"}, kind) {
			return nil
		}
	case bool:
		if kind == "true or false" {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, and is to be %s", path, v, cmp.Or(kind, "left out"))}
}

// check compares what a command printed with what it may print.
func (s *shapes) check(command, printed string) {
	s.t.Helper()
	var all []any
	for d := json.NewDecoder(strings.NewReader(printed)); ; {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			s.t.Errorf("cadre %s --json prints something that is not JSON: %v\n%.2000s", command, err, printed)
			return
		}
		all = append(all, v)
	}
	var wrong []string
	for _, p := range prints()[command] {
		why := s.unlikeForm(p, all)
		if why == nil {
			return
		}
		wrong = append(wrong, strings.TrimSpace(p.flags+" ")+strings.Join(why, "; "))
	}
	s.t.Errorf("cadre %s --json prints what docs/json.md does not describe: %.3000s\n%.2000s", command,
		strings.Join(wrong, "\n"), printed)
}

// unlikeForm returns what is wrong with the values for one form of a command.
func (s *shapes) unlikeForm(p printedForm, all []any) (wrong []string) {
	if p.form != aLine && len(all) != 1 {
		return []string{fmt.Sprintf("%d values", len(all))}
	}
	if p.form == array {
		elements, is := all[0].([]any)
		if !is {
			return []string{"it is not a list"}
		}
		all = elements
	}
	for _, v := range all {
		if _, is := v.(map[string]any); !is {
			return append(wrong, fmt.Sprintf("%v is not an object", v))
		}
		var why []string
		fits := slices.ContainsFunc(p.types, func(of reflect.Type) bool {
			more := s.unlike(s.of(of, s.named(of)), "", v)
			why = append(why, more...)
			return more == nil
		})
		if !fits {
			wrong = append(wrong, why...)
		}
	}
	return wrong
}

// named returns the name of the object that a type is; "" for none.
func (s *shapes) named(of reflect.Type) string {
	for _, o := range objects() {
		if o.of == of {
			return o.name
		}
	}
	return ""
}
