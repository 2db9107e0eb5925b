package coordinator

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cadre/internal/inspect/history"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// picture is what a client knows of a team from its events.
type picture struct {
	team     TeamConfig
	tasks    map[string]SharedTask
	notes    map[string]TeamNote
	messages []TeamMessage
	mail     map[string]*mailbox // of the members
	over     bool
}

// mailbox is what a client knows of the messages of a member.
type mailbox struct {
	delivered, read map[string]*Time // by the ids of messages
	through         int
}

// box returns the mailbox of a member.
func (p *picture) box(member string) *mailbox {
	if p.mail[member] == nil {
		p.mail[member] = &mailbox{delivered: map[string]*Time{}, read: map[string]*Time{}}
	}
	return p.mail[member]
}

// mark notes that the member read the messages that it has.
func (b *mailbox) mark(at Time) {
	for id := range b.delivered {
		if n, _ := strconv.Atoi(id); n <= b.through && b.read[id] == nil {
			b.read[id] = &at
		}
	}
}

// takeMail takes an event about messages into the picture, and reports whether it is one.
func (p *picture) takeMail(t fataler, kind string, data json.RawMessage) bool {
	switch kind {
	case teamMessage:
		p.messages = append(p.messages, payload[MessagePayload](t, data).Message)
	case messageDelivered:
		is := payload[Delivery](t, data)
		b := p.box(is.MemberID)
		for _, id := range is.MessageIDs {
			b.delivered[id] = &is.DeliveredAt
		}
		b.mark(is.DeliveredAt)
	case messageRead:
		is := payload[Reading](t, data)
		b := p.box(is.MemberID)
		b.through, _ = strconv.Atoi(is.Through)
		b.mark(is.ReadAt)
	default:
		return false
	}
	return true
}

// fataler is a test, or a run of a property.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// take takes a frame into the picture.
func (p *picture) take(t fataler, line []byte) {
	var f struct {
		Type    string
		Payload json.RawMessage
	}
	if err := json.Unmarshal(line, &f); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if err := ValidFrame(line, ""); err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	member := func() *TeamMember {
		ref := payload[MemberRef](t, f.Payload)
		i := slices.IndexFunc(p.team.Members, func(m TeamMember) bool { return m.ID == ref.MemberID })
		if i < 0 {
			t.Fatalf("the member is not known: %s", line)
		}
		return &p.team.Members[i]
	}
	switch f.Type {
	case teamCreated, teamStatusUpdate:
		p.team = payload[TeamPayload](t, f.Payload).Team
	case teammateSpawned:
		p.team.Members = append(p.team.Members, payload[MemberPayload](t, f.Payload).Member)
	case teammateIdle:
		member().Status = "idle"
	case teammateShutdown:
		member().Status = "stopped"
	case teamTaskUpdate:
		task := payload[TaskPayload](t, f.Payload).Task
		p.tasks[task.ID] = task
	case teamTaskDeleted:
		delete(p.tasks, payload[TaskRef](t, f.Payload).TaskID)
	case teamNoteUpdate:
		note := payload[NotePayload](t, f.Payload).Note
		p.notes[note.Key] = note
	case teamNoteDeleted:
		delete(p.notes, payload[NoteRef](t, f.Payload).Key)
	case teamCleanedUp:
		p.over = true
	default:
		if !p.takeMail(t, f.Type, f.Payload) {
			t.Fatalf("there is no event %s", f.Type)
		}
	}
}

func payload[T any](t fataler, data json.RawMessage) (value T) {
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return value
}

// blurred returns the team without what events about tasks say.
func blurred(c TeamConfig) TeamConfig {
	c.Members = slices.Clone(c.Members)
	for i := range c.Members {
		c.Members[i].AssignedTasks = nil
	}
	return c
}

// TestTold: a client that takes in all events knows the team as it is after each record.
func TestTold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(60).Draw(t, "choices"))
		h.Do(team.User, &team.CleanUp{Force: true})
		follow(t, h.Records)
	})
}

// follow takes the events of the records into a picture, and compares it with the state after each.
func follow(t fataler, records []*team.Record) {
	s, err := team.DecodeSnapshot(0, "")
	if err != nil {
		t.Fatal(err)
	}
	p := &picture{tasks: map[string]SharedTask{}, notes: map[string]TeamNote{}, mail: map[string]*mailbox{}}
	for _, r := range records {
		s.Apply(r)
		data := framesOf(s.Team().ID, r.Seq, eventsOf(s, r))
		for i, line := range bytes.Split(data, []byte("\n")) {
			if len(line) > 0 {
				if last := i == bytes.Count(data, []byte("\n")); last == bytes.Contains(line, []byte(`,"part":`)) {
					t.Fatalf("part %d of record %d: %s", i+1, r.Seq, line)
				}
				p.take(t, line)
			}
		}
		record := string(team.AppendRecord(nil, r))
		if now := blurred(teamOf(s)); !reflect.DeepEqual(blurred(p.team), now) {
			t.Fatalf("after %s the client knows\n%+v\nand the team is\n%+v", record, blurred(p.team), now)
		}
		tasks := tasksOf(s).Tasks
		if len(tasks) != len(p.tasks) {
			t.Fatalf("after %s the client knows %d tasks of %d", record, len(p.tasks), len(tasks))
		}
		for _, n := range s.Notes() {
			if p.notes[n.Key] != noteOf(n) || len(p.notes) != len(s.Notes()) {
				t.Fatalf("after %s the client knows the notes %+v, and there is %+v", record, p.notes, n)
			}
		}
		for _, is := range tasks {
			known := p.tasks[is.ID]
			known.UpdatedAt = is.UpdatedAt // usage and recorded work are no news
			if !reflect.DeepEqual(known, is) {
				t.Fatalf("after %s the client knows\n%+v\nand the task is\n%+v", record, known, is)
			}
		}
	}
	if int64(len(p.messages)) != s.MessageCount() || !p.over {
		t.Fatalf("the client got %d messages of %d; it knows of the end: %v", len(p.messages), s.MessageCount(), p.over)
	}
	for _, m := range s.Members() {
		p.compareMail(t, s, m.Name, records)
	}
}

// compareMail compares what the client knows of a member's messages with the member's mail.
func (p *picture) compareMail(t fataler, s *team.State, member string, records []*team.Record) {
	messages, err := history.Mail(func(yield func(*team.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}, member)
	if err != nil {
		t.Fatal(err)
	}
	of, b := s.Team(), p.box(member)
	for _, l := range messages {
		is := mailOf(&of, &l)
		i := slices.IndexFunc(p.messages, func(m TeamMessage) bool { return m.ID == is.ID })
		if i < 0 {
			t.Fatalf("the client did not get message %s to %s", is.ID, member)
		}
		known := p.messages[i]
		known.DeliveredAt, known.ReadAt = b.delivered[is.ID], b.read[is.ID]
		if !reflect.DeepEqual(known, is) {
			t.Fatalf("the client knows\n%+v\nand %s has\n%+v", known, member, is)
		}
	}
}

// TestToldDeletion: a client is told that a task was deleted, which few random histories do.
func TestToldDeletion(t *testing.T) {
	h := historytest.New()
	h.Do(team.User, &team.CreateTask{Subject: "look"})
	h.Do(team.User, &team.DeleteTask{Task: "1"})
	h.Do(team.User, &team.CleanUp{Force: true})
	if n := len(h.Records); n != 4 {
		t.Fatalf("the history has %d records", n)
	}
	follow(t, h.Records)
}

// TestToldTimes: times are ISO 8601 in UTC.
func TestToldTimes(t *testing.T) {
	h := historytest.New()
	created := string(framesOf("t1", 1, eventsOf(h.State, h.Records[0])))
	if !strings.Contains(created, `"createdAt":"2023-11-14T22:13:21.000Z"`) {
		t.Error(created)
	}
}
