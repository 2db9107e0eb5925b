package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/observe/present"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"

	"pgregory.net/rapid"
)

// consumer is a program that knows a session only by the lines of --live-state.
type consumer struct {
	live *present.Live
	doc  any
}

func generic(t testing.TB, v any) (out any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func consume(t testing.TB, o *Observer) *consumer {
	t.Helper()
	live, first := present.NewLive(o)
	whole := generic(t, first).(anyMap)
	if whole["type"] != present.SessionUpdate {
		t.Fatal(whole)
	}
	return &consumer{live, whole["session"]}
}

// see applies the result of a line and compares the consumer's view with the state. It returns the
// size of the patch in bytes.
func (c *consumer) see(t testing.TB, where string, o *Observer, seen Seen) int {
	t.Helper()
	patch := c.live.Next(o, seen.Records)
	for _, op := range patch {
		var err error
		if c.doc, err = apply(c.doc, op); err != nil {
			t.Fatalf("%s: %s %s %s: %v", where, op.Op, op.Path, op.Value, err)
		}
	}
	if want := generic(t, present.SessionOf(o)); !reflect.DeepEqual(c.doc, want) {
		got, _ := json.Marshal(c.doc)
		state, _ := json.Marshal(want)
		ops, _ := json.Marshal(patch)
		t.Fatalf("%s: with the patch %s the consumer has\n%s\nand the state is\n%s", where, ops, got, state)
	}
	if patch == nil {
		return 0
	}
	line, _ := json.Marshal(present.StateLine{Type: present.SessionPatch, Patch: patch})
	return len(line)
}

// apply applies one operation as RFC 6902 specifies, and rejects invalid ones.
func apply(doc any, op present.Operation) (any, error) {
	path := strings.Split(op.Path, "/")
	if path[0] != "" || len(path) < 2 {
		return nil, fmt.Errorf("no path within the document")
	}
	var v any
	if err := json.Unmarshal(op.Value, &v); err != nil && op.Op != "remove" {
		return nil, err
	}
	return edit(doc, path[1:], op.Op, v)
}

func edit(in any, path []string, op string, v any) (any, error) {
	key := path[0]
	switch in := in.(type) {
	case anyMap:
		was, there := in[key]
		switch {
		case !there && (len(path) > 1 || op != "add"):
			return nil, fmt.Errorf("there is no %s", key)
		case len(path) > 1:
			now, err := edit(was, path[1:], op, v)
			in[key] = now
			return in, err
		case op == "remove":
			delete(in, key)
		default:
			in[key] = v
		}
		return in, nil
	case []any:
		i, err := strconv.Atoi(key)
		if key == "-" && op == "add" && len(path) == 1 {
			i, err = len(in), nil
		}
		if err != nil || i < 0 || i > len(in) || i == len(in) && (op != "add" || len(path) > 1) {
			return nil, fmt.Errorf("there is no place %s among %d", key, len(in))
		}
		switch {
		case len(path) > 1:
			in[i], err = edit(in[i], path[1:], op, v)
		case op == "add":
			in = slices.Insert(in, i, v)
		case op == "remove":
			in = slices.Delete(in, i, i+1)
		default:
			in[i] = v
		}
		return in, err
	}
	return nil, fmt.Errorf("%s is in no object and no array", key)
}

// TestLive checks that a consumer that applies the patches has the right state at every line of
// every recording, alone and together, interleaved and one after the other. So does a consumer that
// begins at any line.
func TestLive(t *testing.T) {
	soak.Long(t)
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		for _, turns := range []int{1, 1 << 30} {
			t.Run(fmt.Sprintf("%s in turns of %d", name, turns), func(t *testing.T) {
				o := New(Options{})
				first := consume(t, o)
				var later *consumer
				lines := map[string][][]byte{}
				for _, in := range recordings[name] {
					lines[in.source] = recorded(t, in.file)
				}
				patches, n := 0, 0
				for left := true; left; {
					left = false
					for _, in := range recordings[name] {
						for range min(turns, len(lines[in.source])) {
							n++
							seen := o.Line(in.source, lines[in.source][0], epochMillis+team.Time(n))
							lines[in.source] = lines[in.source][1:]
							where := fmt.Sprintf("line %d of %s", n, in.file)
							if first.see(t, where, o, seen) > 0 {
								patches++
							}
							if later != nil {
								later.see(t, where, o, seen)
							}
							later = consume(t, o)
						}
						left = left || len(lines[in.source]) > 0
					}
				}
				if patches < 4 {
					t.Errorf("only %d patches in %d lines", patches, n)
				}
			})
		}
	}
}

// TestLiveOfAnything compares a consumer with random sessions, which also do things that no
// recorded session did.
func TestLiveOfAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := play(t)
		c := consume(t, s.Observer)
		id := rapid.Map(rapid.IntRange(1, 4), strconv.Itoa)
		name := rapid.SampledFrom([]string{"alice", "bob", "a/b~c", ""})
		text := rapid.SampledFrom([]string{"", "one", "two"})
		ids := func(label string) (all []any) {
			for _, one := range rapid.SliceOfN(id, 0, 3).Draw(rt, label) {
				all = append(all, one)
			}
			return all
		}
		for i := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			s.session = rapid.SampledFrom([]string{"11112222-3333", "11112222-4444"}).Draw(rt, "session")
			switch rapid.IntRange(0, 11).Draw(rt, "step") {
			case 0:
				s.createTeam(rapid.SampledFrom([]string{"fx", "gx"}).Draw(rt, "team"))
			case 1:
				s.do("TeamDelete", obj{}, obj{"success": true})
			case 2:
				s.spawn(name.Draw(rt, "name"))
			case 3, 4, 5:
				s.task(id.Draw(rt, "task"), text.Draw(rt, "subject"))
			case 6, 7, 8:
				s.update(id.Draw(rt, "task"), obj{"status": rapid.SampledFrom([]string{"", "pending", "in_progress",
					"completed", "deleted"}).Draw(rt, "status"),
					"owner": name.Draw(rt, "owner"), "subject": text.Draw(rt, "subject"),
					"description": text.Draw(rt, "description"),
					"addBlocks":   ids("blocks"), "addBlockedBy": ids("blocked by")})
			case 9:
				var list []any
				for _, id := range rapid.SliceOfNDistinct(id, 0, 4, rapid.ID).Draw(rt, "listed") {
					list = append(list, obj{"id": id, "subject": "S", "status": "pending",
						"blockedBy": ids("listed blockers")})
				}
				s.do("TaskList", obj{}, obj{"tasks": append([]any{}, list...)})
			case 10:
				request := "shutdown-" + strconv.Itoa(i) + "@alice"
				s.send(obj{"type": "shutdown_response", "request_id": request, "approve": true},
					obj{"request_id": request})
			case 11:
				s.line(obj{"type": "system", "subtype": "init", "session_id": s.session, "agents": []any{"x", "y"}})
			}
			// A step with two lines makes one patch here: the consumer gets the records of both.
			c.see(t, fmt.Sprintf("step %d", i+1), s.Observer, Seen{Records: s.records})
			s.records = nil
		}
	})
}

// bigTeam returns a session with that many tasks.
func bigTeam(t testing.TB, tasks int) *Observer {
	o := New(Options{})
	calls(t, o, 0, "TeamCreate", `{"team_name":"fx"}`,
		`{"team_name":"fx","team_file_path":"/x","lead_agent_id":"team-lead@fx"}`)
	for i := 1; i <= tasks; i++ {
		calls(t, o, i, "TaskCreate", fmt.Sprintf(`{"subject":"Look into module %d","description":"Read it."}`, i),
			fmt.Sprintf(`{"task":{"id":"%d","subject":"Look into module %d"}}`, i, i))
	}
	if got := len(o.State().Tasks); got != tasks {
		t.Fatalf("%d tasks", got)
	}
	return o
}

// calls makes a successful call, in two lines, and returns the result of the second.
func calls(t testing.TB, o *Observer, n int, tool, input, result string) Seen {
	now := epochMillis + team.Time(n)
	o.Line("lead",
		fmt.Appendf(nil,
			`{"type":"assistant","session_id":"s","message":{"id":"m%d","content":[{"type":"tool_use","id":"toolu_%d","name":"%s","input":%s}]}}`, n, n, tool, input), now)
	return o.Line("lead",
		fmt.Appendf(nil,
			`{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"ok"}]},"tool_use_result":%s}`, n, result), now)
}

// changes returns changes of a task, each as a call and its result. Each has at most 60 bytes of
// news.
func changes(task int) [][3]string {
	id := strconv.Itoa(task)
	done := `{"success":true}`
	return [][3]string{
		{"TaskUpdate", `{"taskId":"` + id + `","status":"in_progress","owner":"alice"}`, done},
		{"TaskUpdate", `{"taskId":"` + id + `","subject":"Another subject"}`, done},
		{"TaskUpdate", `{"taskId":"` + id + `","addBlockedBy":["1"],"addBlocks":["2"]}`, done},
		{"TaskUpdate", `{"taskId":"` + id + `","status":"completed"}`, done},
		{"TaskUpdate", `{"taskId":"` + id + `","status":"deleted"}`, done},
	}
}

// TestPatchSize checks that the size of a patch depends only on the change, also in a team of
// 10,000 tasks, and also for a task that blocks all others.
func TestPatchSize(t *testing.T) {
	t.Parallel()
	sizes := func(tasks int) (all []int) {
		o := bigTeam(t, tasks)
		c := consume(t, o)
		n := tasks
		for _, one := range changes(tasks / 2) {
			n++
			all = append(all, c.see(t, one[1], o, calls(t, o, n, one[0], one[1], one[2])))
		}
		return all
	}
	large := 10_000
	if testing.Short() {
		large = 1_000
	}
	few, many := sizes(10), sizes(large)
	t.Logf("bytes of a patch in a team of 10 tasks: %v; of %d: %v", few, large, many)
	for i := range few {
		if few[i] == 0 || many[i] > few[i]+64 { // the numbers are longer
			t.Errorf("change %d takes %d bytes of 10 tasks, and %d of %d", i, few[i], many[i], large)
		}
	}

	o := bigTeam(t, 2000)
	var all []string
	for i := 2; i < 2000; i++ {
		all = append(all, strconv.Itoa(i))
	}
	list, _ := json.Marshal(all)
	calls(t, o, 3000, "TaskUpdate", `{"taskId":"1","addBlocks":`+string(list)+`}`, `{"success":true}`)
	c := consume(t, o)
	for i, change := range []string{`{"taskId":"1","addBlocks":["2000"]}`, `{"taskId":"1","status":"completed"}`} {
		if size := c.see(t, change, o, calls(t, o, 3001+i, "TaskUpdate", change, `{"success":true}`)); size == 0 ||
			size > 256 {
			t.Errorf("%s takes %d bytes", change, size)
		}
	}
}

// BenchmarkLive measures the time for a patch of one change, with and without the observer's own
// work, in small and large teams.
func BenchmarkLive(b *testing.B) {
	for _, tasks := range []int{10, 10_000} {
		for _, live := range []bool{false, true} {
			b.Run(fmt.Sprintf("tasks=%d/live=%t", tasks, live), func(b *testing.B) {
				o := bigTeam(b, tasks)
				l, _ := present.NewLive(o)
				bytes, n := 0, tasks
				for b.Loop() {
					n++
					seen := calls(b, o, n, "TaskUpdate", fmt.Sprintf(`{"taskId":"%d","subject":"subject %d"}`,
						n%tasks+1, n), `{"success":true}`)
					if live {
						line, _ := json.Marshal(l.Next(o, seen.Records))
						bytes += len(line)
					}
				}
				b.ReportMetric(float64(bytes)/float64(n-tasks), "bytes/change")
			})
		}
	}
}
