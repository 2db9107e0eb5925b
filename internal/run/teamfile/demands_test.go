package teamfile_test

import (
	"testing"

	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// TestDemands checks what a task demands: a schema, a command or the name of one, and rounds.
func TestDemands(t *testing.T) {
	f, err := teamfile.Parse([]byte(`
name: demo
members: [{name: ann, agent: external}]
commands: {unit: go test ./...}
tasks:
  - {id: a, check: unit, timeout: 10m, dir: sub, env: {X: "1"}}
  - {id: b, until: {run: make}}
  - {id: c, until: {run: unit, rounds: 2}, result: {type: object}}
  - {id: d, when: failed, blockedBy: [a]}
  - {id: e, when: completed}
`), "t.yaml", everyAgent)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		check, name, result, when string
		rounds                    int
	}{
		{check: "go test ./...", name: "unit"},
		{check: "make", rounds: team.DefaultRounds},
		{check: "go test ./...", name: "unit", rounds: 2, result: `{"type":"object"}`},
		{when: "failed"}, {},
	} {
		got := f.Tasks[i]
		if got.Check != want.check || got.CheckName != want.name || got.Rounds != want.rounds ||
			got.When != want.when ||
			string(got.Result) != want.result {
			t.Errorf("task %s is %+v, want %+v", got.ID, got, want)
		}
	}
	if len(f.Commands) != 1 || f.Commands[0] != (teamfile.Command{Name: "unit", Run: "go test ./..."}) {
		t.Errorf("the commands are %+v", f.Commands)
	}
}
