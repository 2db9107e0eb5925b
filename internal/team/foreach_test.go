package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/testkit/soak"
)

// worker plays commands of the user, and fails the test if one is refused.
type worker struct {
	testing.TB
	*State
	n int
}

func work(t testing.TB) *worker {
	s, _ := founded(t.(fataler))
	return &worker{t, s, 0}
}

func (w *worker) do(body Body) *Record { return w.as(User, body) }

func (w *worker) as(actor string, body Body) *Record {
	w.Helper()
	r, err := w.try(actor, body)
	if err != nil {
		w.Fatalf("%T by %s: %v", body, actor, err)
	}
	return r
}

// try plays a command that may be refused.
func (w *worker) try(actor string, body Body) (*Record, error) {
	w.Helper()
	w.n++
	d, err := Decide(w.State, Command{ID: fmt.Sprint("w", w.n), Actor: actor, At: Time(w.n), Body: body})
	if err == nil && d.Record != nil {
		w.Apply(recoded(w.TB.(fataler), d.Record))
	}
	return d.Record, err
}

// refused plays a command that has to be refused with these words.
func (w *worker) refused(words, actor string, body Body) {
	w.Helper()
	if _, err := w.try(actor, body); err == nil || !strings.Contains(err.Error(), words) {
		w.Errorf("%T by %s: got %v, want a refusal with %q", body, actor, err, words)
	}
}

func (w *worker) named(name string) *Task {
	w.Helper()
	t := w.byName(name)
	if t == nil {
		w.Fatalf("no task %s", name)
	}
	return t
}

// TestMatrix: the product is in the order written, without what is left out.
func TestMatrix(t *testing.T) {
	f, err := (&ForEach{Matrix: []Axis{
		{"os", []json.RawMessage{[]byte(`"linux"`), []byte(`"darwin"`)}},
		{"go", []json.RawMessage{[]byte(`1.20`), []byte(` {"v": 2}`)}},
	}, Exclude: []json.RawMessage{[]byte(`{"go": 1.20, "os": "darwin"}`)}}).Clean()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range f.items() {
		got = append(got, string(item))
	}
	want := []string{`{"os":"linux","go":1.20}`, `{"os":"linux","go":{"v":2}}`, `{"os":"darwin","go":{"v":2}}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func items(n int) (all []json.RawMessage) {
	for i := range n {
		all = append(all, TextItem(fmt.Sprint("item ", i)))
	}
	return all
}

// TestItemLimits: a thousand items of 4 KiB each are taken, and no more.
func TestItemLimits(t *testing.T) {
	long := TextItem(strings.Repeat("x", MaxItem-2))
	for _, ok := range []*ForEach{{Items: items(MaxItems)}, {Items: []json.RawMessage{long}},
		{Matrix: []Axis{{"a", items(100)}, {"b", items(10)}}}} {
		if _, err := ok.Clean(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []*ForEach{{Items: items(MaxItems + 1)},
		{Items: []json.RawMessage{TextItem(strings.Repeat("x", MaxItem))}},
		{Matrix: []Axis{{"a", items(100)}, {"b", items(11)}}}, {Matrix: []Axis{{"a", []json.RawMessage{long}}}},
		{Matrix: []Axis{{"a", items(1000)}, {"b", items(1000)}, {"c", items(1000)}}}} {
		if _, err := bad.Clean(); CodeOf(err) != TooLarge {
			t.Errorf("accepted, or refused with %v", err)
		}
	}
	w := work(t)
	w.do(&CreateTask{Name: "g", Subject: "g", ForEach: &ForEach{Run: "ls"}})
	g := w.named("g")
	w.do(&ExpandTask{Task: g.ID, Items: items(MaxItems + 1)})
	if g = w.named("g"); !g.OutOfRetries() || !strings.Contains(g.Failure, "1,001 items are too many") ||
		!strings.Contains(g.Failure, "at most 1,000 tasks") {
		t.Errorf("the group is %s: %s", g.State(), g.Failure)
	}
	w.do(&CreateTask{Name: "wide", Subject: "wide", Description: strings.Repeat("x", 20<<10),
		ForEach: &ForEach{Items: items(MaxItems)}})
	if g = w.named("wide"); !g.OutOfRetries() || !strings.Contains(g.Failure, "MiB of texts") {
		t.Errorf("the group is %s: %s", g.State(), g.Failure)
	}
}

// TestTeamLimit: no group makes more tasks than a team may have.
func TestTeamLimit(t *testing.T) {
	w := work(t)
	for n := range 9 {
		w.do(&CreateTask{Name: fmt.Sprint("g", n), Subject: "g", ForEach: &ForEach{Items: items(MaxItems)}})
	}
	w.do(&CreateTask{Name: "over", Subject: "over", Retries: 3, ForEach: &ForEach{Items: items(MaxItems)}})
	if g := w.named("over"); !g.OutOfRetries() || !strings.Contains(g.Failure, "more than 10,000 tasks in the team") {
		t.Errorf("the group is %s: %s", g.State(), g.Failure)
	}
	if bodies, _ := w.Overdue(0); len(bodies) > 0 {
		t.Errorf("it is tried again: %+v", bodies)
	}
}

// TestMadeNames: names of made tasks are valid and unique, and the subject has the item harmless.
func TestMadeNames(t *testing.T) {
	long := strings.Repeat("n", MaxName)
	w := work(t)
	w.do(&CreateTask{Name: "g-1", Subject: "in the way"})
	w.do(&CreateTask{Name: "g", Subject: "sub", ForEach: &ForEach{Items: []json.RawMessage{TextItem("a\n\x1b[31mb"),
		TextItem(strings.Repeat("y", 4000))}}})
	w.do(&CreateTask{Name: long, Subject: "x", ForEach: &ForEach{Items: items(2)}})
	w.do(&CreateTask{Name: long[1:] + "x", Subject: "x", ForEach: &ForEach{Items: items(2)}})
	w.do(&CreateTask{Name: long[:MaxName-1] + "z", Subject: "x", ForEach: &ForEach{Items: items(2)}})
	seen := map[string]bool{}
	for one := range w.Tasks() {
		if one.Of == "" {
			continue
		}
		if !ValidTaskName(one.Name) || seen[one.Name] {
			t.Errorf("the name %q", one.Name)
		}
		seen[one.Name] = true
		if strings.ContainsAny(one.Subject, "\n\x1b") || len(one.Subject) > 200 {
			t.Errorf("the subject %q", one.Subject)
		}
	}
	if len(seen) != 8 || !seen["g-1-2"] || !seen["g-2"] {
		t.Errorf("the names are %v", seen)
	}
}

// TestGroupInBatch: a batch may still change a group before it makes its tasks.
func TestGroupInBatch(t *testing.T) {
	w := work(t)
	w.do(&CreateTask{Name: "before", Subject: "before"})
	w.do(&CreateTask{Name: "g", Subject: "g", BlockedBy: []string{"before"}, ForEach: &ForEach{Items: items(3)}})
	w.do(&Batch{Bodies: []Body{&DeleteTask{Task: "before"}, &CreateTask{Name: "next", Subject: "next"},
		&ReviseTask{Task: "g", To: CreateTask{Subject: "g", ForEach: &ForEach{Items: items(2)}},
			Fields: []string{"forEach"}},
		&CreateTask{Name: "behind", Subject: "behind", BlockedBy: []string{"g"}}}})
	if made := w.Made(w.named("g").ID); len(made) != 2 {
		t.Errorf("%d tasks were made", len(made))
	}
	if g := w.named("g"); !g.Expanded || w.named("behind").waits() != 1 {
		t.Errorf("the group is %+v", g)
	}
}

// TestNestedGroups: the end of one group makes the tasks of the next one in the same record, and an
// empty one is completed on the way.
func TestNestedGroups(t *testing.T) {
	w := work(t)
	w.do(&CreateTask{Name: "one", Subject: "one", ForEach: &ForEach{Items: items(1)}})
	w.do(&CreateTask{Name: "none", Subject: "none", BlockedBy: []string{"one"}, ForEach: &ForEach{}})
	w.do(&CreateTask{Name: "two", Subject: "two", BlockedBy: []string{"one", "none"},
		ForEach: &ForEach{Items: items(2)}})
	w.do(&CreateTask{Name: "plain", Subject: "plain", BlockedBy: []string{"one", "none"}})
	r := w.do(&CompleteTask{Task: "one-1"})
	if w.named("one").Status != Completed || w.named("none").Status != Completed ||
		len(w.Made(w.named("two").ID)) != 2 {
		t.Errorf("after %s", AppendRecord(nil, r))
	}
	var freed []string
	for _, e := range r.Events {
		if done, is := e.(*TaskCompleted); is {
			freed = append(freed, done.Unblocked...)
		}
	}
	if !slices.Equal(freed, []string{w.named("plain").ID}) {
		t.Errorf("the record frees %v", freed)
	}
	if got := w.named("two-1").BlockedBy; !slices.Equal(got, []string{w.named("one").ID, w.named("none").ID}) {
		t.Errorf("a made task waits for %v", got)
	}
}

// TestGroupResult: the result is a JSON list of what the tasks reported, and is never too long.
func TestGroupResult(t *testing.T) {
	soak.Long(t)
	type entry struct {
		Task, Item string
		Result     any
		Shortened  bool
	}
	read := func(w *worker, name string) (all []entry) {
		result := w.named(name).Result
		if err := json.Unmarshal([]byte(result), &all); err != nil || len(result) > MaxText {
			t.Fatalf("%d bytes: %v", len(result), err)
		}
		return all
	}
	w := work(t)
	w.do(&CreateTask{Name: "g", Subject: "g", ForEach: &ForEach{Items: items(2)}})
	w.do(&CompleteTask{Task: "g-1", Result: "a \"text\"\x01"})
	w.do(&CompleteTask{Task: "g-2", Result: ` {"n": 1}` + "\n"})
	if got := fmt.Sprint(read(w, "g")); got != "[{g-1 item 0 a \"text\"\x01 false} {g-2 item 1 map[n:1] false}]" {
		t.Errorf("the result is %q", got)
	}
	w.do(&CreateTask{Name: "long", Subject: "long", ForEach: &ForEach{Items: items(4)}})
	for n := range 4 {
		w.do(&CompleteTask{Task: fmt.Sprint("long-", n+1), Result: strings.Repeat("\x01", 900_000)})
	}
	if got := read(w, "long"); len(got) != 4 || !got[0].Shortened || got[3].Item != "item 3" {
		t.Errorf("%d entries", len(got))
	}
}

// TestRollBackInGroup: a task that a group made is rolled back although the group is completed; the
// group is done again with it.
func TestRollBackInGroup(t *testing.T) {
	w := work(t)
	w.do(&CreateTask{Name: "g", Subject: "g", ForEach: &ForEach{Items: items(2)}})
	w.do(&CreateTask{Name: "behind", Subject: "behind", BlockedBy: []string{"g"}})
	w.do(&ClaimTask{Task: "g-1", Member: "ann"})
	id := w.named("g-1").ID
	w.do(&RecordWork{Task: id, Work: Work{Member: "ann", Base: "b", Fence: 1}})
	w.do(&CompleteTask{Task: "g-1", Member: "ann"})
	w.do(&RecordWork{Task: id, Work: Work{Member: "ann", Base: "b", Commit: "c", Fence: 1}})
	w.do(&CompleteTask{Task: "g-2"})
	if w.named("g").Status != Completed {
		t.Fatal("the group is not completed")
	}
	if err := w.RollsBack(w.named("g").ID); CodeOf(err) != Nothing {
		t.Errorf("a group: %v", err)
	}
	w.do(&RollBackTask{Task: id, Fence: 1, Commit: "undo"})
	if g := w.named("g"); g.Status != Pending || g.waits() != 1 || len(w.named("behind").BlockedBy) != 1 {
		t.Errorf("the group is %+v", g)
	}
	w.do(&CompleteTask{Task: "g-1"})
	w.do(&ClaimTask{Task: "behind", Member: "ann"})
	_, err := Decide(w.State, Command{ID: "redo", Actor: User, Body: &RedoTask{Task: "g-2"}})
	if CodeOf(err) != NotReady {
		t.Errorf("what builds on the group is in progress: %v", err)
	}
}

// TestFailedInGroup checks that a group waits while one of its tasks is out of retries, and
// continues once that task is released.
func TestFailedInGroup(t *testing.T) {
	w := work(t)
	w.do(&CreateTask{Name: "g", Subject: "g", ForEach: &ForEach{Items: items(2)}})
	w.do(&CreateTask{Name: "after", Subject: "after", BlockedBy: []string{"g"}, When: Always})
	w.do(&ClaimTask{Task: "g-1", Member: "ann"})
	w.do(&FailTask{Task: "g-1", Member: "ann", Reason: "no"})
	w.do(&CompleteTask{Task: "g-2"})
	if g := w.named("g"); g.Status != Pending || g.waits() != 1 || w.named("after").waits() != 0 {
		t.Errorf("the group is %+v", g)
	}
	w.do(&ReleaseTask{Task: "g-1"})
	w.do(&CompleteTask{Task: "g-1"})
	if g := w.named("g"); g.Status != Completed {
		t.Errorf("the group is %+v", g)
	}
}

// TestGroupOfBranches: a task behind a group builds on the work of the tasks that the group made.
func TestGroupOfBranches(t *testing.T) {
	w := work(t)
	w.do(&SpawnMember{Name: "tree", Agent: "claude", Isolation: Worktree})
	w.do(&CreateTask{Name: "g", Subject: "g", ForEach: &ForEach{Items: items(1)}})
	w.do(&CreateTask{Name: "behind", Subject: "behind", BlockedBy: []string{"g"}})
	w.do(&ClaimTask{Task: "g-1", Member: "tree"})
	w.do(&CompleteTask{Task: "g-1", Member: "tree"})
	if on := w.BuildsOn(w.named("behind").ID); len(on) != 1 || on[0].Name != "g-1" {
		t.Errorf("it builds on %v", on)
	}
}

// TestVariables: values are in variables by the names of their tasks, in bounds.
func TestVariables(t *testing.T) {
	for item, want := range map[string][]string{
		`"$(touch x)"`: {"CADRE_ITEM=$(touch x)"}, `"-rf"`: {"CADRE_ITEM=-rf"}, `"a\nb"`: {"CADRE_ITEM=a\nb"},
		`7`: {"CADRE_ITEM=7"}, `["x"]`: {`CADRE_ITEM=["x"]`},
		`{"os":"linux","go-version":1.20,"go_version":2}`: {`CADRE_ITEM={"os":"linux","go-version":1.20,"go_version":2}`,
			"CADRE_ITEM_GO_VERSION=1.20", "CADRE_ITEM_OS=linux"},
	} {
		if got := ItemVariables(json.RawMessage(item)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", item, got, want)
		}
	}
	w := work(t)
	w.do(&CreateTask{Name: "far.away", Subject: "x"})
	w.do(&CreateTask{Subject: "no name", BlockedBy: []string{"far.away"}})
	number := w.nameless()
	w.do(&CreateTask{Name: "a", Subject: "x", BlockedBy: []string{number}})
	w.do(&CreateTask{Name: "a-b", Subject: "x"})
	w.do(&CreateTask{Name: "huge", Subject: "x"})
	w.do(&CreateTask{Name: "last", Subject: "x", BlockedBy: []string{"a", "a-b", "huge"}})
	w.do(&CompleteTask{Task: "far.away", Result: "far\x00"})
	w.do(&CompleteTask{Task: number, Result: "[1]"})
	w.do(&CompleteTask{Task: "a", Result: `{"b":"field","ok":true,"deep":{"x":"y"}}` + "\n"})
	w.do(&CompleteTask{Task: "a-b", Result: "the task a-b"})
	w.do(&CompleteTask{Task: "huge", Result: strings.Repeat("x", MaxVariable)})
	all, out := w.ResultVariables(w.named("last").ID)
	want := []string{`CADRE_RESULT_A={"b":"field","ok":true,"deep":{"x":"y"}}`, `CADRE_RESULT_A_DEEP={"x":"y"}`,
		"CADRE_RESULT_A_OK=true", "CADRE_RESULT_A_B=the task a-b", "CADRE_RESULT_" + number + "=[1]",
		"CADRE_RESULT_FAR_AWAY=far"}
	if !slices.Equal(all, want) || !slices.Equal(out, []string{"CADRE_RESULT_A_B", "CADRE_RESULT_HUGE"}) {
		t.Errorf("%q\nwant %q\nleft out %q", all, want, out)
	}
	var many []string
	for n := range 20 {
		name := fmt.Sprint("m", n)
		many = append(many, name)
		w.do(&CreateTask{Name: name, Subject: "x"})
		w.do(&CompleteTask{Task: name, Result: strings.Repeat("x", MaxVariable/2)})
	}
	w.do(&CreateTask{Name: "all", Subject: "x", BlockedBy: many})
	all, out = w.ResultVariables(w.named("all").ID)
	if size := len(strings.Join(all, "")); size > MaxVariables || len(out)+len(all) != 20 || len(out) < 3 {
		t.Errorf("%d bytes in %d variables; %d are left out", size, len(all), len(out))
	}
}

// nameless returns the id of the last task.
func (w *worker) nameless() string { return w.tasks[len(w.tasks)-1].ID }

// TestGroupOfLongTexts: whatever each task of a group has counts, and the groups that become due at
// once do not make one record that no journal takes.
func TestGroupOfLongTexts(t *testing.T) {
	soak.Long(t)
	w := work(t)
	schema := json.RawMessage(`{"description":"` + strings.Repeat("x", 60_000) + `"}`)
	w.do(&CreateTask{Name: "wide", Subject: "wide", Schema: schema, ForEach: &ForEach{Items: items(1000)}})
	if g := w.named("wide"); !strings.Contains(g.Failure, "MiB of texts") {
		t.Errorf("a group of 60 MB failed with %q", g.Failure)
	}
	w.do(&CreateTask{Name: "first", Subject: "first"})
	for i := range 5 {
		w.do(&CreateTask{Name: fmt.Sprint("g", i), Subject: "g", BlockedBy: []string{"first"},
			Description: strings.Repeat("d", 15_000), ForEach: &ForEach{Items: items(1000)}})
	}
	r := w.do(&CompleteTask{Task: "first"})
	for n := 0; ; n++ {
		if size := len(AppendRecord(nil, r)); size > 3*maxMade {
			t.Errorf("record %d has %d bytes", n, size)
		}
		due := w.overdueGroups()
		if len(due) == 0 {
			break
		}
		r = w.do(due[0])
	}
	for i := range 5 {
		if g := w.named(fmt.Sprint("g", i)); !g.Expanded {
			t.Errorf("%s made no tasks: %q", g.Name, g.Failure)
		}
	}
}

// TestPlaceOfMadeTasks: the tasks of a group without a command have the directory, the environment
// and the time limit for their check.
func TestPlaceOfMadeTasks(t *testing.T) {
	w := work(t)
	w.do(&CreateTask{Name: "g", Subject: "g", Dir: "services/api", Env: []string{"A=1"}, Timeout: time.Minute,
		Check: &TaskCheck{Run: "make"}, ForEach: &ForEach{Items: items(1)}})
	if one := w.named("g-1"); one.Dir != "services/api" || len(one.Env) != 1 || one.Timeout != time.Minute {
		t.Errorf("it works in %q with %q for %v", one.Dir, one.Env, one.Timeout)
	}
}

// TestRedoAfterAFailure: a group is done again although the work of a task that failed was never
// recorded. Nobody will record it.
func TestRedoAfterAFailure(t *testing.T) {
	w := work(t)
	w.do(&CreateTask{Name: "g", Subject: "g", ForEach: &ForEach{Items: items(2)}})
	w.do(&ClaimTask{Task: "g-1", Member: "ann"})
	one := w.named("g-1")
	w.do(&RecordWork{Task: one.ID, Work: Work{Member: "ann", Base: "c0", Fence: one.Fence}})
	w.do(&FailTask{Task: "g-1", Member: "ann", Reason: "it broke"})
	w.do(&RedoTask{Task: "g"})
}
