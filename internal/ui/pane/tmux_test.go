package pane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/sys/sleep"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// terminal is a tmux server with the person's window.
type terminal struct {
	t      *testing.T
	socket string
	pane   string // of the person
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "pane") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &terminal{t: t, socket: filepath.Join(dir, "s")}
	w.begin()
	t.Cleanup(func() { exec.Command("tmux", "-S", w.socket, "kill-server").Run() })
	return w
}

func (w *terminal) begin() {
	w.pane = w.tmux("-f", "/dev/null", "new-session", "-d", "-n", "mine", "-x", "80", "-y", "24", "-P", "-F",
		"#{pane_id}", "cat")
}

func (w *terminal) tmux(args ...string) string {
	w.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", w.socket}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// backend returns the panes of a team in the terminal.
func (w *terminal) backend() Backend {
	env := map[string]string{"TMUX": w.socket + ",1,0", "TMUX_PANE": w.pane}
	return NewTmux(func(name string) string { return env[name] }, "TEAM", "demo", []string{"SEEN=yes"})
}

// roster is a team whose members change.
type roster struct {
	mu      sync.Mutex
	members []Member
	changed chan struct{}
}

func (r *roster) set(states ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = nil
	for _, s := range states {
		name, state, _ := strings.Cut(s, " ")
		r.members = append(r.members, Member{Name: name, State: state, Color: "blue", Own: true})
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// keep keeps the panes of the roster until end is called. failed gets the error of Keep.
func (r *roster) keep(b Backend, untilClosed ...bool) (end func(), failed chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	failed = make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed <- Keep(ctx, Options{Backend: b, UntilClosed: len(untilClosed) > 0,
			Members: func() []Member {
				r.mu.Lock()
				defer r.mu.Unlock()
				return slices.Clone(r.members)
			},
			Wait: func(ctx context.Context) error {
				r.mu.Lock()
				changed := r.changed
				r.mu.Unlock()
				select {
				case <-changed:
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
				}
				return ctx.Err()
			},
			Command: func(member string) []string {
				return []string{"sh", "-c", `echo "this is $0 $SEEN"; exec cat`, member}
			}})
	}()
	return func() { cancel(); <-ended }, failed
}

// want waits until the panes are those of the members, with these titles.
func (w *terminal) want(titles ...string) {
	w.t.Helper()
	titles = slices.Sorted(slices.Values(titles))
	var got []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		got = nil
		for line := range strings.Lines(w.tmux("list-panes", "-a", "-F", "#{@cadre-member}|#{@cadre-title}")) {
			mark, title, _ := strings.Cut(strings.TrimSpace(line), "|")
			if name, ours := strings.CutPrefix(mark, "TEAM "); ours {
				title = strings.TrimPrefix(title, "#[fg=blue,bold]"+name+"#[default] ")
				got = append(got, name+" "+title)
			}
		}
		slices.Sort(got)
		if slices.Equal(got, titles) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Errorf("the panes are %q, want %q", got, titles)
}

// TestPanes lets a team grow, change and shrink in a real tmux.
func TestPanes(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	w := newTerminal(t)
	before := w.tmux("show-options", "-g") + w.tmux("show-options", "-gw") + w.tmux("display-message", "-p",
		"-t", w.pane,
		"#{window_name} #{window_panes} #{window_active}")
	r := &roster{changed: make(chan struct{})}
	r.set("ann working", "bob idle")
	end, _ := r.keep(w.backend())
	w.want("ann working", "bob idle")
	r.set("ann idle", "bob idle")
	w.want("ann idle", "bob idle")
	n := 12
	if testing.Short() {
		n = 5 // one more than a window has room for
	}
	var many []string
	for i := range n {
		many = append(many, fmt.Sprintf("m%d working", i))
	}
	r.set(many...)
	w.want(many...)
	for line := range strings.Lines(w.tmux("list-windows", "-a", "-F", "#{@cadre-team} #{window_panes}")) {
		if of, n, _ := strings.Cut(strings.TrimSpace(line), " "); of == "TEAM" && n > "4" {
			t.Errorf("a window of 80x24 has %s panes", n)
		}
	}
	// A pane that the person closed stays closed.
	pane := w.of("m3")
	w.tmux("kill-pane", "-t", pane)
	rest := slices.Delete(slices.Clone(many), 3, 4)
	w.want(rest...)
	r.set(many...)
	time.Sleep(200 * time.Millisecond)
	w.want(rest...)
	end()
	// The next process finds the others, and opens that one.
	end, _ = r.keep(w.backend())
	w.want(many...)
	r.set()
	w.want()
	end()
	if after := w.tmux("show-options", "-g") + w.tmux("show-options", "-gw") + w.tmux("display-message", "-p",
		"-t", w.pane,
		"#{window_name} #{window_panes} #{window_active}"); after != before {
		t.Errorf("the person's tmux changed from\n%s\nto\n%s", before, after)
	}
	if n := w.tmux("list-windows", "-a", "-F", "x"); n != "x" {
		t.Errorf("windows are left over: %q", n)
	}
}

// of returns the pane of the member.
func (w *terminal) of(member string) string {
	w.t.Helper()
	for line := range strings.Lines(w.tmux("list-panes", "-a", "-F", "#{pane_id} #{@cadre-member}")) {
		if id, mark, _ := strings.Cut(strings.TrimSpace(line), " "); mark == "TEAM "+member {
			return id
		}
	}
	w.t.Fatalf("%s has no pane", member)
	return ""
}

// TestUntilClosed checks that a process that only keeps panes ends when the person has closed all
// of them, and not before.
func TestUntilClosed(t *testing.T) {
	t.Parallel()
	w := newTerminal(t)
	r := &roster{changed: make(chan struct{})}
	r.set()
	end, ended := r.keep(w.backend(), true)
	defer end()
	time.Sleep(200 * time.Millisecond) // no member has a session yet
	r.set("ann working", "bob idle")
	w.want("ann working", "bob idle")
	w.tmux("kill-pane", "-t", w.of("ann"))
	time.Sleep(200 * time.Millisecond)
	w.want("bob idle")
	w.tmux("kill-pane", "-t", w.of("bob"))
	select {
	case err := <-ended:
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Keep ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Keep does not end")
	}
	w.want()
}

// TestViewer checks that the command runs in the pane with its environment.
func TestViewer(t *testing.T) {
	t.Parallel()
	w := newTerminal(t)
	r := &roster{changed: make(chan struct{})}
	r.set("ann working")
	end, _ := r.keep(w.backend())
	defer end()
	w.want("ann working")
	for range 100 {
		if strings.Contains(w.tmux("capture-pane", "-p", "-t", w.of("ann")), "this is ann yes") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the pane does not show the viewer")
}

// hanging is a terminal program that answers only after the caller has stopped waiting.
type hanging struct{ Backend }

func (hanging) Panes(ctx context.Context) (map[string]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestStopWhileItHangs checks that Keep ends while the terminal program hangs.
func TestStopWhileItHangs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	waits := 0
	err := Keep(ctx, Options{Backend: hanging{}, Members: func() []Member { return nil },
		Wait: func(context.Context) error {
			if waits++; waits > 3 {
				return errors.New("it does not end")
			}
			return nil
		}})
	if err != nil || waits > 0 {
		t.Errorf("Keep ended with %v after %d waits", err, waits)
	}
}

// slow is a terminal program that takes a while for each call, as on a busy machine.
type slow struct{ panes map[string]string }

func (s slow) call(ctx context.Context) error { return sleep.For(ctx, 2*time.Second) }

func (s slow) Open(ctx context.Context, member string, _ []string) error {
	s.panes[member] = member
	return s.call(ctx)
}

func (s slow) Close(ctx context.Context, member string) error {
	delete(s.panes, member)
	return s.call(ctx)
}

func (s slow) Title(ctx context.Context, _ Member) error { return s.call(ctx) }

func (s slow) Panes(ctx context.Context) (map[string]string, error) {
	return maps.Clone(s.panes), s.call(ctx)
}

// TestManyPanesOnABusyMachine checks that the time of one call is not that of all: Keep opens and
// closes the panes of a large team however long that takes.
func TestManyPanesOnABusyMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const members = 12
		b := slow{map[string]string{}}
		var shown []int
		err := Keep(t.Context(), Options{Backend: b, Command: func(string) []string { return nil },
			Members: func() (all []Member) {
				for i := range members {
					if len(shown) == 0 {
						all = append(all, Member{Name: fmt.Sprint("m", i)})
					}
				}
				return all
			},
			Wait: func(context.Context) error {
				if shown = append(shown, len(b.panes)); len(shown) == 2 {
					return context.Canceled
				}
				return nil
			}})
		if err != nil || !slices.Equal(shown, []int{members, 0}) {
			t.Errorf("Keep showed %v panes and ended with %v, want %d, then none", shown, err, members)
		}
	})
}

// TestHangingProgram checks what is said of a tmux, and of an it2, that does not answer.
func TestHangingProgram(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tmux", "it2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := call(ctx, "socket", []string{"list-panes"}); err == nil || err.Error() !=
		"tmux list-panes: it did not answer in time" {
		t.Errorf("tmux: %v", err)
	}
	if _, err := it2(ctx, "session", "list"); err == nil || err.Error() != "it2 session list: it did not answer in "+
		"time" {
		t.Errorf("it2: %v", err)
	}
	if testing.Short() {
		return // the rest waits ten seconds
	}
	if err := Answers(); err == nil || !strings.HasSuffix(err.Error(), "it did not answer in time") {
		t.Errorf("the tmux of this window: %v", err)
	}
}

// TestMovedPanes checks that panes are found after a person moved them and renumbered the windows.
// The panes are still those of their members, and nothing else is closed with them.
func TestMovedPanes(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	w := newTerminal(t)
	w.tmux("set-option", "-g", "renumber-windows", "on")
	strange := w.tmux("split-window", "-d", "-t", w.pane, "-P", "-F", "#{pane_id}", "cat")
	r := &roster{changed: make(chan struct{})}
	r.set("ann working", "bob working", "cyd working")
	end, _ := r.keep(w.backend())
	defer end()
	w.want("ann working", "bob working", "cyd working")
	w.tmux("break-pane", "-d", "-s", w.of("ann"))
	w.tmux("join-pane", "-d", "-s", w.of("bob"), "-t", w.pane)
	w.tmux("swap-pane", "-d", "-s", w.of("cyd"), "-t", strange)
	w.tmux("move-window", "-r")
	r.set("ann idle", "bob idle", "cyd idle", "dan idle")
	w.want("ann idle", "bob idle", "cyd idle", "dan idle")
	r.set("dan idle")
	w.want("dan idle")
	r.set()
	w.want()
	left := strings.Fields(w.tmux("list-panes", "-a", "-F", "#{pane_id}"))
	slices.Sort(left)
	mine := []string{w.pane, strange}
	slices.Sort(mine)
	if !slices.Equal(left, mine) {
		t.Errorf("the panes %q are left, want %q", left, mine)
	}
}

// TestServerKilled checks that Keep ends when the server is killed, and that no pane of a new
// server with the id of an old one is touched.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	w := newTerminal(t)
	r := &roster{changed: make(chan struct{})}
	r.set("ann working")
	b := w.backend()
	end, failed := r.keep(b)
	w.want("ann working")
	w.tmux("kill-server")
	select {
	case err := <-failed:
		if !Gone(err) {
			t.Errorf("Keep ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Keep does not notice that the server is gone")
	}
	end()
	for { // the old server may still hold the socket
		if exec.Command("tmux", "-S", w.socket, "-f", "/dev/null", "new-session", "-d", "cat").Run() == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.tmux("split-window", "-d", "cat") // it has the id that ann's pane had
	if err := b.Close(t.Context(), "ann"); err != nil {
		t.Error(err)
	}
	if n := strings.Count(w.tmux("list-panes", "-a"), "\n") + 1; n != 2 {
		t.Errorf("%d panes are left of two strangers", n)
	}
}
