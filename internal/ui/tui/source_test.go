package tui

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestSource follows teams on disk: each change arrives, of the team that is open and of the list, and
// everything ends with the context. TestMain checks that no goroutine is left.
func TestSource(t *testing.T) {
	root := t.TempDir()
	e := &engine.Engine{Home: layout.Home{Root: filepath.Join(root, "cadre"), Claude: filepath.Join(root, "claude")},
		Shared: new(engine.Shared), Log: func(string) {}}
	dir := filepath.Join(root, "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"demo", "other"} {
		body := &team.CreateTeam{Name: name, Dir: dir}
		if err := e.Founding(t.Context(), body); err != nil {
			t.Fatal(err)
		}
		if err := e.Create(name, []team.Command{engine.Command(team.User, body)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	messages := make(chan tea.Msg)
	s := &source{engine: e, ctx: ctx, explain: error.Error, send: func(msg tea.Msg) {
		select {
		case messages <- msg:
		case <-ctx.Done():
		}
	}}
	defer s.running.Wait()
	defer end()
	s.running.Go(s.teams)
	s.OpenTeam(1, "demo")
	until := func(what string, holds func(tea.Msg) bool) {
		t.Helper()
		late := time.After(30 * time.Second)
		for {
			select {
			case msg := <-messages:
				if holds(msg) {
					return
				}
			case <-late:
				t.Fatalf("%s: it did not come", what)
			}
		}
	}
	until("the list", func(msg tea.Msg) bool { list, is := msg.(teamsMsg); return is && len(list.teams) == 2 })
	until("the team", func(msg tea.Msg) bool { one, is := msg.(teamMsg); return is && one.ref == "demo" })
	if msg := s.Act("demo", &team.CreateTask{Subject: "Greet", Owner: "lead"}, "done").(actedMsg); msg.said != "done" {
		t.Errorf("the command: %+v", msg)
	}
	until("the task", func(msg tea.Msg) bool { one, is := msg.(teamMsg); return is && one.view.all == 1 })
	until("what waits", func(msg tea.Msg) bool { list, is := msg.(teamsMsg); return is && len(list.items) == 1 })
	if msg := s.Act("demo", &team.Interrupt{Member: "nobody"}, "done").(actedMsg); msg.err == "" {
		t.Errorf("a wrong command: %+v", msg)
	}
	s.OpenTeam(3, "other")
	s.OpenTeam(2, "demo") // it comes late
	until("the other team", func(msg tea.Msg) bool { one, is := msg.(teamMsg); return is && one.ref == "other" })
	s.OpenSession(4, "other", "lead")
	s.OpenSession(3, "", "")
	until("why there is no session", func(msg tea.Msg) bool {
		one, is := msg.(sessionMsg)
		return is && strings.Contains(one.err, "you lead this team: lead has no session to show")
	})
	if s.ref != "other" {
		t.Errorf("a late call opened %s", s.ref)
	}
	s.OpenTeam(5, "nowhere")
	until("why it cannot be read", func(msg tea.Msg) bool { one, is := msg.(teamMsg); return is && one.err != nil })
}
