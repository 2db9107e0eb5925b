package tui

import (
	"strings"
	"testing"
)

// TestLinear: the lines say how things stand, how to end them, and which command answers what
// waits. Later they say what changed.
func TestLinear(t *testing.T) {
	const (
		ends    = "Changes follow as they come. Ctrl-C ends this, and the teams continue."
		answers = `A line that begins with "needs you" ends with the command that answers it: type that in another terminal. ` +
			"cadre attention lists all that waits."
	)
	s := newStory(t)
	for _, c := range []struct {
		name, team string
		send       []any
		want       []string
	}{
		{"no team", "", []any{teamsMsg{}, teamsMsg{}}, []string{
			"There is no team yet. Start one in another terminal: cadre run FILE, or cadre create NAME", ends,
			answers}},
		{"all teams", "", []any{teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())[:1]},
			teamsMsg{}}, []string{
			"demo is active: 1 of 4 tasks done", "needs you, demo: ann asks to use Bash: rm -rf build && make. Type: " +
				"cadre permit demo permission-2@ann, or with --deny",
			ends, answers}},
		{"a team", "demo", []any{s.message(), s.message()}, []string{"demo is active: 1 of 4 tasks done", "lead is you",
			"ann is active, works on lexer Write the lexer for the new tokens; waits for an answer: asks for Bash",
			"bob is active; waits for an answer: plan submitted", "lukas is active", ends, answers}},
		{"a team that has ended", "demo", []any{teamMsg{view: &teamView{name: "demo", state: "complete", ended: true}}},
			[]string{"demo is complete: 0 of 0 tasks done"}},
	} {
		var got []string
		l := &linear{print: func(line string) { got = append(got, line) }, team: c.team, end: func() {},
			waiting: map[string]bool{}, rows: map[string]string{}}
		for _, msg := range c.send {
			l.take(msg)
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: it prints\n%s", c.name, strings.Join(got, "\n"))
		}
	}
}
