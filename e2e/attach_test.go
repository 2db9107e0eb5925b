package e2e

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/team"
)

// TestTypingIntoAttach checks a person who watches a member at a terminal and types: each line is a
// message to the member, a line after ! is urgent and ends its command, and Ctrl-C ends the
// watching and nothing else.
func TestTypingIntoAttach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	w.must("task", "add", "demo", "long", "--name", "long", "--run", "echo it begins; sleep 300")
	p := w.terminal(cadre, "attach", "demo", "bob")
	p.shows("a line that you type goes to bob; leave with Ctrl-C")
	p.shows("it begins")
	p.wait("the last line is not the one to type in", func() bool { return p.last() == "to bob ▸" })
	bold := regexp.MustCompile(`\x1b\[1m\x1b\[9[0-9]mto bob ▸`)
	if screen := p.do("capture-pane", "-p", "-e"); !bold.MatchString(screen) {
		t.Errorf("the last line is not in the color of bob:\n%q", screen)
	}
	type message struct{ From, Body, Priority string }
	messages := func() []message { return read[[]message](w, "inbox", "demo", "bob", "--all") }
	sent := func(body, priority string) {
		t.Helper()
		eventually(t, "bob has the message "+body, func() bool {
			return slices.Contains(messages(), message{"@user", body, priority})
		})
	}
	p.enter("look at the log")
	p.enter("   ")
	const question = "This ends the command of bob, and its task long fails. End it?"
	p.enter("! stop at once")
	p.shows(question)
	p.wait("the line is not for the answer", func() bool { return p.last() == "to bob [y/N] ▸" })
	p.enter("")
	p.shows("the message was not sent to bob")
	p.wait("the message is not in the line again", func() bool { return p.last() == "to bob ▸ ! stop at once" })
	if got := messages(); slices.ContainsFunc(got, func(m message) bool { return m.Priority == "urgent" }) {
		t.Errorf("without a yes, these messages were sent: %+v", got)
	}
	p.enter("")
	p.wait("it does not ask again", func() bool { return strings.Count(p.screen(), question) == 2 })
	p.enter("y")
	sent("look at the log", "normal")
	sent("stop at once", "urgent")
	p.shows("interrupted by an urgent message of the user")
	p.enter(strings.Repeat("wide ", 60) + "ä€😀")
	sent(strings.Repeat("wide ", 60)+"ä€😀", "normal")
	// a paste of several lines is one message, and waits for Enter
	p.do("set-buffer", "-b", "paste", "first\n\nsecond\tline\nthird \x1b[2J")
	p.do("paste-buffer", "-p", "-b", "paste")
	p.wait("the paste is not in the line", func() bool {
		return p.last() == "to bob ▸ first↵↵second line↵third ␛[2J"
	})
	if got := messages(); len(got) != 3 {
		t.Errorf("before Enter, these messages were sent: %+v", got)
	}
	p.do("send-keys", "Home")
	p.enter("all: ")
	sent("all: first\n\nsecond line\nthird ␛[2J", "normal")
	p.shows("you write: all: first second line third")
	p.do("send-keys", "-l", "unfinished")
	p.shows("to bob ▸ unfinished")
	p.do("send-keys", "C-c")
	if code := p.ended(); code != 0 {
		t.Errorf("Ctrl-C ended it with %d:\n%s", code, p.screen())
	}
	if screen := p.screen(); strings.Contains(screen, "^C") || strings.Contains(screen, "▸ unfinished") {
		t.Errorf("it left something behind:\n%s", screen)
	}
	if got := messages(); len(got) != 4 {
		t.Errorf("these messages were sent: %+v", got)
	}
	if log := w.must("log", "demo"); !strings.Contains(log, "interrupted by an urgent message of the user") {
		t.Errorf("the log does not say why the task failed:\n%s", log)
	}
	w.until("bob continues", func(s *team.State) bool {
		m, _ := s.Member("bob")
		return m.Status == team.Idle && len(s.Held("bob")) == 0
	})
	w.must("abort", "demo", "--yes")
}

// TestAttachInAShell checks that attach leaves the terminal of a shell as it was: after Ctrl-C, and
// while it is stopped with Ctrl-Z. A paste is then several lines again, which the terminal shows.
func TestAttachInAShell(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	p := w.terminal(bash, "--norc", "--noediting", "-i")
	p.enter("PS1='sh> '; stty -a > before; " + cadre + " attach demo bob")
	p.shows("to bob ▸")
	p.do("send-keys", "-l", "half")
	// Ctrl-Z drops what was not read
	p.wait("the line does not show what is typed", func() bool { return p.last() == "to bob ▸ half" })
	p.do("send-keys", "C-z")
	p.shows("Stopped")
	p.enter("stty -a | cmp - before && echo as it was, stopped")
	p.wait("attach changed the terminal of the shell", func() bool {
		return strings.Contains(p.screen(), "\nas it was, stopped")
	})
	p.enter("fg")
	p.wait("the line is not there again", func() bool { return p.last() == "to bob ▸ half" })
	p.do("send-keys", "C-c")
	p.wait("the shell does not come back", func() bool { return p.last() == "sh>" })
	p.enter("stty -a | cmp - before && echo as it was, ended")
	p.shows("\nas it was, ended")
	p.do("set-buffer", "-b", "paste", "echo one\necho two\n")
	p.do("paste-buffer", "-p", "-b", "paste")
	p.shows("\none\n")
	p.shows("two\nsh>")
	if strings.Contains(p.screen(), "200~") {
		t.Errorf("pastes are still marked:\n%s", p.screen())
	}
	w.must("abort", "demo", "--yes")
}

// attached starts a team with a member bob, and attach in a terminal.
func attached(t *testing.T) (*world, *terminal) {
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	p := w.terminal(cadre, "attach", "demo", "bob")
	p.shows("to bob ▸")
	return w, p
}

// TestAttachWithoutAShell presses Ctrl-Z where no shell could continue attach. Attach must
// continue.
func TestAttachWithoutAShell(t *testing.T) {
	t.Parallel()
	w, p := attached(t) // the terminal itself starts attach, as the leader of its session
	p.do("send-keys", "-l", "half")
	p.wait("the line does not show what is typed", func() bool { return p.last() == "to bob ▸ half" })
	p.do("send-keys", "C-z")
	p.do("send-keys", "-l", " done")
	p.wait("attach does not continue", func() bool { return p.last() == "to bob ▸ half done" })
	p.enter("")
	p.shows("you write: half done")
	w.must("abort", "demo", "--yes")
}

// TestAttachSaysWhatWasNotSent ends attach while messages wait.
func TestAttachSaysWhatWasNotSent(t *testing.T) {
	t.Parallel()
	w, p := attached(t)
	p.do("set-buffer", "-b", "lines", strings.Repeat("go on\n", 500))
	p.do("paste-buffer", "-b", "lines") // not marked as a paste: each line is a message
	p.shows("you write: go on")         // Ctrl-C discards what was not read yet
	p.do("send-keys", "C-c")
	p.ended()
	if screen := p.screen(); !regexp.MustCompile(`your last \d+ messages to bob were not sent`).MatchString(screen) {
		t.Errorf("it does not say that messages were not sent:\n%s", screen)
	}
	w.must("abort", "demo", "--yes")
}

// TestAttachOnADumbTerminal checks that lines are sent where the terminal has no sequences.
func TestAttachOnADumbTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	p := w.terminal("env", "TERM=dumb", cadre, "attach", "demo", "bob")
	p.shows("a line that you type goes to bob")
	p.enter("one")
	p.enter("two")
	p.shows("mail from the user: two")
	if screen := p.screen(); strings.Contains(screen, "▸") || strings.Contains(screen, "2004") {
		t.Errorf("the terminal shows:\n%s", screen)
	}
	w.must("abort", "demo", "--yes")
}

// last returns the last line of the terminal that is not empty.
func (p *terminal) last() string {
	lines := strings.Split(strings.TrimRight(p.screen(), " \n"), "\n")
	return strings.TrimRight(lines[len(lines)-1], " ")
}

// TestAttachWithoutHost kills the host of a member that a person watches. The person is told at
// once, with the command that continues the team, and sees the session again when the next host
// runs it.
func TestAttachWithoutHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	w.must("task", "add", "demo", "long", "--run", "echo it begins; sleep 300")
	p := w.terminal(cadre, "attach", "demo", "bob")
	p.shows("it begins")
	b, there, err := w.beats().Of(t.Context(), "bob")
	if err != nil || !there {
		t.Fatalf("bob sends no heartbeat: %v", err)
	}
	if err := syscall.Kill(b.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.shows("No process runs this session. Continue the team with: cadre resume demo")
	w.must("resume", "demo")
	p.shows("A process runs this session again.")
	p.wait("the task runs again", func() bool { return strings.Count(p.screen(), "echo it begins") >= 2 })
	w.must("abort", "demo", "--yes")
	if code := p.ended(); code != 0 {
		t.Errorf("attach ended with %d:\n%s", code, p.screen())
	}
}

// TestAttachShowsOutput checks that the output of a running command is shown as it comes: to a
// person who watches, to one who comes late, and after the host was killed in the middle, which
// ends no command's entry.
func TestAttachShowsOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	p := w.terminal(cadre, "attach", "demo", "bob")
	p.shows("a line that you type goes to bob")
	w.must("task", "add", "demo", "long", "--run",
		"for i in 1 2 3; do echo \"count $i\"; until test -e go; do sleep 0.1; done; done; "+
			"printf '\\033[2Jno clear\\n'; sleep 300")
	p.shows("│ count 1") // while the command runs
	w.write("go", "")
	p.shows("│ count 3")
	p.shows("no clear")
	if !strings.Contains(p.screen(), "count 1") {
		t.Errorf("the command cleared the terminal:\n%s", p.screen())
	}
	late := w.terminal(cadre, "attach", "demo", "bob")
	late.shows("│ count 3")
	b, there, err := w.beats().Of(t.Context(), "bob")
	if err != nil || !there {
		t.Fatalf("bob sends no heartbeat: %v", err)
	}
	if err := syscall.Kill(b.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.shows("No process runs this session")
	kept := w.must("attach", "demo", "bob", "--no-follow")
	if !strings.Contains(kept, "│ count 3") || strings.Contains(kept, "✓ done") || strings.Contains(kept, "✗") {
		t.Errorf("after the host was killed, this is shown:\n%s", kept)
	}
	w.must("abort", "demo", "--yes")
}
