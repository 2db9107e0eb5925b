package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/sys/filelock"
)

// panes returns the panes of the team's members in the terminal, by member.
func (p *terminal) panes() map[string]string {
	p.t.Helper()
	panes := map[string]string{}
	for line := range strings.Lines(p.do("list-panes", "-a", "-F", "#{pane_id} #{pane_dead} #{@cadre-member}")) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "0" {
			panes[f[3]] = f[0]
		}
	}
	return panes
}

// TestPanes runs a team of eight with panes, closes one of them, kills the run, and continues it.
func TestPanes(t *testing.T) {
	w := newWorld(t)
	release := filepath.Join(w.dir, "release")
	file := "name: panes\nmembers:\n"
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("m%d", i))
		file += fmt.Sprintf("  - {name: m%d, agent: shell}\n", i)
	}
	file += "tasks:\n"
	for i := range 8 {
		file += fmt.Sprintf("  - {id: t%d, subject: t%[1]d, owner: m%[1]d, "+
			"run: \"echo this is %[1]d; until [ -e %s ]; do sleep 0.1; done\"}\n", i, release)
	}
	w.write("panes.yaml", file)
	p := w.terminal("sh")
	before := p.do("show-options", "-g") + p.do("show-options", "-gw")
	all := func() bool { return len(p.panes()) == 8 }
	p.enter(cadre + " run --plain panes.yaml & echo $! > pid; wait $!")
	p.wait("eight members have panes", all)
	shown := p.panes()
	p.wait("a pane shows its member", func() bool {
		return strings.Contains(p.do("capture-pane", "-p", "-t", shown["m3"]), "task t3")
	})
	for name, id := range shown { // the panes became smaller while others were opened
		p.wait("the first line of a pane is whole", func() bool {
			text := strings.Join(strings.Fields(p.do("capture-pane", "-p", "-S", "-", "-t", id)), " ")
			return strings.Count(text, "note: a line that you type goes to "+name+"; leave with Ctrl-C") == 1
		})
		p.wait("the last line of a pane names its member", func() bool {
			return strings.HasSuffix(strings.TrimSpace(p.do("capture-pane", "-p", "-t", id)), "\nto "+name+" ▸")
		})
	}
	for line := range strings.Lines(p.do("list-windows", "-F", "#{window_panes}")) {
		if n := strings.TrimSpace(line); n > "6" {
			t.Errorf("a window has %s panes", n)
		}
	}
	// Claude Code's roster says where they are.
	p.wait("the roster says where the members are", func() bool {
		data, _ := os.ReadFile(filepath.Join(w.root, "claude", "teams", "panes", "config.json"))
		var roster struct {
			Members []struct{ Name, BackendType, TmuxPaneID string }
		}
		if json.Unmarshal(data, &roster) != nil {
			return false
		}
		for _, m := range roster.Members {
			if m.Name != "lead" && (m.BackendType != "tmux" || m.TmuxPaneID != shown[m.Name]) {
				return false
			}
		}
		return len(roster.Members) == 9
	})
	// A pane that is closed takes nothing from its member.
	p.do("kill-pane", "-t", shown["m5"])
	// A run that is killed leaves the panes, and the next one finds them and opens the closed one.
	pid, err := strconv.Atoi(w.lines("pid")[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	border := func(name string) string {
		return p.do("display-message", "-p", "-t", p.panes()[name], "#{@cadre-title}|#{pane_title}")
	}
	p.wait("a pane says that no process runs its session", func() bool {
		text := strings.Join(strings.Fields(p.do("capture-pane", "-p", "-t", shown["m3"])), " ")
		return strings.Contains(text, "No process runs this session. Continue the team with: cadre resume panes") &&
			strings.HasSuffix(strings.TrimSpace(border("m3")), "m3#[default] no host|m3 no host")
	})
	p.enter(cadre + " run panes.yaml; echo status $?")
	p.wait("eight members have panes again", all)
	p.wait("a pane says that its session runs again", func() bool {
		text := strings.Join(strings.Fields(p.do("capture-pane", "-p", "-t", shown["m3"])), " ")
		return strings.Contains(text, "A process runs this session again.") &&
			strings.HasSuffix(strings.TrimSpace(border("m3")), "m3#[default] active|m3 active")
	})
	again := p.panes()
	for _, name := range names {
		if kept := again[name] == shown[name]; kept == (name == "m5") {
			t.Errorf("%s is in %s after %s", name, again[name], shown[name])
		}
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.shows("status 0")
	p.wait("the panes go with their members", func() bool { return len(p.panes()) == 0 })
	if after := p.do("show-options", "-g") + p.do("show-options", "-gw"); after != before {
		t.Errorf("the person's options changed from\n%s\nto\n%s", before, after)
	}
	completed := 0
	for _, task := range read[[]struct{ Status string }](w, "task", "list", "panes") {
		if task.Status == "completed" {
			completed++
		}
	}
	if completed != 8 {
		t.Errorf("%d of 8 tasks are completed", completed)
	}
}

// TestPanesOfABackgroundTeam shows the members of a team that a host in the background runs: those
// that are there, one that joins, and one whose pane was closed. It closes all of them, and shows
// them again when the team is resumed.
func TestPanesOfABackgroundTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--wait")
	out := w.cadre("panes", "demo")
	w.refused(out, 2, "its output is not a terminal", "tmux new-session", "cadre attach demo NAME")
	w.refused(w.cadre("panes", "demo", "--close"), 2, "this is not the terminal that has the panes",
		"tmux list-panes -a")
	p := w.terminal("sh")
	are := func(names ...string) {
		t.Helper()
		p.wait(fmt.Sprintf("these have panes: %q", names), func() bool {
			return slices.Equal(slices.Sorted(maps.Keys(p.panes())), names)
		})
	}
	p.enter(cadre + " panes demo | cat")
	p.shows("members are shown in windows of tmux named cadre demo")
	are("ann")
	w.must("spawn", "demo", "bob", "--wait")
	are("ann", "bob")
	p.wait("the roster says where bob is", func() bool {
		data, _ := os.ReadFile(filepath.Join(w.root, "claude", "teams", "demo", "config.json"))
		return strings.Contains(string(data), `"tmuxPaneId": "`+p.panes()["bob"]+`"`)
	})
	bob := p.panes()["bob"]
	p.do("kill-pane", "-t", bob)
	are("ann")
	p.enter(cadre + " panes demo")
	are("ann", "bob")
	p.enter(cadre + " panes demo --close")
	p.shows("2 panes closed; the members of team demo continue")
	are()
	w.unkept("demo")
	// A member that joins now gets no pane: the person closed them.
	w.must("spawn", "demo", "cyd", "--wait")
	are()
	p.enter(cadre + " resume demo")
	are("ann", "bob", "cyd")
	w.must("abort", "demo", "--yes")
	are()
	p.enter("clear; " + cadre + " panes demo; echo status $?")
	p.shows("team demo is aborted, and has no sessions to show")
	p.shows("status 2")
}

// TestPanesOfADetachedRun checks that a run that leaves its terminal still opens panes there, and
// that cadre spawn does so where the settings ask for panes.
func TestPanesOfADetachedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := filepath.Join(w.dir, "release")
	w.write("two.yaml", fmt.Sprintf("name: two\nmembers: [{name: ann, agent: shell}, {name: bob, agent: shell}]\n"+
		"tasks:\n  - {id: a, owner: ann, run: &run 'until [ -e %s ]; do sleep 0.1; done'}\n"+
		"  - {id: b, owner: bob, run: *run}\n",
		release))
	p := w.terminal("sh")
	are := func(names ...string) {
		t.Helper()
		p.wait(fmt.Sprintf("these have panes: %q", names), func() bool {
			return slices.Equal(slices.Sorted(maps.Keys(p.panes())), names)
		})
	}
	p.enter(cadre + " run --detach --teammate-mode tmux two.yaml; echo status $?")
	p.shows("team two continues in the background")
	p.shows("status 0")
	are("ann", "bob")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	are()
	eventually(t, "the run ends", func() bool { return strings.Contains(w.must("status", "two"), "2 of 2") })
	w.must("create", "demo")
	w.must("spawn", "demo", "cyd", "--wait")
	if err := os.MkdirAll(filepath.Join(w.root, "claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("../claude/settings.json", `{"teammateMode": "tmux"}`)
	w.must("spawn", "demo", "dan", "--wait") // off a terminal
	are()
	p.enter(cadre + " spawn demo eve")
	are("cyd", "dan", "eve")
	w.must("abort", "demo", "--yes")
	are()
}

// unkept waits until no process keeps the panes of the team.
func (w *world) unkept(team string) {
	w.t.Helper()
	eventually(w.t, "the process that kept the panes ends", func() bool {
		lock, err := filelock.New(filepath.Join(w.home, "teams", team, "panes.lock"))
		if err == nil {
			lock.Unlock()
		}
		return err == nil
	})
}

// TestPanesOfAKilledTmux kills the tmux that shows a team. The team continues, the roster says that
// nothing is shown in panes, and another tmux shows the team.
func TestPanesOfAKilledTmux(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--wait")
	first := w.terminal("sh")
	first.enter(cadre + " panes demo")
	roster := func() string {
		data, _ := os.ReadFile(filepath.Join(w.root, "claude", "teams", "demo", "config.json"))
		return string(data)
	}
	eventually(t, "the roster names the pane",
		func() bool { return strings.Contains(roster(), `"backendType": "tmux"`) })
	first.close()
	w.unkept("demo")
	if strings.Contains(roster(), `"backendType": "tmux"`) {
		t.Errorf("the roster still names a pane:\n%s", roster())
	}
	w.must("task", "add", "demo", "after", "--run", "echo it works on")
	second := w.terminal("sh")
	second.enter(cadre + " panes demo")
	second.wait("ann has a pane", func() bool { return len(second.panes()) == 1 })
	second.wait("the pane shows what ann did", func() bool {
		return strings.Contains(second.do("capture-pane", "-p", "-t", second.panes()["ann"]), "it works on")
	})
	w.must("abort", "demo", "--yes")
}

// TestTeammateMode checks what is said where members cannot be shown as the flag or the setting
// wants.
func TestTeammateMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("quick.yaml", "name: quick\nmembers: [{name: w, agent: shell}]\ntasks: [{id: a, run: 'true', owner: w}]\n")
	for variable, want := range map[string]string{
		"TERM_PROGRAM=vscode": "--teammate-mode tmux: The terminal of VS Code has no panes that cadre can open; run " +
			"cadre inside tmux: tmux new-session",
		"WT_SESSION=1":         "--teammate-mode tmux: Windows Terminal has no panes",
		"TERM_PROGRAM=ghostty": "--teammate-mode tmux: Ghostty has no panes",
		"TERM_PROGRAM=":        "--teammate-mode tmux: this is not a window of tmux; start one with: tmux new-session",
	} {
		w.refused(w.with([]string{"TMUX=", variable}, "run", "quick.yaml", "--teammate-mode", "tmux"), 2, want)
	}
	w.refused(w.cadre("run", "quick.yaml", "--teammate-mode", "windows"), 2,
		`--teammate-mode is "windows"; use auto, in-process, tmux, iterm2`)
	if err := os.MkdirAll(filepath.Join(w.root, "claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	plain := w.terminal("env", "-u", "TMUX", "-u", "TMUX_PANE", cadre, "run", "quick.yaml", "--plain")
	if code := plain.ended(); code != 0 || !strings.Contains(plain.screen(),
		"members are shown in this terminal (in-process)") {
		t.Errorf("on a terminal without panes, exit status %d:\n%s", code, plain.screen())
	}
	w.must("create", "led")
	w.must("spawn", "led", "ann", "--agent", "external")
	again := w.terminal("env", "-u", "TMUX", "-u", "TMUX_PANE", cadre, "resume", "led")
	if code := again.ended(); code != 0 || !strings.Contains(strings.Join(strings.Fields(again.screen()), " "),
		"members are not shown in panes (in-process); to watch one: cadre attach led NAME") {
		t.Errorf("on a terminal without panes, resume ends with %d:\n%s", code, again.screen())
	}
	w.write("../claude/settings.json", `{"teammateMode": "tmux"}`)
	off := w.with([]string{"TMUX="}, "run", "quick.yaml")
	if off.code != 0 || strings.Contains(off.out+off.err, "teammateMode") {
		t.Errorf("off a terminal, exit status %d:\n%s%s", off.code, off.out, off.err)
	}
	p := w.terminal("env", "-u", "TMUX", "-u", "TMUX_PANE", cadre, "run", "quick.yaml")
	if code := p.ended(); code != 0 {
		t.Errorf("on a terminal, exit status %d:\n%s", code, p.screen())
	}
	text := strings.Join(strings.Fields(p.screen()), " ")
	if strings.Count(text, "teammateMode is tmux: this is not a window of tmux; start one with: tmux new-session. "+
		"Used instead: in-process") != 1 {
		t.Errorf("on a terminal it is not said once what is used instead:\n%s", p.screen())
	}
}
