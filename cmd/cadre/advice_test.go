package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAdvice checks what errors, notes and the end of a run say, in one dormant team with a failed
// task.
func TestAdvice(t *testing.T) {
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	do := func(args ...string) string {
		t.Helper()
		r := call{args: args, dir: root, env: env}.run(t)
		return string(r.out) + string(r.err)
	}
	const file = "name: demo\nmembers: [{name: ann}, {name: bob}]\ntasks: [{id: a, run: echo 1}, {id: b, run: exit 3}]\n"
	if err := os.WriteFile(filepath.Join(root, "demo.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	does := func(want string, args ...string) {
		t.Helper()
		if out := do(args...); !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q: not with %s:\n%s", args, want, out)
		}
	}
	does(`1 of 2 tasks done in [0-9]`, "run", "demo.yaml")
	does(`1 of 2 tasks done; this run took [0-9]`, "run", "demo.yaml")
	does(`(?m)^note: ann runs commands and reads no messages; a message only lets it continue after an interrupt\n`,
		"send", "demo", "--to", "ann", "hello", "--json")
	does(`Team files there: demo.yaml. To run one: cadre run demo.yaml\n$`, "run", "entirely-else.yaml")
	does(`To see which requests wait: cadre attention demo\n$`, "plan", "demo")
	does(`To see which requests wait: cadre attention demo\n$`, "permit", "demo")
	does(`To read the mail of the lead: cadre inbox demo lead\n$`, "inbox", "demo")
	does(`"task lst" is not a command, did you mean task list\?`, "task", "lst", "demo")
	does(`^cadre: team nobody does not exist; the teams are: demo\n$`, "resume", "nobody")
	does(`^cadre: ann is paused: no turn runs that could be interrupted`, "interrupt", "demo", "ann")
	does(`ann\s+shell, paused`, "__complete", "attach", "demo", "")
	if out := do("status", "demo"); !strings.Contains(out, "1 task is open.\n") {
		t.Errorf("the item that no process runs has an age:\n%s", out)
	}
}
