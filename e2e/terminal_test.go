package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// terminal is a terminal in tmux, in place of a person's.
type terminal struct {
	*world
	t      *testing.T
	tmux   string
	socket string        // of its server; a new server cannot always use the place of one that has just ended
	story  func() string // what else happened, for a test that failed
}

// terminal runs a command in a terminal of its own. The terminal stays when the command has ended.
// The test is skipped if tmux is missing.
func (s *studio) terminal(command ...string) *terminal {
	s.t.Helper()
	p := s.world.terminal(command...)
	p.story = s.model.Story
	return p
}

func (w *world) terminal(command ...string) *terminal {
	w.t.Helper()
	return w.terminalOf(160, 50, command...)
}

// terminalOf is terminal with that many columns and lines.
func (w *world) terminalOf(width, height int, command ...string) *terminal {
	w.t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		w.t.Skip("needs tmux")
	}
	w.terminals++
	p := &terminal{world: w, t: w.t, tmux: tmux, socket: filepath.Join(w.root, fmt.Sprintf("tmux-%d", w.terminals)),
		story: func() string { return "" }}
	if err := os.WriteFile(filepath.Join(w.root, "tmux.conf"), []byte("set -g remain-on-exit on\n"),
		0o600); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.close)
	p.do(append([]string{"new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}, command...)...)
	return p
}

// command returns a call of tmux, with a server of its own.
func (p *terminal) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, p.tmux, append([]string{"-S", p.socket, "-f",
		filepath.Join(p.root, "tmux.conf")}, args...)...)
	c.Dir, c.Env = p.dir, append(p.env, "TERM=xterm-256color")
	return c
}

// do runs a command of tmux and returns its output.
func (p *terminal) do(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := p.command(ctx, args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// close ends the terminal and everything that runs in it.
func (p *terminal) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p.command(ctx, "kill-server").Run()
}

// screen returns what the terminal shows, including what has scrolled away.
func (p *terminal) screen() string { return p.do("capture-pane", "-p", "-J", "-S", "-") }

// shows waits until the terminal shows the text.
func (p *terminal) shows(text string) {
	p.t.Helper()
	p.wait("the terminal does not show "+text, func() bool { return strings.Contains(p.screen(), text) })
}

// enter types a line.
func (p *terminal) enter(line string) {
	p.t.Helper()
	p.do("send-keys", "-l", line)
	p.do("send-keys", "Enter")
}

// ended waits until the command has ended and returns its exit status.
func (p *terminal) ended() int {
	p.t.Helper()
	status := ""
	p.wait("the command in the terminal does not end", func() bool {
		status = strings.TrimSpace(p.do("display-message", "-p", "#{pane_dead_status}"))
		if status == "" {
			// tmux sometimes misses the end of a child. It checks all children when the next one
			// ends, which it may miss too.
			p.do("run-shell", "-b", "true")
		}
		return status != ""
	})
	code, err := strconv.Atoi(status)
	if err != nil {
		p.t.Fatalf("the command ended with %q", status)
	}
	return code
}

func (p *terminal) wait(complaint string, holds func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s:\n%s\n%s", complaint, p.screen(), p.story())
		}
	}
}
