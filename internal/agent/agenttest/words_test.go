package agenttest_test

import (
	"encoding/json"
	"errors"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/team"
)

func TestWords(t *testing.T) {
	type inner struct {
		raw  json.RawMessage
		list []string
	}
	for want, said := range map[string]any{
		`TurnStarted`:                          agent.TurnStarted{},
		`Text Text="a \"b\"\n"`:                agent.Text{Text: "a \"b\"\n"},
		`Used Usage={InputTokens=7} Context=3`: agent.Used{Usage: team.Usage{InputTokens: 7}, Context: 3},
		`TurnEnded Problem={Kind="limit" Text="later"}`: agent.TurnEnded{
			Problem: &agent.Problem{Kind: agent.ProblemLimit, Text: "later"}},
		`TurnEnded Interrupted=true`: agent.TurnEnded{Interrupted: true},
		`PermissionAsked Tool="Bash"`: agent.PermissionAsked{Tool: "Bash",
			Answer: func(bool, string) {}},
		`Started Session="s" Resumed=true Seen=[1 2]`: agent.Started{Session: "s", Resumed: true,
			Seen: []int64{1, 2}},
		`Ended Err={s="gone"}`:               agent.Ended{Err: errors.New("gone")},
		`inner raw={"a":[1]} list=["x" "y"]`: inner{json.RawMessage(`{"a":[1]}`), []string{"x", "y"}},
	} {
		if got := agenttest.Words(said); got != want {
			t.Errorf("%#v is formatted as %s, want %s", said, got, want)
		}
	}
}
