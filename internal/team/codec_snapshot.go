package team

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// AppendSnapshot appends the state's encoding, one JSON object without a line break, to buf.
func AppendSnapshot(buf []byte, s *State) []byte { return encode(s, false, buf) }

// DecodeSnapshot reads a state that [AppendSnapshot] wrote after the record seq. The state keeps
// data, which must not change afterwards. Empty data decodes to the state before the first record.
func DecodeSnapshot(seq int64, data string) (*State, error) {
	s := &State{seq: seq}
	if data != "" {
		err := s.read(data)
		if err == nil {
			err = s.derive()
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot at %d: %w", seq, err)
		}
	}
	s.seq = seq
	return s, nil
}

// tasksBegin is how the tasks begin in a snapshot, behind everything else.
const tasksBegin = `,"` + taskCount + `":`

const taskCount = "taskCount"

func (s *State) fields(c *coder) {
	s.fieldsBeforeTasks(c)
	s.fieldsOfTasks(c)
}

func (s *State) fieldsOfTasks(c *coder) {
	reserve(c, taskCount, &s.tasks)
	objects(c, "tasks", &s.tasks)
}

// read reads the state from its encoding. Reading is a large part of a command, and the tasks are
// about half of it, so they are read beside the rest, on another processor. Where they begin is a
// guess until the rest is read: metadata of a message may look the same. A wrong guess, or another
// order of the fields, costs a second pass.
func (s *State) read(data string) error {
	at := strings.Index(data, tasksBegin)
	if at < 0 || len(data) < besideFrom || !utf8.ValidString(data) {
		return decode(s, data)
	}
	tasks := make(chan []Task)
	go func() {
		var half State
		c := coder{mode: reading, in: data, pos: at}
		if half.fieldsOfTasks(&c); !c.take('}') || c.pos != len(data) || c.err != nil {
			half.tasks = nil
		}
		tasks <- half.tasks
	}()
	half := State{seq: s.seq}
	c := coder{mode: reading, in: data, first: true}
	if c.take('{') {
		half.fieldsBeforeTasks(&c)
	}
	if half.tasks = <-tasks; half.tasks == nil || c.err != nil || c.pos != at {
		return decode(s, data)
	}
	*s = half
	return nil
}

// besideFrom is the length of an encoding, in bytes, from which another goroutine pays.
const besideFrom = 64 << 10

// fieldsBeforeTasks are all fields but the tasks. An [Outline] is read from them alone.
func (s *State) fieldsBeforeTasks(c *coder) {
	c.version()
	c.sub("team", false, &s.team)
	objects(c, "members", &s.members)
	var messages []Message
	if c.mode == writing {
		for _, seq := range sortedSeqs(s.messages) {
			messages = append(messages, *s.messages[seq])
		}
	}
	reserve(c, "messageCount", &messages)
	objects(c, "messages", &messages)
	if c.mode == reading {
		s.messages = make(map[int64]*Message, len(messages))
		for i := range messages {
			s.messages[messages[i].Seq] = &messages[i]
		}
	}
	c.int("messageSeq", &s.messageSeq)
	c.int("unsent", &s.unsent)
	c.ints("lastMail", &s.lastMail)
	c.int("requestSeq", &s.requestSeq)
	objects(c, "permissions", &s.permissions)
	strikes := s.strikeList()
	objects(c, "strikes", &strikes)
	if c.mode == reading {
		for _, one := range strikes {
			s.setStrikes(one.Key, one.Count)
		}
	}
	objects(c, "rejections", &s.rejections)
	objects(c, "answers", &s.answers)
	c.int("noteSeq", &s.noteSeq)
	objects(c, "notes", &s.notes)
	objects(c, "noteEnds", &s.noteEnds)
	objects(c, "rateLimits", &s.rateLimits)
	ids, seqs := s.recent.inOrder()
	if c.mode == reading {
		n := max(0, min(s.seq, Remembered)) // one record has one command
		ids, seqs = make([]string, 0, n), make([]int64, 0, n)
	}
	c.strs("commands", &ids)
	c.ints("commandSeqs", &seqs)
	if c.mode == reading {
		s.recent = restored(ids, seqs)
	}
}

// reserve writes the length of a list before the list, so that reading allocates once. Reading
// ignores an impossible count.
func reserve[T any](c *coder, key string, list *[]T) {
	n := int64(len(*list))
	c.int(key, &n)
	if c.mode == reading && n > 0 && n < int64(len(c.in)-c.pos)/int64(len(`{"id":"1"}`)) {
		*list = make([]T, 0, n)
	}
}

// Strike counts how often in a row hooks rejected the thing that Key names.
type Strike struct {
	Key   string
	Count int64
}

func (s *Strike) fields(c *coder) {
	c.str("key", &s.Key)
	c.int("count", &s.Count)
}

func (s *State) strikeList() []Strike {
	var list []Strike
	for _, key := range sorted(s.strikes) {
		list = append(list, Strike{key, s.strikes[key]})
	}
	return list
}

// derive computes the fields that are not part of the encoding. It refuses a snapshot that breaks
// what the other functions rely on.
func (s *State) derive() error {
	if (s.team.ID == "") != (len(s.members) == 0) || len(s.members) > 0 && s.members[0].Name != s.team.Lead {
		return errors.New("not a valid snapshot: the first member is not the lead")
	}
	s.named = make(map[string]int, len(s.members))
	for i := range s.members {
		m := &s.members[i]
		s.named[m.Name] = i
		for _, seq := range m.Inbox {
			if msg := s.messages[seq]; msg != nil {
				msg.waiting++
			}
		}
	}
	for _, seq := range s.team.Outbox {
		if msg := s.messages[seq]; msg != nil {
			msg.waiting++
		}
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		if taskIndex(t.ID) != i {
			return fmt.Errorf("not a valid snapshot: task %q is at place %d", brief(t.ID), i+1)
		}
		s.counts[statusIndex(t.Status)]++
		s.name(i)
	}
	s.notes = inOrder(s.notes)
	s.reindexAll()
	return nil
}
