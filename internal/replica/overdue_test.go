package replica_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestOverdueFailsNothingElse: what is overdue and cannot be recorded is noted, and fails neither
// the command that comes next nor a look. The end of the context still does.
func TestOverdueFailsNothingElse(t *testing.T) {
	p := newPlace(t, &team.SetBudget{Budget: team.Budget{Time: time.Millisecond}})
	broken := errors.New("the record has no room")
	var mu sync.Mutex
	var said []string
	rep := p.open(replica.Options{Now: func() team.Time { return replica.Now() + 60_000 },
		Log: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		},
		Decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if _, is := c.Body.(*team.CheckBudget); is {
				return team.Decision{}, broken
			}
			return team.Decide(s, c)
		}})
	rep.View(func(s *team.State) {
		if due, _ := s.Overdue(replica.Now() + 60_000); len(due) == 0 {
			t.Fatal("nothing is overdue")
		}
	})
	do(t, rep, "ann", &team.SendMessage{To: "bob", Body: "hello"})
	if mail := inbox(rep, "bob"); len(mail) != 1 {
		t.Errorf("bob has %d messages", len(mail))
	}
	if err := rep.RecordOverdue(within(t)); err != nil {
		t.Error(err)
	}
	mu.Lock()
	noted := strings.Join(said, "\n")
	mu.Unlock()
	if n := strings.Count(noted, "what is overdue cannot be recorded: "); n != 2 || !strings.Contains(noted, broken.Error()) {
		t.Errorf("noted is %d times\n%s", n, noted)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rep.RecordOverdue(over); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	do(t, p.open(replica.Options{}), "ann", &team.SendMessage{To: "bob", Body: "again"}) // nothing is broken
}
