package run

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// made is a team that was made from a file, without a journal.
type made struct {
	*testing.T
	dir   string
	state *team.State
	seq   int
}

func (m *made) parse(text string, set ...teamfile.Setting) *teamfile.File {
	m.Helper()
	f, err := teamfile.ParseWith([]byte(text), "team.yaml", []teamfile.Agent{{Name: team.Shell, CommandsOnly: true},
		{Name: team.External}, {Name: team.Claude}, {Name: team.Codex}}, set)
	if err != nil {
		m.Fatal(err)
	}
	return f
}

func (m *made) do(actor string, body team.Body) error {
	m.Helper()
	m.seq++
	d, err := team.Decide(m.state, team.Command{ID: fmt.Sprint("c", m.seq), Actor: actor, At: team.Time(1000 + m.seq),
		Body: body})
	if err == nil && d.Record != nil {
		m.state.Apply(d.Record)
	}
	return err
}

func (m *made) must(actor string, body team.Body) {
	m.Helper()
	if err := m.do(actor, body); err != nil {
		m.Fatalf("%T %+v: %v", body, body, err)
	}
}

func makeTeam(t *testing.T, text string) *made {
	t.Helper()
	m := &made{T: t, dir: t.TempDir(), state: &team.State{}}
	a := &attempt{Options: Options{Engine: &engine.Engine{Home: layout.Home{Root: filepath.Join(t.TempDir(), "cadre")}},
		File: m.parse(text), Path: "/team.yaml", Dir: m.dir, Agent: nil}}
	a.Agent = a.Engine.Agents.Agent
	f := a.File
	m.must(team.User, &team.CreateTeam{TeamID: "t", Name: f.Name, Goal: f.Goal, Dir: m.dir, Lead: f.Lead,
		Hooks: Hooks(f.Hooks), Checks: checks(f.Checks), Budget: team.Budget(f.Budget), Origin: "/team.yaml",
		Metadata: f.Metadata, MaxTeammates: int64(f.MaxTeammates), OriginDigest: f.Digest(), FileDigests: saidOfTeam(f).digests(),
		LeadAgent: f.Leader.Agent, LeadDigests: saidOfMember(f.Leader).digests()})
	for _, one := range f.Members {
		m.must(team.User, spawn(one))
	}
	for _, one := range Tasks(f) {
		m.must(team.User, one)
	}
	return m
}

// lines describes the changes, one a line.
func lines(c Changes) (all []string) {
	for _, one := range c.All {
		line := one.Does + " " + one.What + " " + one.Name
		for _, k := range one.Keys {
			line += fmt.Sprintf(" %s(%s→%s)", k.Key, k.From, k.To)
		}
		if one.Why != "" {
			line += ": " + one.Why
		}
		all = append(all, line)
	}
	return all
}

func (m *made) compare(text string, redo ...string) Changes {
	m.Helper()
	f := m.parse(text)
	var facts []team.Fact
	for _, one := range f.Facts {
		facts = append(facts, team.Fact{Name: one.Name, Path: one.Path, SHA256: strings.Repeat("0", 64)})
	}
	c, err := Compare(m.state, f, facts, true, redo)
	if err != nil {
		m.Fatal(err)
	}
	return c
}

// TestChangeOfAnAbandonedTask checks the refusal to change a task in progress whose member no
// process runs: it says to release the task, because nothing ends it.
func TestChangeOfAnAbandonedTask(t *testing.T) {
	t.Parallel()
	m := makeTeam(t, "name: demo\nmembers: [{name: ann}, {name: eve, agent: external}]\n"+
		"tasks: [{id: a, run: echo a}, {id: b, owner: eve}]")
	m.must(team.User, &team.ClaimTask{Task: "1", Member: "ann"})
	m.must(team.User, &team.ClaimTask{Task: "2", Member: "eve"})
	f := m.parse("name: demo\nmembers: [{name: ann}, {name: eve, agent: external}]\n" +
		"tasks: [{id: a, run: echo A}, {id: b, owner: eve, priority: high}]")
	c, err := Compare(m.state, f, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := c.Refused()
	if refused == nil || !strings.Contains(refused.Error(), "is in progress by ann; no process runs ann now, so release "+
		"it first") || !strings.Contains(refused.Error(), "is in progress by eve; let it end, or release it first") {
		t.Error(refused)
	}
	if hints := team.HintsOf(refused); len(hints) != 2 || hints[0].Action != team.ActRetryTask {
		t.Errorf("the hints are %+v", hints)
	}
}

// apply compares, checks what is found, and applies it.
func (m *made) apply(text string, redo []string, want ...string) {
	m.Helper()
	c := m.compare(text, redo...)
	if got := lines(c); !slices.Equal(got, want) {
		m.Fatalf("the changes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c.Refused() != nil {
		return
	}
	m.must(team.User, &team.Batch{Bodies: c.commands})
	if again := m.compare(text); len(again.All) > 0 {
		m.Fatalf("applied, these changes are left: %v", lines(again))
	}
}

func (m *made) task(name string) team.Task {
	m.Helper()
	t, err := m.state.Find(name)
	if err != nil {
		m.Fatal(err)
	}
	return t
}

// file returns a team file with those members of members and tasks.
func file(members, tasks string, more ...string) string {
	return "name: demo\n" + strings.Join(more, "\n") + "\nmembers: [" + members + "]\ntasks: [" + tasks + "]\n"
}

const ann = "{name: ann, agent: shell}"

func TestOnlyTheFormOfAFileChanged(t *testing.T) {
	t.Parallel()
	m := makeTeam(t, file(ann, "{id: a, run: echo a}"))
	text := "# a comment\n" + file(ann, `{id: a, run: "echo a", priority: medium, subject: a}`)
	m.apply(text, nil)
	if m.state.Team().OriginDigest != m.parse(text).Digest() {
		t.Error("the new digest is not recorded")
	}
}

func TestChangedTasks(t *testing.T) {
	t.Parallel()
	const before = "{id: a, run: echo a, timeout: 1m}, {id: b, run: echo b, blockedBy: [a]}, {id: c, run: echo c}"
	for name, one := range map[string]struct {
		before  func(m *made)
		redo    []string
		tasks   string
		changes []string
		check   func(m *made)
	}{
		"added": {tasks: before + ", {id: d, run: echo d, blockedBy: [c]}", changes: []string{"add task d"},
			check: func(m *made) {
				if d := m.task("d"); !slices.Equal(d.BlockedBy, []string{"3"}) || d.Run != "echo d" {
					m.Errorf("it is %+v", d)
				}
			}},
		"pending": {tasks: "{id: a, run: echo A}, {id: b, run: echo b, blockedBy: [a]}, {id: c, run: echo c}",
			changes: []string{"change task a run(echo a→echo A) timeout(1 min→)"},
			check: func(m *made) {
				if a := m.task("a"); a.Run != "echo A" || a.Timeout != 0 {
					m.Errorf("it is %+v", a)
				}
			}},
		"removed": {tasks: "{id: b, run: echo b}, {id: c, run: echo c}",
			changes: []string{"remove task a", "change task b blockedBy(a→)"},
			check: func(m *made) {
				if a := m.task("a"); a.Status != team.Deleted {
					m.Errorf("it is %+v", a)
				}
			}},
		"a renamed task is another one": {tasks: "{id: a, run: echo a, timeout: 1m}, {id: b, run: echo b, blockedBy: " +
			"[a]}, {id: cc, run: echo c}", changes: []string{"remove task c", "add task cc"}},
		"what people changed stays": {
			before: func(m *made) {
				high, say := "high", "echo by hand"
				m.must(team.User, &team.UpdateTask{Task: "1", Priority: &high})
				m.must(team.User, &team.UpdateTask{Task: "3", Run: &say})
			},
			tasks: "{id: a, run: echo A, timeout: 1m}, {id: b, run: echo b, blockedBy: [a]}, " +
				"{id: c, run: echo c}",
			changes: []string{"change task a run(echo a→echo A)"},
			check: func(m *made) {
				if a, c := m.task("a"), m.task("c"); a.Priority != "high" || c.Run != "echo by hand" {
					m.Errorf("they are %+v and %+v", a, c)
				}
			}},
		"in progress": {before: func(m *made) { m.must(team.User, &team.ClaimTask{Task: "1", Member: "ann"}) },
			tasks: "{id: a, run: echo A, timeout: 1m}, {id: b, run: echo b, blockedBy: [a]}, {id: c, run: echo c}",
			changes: []string{"refuse task a: task a changed in the file (run), and is in progress by ann; let it end, " +
				"or release it first"}},
		"in progress and removed": {before: func(m *made) { m.must(team.User, &team.ClaimTask{Task: "3", Member: "ann"}) },
			tasks: "{id: a, run: echo a, timeout: 1m}, {id: b, run: echo b, blockedBy: [a]}",
			changes: []string{"refuse task c: task c is no longer in the file, and is in progress by ann; let it end, " +
				"or release it first"}},
		"the order of two is turned round": {
			tasks:   "{id: a, run: echo a, timeout: 1m, blockedBy: [b]}, {id: b, run: echo b}, {id: c, run: echo c}",
			changes: []string{"change task b blockedBy(a→)", "change task a blockedBy(→b)"},
			check: func(m *made) {
				if a, b := m.task("a"), m.task("b"); !slices.Equal(a.BlockedBy, []string{"2"}) || len(b.BlockedBy) > 0 {
					m.Errorf("they wait for %v and %v", a.BlockedBy, b.BlockedBy)
				}
			}},
		"one by hand waits for a removed one": {
			before: func(m *made) {
				m.must(team.User, &team.CreateTask{Name: "mine", Subject: "mine", BlockedBy: []string{"3"}})
			},
			tasks: "{id: a, run: echo a, timeout: 1m}, {id: b, run: echo b, blockedBy: [a]}",
			changes: []string{"remove task c", "refuse task c: task c is no longer in the file, and task mine, which " +
				"was added or changed by hand, waits for it; remove that dependency first"}},
		"one by hand has the name": {
			before: func(m *made) { m.must(team.User, &team.CreateTask{Name: "mine", Subject: "mine"}) },
			tasks:  before + ", {id: mine, run: echo x}",
			changes: []string{"refuse task mine: task mine was added to team demo without the file; give the one in " +
				"the file another id"}},
		"one by hand stays": {
			before: func(m *made) { m.must(team.User, &team.CreateTask{Name: "mine", Subject: "mine"}) },
			tasks:  before + ", {id: d, run: echo d}", changes: []string{"add task d"},
			check: func(m *made) { m.task("mine") }},
		"metadata": {before: func(m *made) {
			m.must(team.User, &team.UpdateTask{Task: "3", Metadata: map[string]jsonRaw{"own": jsonRaw(`1`)}})
		},
			tasks: "{id: a, run: echo a, timeout: 1m}, {id: b, run: echo b, blockedBy: [a]}, " +
				"{id: c, run: echo c, metadata: {ticket: X}}",
			changes: []string{`change task c metadata.ticket(→"X")`},
			check: func(m *made) {
				if c := m.task("c"); string(c.Metadata["ticket"]) != `"X"` || string(c.Metadata["own"]) != "1" {
					m.Errorf("it has %s", c.Metadata)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			m := makeTeam(t, file(ann, before))
			if one.before != nil {
				one.before(m)
			}
			m.apply(file(ann, one.tasks), one.redo, one.changes...)
			if one.check != nil {
				one.check(m)
			}
		})
	}
}

// TestCompletedTasksStay: a completed task that changed is kept, and done again where it is named.
func TestCompletedTasksStay(t *testing.T) {
	t.Parallel()
	m := makeTeam(t, file(ann, "{id: a, run: echo a}, {id: b, run: echo b, blockedBy: [a]}, {id: c, run: echo c}"))
	m.must(team.User, &team.ClaimTask{Task: "1", Member: "ann"})
	m.must("ann", &team.CompleteTask{Task: "1", Result: "a"})
	text := file(ann, "{id: a, run: echo A}, {id: b, run: echo b, blockedBy: [a]}, {id: c, run: echo C}")
	c := m.compare(text)
	if got := lines(c); !slices.Equal(got, []string{"keep task a run(echo a→echo A): it is completed",
		"change task c run(echo c→echo C)"}) {
		t.Fatal(got)
	}
	m.must(team.User, &team.Batch{Bodies: c.commands})
	if a := m.task("a"); a.Status != team.Completed || a.Run != "echo a" {
		t.Errorf("it is %+v", a)
	}
	m.must(team.User, &team.ClaimTask{Task: "2", Member: "ann"})
	if err := m.compare(text, "a").Refused(); err == nil || !strings.Contains(err.Error(),
		"task a cannot be done again while ann works on task b, which builds on it") {
		t.Errorf("while another builds on it: %v", err)
	}
	m.must(team.User, &team.ReleaseTask{Task: "2"})
	if m.compare(text, "a").Asks() {
		t.Error("what was agreed to is asked again")
	}
	again := text // the same file: what changed was kept until now
	m.apply(again, []string{"a"}, "redo task a run(echo a→echo A)")
	if a, b := m.task("a"), m.task("b"); a.Status != team.Pending || a.Run != "echo A" || a.Result != "" ||
		len(b.Blocked()) != 1 {
		t.Errorf("they are %+v and %+v", a, b)
	}
	const undone = "keep task a: it is not completed, so there is nothing to do again"
	if c := m.compare(again, "a"); !slices.Equal(lines(c), []string{undone}) || c.Asks() {
		t.Errorf("still to be done, it is %q", lines(c))
	}
	for _, id := range []string{"1", "2"} {
		m.must(team.User, &team.ClaimTask{Task: id, Member: "ann"})
		m.must("ann", &team.CompleteTask{Task: id, Result: "x"})
	}
	if got := lines(m.compare(again, "a")); !slices.Equal(got,
		[]string{"redo task a: b, which builds on it, stays completed"}) {
		t.Error(got)
	}
	if got := lines(m.compare(again, "a", "b")); !slices.Equal(got, []string{"redo task a", "redo task b"}) {
		t.Error(got)
	}
	if _, err := Compare(m.state, m.parse(again), nil, true, []string{"nosuch"}); team.CodeOf(err) != team.NotFound {
		t.Errorf("an unknown one: %v", err)
	}
}

// TestChangedAfterAFailure checks what is said of a changed task that failed before, and of a
// skipped one that is to be done again.
func TestChangedAfterAFailure(t *testing.T) {
	t.Parallel()
	const after = "{id: b, run: echo b, blockedBy: [a], when: failed}"
	m := makeTeam(t, file(ann, "{id: a, run: echo a}, {id: c, run: echo c}, "+after))
	for _, id := range []string{"1", "2"} {
		m.must(team.User, &team.ClaimTask{Task: id, Member: "ann"})
	}
	m.must("ann", &team.FailTask{Task: "2", Reason: "no"})
	m.must("ann", &team.CompleteTask{Task: "1", Result: "a"})
	if b := m.task("b"); b.Skipped == "" {
		t.Fatalf("it is %+v", b)
	}
	m.apply(file(ann, "{id: a, run: echo a}, {id: c, run: echo C}, "+after), nil,
		"change task c run(echo c→echo C): it failed before, and will be tried again")
	same := file(ann, "{id: a, run: echo a}, {id: c, run: echo C}, "+after)
	if c := m.compare(same, "b"); c.Asks() || !slices.Equal(lines(c),
		[]string{"redo task b: it was skipped, and runs if it still can"}) {
		t.Errorf("a skipped task is %q", lines(c))
	}
	m.must(team.User, &team.Batch{Bodies: m.compare(same, "b").commands})
	if b := m.task("b"); b.Skipped == "" { // a has not failed
		t.Errorf("it is %+v", b)
	}
}

// TestChangedParameters checks that a parameter with another value is a change, and that the team
// has the new value then.
func TestChangedParameters(t *testing.T) {
	t.Parallel()
	text := file(ann, "{id: a, run: echo a}", "parameters: {word: {default: usual}, n: {type: int, default: 1}}")
	m := makeTeam(t, text)
	set := func(word string) *teamfile.File { return m.parse(text, teamfile.Setting{Name: "word", Text: word}) }
	apply := func(f *teamfile.File, want string, values string) {
		t.Helper()
		c, err := Compare(m.state, f, nil, true, nil)
		if err != nil || len(c.All) == 0 || lines(c)[0] != want || !c.Asks() {
			t.Fatalf("the changes are %q, %v", lines(c), err)
		}
		m.must(team.User, &team.Batch{Bodies: c.commands})
		if got := fmt.Sprint(SettingsOf(m.state.Team())); got != values {
			t.Errorf("the team has %s", got)
		}
		if c, err := Compare(m.state, f, nil, true, nil); err != nil || len(c.All) > 0 {
			t.Errorf("applied, these changes are left: %q, %v", lines(c), err)
		}
	}
	apply(set("one"), "change parameter word value(usual→one)", "[{word one}]")
	apply(set("two"), "change parameter word value(one→two)", "[{word two}]")
	apply(m.parse(text), "change parameter word value(two→usual)", "[]")
	apply(set("one"), "change parameter word value(usual→one)", "[{word one}]")
	apply(m.parse(file(ann, "{id: a, run: echo a}")), "change parameter word value(one→)", "[]")
}

func TestChangedMembers(t *testing.T) {
	t.Parallel()
	const bob = "{name: bob, agent: claude, model: opus}"
	const task = "{id: a, description: x, owner: bob}"
	m := makeTeam(t, file(ann+", "+bob, task))
	m.must(team.User, &team.SpawnMember{Name: "hand", Agent: team.External})
	m.must(team.User, &team.SpawnMember{Name: "ann-again-2", Agent: team.Shell})

	for text, want := range map[string]string{
		file(ann+", {name: bob, agent: external}", task): "refuse member bob: the agent of bob cannot change from " +
			"claude to external; give the new member another name",
		file(ann+", {name: bob, agent: claude, model: opus, isolation: worktree}", task): "refuse member bob: the " +
			"isolation of bob cannot change, because its work is where it works; give the new member another name",
		file(ann+", "+bob+", {name: hand, agent: external}", task): "refuse member hand: member hand joined team " +
			"demo without the file; give the one in the file another name",
	} {
		m.apply(text, nil, want)
	}
	m.apply(file("{name: ann, agent: shell, env: {A: b}}, {name: bob, agent: codex, budget: {tokens: 9}}", task), nil,
		`change member ann env(→A=b)`, "change member bob agent(claude→codex) budget.tokens(→9) model(opus→)")
	for _, name := range []string{"ann", "ann-again-2"} {
		if one, _ := m.state.Member(name); !slices.Equal(one.Env, []string{"A=b"}) {
			t.Errorf("%s is %+v", name, one)
		}
	}
	if b, _ := m.state.Member("bob"); b.Agent != "codex" || b.Model != "" || b.Budget.Tokens != 9 {
		t.Errorf("bob is %+v", b)
	}
	m.apply(file("{name: ann, agent: shell, count: 2}, {name: cy, agent: claude}",
		"{id: a, description: x, owner: cy}"), nil, "add member ann-1", "add member ann-2", "add member cy",
		"remove member ann", "remove member bob",
		"change task a owner(bob→cy)")
	for name, running := range map[string]bool{"ann": false, "ann-again-2": false, "bob": false, "hand": true,
		"cy": true} {
		if one, _ := m.state.Member(name); one.Status.Running() != running || one.Dropped == running {
			t.Errorf("%s is %+v", name, one)
		}
	}
	if a := m.task("a"); a.Owner != "cy" {
		t.Errorf("it is meant for %s", a.Owner)
	}
	// A member that comes back gets a replacement, because its name is taken.
	m.apply(file("{name: ann, agent: shell, count: 2}, {name: bob, agent: codex}, {name: cy, agent: claude}",
		"{id: a, description: x, owner: cy}"), nil, "add member bob budget.tokens(9→)")
	if b, _ := m.state.Member("bob"); b.Dropped {
		t.Error("bob is not to be replaced")
	}
}

func TestChangedTeam(t *testing.T) {
	t.Parallel()
	both := ann + ", {name: pat, agent: external}"
	m := makeTeam(t, file(both, "{id: a, run: echo a}", "goal: old", "checks: [make]",
		"budget: {tokens: 100, time: 1h}", "facts: [go.mod]"))
	m.must(team.User, &team.SetBudget{Budget: team.Budget{Tokens: 500}, Only: []string{"tokens"}})
	m.must(team.User, &team.RecordFacts{Facts: append(slices.Clone(m.state.Team().Facts),
		team.Fact{Name: "own", Path: "own", SHA256: strings.Repeat("1", 64)})})
	m.apply(file(both, "{id: a, run: echo a}", "goal: new", "checks: [make, make test]",
		"budget: {tokens: 100, time: 2h}",
		"permissions: {policy: deny, mode: plan}", "facts: [go.sum]", "report: {title: T}", "clean: true", "liveness: {beat: 1s}"), nil,
		`change team demo goal(old→new) checks(make→make, make test) clean(→true) permissions.mode(→plan) permissions.policy(→deny) `+
			`budget.time(1 h→2 h) liveness.beat(→1 s) facts.go.sum(→go.sum) facts.go.mod(→)`)
	of := m.state.Team()
	if of.Goal != "new" || len(of.Checks) != 2 || of.Budget.Tokens != 500 || of.Budget.Time.Hours() != 2 || !of.Clean ||
		of.Permissions.Policy != "deny" || of.Timing.Beat.Seconds() != 1 {
		t.Errorf("it is %+v", of)
	}
	var names []string
	for _, f := range of.Facts {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"own", "go.sum"}) {
		t.Errorf("its facts are %v", names)
	}
	for _, one := range m.state.Members() {
		if shell := one.Agent == team.Shell; shell == (one.PermissionMode == "plan") { // no mode limits a shell
			t.Errorf("%s is in mode %s", one.Name, one.PermissionMode)
		}
	}
	m.apply(file(both, "{id: a, run: echo a}", "lead: boss"), nil, "refuse team demo: lead leads team demo for its "+
		"life, and the file names boss")
}

// TestATeamFromBeforeDigests: the file is compared with the team itself.
func TestATeamFromBeforeDigests(t *testing.T) {
	t.Parallel()
	m := &made{T: t, state: &team.State{}}
	text := file(ann, "{id: a, run: echo a, blockedBy: [b]}, {id: b, run: echo b}")
	f := m.parse(text)
	at := func(id string, body team.Body) {
		d, err := team.Decide(m.state, team.Command{ID: id, Actor: team.User, At: 5, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		m.state.Apply(d.Record)
	}
	at("1", &team.CreateTeam{TeamID: "t", Name: "demo", Dir: "/d", Origin: "/team.yaml", OriginDigest: f.Digest()})
	at("2", &team.SpawnMember{Name: "ann", Agent: team.Shell})
	for i, one := range Tasks(f) {
		one.FileDigests = nil
		at(fmt.Sprint("t", i), one)
	}
	m.must(team.User, &team.CreateTask{Name: "mine", Subject: "mine"})
	if c := m.compare("# other\n" + text); len(c.All) > 0 {
		t.Errorf("nothing changed, and it says %v", lines(c))
	}
	m.apply(file(ann+", {name: bob, agent: shell}", "{id: a, run: echo A}, {id: c, run: echo c}"), nil,
		"add member bob", "remove task b", "change task a run(echo a→echo A) blockedBy(b→)", "add task c")
}

type jsonRaw = json.RawMessage

// TestRedoANameOfDigits: a name of digits means the task of the file, not the task with that
// number.
func TestRedoANameOfDigits(t *testing.T) {
	t.Parallel()
	m := makeTeam(t, file(ann, "{id: '2', run: echo a}, {id: '1', run: echo b}"))
	m.must(team.User, &team.ClaimTask{Task: "2", Member: "ann"})
	m.must("ann", &team.CompleteTask{Task: "2"})
	if got := lines(m.compare(file(ann, "{id: '2', run: echo a}, {id: '1', run: echo b}"), "1")); !slices.Equal(got,
		[]string{"redo task 1"}) {
		t.Error(got)
	}
}

// TestTemplateOfAMemberChanges: another text of a template, or other values for it, changes the
// member whose teams are made from it. A team from before templates had digests has none to
// compare.
func TestTemplateOfAMemberChanges(t *testing.T) {
	t.Parallel()
	f, err := ParseFile("up.yaml", []byte("name: up\nmaxDepth: 1\nmembers: [{name: sub, agent: team, template: inner, "+
		"set: {a: b}}]\ntasks: [{id: a}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		digest string
		set    []teamfile.Setting
		want   string
	}{{"one", f.Members[0].Nested.Set, "[{template inner one inner two}]"}, {"", f.Members[0].Nested.Set, "[]"},
		{"two", nil, "[{set  a=b}]"}} {
		m := &made{T: t, dir: t.TempDir(), state: &team.State{}}
		before := f.Members[0]
		before.Nested.Digest, before.Nested.Set = c.digest, c.set
		m.must(team.User, &team.CreateTeam{TeamID: "t", Name: "up", Dir: m.dir, MaxDepth: 1, OriginDigest: "x",
			FileDigests: TeamDigests(f)})
		m.must(team.User, spawn(before))
		for _, one := range Tasks(f) {
			m.must(team.User, one)
		}
		f.Members[0].Nested.Digest = "two"
		changes, err := Compare(m.state, f, nil, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		var keys []KeyChange
		for _, one := range changes.All {
			keys = append(keys, one.Keys...)
		}
		if got := fmt.Sprint(keys); got != c.want {
			t.Errorf("with the digest %q: got %s, want %s", c.digest, got, c.want)
		}
		m.must(team.User, &team.Batch{Bodies: changes.commands})
		sub, _ := m.state.Member("sub")
		if c.digest != "" && (sub.Nested.Digest != "two" || fmt.Sprint(sub.Nested.Set) != "[a=b]") {
			t.Errorf("after the change it is made from %+v", sub.Nested)
		}
		if again, err := Compare(m.state, f, nil, true, nil); err != nil || len(again.All) > 0 {
			t.Errorf("the change is not over: %+v, %v", again.All, err)
		}
	}
}

// TestDeletedByHand deletes a task that the file still has. It stays away as long as the file does
// not change.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	text := file(ann, "{id: a, run: x}, {id: b, run: y}")
	m := makeTeam(t, text)
	m.must(team.User, &team.DeleteTask{Task: m.task("b").ID})
	if got := lines(m.compare(text)); len(got) > 0 {
		t.Errorf("the file is the same, and these changes are found: %q", got)
	}
	m.apply(file(ann, "{id: a, run: z}, {id: b, run: y}"), nil, "change task a run(x→z)", "add task b")
}
