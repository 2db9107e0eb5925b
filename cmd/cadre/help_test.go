package main

import (
	"strings"
	"testing"
	"unicode/utf8"
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
	if shown != 12 {
		t.Errorf("the help shows %d commands, want 12:\n%s", shown, short)
	}
	if !strings.Contains(all, "Exit status: 0 done") {
		t.Errorf("cadre help --all does not contain the whole text:\n%s", all)
	}
}
