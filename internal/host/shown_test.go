package host_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/sessionlog"
	"cadre/internal/host"
	"cadre/internal/team"
)

// TestWhatSessionsShow checks that a host logs what the sessions of its members show, and that the
// next session of a member continues the log.
func TestWhatSessionsShow(t *testing.T) {
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted"},
		&team.SpawnMember{Name: "ben", Agent: "scripted"})
	folder := sessionlog.Of(filepath.Dir(s.hosts))
	script := func(s *session) error {
		s.updates <- agent.Started{Session: "session of " + s.Member}
		s.updates <- agent.TextPart{Text: "half a "}
		s.updates <- agent.Text{Text: "half a sentence, and the rest"}
		s.updates <- agent.TurnEnded{}
		<-s.stop
		return nil
	}
	idle := func(st *team.State) bool {
		ann, _ := st.Member("ann")
		ben, _ := st.Member("ben")
		return ann.Status == team.Idle && ben.Status == team.Idle
	}
	shown := func(o *host.Options) { o.Sessions = folder }
	h := s.start("host-1", scripted(script), shown)
	s.until("both are idle", idle)
	h.wait()

	kinds := func(member string) (kinds []sessionlog.Kind) {
		v := folder.View(member)
		defer v.Close()
		for {
			entries, err := v.Read()
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) == 0 {
				return kinds
			}
			for _, e := range entries {
				kinds = append(kinds, e.Kind)
			}
		}
	}
	want := []sessionlog.Kind{sessionlog.Started, sessionlog.Text, sessionlog.TurnEnded, sessionlog.Ended}
	for _, member := range []string{"ann", "ben"} {
		got := slices.DeleteFunc(kinds(member), func(k sessionlog.Kind) bool { return k == sessionlog.Prompt })
		if !slices.Equal(got, want) {
			t.Errorf("%s showed %v, want %v", member, got, want)
		}
	}

	again := 0
	h = s.start("host-2", scripted(script), shown)
	s.until("both have their second session", func(st *team.State) bool {
		again = 0
		for _, member := range []string{"ann", "ben"} {
			for _, k := range kinds(member) {
				if k == sessionlog.Started {
					again++
				}
			}
		}
		return again == 4 && idle(st)
	})
	h.wait()
}

// TestSessionsThatCannotBeLogged checks that a host reports a log that it cannot write, and runs
// the session.
func TestSessionsThatCannotBeLogged(t *testing.T) {
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted"})
	told := make(chan string, 10)
	h := s.start("host-1", scripted(obedient), func(o *host.Options) {
		o.Sessions = sessionlog.Of(filepath.Join(s.hosts, "no", "folder"))
		o.Log = func(text string) { told <- text }
	})
	s.until("ann is idle", func(st *team.State) bool {
		ann, _ := st.Member("ann")
		return ann.Status == team.Idle
	})
	h.wait()
	close(told)
	for text := range told {
		if strings.Contains(text, "what ann shows is not logged") {
			return
		}
	}
	t.Error("the host does not say that nothing is logged")
}

// interruptible is a session that records its interrupts.
type interruptible struct {
	*session
	interrupts chan struct{}
}

func (s interruptible) Interrupt(context.Context) error {
	s.interrupts <- struct{}{}
	return nil
}

type interruptibleAgent chan struct{}

func (interruptibleAgent) TakesTasks() {}

func (a interruptibleAgent) Start(_ context.Context, spec agent.Spec, its agent.Team) (agent.Session, error) {
	return interruptible{start(func(s *session) error {
		s.updates <- agent.Started{Session: "s"}
		s.updates <- agent.TurnStarted{Summary: "in a turn"}
		<-s.stop
		return nil
	}, spec, its), a}, nil
}

// TestInterrupt checks that a host interrupts a turn once for each request.
func TestInterrupt(t *testing.T) {
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted"})
	interrupts := make(interruptibleAgent, 10)
	h := s.start("host-1", interrupts)
	s.until("ann is in a turn", func(st *team.State) bool {
		ann, _ := st.Member("ann")
		return ann.Summary == "in a turn"
	})
	s.do(team.User, &team.Interrupt{Member: "ann"})
	select {
	case <-interrupts:
	case <-time.After(20 * time.Second):
		t.Fatal("the session was not interrupted")
	}
	s.do(team.User, &team.CreateTask{Subject: "the host looks again"})
	h.wait()
	if n := len(interrupts); n > 0 {
		t.Errorf("the session was interrupted %d more times", n)
	}
}
