package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
)

// hostile is a text of an agent that tries to reach the terminal of the person who sees it: it
// writes to the clipboard, also through tmux, renames the window, clears the screen, leaves it,
// switches the mouse off, changes colors and the direction of text, and rings the bell.
const hostile = "\x1b]52;c;b3duZWQ=\x07\x1b]0;owned\x07\x1bPtmux;\x1b\x1b]52;c;b3duZWQ=\x07\x1b\\\x1bkowned\x1b\\" +
	"\x1b[31mred\u202eback\u009b2J\x1b[2J\x1b[H\x1b[?1049l\x1b[?1002l\x1b[8;5;20t\r\nnext\x07"

// open lets tmux take everything that a program may ask of it.
func (p *terminal) open() {
	p.t.Helper()
	for _, option := range [][]string{{"-s", "set-clipboard", "on"}, {"-g", "allow-passthrough", "on"},
		{"-g", "allow-rename", "on"}, {"-g", "bell-action", "any"}} {
		p.do(append([]string{"set-option"}, option...)...)
	}
}

// unharmed fails the test if a hostile text had an effect in the terminal. full is whether a
// program has the whole screen.
func (p *terminal) unharmed(where string, full bool) {
	p.t.Helper()
	if clipboard := p.do("list-buffers"); clipboard != "" {
		p.t.Errorf("%s: a text reached the clipboard: %s", where, clipboard)
	}
	for line := range strings.Lines(p.do("list-panes", "-a", "-F",
		"#{pane_title} #{window_name}|#{window_bell_flag}|#{alternate_on}|#{mouse_button_flag}")) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if strings.Contains(f[0], "owned") || f[1] != "0" || full && (f[2] != "1" || f[3] != "1") {
			p.t.Errorf("%s: a text reached the terminal: titles %q, bell %s, whole screen %s, mouse %s", where, f[0],
				f[1], f[2], f[3])
		}
	}
	if painted := p.do("capture-pane", "-p", "-e"); strings.Contains(painted, "\x1b[31mred") ||
		strings.Contains(painted, "\u202e") || strings.Contains(painted, "\u009b") {
		p.t.Errorf("%s: a text has its own colors or direction:\n%q", where, painted)
	}
}

// TestHostileScreen shows a team with hostile texts everywhere on its screen in a terminal, and the
// session of a member. No text has an effect outside of its place.
func TestHostileScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("hostile.txt", hostile+"\x9b2J\x9d0;owned\x9c\n")
	for _, args := range [][]string{{"create", hostile}, {"create", "demo", "--lead", hostile}} {
		w.refused(w.cadre(args...), 2, "cannot be")
	}
	w.must("create", "demo", "--goal", hostile)
	w.refused(w.cadre("spawn", "demo", hostile), 2, "cannot be")
	w.must("spawn", "demo", "ann", "--agent", "external", "--role", hostile, "--model", hostile, "--plan-approval")
	w.must("spawn", "demo", "bob", "--agent", "shell")
	w.must("spawn", "demo", "cas", "--agent", "external")
	w.must("task", "add", "demo", hostile, "--description", hostile, "--owner", "cas")
	w.must("task", "add", "demo", hostile, "--blocked-by", "1", "--owner", "cas")
	w.must("task", "add", "demo", hostile, "--run", "cat hostile.txt; echo the end of the output", "--owner", "bob")
	rep := w.replica("demo")
	do := func(actor string, body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	do("cas", &team.ClaimTask{Task: "1"})
	do("cas", &team.SendMessage{To: "lead", Body: hostile, Intent: "question"})
	do("ann", &team.SubmitPlan{Plan: hostile + "\n# " + hostile + "\n- " + hostile + "\n```\n" + hostile + "\n```"})
	do("cas", &team.RequestPermission{Tool: "Bash", Input: `{"command":"` + strings.ReplaceAll(hostile, "\r\n", " ") +
		`"}`, Deadline: team.Time(time.Now().Add(time.Hour).UnixMilli())})
	w.until("the output is there", func(s *team.State) bool {
		one, _ := s.Task("3")
		return one.Status == team.Completed
	})

	p := w.terminalOf(110, 32, "sh")
	p.open()
	p.do("set-option", "-w", "automatic-rename", "off")
	p.enter("exec " + cadre + " watch demo")
	p.shows("MEMBER")
	at := func(where, shows string, keys ...string) {
		t.Helper()
		p.keys(keys...)
		p.shows(shows)
		p.unharmed(where, true)
		if top, _, _ := strings.Cut(p.do("capture-pane", "-p"), "\n"); !strings.HasPrefix(top, " demo · ") &&
			!strings.HasPrefix(top, " what waits for you ") && !strings.HasPrefix(top, " cadre") {
			t.Errorf("%s: the first line is %q", where, top)
		}
	}
	at("members", "␛]52;c;b3duZWQ=␇")
	at("tasks", "in_progress", "2")
	at("messages", "cas → lead", "3")
	at("timeline", "waits for a person", "4")
	at("graph", "└→", "5")
	at("past", "0 now", "1", "{")
	at("present", "MEMBER", "0")
	at("member", "to cas ▸", "G", "Enter")
	at("members again", "MEMBER", "Escape")
	at("session", "the end of the output", "S-Up", "Enter")
	at("members at last", "MEMBER", "Escape")
	at("permission", "asks to use", "a")
	at("plan", "submitted a plan", "Down")
	at("question", "asks", "Down")
	p.keys("q")
	if code := p.ended(); code != 0 {
		t.Errorf("the screen ended with %d:\n%s", code, p.screen())
	}
	p.unharmed("after it", false)

	p = w.terminalOf(110, 32, "sh")
	p.open()
	p.do("set-option", "-w", "automatic-rename", "off")
	p.enter("exec " + cadre + " watch")
	p.shows("Needs you")
	p.unharmed("teams", true)
	p.keys("q")
	p.ended()

	p = w.terminalOf(110, 32, cadre, "attach", "demo", "bob")
	p.open()
	p.shows("the end of the output")
	p.shows("␛Ptmux;␛␛]52;c;b3duZWQ=␇␛\\")
	p.unharmed("attach", false)
}

// TestHostilePanes runs a team with hostile tasks and hostile output in panes of tmux.
func TestHostilePanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("hostile.txt", hostile+"\n")
	release := filepath.Join(w.dir, "release")
	w.write("panes.yaml", "name: panes\ngoal: \"\\e]0;owned\\a\\eP\"\n"+
		"members: [{name: bob, agent: shell}, {name: cas, agent: shell}]\n"+
		"tasks:\n  - {id: one, subject: \"\\e]52;c;b3duZWQ=\\a\\e[2Jlook\", owner: bob, run: \"cat hostile.txt; "+
		"echo the end of the output; until [ -e "+release+" ]; do sleep 0.1; done\"}\n"+
		"  - {id: two, subject: wait, owner: cas, run: \"until [ -e "+release+" ]; do sleep 0.1; done\"}\n")
	p := w.terminal("sh")
	p.open()
	p.do("set-option", "-w", "automatic-rename", "off")
	p.enter(cadre + " run panes.yaml & wait $!; echo status $?")
	p.wait("two members have panes", func() bool { return len(p.panes()) == 2 })
	p.wait("the pane of bob shows the output", func() bool {
		return strings.Contains(p.do("capture-pane", "-p", "-J", "-t", p.panes()["bob"]), "the end of the output")
	})
	if shown := p.do("capture-pane", "-p", "-J", "-t", p.panes()["bob"]); !strings.Contains(shown, "␛]52;c;b3duZWQ=␇") {
		t.Errorf("the pane of bob shows\n%s", shown)
	}
	p.unharmed("panes", false)
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.shows("status 0")
	p.unharmed("after the run", false)
}
