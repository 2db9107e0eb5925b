package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestPauseOfAHostInAProgram: a host in a Go program pauses, and the program continues. If the
// program passes its own function for a pause, the host calls only that.
func TestPauseOfAHostInAProgram(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, memory := range map[string]*engine.Memory{"disk": nil, "memory": new(engine.Memory)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.Memory = memory
			l.pauseOfAHost(t)
		})
	}
}

func (l *lab) pauseOfAHost(t *testing.T) {
	l.create(ann, &team.CreateTask{Subject: "wait", Run: "echo begun >begun; while ! test -e go; do sleep 0.05; done"})
	of, other := l.open(), l.open()
	begun := func() bool { _, err := os.Stat(filepath.Join(l.project, "begun")); return err == nil }
	h := l.host(of, engine.HostOptions{})
	eventually(t, "the task runs", begun)
	p, err := other.Pause(t.Context())
	if err != nil || p.Hosts != 1 || len(p.Members) != 1 || p.Members[0] != "ann" {
		t.Errorf("the pause is %+v, %v", p, err)
	}
	<-h.Done()
	if err := h.Err(); err != nil {
		t.Errorf("the host ended with %v", err)
	}
	other.View(func(s *team.State) {
		if m, _ := s.Member("ann"); m.Host != "" || m.Summary != team.PausedReason {
			t.Errorf("ann is %+v", m)
		}
	})

	asked := make(chan struct{})
	h = l.host(of, engine.HostOptions{Pause: func() { close(asked) }})
	paused := make(chan error)
	go func() {
		_, err := other.Pause(t.Context())
		paused <- err
	}()
	<-asked
	select {
	case <-h.Done():
		t.Error("the host ended although its owner decides")
	default:
	}
	if err := errors.Join(h.Pause(), <-paused); err != nil {
		t.Error(err)
	}
	if p, err := other.Pause(t.Context()); err != nil || p.Hosts != 0 {
		t.Errorf("a pause without a host is %+v, %v", p, err)
	}
}
