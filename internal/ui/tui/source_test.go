package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// TestSource follows teams on disk: each change arrives, of the team that is open and of the list,
// and everything ends with the context. TestMain checks that no goroutine is left.
func TestSource(t *testing.T) {
	t.Parallel()
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
	demo, err := e.Glance(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	s := &source{engine: e, first: demo.ID, ctx: ctx, send: func(msg tea.Msg) {
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
	until("the list", func(msg tea.Msg) bool {
		list, is := msg.(teamsMsg)
		if is && len(list.teams) == 2 && (list.teams[0].ref != demo.ID || list.teams[0].name != "demo" ||
			list.teams[1].ref != "other") {
			t.Errorf("the teams are %+v", list.teams)
		}
		return is && len(list.teams) == 2
	})
	until("the team", func(msg tea.Msg) bool { one, is := msg.(teamMsg); return is && one.ref == "demo" })
	if msg := s.Act("demo", &team.CreateTask{Subject: "Greet", Owner: "lead"}, "done").(actedMsg); msg.said != "done" {
		t.Errorf("the command: %+v", msg)
	}
	until("the task", func(msg tea.Msg) bool { one, is := msg.(teamMsg); return is && one.view.all == 1 })
	until("what waits", func(msg tea.Msg) bool {
		list, is := msg.(teamsMsg)
		if is && len(list.items) == 1 && list.items[0].ref != demo.ID {
			t.Errorf("the item is of %s", list.items[0].ref)
		}
		return is && len(list.items) == 1
	})
	if msg := s.Act("demo", &team.Interrupt{Member: "nobody"}, "done").(actedMsg); msg.err == "" {
		t.Errorf("a wrong command: %+v", msg)
	}
	s.self, s.teamVariable, s.asks = "sh", "SELECTED", func(string, int) string { return "" }
	s.env = []string{"PATH=" + os.Getenv("PATH"), "SELECTED=other"} // the team of the session that started the screen
	for ref, want := range map[string]string{"demo": "demo\n", "": StrangerPrefix + "\n"} {
		if msg := s.Command(t.Context(), 0, ref, []string{"-c", "echo $SELECTED"}).(outputMsg); msg.text != want {
			t.Errorf("for the team %q a command gets %+v", ref, msg)
		}
	}
	running, cancel := context.WithCancel(t.Context())
	ended := make(chan outputMsg, 1)
	go func() {
		ended <- s.Command(running, 7, "demo", []string{"-c", "sleep 600 & echo child $!; wait"}).(outputMsg)
	}()
	child := 0
	until("the first output", func(msg tea.Msg) bool {
		one, is := msg.(printingMsg)
		if is && one.number == 7 {
			_, _ = fmt.Sscanf(one.text, "child %d", &child)
		}
		return child > 0
	})
	began, err := proc.StartTime(child)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case msg := <-ended:
		if msg.code == 0 || msg.text != fmt.Sprintf("child %d\n", child) {
			t.Errorf("a cancelled command: %+v", msg)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a cancelled command does not end")
	}
	if proc.Alive(child, began) {
		t.Error("a process of a cancelled command still runs")
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

// TestScreenWaitsForCommands: the end of the screen waits until a command of the palette has had
// its signals, and no longer than it may. No command starts after that.
func TestScreenWaitsForCommands(t *testing.T) {
	dir := t.TempDir()
	e := &engine.Engine{Home: layout.Home{Root: filepath.Join(dir, "cadre"), Claude: filepath.Join(dir, "claude")},
		Shared: new(engine.Shared), Log: func(string) {}}
	ctx, end := context.WithCancel(t.Context())
	printed := make(chan struct{}, 1)
	s := &source{engine: e, ctx: ctx, self: "sh", teamVariable: "SELECTED", env: []string{"PATH=" + os.Getenv("PATH")},
		asks: func(string, int) string { return "" }, send: func(tea.Msg) {
			select {
			case printed <- struct{}{}:
			default:
			}
		}}
	ended := make(chan outputMsg, 1)
	saved := filepath.Join(dir, "saved")
	go func() {
		ended <- s.Command(context.Background(), 1, "demo", []string{"-c",
			"trap 'sleep 0.2; echo saved > " + saved + "; exit 1' INT TERM; echo ready; while :; do sleep 0.05; done"}).(outputMsg)
	}()
	select {
	case <-printed:
	case <-time.After(20 * time.Second):
		t.Fatal("the command does not start")
	}
	began := time.Now()
	if s.ends(10 * time.Millisecond); time.Since(began) > 5*time.Second {
		t.Error("the wait has no limit")
	}
	end()
	s.ends(commandsEnd)
	if _, err := os.Stat(saved); err != nil {
		t.Error("the screen ended before the command had saved what it had: ", err)
	}
	<-ended
	if msg := s.Command(context.Background(), 2, "demo", []string{"-c", "echo late"}).(outputMsg); msg.text != "" {
		t.Errorf("a command starts after the end: %+v", msg)
	}
}
