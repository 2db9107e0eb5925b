package codex

import (
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/agent"
)

// TestLoginOfAProvider checks that the key of a custom provider is looked for in the variable that
// the configuration names, and that settings which cannot be understood make the result unknown.
func TestLoginOfAProvider(t *testing.T) {
	t.Parallel()
	const provider = "model = \"m\"\nmodel_provider = \"mine\" # ours\n[features]\nmodel_provider = \"no\"\n[model_providers.mine]\nname = \"mine\"\nenv_key = 'MY_KEY'\n"
	for _, c := range []struct {
		name, config string
		env          []string
		want         agent.LoginState
	}{
		{"its key is set", provider, []string{"MY_KEY=x"}, agent.LoggedIn},
		{"its key is not set", provider, nil, agent.NotLoggedIn},
		{"it needs no key", "model_provider = \"mine\"\n[model_providers.mine]\nname = \"mine\"\n", nil,
			agent.LoginUnknown},
		{"a profile may say otherwise", "profile = \"p\"\n" + provider, []string{"MY_KEY=x"}, agent.LoginUnknown},
		{"no program to ask", "", nil, agent.LoginUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			got := Agent{}.CheckLogin(t.Context(), "/nowhere/codex", "",
				append([]string{"CODEX_HOME=" + home}, c.env...))
			if got.State != c.want {
				t.Errorf("%+v, not %s", got, c.want)
			}
		})
	}
}

// TestLoginByAFileOfVariables checks that only the file of variables in the program's own home
// counts, and none of the project.
func TestLoginByAFileOfVariables(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, "config.toml"), "model_provider = \"mine\"\n[model_providers.mine]\nname = "+
		"\"mine\"\nenv_key = \"MY_KEY\"\n")
	write(filepath.Join(dir, ".env"), "MY_KEY=x\n")
	check := func(want agent.LoginState) {
		t.Helper()
		if got := (Agent{}).CheckLogin(t.Context(), "/nowhere/codex", dir,
			[]string{"CODEX_HOME=" + home}); got.State != want {
			t.Errorf("%+v, not %s", got, want)
		}
	}
	check(agent.NotLoggedIn)
	write(filepath.Join(home, ".env"), "MY_KEY=x\n")
	check(agent.LoginUnknown)
}
