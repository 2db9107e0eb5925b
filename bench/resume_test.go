package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

const (
	resumed    = "dormant" // the name of the team
	crew       = 100
	firstHost  = "h1"
	manyTasks  = 10_000
	manyEvents = 1_000_000
)

// dormant creates a team of 100 shell members on a host, with 10,000 tasks and 1,000,000 records.
// Half of the tasks are done, and each member holds one. The open tasks are for a role that no
// member has, so no session works.
func dormant(h layout.Home) error {
	var commands []team.Command
	add := func(actor string, lease int64, body team.Body) {
		commands = append(commands, team.Command{ID: fmt.Sprintf("%s-%026d", resumed, len(commands)), Actor: actor,
			Lease: lease, At: replica.Now(), Body: body})
	}
	name := func(i int) string { return fmt.Sprintf("m%d", i%crew) }
	add(team.User, 0, &team.CreateTeam{TeamID: resumed + "-" + replica.NewID(), Name: resumed, Dir: h.Root})
	for i := range crew {
		add(team.User, 0, &team.SpawnMember{Name: name(i), Agent: team.Shell})
		add(team.Host(firstHost), 0, &team.AttachMember{Member: name(i)})
		add(team.Host(firstHost), 1, &team.ReportStarted{Member: name(i), Session: "session-of-" + name(i)})
	}
	for i := range manyTasks {
		t := &team.CreateTask{Subject: fmt.Sprintf("Look into module %d and mend what is broken there", i),
			Description: "Read the module, run its tests, and report what you changed and why."}
		if i >= manyTasks/2+crew {
			t.Role = "reviewer"
		}
		add("lead", 0, t)
	}
	for i := range manyTasks/2 + crew {
		id := fmt.Sprint(i + 1)
		add(name(i), 0, &team.ClaimTask{Task: id})
		if i < manyTasks/2 {
			add(name(i), 0, &team.CompleteTask{Task: id, Result: "The module is mended, its tests pass."})
		}
	}
	for len(commands) < manyEvents {
		from, to := name(len(commands)), name(len(commands)+7)
		add(from, 0, &team.SendMessage{To: to, Body: "The parser is done; the tests of the lexer fail on an empty " +
			"file. Can you look?"})
		add(to, 0, &team.ReceiveMessages{})
	}
	return h.Create(resumed, commands)
}

// wreck is a team whose lead died a moment ago.
type wreck struct {
	b     *testing.B
	h     layout.Home
	dir   string
	cadre string
	env   []string
	leads int
}

func newWreck(b *testing.B) *wreck {
	w := &wreck{b: b, h: layout.Home{Root: b.TempDir(), Claude: b.TempDir()}}
	w.cadre, _ = programs(b)
	if err := dormant(w.h); err != nil {
		b.Fatal(err)
	}
	w.dir = filepath.Join(w.h.Root, "teams", resumed)
	w.env = append(os.Environ(), "CADRE_HOME="+w.h.Root, "CLAUDE_CONFIG_DIR="+w.h.Claude, "HOME="+b.TempDir(),
		"CADRE_TEAM=", "CADRE_MEMBER_NAME=")
	w.run(w.cadre, "send", resumed, "--to", "m1", "the first writer saves the snapshot and the projections")
	return w
}

// run runs a program to its end, and returns its duration.
func (w *wreck) run(program string, args ...string) time.Duration {
	w.b.Helper()
	c := exec.Command(program, args...)
	c.Env = w.env
	var stderr strings.Builder
	c.Stderr = &stderr
	began := time.Now()
	if err := c.Run(); err != nil {
		w.b.Fatalf("%v: %v\n%s", args, err, &stderr)
	}
	return time.Since(began)
}

// read returns how long a process takes to read the snapshot and the tail behind it.
func (w *wreck) read() time.Duration {
	w.b.Helper()
	plain := w.env
	defer func() { w.env = plain }()
	w.env = append(slices.Clip(w.env), "BENCH_PROCESS=read", "BENCH_AT="+w.h.Root)
	return w.run(os.Args[0])
}

// readTeam opens the team as every command does.
func readTeam(root string) error {
	j, _, err := layout.Home{Root: root}.Open(resumed, nil)
	if err != nil {
		return err
	}
	rep, err := replica.Open(context.Background(), j, replica.Options{})
	if err != nil {
		return err
	}
	return rep.Close()
}

// loseLead starts a session that leads, and kills it. Every member has a heartbeat.
func (w *wreck) loseLead(host string) {
	w.b.Helper()
	ctx := context.Background()
	j, _, err := w.h.Open(resumed, nil)
	if err != nil {
		w.b.Fatal(err)
	}
	rep, err := replica.Open(ctx, j, replica.Options{})
	if err != nil {
		w.b.Fatal(err)
	}
	defer rep.Close()
	w.leads++
	lead, err := leader.Take(ctx, leader.Options{Replica: rep, Shared: filestore.Team(w.dir),
		Session: fmt.Sprintf("mcp-%d", w.leads), Beats: true})
	if err != nil {
		w.b.Fatal(err)
	}
	lead.Close()
	for i := range crew {
		name := fmt.Sprintf("m%d", i)
		if err := heartbeat.In(filestore.Team(w.dir)).Write(ctx, heartbeat.Beat{Member: name,
			At: time.Now().UnixMilli(), Status: "active", Host: host, Count: 1}); err != nil {
			w.b.Fatal(err)
		}
	}
}

// BenchmarkResume times cadre resume on a team with 100 members, 10,000 tasks and 1,000,000
// records. It alternates with a process that reads the snapshot and the tail behind it.
//
//   - First only the lead died, and the host of its teammates still runs. Apart from the agents,
//     this is the whole work. The limit for the ratio of medians is 3.
//   - Then its host died as well: the command ends when a new host has the leases of all members.
func BenchmarkResume(b *testing.B) {
	w := newWreck(b)
	b.Run("lead", func(b *testing.B) {
		w.b = b
		alive := filepath.Join(w.dir, "hosts", firstHost, proc.AliveFile)
		if err := os.MkdirAll(filepath.Dir(alive), 0o700); err != nil {
			b.Fatal(err)
		}
		lock, err := filelock.New(alive)
		if err != nil {
			b.Fatal(err)
		}
		defer lock.Unlock()
		w.compare(func() { w.loseLead(firstHost) }, func() {})
	})
	b.Run("lead-and-host", func(b *testing.B) {
		w.b = b
		w.compare(func() { w.loseLead(firstHost) }, w.killHost)
	})
}

// compare times resume and the baseline in turn.
func (w *wreck) compare(before, after func()) {
	w.b.Helper()
	var ours, theirs []time.Duration
	for range max(w.b.N, 20) {
		before()
		theirs = append(theirs, w.read())
		ours = append(ours, w.run(w.cadre, "resume", resumed))
		after()
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	whole, alone := ours[len(ours)/2], theirs[len(theirs)/2]
	w.b.ReportMetric(0, "ns/op")
	w.b.ReportMetric(float64(whole)/float64(alone), "times-reading")
	w.b.Logf("resumed after %v (%v to %v), read after %v (%v to %v)", whole, ours[0], ours[len(ours)-1], alone,
		theirs[0], theirs[len(theirs)-1])
}

// killHost kills the host that resume started, as a power failure of the machine would.
func (w *wreck) killHost() {
	w.b.Helper()
	hosts, err := filepath.Glob(filepath.Join(w.dir, "hosts", "*", proc.AliveFile))
	if err != nil {
		w.b.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		beat, there, err := heartbeat.In(filestore.Team(w.dir)).Of(context.Background(), "m0")
		if err != nil {
			w.b.Fatal(err)
		}
		if there && beat.Host != firstHost && filelock.Held(filepath.Join(w.dir, "hosts", beat.Host, proc.AliveFile)) {
			if err := syscall.Kill(beat.Pid, syscall.SIGKILL); err != nil {
				w.b.Fatal(err)
			}
			break
		}
		if time.Now().After(deadline) {
			w.b.Fatal("no host sends heartbeats")
		}
	}
	for _, alive := range hosts {
		for filelock.Held(alive) {
			time.Sleep(time.Millisecond)
		}
	}
}
