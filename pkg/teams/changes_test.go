package teams_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"cadre/pkg/teams"
)

// TestChangedTeamFile checks that a program decides whether a changed team file is applied.
func TestChangedTeamFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts or runs git many times; not with -short")
	}
	t.Parallel()
	o, _ := repository(t)
	path := filepath.Join(t.TempDir(), "team.yaml")
	load := func(tasks string) *teams.TeamFile {
		t.Helper()
		ok(t, os.WriteFile(path, []byte("name: port\nmembers: [{name: ann, agent: shell}]\ntasks: ["+tasks+"]\n"),
			0o600))
		f, err := teams.LoadTeamFile(path)
		ok(t, err)
		return f
	}
	m := manage(t, o)
	f := load("{id: a, run: echo a >>ran}, {id: b, run: 'false'}")
	of, err := m.CreateTeam(limited(t), f.Config)
	ok(t, err)
	_, err = of.Run(limited(t), f.Run)
	want(t, err, teams.ErrNotReady)

	f = load("{id: a, run: echo A >>ran}, {id: b, run: 'true'}, {id: c, run: 'true'}")
	_, err = of.Run(limited(t), f.Run)
	want(t, err, teams.ErrNotReady)
	enough := errors.New("enough")
	f.Run.Changed = func([]teams.FileChange) error { return enough }
	if _, err = of.Run(limited(t), f.Run); !errors.Is(err, enough) {
		t.Errorf("the run ended with %v", err)
	}
	var seen []teams.FileChange
	f.Run.Changed = func(all []teams.FileChange) error {
		seen = all
		return nil
	}
	f.Run.Redo = []string{"a"}
	r, err := of.Run(limited(t), f.Run)
	ok(t, err)
	equal(t, "completed", r.Completed, 3)
	if !reflect.DeepEqual(seen, []teams.FileChange{
		{What: "task", Name: "a", Does: teams.ChangeRedo,
			Keys: []teams.KeyChange{{Key: "run", From: "echo a >>ran", To: "echo A >>ran"}}},
		{What: "task", Name: "b", Does: teams.ChangeUpdate, Keys: []teams.KeyChange{{Key: "run", From: "false",
			To: "true"}}, Why: "it failed before, and will be tried again"},
		{What: "task", Name: "c", Does: teams.ChangeAdd}}) {
		t.Errorf("the changes are %+v", seen)
	}
	ran, err := os.ReadFile(filepath.Join(o.Dir, "ran"))
	ok(t, err)
	equal(t, "what ran", string(ran), "a\nA\n")
	if e := first(t, of, any1[teams.TaskRevised]); e.Task != "1" || len(e.Fields) != 1 || e.Fields[0] != "run" {
		t.Errorf("the event is %+v", e)
	}
	_, err = of.Run(limited(t), teams.RunOptions{Redo: []string{"a"}})
	want(t, err, teams.ErrInvalid)
}
