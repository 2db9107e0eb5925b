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

// TestPushAndPull checks that a program can move its team to another machine, with its
// work.
func TestPushAndPull(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	root := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", root, "-c", "user.name=Ann", "-c",
			"user.email=ann@example.org", "-c", "init.defaultBranch=main"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	laptop, desktop := filepath.Join(root, "laptop"), filepath.Join(root, "desktop")
	git("init", "-q", "--bare", "remote.git")
	git("clone", "-q", "remote.git", laptop)
	git("-C", laptop, "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", laptop, "push", "-q", "origin", "main")
	git("clone", "-q", "remote.git", desktop)

	manager := func(home string) *teams.Manager {
		t.Helper()
		m, err := teams.New(teams.Options{Home: filepath.Join(root, home),
			ClaudeHome: filepath.Join(root, "claude")})
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
	if _, err := m.PushTeam(t.Context(), "port", teams.PushOptions{}); !errors.Is(err, teams.ErrDenied) {
		t.Errorf("without consent: %v", err)
	}
	asked := ""
	if _, err := m.PushTeam(t.Context(), "port", teams.PushOptions{Agree: func(what string) bool {
		asked = what
		return true
	}}); err != nil || !strings.Contains(asked, "the first push to origin") {
		t.Fatalf("%v; asked: %s", err, asked)
	}
	other := filepath.Join(root, "other")
	git("clone", "-q", "remote.git", other)
	early, err := manager("three").PullTeam(t.Context(), "port", teams.PullOptions{Dir: other})
	if err != nil || !strings.Contains(strings.Join(early.Notices, "\n"), "it may still run") {
		t.Errorf("pulled from a machine that did not hand the team over: %q, %v", early.Notices, err)
	}
	if _, err := m.PushTeam(t.Context(), "port", teams.PushOptions{Release: true}); !errors.Is(err, teams.ErrNotReady) {
		t.Errorf("handed over although it is led: %v", err)
	}
	id := team.ID()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	// The remote has the team, and refuses to record the handover.
	hook := filepath.Join(root, "remote.git", "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	refused, err := manager("one").PushTeam(t.Context(), "port", teams.PushOptions{Release: true})
	if err == nil || !refused.Released || refused.Remote != "origin" {
		t.Errorf("handed over, and refused by the remote: %+v, %v", refused, err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	if _, err := manager("one").PushTeam(t.Context(), "port", teams.PushOptions{Release: true}); err != nil {
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
		t.Errorf("on the machine that handed it over: %v", err)
	}
	// On request the team's commit is pushed too, to the branch that is checked out.
	git("-C", laptop, "add", ".")
	git("-C", laptop, "commit", "-q", "-m", "mine")
	m = manager("one")
	team, err = m.CreateTeam(t.Context(), teams.TeamConfig{Name: "quick", Dir: laptop,
		Members: []teams.MemberConfig{{Name: "bob", Agent: teams.External}}})
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(laptop, "quick.txt"), []byte("quick\n"), 0o600))
	push := teams.PushOptions{Commit: true, Agree: func(string) bool { return true }}
	pushed, err := m.PushTeam(t.Context(), "quick", push)
	ok(t, err)
	equal(t, "before its end, the commit", pushed.Commit+pushed.Branch, "")
	record, err := team.Consolidate(t.Context(), teams.ConsolidateOptions{})
	ok(t, err)
	pushed, err = m.PushTeam(t.Context(), "quick", push)
	ok(t, err)
	equal(t, "pushed", pushed.Commit+" to "+pushed.Branch+" of "+pushed.Remote, record.Commit+" to main of origin")
	equal(t, "the remote's branch", git("-C", filepath.Join(root, "remote.git"), "rev-parse", "main"), record.Commit)
	if _, err := manager("three").PullTeam(t.Context(), "other", teams.PullOptions{Dir: desktop}); !errors.Is(err,
		teams.ErrNotFound) {
		t.Errorf("a team that was not pushed: %v", err)
	}
}
