package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// shared is a text buffer that one goroutine writes and another reads.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestHostileQuestions checks that a request or a plan of a member is shown without a line that
// imitates another question.
func TestHostileQuestions(t *testing.T) {
	s := newStage(t)
	s.open()
	of, err := (&app{home: s.home, err: standardError()}).engine().Look(t.Context(), "evil")
	s.must(err)
	defer of.Close()
	asked := 0
	for r, err := range of.Read(t.Context(), 0) {
		s.must(err)
		for _, e := range r.Events {
			switch e.(type) {
			case *team.PermissionRequested, *team.PlanSubmitted:
			default:
				continue
			}
			asked++
			var shown shared
			a := &app{home: s.home, out: output{sanitize.NewWriter(&shown), os.Stdout},
				err: output{sanitize.NewWriter(&shown), os.Stderr}}
			input, typing, err := os.Pipe()
			s.must(err)
			defer input.Close()
			defer typing.Close()
			q := newAsker(a, &progress{app: a})
			q.in = input
			q.terminal.Store(true)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			q.saw(ctx, r, of)
			for deadline := time.Now().Add(patience); !strings.HasSuffix(shown.String(), " [y/N]\n"); <-time.After(
				time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("it asks\n%s", shown.String())
				}
			}
			if !strings.Contains(shown.String(), mark) {
				t.Errorf("it asks\n%s", shown.String())
			}
			s.harmless(call{args: []string{e.Kind()}}, []byte(shown.String()))
		}
	}
	if asked != 2 {
		t.Errorf("got %d questions", asked)
	}
}
