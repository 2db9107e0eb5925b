package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/sys/filelock"
	"cadre/internal/testkit/soak"
)

// originMode makes the test binary write its own origin. Its arguments are this word, the list, and
// the file to write.
const originMode = "proc-test-origin"

type told struct {
	Origin
	Below bool
}

func tellOrigin(list, to string) error {
	var t told
	var err error
	if t.Origin, t.Below, err = Ancestry(list); err != nil {
		return err
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// listedHost opens a listed register for the team demo.
func listedHost(t *testing.T) (r *Register, list string) {
	t.Helper()
	root := t.TempDir()
	list = filepath.Join(root, "teams", ListFolder)
	r, err := OpenListed(filepath.Join(root, "teams", "demo", "hosts", "h1"), Listing{Folder: list, Team: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(list); !os.IsNotExist(err) {
			t.Errorf("the list stays: %v", err)
		}
	})
	return r, list
}

func readOrigin(t *testing.T, path string) (is told) {
	t.Helper()
	var data []byte
	eventually(t, "the origin is told", func() (ok bool) {
		var err error
		data, err = os.ReadFile(path)
		return err == nil
	})
	if err := json.Unmarshal(data, &is); err != nil {
		t.Fatal(err)
	}
	return is
}

// whoami returns a shell command that writes its origin to a file.
func whoami(list, to string) string {
	return fmt.Sprintf("'%s' %s '%s' '%s'", os.Args[0], originMode, list, to)
}

// TestOrigin checks that the origin of a process is found, however it was started below a host, and
// whatever it did to its environment.
func TestOrigin(t *testing.T) {
	soak.Long(t)
	adopts := runtime.GOOS == "linux"
	for _, way := range []struct {
		name, script string // %s is the command
		left         bool   // it daemonises: without subreapers it is below no host then
		known        bool   // its record is found
	}{
		{"plain", "%s", false, true},
		{"deep", "sh -c \"sh -c \\\"env %s\\\"; true\"; true", false, true},
		{"no environment", "env -i %s", false, true},
		{"a session of its own", "setsid --wait env -i %s", false, true},
		{"an orphan of the session", "(%s &)", true, true},
		{"nohup", "(nohup %s >/dev/null 2>&1 &)", true, true},
		{"a daemon", "env -i setsid sh -c '(sh -c \"sleep 0.1; exec \\\"\\$@\\\"\" sh %s &)'", true, false},
		{"a daemon's daemon", "setsid sh -c '(setsid sh -c \"(sleep 0.1; exec \\\"\\$@\\\") &\" sh %s &)'", true,
			false},
	} {
		t.Run(way.name, func(t *testing.T) {
			r, list := listedHost(t)
			to := filepath.Join(t.TempDir(), "origin")
			command := whoami(list, to)
			if strings.Contains(way.script, "'(") { // the script itself is in quotes
				command = strings.ReplaceAll(command, "'", "")
			}
			script := fmt.Sprintf(way.script, command) + "\nuntil test -e '" + to + "'; do sleep 0.02; done"
			c := start(t, r, Cmd{Args: []string{"sh", "-c", script}, Member: "ann", Task: "3",
				Env: append(os.Environ(), "A=1"), Stderr: os.Stderr})
			is := readOrigin(t, to)
			c.Wait(within(t))
			if way.left && !adopts {
				t.Skip("this system has no subreapers")
			}
			if !is.Below || is.Own || is.Left != way.left || is.Host != os.Getpid() {
				t.Fatalf("got %+v", is)
			}
			if len(is.Teams) != 1 || is.Teams[0] != "demo" {
				t.Errorf("teams %q", is.Teams)
			}
			if known := is.Record != nil && is.Record.Member == "ann" && is.Record.Pid == c.Pid() &&
				!is.Record.Trusted; known != way.known {
				t.Errorf("record %+v", is.Record)
			}
		})
	}
}

// TestOriginOfATrustedChild checks that a trusted child is marked in its record, and that its
// orphans do not inherit the mark.
func TestOriginOfATrustedChild(t *testing.T) {
	r, list := listedHost(t)
	dir := t.TempDir()
	inside, left := filepath.Join(dir, "inside"), filepath.Join(dir, "left")
	script := "env -i " + whoami(list, inside) + "; (sh -c 'sleep 0.1; exec \"$@\"' sh " + whoami(list, left) +
		" &); until test -e '" + left + "'; do sleep 0.02; done"
	c := start(t, r, Cmd{Args: []string{"sh", "-c", script}, Member: "ann", Trusted: true})
	if is := readOrigin(t, inside); !is.Below || is.Left || is.Record == nil || !is.Record.Trusted {
		t.Errorf("inside: %+v", is)
	}
	if is := readOrigin(t, left); runtime.GOOS == "linux" && (!is.Below || !is.Left) {
		t.Errorf("left behind: %+v", is)
	}
	c.Wait(within(t))
}

// TestOriginWithoutARecord checks that an unrecorded child belongs to the host's own program if it
// is in the host's session, and is unknown otherwise.
func TestOriginWithoutARecord(t *testing.T) {
	r, list := listedHost(t)
	dir := t.TempDir()
	run := func(name string, setsid bool) told {
		to := filepath.Join(dir, name)
		c := exec.Command(os.Args[0], originMode, list, to)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return readOrigin(t, to)
	}
	if is := run("own", false); !is.Below || !is.Own || is.Record != nil || is.Left {
		t.Errorf("the program's own child: %+v", is)
	}
	if is := run("other", true); !is.Below || is.Own || is.Record != nil || !is.Left {
		t.Errorf("a child of another session: %+v", is)
	}
	unlisted := open(t, "")
	to := filepath.Join(dir, "unlisted")
	if _, err := unlisted.Run(within(t), Cmd{Args: []string{os.Args[0], originMode, list, to}}, Ladder{}); err != nil {
		t.Fatal(err)
	}
	if is := readOrigin(t, to); !is.Below || is.Own || is.Record != nil {
		t.Errorf("a child of a register without records: %+v", is)
	}
	// A process that removes or forges the record of its session becomes unknown.
	to = filepath.Join(dir, "removed")
	c := start(t, r, Cmd{Args: []string{"sh", "-c", fmt.Sprintf("rm '%s'/$$.json; %s", r.dir, whoami(list, to))},
		Member: "ann"})
	c.Wait(within(t))
	if is := readOrigin(t, to); !is.Below || is.Own || is.Record != nil {
		t.Errorf("a child whose record was removed: %+v", is)
	}
	to = filepath.Join(dir, "older")
	c = start(t, r, Cmd{Args: []string{"sh", "-c", fmt.Sprintf(`sed -i.bak 's/"start":"/"start":"x/' '%s'/$$.json; %s`,
		r.dir, whoami(list, to))}, Member: "ann"})
	c.Wait(within(t))
	if is := readOrigin(t, to); !is.Below || is.Record != nil {
		t.Errorf("a child with the record of another process of that number: %+v", is)
	}
	os.Remove(filepath.Join(r.dir, strconv.Itoa(c.Pid())+".json.bak"))
}

// TestOriginElsewhere checks that another list does not know the host, and that entries of dead
// processes are ignored and removed.
func TestOriginElsewhere(t *testing.T) {
	r, _ := listedHost(t)
	other := filepath.Join(t.TempDir(), ListFolder)
	to := filepath.Join(t.TempDir(), "origin")
	ask := func() told {
		os.Remove(to)
		if _, err := r.Run(within(t), Cmd{Args: []string{os.Args[0], originMode, other, to}, Member: "ann"},
			Ladder{}); err != nil {
			t.Fatal(err)
		}
		return readOrigin(t, to)
	}
	if is := ask(); is.Below {
		t.Errorf("no list: %+v", is)
	}
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(other, strconv.Itoa(os.Getpid())+"-X.json")
	data, _ := json.Marshal(entry{Pid: os.Getpid(), Start: "before", Dir: t.TempDir(), Team: "demo"})
	if err := os.WriteFile(stale, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if is := ask(); is.Below {
		t.Errorf("an entry of a process of before: %+v", is)
	}
	again, err := OpenListed(filepath.Join(t.TempDir(), "h2"), Listing{Folder: other})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("the entry of a process of before stays: %v", err)
	}
	if err := again.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stale, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := AncestryOf(other, os.Getpid()); err != nil {
		t.Errorf("a damaged entry of a process that is no ancestor: %v", err)
	}
	if err := func() error {
		_, err := r.Run(within(t), Cmd{Args: []string{os.Args[0], originMode, other, to}}, Ladder{})
		return err
	}(); err != nil {
		t.Fatal(err)
	}
}

// TestOriginInANamespace checks that no ancestor is found in a namespace with other pids or start
// times. A running host is detected there all the same, until it ends.
func TestOriginInANamespace(t *testing.T) {
	soak.Long(t)
	for name, namespace := range map[string]string{
		"of processes": "unshare -Urpf --mount-proc",
		"of time":      "unshare -UrTf --boottime 100000",
		"of both":      "unshare -UrTpf --boottime 100000 --mount-proc",
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "of both" {
				t.Skip("each takes half a second; not with -short")
			}
			if out, err := exec.Command("sh", "-c", namespace+" true").CombinedOutput(); err != nil {
				t.Skipf("this system makes no such namespace: %v: %s", err, out)
			}
			r, list := listedHost(t)
			to := filepath.Join(t.TempDir(), "origin")
			run := func() told {
				t.Helper()
				os.Remove(to)
				c := exec.Command("sh", "-c", namespace+" env -i "+whoami(list, to))
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return readOrigin(t, to)
			}
			if is := run(); !is.Below || !is.Hidden || is.Own || is.Record != nil || len(is.Teams) != 1 ||
				is.Teams[0] != "demo" {
				t.Errorf("below a host that it cannot see: %+v", is)
			}
			c := start(t, r, Cmd{Args: []string{"sh", "-c", namespace + " env -i " + whoami(list, to)}, Member: "ann"})
			os.Remove(to)
			c.Wait(within(t))
			if is := readOrigin(t, to); !is.Below || !is.Hidden {
				t.Errorf("in a session: %+v", is)
			}
			// A killed host leaves its entry but holds no lock.
			dead := filepath.Join(t.TempDir(), ListFolder)
			if err := os.MkdirAll(dead, 0o700); err != nil {
				t.Fatal(err)
			}
			data, _ := json.Marshal(entry{Pid: 1 << 22, Start: "x", Dir: t.TempDir(), Team: "demo"})
			if err := os.WriteFile(filepath.Join(dead, fmt.Sprintf("%d-x.json", 1<<22)), data, 0o600); err != nil {
				t.Fatal(err)
			}
			list = dead
			if is := run(); is.Below {
				t.Errorf("with a host that is gone: %+v", is)
			}
		})
	}
}

// TestAHostInAContainer checks that a process that sees all processes is not below a running host
// that it does not see.
func TestAHostInAContainer(t *testing.T) {
	if !seesAll() {
		t.Skip("this test runs in a namespace itself")
	}
	list, dir := t.TempDir(), t.TempDir()
	lock, err := filelock.New(filepath.Join(dir, AliveFile))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	data, _ := json.Marshal(entry{Pid: 1 << 22, Start: "x", Dir: dir, Team: "demo"})
	if err := os.WriteFile(filepath.Join(list, fmt.Sprintf("%d-x.json", 1<<22)), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if origin, below, err := AncestryOf(list, os.Getpid()); below || err != nil {
		t.Errorf("%+v, %v", origin, err)
	}
}

// TestAncestors follows the parents of this process to the top, whatever their names contain.
func TestAncestors(t *testing.T) {
	child, err := lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if child.parent != os.Getppid() {
		t.Fatalf("the parent is %d, and is %d", child.parent, os.Getppid())
	}
	for depth := 0; ; depth++ {
		parent, ok, err := parentOf(&child)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			t.Logf("%d ancestors", depth)
			return
		}
		if child = parent; depth > 10_000 {
			t.Fatal("the walk does not end")
		}
	}
}

// BenchmarkAncestry measures how long a command takes to find out for which member it runs: with an
// empty list, with 20 hosts that are not its ancestors, and with those ten levels deeper. Each must
// take less than half a millisecond.
func BenchmarkAncestry(b *testing.B) {
	walk := func(list string, pid int) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				if _, _, err := AncestryOf(list, pid); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ms/walk")
			b.ReportMetric(0, "ns/op")
		}
	}
	b.Run("no host", walk(filepath.Join(b.TempDir(), ListFolder), os.Getpid()))
	full := filepath.Join(b.TempDir(), ListFolder)
	if err := os.MkdirAll(full, 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		data, _ := json.Marshal(entry{Pid: 1 << 22, Start: "x", Dir: "/nowhere"})
		if err := os.WriteFile(filepath.Join(full, fmt.Sprintf("%d-%d.json", 1<<22+i, i)), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("20 hosts elsewhere", walk(full, os.Getpid()))
	b.Run("10 levels deeper", walk(full, deep(b, 10)))
}

// deep starts nested shells and returns the pid of the innermost one.
func deep(b *testing.B, levels int) (pid int) {
	b.Helper()
	script := filepath.Join(b.TempDir(), "deeper")
	// A command after the last one keeps a shell from replacing itself with it.
	text := "if [ $1 -gt 1 ]; then sh \"$0\" $(($1-1)); else echo $$; read end; fi\n:\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	c := exec.Command("sh", script, strconv.Itoa(levels))
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); c.Wait() })
	if _, err := fmt.Fscan(out, &pid); err != nil {
		b.Fatal(err)
	}
	return pid
}

// TestAListWithAPipe checks that a pipe in place of an entry is an error and does not block.
func TestAListWithAPipe(t *testing.T) {
	list := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(list, fmt.Sprintf("%d-x.json", os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, _, err := AncestryOf(list, os.Getpid())
		_, _, below := AncestryOf(list, os.Getppid())
		ended <- errors.Join(err, below)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the walk waits for the pipe")
	}
}

// TestADyingHost checks that a host that has released its lock, but has not ended, is waited for.
// What it left behind is below no host then: the command that runs on its death is not a session.
func TestADyingHost(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	list, dir, at := t.TempDir(), t.TempDir(), t.TempDir()
	to, ready := filepath.Join(at, "origin"), filepath.Join(at, "ready")
	host := exec.Command("sh", "-c", "until test -e '"+ready+"'; do sleep 0.02; done; setsid "+whoami(list, to)+
		" & sleep 0.6")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	began, err := StartTime(host.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(entry{Pid: host.Process.Pid, Start: began, Dir: dir, Team: "demo"})
	if err := os.WriteFile(filepath.Join(list, fmt.Sprintf("%d-x.json", host.Process.Pid)), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := host.Wait(); err != nil {
		t.Fatal(err)
	}
	if is := readOrigin(t, to); is.Below {
		t.Errorf("got %+v", is)
	}
}

// TestReleased checks that a process without a record does not wait for a host that lives, and does
// wait for one that has just begun to release its locks.
func TestReleased(t *testing.T) {
	host := func() (entry, *filelock.Lock) {
		dir := t.TempDir()
		lock, err := filelock.New(filepath.Join(dir, AliveFile))
		if err != nil {
			t.Fatal(err)
		}
		return entry{Dir: dir}, lock
	}
	one, first := host()
	two, second := host()
	began := time.Now()
	if released([]entry{one, two}) {
		t.Error("a host that holds its locks has released them")
	}
	if took := time.Since(began); took >= releasePatience {
		t.Errorf("to find that a host lives took %v", took)
	}
	first.Unlock()
	time.AfterFunc(releasePatience/4, func() { second.Unlock() })
	if !released([]entry{one, two}) {
		t.Error("a host that released its locks one by one holds them")
	}
}
