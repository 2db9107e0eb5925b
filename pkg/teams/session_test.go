package teams_test

import (
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// TestSession checks that a program sees the output of the sessions of a team on disk. Members that
// run their own session have no output.
func TestSession(t *testing.T) {
	o := folders(t)
	m := manage(t, o)
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "core",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell}, {Name: "bob", Agent: teams.External}},
		Tasks:   []teams.TaskConfig{{Subject: "look", Run: "echo seen", Owner: "ann"}}})
	ok(t, err)
	_, err = team.Run(limited(t), teams.RunOptions{})
	ok(t, err)
	ok(t, m.Close())

	other := manage(t, o)
	ok(t, other.View(limited(t), "core", func(v *teams.View) error {
		so, err := v.SessionSoFar(limited(t), "ann")
		ok(t, err)
		following, err := v.Session(limited(t), "ann")
		ok(t, err)
		for name, entries := range map[string]func(func(teams.Shown, error) bool){"so far": so,
			"following": following} {
			kinds, seq := map[teams.ShownKind]teams.Shown{}, int64(0)
			for s, err := range entries {
				ok(t, err)
				kinds[s.Kind] = s
				if s.Seq <= seq || s.At.IsZero() {
					t.Errorf("%s: %+v comes after %d", name, s, seq)
				}
				seq = s.Seq
			}
			equal(t, name+": tool", kinds[teams.ShownTool].Text, "echo seen")
			equal(t, name+": result", kinds[teams.ShownResult].Text, "seen\n")
			equal(t, name+": the end", kinds[teams.ShownEnded].Failed, false)
		}
		_, err = v.Session(limited(t), "bob")
		want(t, err, teams.ErrInvalid)
		_, err = v.SessionSoFar(limited(t), "zoe")
		want(t, err, teams.ErrNotFound)
		return nil
	}))
}

// TestSessionOfARunningCommand checks that a program sees the output of a command while the command
// runs.
func TestSessionOfARunningCommand(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := folders(t)
	m := manage(t, o)
	gate := filepath.Join(t.TempDir(), "gate")
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "core",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell}},
		Tasks: []teams.TaskConfig{{Subject: "look", Run: "echo seen; until [ -e " + gate + " ]; do sleep 0.05; done",
			Owner: "ann"}}})
	ok(t, err)
	ran := make(chan error, 1)
	go func() {
		_, err := team.Run(limited(t), teams.RunOptions{})
		ran <- err
	}()
	other := manage(t, o)
	ok(t, other.View(limited(t), "core", func(v *teams.View) error {
		entries, err := v.Session(limited(t), "ann")
		ok(t, err)
		var use, output teams.Shown
		for s, err := range entries {
			ok(t, err)
			switch s.Kind {
			case teams.ShownTool:
				use = s
			case teams.ShownOutput:
				output = s
				ok(t, os.WriteFile(gate, nil, 0o600))
			}
		}
		equal(t, "output", output.Text, "seen\n")
		equal(t, "its use", output.ID, use.ID)
		equal(t, "its number", output.Seq, use.Seq)
		return nil
	}))
	ok(t, <-ran)
	ok(t, m.Close())
}
