package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/postgrestest"
)

// inRepository makes the world's directory a git repository with one commit, and with a remote.
func (w *world) inRepository() {
	w.t.Helper()
	w.repository()
	remote := filepath.Join(w.root, "remote.git")
	w.git("init", "-q", "--bare", "-b", "main", remote)
	w.git("remote", "add", "origin", remote)
	w.git("push", "-q", "origin", "HEAD")
}

// clone returns another machine with a clone of the project.
func (w *world) clone(name string) *world {
	w.t.Helper()
	other := w.machine()
	other.home = filepath.Join(w.root, "home-"+name)
	other.env = append(slices.Clone(w.env), "CADRE_HOME="+other.home)
	other.dir = filepath.Join(w.root, "clone-"+name)
	w.git("clone", "-q", filepath.Join(w.root, "remote.git"), other.dir)
	other.cleanUpAfter()
	return other
}

// TestMachines: members run on machines with their labels, in worktrees of those machines' clones.
// What they do comes back through the git remote, and is committed where the team is run.
func TestMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inRepository()
	w.inDatabase()
	cpu, gpu := w.clone("cpu"), w.clone("gpu")
	one := cpu.start("host", "--label", "cpu", "--slots", "2", "--name", "builder")
	two := gpu.start("host", "--label", "gpu", "--label", "cpu", "--slots", "2", "--name", "trainer")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("builder: %s\ntrainer: %s", one.said(), two.said())
		}
	})
	eventually(t, "both machines are listed", func() bool {
		out := w.must("hosts")
		return strings.Contains(out, "builder") && strings.Contains(out, "trainer")
	})
	if r := w.cadre("host", "--label", "cpu", "--name", "builder"); r.code != 2 || !strings.Contains(r.err, "runs already") {
		t.Errorf("a second machine of that name: exit status %d: %s", r.code, r.err)
	}
	w.write("rel.yaml", `name: rel
remote: origin
members:
  - {name: c, agent: shell, isolation: worktree, runsOn: [cpu]}
  - {name: g, agent: shell, isolation: worktree, runsOn: [gpu]}
  - {name: here, agent: shell, isolation: worktree}
tasks:
  - {id: build, owner: c, run: 'echo built >built; pwd; echo "$CADRE_STORE"'}
  - {id: train, owner: g, run: 'cat built >trained; pwd', blockedBy: [build]}
  - {id: check, owner: here, run: 'cat built trained >checked; pwd', blockedBy: [train]}
checks: ['grep built checked']
consolidate: true
`)
	order(t, w.must("run", "rel.yaml", "--plain"), "3 of 3 tasks done")
	order(t, w.gitSays("show", "HEAD", "--stat"), "built", "checked", "trained")
	for task, dir := range map[string]string{"build": cpu.home, "train": gpu.home, "check": w.home} {
		if out := w.must("task", "show", "rel", task); !strings.Contains(out, dir) {
			t.Errorf("%s was not done in %s: %s", task, dir, out)
		}
	}
	for _, p := range []*process{one, two} {
		p.Process.Signal(os.Interrupt)
		if code := p.wait(); code != 0 {
			t.Errorf("exit status %d: %s", code, p.said())
		}
	}
	if out := w.must("hosts"); !strings.Contains(out, "There is no machine") {
		t.Errorf("the machines that ended are listed: %s", out)
	}
}

// machines starts a machine with the label cpu in each of two clones, and returns what ends them.
func (w *world) machines() (names []string, worlds []*world, processes []*process) {
	w.t.Helper()
	for _, name := range []string{"one", "two"} {
		at := w.clone(name)
		names, worlds = append(names, name), append(worlds, at)
		processes = append(processes, at.start("host", "--label", "cpu", "--slots", "4", "--name", name))
	}
	eventually(w.t, "both machines are listed", func() bool {
		out := w.must("hosts")
		return strings.Contains(out, "one") && strings.Contains(out, "two")
	})
	w.t.Cleanup(func() {
		if w.t.Failed() {
			for i, p := range processes {
				w.t.Logf("%s: %s", names[i], p.said())
			}
		}
	})
	return names, worlds, processes
}

// movable is a team whose member w has one task that is done at once, one that lasts, and one after
// it.
const movable = `name: mov
remote: origin
members:
  - {name: w, agent: shell, isolation: worktree, runsOn: [cpu]}
tasks:
  - {id: first, run: 'echo first >first'}
  - {id: long, run: 'echo began >>"$MARKS/began"; until test -e "$MARKS/go"; do sleep 0.05; done; cat first >second; echo done >>"$MARKS/done"',
     blockedBy: [first], retries: 3, env: {MARKS: 'MARKSDIR'}}
  - {id: last, run: 'cat first second >third', blockedBy: [long]}
consolidate: true
`

// movesAway begins a run of the movable team on two machines, and waits for its long task.
func (w *world) movesAway() (names []string, worlds []*world, processes []*process, run *process) {
	w.t.Helper()
	w.inRepository()
	w.inDatabase()
	names, worlds, processes = w.machines()
	w.write("mov.yaml", strings.ReplaceAll(movable, "MARKSDIR", w.root))
	run = w.start("run", "mov.yaml", "--plain")
	eventually(w.t, "the long task has begun", func() bool { return has(w.root, "began") })
	return names, worlds, processes, run
}

// inUse returns the index of the machine that runs the member, and of the other one.
func (w *world) inUse(names []string) (used, other int) {
	w.t.Helper()
	machine := ""
	eventually(w.t, "a machine has the member", func() bool {
		for _, m := range read[[]struct {
			Name string
			Runs []struct{ Member string }
		}](w, "hosts") {
			if len(m.Runs) > 0 {
				machine = m.Name
			}
		}
		return machine != ""
	})
	used = slices.Index(names, machine)
	return used, 1 - used
}

// TestMachineIsKilled: when the machine of a member is killed, another one with its label continues
// the member after the lease, with the work that was sent. Each task is done once.
func TestMachineIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names, worlds, processes, run := w.movesAway()
	began := filepath.Join(w.root, "began")
	lines := func(name string) int {
		data, _ := os.ReadFile(filepath.Join(w.root, name))
		return strings.Count(string(data), "\n")
	}
	used, other := w.inUse(names)
	processes[used].killHost(false)
	eventually(t, "the other machine has begun the task again", func() bool { return lines("began") == 2 })
	if now, _ := w.inUse(names); now != other {
		t.Errorf("%s has the member", names[now])
	}
	if out := w.must("hosts"); !strings.Contains(out, "gone") {
		t.Errorf("the list of machines is %s", out)
	}
	if err := os.WriteFile(filepath.Join(w.root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run.wait(); code != 0 || !strings.Contains(run.said(), "3 of 3 tasks done") {
		t.Fatalf("exit status %d: %s", code, run.said())
	}
	order(t, w.gitSays("show", "HEAD", "--stat"), "first", "second", "third")
	if data, _ := os.ReadFile(began); lines("done") != 1 {
		t.Errorf("the task was done %d times: %s", lines("done"), data)
	}
	order(t, w.must("hosts", "--drain", names[used]), names[used])
	if out := w.must("hosts"); strings.Contains(out, "gone") {
		t.Errorf("a machine that ended stays on the list: %s", out)
	}

	// What the killed machine still has of the team goes when it is back, although the team is
	// gone.
	left := func() []string {
		all, _ := filepath.Glob(filepath.Join(worlds[used].home, "placed", "*"))
		return all
	}
	w.must("cleanup", "mov", "--force", "--branches")
	if len(left()) == 0 {
		t.Error("the killed machine has nothing of the team")
	}
	worlds[used].start("host", "--label", "cpu", "--name", names[used])
	eventually(t, "nothing is left of the team", func() bool { return len(left()) == 0 })
}

// TestMachineIsDrained: a machine that is drained finishes its task, gives its member to the other
// one, and ends.
func TestMachineIsDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names, worlds, processes, run := w.movesAway()
	used, other := w.inUse(names)
	w.must("hosts", "--drain", names[used])
	eventually(t, "the machine shows that it is drained", func() bool {
		return strings.Contains(w.must("hosts"), "drained")
	})
	if err := os.WriteFile(filepath.Join(w.root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := processes[used].wait(); code != 0 {
		t.Errorf("the drained machine: exit status %d: %s", code, processes[used].said())
	}
	if code := run.wait(); code != 0 || !strings.Contains(run.said(), "3 of 3 tasks done") {
		t.Fatalf("exit status %d: %s", code, run.said())
	}
	order(t, w.must("log", "mov"), "w runs on the machine "+names[used], "w completed task long",
		"w runs on the machine "+names[other], "w completed task last")
	order(t, w.gitSays("show", "HEAD", "--stat"), "first", "second", "third")
	for _, at := range worlds { // nothing of the team is left in the clones
		eventually(t, "the clone is as it was", func() bool {
			return !strings.Contains(at.gitSays("for-each-ref"), "cadre/mov")
		})
	}
}

// TestAgentMovesToAnotherMachine: a real Claude whose machine is drained ends its turn, and a fresh
// session on the other machine continues its task. It knows what the first one said last, and has
// its files.
func TestAgentMovesToAnotherMachine(t *testing.T) {
	t.Parallel()
	marks := t.TempDir()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		id, calls := task(r)
		switch {
		case id == "" || len(calls) > 1:
			return agenttest.Say("I remember that the port is 4711.")
		case r.Has("You continue for an earlier session"):
			if len(calls) == 0 {
				return shells["claude"]("cat first >second")
			}
			return complete(r)
		case len(calls) == 0:
			return shells["claude"]("echo 4711 >first; touch " + marks + "/began; until test -e " + marks +
				"/go; do sleep 0.05; done")
		}
		return agenttest.Say("I remember that the port is 4711.")
	}, "claude")
	s.inRepository()
	s.inDatabase()
	names, _, processes := s.machines()
	s.write("port.yaml", `name: port
remote: origin
permissions: {mode: bypassPermissions}
members:
  - {name: ann, agent: claude, isolation: worktree, runsOn: [cpu]}
tasks:
  - {id: port, description: Write the port down., owner: ann}
consolidate: true
`)
	run := s.start("run", "port.yaml", "--plain")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(run.said(), s.model.Story())
		}
	})
	eventually(t, "the session works", func() bool { return has(marks, "began") })
	used, other := s.inUse(names)
	s.must("hosts", "--drain", names[used])
	eventually(t, "the machine is drained", func() bool { return strings.Contains(s.must("hosts"), "drained") })
	if err := os.WriteFile(filepath.Join(marks, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := processes[used].wait(); code != 0 {
		t.Errorf("the drained machine: exit status %d: %s", code, processes[used].said())
	}
	if code := run.wait(); code != 0 || !strings.Contains(run.said(), "1 of 1 task done") {
		t.Fatalf("exit status %d: %s", code, run.said())
	}
	order(t, s.must("log", "port"), "ann runs on the machine "+names[used], "ann runs on the machine "+names[other],
		"ann completed task port")
	order(t, s.gitSays("show", "HEAD", "--stat"), "first", "second")
	told := false
	for _, r := range s.of("ann") {
		told = told || r.Has("is drained, and another one continues") &&
			r.Has("the port is 4711")
	}
	if !told {
		t.Error("the second session was not told what the first one knew")
	}
}

// TestExampleOfMachines: three machines on one computer, with one command.
func TestExampleOfMachines(t *testing.T) {
	t.Parallel()
	postgrestest.Start(t, postgrestest.Options{}) // without PostgreSQL it skips the test
	w := newWorld(t)
	script, err := filepath.Abs("../examples/machines/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{w.root, filepath.Dir(w.root)} { // another user runs the database
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("sh", script)
	c.Dir, c.Env = w.dir, append(slices.Clone(w.env), "CADRE="+cadre, "TMPDIR="+w.root, "PATH="+os.Getenv("PATH"))
	r := finish(t, c)
	if r.code != 0 {
		t.Fatalf("exit status %d: %s%s", r.code, r.out, r.err)
	}
	order(t, r.out, "builder", "laptop", "trainer", "4 of 4 tasks done", "Work of team demo")
	for _, line := range []string{"writer runs on the machine laptop", "learner runs on the machine trainer"} {
		if !strings.Contains(r.out, line) {
			t.Errorf("the output lacks %q:\n%s", line, r.out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, "machines.*")); len(left) > 0 {
		t.Errorf("the example leaves %v", left)
	}
}

// TestMachineIsLostBeforeItSends: a machine is killed after it completed a task and before its work
// reached the remote. What builds on the work waits, nothing is committed without it, and when the
// machine is back it sends the work by itself.
func TestMachineIsLostBeforeItSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inRepository()
	w.inDatabase()
	open := filepath.Join(w.root, "open")
	hook := "#!/bin/sh\ncase $1 in */base) ;; refs/cadre/*) test -e " + open + " ;; esac\n"
	if err := os.WriteFile(filepath.Join(w.root, "remote.git", "hooks", "update"), []byte(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	names, worlds, processes := w.machines()
	w.write("lost.yaml", `name: lost
remote: origin
members: [{name: w, agent: shell, isolation: worktree, runsOn: [cpu]}]
tasks:
  - {id: one, run: 'echo work >one'}
  - {id: two, run: 'cat one >two', blockedBy: [one]}
consolidate: true
`)
	run := w.start("run", "lost.yaml", "--plain")
	eventually(t, "the first task is completed", func() bool {
		return strings.Contains(w.cadre("log", "lost").out, "w completed task one")
	})
	used, other := w.inUse(names)
	processes[used].killHost(false)
	eventually(t, "the other machine has the member", func() bool {
		return strings.Contains(w.must("log", "lost"), "w runs on the machine "+names[other])
	})
	if r := w.cadre("consolidate", "lost"); r.code == 0 {
		t.Errorf("it is consolidated without the work: %s", r.out)
	}
	if strings.Contains(w.must("log", "lost"), "w completed task two") {
		t.Error("the second task was done without the first")
	}
	worlds[used].start("host", "--label", "cpu", "--name", names[used])
	if err := os.WriteFile(open, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run.wait(); code != 0 || !strings.Contains(run.said(), "2 of 2 tasks done") {
		t.Fatalf("exit status %d: %s\n%s", code, run.said(), w.must("log", "lost"))
	}
	order(t, w.gitSays("show", "HEAD", "--stat"), "one", "two")
}

// TestMachineRests: a machine runs nothing of a team that is paused, or whose run has ended. When
// the team is run again, the machine goes on. The team works in a directory below the top of its
// repository, and so does the machine.
func TestMachineRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inRepository()
	w.write("docs/more.md", "more\n")
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "more")
	w.git("push", "-q", "origin", "HEAD")
	w.inDatabase()
	w.machines()
	w.write("docs/rest.yaml", strings.ReplaceAll(`name: rest
remote: origin
members: [{name: w, agent: shell, isolation: worktree, runsOn: [cpu]}]
tasks:
  - {id: long, run: 'echo began >>MARKS/began; until test -e MARKS/go; do sleep 0.05; done; cat more.md >copy', retries: 9}
consolidate: true
`, "MARKS", w.root))
	lines := func() int {
		data, _ := os.ReadFile(filepath.Join(w.root, "began"))
		return strings.Count(string(data), "\n")
	}
	below := *w
	below.dir = filepath.Join(w.dir, "docs")
	run := below.start("run", "rest.yaml", "--plain")
	for i, end := range []func(){
		func() { order(t, below.must("pause", "rest"), "1 session ended (w)") },
		func() { run.Process.Signal(os.Interrupt) },
	} {
		eventually(t, "the task has begun", func() bool { return lines() == i+1 })
		end()
		run.wait()
		eventually(t, "the session has ended", func() bool {
			return strings.Contains(below.must("status", "rest"), "spawning") ||
				strings.Contains(below.must("status", "rest"), "paused")
		})
		before := strings.Count(below.must("log", "rest"), "runs on the machine")
		time.Sleep(6 * time.Second) // longer than a machine needs to look
		if after := strings.Count(below.must("log", "rest"), "runs on the machine"); after != before {
			t.Errorf("a machine runs the member although the team rests: %s", below.must("log", "rest"))
		}
		run = below.start("run", "rest.yaml", "--plain")
	}
	eventually(t, "the task has begun a third time", func() bool { return lines() == 3 })
	if err := os.WriteFile(filepath.Join(w.root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run.wait(); code != 0 || !strings.Contains(run.said(), "1 of 1 task done") {
		t.Fatalf("exit status %d: %s", code, run.said())
	}
	order(t, w.gitSays("show", "HEAD", "--stat"), "docs/copy")
}
