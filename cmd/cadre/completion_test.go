package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestCompletionWords asks for completions as the shells do.
func TestCompletionWords(t *testing.T) {
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	process := call{env: env}.lines(t)
	do := func(more []string, args ...string) string {
		var r printed
		if len(more) == 0 {
			r = process(root, args...)
		} else {
			r = call{args: args, dir: root, env: append(env, more...)}.run(t)
		}
		if r.code != done {
			t.Fatalf("%q: status %d: %s", args, r.code, r.err)
		}
		return string(r.out)
	}
	words := func(out string) string {
		var found []string
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, ":") {
				word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
				found = append(found, word)
			}
		}
		return strings.Join(found, " ")
	}
	if got := words(do(nil, "__complete", "status", "")); got != "" { // there is no team yet
		t.Errorf("without a team: %q", got)
	}
	for _, args := range [][]string{{"create", "one"}, {"spawn", "one", "ann", "--agent", "external"},
		{"task", "add", "one", "First"}, {"task", "add", "one", "Second"}, {"task", "done", "one", "2"},
		{"note", "set", "one", "decisions/api", "JSON"}, {"note", "set", "one", "tried", "XML"},
		{"create", "two", "--lead", "boss"}} {
		do(nil, args...)
	}
	for line, want := range map[string]string{
		"status":                     "one two",
		"status one":                 "",
		"log":                        "one two",
		"inbox one":                  "lead ann",
		"inbox two":                  "boss",
		"shutdown one":               "lead ann",
		"task show one":              "1 2",
		"note get one":               "decisions/api tried",
		"task done one":              "1",
		"task done nowhere":          "",
		"reassign one 1":             "lead ann",
		"mode one ann":               "default acceptEdits auto bypassPermissions dontAsk plan",
		"delegate one":               "on off",
		"send one --to":              "lead ann",
		"task done one 1 --as":       "lead ann",
		"budget one --member":        "lead ann",
		"spawn one":                  "",
		"spawn one x --isolation":    "worktree",
		"create":                     "",
		"init --template":            "feature fix health hello investigate migrate release-check review start",
		"templates":                  "feature fix health hello investigate migrate release-check review start",
		"task add one x --priority":  "low medium high critical",
		"send one --priority":        "normal urgent",
		"task list one --status":     strings.Join(team.TaskStates, " "),
		"task add one x --when":      "always",
		"inbox one ann --type":       strings.Join(team.MessageTypes, " "),
		"mcp --team":                 "one two",
		"permit one":                 "",
		"run":                        "yaml yml", // the file extensions
		"send one --to ann --intent": "info question challenge resolution",
	} {
		if got := words(do(nil, append(append([]string{"__complete"}, strings.Fields(line)...), "")...)); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	// A session gets what it can reach, with the members and tasks of its team.
	as := []string{"CADRE_TEAM=one", "CADRE_MEMBER_NAME=ann"}
	for line, want := range map[string]string{"status": "one", "task done": "one 1", "inbox two": "",
		"inbox": "one lead ann"} {
		if got := words(do(as, append(append([]string{"__complete"}, strings.Fields(line)...), "")...)); got != want {
			t.Errorf("in a session, %s: got %q, want %q", line, got, want)
		}
	}
}
