package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/host"
	"cadre/internal/sys/proc"
)

// program writes a program that asks the server who it is, and adds the answer to the file said.
func (w *world) program(name, rest string) (path string) {
	w.t.Helper()
	path = filepath.Join(w.root, name)
	script := fmt.Sprintf("#!/bin/sh\necho \"%s $(curl -sS --max-time 10 --unix-socket %s http://cadre/v1/caller)\" "+
		">>%s\n%s\n",
		name, filepath.Join(w.home, "server", "socket"), filepath.Join(w.root, "said"), rest)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// TestServedPrograms: a member configures programs in its repository, and has the server show its
// changes. None of them runs, neither for the member nor for the user, at whose terminal it would
// act as the user.
func TestServedPrograms(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	w := newWorld(t)
	w.repository()
	w.serve()
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "shell", "--isolation", "worktree")
	clean, show := w.program("clean", "cat"), w.program("show", "cat \"$1\"")
	script := fmt.Sprintf(`
git config filter.ev.clean %[1]s; git config filter.ev.smudge %[1]s; git config filter.ev.required true
git config diff.ev.textconv %[2]s; git config diff.ev.command %[2]s; git config diff.external %[2]s
git config merge.ev.driver %[2]s; git config core.fsmonitor %[2]s; git config core.pager %[2]s
git config log.showSignature true; git config gpg.program %[2]s
git config extensions.partialClone evil; git config remote.evil.promisor true
git config remote.evil.url "ext::%[2]s"; git config protocol.ext.allow always
printf '*.txt filter=ev diff=ev merge=ev\n' >.gitattributes
echo mine >new.txt; echo mine >>README.md
curl -sS --unix-socket %[3]s http://cadre/v1/teams/demo/tasks/1/diff >%[4]s
until test -e %[5]s; do sleep 0.05; done
`, clean, show, filepath.Join(w.home, "server", "socket"), filepath.Join(w.root, "diff"), filepath.Join(w.root, "go"))
	w.must("task", "add", "demo", "ask", "--run", script)
	var diff string
	eventually(t, "the member has read its changes", func() bool {
		data, _ := os.ReadFile(filepath.Join(w.root, "diff"))
		diff = string(data)
		return strings.HasSuffix(diff, "}\n") || strings.HasSuffix(diff, "}")
	})
	if !strings.Contains(diff, "new.txt") || !strings.Contains(diff, "+mine") {
		t.Errorf("the member's changes are shown as\n%s", diff)
	}
	if code, diff := w.get("/v1/teams/demo/tasks/1/diff"); code != http.StatusOK || !strings.Contains(diff, "+mine") {
		t.Errorf("the user is shown\n%s", diff)
	}
	w.must("status", "demo")
	w.must("ls")
	if said, err := os.ReadFile(filepath.Join(w.root, "said")); err == nil {
		t.Errorf("programs of the member ran:\n%s", said)
	}
	w.write("../go", "")
	w.untilCompleted(1)
	if said, err := os.ReadFile(filepath.Join(w.root, "said")); err == nil &&
		strings.Contains(string(said), `"user":true`) {
		t.Errorf("programs of the member ran as the user:\n%s", said)
	}
}

// TestServedLeftOver: a member kills its host, in a session of its own and without an environment.
// It is not the user then, whoever started the host.
func TestServedLeftOver(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs curl, and a system with subreapers")
	}
	for name, begin := range map[string]func(w *world){
		"of spawn": func(*world) {},
		"of the server": func(w *world) {
			w.must("pause", "demo")
			w.must("serve", "demo")
			eventually(w.t, "the team runs again", func() bool { return w.keeping()["demo"] == "running" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			server := w.serve()
			w.must("create", "demo")
			w.must("spawn", "demo", "ann", "--agent", "shell")
			eventually(t, "the server has the team", func() bool { return w.keeping()["demo"] == "running" })
			begin(w)
			pid, start := w.escapes()
			eventually(t, "it has tried everything, or was ended", func() bool {
				_, err := os.Stat(filepath.Join(w.root, "done"))
				return err == nil || !proc.Alive(pid, start)
			})
			for name, want := range map[string]string{"caller": `"user":false`, "rule": `"denied"`,
				"command": "is for the user"} {
				if data, _ := os.ReadFile(filepath.Join(w.root, name)); len(data) > 0 &&
					!strings.Contains(string(data), want) {
					t.Errorf("%s: want %s in: %s", name, want, data)
				}
			}
			w.must("serve", "--stop")
			server.wait()
			if proc.Alive(pid, start) {
				t.Error("what the host left behind outlives the server")
			}
		})
	}
}

// escapes has a member end its host and then call as the user, and returns the process that does
// so. The task runs again when the team is resumed, and does nothing then.
func (w *world) escapes() (pid int, start string) {
	w.t.Helper()
	path := filepath.Join(w.root, "escape.sh")
	script := fmt.Sprintf(`echo $$ >%[1]s/escaped; until test -e %[1]s/go; do sleep 0.05; done; kill -9 $1
while grep -q 'State:.[^Z]' /proc/$1/status 2>/dev/null; do sleep 0.05; done
curl -sS --unix-socket %[2]s http://cadre/v1/caller >%[1]s/caller
curl -sS --unix-socket %[2]s -X POST -H "Content-Type: application/json" -d "{\"rule\":\"Bash\",\"unbounded\":true}" http://cadre/v1/teams/demo/rules >%[1]s/rule
env HOME=%[1]s CADRE_HOME=%[3]s %[4]s permission add demo Bash --yes >%[1]s/command 2>&1
echo done >%[1]s/done
exec sleep 600`, w.root, filepath.Join(w.home, "server", "socket"), w.home, cadre)
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		w.t.Fatal(err)
	}
	var h proc.Holder
	eventually(w.t, "the team has a host", func() (ok bool) {
		for _, dir := range host.Running(filepath.Join(w.teamDir(), "hosts")) {
			if is, signed, _ := proc.HolderOf(filepath.Join(dir, proc.AliveFile)); signed {
				h, ok = is, true
			}
		}
		return ok
	})
	w.must("task", "add", "demo", "escape", "--run", fmt.Sprintf("test -e %[1]s/escaped && exit 0\n"+
		"env -i PATH=\"$PATH\" setsid sh %[2]s %[3]d </dev/null >/dev/null 2>&1 &\nsleep 600", w.root, path, h.Pid))
	eventually(w.t, "the member has a process of its own", func() bool {
		data, _ := os.ReadFile(filepath.Join(w.root, "escaped"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 0
	})
	var err error
	if start, err = proc.StartTime(pid); err != nil {
		w.t.Fatal(err)
	}
	w.write("../go", "")
	return pid, start
}
