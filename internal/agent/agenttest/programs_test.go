package agenttest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// fakeNPM creates an isolated machine for the test: an empty cache, and this script as npm. The
// script gets the installation folder as $prefix, and the folder of the machine as $machine.
func fakeNPM(t *testing.T, script string) (machine string) {
	t.Helper()
	machine = t.TempDir()
	for name, value := range map[string]string{"HOME": machine, "XDG_CACHE_HOME": filepath.Join(machine, "cache"),
		"PATH": machine + ":/usr/bin:/bin"} {
		t.Setenv(name, value)
	}
	npm := "#!/bin/sh\nmachine=" + machine + `
while [ $# -gt 1 ]; do
	[ "$1" = --prefix ] && prefix=$2
	shift
done
echo "$1" >>"$machine/installed"
launcher() { mkdir -p "$prefix/node_modules/.bin"; printf '#!/bin/sh\n%s\n' "$1" >"$prefix/node_modules/.bin/pilot"; chmod +x "$prefix/node_modules/.bin/pilot"; }
` + script + "\n"
	if err := os.WriteFile(filepath.Join(machine, "npm"), []byte(npm), 0o755); err != nil {
		t.Fatal(err)
	}
	return machine
}

var pilot = agenttest.Program{Name: "pilot", Package: "@some/pilot", Version: "1.2.3"}

// left returns what is in the cache of the machine, except locks.
func left(t *testing.T) (names []string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(filepath.Join(cache, "cadre", "agents"))
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestInstallOnce checks that npm installs a program once, however many callers want it.
func TestInstallOnce(t *testing.T) {
	machine := fakeNPM(t, `launcher 'echo pilot 1.2.3'`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			p, err := agenttest.Install(t.Context(), pilot)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(p.Path); err != nil || filepath.Base(p.Path) != "pilot" ||
				p.Dir() != filepath.Dir(p.Path) {
				t.Errorf("got program %s: %v", p.Path, err)
			}
		})
	}
	all.Wait()
	if asked, err := os.ReadFile(filepath.Join(machine, "installed")); string(asked) != "@some/pilot@1.2.3\n" {
		t.Errorf("npm was called with %q: %v", asked, err)
	}
	if names := left(t); len(names) != 1 || names[0] != "pilot-1.2.3" {
		t.Errorf("the cache contains %q", names)
	}
}

// TestCannotInstall checks that a failed installation leaves nothing, and that the error has the
// message of the program that failed.
func TestCannotInstall(t *testing.T) {
	for _, c := range []struct{ name, script, words string }{
		{"npm fails", `echo "npm error: no such host" >&2; exit 1`, "npm error: no such host"},
		{"no program", `exit 0`, "no such file"},
		{"the program is not for here", `launcher 'echo cannot find pilot-linux-x64; exit 3'`,
			"cannot find pilot-linux-x64"},
		{"another version", `launcher 'echo 1.2.4'`, "its version is not 1.2.3: 1.2.4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeNPM(t, c.script)
			_, err := agenttest.Install(t.Context(), pilot)
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got error %v", err)
			}
			if names := left(t); len(names) != 1 || names[0] != "pilot-1.2.3.refused" {
				t.Errorf("the cache contains %q", names)
			}
			if _, again := agenttest.Install(t.Context(), pilot); again == nil ||
				!strings.Contains(again.Error(), c.words) {
				t.Errorf("the second caller gets %v", again)
			}
		})
	}
	t.Run("there is no npm", func(t *testing.T) {
		machine := fakeNPM(t, "")
		t.Setenv("PATH", filepath.Join(machine, "nothing"))
		if _, err := agenttest.Install(t.Context(), pilot); !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("got error %v", err)
		}
	})
}

// TestInstallHangs checks that a hanging installation is killed with all its children, and that a
// waiting caller gets an error too.
func TestInstallHangs(t *testing.T) {
	machine := fakeNPM(t,
		`sh -c 'echo $$ >"$0/pid.new"; mv "$0/pid.new" "$0/pid"; while :; do sleep 1; done' "$machine"; exit 0`)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if _, err := agenttest.Install(ctx, pilot); !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v", err)
			}
		})
	}
	pid := waitForPid(t, filepath.Join(machine, "pid"))
	giveUp()
	all.Wait()
	for syscall.Kill(pid, 0) == nil { // init may take a while to reap it; the test's own deadline ends this loop
		time.Sleep(5 * time.Millisecond)
	}
	if names := left(t); len(names) != 0 {
		t.Errorf("the cache contains %q", names)
	}
}

func waitForPid(t *testing.T, file string) int {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		if text, err := os.ReadFile(file); err == nil {
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not appear", file)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestPinned checks that agents.json pins each program once by its name alone, at a valid version.
func TestPinned(t *testing.T) {
	names := map[string]bool{}
	for _, p := range agenttest.Programs() {
		if p.Package == "" || strings.Trim(p.Version, "0123456789.") != "" || strings.Count(p.Version, ".") != 2 {
			t.Errorf("%+v", p)
		}
		if !p.Old && names[p.Name] {
			t.Errorf("%s is pinned twice", p.Name)
		}
		names[p.Name] = names[p.Name] || !p.Old
	}
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		if !names[name] {
			t.Errorf("%s is not pinned", name)
		}
	}
}

// TestWorld checks that a world has nothing from the environment of the test, and is removed after
// it.
func TestWorld(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("OPENAI_API_KEY", "a secret")
	t.Setenv("CLAUDE_CONFIG_DIR", "a secret")
	var w agenttest.World
	t.Run("while it is there", func(t *testing.T) {
		s := agenttest.NewServer(t, nil)
		w = agenttest.NewWorld(t, s, agenttest.Program{Name: "pilot", Path: "/of/pilot/bin/pilot"})
		once := map[string]bool{}
		for _, v := range w.Env {
			name, value, _ := strings.Cut(v, "=")
			if once[name] || strings.Contains(value, "secret") || name == "OPENAI_API_KEY" {
				t.Errorf("its environment has %s", v)
			}
			once[name] = true
			switch name {
			case "HOME":
				if value != w.Home {
					t.Errorf("its home is %s", value)
				}
			case "PATH":
				if !strings.HasPrefix(value, "/of/pilot/bin:") {
					t.Errorf("its path is %s", value)
				}
			case "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL":
				if value != s.URL {
					t.Errorf("its environment has %s", v)
				}
			}
		}
		for _, file := range []string{".codex/config.toml", ".config/opencode/opencode.json"} {
			if text, err := os.ReadFile(filepath.Join(w.Home, file)); err != nil || !strings.Contains(string(text),
				s.URL+"/v1") {
				t.Errorf("%s is %s: %v", file, text, err)
			}
		}
		git := exec.CommandContext(t.Context(), "git", "status", "--porcelain")
		git.Dir, git.Env = w.Dir, w.Env
		if out, err := git.CombinedOutput(); err != nil || len(out) != 0 {
			t.Errorf("the project is not clean: %s %v", out, err)
		}
	})
	if _, err := os.Stat(w.Home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its home is still there: %v", err)
	}
}
