package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/sys/regularfile"
)

// Locate implements [agent.Locator].
func (a Agent) Locate(program string) error {
	if len(a.facts.command) == 0 {
		return errors.New("no command")
	}
	if program == "" && a.facts.howToLog == "" { // the user's own command
		program = a.facts.command[0]
	}
	return agent.Locate(program, a.facts.command[0], a.facts.missing)
}

// Remedy implements [agent.Remedier].
func (a Agent) Remedy(kind agent.ProblemKind) string {
	if f := a.facts; f.howToLog != "" {
		return agent.Remedy(kind, f.install, f.howToLog)
	}
	return agent.Remedy(kind, "install the program, or name another one", "see its documentation for how to log in")
}

// CheckLogin reads the agent's own files and variables.
func (a Agent) CheckLogin(_ context.Context, _, dir string, env []string) agent.Login {
	login := agent.Login{State: agent.LoginUnknown, How: a.facts.howToLog}
	if a.facts.login == nil {
		login.Detail = "cadre does not know how this agent keeps its login"
		return login
	}
	login.State, login.Detail = a.facts.login(env, dir)
	return login
}

// maxLogin bounds how much of a file about a login is read, in bytes.
const maxLogin = 1 << 20

// geminiLogin reads which kind of login the program is set to, and whether its credentials exist.
// Keys in the system's keychain are not visible. The files of a project do not count: whether the
// program reads them depends on its trust in the folder.
func geminiLogin(env []string, dir string) (agent.LoginState, string) {
	var settings struct {
		Security struct {
			Auth struct {
				Type string `json:"selectedType"`
			} `json:"auth"`
		} `json:"security"`
		Old string `json:"selectedAuthType"`
	}
	top := geminiHome(env)
	home := filepath.Join(top, ".gemini")
	data, err := regularfile.Read(filepath.Join(home, "settings.json"), maxLogin)
	if err == nil {
		err = json.Unmarshal(withoutComments(data), &settings)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agent.LoginUnknown, "its settings cannot be read"
	}
	set := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return agent.Variable(env, name) != "" })
	}
	_, file := os.Stat(filepath.Join(home, "oauth_creds.json"))
	how := settings.Security.Auth.Type
	if how == "" {
		how = settings.Old
	}
	switch {
	case how == "" && set("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"):
		return agent.LoggedIn, "by a variable of the environment"
	case how == "" && slices.ContainsFunc(geminiVariables(top, dir), exists):
		return agent.LoginUnknown, "a file of variables may hold a key"
	case how == "" && slices.ContainsFunc(agent.Upward(dir),
		func(at string) bool { return exists(filepath.Join(at, ".gemini", "settings.json")) }):
		return agent.LoginUnknown, "the settings of the project may say how"
	case how == "" && err != nil:
		return agent.NotLoggedIn, ""
	case how == "gemini-api-key" && set("GEMINI_API_KEY"):
		return agent.LoggedIn, "GEMINI_API_KEY is set"
	case how == "oauth-personal" && file == nil:
		return agent.LoggedIn, "with a Google account"
	case how == "":
		return agent.LoginUnknown, "its settings name no way to log in"
	}
	return agent.LoginUnknown, "its settings say " + how + ", whose credentials may be in the keychain"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// openCodeLogin reads the file in which the program keeps the result of auth login. Keys may also
// be in its configuration, and some models need none.
func openCodeLogin(env []string, _ string) (agent.LoginState, string) {
	data := agent.Variable(env, "XDG_DATA_HOME")
	if data == "" {
		data = filepath.Join(agent.Variable(env, "HOME"), ".local", "share")
	}
	text, err := regularfile.Read(filepath.Join(data, "opencode", "auth.json"), maxLogin)
	providers := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(text, &providers)
	}
	if err != nil || len(providers) == 0 {
		return agent.LoginUnknown,
			"it keeps no credentials; keys may be in its configuration or its environment, and some models need none"
	}
	return agent.LoggedIn, strings.Join(slices.Sorted(maps.Keys(providers)), ", ")
}
