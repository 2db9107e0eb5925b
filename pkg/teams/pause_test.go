package teams_test

import (
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// TestPauseTeam pauses a team that another manager runs. The other program continues, and the team
// is resumed with its task.
func TestPauseTeam(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o, _ := repository(t)
	m := manage(t, o)
	of, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "port",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell}},
		Tasks:   []teams.TaskConfig{{Subject: "wait", Run: "touch begun; while ! test -e go; do sleep 0.05; done"}}})
	ok(t, err)
	first(t, of, any1[teams.TaskClaimed])
	other := manage(t, o)
	p, err := other.PauseTeam(limited(t), "port")
	ok(t, err)
	equal(t, "hosts", p.Hosts, 1)
	equal(t, "members", len(p.Members), 1)
	p, err = other.PauseTeam(limited(t), "port")
	ok(t, err)
	equal(t, "hosts of a paused team", p.Hosts, 0)
	_, err = other.PauseTeam(limited(t), "nowhere")
	want(t, err, teams.ErrNotFound)
	ok(t, m.Close())

	ok(t, os.WriteFile(filepath.Join(o.Dir, "go"), nil, 0o600))
	of, _, err = other.ResumeTeam(limited(t), "port", teams.ResumeOptions{})
	ok(t, err)
	first(t, of, any1[teams.TaskCompleted])
	ok(t, of.Abort(limited(t), "enough"))
	_, err = other.PauseTeam(limited(t), "port")
	want(t, err, teams.ErrFinished)
}
