package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestServeTokens checks that a token is created, listed and removed, and shown only when asked
// for.
func TestServeTokens(t *testing.T) {
	soak.Long(t)
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home")}
	do := func(code int, args ...string) string {
		t.Helper()
		r := call{args: append([]string{"serve", "token"}, args...), dir: root, env: env}.run(t)
		if r.code != code {
			t.Errorf("%q ends with %d: %s%s", args, r.code, r.out, r.err)
		}
		return string(r.out) + string(r.err)
	}
	if out := do(0, "ls"); !strings.Contains(out, "there are no tokens") {
		t.Error(out)
	}
	file := filepath.Join(root, "home", "server", "tokens", "phone")
	if out := do(0, "add", "phone"); out != "token phone, with the role observe, is in "+file+"\n" {
		t.Error(out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, phone, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	ci := strings.TrimSpace(do(0, "add", "ci", "--role", "admin", "--show"))
	if len(ci) != 43 || strings.ContainsAny(ci, " \n") {
		t.Errorf("--show prints %q", ci)
	}
	for _, out := range []string{do(0, "ls"), do(0, "ls", "--json"), do(2, "add", "phone"), do(0, "rm", "phone")} {
		if strings.Contains(out, phone) || strings.Contains(out, ci) {
			t.Errorf("a token is shown: %s", out)
		}
	}
	if out := do(0, "ls"); strings.Contains(out, "phone") || !strings.Contains(out, "ci") ||
		!strings.Contains(out, "admin") {
		t.Error(out)
	}
	do(2, "add", "x", "--role", "root")
	do(2, "rm", "phone")
	if out := do(0, "add", "later", "--show", "--json"); !strings.Contains(out, `"value":"`) ||
		!strings.Contains(out, `"role":"observe"`) {
		t.Error(out)
	}
	env = append(env, "CADRE_TEAM=demo", "CADRE_MEMBER_NAME=ann")
	for _, args := range [][]string{{"add", "own", "--role", "admin"}, {"ls"}, {"rm", "ci"}} {
		if out := do(2, args...); !strings.Contains(out, "is for the user") || strings.Contains(out, ci) {
			t.Errorf("a member gets: %s", out)
		}
	}
}
