package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"cadre/internal/agent/drivers"
	"cadre/internal/testkit/soak"
)

// TestHelpFitsAScreen checks that cadre alone shows the commands of daily use on one screen, beside
// the prompts before and after it. cadre help --all shows the rest.
func TestHelpFitsAScreen(t *testing.T) {
	const lines, columns = 24, 60 // then it fits 80 columns too
	env := []string{"HOME=" + t.TempDir()}
	var short string
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		r := call{args: args, dir: t.TempDir(), env: env}.run(t)
		if r.code != done || len(r.err) > 0 {
			t.Fatalf("%q: %d, %s", args, r.code, r.err)
		}
		if short == "" {
			short = string(r.out)
		}
		if string(r.out) != short {
			t.Errorf("%q shows something else:\n%s", args, r.out)
		}
	}
	rows := strings.Split(strings.TrimSuffix(short, "\n"), "\n")
	if len(rows) > lines-2 {
		t.Errorf("the help has %d lines, the limit is %d", len(rows), lines-2)
	}
	for _, row := range rows {
		if n := utf8.RuneCountInString(row); n > columns {
			t.Errorf("a line has %d characters: %s", n, row)
		}
	}
	shown := 0
	all := string(call{args: []string{"help", "--all"}, dir: t.TempDir(), env: env}.run(t).out)
	for _, e := range commands {
		if strings.Contains(short, "\n  "+e.name+" ") {
			shown++
		}
		if e.group != "" && !strings.Contains(all, "\n  "+e.name+" ") && e.name != "report-killed" {
			t.Errorf("cadre help --all lacks %s", e.name)
		}
	}
	if shown != 13 {
		t.Errorf("the help shows %d commands, want 13:\n%s", shown, short)
	}
	if !strings.Contains(all, "Exit status: 0 done") {
		t.Errorf("cadre help --all does not contain the whole text:\n%s", all)
	}
}

// TestSpawnExplainsEveryAgent checks that the help says what each agent is that cadre spawn takes.
func TestSpawnExplainsEveryAgent(t *testing.T) {
	r := call{args: []string{"spawn", "--help"}, dir: t.TempDir(), env: []string{"HOME=" + t.TempDir()}}.run(t)
	explained, _, _ := strings.Cut(string(r.out), "Usage:")
	for _, name := range drivers.Words() {
		if !regexp.MustCompile(`(?m)^  ([^ ]+, )*` + name + `(,| {2,})`).MatchString(explained) {
			t.Errorf("the help names the agent %s and does not explain it:\n%s", name, explained)
		}
	}
}

// TestTeamsHere checks that cadre alone names the unfinished team of the directory, on a terminal,
// in one line instead of what to try first.
func TestTeamsHere(t *testing.T) {
	soak.Long(t)
	if !terminals {
		t.Skip("needs a terminal")
	}
	home, dir := t.TempDir(), t.TempDir()
	on := func(dir string, args ...string) string {
		t.Helper()
		r := call{args: args, dir: dir, env: []string{"HOME=" + home, "TERM=dumb"}, onTerm: true}.run(t)
		if r.code != done {
			t.Fatalf("%q: %d: %s", args, r.code, r.out)
		}
		return strings.ReplaceAll(string(r.out), "\r\n", "\n")
	}
	alone := on(dir)
	const first = "Try it, without a model: cadre run --template hello"
	says := func(want string) {
		t.Helper()
		if got := on(dir); got != strings.Replace(alone, first, want, 1) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
	on(dir, "create", "one")
	says("Team one is unfinished: cadre status")
	if got := on(t.TempDir()); got != alone {
		t.Errorf("elsewhere it shows:\n%s", got)
	}
	on(dir, "create", "two")
	says("2 unfinished teams work here: cadre ls")
	on(dir, "abort", "two", "--yes")
	piped := call{dir: dir, env: []string{"HOME=" + home}}.run(t)
	if strings.Contains(string(piped.out), "one") {
		t.Errorf("in a pipe it names the team:\n%s", piped.out)
	}
	on(dir, "spawn", "one", "ann", "--agent", "shell", "--wait")
	says("Team one is running: cadre watch")
	on(dir, "abort", "one", "--yes")
	says(first)
}
