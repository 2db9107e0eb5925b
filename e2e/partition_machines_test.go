package e2e

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"cadre/internal/testkit/soak"
)

// line is the network between a machine and its database. What is sent over a cut line is lost, and
// the connections stay.
type line struct {
	to, from atomic.Bool // cut, on the way to the database and from it
	address  string      // of the database, over this line
}

// lineTo makes a line to the database with that address, which is on a unix socket.
func lineTo(t *testing.T, dsn string) *line {
	t.Helper()
	socket, port := "", "5432"
	var rest []string
	for word := range strings.FieldsSeq(dsn) {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "host":
			socket = value
		case "port":
			port = value
		default:
			rest = append(rest, word)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := &line{}
	_, own, _ := net.SplitHostPort(l.Addr().String())
	at.address = strings.Join(append(rest, "host=127.0.0.1", "port="+own, "sslmode=disable"), " ")
	var ended sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		ended.Wait()
	})
	ended.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", filepath.Join(socket, ".s.PGSQL."+port))
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			ended.Go(func() { carry(server, client, &at.to) })
			ended.Go(func() { carry(client, server, &at.from) })
		}
	})
	return at
}

// carry passes on what it reads, unless the line is cut.
func carry(to, from net.Conn, cut *atomic.Bool) {
	defer to.Close()
	defer from.Close()
	data := make([]byte, 64<<10)
	for {
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if cut.Load() {
			continue
		}
		if _, err := to.Write(data[:n]); err != nil {
			return
		}
	}
}

// TestOneSessionAMember: whatever keeps a machine from its database, its session of a member has
// ended before another machine begins one. When the machine is back, it does nothing for the
// member.
func TestOneSessionAMember(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*process, *line, bool){
		"the process is stopped": func(p *process, _ *line, on bool) {
			signal := syscall.SIGCONT
			if on {
				signal = syscall.SIGSTOP
			}
			for _, pid := range append(childrenOf(p.t, p.Process.Pid, "host"), p.Process.Pid) {
				syscall.Kill(pid, signal)
			}
		},
		"the network is cut":               func(_ *process, l *line, on bool) { l.to.Store(on); l.from.Store(on) },
		"answers of the database are lost": func(_ *process, l *line, on bool) { l.from.Store(on) },
	}
	if soak.Of(0, 1) > 0 {
		faults["requests to the database are lost"] = func(_ *process, l *line, on bool) { l.to.Store(on) }
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.inRepository()
			w.inDatabase()
			var lines []*line
			var processes []*process
			names := []string{"one", "two"}
			for _, name := range names {
				at := w.clone(name)
				i := slices.IndexFunc(at.env, func(v string) bool { return strings.HasPrefix(v, "CADRE_STORE=") })
				lines = append(lines, lineTo(t, strings.TrimPrefix(at.env[i], "CADRE_STORE=")))
				at.env[i] = "CADRE_STORE=" + lines[len(lines)-1].address
				processes = append(processes, at.start("host", "--label", "cpu", "--name", name))
			}
			t.Cleanup(func() {
				for i, p := range processes {
					fault(p, lines[i], false)
					if t.Failed() {
						t.Logf("%s: %s", names[i], p.said())
					}
				}
			})
			w.write("one.yaml", strings.ReplaceAll(`name: one
remote: origin
members: [{name: w, agent: shell, isolation: worktree, runsOn: [cpu]}]
tasks:
  - {id: t, run: 'until test -e MARKS/go; do echo $$ >>MARKS/beats; sleep 0.1; done; echo done >>MARKS/done', retries: 3}
`, "MARKS", w.root))
			run := w.start("run", "one.yaml", "--plain")
			eventually(t, "the task runs", func() bool { return has(w.root, "beats") })
			beats := func() []string {
				data, _ := os.ReadFile(filepath.Join(w.root, "beats"))
				return strings.Fields(string(data))
			}
			first := beats()[0]
			used, _ := w.inUse(names)
			fault(processes[used], lines[used], true)
			eventually(t, "the other machine runs the task", func() bool { return beats()[len(beats())-1] != first })
			fault(processes[used], lines[used], false)
			if err := os.WriteFile(filepath.Join(w.root, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if code := run.wait(); code != 0 || !strings.Contains(run.said(), "1 of 1 task done") {
				t.Fatalf("exit status %d: %s", code, run.said())
			}
			if got := slices.Compact(beats()); len(got) != 2 {
				t.Errorf("sessions were beside each other: %v", got)
			}
			eventually(t, "both machines run again", func() bool { return strings.Count(w.must("hosts"), "running") == 2 })
			if data, _ := os.ReadFile(filepath.Join(w.root, "done")); string(data) != "done\n" {
				t.Errorf("done was %q", data)
			}
			if n := len(w.count("one", "task_completed")); n != 1 {
				t.Errorf("%d tasks were completed", n)
			}
		})
	}
}
