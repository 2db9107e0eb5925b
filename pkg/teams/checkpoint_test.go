package teams_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// TestCheckpointsOfAProgram checks that a program's team has checkpoints like a team of the command
// line. Its work is on the checkpoint branch. If a copy of the team has continued, that is noticed
// before anything runs here.
func TestCheckpointsOfAProgram(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	root := t.TempDir()
	project := filepath.Join(root, "project")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", project, "-c", "user.name=Ann", "-c",
			"user.email=ann@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	ok(t, os.Mkdir(project, 0o700))
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "first")

	options := teams.Options{Home: filepath.Join(root, "home"), ClaudeHome: filepath.Join(root, "claude"), Dir: project}
	m := manage(t, options)
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "port",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell}},
		Tasks:   []teams.TaskConfig{{Subject: "say hello", Run: "echo hello >said"}}})
	ok(t, err)
	for e, err := range team.EventsAfter(limited(t), 0) {
		ok(t, err)
		if _, done := e.Fact.(teams.TaskCompleted); done {
			break
		}
	}
	ok(t, m.Close())
	commits := strings.Fields(git("rev-list", "--parents", "-n", "1", "cadre/port"))
	if said := git("show", commits[len(commits)-1]+":said"); said != "hello" {
		t.Errorf("the work in the last checkpoint is %q", said)
	}

	// Copy the folder of the teams, and continue the team in the copy.
	other := options
	other.Home = filepath.Join(root, "other")
	ok(t, os.CopyFS(other.Home, os.DirFS(options.Home)))
	m = manage(t, other)
	team, err = m.OpenTeam(limited(t), "port")
	ok(t, err)
	add(t, team.Tasks(), "only there")
	ok(t, m.Close())
	if _, err := manage(t, options).OpenTeam(limited(t), "port"); !errors.Is(err, teams.ErrForked) {
		t.Errorf("after another copy has continued the team: %v", err)
	}

	ok(t, os.RemoveAll(project))
	if _, err := manage(t, other).OpenTeam(limited(t), "port"); !errors.Is(err, teams.ErrInvalid) ||
		!strings.Contains(err.Error(), "no member can work for team port") {
		t.Errorf("without its directory: %v", err)
	}
}
