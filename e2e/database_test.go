package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/postgrestest"
	"cadre/internal/testkit/soak"
)

// inDatabase has the teams of the world in a new database, and prepares it. It returns its
// server. The world connects as a role without the rights of the owner.
func (w *world) inDatabase() *postgrestest.Server {
	w.t.Helper()
	server := postgrestest.Start(w.t, postgrestest.Options{})
	dsn, schema := server.Schema(w.t)
	server.Admin(w.t, "CREATE ROLE worker LOGIN")
	dsn += " search_path=" + schema
	address := strings.Replace(dsn, "user=tester", "user=worker", 1)
	if r := w.with([]string{"CADRE_STORE=" + address}, "ls"); r.code != 1 || !strings.Contains(r.err,
		"there are no tables of cadre") || !strings.Contains(r.err, "cadre store init") {
		w.t.Fatalf("before it is prepared: exit status %d: %s", r.code, r.err)
	}
	order(w.t, w.must("store", "init", "--grant", "worker", "--store", dsn), "the tables are made", "worker")
	order(w.t, w.must("store", "migrate", "--store", dsn), "already")
	w.env = append(w.env, "CADRE_STORE="+address)
	return server
}

// machine returns another machine with the same project: a world with a home of its own.
func (w *world) machine() *world {
	w.t.Helper()
	other := *w
	other.home = filepath.Join(w.root, fmt.Sprint("machine-", len(w.env)))
	other.env = append(slices.Clone(w.env), "CADRE_HOME="+other.home)
	other.cleanUpAfter()
	return &other
}

// TestTeamsInADatabase: two machines have the same teams. When the process that runs a team is
// killed, the other machine continues the team, and each task is done once.
func TestTeamsInADatabase(t *testing.T) {
	t.Parallel()
	one := newWorld(t)
	one.inDatabase()
	two := one.machine()
	one.write("rel.yaml", `name: rel
members: [{name: w, agent: shell, count: 2}]
tasks:
  - {id: first, run: 'echo first >>done'}
  - id: long
    run: 'echo began >>begun; until test -e go; do sleep 0.05; done; echo long >>done'
    blockedBy: [first]
    retries: 3
  - {id: last, run: 'echo last >>done', blockedBy: [long]}
`)
	p := one.start("run", "rel.yaml", "--plain")
	eventually(t, "the long task has begun", func() bool { return has(one.dir, "begun") })
	order(t, two.must("ls"), "rel", "active", "1 of 3")
	order(t, two.must("status", "rel"), "1 of 3 tasks done", "in_progress")
	order(t, two.must("send", "rel", "--to", "lead", "hello from afar"), "message #")
	if r := two.cadre("run", "rel.yaml", "--plain"); r.code != 1 || !strings.Contains(r.err, "is being run already") {
		t.Errorf("while the first machine runs it: exit status %d: %s", r.code, r.err)
	}
	p.kill()
	time.Sleep(3 * time.Second) // what it ran is ended by now
	one.write("go", "")
	var r result
	eventually(t, "the other machine may continue", func() bool {
		r = two.cadre("run", "rel.yaml", "--plain")
		return r.code != 1
	})
	if r.code != 0 || !strings.Contains(r.out, "3 of 3 tasks done") {
		t.Fatalf("exit status %d: %s%s", r.code, r.out, r.err)
	}
	done, _ := os.ReadFile(filepath.Join(one.dir, "done"))
	if got := strings.Join(strings.Fields(string(done)), " "); got != "first long last" {
		t.Errorf("done was %s", got)
	}
	order(t, one.must("inbox", "rel", "lead", "--all"), "hello from afar")
	order(t, one.must("fsck", "rel"), "rel")
	order(t, two.must("search", "afar"), "hello from afar")
	one.must("cleanup", "rel", "--force")
	if out := two.must("ls"); strings.Contains(out, "rel") {
		t.Errorf("the other machine still has it: %s", out)
	}
}

// TestDatabaseIsKilled: a team at work waits while the server of its database is killed and started
// again, several times. No session ends for it, and each task is done once.
func TestDatabaseIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.inDatabase()
	var file strings.Builder
	file.WriteString("name: long\nmembers: [{name: w, agent: shell, count: 2}]\ntasks:\n")
	const tasks = 20
	for i := range tasks {
		fmt.Fprintf(&file, "  - {id: t%d, run: 'sleep 0.5; echo t%[1]d >>done'}\n", i)
	}
	w.write("long.yaml", file.String())
	p := w.start("run", "long.yaml", "--plain")
	eventually(t, "the team works", func() bool { return has(w.dir, "done") })
	for range 3 {
		time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond)
		server.Kill(t)
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
		server.Restart(t)
	}
	if code := p.wait(); code != 0 {
		t.Fatalf("exit status %d: %s", code, p.said())
	}
	done, _ := os.ReadFile(filepath.Join(w.dir, "done"))
	lines := strings.Fields(string(done))
	slices.Sort(lines)
	if len(lines) != tasks || len(slices.Compact(slices.Clone(lines))) != tasks {
		t.Errorf("done was %q", lines)
	}
	for id, n := range w.count("long", "task_completed") {
		if n != 1 {
			t.Errorf("task %s was completed %d times", id, n)
		}
	}
	started := 0
	for _, e := range w.history("long") {
		if e.is("member_started") {
			started++
		}
	}
	if started != 2 {
		t.Errorf("%d sessions were started for two members", started)
	}
}

// TestDoctorOfADatabase: a server that does not sync is refused, and a good one is described.
func TestDoctorOfADatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dsn, schema := postgrestest.Start(t, postgrestest.Options{NoSync: true}).Schema(t)
	dsn += " search_path=" + schema
	if r := w.cadre("store", "init", "--store", dsn); r.code != 1 || !strings.Contains(r.err, "fsync = off") {
		t.Errorf("init: exit status %d: %s", r.code, r.err)
	}
	r := w.cadre("doctor", "--store", dsn)
	if r.code != 2 {
		t.Errorf("doctor: exit status %d", r.code)
	}
	order(t, r.out, "database", "PostgreSQL", "wrong", "its tables", "cadre store init", "wrong", "fsync", "off:",
		"its clock")
	w.inDatabase()
	r = w.cadre("doctor")
	if r.code != 0 {
		t.Errorf("doctor: exit status %d: %s", r.code, r.out)
	}
	order(t, r.out, "its tables", "version", "fsync", "on", "primary", "standbys")
	if r := w.cadre("ls", "--store", "postgres://me:geheim@db.example/work"); r.code != 2 ||
		!strings.Contains(r.err, "sslmode=verify-full") || strings.Contains(r.err, "geheim") {
		t.Errorf("unverified: exit status %d: %s", r.code, r.err)
	}
}

// TestFilesAndDatabase: teams on files and in a database do not mix.
func TestFilesAndDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "onfiles")
	files := slices.Clone(w.env)
	w.inDatabase()
	w.must("create", "indb")
	if out := w.must("ls"); !strings.Contains(out, "indb") || strings.Contains(out, "onfiles") {
		t.Errorf("in the database are %s", out)
	}
	if r := w.cadre("push", "indb"); r.code != 2 || !strings.Contains(r.err, "are not pushed") {
		t.Errorf("push: exit status %d: %s", r.code, r.err)
	}
	if r := w.cadre("store", "move", "indb", "database", "nowhere"); r.code != 2 ||
		!strings.Contains(r.err, `"nowhere" is no place for teams`) {
		t.Errorf("move: exit status %d: %s", r.code, r.err)
	}
	w.env = files
	if out := w.must("ls"); strings.Contains(out, "indb") || !strings.Contains(out, "onfiles") {
		t.Errorf("on files are %s", out)
	}
}

// TestSessionsInADatabase: what runs for a member has neither the address of the database nor its
// password, acts through its host as the member, and as nobody else.
func TestSessionsInADatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PGPASSWORD=geheim", "PGAPPNAME=mine", "PATH="+filepath.Dir(cadre)+":"+os.Getenv("PATH"))
	w.inDatabase()
	w.write("mem.yaml", `name: mem
members: [{name: w, agent: shell}]
tasks:
  - id: a
    run: |
      env | grep -E 'CADRE_STORE|^PG'
      cadre send --to lead 'it is me'
      cadre send --to w --as lead 'it is not me'; echo "as: $?"
      CADRE_MEMBER_NAME=lead cadre send --to w 'it is not me'; echo "lied: $?"
      env -u CADRE_MEMBER_NAME cadre send --to w 'it is not me'; echo "hid: $?"
      cadre note set key value; echo "note: $?"
      cadre cleanup mem --force; echo "cleanup: $?"
      cadre create other; echo "create: $?"
      setsid sh -c 'cadre task list >listed'
`)
	order(t, w.must("run", "mem.yaml", "--plain"), "1 of 1 task done")
	said := w.must("task", "show", "mem", "a")
	said = said[strings.Index(said, "result:"):]
	order(t, said, "as: 2", "lied: 2", "note: 0", "cleanup: 2", "create: 2")
	for _, secret := range []string{"CADRE_STORE", "PG", "geheim"} {
		if strings.Contains(said, secret) {
			t.Errorf("the session has %s: %s", secret, said)
		}
	}
	if listed, err := os.ReadFile(filepath.Join(w.dir, "listed")); err != nil || !strings.Contains(string(listed), "a ") {
		t.Errorf("a process of the session's session lists %s, %v", listed, err)
	}
	for _, e := range w.history("mem") {
		if e.is("message_sent") && strings.Contains(fmt.Sprint(e["body"]), "it is") {
			if e["from"] != "w" || e["body"] != "it is me" && e["body"] != "it is not me" {
				t.Errorf("%s wrote %s", e["from"], e["body"])
			}
		}
	}
}

// TestAgentsInADatabase: real agents lead and work in a team that lives in a database. One of them
// calls the command line as itself.
func TestAgentsInADatabase(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		calls := all(r)
		if who(r) == "lead" {
			switch {
			case reports(r):
				return agenttest.Say("It is made.")
			case called(calls, "SpawnTeammate") == 0:
				return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": "codex", "prompt": "Help."})
			case called(calls, "TaskCreate") == 0:
				return use(r, "TaskCreate", map[string]any{"subject": "Make it", "description": "now", "owner": "ann"})
			}
			return agenttest.Say("I wait.")
		}
		if id, mine := task(r); id != "" && len(mine) == 0 {
			return shells["codex"](cadre + " note set agreed 'the port is 4711'; env | grep -c CADRE_STORE >address; touch made")
		}
		return complete(r)
	}, "claude", "codex")
	s.inDatabase()
	p := s.start("run", "make a file", "--agent", "claude", "--name", "made", "--permission-mode", "bypassPermissions")
	if code := p.wait(); code != 0 {
		t.Fatalf("exit status %d\n%s\n%s", code, p.said(), s.model.Story())
	}
	if !has(s.dir, "made") {
		t.Error("nothing is made")
	}
	if n, _ := os.ReadFile(filepath.Join(s.dir, "address")); strings.TrimSpace(string(n)) != "0" {
		t.Errorf("the agent's command has the address: %q", n)
	}
	note := read[struct{ Text, SetBy string }](s.world, "note", "get", "made", "agreed")
	if note.Text != "the port is 4711" || note.SetBy != "ann" {
		t.Errorf("the note is %+v", note)
	}
	if by := read[struct{ CompletedBy string }](s.world, "task", "show", "made", "1").CompletedBy; by != "ann" {
		t.Errorf("%s completed the task", by)
	}
}

// TestStoreMove moves a team to a database and back, with commands that are killed at any moment.
// At most one copy continues at any time, and no record is lost.
func TestStoreMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "mov")
	w.must("spawn", "mov", "ann", "--agent", "external")
	files := slices.Clone(w.env)
	w.inDatabase()
	database := w.env
	in := func(env []string) *world {
		one := *w
		one.env = env
		return &one
	}
	places := map[string]*world{"files": in(files), "database": in(database)}
	from, to := "files", "database"
	tasks := 0
	for range soak.Of(6, 60) {
		tasks++
		places[from].must("task", "add", "mov", fmt.Sprint("task ", tasks))
		for killed := true; killed; {
			p := w.start("store", "move", "mov", from, to)
			kill := time.AfterFunc(time.Duration(rand.IntN(120))*time.Millisecond, p.kill)
			code := p.wait()
			kill.Stop()
			// The leases that a killed process had in a database end some seconds later.
			leads := code == 1 && (strings.Contains(p.said(), "a process leads team") ||
				strings.Contains(p.said(), "another process moves team"))
			if killed = code < 0 || leads; leads {
				time.Sleep(time.Second)
			} else if code > 0 {
				t.Fatalf("move from %s to %s: exit status %d: %s", from, to, code, p.said())
			}
			live := 0
			for place, one := range places {
				switch r := one.cadre("task", "add", "mov", "probe"); {
				case r.code == 0:
					live++
					tasks++
					if !killed && place != to {
						t.Errorf("after the move, %s is live", place)
					}
				case !strings.Contains(r.err, "was moved to") && !strings.Contains(r.err, "does not exist"):
					t.Errorf("%s: %s", place, r.err)
				}
			}
			if live > 1 || !killed && live == 0 {
				t.Fatalf("%d copies are live", live)
			}
		}
		from, to = to, from
	}
	if out := read[[]struct{ Subject string }](places[from], "task", "list", "mov"); len(out) != tasks {
		t.Errorf("there are %d tasks, want %d", len(out), tasks)
	}
	order(t, places[from].must("fsck", "mov"), "mov")
}

// TestRestoredBackup: a machine has seen more of a team than the restored backup of the database
// has. Its commands refuse the restored history until the user removes the note of what was seen.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.inDatabase()
	schema := regexp.MustCompile(`search_path=(\S+)`).FindStringSubmatch(strings.Join(w.env, " "))[1]
	in := func(sql string) string { return strings.ReplaceAll(sql, "@", schema+".") }
	w.must("create", "old")
	w.must("task", "add", "old", "one")
	server.Admin(t, in("CREATE TABLE @backup AS SELECT * FROM @record"),
		in("CREATE TABLE @backup_team AS SELECT * FROM @team"))
	w.must("task", "add", "old", "two")
	server.Admin(t, in("DELETE FROM @record"), in("DELETE FROM @snapshot"),
		in("INSERT INTO @record SELECT * FROM @backup"),
		in("UPDATE @team t SET last = b.last, ends = b.ends, digest = b.digest FROM @backup_team b "+
			"WHERE b.number = t.number"))
	for _, command := range [][]string{{"task", "add", "old", "other"}, {"task", "list", "old"}, {"log", "old"}} {
		if r := w.cadre(command...); r.code != 2 || !strings.Contains(r.err, "an older copy of the database") ||
			!strings.Contains(r.err, "remove ") {
			t.Errorf("%v: exit status %d: %s", command, r.code, r.err)
		}
	}
	other := w.machine() // which has seen nothing of the team
	order(t, other.must("task", "add", "old", "other"), "other")
	if r := w.cadre("task", "list", "old"); r.code != 2 || !strings.Contains(r.err, "another history") {
		t.Errorf("after it went on elsewhere: exit status %d: %s", r.code, r.err)
	}
	seen, _ := filepath.Glob(filepath.Join(w.home, "placed", "*", "seen"))
	if len(seen) != 1 {
		t.Fatalf("the files are %v", seen)
	}
	if err := os.Remove(seen[0]); err != nil {
		t.Fatal(err)
	}
	order(t, w.must("task", "list", "old"), "one", "other")
}
