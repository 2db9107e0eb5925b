package teams_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/pkg/teams"
)

// TestTeamConfig checks that a config creates a complete team, and that an invalid config creates
// nothing.
func TestTeamConfig(t *testing.T) {
	everywhere(t, func(t *testing.T, o teams.Options) {
		m := manage(t, o)
		for name, c := range map[string]struct {
			teams.TeamConfig
			code teams.Code
		}{
			"policy":         {teams.TeamConfig{Permissions: teams.PermissionRules{Policy: "whoever"}}, teams.ErrInvalid},
			"rule":           {teams.TeamConfig{Permissions: teams.PermissionRules{Allow: []string{"Bash(go test"}}}, teams.ErrInvalid},
			"timeout":        {teams.TeamConfig{Permissions: teams.PermissionRules{Timeout: -time.Second}}, teams.ErrInvalid},
			"handover":       {teams.TeamConfig{HandoverAt: 101}, teams.ErrInvalid},
			"mode":           {teams.TeamConfig{Lead: teams.MemberConfig{PermissionMode: "root"}}, teams.ErrInvalid},
			"isolated lead":  {teams.TeamConfig{Lead: teams.MemberConfig{Isolation: teams.IsolationWorktree}}, teams.ErrInvalid},
			"lead's agent":   {teams.TeamConfig{Lead: teams.MemberConfig{Agent: "dog"}}, teams.ErrInvalid},
			"member's agent": {teams.TeamConfig{Members: []teams.MemberConfig{{Name: "ann", Agent: "dog"}}}, teams.ErrInvalid},
			"no command": {teams.TeamConfig{Members: []teams.MemberConfig{{Name: "ann", Agent: teams.ACP}}},
				teams.ErrInvalid},
			"isolation": {teams.TeamConfig{Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell,
				Isolation: "island"}}}, teams.ErrInvalid},
			"no repository": {teams.TeamConfig{Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell,
				Isolation: teams.IsolationWorktree}}}, teams.ErrInvalid},
			"variable": {teams.TeamConfig{Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell,
				Env: []string{"HOME"}}}}, teams.ErrInvalid},
			"two of a name": {teams.TeamConfig{Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell},
				{Name: "Ann", Agent: teams.Shell}}}, teams.ErrNameTaken},
			"more than lead": {teams.TeamConfig{Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Claude,
				Program: "/bin/cat", PermissionMode: teams.ModeBypass}}}, teams.ErrDenied},
			"no such blocker": {teams.TeamConfig{Tasks: []teams.TaskConfig{{Subject: "look",
				BlockedBy: []string{"2"}}}},
				teams.ErrNotFound},
		} {
			c.Name = "core"
			_, err := m.CreateTeam(limited(t), c.TeamConfig)
			if !errors.Is(err, c.code) {
				t.Errorf("%s: %v", name, err)
			}
			_, err = m.OpenTeam(limited(t), "core")
			want(t, err, teams.ErrNotFound)
		}

		c := teams.TeamConfig{Name: "core", Goal: "to look", Delegate: true, HandoverAt: 70,
			Metadata: map[string]json.RawMessage{"release": []byte(`"1.4"`)},
			Budget:   teams.Budget{Tokens: 9, CostMicroUSD: 8, Time: time.Hour},
			Permissions: teams.PermissionRules{Allow: []string{"Edit", "Bash(go test:*)"}, Policy: teams.PolicyDeny,
				Timeout: time.Minute},
			Lead: teams.MemberConfig{Name: "boss", Role: "chief", PermissionMode: teams.ModeBypass},
			Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External, Role: "reader", PlanApproval: true},
				{Name: "bob", Agent: teams.External, PermissionMode: teams.ModePlan}},
			Tasks: []teams.TaskConfig{{Subject: "one", Owner: "ann"}, {Subject: "two", BlockedBy: []string{"1"}}}}
		team := found(t, m, c)
		is, err := team.Info(limited(t))
		ok(t, err)
		if is.Goal != c.Goal || !is.Delegate || is.HandoverAt != 70 || is.Budget != c.Budget || is.Lead != "boss" ||
			string(is.Metadata["release"]) != `"1.4"` ||
			!slices.Equal(is.Permissions.Allow, c.Permissions.Allow) ||
			is.Permissions.Policy != teams.PolicyDeny || is.Permissions.Timeout != time.Minute {
			t.Errorf("the team is %+v", is)
		}
		members, err := team.Members(limited(t))
		ok(t, err)
		boss, ann, bob := members[0], members[1], members[2]
		if boss.Role != "chief" || boss.Agent != teams.External || ann.PermissionMode != teams.ModeBypass ||
			!ann.Plan.Required || ann.Role != "reader" || bob.PermissionMode != teams.ModePlan {
			t.Errorf("the members are %+v", members)
		}
		tasks, err := team.Tasks().List(limited(t), teams.TaskFilter{})
		ok(t, err)
		equal(t, "first task", tasks[0].Owner+" "+tasks[0].CreatedBy, "ann boss")
		equal(t, "second task", strings.Join(tasks[1].Waiting, " "), "1")
		equal(t, "what ann hears", next(t, received(t, as(t, team, "ann"))).Type, teams.MessageTaskAssignment)
	})
}

// received returns a channel with the member's first message.
func received(t testing.TB, m *teams.Teammate) chan teams.Message {
	t.Helper()
	mail, err := m.Mail().Wait(limited(t))
	ok(t, err)
	c := make(chan teams.Message, 1)
	c <- mail[0]
	return c
}

// TestSpawn checks that the spawn options reach the session: an agent of the program gets them in
// its slot, and a shell's command in its environment.
func TestSpawn(t *testing.T) {
	agent := newListener()
	m := manage(t, teams.Options{Env: []string{"A=1", "B=1"}, Agents: map[string]teams.Agent{"listener": agent}})
	team := create(t, m, "core")
	_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: "listener", Program: "/bin/listen",
		Args: []string{"-v"}, Env: []string{"B=2"}})
	ok(t, err)
	slot := next(t, agent.slots)
	equal(t, "program", strings.Join(append([]string{slot.Program}, slot.Args...), " "), "/bin/listen -v")
	equal(t, "its own environment", strings.Join(slot.Env[:4], " "), "GIT_OPTIONAL_LOCKS=0 A=1 B=1 B=2")
	for _, v := range []string{"CADRE_TEAM=core", "CADRE_TEAM_ID=" + team.ID(), "CADRE_MEMBER_NAME=ann"} {
		equal(t, v, slices.Contains(slot.Env[4:], v), true)
	}
	_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "bob", Agent: teams.Shell, Env: []string{"B=3"}})
	ok(t, err)
	_, err = team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look", Run: "echo $A $B", Owner: "bob"})
	ok(t, err)
	equal(t, "environment of a command", strings.TrimSpace(first(t, team, any1[teams.TaskCompleted]).Result), "1 3")
	want(t, team.HandOver(limited(t), "bob", ""), teams.ErrInvalid)
}

// TestIsolation checks that a member in a worktree works on a branch of its own. Its work stays
// there when the member ends. The checkout does not change, and closing the manager loses nothing.
func TestIsolation(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts or runs git many times; not with -short")
	}
	t.Parallel()
	everywhere(t, func(t *testing.T, o teams.Options) {
		git := func(args ...string) string {
			t.Helper()
			c := exec.Command("git", append([]string{"-C", o.Dir, "-c", "user.name=Ada", "-c",
				"user.email=ada@example.org"}, args...)...)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		git("init", "-q", "-b", "main")
		git("commit", "-q", "--allow-empty", "-m", "begin")
		m := manage(t, o)
		team := found(t, m, teams.TeamConfig{Name: "core",
			Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell, Isolation: teams.IsolationWorktree}},
			Tasks: []teams.TaskConfig{{Subject: "write",
				Run: "echo by ann >written; git branch --show-current; pwd"}}})
		said := strings.Fields(first(t, team, any1[teams.TaskCompleted]).Result)
		equal(t, "branch", said[0], "cadre/core@ann")
		if _, err := os.Stat(filepath.Join(o.Dir, "written")); err == nil {
			t.Error("the file is in the shared directory")
		}
		ok(t, m.Close())
		if _, err := os.Stat(filepath.Join(said[1], "written")); err != nil {
			t.Errorf("closing the manager lost ann's work: %v", err)
		}

		m = manage(t, o)
		team, err := m.OpenTeam(limited(t), "core")
		ok(t, err)
		ok(t, m.Team().Shutdown(limited(t), "ann"))
		equal(t, "what is on the branch", git("show", "cadre/core@ann:written"), "by ann")
		equal(t, "what is checked out", git("log", "--format=%s")+git("status", "--porcelain"), "begin")
		end, err := team.Run(limited(t), teams.RunOptions{})
		ok(t, err)
		equal(t, "not merged", strings.Join(end.Unmerged, " "), "cadre/core@ann")
		equal(t, "status", end.Team.Status, teams.TeamStatusConsolidating)
		git("merge", "-q", "cadre/core@ann")
		ok(t, team.Complete(limited(t), ""))
		ok(t, m.Cleanup(limited(t)))
		if _, err := os.Stat(filepath.Dir(filepath.Dir(said[1]))); err == nil {
			t.Error("the folder of the team is still there")
		}
	})
}

// TestDamage checks that errors.Is distinguishes an unreadable history from a missing team.
func TestDamage(t *testing.T) {
	for code, spoil := range map[teams.Code]func(text string) string{
		teams.ErrDamaged: func(text string) string { return strings.Replace(text, `"team_created"`, `"team_crEated"`, 1) },
		teams.ErrNewerVersion: func(text string) string { // as a later version would write it, with its checksum
			head, rest, _ := strings.Cut(text, "\n")
			fields := head[strings.Index(head, `,"team"`):]
			sum := crc32.Checksum([]byte(`{"cadre-journal":2`+fields), crc32.MakeTable(crc32.Castagnoli))
			return fmt.Sprintf(`{"cadre-journal":2,"crc":"%08x"%s`, sum, fields) + "\n" + rest
		},
	} {
		o := folders(t)
		m := manage(t, o)
		create(t, m, "core", "ann")
		ok(t, m.Close())
		segments, err := filepath.Glob(filepath.Join(o.Home, "teams", "core", "journal", "*.jsonl"))
		ok(t, err)
		text, err := os.ReadFile(segments[0])
		ok(t, err)
		spoiled := spoil(string(text))
		if spoiled == string(text) {
			t.Fatalf("cannot damage this history:\n%s", text)
		}
		ok(t, os.WriteFile(segments[0], []byte(spoiled), 0o600))
		_, err = manage(t, o).OpenTeam(limited(t), "core")
		want(t, err, code)
		if e, is := errors.AsType[*teams.Error](err); !is || e.Unwrap() == nil {
			t.Errorf("the error is %#v", err)
		}
	}
}

// TestInstalled checks that installed agents are found, asked for their versions, and listed in the
// order of preference.
func TestInstalled(t *testing.T) {
	bin := t.TempDir()
	for name, script := range map[string]string{"codex": "echo codex-cli 1.2.3", "claude": "echo 9.9 \\(Claude Code\\)",
		"gemini": "exit 1"} {
		ok(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	all := teams.Installed(limited(t))
	if len(all) != 2 {
		t.Fatalf("the installed agents are %+v", all)
	}
	equal(t, "the first", all[0].Agent+" "+all[0].Version, "claude 9.9 (Claude Code)")
	equal(t, "the second", all[1].Agent+" "+all[1].Path, "codex "+filepath.Join(bin, "codex"))
	if len(all[1].Can) == 0 {
		t.Error("codex has no capabilities")
	}
}

// TestMissingPrograms checks that a member is not added if its agent is not installed, and that the
// error says what to do. If only the session start reveals the problem, the member fails.
func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/bin")
	m := manage(t, teams.Options{})
	create(t, m, "core")
	for _, c := range []struct{ agent, says string }{
		{teams.Claude, "claude"}, {teams.Codex, "codex"}, {teams.Gemini, "gemini"},
		{teams.ACP + "/nowhere/agent", "/nowhere/agent"},
	} {
		member := teams.MemberConfig{Name: "ann", Agent: c.agent}
		_, err := m.Team().Spawn(limited(t), member)
		want(t, err, teams.ErrInvalid)
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.agent, err)
		}
		_, err = manage(t, teams.Options{}).CreateTeam(limited(t), teams.TeamConfig{Name: "other",
			Members: []teams.MemberConfig{member}})
		want(t, err, teams.ErrInvalid)
	}
	is, err := m.Team().Members(limited(t))
	ok(t, err)
	equal(t, "members", len(is), 1) // the lead
	for name, o := range map[string]teams.Options{"without a helper": {}, "with one": {Helper: helper}} {
		m := manage(t, o)
		create(t, m, "core")
		_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: teams.ACP + "/bin/cat /dev/null"})
		want(t, err, teams.ErrSessionFailed)
		if through := strings.Contains(err.Error(), "needs the program cadre"); through != (o.Helper == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
