package team

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cadre/internal/testkit/golden"
)

// fill sets every exported field of v, each to a different value.
func fill(v reflect.Value, name string, n *int64) {
	// an object counts once, whether it may be absent or not
	if v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Kind() == reflect.Struct {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	*n++
	if raw := reflect.TypeFor[json.RawMessage](); v.Type() == raw {
		v.Set(reflect.ValueOf(json.RawMessage(`[1.5,null]`)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), name, n)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), f.Name, n)
				if d, ok := v.Field(i).Addr().Interface().(*time.Duration); ok {
					*d *= unitOf(v.Type())
				}
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"const":` + strconv.FormatInt(*n, 10) + `}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), name, n)
		fill(v.Index(1), name, n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]json.RawMessage{"key": json.RawMessage(`{"any":[1.5,null]}`),
			"gone": json.RawMessage("null")}))
	case reflect.String:
		v.SetString(strings.ToLower(name) + "-" + strconv.FormatInt(*n, 10))
	case reflect.Int64:
		v.SetInt(*n)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("no value for a " + v.Kind().String())
	}
}

// unitOf returns the unit in which the durations of an object are written.
func unitOf(object reflect.Type) time.Duration {
	if object == reflect.TypeFor[Hook]() || object == reflect.TypeFor[Check]() {
		return time.Second
	}
	return time.Millisecond
}

func filledRecord(kind string) *Record {
	e := newEvent(kind)
	var n int64
	fill(reflect.ValueOf(e), kind, &n)
	return &Record{Seq: 7, ID: "command-1", Actor: "ann", At: 1_700_000_000_000, Events: []Event{e}}
}

func eventFile(kind string) string { return filepath.Join("testdata", "events", kind+".json") }

func TestEveryEventHasItsGolden(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			r := filledRecord(kind)
			golden.File(t, eventFile(kind), string(AppendRecord(nil, r))+"\n")

			data, err := os.ReadFile(eventFile(kind))
			if err != nil {
				t.Fatal(err)
			}
			for how, text := range map[string]string{"as written": string(data), "keys sorted": sortedKeys(t, data),
				"with unknown fields": withUnknown(t, data)} {
				got, err := DecodeRecord(7, text)
				if err != nil {
					t.Fatalf("%s: %v\n%s", how, err, text)
				}
				if !reflect.DeepEqual(got, r) {
					t.Errorf("%s: read\n%#v\nwant\n%#v", how, got.Events[0], r.Events[0])
				}
			}
		})
	}
}

// TestEarlierRecords checks that records of an earlier version, from before a kind got more fields,
// are read and written unchanged.
func TestEarlierRecords(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "earlier", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got the files %v (%v), want at least one", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := DecodeRecord(7, strings.TrimSpace(string(data)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if again := string(AppendRecord(nil, r)) + "\n"; again != string(data) {
			t.Errorf("%s: written again as\n%s", file, again)
		}
	}
}

func TestGoldensAndKindsAreComplete(t *testing.T) {
	var files []string
	entries, err := os.ReadDir(filepath.Join("testdata", "events"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files = append(files, strings.TrimSuffix(e.Name(), ".json"))
	}
	known := Kinds()
	if !slices.Equal(files, known) {
		t.Errorf("testdata/events has\n%v\nfor the kinds\n%v", files, known)
	}
	if declared := declaredKinds(t); !slices.Equal(declared, known) {
		t.Errorf("the methods Kind give\n%v\nand kinds has\n%v", declared, known)
	}
}

// declaredKinds returns the names that the package's Kind methods return.
func declaredKinds(t *testing.T) []string {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Kind" && f.Recv != nil {
				literal := f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit)
				names = append(names, strings.Trim(literal.Value, `"`))
			}
		}
	}
	slices.Sort(names)
	return names
}

// sortedKeys returns the same JSON with the keys of every object sorted, and with spaces.
func sortedKeys(t *testing.T, data []byte) string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// withUnknown returns the same JSON with a field of a later version at the start of every object
// that is not the user's own.
func withUnknown(t *testing.T, data []byte) string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, field := range v {
				if key != "metadata" && key != "schema" {
					walk(field)
				}
			}
			v["aLater"] = map[string]any{"deep": []any{1, "two", nil, true, -3.5e10}}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestUpdateTellsEmptyFromAbsent(t *testing.T) {
	empty := ""
	r := &Record{Seq: 1, ID: "a", Events: []Event{&TaskUpdated{Task: "1", Owner: &empty, ActiveForm: &empty}}}
	got, err := DecodeRecord(1, string(AppendRecord(nil, r)))
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("read %+v, %v; want %+v", got, err, r)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	for _, data := range []string{`{"v":2,"id":"x","events":[{"kind":"from_the_future"}]}`, `{"id":"x","v":2}`,
		`{"v":2,"events":{"now":"an object"}}`} {
		if _, err := DecodeRecord(1, data); !errors.Is(err, ErrNewer) {
			t.Errorf("record %s: got %v, want ErrNewer", data, err)
		}
		if _, err := DecodeSnapshot(1, data); !errors.Is(err, ErrNewer) {
			t.Errorf("snapshot %s: got %v, want ErrNewer", data, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, data := range []string{
		``, `{`, `[]`, `{"v":1}x`, `{"v":1.5}`, `{"v":"1"}`, `{"at":9223372036854775808}`, `{"id":5}`, `{"id":"\x"}`,
		`{"id":"\u12"}`, `{"id":"open`,
		`{"events":[{}]}`, `{"events":[{"kind":""}]}`, `{"events":[{"kind":"unheard_of"}]}`,
		`{"events":[{"member":"ann"}]}`, `{"events":[null]}`, `{"events":[,]}`,
		`{"events":[{"kind":"delegate_changed","on":maybe}]}`, `{"events":[{"kind":"delegate_changed","on":true]}`,
		`{"events":[{"kind":"task_updated","metadata":{"a":}}]}`,
		`{"events":[{"kind":"task_updated","metadata":{"a":1 "b":2}}]}`, `{"x":01}`,
		`{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
	} {
		if r, err := DecodeRecord(1, data); err == nil {
			t.Errorf("%.80s was read as %+v", data, r)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.80s: the error has %d bytes", data, len(err.Error()))
		}
	}
	for _, data := range []string{
		`{"team":{"id":"t","lead":"lead"}}`, `{"team":{"id":"t","lead":"lead"},"members":[{"name":"ann"}]}`,
		`{"members":[{"name":"lead"}]}`,
		`{"team":{},"tasks":[{"id":"2"}]}`, `{"team":{},"tasks":[{"id":"01"}]}`, `{"team":{},"tasks":[{}]}`,
	} {
		if _, err := DecodeSnapshot(1, data); err == nil {
			t.Errorf("snapshot %s was read", data)
		}
	}
}

// fullState returns a state in which every field of a snapshot is set.
func fullState() *State {
	s := &State{}
	var n int64
	filled := func(e Event) Event {
		fill(reflect.ValueOf(e), "", &n)
		return e
	}
	created := filled(&TeamCreated{}).(*TeamCreated)
	created.Lead.Name = "lead"
	member := filled(&MemberSpawned{}).(*MemberSpawned)
	member.Member.Name, member.Member.Status = "ann", Active
	first, second := filled(&TaskCreated{}).(*TaskCreated), filled(&TaskCreated{}).(*TaskCreated)
	first.Task.ID, first.Task.Status, first.Task.BlockedBy = "1", Pending, nil
	second.Task.ID, second.Task.Status, second.Task.BlockedBy = "2", Pending, []string{"1"}
	message := filled(&MessageSent{}).(*MessageSent)
	message.Message.Recipients = []string{"lead", "ann"}
	message.Message.Seq = 4
	s.Apply(&Record{Seq: 1, ID: "create", Actor: User, At: 1000, Events: []Event{created, member, first,
		second, message}})
	s.Apply(&Record{Seq: 2, ID: "more", Actor: "ann", At: 2000, Events: []Event{
		&MessagesDelivered{Member: "lead", Seqs: []int64{4}}, &MessagesRead{Member: "lead", Through: 4},
		filled(&PermissionRequested{}), &HookRejected{Key: "TaskCompleted/ann/1", Count: 3},
		&ShutdownRequested{Member: "ann", Request: "shutdown-1@ann", Deadline: 5000, Reason: "enough"},
		&ShutdownAnswered{Member: "ann", Request: "shutdown-1@ann"},
		&NoteSet{Key: "plan", Text: "first", Seq: 1}, &NoteSet{Key: "decisions/api", Text: "v2", Seq: 2},
		&NoteSet{Key: "old", Text: "x", Seq: 3}, &NoteDeleted{Key: "old", Seq: 4},
	}})
	s.Apply(&Record{Seq: 3, ID: "note", Actor: User, At: 3000, Events: []Event{
		&NoteAppended{Key: "plan", Text: "second", Seq: 5}}})
	return s
}

func TestSnapshotGolden(t *testing.T) {
	s := fullState()
	path := filepath.Join("testdata", "snapshot.json")
	golden.File(t, path, string(AppendSnapshot(nil, s))+"\n")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(AppendSnapshot(nil, s))
	for how, text := range map[string]string{"as written": string(data), "keys sorted": sortedKeys(t, data),
		"with unknown fields": withUnknown(t, data)} {
		got, err := DecodeSnapshot(3, text)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if again := string(AppendSnapshot(nil, got)); again != want {
			t.Errorf("%s: read as\n%s\nwant\n%s", how, again, want)
		}
	}
	empty, err := DecodeSnapshot(0, "")
	if err != nil || empty.Exists() || empty.Seq() != 0 {
		t.Errorf("the state before the first record: %+v, %v", empty, err)
	}
}
