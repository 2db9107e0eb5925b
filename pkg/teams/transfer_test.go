package teams_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/pkg/teams"
)

// TestPushAndPull: a program has its team go to another machine, with what it did there.
func TestPushAndPull(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(root, "gitconfig"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(root, "claude"))
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", root, "-c", "user.name=Ann", "-c",
			"user.email=ann@example.org", "-c", "init.defaultBranch=main"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	laptop, desktop := filepath.Join(root, "laptop"), filepath.Join(root, "desktop")
	git("init", "-q", "--bare", "remote.git")
	git("clone", "-q", "remote.git", laptop)
	git("-C", laptop, "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", laptop, "push", "-q", "origin", "main")
	git("clone", "-q", "remote.git", desktop)

	manager := func(home string) *teams.Manager {
		t.Helper()
		m, err := teams.New(teams.Options{Home: filepath.Join(root, home)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	m := manager("one")
	team, err := m.CreateTeam(t.Context(), teams.TeamConfig{Name: "port", Dir: laptop})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(laptop, "made.txt"), []byte("made\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.PushTeam(t.Context(), "port", teams.PushOptions{}); !errors.Is(err, teams.ErrDenied) {
		t.Errorf("without consent: %v", err)
	}
	asked := ""
	if err := m.PushTeam(t.Context(), "port", teams.PushOptions{Agree: func(what string) bool {
		asked = what
		return true
	}}); err != nil || !strings.Contains(asked, "the first push to origin") {
		t.Fatalf("%v; asked: %s", err, asked)
	}
	if err := m.PushTeam(t.Context(), "port", teams.PushOptions{Release: true}); !errors.Is(err, teams.ErrNotReady) {
		t.Errorf("let go of while it is led: %v", err)
	}
	id := team.ID()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := manager("one").PushTeam(t.Context(), "port", teams.PushOptions{Release: true}); err != nil {
		t.Fatal(err)
	}

	there := manager("two")
	pulled, err := there.PullTeam(t.Context(), "port", teams.PullOptions{Dir: desktop})
	if err != nil || !pulled.Restored || len(pulled.Missing) > 0 || pulled.Dir != desktop {
		t.Fatalf("%+v, %v", pulled, err)
	}
	if text, err := os.ReadFile(filepath.Join(desktop, "made.txt")); err != nil || string(text) != "made\n" {
		t.Errorf("%q, %v", text, err)
	}
	if team, err := there.OpenTeam(t.Context(), "port"); err != nil || team.ID() != id {
		t.Errorf("%v", err)
	}
	if _, err := manager("one").OpenTeam(t.Context(), "port"); !errors.Is(err, teams.ErrDenied) {
		t.Errorf("where it was let go of: %v", err)
	}
	if _, err := manager("three").PullTeam(t.Context(), "other", teams.PullOptions{Dir: desktop}); !errors.Is(err,
		teams.ErrNotFound) {
		t.Errorf("of a team that nobody pushed: %v", err)
	}
}
