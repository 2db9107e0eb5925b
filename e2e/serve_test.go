package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/host"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// serve starts cadre serve, and waits until it answers.
func (w *world) serve(args ...string) *process {
	w.t.Helper()
	p := w.start(append([]string{"serve"}, args...)...)
	p.awaits("the server answers on ")
	return p
}

// socket returns a client of the server's unix socket.
func (w *world) socket() *http.Client {
	path := filepath.Join(w.home, "server", "socket")
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// get asks the server, and returns the status and the body.
func (w *world) get(path string) (int, string) {
	w.t.Helper()
	r, err := w.socket().Get("http://cadre" + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// keeping returns what the server says of the teams that it keeps running.
func (w *world) keeping() map[string]string {
	w.t.Helper()
	var is struct {
		Teams []struct {
			Name, Why string
			Running   bool
		}
	}
	if err := json.Unmarshal([]byte(w.must("serve", "--status", "--json")), &is); err != nil {
		w.t.Fatal(err)
	}
	all := map[string]string{}
	for _, one := range is.Teams {
		all[one.Name] = one.Why
		if one.Running {
			all[one.Name] = "running"
		}
	}
	return all
}

// killHosts kills the processes that host the team whose folder it is, and returns how many.
func (w *world) killHosts(folder string) (killed int) {
	w.t.Helper()
	for _, dir := range host.Running(filepath.Join(folder, "hosts")) {
		if h, ok, _ := proc.HolderOf(filepath.Join(dir, proc.AliveFile)); ok &&
			syscall.Kill(h.Pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// TestServe: a server resumes the teams that it is given, and those that it had when it stopped. It
// leaves a team alone that a person paused.
func TestServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pausable()
	p := w.start("run", "team.yaml", "--plain")
	w.untilBegun()
	w.must("pause", "demo")
	p.wait()

	p = w.serve("demo")
	eventually(t, "the team runs", func() bool { return w.keeping()["demo"] == "running" })
	if r := w.cadre("serve"); r.code != 1 ||
		!strings.Contains(r.err, fmt.Sprintf("process %d is the server", p.Process.Pid)) {
		t.Errorf("a second server ends with %d and says %q", r.code, r.err)
	}
	if said := w.must("serve", "demo"); !strings.Contains(said, "runs team demo from now on") {
		t.Errorf("a second server with a team says %q", said)
	}

	w.must("serve", "--stop")
	if code := p.wait(); code != 0 {
		t.Errorf("the server ended with %d: %s", code, p.said())
	}
	if text := w.must("status", "demo"); !strings.Contains(text, "dormant") {
		t.Errorf("after the stop:\n%s", text)
	}

	p = w.serve()
	eventually(t, "the team runs again", func() bool { return w.keeping()["demo"] == "running" })
	w.must("pause", "demo")
	eventually(t, "the server notices the pause", func() bool { return w.keeping()["demo"] == "it is paused, or its run has ended" })
	syscall.Kill(p.Process.Pid, syscall.SIGKILL)
	p.wait()
	p = w.serve()
	eventually(t, "the next server knows of the pause", func() bool { return w.keeping()["demo"] == "it is paused, or its run has ended" })
	w.write("go", "")
	w.must("serve", "demo")
	w.untilCompleted(2)
	eventually(t, "a team that is complete leaves the list", func() bool { return len(w.keeping()) == 0 })
}

// TestServeKilled: a server that was killed leaves its teams running, and the next one has them.
// When the host of a team dies, the server resumes the team.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pausable()
	p := w.start("run", "team.yaml", "--plain")
	w.untilBegun()
	w.must("pause", "demo")
	p.wait()
	p = w.serve("demo")
	eventually(t, "the team runs", func() bool { return w.keeping()["demo"] == "running" })
	syscall.Kill(p.Process.Pid, syscall.SIGKILL)
	p.wait()
	if text := w.must("status", "demo"); strings.Contains(text, "dormant") {
		t.Errorf("without its server the team does not run:\n%s", text)
	}
	w.serve()
	eventually(t, "the next server has the team", func() bool { return w.keeping()["demo"] == "running" })
	if w.killHosts(w.teamDir()) == 0 {
		t.Fatal("the team has no host to kill")
	}
	w.write("go", "")
	w.untilCompleted(2)
}

// TestServeKeepsDetached: a team that is started in the background is the server's from then on.
func TestServeKeepsDetached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.pausable()
	w.must("run", "team.yaml", "--detach")
	eventually(t, "the server has the team of the run", func() bool { return w.keeping()["demo"] == "running" })
	w.must("create", "other")
	w.must("spawn", "other", "ann", "--agent", "shell")
	eventually(t, "the server has the team of the spawn", func() bool { return w.keeping()["other"] == "running" })
}

// TestServeAll: with --all a server also runs the teams that nobody named. Without a terminal it
// lists them and asks nothing. It leaves out teams whose budget is spent, that a person paused, or
// that have nothing to run.
func TestServeAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pausable()
	p := w.start("run", "team.yaml", "--plain")
	w.untilBegun()
	w.must("pause", "demo")
	p.wait()
	w.must("create", "spent")
	w.must("spawn", "spent", "ann", "--agent", "shell")
	w.must("pause", "spent")
	w.must("budget", "spent", "--time", "10s")
	eventually(t, "its time is spent", func() bool {
		return strings.Contains(w.must("budget", "spent"), "100 %")
	})
	w.must("create", "people")
	w.must("spawn", "people", "ann", "--agent", "external")
	w.must("create", "idle")
	w.must("spawn", "idle", "ann", "--agent", "shell")
	if w.killHosts(filepath.Join(w.home, "teams", "idle")) == 0 {
		t.Fatal("the team has no host to kill")
	}
	eventually(t, "no process runs it", func() bool { return strings.Contains(w.must("status", "idle"), "dormant") })
	p = w.serve("--all")
	if said := p.said(); !strings.Contains(said, "1 more team: idle") ||
		!strings.Contains(said, "left out, because paused: demo;") {
		t.Errorf("the server says %q", said)
	}
	eventually(t, "the team runs", func() bool { return w.keeping()["idle"] == "running" })
	eventually(t, "a host runs it, and its member", func() bool { // who is paused before its session began is resumed
		return strings.Contains(strings.Join(strings.Fields(w.must("status", "idle")), " "), "ann shell idle")
	})
	if all := w.keeping(); len(all) != 1 {
		t.Errorf("the server has %v", all)
	}
	w.must("serve", "--stop")
	p.wait()
	w.must("pause", "idle") // no process runs it, and the next server would resume it
	w.serve()
	eventually(t, "the server has looked", func() bool { return w.keeping()["idle"] == "it is paused, or its run has ended" })
}

// TestServeRoom: teammates that the command line adds at the same time are not more than the server
// may run.
func TestServeRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("--max-sessions", "2")
	w.must("create", "demo")
	results := make(chan result, 5)
	for i := range cap(results) {
		go func() { results <- w.cadre("spawn", "demo", fmt.Sprint("ann-", i), "--agent", "shell") }()
	}
	joined := 0
	for range cap(results) {
		if r := <-results; r.code == 0 {
			joined++
		} else if !strings.Contains(r.err, "the server runs 2 teammates, of at most 2") {
			t.Errorf("%d: %s", r.code, r.err)
		}
	}
	if joined != 2 {
		t.Errorf("%d of 5 joined", joined)
	}
	w.must("spawn", "demo", "people", "--agent", "external") // runs no session
}

// TestServeInstall: the unit is written without what may be a secret, and the command names what it
// leaves out.
func TestServeInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.with([]string{"ANTHROPIC_API_KEY=the-secret", "OTEL_EXPORTER_OTLP_HEADERS=the-secret",
		"https_proxy=the-secret",
		"GEMINI_API_KEY=", "XDG_CONFIG_HOME=" + filepath.Join(w.root, "config")}, "serve", "--install", "--yes")
	for _, want := range []string{"not in the file, although set here: ", "ANTHROPIC_API_KEY",
		"OTEL_EXPORTER_OTLP_HEADERS",
		"https_proxy", "if the server or its sessions need one, add it to the file"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is missing: %s", want, r.err)
		}
	}
	if r.code != 0 || strings.Contains(r.err, "GEMINI_API_KEY") || strings.Contains(r.out+r.err, "the-secret") {
		t.Errorf("%d\n%s%s", r.code, r.out, r.err)
	}
	path, _, _ := strings.Cut(r.out, ":\n")
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "the-secret") || !strings.Contains(string(text), w.home) {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestServedMember: a process in a member's session acts as that member on the server's socket, and
// reads no other team.
func TestServedMember(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	w := newWorld(t)
	p := w.serve("--listen", "127.0.0.1:0")
	p.awaits("and on http://")
	w.must("create", "other")
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "shell")
	script := strings.NewReplacer("SOCKET", filepath.Join(w.home, "server", "socket"), "TOKENS",
		filepath.Join(w.home, "server", "tokens")).Replace(`
ask() { curl -sS -o answer -w '%{http_code} ' --unix-socket SOCKET "$@"; cat answer; echo; }
ask http://cadre/v1/caller
ask http://cadre/v1/teams/other
ask http://cadre/v1/teams/demo
ask -X POST http://cadre/v1/teams/demo/pause
ask -X POST -H 'Content-Type: application/json' -d '{"subject":"mine"}' http://cadre/v1/teams/demo/tasks
ask -X POST -H 'Content-Type: application/json' -d '{"subject":"run","run":"id"}' http://cadre/v1/teams/demo/tasks
ask -X POST -H 'Content-Type: application/json' -d '{"subject":"as"}' 'http://cadre/v1/teams/demo/tasks?as=lead'
token=$(cut -d' ' -f2 TOKENS/admin)
curl -sS -H "Authorization: Bearer $token" http://ADDRESS/v1/caller
`)
	_, address, _ := strings.Cut(p.said(), "http://")
	script = strings.ReplaceAll(script, "ADDRESS", strings.Fields(address)[0])
	w.must("task", "add", "demo", "ask", "--run", script)
	w.untilCompleted(1)
	said := w.must("task", "show", "demo", "1")
	for _, want := range []string{`{"user":false,"team":"demo","member":"ann"`, `403 {`, `"code":"denied"`,
		`200 {"seq":`, `{"id":"2"`, `"subject":"mine"`} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is missing:\n%s", want, said)
		}
	}
	w.until("the task of the member is there", func(s *team.State) bool { _, there := s.Task("2"); return there })
	if out := w.must("task", "list", "demo"); strings.Contains(out, "run") || strings.Contains(out, " as ") {
		t.Errorf("what a member may not add is there:\n%s", out)
	}
	if got := strings.Count(said, `"member":"ann"`); got != 2 {
		t.Errorf("the member is known %d times of 2, on the socket and with a token:\n%s", got, said)
	}
}
