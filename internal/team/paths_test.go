package team

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// several is a team whose members work in its directory, but for cy, who has a worktree.
func several(t fataler) (*State, []*Record) {
	s := &State{}
	var records []*Record
	for i, c := range []Command{
		{Actor: User, Body: &CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"}},
		{Actor: "lead", Body: &SpawnMember{Name: "ann", Agent: External, Role: "r"}},
		{Actor: "lead", Body: &SpawnMember{Name: "bob", Agent: External}},
		{Actor: "lead", Body: &SpawnMember{Name: "cy", Agent: Claude, Isolation: Worktree, Role: "r"}},
	} {
		c.ID = fmt.Sprint("several", i)
		d, err := Decide(s, c)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s.Apply(d.Record)
		records = append(records, d.Record)
	}
	return s, records
}

// TestRandomPaths plays histories of claims in which most tasks have paths, and compares them with
// the naive model after each command.
func TestRandomPaths(t *testing.T) {
	soak.Long(t)
	random := rand.New(rand.NewPCG(16, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	paths := func() (all []string) {
		for range random.IntN(3) {
			all = append(all, pick("a", "a/x", "a/y", "*/x", "b/**", "b/z", "c", "c", "**"))
		}
		return all
	}
	seen := map[string]int{}
	for range 400 {
		s, records := several(t)
		m := newModel(t, s, records)
		for n := range 60 {
			task := fmt.Sprint(1 + random.IntN(max(1, len(s.tasks))))
			who := pick("ann", "ann", "bob", "bob", "cy", "lead")
			var body Body
			switch random.IntN(12) {
			case 0, 1, 2, 3:
				body = &CreateTask{Subject: "x", Paths: paths(), Priority: pick("", "", "high"),
					Owner:     pick("", "", "", "ann", "cy"),
					BlockedBy: []string{task}[:random.IntN(8)/7*min(1, len(s.tasks))]}
			case 4, 5, 6:
				body = &ClaimTask{Task: pick("", task)}
			case 7:
				body = &CompleteTask{Task: task}
			case 8:
				body = &ReleaseTask{Task: task}
			case 9:
				body = &ClaimPaths{Paths: paths()}
			case 10:
				body = &ReleasePaths{Paths: paths()}
			case 11:
				now := paths()
				body, who = &UpdateTask{Task: task, Paths: &now}, "lead"
			}
			c := Command{ID: fmt.Sprint(n), Actor: who, At: Time(n), Body: body}
			d, err := Decide(s, c)
			m.judge(t, c, d, err)
			m.judgePaths(t, c, err)
			switch {
			case err != nil:
				seen[fmt.Sprintf("%T %s", body, CodeOf(err))]++
				continue
			case d.Record == nil:
				continue
			}
			seen[fmt.Sprintf("%T", body)]++
			s.Apply(d.Record)
			m.apply(t, d.Record)
			if err := invariants(s); err != nil {
				t.Fatalf("after %T %+v: %v", body, body, err)
			}
			m.compare(t, s)
			again := reopened(t, s)
			m.compare(t, again)
		}
	}
	for _, what := range []string{"*team.ClaimTask not_ready", "*team.ClaimPaths conflict", "*team.ClaimPaths",
		"*team.ReleasePaths"} {
		if seen[what] < 50 {
			t.Errorf("%s came %d times: the histories are too tame\n%v", what, seen[what], seen)
		}
	}
}

// judgePaths checks an answer to a command about paths.
func (m *model) judgePaths(t fataler, c Command, err error) {
	b, ok := c.Body.(*ClaimPaths)
	if !ok || m.tree[c.Actor] {
		return
	}
	free := true
	mine := slices.DeleteFunc(slices.Clone(m.order), func(id string) bool {
		return m.tasks[id].status != InProgress || m.tasks[id].owner != c.Actor
	})
	if len(mine) != 1 {
		return
	}
	added := slices.DeleteFunc(slices.Clone(b.Paths), func(p string) bool {
		return slices.Contains(m.tasks[mine[0]].holds, strings.TrimSuffix(p, "/**"))
	})
	for _, id := range m.order {
		o := m.tasks[id]
		ahead := m.ahead(id, "anyone")
		free = free && !(o.status == InProgress && o.owner != c.Actor && !m.tree[o.owner] && meets(added, o.holds)) &&
			!(len(ahead) > 0 && o.owner != c.Actor && !slices.Contains(ahead, mine[0]) && meets(added, o.paths))
	}
	if (CodeOf(err) == Conflict) == free {
		t.Fatalf("%s adds %v to task %s: %v", c.Actor, added, mine[0], err)
	}
}

// TestNothingStarves: a task with many paths gets its turn, however many later ones come.
func TestNothingStarves(t *testing.T) {
	s, _ := several(t)
	n := 0
	do := func(actor string, body Body) error {
		n++
		d, err := Decide(s, Command{ID: fmt.Sprint("s", n), Actor: actor, Body: body})
		if err == nil && d.Record != nil {
			s.Apply(d.Record)
		}
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(do("lead", &CreateTask{Subject: "first", Paths: []string{"src/a"}}))
	must(do("ann", &ClaimTask{Task: "1"}))
	must(do("lead", &CreateTask{Subject: "wide", Paths: []string{"src"}}))
	for i := range 20 {
		must(do("lead", &CreateTask{Subject: "narrow", Paths: []string{fmt.Sprint("src/b", i)}}))
		if err := do("bob", &ClaimTask{}); CodeOf(err) != Nothing {
			t.Fatalf("bob claims past the wide task: %v", err)
		}
	}
	must(do("ann", &CompleteTask{Task: "1"}))
	must(do("bob", &ClaimTask{}))
	if task, _ := s.Task("2"); task.Owner != "bob" {
		t.Errorf("the wide task is %s of %q", task.Status, task.Owner)
	}
}

// BenchmarkClaimPaths decides and applies claims of the next of 10,000 tasks, without paths, and
// with paths while eight members hold some.
func BenchmarkClaimPaths(b *testing.B) {
	for _, kind := range []string{"without", "with", "held up"} {
		b.Run(kind, func(b *testing.B) {
			s := manyPaths(b, kind)
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				c := Command{ID: fmt.Sprint("b", i), Actor: "m9", Body: &ClaimTask{}}
				d, err := Decide(s, c)
				if err != nil {
					b.Fatal(err)
				}
				s.Apply(d.Record)
				d, err = Decide(s, Command{ID: fmt.Sprint("r", i), Actor: "m9",
					Body: &ReleaseTask{Task: taskOf(d.Record)}})
				if err != nil {
					b.Fatal(err)
				}
				s.Apply(d.Record)
			}
		})
	}
}

func taskOf(r *Record) string { return r.Events[0].(*TaskClaimed).Task }

// manyPaths is a team with 10,000 tasks, of which eight are in progress. Held up are the first
// thousand of the others, if that is the kind.
func manyPaths(t fataler, kind string) *State {
	s := &State{}
	n := 0
	do := func(actor string, body Body) {
		n++
		d, err := Decide(s, Command{ID: fmt.Sprint("c", n), Actor: actor, Body: body})
		if err != nil {
			t.Fatalf("%v", err)
		}
		s.Apply(d.Record)
	}
	do(User, &CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"})
	for i := range 9 {
		do("lead", &SpawnMember{Name: fmt.Sprint("m", i+1), Agent: External})
	}
	for i := range 10_000 {
		task := &CreateTask{Subject: "x"}
		switch {
		case kind == "held up" && i >= 8 && i < 1008:
			task.Paths = []string{fmt.Sprintf("src/p0/f%d.go", i)}
		case kind != "without":
			task.Paths = []string{fmt.Sprintf("src/p%d/**", i)}
		}
		do("lead", task)
	}
	for i := range 8 {
		do(fmt.Sprint("m", i+1), &ClaimTask{})
	}
	return s
}

// TestWritesFromATeam: what refuses a write is told in the words of who reads it: a member of the
// team that a member is, or one that asks for a path of such a team.
func TestWritesFromATeam(t *testing.T) {
	s := &State{}
	do := func(actor string, body Body) error {
		t.Helper()
		d, err := Decide(s, Command{ID: fmt.Sprint(s.seq), Actor: actor, At: 1000, Body: body})
		if err == nil && d.Record != nil {
			s.Apply(d.Record)
		}
		return err
	}
	for _, c := range []Command{
		{Actor: User, Body: &CreateTeam{TeamID: "up-1", Name: "up", Dir: "/w", MaxDepth: 1}},
		{Actor: User, Body: &SpawnMember{Name: "sub", Agent: NestedTeam, Nested: &Nested{Goal: "build"}}},
		{Actor: User, Body: &SpawnMember{Name: "ann", Agent: External}},
		{Actor: User, Body: &CreateTask{Subject: "one", Owner: "sub", Paths: []string{"src"}}},
		{Actor: User, Body: &CreateTask{Subject: "two", Owner: "ann", Paths: []string{"docs"}}},
		{Actor: "sub", Body: &ClaimTask{}}, {Actor: "ann", Body: &ClaimTask{}},
	} {
		if err := do(c.Actor, c.Body); err != nil {
			t.Fatalf("%T: %v", c.Body, err)
		}
	}
	said := func(err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("it says %v\nwant    %s", err, want)
		}
	}
	said(s.MayWrite("sub", "docs/a"),
		`"docs/a" belongs to task 2 of team up while ann works on it (docs). Do something else first`)
	if err := do("sub", &BeginChild{Task: "1", Team: "c1", Name: "c1", Lead: "claude"}); err != nil {
		t.Fatal(err)
	}
	said(s.MayWrite("sub", "docs/a"), `"docs/a" belongs to task 2 of team up while ann works on it (docs). Do something `+
		`else first, or have the lead of your team write to parent`)
	said(s.MayWrite("ann", "src/a"),
		`"src/a" belongs to task 1 while sub works on it (src). Ask lead with a message, or do something else first`)
	said(do("ann", &ClaimPaths{Paths: []string{"src/*.go"}}),
		"src/*.go has files in common with src of task 1, on which sub works. Ask lead to give src back, or do something else first")
}
