package engine_test

import (
	"context"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestFollowedMailThatWasHeld checks that a reader that follows the mail gets each message once,
// and marks it as read. A message that was held while the team had no lead arrives after newer
// ones.
func TestFollowedMailThatWasHeld(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "ann", Agent: team.External}, &team.SpawnMember{Name: "eve", Agent: team.External},
		&team.AttachLead{Session: "L1", Machine: "here"})
	of := l.open()
	ctx, cancel := context.WithCancel(within(t))
	came := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- l.ReadMail(ctx, "demo", engine.Reading{Actor: team.User, Member: "ann", Follow: true},
			func(mail []history.MailboxMessage, _ int64) error {
				for _, m := range mail {
					came <- m.Body
				}
				return nil
			})
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-came:
			if got != want {
				t.Errorf("it is %q, not %q", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("%q does not come", want)
		}
	}
	since := of.Team().LeadSince
	l.do(of, team.User, &team.LoseLead{Session: "L1", Since: since, Seen: replica.Now().Add(-time.Hour)})
	l.do(of, "eve", &team.SendMessage{To: "ann", Body: "held"})
	l.do(of, team.User, &team.SendMessage{To: "ann", Body: "newer"})
	next("newer")
	l.do(of, team.User, &team.AttachLead{Session: "L1", Machine: "here"})
	next("held")
	next("The lead is back. Continue your task.")
	until(t, of, func(s *team.State) bool {
		m, _ := s.Member("ann")
		return m.ReadSeq == m.DeliveredSeq && len(m.Inbox) == 0
	})
	cancel()
	<-ended
	if len(came) > 0 {
		t.Errorf("%q comes twice", <-came)
	}
}
