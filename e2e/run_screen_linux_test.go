package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// opensScreen is what a terminal is told first by a screen, and closesScreen last.
const opensScreen, closesScreen = "\x1b[?1049h", "\x1b[?1049l"

// TestRunLines: a run prints lines where it ends within two seconds, and wherever a person or the
// terminal wants no screen.
func TestRunLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes, settings string
		env, args       []string
		opens           bool
	}{
		"a screen": {takes: "4", opens: true},
		"auto":     {takes: "4", settings: `{"screen": "auto"}`, opens: true},
		"short":    {takes: "0.1"},
		"plain":    {takes: "4", args: []string{"--plain"}},
		"json":     {takes: "4", args: []string{"--json"}},
		"ci":       {takes: "4", env: []string{"CI=true"}},
		"dumb":     {takes: "4", env: []string{"TERM=dumb"}},
		"no TERM":  {takes: "4", env: []string{"TERM="}},
		"never":    {takes: "4", settings: `{"screen": "never"}`},
		"no input": {takes: "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository() // elsewhere the work of a task is looked for in vain for a while
			w.write("team.yaml", "name: demo\nmembers: [{name: w, agent: shell}]\n"+
				"tasks: [{id: one, run: sleep "+c.takes+"}]\n")
			if c.settings != "" {
				w.write("../cadre/settings.json", c.settings)
			}
			p := newSlowTerminal(t, 80, 24)
			go p.answers(30 * time.Millisecond)
			p.noInput = name == "no input"
			for range 5 {
				cmd := p.start(w, c.env, append([]string{"run", "team.yaml"}, c.args...)...)
				began := time.Now()
				if err := p.ends(cmd); err != nil {
					t.Errorf("%v:\n%s", err, p.written())
				}
				if name != "short" || time.Since(began) < 2*time.Second {
					break
				}
				p = newSlowTerminal(t, 80, 24) // on a busy machine it was not short
				go p.answers(30 * time.Millisecond)
			}
			if out := p.written(); strings.Contains(out, opensScreen) != c.opens ||
				!strings.Contains(out, "1 of 1 task done") && !strings.Contains(out, `"done":true`) {
				t.Errorf("it wrote\n%q", out)
			}
		})
	}
}

// TestRunScreenQuits: a run that is interrupted as soon as its screen opens leaves no answers of a
// slow terminal for the shell, and restores it.
func TestRunScreenQuits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.screened()
	p := newSlowTerminal(t, 80, 24)
	was, err := unix.IoctlGetTermios(int(p.theirs.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	go p.answers(100 * time.Millisecond)
	cmd := p.start(w, nil, "run", "team.yaml")
	eventually(t, "the screen opens", func() bool { return strings.Contains(p.written(), opensScreen) })
	p.ours.WriteString("\x03")
	if err := p.ends(cmd); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the run ended with %v, want status 1:\n%s", err, p.written())
	}
	time.Sleep(200 * time.Millisecond) // a late answer would come now
	if left, err := unix.IoctlGetInt(int(p.theirs.Fd()), unix.TIOCINQ); err != nil || left > 0 {
		t.Errorf("%d bytes are left for the shell: %v", left, err)
	}
	is, err := unix.IoctlGetTermios(int(p.theirs.Fd()), unix.TCGETS)
	if err != nil || *is != *was {
		t.Errorf("the terminal was %+v and is %+v, %v", was, is, err)
	}
	_, after, closed := strings.Cut(p.written(), closesScreen)
	if !closed || !strings.Contains(after, "stopping 2 members") {
		t.Errorf("the lines do not follow the screen: %q", p.written())
	}
}

// TestRunScreenSharesState: a run, its screen and its notifications read the team from one journal,
// so that they have one state of it in memory.
func TestRunScreenSharesState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.runs()
	p.shows("2 working")
	fds := filepath.Join("/proc", strconv.Itoa(child(t, p.front())), "fd")
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	journals := 0
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(fds, e.Name())); strings.HasSuffix(to, "/journal/lock") {
			journals++
		}
	}
	if journals != 1 {
		t.Errorf("the run has opened %d journals of its team", journals)
	}
	w.write("mended", "")
	w.write("go", "")
	p.leavesLines(0, "2 of 2 tasks done")
}
