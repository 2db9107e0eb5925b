package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cadre/internal/server/coordinator"
	"cadre/internal/team"
)

// working creates a team with two external teammates and some history, and returns its id.
func (c *client) working(name string) string {
	c.t.Helper()
	id := c.create(name)
	for _, member := range []string{"ann", "bob"} {
		c.must("spawn_teammate", fields{"teamId": id, "name": member, "role": "r", "prompt": "p",
			"agentType": "external"})
	}
	for i := range 4 {
		task := fields{"teamId": id, "createdBy": "lead", "title": fmt.Sprint("task ", i), "description": ""}
		if i > 0 {
			task["dependencies"] = []string{"1"}
		}
		c.must("team_create_task", task)
	}
	c.must("team_claim_task", fields{"teamId": id, "taskId": "1", "teammateId": "ann"})
	c.must("team_complete_task", fields{"teamId": id, "taskId": "1", "teammateId": "ann"}) // frees three others
	c.must("team_send_message", fields{"teamId": id, "fromId": "ann", "toId": "bob", "content": "hello"})
	return id
}

func (f frame) cursor() string { return fmt.Sprint(f.TeamID, " ", f.Seq, ".", f.Part) }

// TestCursor: after each event, a client that comes back gets exactly the events that follow.
func TestCursor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first := l.dial()
	id := first.working("work")
	all := first.events
	parts := 0
	for i, f := range all {
		if f.TeamID != id || f.Seq == 0 || f.Seq < all[max(0, i-1)].Seq {
			t.Errorf("event %d is %s", i, f)
		}
		if f.Part > 0 {
			parts++
		}
	}
	if parts < 3 || len(all) < 11 {
		t.Fatalf("%d events, %d parts: %v", len(all), parts, all)
	}
	last := all[len(all)-1].Seq
	for i, f := range all {
		c := l.dial()
		is := read[coordinator.Subscribed](t, c.must("subscribe", fields{"teamId": "work", "after": f.Seq,
			"part": f.Part}))
		if is.TeamID != id || is.Seq != last || is.After != f.Seq {
			t.Errorf("subscribed %+v", is)
		}
		status := c.must("team_status", fields{"teamId": id}) // comes after all events
		if status.Seq != last {
			t.Errorf("the status has seq %d, want %d", status.Seq, last)
		}
		same := slices.EqualFunc(c.events, all[i+1:], func(a, b frame) bool {
			return a.cursor() == b.cursor() && a.Type == b.Type && string(a.Payload) == string(b.Payload)
		})
		if !same {
			t.Errorf("after %s came\n%v\nwant\n%v", f, c.events, all[i+1:])
		}
		c.ws.CloseNow()
	}
	c := l.dial()
	if is := c.refused("ahead", "subscribe", fields{"teamId": id, "after": last + 1}); is.Seq != last {
		t.Errorf("a cursor of the future is refused with %+v", is)
	}
	for _, wrong := range []fields{{"after": -1}, {"after": 0, "part": 1}, {"after": 1, "part": -1}} {
		wrong["teamId"] = id
		c.refused("usage", "subscribe", wrong)
	}
	c.must("subscribe", fields{"teamId": id, "after": last})
	c.refused("usage", "subscribe", fields{"teamId": id})
	c.must("unsubscribe", fields{"teamId": "work"})
	first.must("team_send_message", fields{"teamId": id, "fromId": "lead", "toId": "bob", "content": "more"})
	c.must("ping", nil)
	if len(c.events) > 0 {
		t.Errorf("without a subscription came %v", c.events)
	}
	c.refused("usage", "unsubscribe", fields{"teamId": id})
	c.must("subscribe", fields{"teamId": id}) // the present, and what follows
	now := c.event("team_status_update")
	first.must("team_send_message", fields{"teamId": id, "fromId": "lead", "toId": "bob", "content": "still more"})
	if next := c.event("team_message"); next.Seq <= now.Seq || !strings.Contains(string(next.Payload), "still more") {
		t.Errorf("after %s came %s", now, next)
	}
}

// TestLive: clients that subscribe while a team works get each event once and in order, wherever
// they begin.
func TestLive(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	writer := l.dial()
	id := writer.working("work")
	const messages = 300
	var readers sync.WaitGroup
	counts := make([][]string, 8)
	for i := range counts {
		c := l.dial()
		c.must("subscribe", fields{"teamId": id, "after": 0})
		readers.Go(func() {
			for len(counts[i]) < messages {
				f := frame{}
				if len(c.events) > 0 {
					f, c.events = c.events[0], c.events[1:]
				} else if f = c.next(); t.Failed() {
					return
				}
				var is coordinator.MessagePayload
				if f.Type == "team_message" && json.Unmarshal(f.Payload, &is) == nil &&
					strings.HasPrefix(is.Message.Content, "m") {
					counts[i] = append(counts[i], is.Message.Content)
				}
			}
		})
	}
	of, err := l.engine.Open(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	var want []string
	for i := range messages {
		want = append(want, fmt.Sprint("m", i))
		if _, err := of.Do(context.Background(), team.Command{Actor: "ann", Body: &team.SendMessage{To: "bob",
			Body: want[i]}}); err != nil {
			t.Fatal(err)
		}
	}
	readers.Wait()
	for i, got := range counts {
		if !slices.Equal(got, want) {
			t.Errorf("reader %d got %v", i, got)
		}
	}
}

// TestRemovedElsewhere: a subscription ends with team_cleaned_up, whoever removes the team.
func TestRemovedElsewhere(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first, second := l.dial(), l.dial()
	id := first.create("gone")
	second.must("subscribe", fields{"teamId": id})
	second.event("team_status_update")
	first.must("cleanup_team", fields{"teamId": id})
	if last := first.events[len(first.events)-1]; last.Type != "team_cleaned_up" {
		t.Errorf("the last event is %s", last)
	}
	all := second.until("team_cleaned_up")
	if len(all) > 3 {
		t.Errorf("it got %v", all)
	}
	second.refused("TEAM_NOT_FOUND", "subscribe", fields{"teamId": id})
	again := first.create("gone")
	if again == id {
		t.Error("another team has the same id")
	}
}
