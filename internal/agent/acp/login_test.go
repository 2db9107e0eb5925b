package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/agent"
)

func TestLogins(t *testing.T) {
	t.Parallel()
	const oauth, key = `{"security":{"auth":{"selectedType":"oauth-personal"}}}`,
		`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`
	const secret = "sk-very-secret"
	for _, c := range []struct {
		name  string
		login func(env []string, dir string) (agent.LoginState, string)
		files map[string]string
		env   []string
		want  agent.LoginState
	}{
		{"gemini, nothing", geminiLogin, nil, nil, agent.NotLoggedIn},
		{"gemini, a variable", geminiLogin, nil, []string{"GEMINI_API_KEY=" + secret}, agent.LoggedIn},
		{"gemini, an empty variable", geminiLogin, nil, []string{"GEMINI_API_KEY=" + secret, "GEMINI_API_KEY="},
			agent.NotLoggedIn},
		{"gemini, a file of variables", geminiLogin, map[string]string{".gemini/.env": "GEMINI_API_KEY=" + secret}, nil,
			agent.LoginUnknown},
		{"gemini, a key of the project", geminiLogin,
			map[string]string{"work/project/.env": "GEMINI_API_KEY=" + secret}, nil, agent.LoginUnknown},
		{"gemini, a key of the project's settings", geminiLogin,
			map[string]string{"work/project/.gemini/.env": "GEMINI_API_KEY=" + secret}, nil, agent.LoginUnknown},
		{"gemini, a key around the project", geminiLogin, map[string]string{"work/.env": "GEMINI_API_KEY=" + secret},
			nil, agent.LoginUnknown},
		{"gemini, settings of the project", geminiLogin, map[string]string{"work/project/.gemini/settings.json": key},
			nil, agent.LoginUnknown},
		{"gemini, a key below the project", geminiLogin,
			map[string]string{"work/project/sub/.env": "GEMINI_API_KEY=" + secret}, nil, agent.NotLoggedIn},
		{"gemini, an account", geminiLogin, map[string]string{".gemini/settings.json": oauth,
			".gemini/oauth_creds.json": secret}, nil, agent.LoggedIn},
		{"gemini, an account, in settings with comments", geminiLogin,
			map[string]string{".gemini/settings.json": "// mine\n" + oauth, ".gemini/oauth_creds.json": secret}, nil,
			agent.LoggedIn},
		{"gemini, an account elsewhere", geminiLogin, map[string]string{".gemini/settings.json": oauth}, nil,
			agent.LoginUnknown},
		{"gemini, a key", geminiLogin, map[string]string{".gemini/settings.json": key},
			[]string{"GEMINI_API_KEY=" + secret}, agent.LoggedIn},
		{"gemini, a key elsewhere", geminiLogin, map[string]string{".gemini/settings.json": key}, nil,
			agent.LoginUnknown},
		{"gemini, settings that are broken", geminiLogin, map[string]string{".gemini/settings.json": "{"}, nil,
			agent.LoginUnknown},
		{"opencode, nothing", openCodeLogin, nil, nil, agent.LoginUnknown},
		{"opencode, a provider", openCodeLogin, map[string]string{
			".local/share/opencode/auth.json": `{"anthropic":{"type":"api","key":"` + secret + `"}}`}, nil,
			agent.LoggedIn},
		{"opencode, none", openCodeLogin, map[string]string{".local/share/opencode/auth.json": `{}`}, nil,
			agent.LoginUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			state, detail := c.login(append([]string{"HOME=" + home}, c.env...), filepath.Join(home, "work", "project"))
			if state != c.want {
				t.Errorf("%s (%s), not %s", state, detail, c.want)
			}
			if strings.Contains(detail, secret) {
				t.Error("it tells a secret")
			}
		})
	}
}
