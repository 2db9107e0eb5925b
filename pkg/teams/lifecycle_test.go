package teams_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// folders returns options for a manager on disk, in folders of the test.
func folders(t testing.TB) teams.Options {
	dir := t.TempDir()
	o := teams.Options{Home: filepath.Join(dir, "cadre"), ClaudeHome: filepath.Join(dir, "claude"),
		Dir: filepath.Join(dir, "work")}
	ok(t, os.Mkdir(o.Dir, 0o700))
	return o
}

type roster struct {
	Name        string `json:"name"`
	LeadAgentID string `json:"leadAgentId"`
	Members     []struct {
		AgentID   string `json:"agentId"`
		Name      string `json:"name"`
		AgentType string `json:"agentType"`
	} `json:"members"`
}

func readRoster(t testing.TB, o teams.Options, name string) (r roster) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(o.ClaudeHome, "teams", name, "config.json"))
	ok(t, err)
	ok(t, json.Unmarshal(data, &r))
	return r
}

func TestTeamCreation(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := folders(t)
	team := create(t, manage(t, o), "core")
	r := readRoster(t, o, "core")
	equal(t, "name", r.Name, "core")
	equal(t, "lead", r.LeadAgentID, "lead@core")
	info, err := os.Stat(filepath.Join(o.ClaudeHome, "tasks", "core"))
	ok(t, err)
	equal(t, "tasks folder is private", info.Mode().Perm(), 0o700)
	is, err := team.Info(limited(t))
	ok(t, err)
	equal(t, "dir", is.Dir, o.Dir)
	equal(t, "status", is.Status, teams.TeamStatusPending)

	for _, name := range []string{"", "..", "../x", "a b", "_x", strings.Repeat("x", 65)} {
		_, err := manage(t, o).CreateTeam(limited(t), teams.TeamConfig{Name: name})
		want(t, err, teams.ErrInvalid)
	}
	_, err = manage(t, o).CreateTeam(limited(t), teams.TeamConfig{Name: "core"})
	want(t, err, teams.ErrNameTaken)
	if !strings.Contains(err.Error(), "core-2") {
		t.Errorf("the error suggests no free name: %v", err)
	}
}

func TestConfigPersistence(t *testing.T) {
	o := folders(t)
	m := manage(t, o)
	team := create(t, m, "core", "ann", "bob")
	r := readRoster(t, o, "core")
	equal(t, "members", len(r.Members), 3)
	equal(t, "the second", r.Members[1].AgentID, "ann@core")
	equal(t, "the lead's type", r.Members[0].AgentType, "team-lead")
	add(t, team.Tasks(), "look")
	ok(t, m.Close())
	data, err := os.ReadFile(filepath.Join(o.ClaudeHome, "tasks", "core", "1.json"))
	ok(t, err)
	if !strings.Contains(string(data), `"look"`) {
		t.Errorf("the task file is %s", data)
	}
}

func TestTeammateSpawning(t *testing.T) {
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent, "worker": teams.Worker{}}})
	team := create(t, m, "core")
	for _, name := range []string{"ann", "bob"} {
		is, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: name, Agent: "listener", Role: "reader",
			Model: "large", Prompt: "read, " + name})
		ok(t, err)
		equal(t, "status", is.Status, teams.StatusActive)
		equal(t, "session", is.Session, "session-of-"+name)
		slot := next(t, agent.slots)
		equal(t, "slot", slot.Name(), name)
		equal(t, "prompt", slot.Prompt, "read, "+name)
		equal(t, "role and model", slot.Role+" "+slot.Model, "reader large")
		equal(t, "team and lead", slot.Team()+" "+slot.Lead(), "core lead")
		equal(t, "dir", slot.Dir, team.Dir())
	}
	_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "Ann", Agent: "listener"})
	want(t, err, teams.ErrNameTaken)
	_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "cat", Agent: "dog"})
	want(t, err, teams.ErrInvalid)
	_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "cat"})
	want(t, err, teams.ErrInvalid)

	is, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "cat", Agent: "worker"})
	want(t, err, teams.ErrSessionFailed)
	equal(t, "status", is.Status, teams.StatusFailed)
	equal(t, "reason", is.Summary, "the worker has no function for tasks")
}

func TestTeammateShutdown(t *testing.T) {
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team := create(t, m, "core", "ann")
	_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "bob", Agent: "listener"})
	ok(t, err)
	bob := next(t, agent.slots)
	add(t, team.Tasks(), "long")
	_, err = bob.Tasks().Claim(limited(t), "1")
	ok(t, err)

	for _, c := range []struct {
		name   string
		member *teams.Teammate
		ask    func() teams.Message
		notice teams.MessageType // to the lead
	}{
		{"ann", as(t, team, "ann"), func() teams.Message {
			return await(t, as(t, team, "ann").Mail(),
				teams.MessageShutdownRequest)
		}, teams.MessageShutdownResponse},
		{"bob", bob.Teammate, func() teams.Message { return next(t, agent.mail) }, teams.MessageSystem},
	} {
		ended := make(chan error, 1)
		go func() { ended <- m.Team().Shutdown(limited(t), c.name) }()
		request := c.ask()
		equal(t, "type", request.Type, teams.MessageShutdownRequest)
		ok(t, c.member.ApproveShutdown(limited(t), request.Ref))
		ok(t, next(t, ended))
		is, err := team.Member(limited(t), c.name)
		ok(t, err)
		equal(t, "status of "+c.name, is.Status, teams.StatusStopped)
		await(t, team.Mail(), c.notice)
		want(t, send(limited(t), m, "", c.name, "are you there?"), teams.ErrNotFound)
	}
	task, err := team.Tasks().Get(limited(t), "1")
	ok(t, err)
	equal(t, "the task of who ended", task.Status, teams.TaskStatusPending)
	want(t, m.Team().Shutdown(limited(t), "nobody"), teams.ErrNotFound)
}

// TestTeammateShutdownDeadline checks that a teammate has ended at the deadline, whatever it
// answers, unless the lead withdraws the request.
func TestTeammateShutdownDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		agent := newListener()
		m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}, ShutdownWithin: time.Minute})
		team := create(t, m, "core", "ann")
		_, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: "bob", Agent: "listener"})
		ok(t, err)
		bob := <-agent.slots
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- m.Team().Shutdown(ctx, "bob") }()
		ok(t, bob.RejectShutdown(ctx, (<-agent.mail).Ref, "not done"))
		ok(t, team.WithdrawShutdown(ctx, "bob"))
		want(t, <-ended, teams.ErrConflict)

		ok(t, m.Team().Shutdown(ctx, "bob"))
		equal(t, "time that bob had", time.Since(began).Round(time.Second), time.Minute)
		ok(t, m.Team().Shutdown(ctx, "ann"))
		equal(t, "time until ann was ended", time.Since(began).Round(time.Second), 2*time.Minute)
		ok(t, m.Close())
	})
}

func TestTeamCleanup(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := folders(t)
	m := manage(t, o)
	team := create(t, m, "core", "ann")
	add(t, team.Tasks(), "look")
	err := m.Cleanup(limited(t))
	want(t, err, teams.ErrNotReady)
	if !strings.Contains(err.Error(), "ann") {
		t.Errorf("the refusal does not say who is running: %v", err)
	}
	_, err = team.RequestShutdown(limited(t), teams.ShutdownRequest{Member: "ann"})
	ok(t, err)
	_, err = team.AwaitEnd(limited(t), "ann")
	ok(t, err)
	ok(t, m.Cleanup(limited(t)))
	ok(t, m.Cleanup(limited(t)))
	for _, path := range []string{filepath.Join(o.ClaudeHome, "teams", "core"), filepath.Join(o.ClaudeHome, "tasks",
		"core"), filepath.Join(o.Home, "teams", "core")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s still exists", path)
		}
	}
	if m.Team() != nil {
		t.Error("the manager still has a team")
	}
	if _, err := team.Tasks().List(limited(t), teams.TaskFilter{}); err == nil {
		t.Error("a handle of the team still works")
	}
	create(t, m, "core")
}

func TestCleanupAfterAbort(t *testing.T) {
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team := create(t, m, "core")
	_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: "listener"})
	ok(t, err)
	ann := next(t, agent.slots)
	ok(t, team.Abort(limited(t), "enough"))
	ok(t, m.Cleanup(limited(t)))
	if err := ann.Busy(limited(t), "still here"); err == nil {
		t.Error("the session outlived its team")
	}
}

func TestOneTeamPerSession(t *testing.T) {
	memory := new(teams.Memory)
	m := manage(t, teams.Options{Memory: memory})
	create(t, m, "one")
	_, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "two"})
	want(t, err, teams.ErrNotReady)
	_, err = m.OpenTeam(limited(t), "one")
	want(t, err, teams.ErrNotReady)
	ok(t, m.Cleanup(limited(t)))
	create(t, m, "two")
	create(t, manage(t, teams.Options{Memory: memory}), "three") // another session
}

func TestNoNestedTeams(t *testing.T) {
	for name, o := range map[string]teams.Options{"disk": folders(t), "memory": {Memory: new(teams.Memory)}} {
		t.Run(name, func(t *testing.T) {
			lead := manage(t, o)
			create(t, lead, "core", "ann", "bob")
			o.As = "ann"
			m := manage(t, o)
			_, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "nested"})
			want(t, err, teams.ErrDenied)
			team, err := m.OpenTeam(limited(t), "core")
			ok(t, err)
			_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "cat", Agent: teams.External})
			want(t, err, teams.ErrDenied)
			want(t, m.Team().Shutdown(limited(t), "bob"), teams.ErrDenied)
			want(t, m.Cleanup(limited(t)), teams.ErrDenied)
			want(t, team.Abort(limited(t), "mine"), teams.ErrDenied)
			want(t, team.EnterDelegateMode(limited(t)), teams.ErrDenied)
			want(t, team.SetMode(limited(t), "ann", "acceptEdits"), teams.ErrDenied)
			want(t, send(limited(t), m, "bob", "lead", "I am bob"), teams.ErrDenied)
			want(t, send(limited(t), m, teams.User, "lead", "I am the user"), teams.ErrDenied)
			ok(t, send(limited(t), m, "", "lead", "I am ann"))
			mail, err := lead.Team().Mail().Receive(limited(t))
			ok(t, err)
			equal(t, "sender", mail[0].From, "ann")

			o.As = "nobody"
			_, err = manage(t, o).OpenTeam(limited(t), "core")
			want(t, err, teams.ErrNotFound)
		})
	}
}

func TestLeadIsFixed(t *testing.T) {
	m := manage(t, teams.Options{})
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "core", Lead: teams.MemberConfig{Name: "chief"}})
	ok(t, err)
	equal(t, "lead", team.Lead(), "chief")
	want(t, m.Team().Shutdown(limited(t), "chief"), teams.ErrDenied)
	_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "chief", Agent: teams.External})
	want(t, err, teams.ErrNameTaken)
}

func TestFeatureGate(t *testing.T) {
	o := folders(t)
	o.Gate = true
	write := func(path, text string) {
		ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
		ok(t, os.WriteFile(path, []byte(text), 0o600))
	}
	user := filepath.Join(o.ClaudeHome, "settings.json")
	project := filepath.Join(o.Dir, ".claude", "settings.json")
	local := filepath.Join(o.Dir, ".claude", "settings.local.json")
	set := func(value string) string { return `{"env": {"` + teams.EnvVar + `": ` + value + `}}` }
	for _, c := range []struct {
		env                  string
		user, project, local string // the settings; "" for no file
		enabled              bool
	}{
		{env: ""}, {env: "0"}, {env: "2"}, {env: "off"}, {env: "false"},
		{env: "1", enabled: true}, {env: "true", enabled: true}, {env: " YES ", enabled: true}, {env: "On", enabled: true},
		{user: set(`"1"`), enabled: true}, {user: set(`1`), enabled: true}, {user: set(`true`), enabled: true},
		{project: set(`"on"`), enabled: true}, {local: set(`"yes"`), enabled: true},
		{env: "1", user: set(`"0"`)}, {env: "1", user: set(`false`)}, // the settings override the environment
		{user: set(`"1"`), project: set(`"0"`)}, {project: set(`"0"`), local: set(`"1"`), enabled: true},
		{env: "1", user: `{`, project: `{"env": []}`, enabled: true}, // unreadable settings decide nothing
		{env: "1", user: `{"env": {"OTHER": "0"}}`, enabled: true},
		{env: "1", user: set(`{}`), enabled: true},
	} {
		t.Setenv(teams.EnvVar, c.env)
		for path, text := range map[string]string{user: c.user, project: c.project, local: c.local} {
			if os.RemoveAll(path); text != "" {
				write(path, text)
			}
		}
		m, err := teams.New(o)
		if c.enabled && err != nil || !c.enabled && !errors.Is(err, teams.ErrDisabled) ||
			teams.Enabled(o) != c.enabled {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			ok(t, m.Close())
		}
	}
}

func TestResume(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, o := range map[string]teams.Options{"disk": folders(t), "memory": {Memory: new(teams.Memory)}} {
		t.Run(name, func(t *testing.T) {
			agent := newListener()
			o.Agents = map[string]teams.Agent{"listener": agent}
			m := manage(t, o)
			team := create(t, m, "core", "ext")
			_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: "listener", Prompt: "listen"})
			ok(t, err)
			ann := next(t, agent.slots)
			add(t, team.Tasks(), "hers")
			add(t, team.Tasks(), "theirs")
			hers, err := ann.Tasks().Claim(limited(t), "1")
			ok(t, err)
			theirs, err := as(t, team, "ext").Tasks().Claim(limited(t), "2")
			ok(t, err)
			ok(t, send(limited(t), m, "ann", "ext", "hello"))
			ok(t, m.Close())
			if _, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "other"}); !errors.Is(err, teams.ErrFinished) {
				t.Errorf("a closed manager returns %v", err)
			}

			m = manage(t, o)
			team, err = m.OpenTeam(limited(t), "core")
			ok(t, err)
			again := next(t, agent.slots)
			equal(t, "incarnation", again.Incarnation, 2)
			equal(t, "session to resume", again.Resume, "session-of-ann")
			equal(t, "prompt", again.Prompt, "listen")
			mail, err := as(t, team, "ext").Mail().Receive(limited(t))
			ok(t, err)
			equal(t, "message", mail[0].Body, "hello")
			_, err = as(t, team, "ext").Tasks().Complete(limited(t),
				teams.Claim{ID: theirs.ID, Fence: theirs.Fence}, "done")
			ok(t, err)
			_, err = again.Tasks().Complete(limited(t), hers, "done")
			want(t, err, teams.ErrConflict) // the claim ended with the session
			_, err = m.OpenTeam(limited(t), "core")
			want(t, err, teams.ErrNotReady)
			_, err = manage(t, o).OpenTeam(limited(t), "none")
			want(t, err, teams.ErrNotFound)
		})
	}
}

// TestNoDirectory checks that a team without a working directory is not created, and that its name
// stays free.
func TestNoDirectory(t *testing.T) {
	t.Parallel()
	m, err := teams.New(teams.Options{Memory: &teams.Memory{}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if _, err := m.CreateTeam(t.Context(), teams.TeamConfig{Name: "demo",
		Dir: filepath.Join(t.TempDir(), "gone")}); !errors.Is(err, teams.ErrInvalid) {
		t.Fatalf("create returned %v", err)
	}
	if _, err := m.CreateTeam(t.Context(), teams.TeamConfig{Name: "demo"}); err != nil {
		t.Errorf("the name is not free: %v", err)
	}
}

// TestMembersOfOthers checks that read methods know a member that another manager has just added.
func TestMembersOfOthers(t *testing.T) {
	t.Parallel()
	memory := &teams.Memory{}
	open := func(as string) *teams.Manager {
		m, err := teams.New(teams.Options{Memory: memory, Dir: t.TempDir(), As: as})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	lead, err := open("").CreateTeam(t.Context(), teams.TeamConfig{Name: "demo",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External}}})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := open("ann").OpenTeam(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bob", "cid"} {
		if _, err := lead.Spawn(t.Context(), teams.MemberConfig{Name: name, Agent: teams.External}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ann.View.Tasks().List(t.Context(), teams.TaskFilter{ClaimableBy: "bob"}); err != nil {
		t.Error(err)
	}
	if _, err := ann.Tasks().List(t.Context(), teams.TaskFilter{ClaimableBy: "nobody"}); !errors.Is(err,
		teams.ErrNotFound) {
		t.Errorf("the tasks of an unknown member: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ann.AwaitEnd(ctx, "cid"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a working member ended with %v", err)
	}
}
