package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestSpawn: a spawned member has a background host, which a second member shares, and which ends
// by itself when none is left.
func TestSpawn(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create()
	of := l.open()
	var joined []string
	spawn := func(name string) {
		t.Helper()
		if err := of.Spawn(within(t), "lead", &team.SpawnMember{Name: name, Agent: team.Shell},
			func(m team.Member) error { joined = append(joined, m.Name); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	spawn("ann")
	hosts := names(of.Hosts())
	spawn("bob")
	if again := names(of.Hosts()); len(hosts) != 1 || len(again) != 1 || hosts[0] != again[0] {
		t.Errorf("the hosts were %v, and then %v", hosts, again)
	}
	if strings.Join(joined, " ") != "ann bob" {
		t.Errorf("it told of %v", joined)
	}
	for _, name := range joined {
		if m, err := of.AwaitStart(within(t), name); err != nil || m.Host != hosts[0] {
			t.Errorf("%s is %s on %q, %v", name, m.Status, m.Host, err)
		}
		l.do(of, "lead", &team.RequestShutdown{Member: name})
	}
	eventually(t, "the host in the background ends", func() bool { return len(names(of.Hosts())) == 0 })
	if text, err := os.ReadFile(filepath.Join(of.Dir, "host.log")); err != nil || len(text) > 0 {
		t.Errorf("its log says %q, %v", text, err)
	}
}

// TestRefusedSpawns: what can fail is found before the member is recorded, and starts nothing.
func TestRefusedSpawns(t *testing.T) {
	t.Parallel()
	broken := func(l *lab, of *engine.Team) {
		if err := os.Mkdir(filepath.Join(of.Dir, "host.log"), 0o700); err != nil {
			l.t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		member team.SpawnMember
		before func(l *lab, of *engine.Team)
		code   team.Code
		says   string
	}{
		"its program is not there": {team.SpawnMember{Agent: team.Claude, Program: "/nowhere/claude"}, nil, team.Invalid,
			"ann was not added: claude cannot work here"},
		"no worktree": {team.SpawnMember{Agent: team.Shell, Isolation: team.Worktree}, func(l *lab, _ *engine.Team) {
			if err := os.RemoveAll(filepath.Join(l.project, ".git")); err != nil {
				l.t.Fatal(err)
			}
		}, team.Invalid, "no member can work for team demo"},
		"no directory": {team.SpawnMember{Agent: team.Shell}, func(l *lab, _ *engine.Team) {
			if err := os.RemoveAll(l.project); err != nil {
				l.t.Fatal(err)
			}
		}, team.Invalid, "no member can work for team demo"},
		"no log": {team.SpawnMember{Agent: team.Shell}, broken, "", "ann was not added: no host can run its session"},
		"no hosts": {team.SpawnMember{Agent: team.Shell}, func(l *lab, _ *engine.Team) { l.HostCommand = nil }, "",
			"starts none in the background"},
		"a name that is taken": {team.SpawnMember{Name: "lead", Agent: team.Shell}, nil, team.Invalid, "lead"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.create()
			rooms := 0
			l.Room = func(context.Context, string, string) (func(), error) {
				rooms++
				return func() { rooms-- }, nil
			}
			of := l.open()
			if c.before != nil {
				c.before(l, of)
			}
			if c.member.Name == "" {
				c.member.Name = "ann"
			}
			seq := of.Seq()
			err := of.Spawn(within(t), team.User, &c.member, func(m team.Member) error {
				t.Errorf("%s joined", m.Name)
				return nil
			})
			if err == nil || team.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it is %v", err)
			}
			if rooms != 0 {
				t.Errorf("room for %d teammates is reserved", rooms)
			}
			if of.Seq() != seq || of.Hosted(t.Context()) {
				t.Errorf("of %d records there are %d; a host runs: %v", seq, of.Seq(), of.Hosted(t.Context()))
			}
		})
	}
}

// TestLeadTakesRoom: a lead that is an external session takes room for the teammates that it adds
// with its tools.
func TestLeadTakesRoom(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	l := newLab(t)
	l.create()
	l.Room = func(_ context.Context, _, name string) (func(), error) {
		return nil, team.Refuse(team.NotReady, "there is no room for %s", name)
	}
	of := l.open()
	lead := l.attend(of, "")
	text, failed := lead.Tools().Call(lead.ctx, "SpawnTeammate", []byte(`{"name":"ann","prompt":"x","agent":"claude"}`))
	if !failed || !strings.Contains(text, "there is no room for ann") {
		t.Errorf("failed: %v, %s", failed, text)
	}
}

// TestSpawnExternal: a member without a session needs no host.
func TestSpawnExternal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create()
	of := l.open()
	if err := of.Spawn(within(t), team.User, &team.SpawnMember{Name: "eve", Agent: team.External},
		func(team.Member) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(of.Hosts()); err == nil {
		t.Error("there is a folder of hosts")
	}
}

// TestHostThatTakesNobody: a background host that cannot work is noticed, and its log named.
func TestHostThatTakesNobody(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for the host as long as a person would")
	}
	l := newLab(t)
	l.HostCommand = func(string) []string { return []string{"/bin/sh", "-c", "echo out of order"} }
	l.create(ann)
	of := l.open()
	err := of.EnsureHost(within(t), "ann")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(of.Dir, "host.log")) {
		t.Errorf("it is %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(of.Dir, "host.log")); string(text) != "out of order\n" {
		t.Errorf("its log says %q", text)
	}
}

// TestAwaitStart: a session that cannot start is reported at its first failure.
func TestAwaitStart(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(ann)
	of := l.open()
	l.host(of, engine.HostOptions{})
	if m, err := of.AwaitStart(within(t), "ann"); err != nil || m.Status == team.Spawning {
		t.Errorf("%s, %v", m.Status, err)
	}
	l.do(of, "lead", &team.RequestShutdown{Member: "ann"})
	until(t, of, func(s *team.State) bool { m, _ := s.Member("ann"); return !m.Status.Running() })
	if _, err := of.AwaitStart(within(t), "ann"); team.CodeOf(err) != team.NotReady || !hinted(err, team.ActSpawn) {
		t.Errorf("of one that has ended: %v", err)
	}
}
