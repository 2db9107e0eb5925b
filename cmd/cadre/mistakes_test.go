package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestMistakesHaveHints makes the mistakes of a person who types. Under --json each refusal has a
// command to type as a hint, and the first one is a command that helps with that mistake.
func TestMistakesHaveHints(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"GIT_CEILING_DIRECTORIES=" + root}
	process := call{env: env}.lines(t)
	run := func(dir, line string) printed {
		return process(filepath.Join(root, dir), strings.Fields(line)...)
	}
	for _, dir := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	defer run("c", "cleanup slow --force") // also where a line before the pause failed
	ids := map[string]string{}
	for dir, lines := range map[string][]string{
		"a": {"create release"}, "b": {"create release"},
		"c": {"create slow", "spawn slow w --agent shell", "spawn slow x --agent external",
			"task add slow first --name 2",
			"task add slow second --blocked-by #1", "task add slow third --name third",
			"task done slow third --as lead", "pause slow"}, // no host runs it after that
	} {
		for _, line := range lines {
			if r := run(dir, line); r.code != done {
				t.Fatalf("cadre %s: %s", line, r.err)
			}
		}
		var teams []struct{ ID, Dir string }
		r := run(dir, "ls --json")
		if err := json.Unmarshal(r.out, &teams); err != nil {
			t.Fatalf("%v: %s", err, r.out)
		}
		for _, one := range teams {
			ids[filepath.Base(one.Dir)] = one.ID
		}
	}
	for line, want := range map[string]string{
		"send slow --to nobody hi":         "cadre status slow",
		"inbox slow nobody":                "cadre status slow",
		"attach slow nobody":               "cadre status slow",
		"reassign slow third nobody":       "cadre status slow",
		"handover slow nobody":             "cadre status slow",
		"mode slow nobody plan":            "cadre status slow",
		"log slow --member nobody":         "cadre status slow",
		"interrupt slow nobody":            "cadre status slow",
		"shutdown slow nobody":             "cadre status slow",
		"resend slow nobody":               "cadre status slow",
		"budget slow --member nobody":      "cadre status slow",
		"leave slow --as nobody":           "cadre status slow",
		"task done slow third --as nobody": "cadre status slow",
		"resume nope":                      "cadre ls",
		"fsck nope":                        "cadre ls",
		"status nope":                      "cadre ls",
		"abort nope --yes":                 "cadre ls",
		"status release":                   "cadre status ID --json",
		"pause release":                    "cadre pause ID --json",
		"task list release":                "cadre task list ID --json",
		"task show slow 2":                 "cadre task show slow '#1'",
		"task show slow nothing":           "cadre task list slow",
		"task claim slow third --as x":     "cadre task show slow third",
		"task claim slow #2 --as x":        "cadre task claim slow --next --as x",
		"task rollback slow third":         "cadre task show slow third",
		"task add slow y --priority huge":  "cadre task add --help",
		"task add slow y --name 2":         "cadre task show slow '#1'",
		"handover slow w":                  "cadre status slow",
		"handover slow x":                  "cadre mcp --team slow --as x",
		"mode slow w plan":                 "cadre mode --help",
		"mode slow w nosuch":               "cadre mode --help",
		"log slow --kind nosuch":           "cadre log --help",
		"hooks try slow x":                 "cadre hooks slow",
		"hooks disable slow x":             "cadre hooks slow",
		"push slow":                        "cadre push --help",
		"pull slow":                        "cd CLONE && cadre pull slow",
		"spawn slow lead":                  "cadre spawn --help",
		"spawn slow y --agent nosuch":      "cadre spawn --help",
		"create slow":                      "cadre status slow",
		"consolidate slow --rollback":      "cadre status slow",
		"permit slow perm-9":               "cadre status slow",
		"run nofile.yaml":                  "cadre run --help",
	} {
		r := run("c", line+" --json")
		var told failed
		if err := json.Unmarshal(r.err, &told); err != nil {
			t.Errorf("cadre %s: %v in %q", line, err, r.err)
			continue
		}
		var first string
		if len(told.Error.Hints) > 0 {
			first = told.Error.Hints[0].Command
		}
		wants := []string{want}
		if strings.Contains(want, "ID") { // one of the two teams
			wants = []string{strings.Replace(want, "ID", ids["a"], 1), strings.Replace(want, "ID", ids["b"], 1)}
		}
		if !slices.Contains(wants, first) {
			t.Errorf("cadre %s: the first hint is %q, want %q: %s", line, first, want, r.err)
		}
	}
}
