package coordinator_test

import (
	"strings"
	"testing"

	"cadre/internal/server/coordinator"
)

// TestFlow speaks the whole life of a team, with events as the only answers.
func TestFlow(t *testing.T) {
	t.Parallel()
	c := newLab(t).dial()
	c.send("create_team", fields{"leadSessionId": "s-1", "name": "review", "metadata": fields{"ticket": 7}})
	created := c.event("team_created")
	team := read[coordinator.TeamPayload](t, created).Team
	if team.Name != "review" || team.LeadSessionID != "s-1" || team.Status != "active" || team.MaxTeammates != 10 ||
		team.TeammateMode != "auto" || team.ResolvedBackend != "in-process" || len(team.Members) != 1 ||
		len(team.Metadata) != 1 || created.Seq != 1 || created.TeamID != team.ID || team.Members[0].SessionID != "s-1" {
		t.Errorf("created %s", created)
	}
	id := team.ID
	for _, name := range []string{"ann", "bob"} {
		c.send("spawn_teammate", fields{"teamId": id, "name": name, "role": "reviewer", "prompt": "read",
			"agentType": "external"})
		m := read[coordinator.MemberPayload](t, c.event("teammate_spawned")).Member
		if m.ID != name || m.Role != "reviewer" || m.AgentType != "external" || m.Status != "active" ||
			m.SpawnPrompt != "read" {
			t.Errorf("spawned %+v", m)
		}
	}
	c.send("team_create_task", fields{"teamId": id, "createdBy": "s-1", "title": "one", "description": "first",
		"metadata": fields{"a": 1}})
	one := read[coordinator.TaskPayload](t, c.event("team_task_update")).Task
	if one.ID != "1" || one.Title != "one" || one.Description != "first" || one.Status != "pending" ||
		one.Priority != "medium" || one.CreatedBy != "lead" || one.TeamID != id {
		t.Errorf("task %+v", one)
	}
	c.send("team_create_task", fields{"teamId": id, "createdBy": "lead", "title": "two", "description": "",
		"dependencies": []string{"1"}, "priority": "high"})
	if two := read[coordinator.TaskPayload](t, c.event("team_task_update")).Task; two.Status != "blocked" ||
		two.Priority != "high" || two.Dependencies[0] != "1" {
		t.Errorf("task %+v", two)
	}
	c.send("team_claim_task", fields{"teamId": id, "taskId": "1", "teammateId": "ann"})
	if got := read[coordinator.TaskPayload](t, c.event("team_task_update")).Task; got.Status != "in_progress" ||
		got.AssigneeID != "ann" {
		t.Errorf("claimed %+v", got)
	}
	c.send("team_complete_task", fields{"teamId": id, "taskId": "1", "teammateId": "ann"})
	c.until("team_message") // to the lead
	done := read[coordinator.TaskPayload](t, c.event("team_task_update")).Task
	free := read[coordinator.TaskPayload](t, c.event("team_task_update")).Task
	if done.ID != "1" || done.Status != "completed" || done.CompletedAt == nil || free.ID != "2" ||
		free.Status != "pending" {
		t.Errorf("completed %+v and freed %+v", done, free)
	}
	c.send("team_send_message", fields{"teamId": id, "fromId": "ann", "toId": "bob", "content": "done",
		"type": "task_update", "priority": "urgent", "metadata": fields{"x": "y"}})
	m := read[coordinator.MessagePayload](t, c.event("team_message")).Message
	if m.FromID != "ann" || *m.ToID != "bob" || m.Type != "task_update" || m.Priority != "urgent" ||
		m.Content != "done" || len(m.Metadata) != 1 {
		t.Errorf("message %+v", m)
	}
	c.send("team_broadcast", fields{"teamId": id, "fromId": "s-1", "content": "well done"})
	if m := read[coordinator.MessagePayload](t, c.event("team_message")).Message; m.ToID != nil ||
		m.Type != "broadcast" || m.FromID != "lead" {
		t.Errorf("broadcast %+v", m)
	}
	c.send("cleanup_team", fields{"teamId": id})
	if f := c.event("error"); f.failure().Code != "TEAM_HAS_ACTIVE_MEMBERS" {
		t.Errorf("got %s", f)
	}
	for _, name := range []string{"ann", "bob"} {
		c.send("shutdown_teammate", fields{"teamId": id, "memberId": name})
		all := c.until("teammate_shutdown")
		if ref := read[coordinator.MemberRef](t, all[len(all)-1]); ref.MemberID != name || ref.TeamID != id {
			t.Errorf("shut down %+v", ref)
		}
		if first := all[0]; first.Type != "team_message" {
			t.Errorf("first came %s", first)
		}
	}
	c.send("cleanup_team", fields{"teamId": id})
	all := c.until("team_cleaned_up")
	if ref := read[coordinator.TeamRef](t, all[len(all)-1]); ref.TeamID != id {
		t.Errorf("cleaned up %+v", ref)
	}
	c.send("team_status", fields{"teamId": id})
	if f := c.event("error"); f.failure().Code != "TEAM_NOT_FOUND" || !strings.Contains(f.failure().Message, id) {
		t.Errorf("got %s", f)
	}
}
