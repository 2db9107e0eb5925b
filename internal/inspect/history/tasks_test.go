package history

import (
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// TestTasksAgreeWithTheState checks the attempts of each task against the state, after any record.
func TestTasksAgreeWithTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(150).Draw(t, "choices"))
		var all Tasks
		for _, r := range h.Records {
			all.Add(r)
			all.Add(r) // a second time changes nothing
		}
		var s team.State
		for _, r := range h.Records {
			s.Apply(r)
			for task := range s.Tasks() {
				attempts := all.Attempts(task.ID, s.Seq())
				if n := int64(len(attempts)); n != min(task.Attempts, mostAttempts) {
					t.Fatalf("after record %d task %s has %d attempts, not %d", s.Seq(), task.ID, n, task.Attempts)
				}
				if len(attempts) == 0 {
					continue
				}
				last := attempts[len(attempts)-1]
				if running := task.Status == team.InProgress; running != (last.How == "") || running &&
					last.Member != task.Owner {
					t.Fatalf("after record %d task %s is %s with %s, and its last attempt is %+v", s.Seq(), task.ID,
						task.Status, task.Owner, last)
				}
				if task.Status == team.Completed && last.How != "completed" {
					t.Fatalf("after record %d the completed task %s has the last attempt %+v", s.Seq(), task.ID, last)
				}
			}
		}
	})
}

// TestMentions: a message belongs to the tasks that it names, and a word of prose names none.
func TestMentions(t *testing.T) {
	var all Tasks
	seq := int64(0)
	add := func(events ...team.Event) {
		seq++
		all.Add(&team.Record{Seq: seq, At: team.Time(seq), Events: events})
	}
	for id, name := range map[string]string{"1": "lexer", "2": "port-parser", "3": ""} {
		add(&team.TaskCreated{Task: team.Task{ID: id, Name: name}})
	}
	say := func(text string) {
		add(&team.MessageSent{Message: team.Message{From: "ann", To: "bob", Type: team.TypeMessage, Body: text}})
	}
	say("The lexer is fine.")
	say("See #3, please; task lexer is next.")
	say("port-parser waits for Task 1.")
	say("#3 #3")
	for id, want := range map[string]int{"1": 2, "2": 1, "3": 2} {
		if got := all.Mentions(id, 0); len(got) != want {
			t.Errorf("task %s is named by %+v, not by %d messages", id, got, want)
		}
	}
	if got := all.Mentions("3", 5); len(got) != 1 || got[0].Text != "See #3, please; task lexer is next." {
		t.Errorf("up to record 5: %+v", got)
	}
}
