package notify

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/ui/settings"
)

// TestTmux asks a real tmux whether it passes a sequence on.
func TestTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "notify") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	tmux := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		c.Env = append(os.Environ(), "TMUX=")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	pane := tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "cat")
	defer tmux("kill-server")
	env := map[string]string{"TMUX": socket + ",1,0", "TMUX_PANE": pane}
	t.Setenv("TMUX", env["TMUX"]) // for the program
	var out strings.Builder
	terminal := &Terminal{Out: &out, Getenv: func(name string) string { return env[name] }}
	err = terminal.Desktop(t.Context(), settings.OSC9, hostile)
	if err == nil || !strings.Contains(err.Error(), "allow-passthrough on") || out.Len() > 0 {
		t.Errorf("tmux keeps it: %v, %q", err, out.String())
	}
	tmux("set-option", "-g", "allow-passthrough", "on")
	if err := terminal.Desktop(t.Context(), settings.OSC9, hostile); err != nil ||
		!strings.HasPrefix(out.String(), "\x1bPtmux;\x1b\x1b]9;") ||
		!strings.HasSuffix(out.String(), "\x1b\x1b\\\x1b\\") {
		t.Errorf("tmux passes it: %v, %q", err, out.String())
	}
}
