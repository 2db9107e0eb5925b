package agenttest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/sys/filelock"
)

//go:embed agents.json
var pinned []byte

// Program is a real coding agent, at a version that is pinned in agents.json.
type Program struct {
	Name    string `json:"name"`
	Package string `json:"package"` // in npm
	Version string `json:"version"`
	Old     bool   `json:"old"` // the name alone means another version
	Path    string `json:"-"`   // of its launcher
}

// Dir returns the folder of the launcher.
func (p Program) Dir() string { return filepath.Dir(p.Path) }

// Programs returns all pinned programs.
func Programs() []Program {
	var all []Program
	if err := json.Unmarshal(pinned, &all); err != nil {
		panic(err)
	}
	return all
}

// Installed returns the program. It installs the program if necessary. name is claude, codex,
// gemini or opencode, optionally with @ and a pinned version. Installed skips the test if the
// installation fails.
func Installed(t testing.TB, name string) Program {
	t.Helper()
	if testing.Short() {
		t.Skip("real agents are slow; not with -short")
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	for _, p := range Programs() {
		if p.Name == name && !p.Old || p.Name+"@"+p.Version == name {
			p, err := Install(ctx, p)
			if err != nil {
				t.Skipf("%s %s cannot be installed here: %v", p.Name, p.Version, err)
			}
			return p
		}
	}
	t.Fatalf("%s is not pinned in agents.json", name)
	return Program{}
}

// installTimeout bounds one installation, and the wait for another process that installs the same.
const installTimeout = 5 * time.Minute

// Install installs a program from npm into the user's cache folder, unless it is there. Of several
// processes one installs, and the others wait.
func Install(ctx context.Context, p Program) (_ Program, err error) {
	var cache string
	if cache, err = cacheDir(); err != nil {
		return p, err
	}
	all := filepath.Join(cache, "cadre", "agents")
	dir := filepath.Join(all, p.Name+"-"+p.Version)
	p.Path = filepath.Join(dir, "node_modules", ".bin", p.Name)
	if _, err := os.Stat(p.Path); err == nil {
		return p, nil
	}
	if err = os.MkdirAll(all, 0o755); err != nil {
		return p, err
	}
	lock, err := filelock.Wait(ctx, dir+".lock")
	if err != nil {
		return p, err
	}
	defer lock.Unlock()
	if _, err := os.Stat(p.Path); err == nil { // the previous holder of the lock installed it
		return p, nil
	}
	if words, ok := refusal(dir); ok {
		return p, errors.New(words)
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			os.WriteFile(dir+refused, []byte(err.Error()), 0o600)
		}
	}()
	fresh, err := os.MkdirTemp(all, "."+p.Name+"-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(fresh)
	if _, err = output(ctx, fresh, nil, "npm", "install", "--no-fund", "--no-audit", "--loglevel", "error",
		"--fetch-retries", "1", "--prefix", fresh, p.Package+"@"+p.Version); err != nil {
		return p, err
	}
	// npm ignores an optional package that it could not download. For some programs that package is
	// the program itself.
	if err = p.runs(ctx, filepath.Join(fresh, "node_modules", ".bin", p.Name)); err != nil {
		return p, fmt.Errorf("npm installed it, but it does not run: %w", err)
	}
	os.RemoveAll(dir)
	return p, os.Rename(fresh, dir)
}

// The reason for a failed installation stays in a file for a while, so that other tests do not try
// again.
const (
	refused    = ".refused"
	refusedFor = 20 * time.Minute
)

func refusal(dir string) (words string, fresh bool) {
	info, err := os.Stat(dir + refused)
	if err != nil || time.Since(info.ModTime()) > refusedFor {
		return "", false
	}
	text, err := os.ReadFile(dir + refused)
	return string(text), err == nil
}

// runs asks the launcher for its version, in a temporary home.
func (p Program) runs(ctx context.Context, launcher string) error {
	home, err := os.MkdirTemp("", "cadre-test-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "DISABLE_AUTOUPDATER=1",
		"OPENCODE_DISABLE_AUTOUPDATE=true"}
	text, err := output(ctx, home, env, launcher, "--version")
	if err == nil && !strings.Contains(text, p.Version) {
		err = fmt.Errorf("its version is not %s: %s", p.Version, text)
	}
	return err
}

// output runs a command in a folder to its end. When ctx ends, it kills the command and all its
// children. An error contains the end of the output.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	var words bytes.Buffer
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, env, &words, &words
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second // for a child that left the group and keeps the output open
	err := c.Run()
	text := strings.TrimSpace(words.String())
	if err == nil {
		return text, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%s was killed: %w", name, cause)
	}
	return text, fmt.Errorf("%w: %s", err, text[max(0, len(text)-600):])
}

// World is a home in which agents know only a server.
type World struct {
	Home string
	Dir  string // a project to work in: a git repository with one commit
	Env  []string
}

// NewWorld creates a home with the configuration of each program, and a project. Both are removed
// after the test. They are outside the folder for temporary files, because codex refuses a home
// there.
func NewWorld(t testing.TB, s *Server, programs ...Program) World {
	t.Helper()
	cache, err := cacheDir()
	if err == nil {
		cache = filepath.Join(cache, "cadre", "homes")
		err = os.MkdirAll(cache, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(cache, "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A killed program may still write files for a moment.
		for n := 0; os.RemoveAll(home) != nil && n < 50; n++ {
			time.Sleep(20 * time.Millisecond)
		}
	})
	w := World{Home: home, Dir: filepath.Join(home, "project"), Env: worldEnv(home, s, programs)}
	w.fill(t, s)
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "begin"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = w.Dir, w.Env
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return w
}

// worldEnv returns the environment of the programs, which have nothing of the user's.
func worldEnv(home string, s *Server, programs []Program) []string {
	path := []string{}
	for _, p := range programs {
		path = append(path, p.Dir())
	}
	for _, tool := range []string{"node", "git", "sh", "bash"} {
		if found, err := exec.LookPath(tool); err == nil {
			path = append(path, filepath.Dir(found))
		}
	}
	env := []string{"HOME=" + home, "PATH=" + strings.Join(append(path, "/usr/local/bin", "/usr/bin", "/bin"), ":"),
		"TMPDIR=" + os.TempDir(), "LANG=C.UTF-8", "TERM=dumb", "USER=cadre",
		"SHELL=/bin/bash", "NO_PROXY=127.0.0.1,localhost", "GIT_CONFIG_GLOBAL=" + filepath.Join(home, "gitconfig")}
	env = append(env, claudeEnv(s)...)
	env = append(env, "CADRE_TEST_KEY=dummy") // for codex
	env = append(env, "GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL="+s.URL, "GEMINI_CLI_NO_RELAUNCH=true",
		"GEMINI_CLI_TRUST_WORKSPACE=true")
	return append(env, "OPENCODE_DISABLE_AUTOUPDATE=true", "OPENCODE_DISABLE_MODELS_FETCH=true",
		"OPENCODE_MODELS_PATH="+filepath.Join(home, "models.json"), "OPENCODE_DISABLE_LSP_DOWNLOAD=true",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=true")
}

// fill writes the configuration of each program, and a file of the project.
func (w World) fill(t testing.TB, s *Server) {
	t.Helper()
	for name, text := range map[string]string{
		"gitconfig": "[user]\n\tname = test\n\temail = " +
			"test@example.org\n[init]\n\tdefaultBranch = main\n",
		".codex/config.toml":             codexConfig(s),
		".gemini/settings.json":          `{"model":{"name":"gemini-2.5-pro"},"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},"general":{"enableAutoUpdate":false,"disableAutoUpdate":true},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}`,
		".config/opencode/opencode.json": openCodeConfig(s),
		// Only the configured model: the thousands of others would cost a second at each start.
		"models.json": "{}",
		// Pretend that the library for its plugins is installed; otherwise it would install it from
		// npm.
		".config/opencode/package-lock.json":  `{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}`,
		".config/opencode/node_modules/.keep": "",
		"project/README.md":                   "A project to work in.\n",
	} {
		file := filepath.Join(w.Home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func claudeEnv(s *Server) []string {
	return []string{"ANTHROPIC_BASE_URL=" + s.URL, "ANTHROPIC_API_KEY=dummy", "DISABLE_TELEMETRY=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1"}
}

func codexConfig(s *Server) string {
	return fmt.Sprintf(`model = "gpt-fake"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "CADRE_TEST_KEY"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 1
stream_max_retries = 1
`, s.URL)
}

func openCodeConfig(s *Server) string {
	return fmt.Sprintf(`{"$schema":"https://opencode.ai/config.json","autoupdate":false,"share":"disabled","model":"fake/fake-model","small_model":"fake/fake-model",
"provider":{"fake":{"npm":"@ai-sdk/anthropic","name":"fake","options":{"baseURL":"%s/v1","apiKey":"dummy"},"models":{"fake-model":{"name":"fake","cost":{"input":5,"output":25},"limit":{"context":200000,"output":8000}}}}}}`, s.URL)
}
