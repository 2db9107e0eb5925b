package replica

import (
	"context"
	"runtime"
	"testing"

	"cadre/internal/journal/memjournal"
	"cadre/internal/team"
)

// TestReadWithinView checks that the history can be read within View while another goroutine waits
// to change the state. A checkpoint does that, and its host would hang.
func TestReadWithinView(t *testing.T) {
	ctx := t.Context()
	rep, err := Open(ctx, memjournal.New("demo").Open(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.CreateTeam{TeamID: "demo-1", Name: "demo",
		Dir: "/w"}}); err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 1)
	rep.View(func(s *team.State) {
		go func() {
			_, err := rep.Do(context.WithoutCancel(ctx), team.Command{Actor: team.User,
				Body: &team.CreateTask{Subject: "one"}})
			changed <- err
		}()
		for rep.mu.TryRLock() { // until it waits
			rep.mu.RUnlock()
			runtime.Gosched()
		}
		n := 0
		for _, err := range rep.Read(ctx, 0) {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		if n < 1 {
			t.Error("nothing was read")
		}
	})
	if err := <-changed; err != nil {
		t.Error(err)
	}
}
