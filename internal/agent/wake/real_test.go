package wake

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// inEtc runs the program in its last arguments with a folder in the place of /etc/claude-code,
// which no other process sees.
const inEtc = `set -e
mkdir "$2"; cp -a /etc/. "$2"; rm -rf "$2/claude-code"; cp -a "$1" "$2/claude-code"
mount --bind "$2" /etc
shift 2
exec "$@"`

// TestRealManagedHooks checks that the real Claude Code runs a Stop hook exactly where [Session]
// says so.
func TestRealManagedHooks(t *testing.T) {
	claude := agenttest.Installed(t, "claude")
	if runtime.GOOS != "linux" || exec.Command("unshare", "--mount", "true").Run() != nil {
		t.Skip("managed settings of a test's own are to be had on Linux, by root")
	}
	hooks := func(mark, more string) string {
		return fmt.Sprintf(`{%s"hooks": {"Stop": [{"hooks": [
			{"type": "command", "command": "cadre wake", "asyncRewake": true, "timeout": 60},
			{"type": "command", "command": "touch \"$CLAUDE_PROJECT_DIR/%s-hook-ran\""}]}]}}`, more, mark)
	}
	const off, only = `"disableAllHooks": true, `, `"allowManagedHooksOnly": true, `
	for name, c := range map[string]struct{ own, managed, dropped string }{
		"own":                       {own: hooks("own", "")},
		"own off":                   {own: hooks("own", off)},
		"own beside managed":        {own: hooks("own", ""), managed: "{}"},
		"managed":                   {managed: hooks("managed", "")},
		"managed, own off":          {own: hooks("own", off), managed: hooks("managed", "")},
		"managed off":               {own: hooks("own", ""), managed: hooks("managed", off)},
		"managed only":              {own: hooks("own", ""), managed: `{"allowManagedHooksOnly": true}`},
		"managed only, dropped in":  {own: hooks("own", ""), dropped: `{"allowManagedHooksOnly": true}`},
		"managed only, and it has":  {own: hooks("own", ""), managed: hooks("managed", only)},
		"only in own":               {own: hooks("own", only)},
		"plugins only":              {own: hooks("own", ""), managed: `{"strictPluginOnlyCustomization": true}`},
		"hooks of plugins only":     {own: hooks("own", ""), managed: `{"strictPluginOnlyCustomization": ["hooks"]}`},
		"skills of plugins only":    {own: hooks("own", ""), managed: `{"strictPluginOnlyCustomization": ["skills"]}`},
		"plugins only, and it has":  {managed: hooks("managed", `"strictPluginOnlyCustomization": true, `)},
		"a document that is broken": {own: hooks("own", ""), managed: `{"allowManagedHooksOnly": tr`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := agenttest.NewWorld(t, agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn {
				return agenttest.Say("That is all.")
			}), claude)
			etc := filepath.Join(t.TempDir(), "claude-code")
			s := Session{Claude: filepath.Join(w.Home, ".claude"), Dir: w.Dir, Team: "demo", Member: "lead",
				Managed: []string{filepath.Join(etc, "managed-settings.json"),
					filepath.Join(etc, "managed-settings.d", "10-hooks.json")}}
			for file, text := range map[string]string{own(s)[0]: c.own, s.Managed[0]: c.managed,
				s.Managed[1]: c.dropped} {
				if text != "" {
					put(t, file, text)
				}
			}
			if err := os.MkdirAll(etc, 0o755); err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", inEtc, "sh", etc,
				filepath.Join(t.TempDir(), "etc"), claude.Path, "-p", "hello")
			run.Dir, run.Env = w.Dir, w.Env
			out, err := run.CombinedOutput()
			if broken := strings.Contains(string(out), "could not be parsed"); err != nil && !broken {
				t.Fatalf("%v: %s", err, out)
			}
			ran, _ := filepath.Glob(filepath.Join(w.Dir, "*-hook-ran"))
			if got := s.hooked(); got != (len(ran) > 0) {
				t.Errorf("it is said to be woken: %t; of its hooks ran %v\n%s", got, ran, out)
			}
		})
	}
}
