package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"cadre/internal/render"
	"cadre/internal/team"

	"pgregory.net/rapid"
)

func tasks(all ...team.Task) func(func(team.Task) bool) { return slices.Values(all) }

func text(g Graph) string {
	var b strings.Builder
	for _, l := range g.Lines {
		b.WriteString("\n" + l.Text())
	}
	if g.Omitted != "" {
		b.WriteString("\n" + g.Omitted)
	}
	return b.String()
}

func TestDraw(t *testing.T) {
	diamond := []team.Task{
		{ID: "1", Name: "lint", Subject: "lint", Status: team.Completed},
		{ID: "2", Name: "build", Subject: "build it", Status: team.InProgress},
		{ID: "3", Subject: "test", Status: team.Pending, BlockedBy: []string{"1"}},
		{ID: "4", Name: "ship", Subject: "ship", Status: team.Pending, BlockedBy: []string{"1", "2", "3"}},
		{ID: "5", Subject: "deleted", Status: team.Deleted, BlockedBy: []string{"1"}},
		{ID: "6", Subject: "alone\x1b[2J and\nhostile", Status: team.Pending, Failure: "exit 1", Failures: 1},
	}
	chain := []team.Task{}
	for i := 1; i <= 5; i++ {
		one := team.Task{ID: strconv.Itoa(i), Subject: "步骤" + strconv.Itoa(i), Status: team.Pending}
		if i > 1 {
			one.BlockedBy = []string{strconv.Itoa(i - 1)}
		}
		chain = append(chain, one)
	}
	// Four tasks that others wait for at the same time.
	wide := []team.Task{}
	for i := 1; i <= 4; i++ {
		wide = append(wide, team.Task{ID: strconv.Itoa(i), Subject: "first", Status: team.Completed,
			CompletedAt: team.Time(i)})
	}
	for i := 5; i <= 8; i++ {
		wide = append(wide, team.Task{ID: strconv.Itoa(i), Subject: "then", Status: team.Pending,
			BlockedBy: []string{strconv.Itoa(i - 4), "4"}})
	}
	for name, c := range map[string]struct {
		tasks   []team.Task
		options Options
		want    string
	}{
		"nothing": {nil, Options{Columns: 40}, ``},
		"diamond": {diamond, Options{Columns: 40}, `
┬───── ✓ lint
│ ┬─── ▸ build build it
└─│─┬→ · #3 test
  └─┴→ · ship
       ✗ #6 alone␛[2J and↵hostile`},
		"ascii": {diamond, Options{Columns: 40, Plain: true}, "\n+----- v lint\n| +--- > build build it\n`-|-+> . #3 test\n  `-'> . ship\n       x #6 alone␛[2J and↵hostile"},
		"chain": {chain, Options{Columns: 18}, `
┬─ · #1 步骤1
└→ · #2 步骤2
┬─ · #3 (after #2…
└→ · #4 步骤4
   · #5 (after #4…
2 of 4 dependencies have no line, because there is no room.`},
		"wide": {wide, Options{Columns: 40}, `
┬─────── ✓ #1 first
│ ┬───── ✓ #2 first
│ │ ┬─── ✓ #3 first
│ │ │ ┬─ ✓ #4 first
└─│─│─┼→ · #5 then
  └─│─┼→ · #6 then
    └─┼→ · #7 then
      └→ · #8 then`},
		"narrow": {wide, Options{Columns: 20}, `
┬─── ✓ #1 first
│ ┬─ ✓ #2 first
│ │  ✓ #3 first
│ │  ✓ #4 first
└─│→ · #5 (after #4…
  └→ · #6 (after #4…
     · #7 (after #3…
     · #8 (after #4…
5 of 7 dependencies have no line, because there is no room.`},
		"few": {wide, Options{Columns: 60, Most: 6}, `
┬─── ✓ #3 first
│ ┬─ ✓ #4 first
│ ├→ · #5 then
│ ├→ · #6 then
└─┼→ · #7 then
  └→ · #8 then
2 tasks are not shown (2 completed). 2 of the dependencies lead to them.`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(Draw(tasks(c.tasks...), c.options)); got != c.want {
				t.Errorf("it is%s\nnot%s", got, c.want)
			}
		})
	}
}

// TestEdges reads the drawn characters back: the lanes that a line takes up are those of the tasks
// that it waits for, up to edges that follow from others and those that are counted as not drawn.
func TestEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "tasks")
		names := rapid.SampledFrom([]string{"x", "步骤", "👩‍👩‍👧‍👦 family", "e\u0301e\u0301",
			"a long name that is cut somewhere", ""})
		var all []team.Task
		for i := 1; i <= n; i++ {
			one := team.Task{ID: strconv.Itoa(i), Subject: names.Draw(t, "name"), Status: rapid.SampledFrom(
				[]team.TaskStatus{team.Pending, team.InProgress, team.Completed, team.Deleted}).Draw(t, "status")}
			for range rapid.IntRange(0, 3).Draw(t, "edges") {
				if i > 1 {
					one.BlockedBy = append(one.BlockedBy, strconv.Itoa(rapid.IntRange(1, i-1).Draw(t, "blocker")))
				}
			}
			all = append(all, one)
		}
		// Ids say nothing of the direction: the last task may be the first that others wait for.
		if rapid.Bool().Draw(t, "backwards") {
			turn := func(id string) string { k, _ := strconv.Atoi(id); return strconv.Itoa(n + 1 - k) }
			for i := range all {
				all[i].ID = turn(all[i].ID)
				for j := range all[i].BlockedBy {
					all[i].BlockedBy[j] = turn(all[i].BlockedBy[j])
				}
			}
		}
		o := Options{Columns: rapid.IntRange(0, 120).Draw(t, "columns"), Plain: rapid.Bool().Draw(t, "plain")}
		g := Draw(tasks(all...), o)
		byID := map[string]team.Task{}
		there := 0
		for _, one := range all {
			if one.Status != team.Deleted {
				byID[one.ID] = one
				there++
			}
		}
		if len(g.Lines) != min(there, Most) || (there > Most) != strings.Contains(g.Omitted, "not shown") {
			t.Fatalf("%d lines for %d tasks, %q", len(g.Lines), there, g.Omitted)
		}
		shown := map[string]bool{}
		for _, l := range g.Lines {
			if shown[l.Task] || byID[l.Task].ID == "" {
				t.Fatalf("line %q is not a task, or its task is shown twice", l.Task)
			}
			shown[l.Task] = true
		}
		signs := &drawn
		if o.Plain {
			signs = &ascii
		}
		// waits has the drawn edges.
		waits := map[string][]string{}
		open := map[int]string{}
		undrawn := 0
		for _, l := range g.Lines {
			if width := render.Width(l.Text()); width > max(o.Columns, Least) {
				t.Fatalf("%q is %d columns wide, not %d", l.Text(), width, o.Columns)
			}
			if o.Plain {
				for _, r := range l.Lanes {
					if r > utf8.RuneSelf {
						t.Fatalf("%q", l.Lanes)
					}
				}
			}
			undrawn += len(l.Waits)
			for _, ref := range l.Waits {
				waits[l.Task] = append(waits[l.Task], strings.TrimPrefix(ref, "#"))
			}
			if o.Plain {
				continue // one character stands for several
			}
			for i, r := range []rune(l.Lanes) {
				if i%2 == 1 || i/2*2 == len([]rune(l.Lanes))-1 {
					continue
				}
				column := i / 2
				switch sign := string(r); sign {
				case signs.open:
					open[column] = l.Task
				case signs.takeFirst, signs.take, signs.closeFirst, signs.close:
					if open[column] == "" {
						t.Fatalf("%q takes up a lane that is not open in column %d", l.Lanes, column)
					}
					waits[l.Task] = append(waits[l.Task], open[column])
					if sign == signs.closeFirst || sign == signs.close {
						open[column] = ""
					}
				case signs.pass:
					if open[column] == "" {
						t.Fatalf("%q passes a lane that is not open in column %d", l.Lanes, column)
					}
				default:
					if open[column] != "" {
						t.Fatalf("%q loses the lane of %s", l.Lanes, open[column])
					}
				}
			}
		}
		if (undrawn > 0) != strings.Contains(g.Omitted, "because there is no room") {
			t.Fatalf("%d edges are not drawn: %q", undrawn, g.Omitted)
		}
		if o.Plain {
			return
		}
		// before returns all tasks that the task waits for, over any number of edges.
		closure := func(edges func(string) []string, id string) map[string]bool {
			seen := map[string]bool{}
			var visit func(string)
			visit = func(id string) {
				for _, b := range edges(id) {
					if shown[b] && !seen[b] {
						seen[b] = true
						visit(b)
					}
				}
			}
			visit(id)
			return seen
		}
		for id := range shown {
			want := closure(func(id string) []string { return byID[id].BlockedBy }, id)
			got := closure(func(id string) []string { return waits[id] }, id)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("task %s waits for %v, drawn as %v:%s", id, want, got, text(g))
			}
		}
	})
}

// TestStates: a task of every state has its place and its sign in the graph.
func TestStates(t *testing.T) {
	for i, state := range team.TaskStates {
		if !slices.Contains(states, state) || drawn.states[state] == "" || ascii.states[state] == "" {
			t.Errorf("state %d, %s, has no place or no sign", i, state)
		}
	}
	skipped := team.Task{ID: "1", Subject: "tidy up", Status: team.Completed, Skipped: "nothing failed"}
	if got := text(Draw(tasks(skipped), Options{Columns: 40})); got != "\n- #1 tidy up" {
		t.Errorf("a skipped task is drawn as %q", got)
	}
}
