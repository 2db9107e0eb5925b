package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"cadre/internal/render"
	"cadre/internal/team"
)

// hints returns hints for the action: one with every field that it may use, and one with only those
// that it needs.
func hints(a team.Action) []team.Hint {
	fullest := team.Hint{Action: a, Team: "demo", Member: "ann", Task: "3", Request: "perm-1", Name: "bob",
		Note: "plan", Agent: "codex", Budget: "cost", Dir: "/a dir/it's", Tasks: []string{"1", "2"},
		Paths: []string{"a b.txt", "$(c)"}, From: strings.Repeat("a", 40), To: strings.Repeat("b", 40)}
	barest := team.Hint{Action: a, Team: "demo", Task: "3", Request: "perm-1", Note: "plan"}
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
			s := render.CommandFor(h)
			if !strings.HasPrefix(s.Line, "git ") { // TestHintsForGit of render runs these
				typesAs(t, s.Line)
			}
			other, taken := lines[s.Line]
			if taken && other != a && !(a == team.ActFinish && other == team.ActConsolidate) {
				t.Errorf("%s and %s are the same: %s", a, other, s.Line)
			}
			lines[s.Line] = a
			if s.Note != "" && !strings.HasPrefix(s.Note, ", ") {
				t.Errorf("%s: %q could be confused with a command to type", a, s.Note)
			}
		}
	}
	for _, b := range []string{"tokens", "cost", "time"} {
		typesAs(t, render.CommandFor(team.Hint{Action: team.ActRaiseBudget, Team: "demo", Budget: b}).Line)
		typesAs(t, render.CommandFor(team.Hint{Action: team.ActRaiseBudget, Team: "demo", Member: "ann",
			Budget: b}).Line)
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
	if !acts(c) || c.Parent() == nil {
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
			"bob still runs. To shut down bob: cadre shutdown demo bob; or to end and remove the whole team: cadre " +
				"cleanup demo --force"},
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
