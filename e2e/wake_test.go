package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/agent/wake"
	"cadre/internal/sys/filelock"
)

// sessionHelper makes the test binary an agent session. Its arguments are shell commands: the
// command of its tool server, which may be empty, and its Stop hook. It runs the hook when the
// server has answered, and ends with the exit status of the hook.
const sessionHelper = "session"

func init() {
	helpers[sessionHelper] = func(args []string) error {
		os.Unsetenv(helperMode)
		if args[0] != "" {
			server := exec.Command("sh", "-c", args[0])
			in, err := server.StdinPipe()
			if err != nil {
				return err
			}
			out, err := server.StdoutPipe()
			if err == nil {
				err = server.Start()
			}
			if err != nil {
				return err
			}
			defer server.Wait()
			defer in.Close()
			if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
				`"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"session","version":"1"}}}`+
				"\n"); err != nil {
				return err
			}
			if _, err := out.Read(make([]byte, 1)); err != nil {
				return err
			}
		}
		hook := exec.Command("sh", "-c", args[1])
		hook.Stdout, hook.Stderr = os.Stdout, os.Stderr
		if exit, ended := errors.AsType[*exec.ExitError](hook.Run()); ended {
			os.Exit(exit.ExitCode())
		}
		return nil
	}
}

// told returns the file that says why the session at that membership was woken last. The file
// differs each time.
func (w *world) told(team, member string) os.FileInfo {
	info, err := os.Stat(filepath.Join(w.home, "teams", team, "wake-"+member+".json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return info
}

// woken checks that a cadre wake wakes its session.
func (p *process) woken() {
	p.t.Helper()
	if code := p.wait(); code != 2 || strings.Count(p.said(), "There is news from your team.") != 1 {
		p.t.Fatalf("exit status %d: %s", code, p.said())
	}
}

// wakes starts cadre wake. It returns when the command waits at the lead's membership in each team.
func (w *world) wakes(teams ...string) *process {
	w.t.Helper()
	p := w.start("wake")
	for _, team := range teams {
		eventually(w.t, "it waits for the session in "+team,
			func() bool { return filelock.Held(wake.Lock(filepath.Join(w.home, "teams", team), "lead")) })
	}
	return p
}

// TestWakesOnceForEachMessage checks that a message wakes a session once. A session that ignores it
// is not woken after each turn. The waiting command finds its memberships by the session beside
// it, for any name of the directory, and also if its environment names another team.
func TestWakesOnceForEachMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "other")
	w.env = append(w.env, "CADRE_TEAM=no such name")
	lead, second := w.mcp("mcp", "--team", "elsewhere"), w.mcp("mcp", "--team", "second")
	for _, server := range []*client{lead, second} {
		if text, failed := server.call("SpawnTeammate", map[string]any{"name": "ann", "agent": "external",
			"prompt": "x"}); failed {
			t.Fatalf("ann was not added: %s", text)
		}
	}
	send := func(team, text string) { t.Helper(); w.must("send", team, "--to", "lead", text, "--as", "ann") }

	send("elsewhere", "one")
	for _, args := range [][]string{{"--team", "other"}, {"--as", "ann"}, {"--team", "bad name"}, {"--as", "../../x"}} {
		if r := w.cadre(append([]string{"wake"}, args...)...); r.code != 0 || r.out+r.err != "" {
			t.Errorf("%v: exit status %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	w.wakes().woken()
	// A message does not wake it twice. The other membership proves that: each one wakes the
	// session for its own news, and only the first of them counts as told.
	p := w.wakes("elsewhere", "second")
	before := w.told("elsewhere", "lead")
	send("second", "two")
	p.woken()
	if after := w.told("elsewhere", "lead"); !os.SameFile(before, after) || w.told("second", "lead") == nil {
		t.Error("one message woke the session twice")
	}
	p = w.wakes("elsewhere", "second")
	before = w.told("second", "lead")
	send("elsewhere", "three")
	p.woken()
	if after := w.told("second", "lead"); !os.SameFile(before, after) {
		t.Error("one message of the other team woke the session twice")
	}
	p = w.wakes("elsewhere", "second")
	if text, failed := lead.call("ReadMessages", nil); failed || !strings.Contains(text, "three") {
		t.Fatalf("the lead read %s (failed: %t), want the message three", text, failed)
	}
	send("elsewhere", "four")
	p.woken()

	// Another session knows nothing of what that one was told. A session that has ended is not
	// waited for any more.
	p = w.wakes("elsewhere", "second")
	lead.leave()
	second.leave()
	if code := p.wait(); code != 0 || p.said() != "" {
		t.Errorf("exit status %d: %s", code, p.said())
	}
	if r := w.cadre("wake"); r.code != 0 {
		t.Errorf("exit status %d: %s%s", r.code, r.out, r.err)
	}
	w.mcp("mcp", "--team", "elsewhere")
	w.start("wake", "--team", "elsewhere", "--as", "lead").woken()
}

// TestWakeOfANestedSession checks a session that a tool of another session starts. It gets no news
// of the outer session. Its hook ends at once, or waits for its own news only, whatever team the
// hook names. The outer session is woken.
func TestWakeOfANestedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"outer", "inner"} {
		w.must("create", name)
		w.must("spawn", name, "ann", "--agent", "external")
	}
	w.mcp("mcp", "--team", "outer")
	// nested runs a session in a shell, as a tool does.
	nested := func(server, hook string) result {
		t.Helper()
		c := exec.Command("sh", "-c", fmt.Sprintf(`"$0" '%s' '%s'; exit $?`, server, hook), os.Args[0])
		c.Dir, c.Env = w.dir, append(w.env, helperMode+"="+sessionHelper)
		return finish(t, c)
	}
	w.must("send", "outer", "--to", "lead", "news", "--as", "ann")
	server := cadre + " mcp --team inner"
	for _, c := range [][2]string{{"", cadre + " wake"}, {"", cadre + " wake; exit $?"},
		{"", cadre + " wake --team outer --as lead"}, {server, cadre + " wake --team outer"}} {
		if r := nested(c[0], c[1]); r.code != 0 || r.out+r.err != "" {
			t.Fatalf("%q: exit status %d: %s%s", c, r.code, r.out, r.err)
		}
	}
	w.must("send", "inner", "--to", "lead", "news", "--as", "ann")
	if r := nested(server, cadre+" wake; exit $?"); r.code != 2 {
		t.Errorf("its own news: exit status %d: %s%s", r.code, r.out, r.err)
	}
	if w.told("outer", "lead") != nil || w.told("inner", "lead") == nil {
		t.Error("the inner session took the news of the outer one")
	}
	w.start("wake").woken()
}

// TestWakeBesideATeamInTrouble checks that trouble in one team does not stop the wake-up by
// another. Without another team, the trouble is reported. It never has the status that would wake a
// session.
func TestWakeBesideATeamInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"broken", "pipes", "good"} {
		w.must("create", name)
	}
	if err := syscall.Mkfifo(filepath.Join(w.home, "teams", "pipes", "present-lead.lock"), 0o600); err != nil {
		t.Fatal(err)
	}
	unreadable := filepath.Join(w.home, "teams", "broken")
	if err := os.Chmod(unreadable, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(unreadable, 0o700) })
	w.mcp("mcp", "--team", "good")
	w.must("send", "good", "--to", "lead", "news")
	for _, args := range [][]string{nil, {"--team", "good"}} {
		os.Remove(filepath.Join(w.home, "teams", "good", "wake-lead.json"))
		if code, said := w.unprivileged(append([]string{"wake"}, args...)...); code != 2 ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("%v: exit status %d: %s", args, code, said)
		}
	}
	for args, words := range map[string]string{"--team pipes": "named pipe", "--team broken": "permission denied",
		"--as ann": "permission denied"} {
		if code, said := w.unprivileged(append([]string{"wake"}, strings.Fields(args)...)...); code != 1 ||
			!strings.Contains(said, words) {
			t.Errorf("%s: exit status %d: %s", args, code, said)
		}
	}
}

// unprivileged calls the program as a user without root's right to bypass file modes.
func (w *world) unprivileged(args ...string) (code int, said string) {
	w.t.Helper()
	c := exec.Command(cadre, args...)
	c.Dir, c.Env = w.dir, w.env
	if os.Getuid() == 0 { // run root without the capabilities that bypass file modes
		path, err := exec.LookPath("setpriv")
		if err != nil {
			w.t.Skipf("root cannot be stopped by file modes on %s: %v", runtime.GOOS, err)
		}
		c.Path = path
		c.Args = append([]string{"setpriv", "--bounding-set", "-dac_override,-dac_read_search", cadre}, args...)
	}
	r := finish(w.t, c)
	return r.code, r.out + r.err
}
