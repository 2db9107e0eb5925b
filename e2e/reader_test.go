package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestReaderGone checks that a command that follows a team ends when its reader is gone, as in
// cadre log --follow | head -1, although nothing more happens.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	w.must("send", "demo", "--to", "ann", "hello")
	for _, args := range [][]string{{"log", "demo", "--follow"}, {"log", "demo", "--follow", "--json"},
		{"status", "demo", "--watch"}, {"inbox", "demo", "ann", "--follow"}, {"attention", "--wait"}} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := &process{Cmd: exec.Command(cadre, args...), t: t, gone: make(chan struct{})}
		p.Dir, p.Env, p.Stdout = w.dir, w.env, in
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		in.Close()
		go func() { p.Cmd.Wait(); close(p.gone) }()
		t.Cleanup(p.kill)
		if args[0] != "attention" { // nothing waits, so it prints nothing
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Errorf("%s printed %q: %v", strings.Join(args, " "), line, err)
			}
		}
		out.Close()
		want := 0
		if args[0] == "attention" {
			want = 1
		}
		if code := p.wait(); code != want && code != -1 { // -1: it was still printing, and SIGPIPE ended it
			t.Errorf("%s: exit status %d, not %d", strings.Join(args, " "), code, want)
		}
	}
}
