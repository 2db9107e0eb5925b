package coordinator_test

import (
	"slices"
	"testing"

	"cadre/internal/server/coordinator"
)

// TestMessages: clients learn when messages were delivered and read, from events and from the list.
func TestMessages(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.dial()
	id := c.create("port")
	for _, member := range []string{"ann", "bob"} {
		c.must("spawn_teammate", fields{"teamId": id, "name": member, "role": "r", "prompt": "p",
			"agentType": "external"})
	}
	reader := l.dial()
	reader.must("subscribe", fields{"teamId": id})
	reader.event("team_status_update")
	said := func(content string) coordinator.TeamMessage {
		t.Helper()
		m := read[coordinator.MessagePayload](t, reader.event("team_message")).Message
		if m.Content != content || m.DeliveredAt != nil || m.ReadAt != nil {
			t.Errorf("sent %+v", m)
		}
		return m
	}
	c.must("team_send_message", fields{"teamId": id, "fromId": "bob", "toId": "ann", "content": "one"})
	one := said("one")
	c.must("team_broadcast", fields{"teamId": id, "fromId": "lead", "content": "two"})
	two := said("two")
	if all := listMessages(t, c, id, "ann", false); len(all) != 2 || all[0].DeliveredAt != nil || all[1].ReadAt != nil {
		t.Errorf("at first ann has %+v", all)
	}
	if err := l.post("/v1/teams/port/members/ann/inbox/receive", ""); err != nil {
		t.Fatal(err)
	}
	delivery := read[coordinator.Delivery](t, reader.event("team_message_delivered"))
	if delivery.MemberID != "ann" || delivery.TeamID != id ||
		!slices.Equal(delivery.MessageIDs, []string{one.ID, two.ID}) {
		t.Errorf("delivered %+v", delivery)
	}
	if err := l.post("/v1/teams/port/members/ann/inbox/read", `{"through":`+one.ID+`}`); err != nil {
		t.Fatal(err)
	}
	reading := read[coordinator.Reading](t, reader.event("team_message_read"))
	if reading.MemberID != "ann" || reading.TeamID != id || reading.Through != one.ID {
		t.Errorf("read %+v", reading)
	}
	all := listMessages(t, c, id, "ann", false)
	if len(all) != 2 || *all[0].DeliveredAt != delivery.DeliveredAt || *all[0].ReadAt != reading.ReadAt ||
		*all[1].DeliveredAt != delivery.DeliveredAt || all[1].ReadAt != nil {
		t.Errorf("then ann has %+v", all)
	}
	if all := listMessages(t, c, id, "ann", true); len(all) != 1 || all[0].ID != two.ID {
		t.Errorf("unread are %+v", all)
	}
	if all := listMessages(t, c, id, "bob", false); len(all) != 1 || all[0].DeliveredAt != nil {
		t.Errorf("bob has %+v", all)
	}
	c.refused("MEMBER_NOT_FOUND", "team_list_messages", fields{"teamId": id, "memberId": "nobody"})
	reader.send("team_list_messages", fields{"teamId": id, "memberId": "ann"}) // one event a message
	for _, want := range all {
		m := read[coordinator.MessagePayload](t, reader.event("team_message")).Message
		if m.ID != want.ID || *m.DeliveredAt != *want.DeliveredAt {
			t.Errorf("the list has %+v, want %+v", m, want)
		}
	}
}

// listMessages lists the messages to a member.
func listMessages(t *testing.T, c *client, id, member string, unread bool) []coordinator.TeamMessage {
	t.Helper()
	f := c.must("team_list_messages", fields{"teamId": id, "memberId": member, "unread": unread})
	is := read[coordinator.MessagesPayload](t, f)
	if is.TeamID != id || is.MemberID != member || f.Seq == 0 {
		t.Errorf("the list is %s", f)
	}
	return is.Messages
}
