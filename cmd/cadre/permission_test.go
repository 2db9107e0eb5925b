package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestPermissionRules adds permission rules to a team with requests that wait, lists them and
// removes them. A rule that sets no bounds is added only with a confirmation.
func TestPermissionRules(t *testing.T) {
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	process := call{env: env}.lines(t)
	do := func(want int, says string, args ...string) string {
		t.Helper()
		r := process(root, args...)
		if out := string(r.out) + string(r.err); r.code != want || !strings.Contains(out, says) {
			t.Errorf("%q: status %d, and not %d with %q:\n%s", args, r.code, want, says, out)
		}
		return string(r.out)
	}
	home := layout.Home{Root: filepath.Join(root, "home"), Claude: filepath.Join(root, "claude")}
	asks := func(member, tool, input string) {
		t.Helper()
		err := (&app{home: home, err: standardError()}).engine().Act(t.Context(), "demo", member,
			&team.RequestPermission{
				Tool: tool, Input: input, Deadline: now().Add(time.Hour)},
			func(*engine.Team, *team.Record) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	do(done, "", "create", "demo")
	do(done, "", "spawn", "demo", "ann", "--agent", "external")
	do(done, "", "spawn", "demo", "bob", "--agent", "external")
	do(done, "team demo has no permission rules; to add one: cadre permission add demo RULE", "permission", "demo")

	asks("ann", "Bash", `{"command":"git status --short"}`)
	asks("ann", "Bash", `{"command":"git status"}`)
	asks("bob", "Bash", `{"command":"rm -r *"}`)
	do(done, "ann may use without asking: exactly the command git status --short\nallowed: permission-1@ann\nby the "+
		"rule: "+"Bash(git status --short)", "permit", "demo", "permission-1@ann", "--always")
	do(tryAgain, "the request permission-1@ann was allowed by the user already", "permit", "demo",
		"permission-1@ann", "--always")
	do(hopeless, "--always allows the request by a rule", "permit", "demo", "permission-2@ann", "--always", "--deny")
	do(hopeless, "although it sets no bounds (rm with any words after it can destroy work): cadre permission add demo "+
		"'Bash(rm -r *)' --member bob --yes", "permit", "demo", "permission-3@bob", "--always")
	do(done, "all members may use without asking: git status with any words after it, as a single command\nallowed: "+
		"permission-2@ann", "permission", "add", "demo", "Bash(git status:*)")
	do(hopeless, "this needs a confirmation", "permission", "add", "demo", "Bash")
	do(done, `"allowed":["permission-3@bob"]`, "permission", "add", "demo", "Bash", "--member", "bob",
		"--yes", "--json")
	do(hopeless, "is not a permission rule", "permission", "add", "demo", "Bash(git")
	do(hopeless, "To add it although no agent has a tool called Bsh (did you mean Bash?): cadre permission add demo "+
		"'Bsh(git status)' --member bob --yes", "permission", "add", "demo", "Bsh(git status)", "--member", "bob")
	do(done, "any use of frobnicate", "permission", "add", "demo", "frobnicate", "--member", "bob", "--yes")
	do(done, "is removed", "permission", "rm", "demo", "frobnicate", "--member", "bob")
	for _, rule := range []string{"WebSearch", "mcp__files__read", "TaskCreate"} {
		do(done, "bob may use", "permission", "add", "demo", rule, "--member", "bob")
		do(done, "is removed", "permission", "rm", "demo", rule, "--member", "bob")
	}
	do(done, "3 permission rules", "status", "demo")
	list := do(done, "Bash(git status:*)", "permission", "demo")
	for _, want := range []string{"ann", "all members", "any command", "by user"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	do(hopeless, "the rule Bash was added for bob, and not for all members", "permission", "rm", "demo", "Bash")
	do(done, "the rule Bash for bob is removed", "permission", "rm", "demo", "Bash", "--member", "bob")
	do(done, "bob may use without asking: any command (rule Bash)", "log", "demo")
	do(done, "no request for permission waits", "permit", "list", "demo")
}
