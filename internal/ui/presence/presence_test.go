package presence

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// person is a user at terminals of one home.
type person struct {
	t    *testing.T
	home string
	now  team.Time
}

func newPerson(t *testing.T) *person {
	return &person{t, t.TempDir(), team.Time(time.Now().UnixMilli())}
}

func (p *person) later(by time.Duration) { p.now += team.Time(by.Milliseconds()) }

// sees waits until the person sees exactly these of: the whole team, its member ann, its member
// bob, another team.
func (p *person) sees(when string, want ...string) {
	p.t.Helper()
	var got []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		got = nil
		shown := Read(p.t.Context(), p.home, p.now)
		for what, of := range map[string][3]string{"team": {"demo", "1", ""}, "ann": {"demo", "1", "ann"},
			"bob": {"demo", "1", "bob"}, "other": {"x", "2", ""}} {
			if shown.Seen(of[0], of[1], of[2]) {
				got = append(got, what)
			}
		}
		slices.Sort(got)
		if slices.Equal(got, slices.Sorted(slices.Values(want))) {
			return
		}
	}
	p.t.Errorf("%s the person sees %q, want %q", when, got, want)
}

func none(string) string { return "" }

// TestFocus checks what counts in terminals that report their focus, and in others.
func TestFocus(t *testing.T) {
	p := newPerson(t)
	v := Open(p.home, none)
	p.sees("before anything is shown")
	v.Show(View{Team: "demo"})
	p.sees("before a key")
	v.Press(p.now)
	p.sees("after a key", "team", "ann", "bob")
	p.later(Briefly + time.Second)
	p.sees("a minute after it")
	v.Focus(p.now, true)
	p.later(Attentive - time.Second)
	p.sees("with the focus", "team", "ann", "bob")
	v.Show(View{Every: true})
	p.sees("in the list of teams", "team", "ann", "bob", "other")
	v.Show(View{Team: "1", Member: "ann"})
	p.sees("at a member", "ann")
	p.later(2 * time.Second)
	p.sees("after minutes without a key")
	v.Press(p.now)
	p.sees("after a key", "ann")
	v.Focus(p.now, false)
	p.sees("without the focus")
	w := Open(p.home, none)
	w.Show(View{Team: "1", Member: "bob"})
	w.Focus(p.now, true)
	p.sees("at another terminal", "bob")
	w.Close()
	p.sees("after it was closed")
	v.Close()
	v.Press(p.now)
	if left, _ := os.ReadDir(Folder(p.home)); len(left) > 0 {
		t.Errorf("these records are left: %v", left)
	}
	var nobody *Viewer
	nobody.Show(View{Every: true})
	nobody.Close()
}

// TestKilledViewer checks that the record of a process that was killed hides nothing and is
// removed, and that no other file disturbs.
func TestKilledViewer(t *testing.T) {
	p := newPerson(t)
	v := Open(p.home, none)
	defer v.Close()
	v.Show(View{Team: "demo"})
	v.Press(p.now)
	p.sees("after a key", "team", "ann", "bob")
	entries, err := os.ReadDir(Folder(p.home))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	data, err := os.ReadFile(filepath.Join(Folder(p.home), entries[0].Name()))
	var r record
	if err != nil || json.Unmarshal(data, &r) != nil {
		t.Fatal(err)
	}
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	dead := c.Process.Pid
	r.Pid = dead
	killed, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r.Pid, r.Start = os.Getpid(), "another" // the pid of a process that was killed, taken again
	reused, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	v.Show(View{})
	p.sees("after nothing is shown")
	for name, data := range map[string]string{fmt.Sprintf("%d-1.json", dead): string(killed),
		fmt.Sprintf("%d-1.json.new", dead): "{", "notes.txt": "x", fmt.Sprintf("%d-9.json",
			os.Getpid()): string(reused), fmt.Sprintf("%d-8.json", os.Getpid()): "damaged"} {
		if err := os.WriteFile(filepath.Join(Folder(p.home), name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.sees("beside a killed process")
	if left, _ := filepath.Glob(filepath.Join(Folder(p.home), fmt.Sprint(dead)+"-*")); len(left) > 0 {
		t.Errorf("the killed process has left %v", left)
	}
}

// TestTmux asks a real tmux what the person looks at.
func TestTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "looks") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	tmux := func(server string, args ...string) string {
		t.Helper()
		c := exec.Command("tmux", append([]string{"-S", filepath.Join(dir, server), "-f", "/dev/null"}, args...)...)
		c.Env = append(os.Environ(), "TMUX=", "TERM=xterm-256color")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	pane := tmux("mine", "new-session", "-d", "-s", "work", "-P", "-F", "#{pane_id}", "cat")
	defer tmux("mine", "kill-server")
	p := newPerson(t)
	v := Open(p.home, func(name string) string {
		return map[string]string{"TMUX": filepath.Join(dir, "mine") + ",1,0", "TMUX_PANE": pane}[name]
	})
	defer v.Close()
	v.Show(View{Team: "demo"})
	v.Press(p.now)
	p.sees("with no client of tmux")
	// The window of another tmux is the person's terminal.
	tmux("screen", "new-session", "-d", "env", "-u", "TMUX", "tmux", "-S", filepath.Join(dir, "mine"), "attach")
	defer tmux("screen", "kill-server")
	p.now = team.Time(time.Now().UnixMilli())
	p.sees("with a client", "team", "ann", "bob")
	tmux("mine", "split-window", "-t", pane, "cat")
	p.sees("beside another pane", "team", "ann", "bob")
	tmux("mine", "new-window", "-t", "work:", "cat")
	p.sees("behind another window")
	tmux("mine", "select-window", "-t", "work:0")
	p.sees("after the window was chosen", "team", "ann", "bob")
	p.later(Briefly + 10*time.Second)
	p.sees("after a minute without a key")
	tmux("mine", "set-option", "-s", "focus-events", "on")
	p.sees("in a terminal that reports its focus", "team", "ann", "bob")
	p.later(Attentive)
	p.sees("after minutes without a key")
	tmux("mine", "kill-pane", "-t", pane)
	p.now = team.Time(time.Now().UnixMilli())
	p.sees("after the pane was closed")
}
