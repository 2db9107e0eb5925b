package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// hints returns hints for the action: one with every field that it may use, and one with only those
// that it needs.
func hints(a team.Action) []team.Hint {
	fullest := team.Hint{Action: a, Team: "demo", Member: "ann", Task: "3", Request: "perm-1", Name: "bob",
		Agent: "codex", Budget: "cost", Dir: "/a dir/it's", Tasks: []string{"1", "2"}, Paths: []string{"a b.txt", "$(c)"}, From: strings.Repeat("a", 40), To: strings.Repeat("b", 40)}
	barest := team.Hint{Action: a, Team: "demo", Task: "3", Request: "perm-1"}
	switch a {
	case team.ActRejoin, team.ActResend, team.ActAsk, team.ActReadMail:
		barest.Member = "ann"
	case team.ActCreate:
		barest.Team = ""
	}
	return []team.Hint{fullest, barest}
}

// filledIn maps each placeholder that a person fills in to an example value.
var filledIn = map[string]string{"N": "1000", "AMOUNT": "2.50", "DURATION": "30m", "NAME": "eve", "DIR": "/",
	"TEXT": "hello", "PLAN": "1. look", "TASK": "4", "COMMAND": "make", "PATH": "a.txt"}

// TestEveryHintIsACommand parses each hint with the real command tree. The tree must accept the
// words, the flags and the number of arguments.
func TestEveryHintIsACommand(t *testing.T) {
	lines := map[string]team.Action{}
	for _, a := range team.Actions() {
		for _, h := range hints(a) {
			s := command(h)
			if _, is := gitCommand(h); !is { // TestHintsForGit runs these
				typesAs(t, s.line)
			}
			other, taken := lines[s.line]
			if taken && other != a && !(a == team.ActFinish && other == team.ActConsolidate) {
				t.Errorf("%s and %s are the same: %s", a, other, s.line)
			}
			lines[s.line] = a
			if s.note != "" && !strings.HasPrefix(s.note, ", ") {
				t.Errorf("%s: %q could be confused with a command to type", a, s.note)
			}
		}
	}
	for _, b := range []string{"tokens", "cost", "time"} {
		typesAs(t, command(team.Hint{Action: team.ActRaiseBudget, Team: "demo", Budget: b}).line)
		typesAs(t, command(team.Hint{Action: team.ActRaiseBudget, Team: "demo", Member: "ann", Budget: b}).line)
	}
	if t.Failed() {
		return
	}
	// The test must find these mistakes.
	for _, wrong := range []string{"cadre resum demo", "cadre resume demo --take-ovr", "cadre permit",
		"cadre budget demo --tokens many", "cadre send demo --to"} {
		if parses(wrong) == nil {
			t.Errorf("%q is accepted as a command", wrong)
		}
	}
}

func typesAs(t *testing.T, line string) {
	t.Helper()
	if err := parses(line); err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

// parses parses the line with the command that it calls, and checks that no argument is missing.
func parses(line string) error {
	c, err := parsed(line)
	if err != nil {
		return err
	}
	return positional(c)
}

// parsed finds the command of the line and parses its words, as a shell would split them.
func parsed(line string) (*cobra.Command, error) {
	if cd, command, elsewhere := strings.Cut(line, " && CADRE_HOME=DIR "); elsewhere && strings.HasPrefix(cd, "cd ") {
		line = command // it is typed in the place of another copy
	}
	words := words(line)
	if len(words) < 2 || words[0] != "cadre" {
		return nil, errors.New("is no line of cadre")
	}
	for i, w := range words {
		if with, ok := filledIn[w]; ok {
			words[i] = with
		}
	}
	c, rest, err := (&app{}).root(words[1:]).Find(words[1:])
	if err != nil {
		return nil, err
	}
	group := c.HasSubCommands() && c.Args != nil // a group that takes no arguments but the names of its commands
	if !c.Runnable() || c.Parent() == nil || group {
		return nil, fmt.Errorf("%s runs nothing", c.CommandPath())
	}
	if err := c.ParseFlags(rest); err != nil {
		return nil, err
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return nil, err
	}
	if err := c.ValidateRequiredFlags(); err != nil {
		return nil, err
	}
	return c, c.ValidateFlagGroups()
}

// positional checks that the team and the subject are both given if the command accepts both.
func positional(c *cobra.Command) error {
	use, _, _ := strings.Cut(strings.ReplaceAll(strings.Split(c.Use, " | ")[0], "[--", "--"), " --") // a flag follows
	takes := regexp.MustCompile(`\[?\b[A-Z]+\b\]?`).FindAllString(use, -1)
	if got := len(c.Flags().Args()); got < len(takes) && c.Name() != "claim" && c.Name() != "resend" {
		return fmt.Errorf("%q has %d of the arguments of %q", c.Flags().Args(), got, c.Use)
	}
	return nil
}

// words splits a line like a POSIX shell, as far as [sanitize.Quote] quotes.
func words(line string) (all []string) {
	word, quoted, inside := "", false, false
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case quoted && b == '\'':
			quoted = false
		case quoted:
			word += string(b)
		case b == '\'':
			quoted, inside = true, true
		case b == '\\' && i+1 < len(line):
			i++
			word, inside = word+string(line[i]), true
		case b == ' ':
			if inside {
				all = append(all, word)
			}
			word, inside = "", false
		default:
			word, inside = word+string(b), true
		}
	}
	if inside {
		all = append(all, word)
	}
	return all
}

// TestHintsForGit runs the command lines of hints that git carries out, and checks what they do in a
// repository with a difficult name.
func TestHintsForGit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's $(one)")
	run := func(line string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-c", line)
		c.Dir = filepath.Dir(dir)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const by = " -c user.name=a -c user.email=a@b "
	git := "git -C " + sanitize.Quote(dir)
	run("git init -q " + sanitize.Quote(dir))
	var commits []string
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, "a b.txt"), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(git + " add -A && " + git + by + "commit -qm " + text)
		commits = append(commits, run(git+" rev-parse HEAD"))
	}
	h := team.Hint{Team: "demo", Dir: dir, From: commits[1], To: commits[0], Paths: []string{"a b.txt"}}
	h.Action = team.ActShowFile
	if got := run(command(h).line); got != "two" {
		t.Errorf("%s: got %q, want the file", command(h), got)
	}
	h.Action = team.ActRevertWork
	run(command(h).line)
	if got := run("cat " + sanitize.Quote(dir) + "/*"); got != "one" {
		t.Errorf("%s: the file is %q, want it as it was", command(h), got)
	}
	h.Action = team.ActKeepCommit
	run(strings.Replace(command(h).line, "NAME", "kept", 1))
	if got := run(git + " rev-parse kept"); got != commits[1] {
		t.Errorf("%s: the branch is at %s, want %s", command(h), got, commits[1])
	}
}

func TestHintsAreQuoted(t *testing.T) {
	for _, c := range []struct {
		hint team.Hint
		want []string
	}{
		{team.Hint{Action: team.ActMove, Team: "demo", Dir: "/a dir/it's"},
			[]string{"cadre", "resume", "demo", "--dir", "/a dir/it's"}},
		{team.Hint{Action: team.ActIncludeFiles, Team: "demo", Paths: []string{"a;b", "$(c)"}},
			[]string{"cadre", "consolidate", "demo", "--include", "a;b", "--include", "$(c)"}},
		{team.Hint{Action: team.ActSpawn, Team: "demo", Agent: "x; rm"},
			[]string{"cadre", "spawn", "demo", "NAME", "--agent", "x; rm"}},
	} {
		if got := words(command(c.hint).line); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestExplain(t *testing.T) {
	resume := team.Hint{Action: team.ActResume, Team: "demo"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("no"), "no"},
		{team.Refuse(team.NotReady, "bob still runs").With(
			team.Hint{Action: team.ActShutDown, Team: "demo", Member: "bob"},
			team.Hint{Action: team.ActForceCleanUp, Team: "demo"}),
			"bob still runs. To shut down bob: cadre shutdown demo bob; to end and remove the whole team: cadre cleanup " +
				"demo --force"},
		{fmt.Errorf("pull: %w", team.Refuse(team.NotReady, "it is there.").With(resume)),
			"pull: it is there. To resume the team: cadre resume demo"},
		{errors.Join(team.Refuse(team.NotReady, "one").With(resume), team.Refuse(team.NotReady, "two").With(resume)),
			"one\ntwo\nTo resume the team: cadre resume demo"},
	} {
		if got := explain(c.err); got != c.want {
			t.Errorf("%q,\nwant %q", got, c.want)
		}
	}
}
