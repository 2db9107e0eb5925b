package worker

import (
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"cadre/internal/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSaidAfterTheEnd: what is said after the end of a session, and what nobody reads at the end,
// harms and holds nobody.
func TestSaidAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{updates: make(chan agent.Update, 1), over: make(chan struct{})}
		var late sync.WaitGroup
		for range 8 { // the channel holds one of them
			late.Go(func() { s.Say(t.Context(), agent.Started{}) })
		}
		synctest.Wait()
		s.hush()
		late.Wait()
		s.Say(t.Context(), agent.Started{})
		said := 0
		for range s.updates {
			said++
		}
		if said != 1 {
			t.Errorf("%d updates were sent", said)
		}
	})
}
