package codex

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/sys/lazyregexp"
	"cadre/internal/sys/regularfile"
)

// These say what to do if Codex is not installed, or not logged in.
const (
	notThere = "not installed; install Codex, and log in once: codex login"
	install  = "install Codex, or name the program with its command"
	howToLog = "codex login"
)

// Locate implements [agent.Locator].
func (a Agent) Locate(program string) error { return agent.Locate(program, a.program(), notThere) }

// Remedy implements [agent.Remedier].
func (Agent) Remedy(kind agent.ProblemKind) string { return agent.Remedy(kind, install, howToLog) }

// CheckLogin asks the program, which knows the accounts of OpenAI. For another provider, the key is
// in a variable that the configuration names.
func (a Agent) CheckLogin(ctx context.Context, program, dir string, env []string) agent.Login {
	login := agent.Login{State: agent.LoginUnknown, How: howToLog}
	c := readConfig(env)
	if c.unclear {
		login.Detail = "its configuration has profiles, or cannot be read"
		return login
	}
	if c.provider != "" && c.provider != "openai" {
		switch {
		case c.key == "":
			login.Detail = "the provider " + c.provider + " of its configuration names no variable for a key"
		case agent.Variable(env, c.key) == "" && c.variables:
			login.Detail = c.key + " may be set in the program's own .env file"
		case agent.Variable(env, c.key) == "":
			login.State, login.Detail, login.How = agent.NotLoggedIn, c.key+" is not set, which the provider "+
				c.provider+" needs", "set "+c.key
		default:
			login.State, login.Detail = agent.LoggedIn, c.key+" is set"
		}
		return login
	}
	out, exit, ok := agent.Ask(ctx, dir, env, cmp.Or(program, a.program()), "login", "status")
	switch {
	case !ok:
		login.Detail = "codex login status could not be run"
	case strings.Contains(out, "Not logged in"):
		login.State = agent.NotLoggedIn
	case exit.Code != 0:
		login.Detail = "the output of codex login status is unknown to cadre"
	case strings.Contains(out, "ChatGPT"):
		login.State, login.Detail = agent.LoggedIn, "with ChatGPT"
	default: // its words contain a part of a key
		login.State = agent.LoggedIn
	}
	return login
}

// config has the settings that matter for a login.
type config struct {
	provider  string // "" for the default one
	key       string // the variable with its key
	unclear   bool
	variables bool // there is a .env file, which the program reads at its start
}

// maxConfig bounds how much of the configuration is read, in bytes.
const maxConfig = 1 << 20

var (
	table   = lazyregexp.New(`^\s*\[+\s*([^\]]*?)\s*\]`)
	setting = lazyregexp.New(`^\s*([A-Za-z_]+)\s*=\s*(?:"([^"\\]*)"|'([^']*)')?`)
)

// readConfig reads the few settings that matter for a login. A setting that it does not understand
// makes the result unknown, not wrong.
func readConfig(env []string) (c config) {
	home := agent.Variable(env, "CODEX_HOME")
	if home == "" {
		home = filepath.Join(agent.Variable(env, "HOME"), ".codex")
	}
	data, err := regularfile.Read(filepath.Join(home, "config.toml"), maxConfig)
	_, absent := os.Lstat(filepath.Join(home, ".env"))
	c.variables = absent == nil
	if err != nil {
		return c // without it; the program itself reports an unreadable one
	}
	at, keys := "", map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxConfig+1)
	for lines.Scan() {
		if m := table().FindStringSubmatch(lines.Text()); m != nil {
			at = m[1]
			continue
		}
		m := setting().FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		value := m[2] + m[3]
		switch name, ok := strings.CutPrefix(at, "model_providers."); {
		case at == "" && m[1] == "model_provider":
			c.provider, c.unclear = value, c.unclear || value == ""
		case at == "" && (m[1] == "profile" || m[1] == "openai_base_url" || m[1] == "model_providers"):
			c.unclear = true
		case ok && m[1] == "env_key":
			keys[strings.Trim(name, `"'`)] = value
		}
	}
	c.key = keys[c.provider]
	return c
}
