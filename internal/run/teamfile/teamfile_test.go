package teamfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cadre/internal/run/teamfile"
	"cadre/internal/testkit/golden"
)

var agents = []teamfile.Agent{{Name: "shell", CommandsOnly: true}, {Name: "external"},
	{Name: "team", Nests: true, FollowsOnly: true}}

func TestParse(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := teamfile.Parse(data, "full.yaml", agents)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Digest()) != 64 {
		t.Errorf("digest %q", f.Digest())
	}
	got := *f
	want := teamfile.File{
		Name: "full", Goal: "use every key\n", Lead: "boss",
		Members: []teamfile.Member{
			{Name: "solo", Agent: "external", Role: "thinker", Prompt: "think first"},
			{Name: "hand-1", Agent: "shell", Role: "doer", Prompt: "be brief"},
			{Name: "hand-2", Agent: "shell", Role: "doer", Prompt: "be brief"},
		},
		Tasks: []teamfile.Task{
			{ID: "last", Subject: "The end", BlockedBy: []string{"2", "think"}, Owner: "hand-2", Run: "echo done",
				Priority: "low", Timeout: 90 * time.Second, Retries: 3},
			{ID: "think", Subject: "think", Description: "deeply", Owner: "solo", Priority: "high",
				Timeout: 10 * time.Minute, Retries: 1},
			{ID: "2", Subject: "2", Role: "doer", Run: "set -e\nprintf '%s\\n' \"a  b\"\n\techo tab\n",
				Priority: "high",
				Timeout:  10 * time.Minute, Retries: 1},
		},
		Hooks: teamfile.Hooks{
			"TaskCompleted": {{Matcher: "*", Hooks: []teamfile.HookCommand{{Command: "make test", Timeout: time.Minute},
				{Command: "be brief"}}}},
			"TeammateIdle": {{Hooks: []teamfile.HookCommand{{Command: "true", Timeout: 500 * time.Millisecond}}}},
		},
		Checks: []teamfile.Check{{Name: "make build", Run: "make   build"}, {Name: "test", Run: "make test",
			Timeout: 10 * time.Minute}},
		Clean: true, CheckChanges: true,
		Budget: teamfile.Budget{Tokens: 1_000_000, CostMicroUSD: 2_500_000, Time: 30 * time.Minute},
		Liveness: teamfile.Liveness{Beat: time.Second, Offline: 4 * time.Second, LeadLost: 3 * time.Second,
			Zombie: time.Minute, Blocked: 20 * time.Second,
			Undelivered: 500 * time.Millisecond, Stale: 2 * time.Minute, Checkpoint: 5 * time.Second},
		Facts: []teamfile.Fact{{Name: "go.mod", Path: "go.mod"}, {Name: "db/schema.sql", Path: "db/schema.sql"},
			{Name: "hosts", Path: "/etc/hosts"}},
		Report:   teamfile.Report{File: "out/REPORT.md", Title: "All of it", Sections: []string{"last", "2"}},
		Metadata: map[string]json.RawMessage{"release": []byte(`"1.4"`), "tickets": []byte(`[7,{"of":"us"}]`)},
	}
	want.SetDigest(got.Digest())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var order []string
	for _, task := range f.Order() {
		order = append(order, task.ID)
	}
	if want := []string{"think", "2", "last"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestSmallestFile(t *testing.T) {
	f, err := teamfile.Parse([]byte("name: a\nmembers: [{name: w}]\ntasks: [{id: one, run: 'true'}]"), "a.yaml", agents)
	if err != nil {
		t.Fatal(err)
	}
	if f.Lead != "lead" || f.Members[0].Agent != "shell" || f.Tasks[0].Priority != "medium" ||
		f.Tasks[0].Timeout != 0 ||
		!slices.Equal(f.Report.Sections, []string{"one"}) {
		t.Errorf("%+v", f)
	}
}

// TestErrors: each testdata/errors/*.yaml is a broken file; the .txt beside it has the errors that
// a person sees.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := teamfile.Parse(data, filepath.Base(file), agents)
			if f != nil || err == nil {
				t.Fatalf("read without an error: %+v", f)
			}
			var one *teamfile.Error
			if !errors.As(err, &one) || one.Line == 0 || one.Column == 0 {
				t.Errorf("no position: %#v", err)
			}
			golden.File(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// TestHostileFiles has files that are awkward to keep on disk, and how their errors must begin.
func TestHostileFiles(t *testing.T) {
	head := "name: a\nmembers: [{name: w}]\n"
	tail := "\ntasks: [{id: a, run: x}]\n"
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	bomb := "a0: &a0 [x, x]\n" + many(40, func(i int) string {
		return fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n",
			i+1, i+1, i, i)
	})
	for _, c := range []struct{ name, data, want string }{
		{"no bytes", "", "f:1:1: the file is empty"},
		{"only a comment", "# nothing\n", "f:1:1: the file is empty"},
		{"only a separator", "---\n", "f:1:1: the file is empty"},
		{"latin 1", "name: caf\xe9\n", "f:1:10: the byte 0xe9 is not UTF-8"},
		{"binary", "name: a\n\x7fELF\x00", "f:2:1: the control character '\\x7f'"},
		{"UTF-16", "\xff\xfen\x00", "f:1:1: the byte 0xff is not UTF-8"},
		{"too large a file", head + strings.Repeat("# comment\n", 2<<20), "f:1:1: the file has 20971549 bytes; a " +
			"team file has at most 16777216"},
		{"too large a text", head + "goal: " + strings.Repeat("x", 1<<20+1) + tail, "f:3:7: goal has 1048577 bytes; " +
			"a text has at most 1048576"},
		{"NUL in an escape", head + "tasks: [{id: a, run: \"a\\0b\"}]", "f:3:22: run holds a NUL character"},
		{"too many tasks", head + "tasks:\n" + many(10_001,
			func(i int) string { return fmt.Sprintf("- {id: t%d, run: x}\n", i) }),
			"f:10004:3: the file has 10001 tasks; a team has at most 10000"},
		{"too many members", "name: a\nmembers:\n- {name: w, count: 1000}\n- name: v\ntasks: [{id: a, run: x}]",
			"f:4:3: with this the team has 1001 members"},
		{"alias bomb", bomb, "f:1:1: unknown key \"a0\""},
		{"alias bomb in a task", head + "tasks:\n- id: a\n  run: x\n  blockedBy: &b [a, *b, *b]\n",
			"f:6:18: task \"a\" is blocked by itself"},
		{"brackets", strings.Repeat("[", 1<<20), "f:1:"},
		{"braces", "a: " + strings.Repeat("{a: ", 100_000), "f:1:"},
		{"dashes", strings.Repeat("- ", 100_000), "f:1:"},
		{"long line", head + "goal: {" + strings.Repeat("é\t", 100_000), "f:3:"},
		{"all tasks wait for all", head + "tasks:\n" + many(500, func(i int) string {
			return fmt.Sprintf("- {id: t%d, run: x, blockedBy: [%s t0]}\n", i,
				many(500, func(j int) string { return fmt.Sprintf("t%d, ", j) }))
		}), "f:4:32: task \"t0\" is blocked by itself"},
		{"a ring of all tasks", head + "tasks:\n" + many(10_000, func(i int) string {
			return fmt.Sprintf("- {id: t%d, run: x, blockedBy: [t%d]}\n", i, (i+1)%10_000)
		}), "f:4:32: these tasks wait for each other: t0 → t1 → t2"},
		{"10,000 unknown blockers", head + "tasks:\n" + many(10_000, func(i int) string {
			return fmt.Sprintf("- {id: task-number-%d, run: x, blockedBy: [task-number-x%d]}\n", i, i)
		}), "f:4:43: task \"task-number-0\" is blocked by \"task-number-x0\", which is not the id of a task; did you " +
			"mean \"task-number-0\"?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := teamfile.Parse([]byte(c.data), "f", agents)
			if f != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %.300v, want %s", err, c.want)
			}
			if err != nil && len(err.Error()) > 64<<10 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestOrderProperties: Order keeps a file's order where it can, and puts every blocker before the
// tasks that it blocks.
func TestOrderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		rank := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range n {
				if !yield(i) {
					return
				}
			}
		})).Draw(t, "rank")
		var b strings.Builder
		b.WriteString("name: a\nmembers: [{name: w}]\ntasks:\n")
		forward := true // every blocker already comes first in the file
		for i := range n {
			var blockers []string
			for j := range n {
				if rank[j] < rank[i] && rapid.Bool().Draw(t, "edge") {
					blockers = append(blockers, fmt.Sprintf("t%d", j))
					forward = forward && j < i
				}
			}
			fmt.Fprintf(&b, "- {id: t%d, run: x, blockedBy: [%s]}\n", i, strings.Join(blockers, ", "))
		}
		f, err := teamfile.Parse([]byte(b.String()), "f", agents)
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		order := f.Order()
		at := map[string]int{}
		for i, task := range order {
			at[task.ID] = i
		}
		if len(at) != n {
			t.Fatalf("%d of %d tasks in %v", len(at), n, order)
		}
		for _, task := range order {
			for _, blocker := range task.BlockedBy {
				if at[blocker] > at[task.ID] {
					t.Fatalf("%s comes before its blocker %s", task.ID, blocker)
				}
			}
		}
		if forward && !reflect.DeepEqual(order, f.Tasks) {
			t.Fatalf("a file in order was reordered: %v", order)
		}
	})
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/errors/*.yaml")
	for _, file := range append(files, "testdata/full.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := teamfile.Parse(data, "f", agents)
		if err == nil {
			if len(file.Order()) != len(file.Tasks) {
				t.Error("Order lost a task")
			}
			return
		}
		lines := bytes.Count(data, []byte("\n")) + 1
		for _, other := range []string{"\r", "\u0085", "\u2028", "\u2029"} { // line breaks in YAML too
			lines += bytes.Count(data, []byte(other))
		}
		for _, e := range err.(teamfile.Errors) {
			if e.Line < 1 || e.Line > lines+1 || e.Column < 1 {
				t.Errorf("no place in the file: %v", e)
			}
		}
		_ = err.Error()
	})
}
