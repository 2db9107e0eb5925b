package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/worker"
	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// seat is what the session of a member has of its team.
type seat struct {
	*engine.Team
	member string
}

func (s seat) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	r, err := s.Team.Do(ctx, team.Command{Actor: s.member, Body: body})
	return r.Record, err
}

// childOf returns the child team for the task that the member sub of a new team has in progress.
func childOf(t *testing.T, n *team.Nested, template Template) *child {
	t.Helper()
	root := t.TempDir()
	e := (&engine.Engine{Home: layout.Home{Root: filepath.Join(root, "home"), Claude: filepath.Join(root, "claude")},
		Log: func(text string) { t.Log(text) }}).In(root)
	var commands []team.Command
	for _, body := range []team.Body{&team.CreateTeam{TeamID: "up-1", Name: "up", Dir: root, MaxDepth: 1},
		&team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Nested: n}, &team.CreateTask{Subject: "Build it"}} {
		commands = append(commands, engine.Command(team.User, body))
	}
	if err := e.Create("up", commands); err != nil {
		t.Fatal(err)
	}
	up, err := e.Open(t.Context(), "up")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close() })
	its := seat{up, "sub"}
	for _, one := range []team.Command{{Actor: team.Host("h"), Body: &team.AttachMember{Member: "sub"}},
		{Actor: team.Host("h"), Body: &team.ReportStarted{Member: "sub", Session: "s"}},
		{Actor: "sub", Body: &team.ClaimTask{}}} {
		if _, err := up.Do(t.Context(), one); err != nil {
			t.Fatalf("%T: %v", one.Body, err)
		}
	}
	c := &child{nested: nested{of: up, template: template,
		host: engine.HostOptions{Agent: func(string) agent.Agent { return nil }}},
		session: &worker.Session{Spec: agent.Spec{Team: "up", Member: "sub"}, Team: its, Hurry: t.Context()}}
	up.View(func(s *team.State) { c.task, _ = s.Task("1") })
	return c
}

func inner(string, string) (Source, error) {
	return Source{Text: []byte("name: inner\nmembers: [{name: w, agent: external}]\ntasks: [{id: a}]\n"),
		Called: "inner.yaml", Origin: TemplateOrigin + "inner"}, nil
}

// TestChildNameIsTaken: a child team whose name another team took before it was made gets the next
// name, and does not become that team.
func TestChildNameIsTaken(t *testing.T) {
	t.Parallel()
	c := childOf(t, &team.Nested{Template: "inner"}, inner)
	dir := c.of.Team().Dir
	o, _, err := c.options(t.Context(), dir)
	if err != nil || o.File.Name != "up-sub" {
		t.Fatalf("%+v, %v", o.File, err)
	}
	for _, name := range []string{"up-sub", "up-sub-2"} { // of the same origin, as that of another member would be
		if err := c.of.Engine().In(dir).Create(name, []team.Command{engine.Command(team.User, &team.CreateTeam{
			TeamID: name + "-other", Name: name, Dir: dir, Origin: o.Path, OriginDigest: o.File.Digest()})}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.Saw = nil
	done := make(chan struct{})
	go func() { // it has nothing to do by itself
		defer close(done)
		c.of.Wait(ctx, c.of.Seq())
		cancel()
	}()
	r, err := c.run(ctx, o, dir)
	cancel()
	<-done
	var link team.Child
	c.of.View(func(s *team.State) { link, _ = s.ChildOf("1") })
	if link.Name != "up-sub-3" || err == nil && r.Team.ID != link.Team {
		t.Errorf("the child is %+v; the run ended with %+v, %v", link, r.Team, err)
	}
}

// TestGoalOfAChildIsItsOwn: a team of the user has no say in who leads a child team, whatever its
// name is.
func TestGoalOfAChildIsItsOwn(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no agent is installed
	c := childOf(t, &team.Nested{Goal: "Build it"}, nil)
	e := c.of.Engine().In(c.of.Team().Dir)
	if err := e.Create("nested", []team.Command{engine.Command(team.User, &team.CreateTeam{TeamID: "nested-1",
		Name: "nested", Dir: e.Home.Dir})}); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.options(t.Context(), e.Home.Dir)
	if !errors.Is(err, engine.ErrNoAgent) || strings.Contains(err.Error(), team.External) {
		t.Errorf("got %v, want %v", err, engine.ErrNoAgent)
	}
}
