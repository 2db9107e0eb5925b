package host_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// failing is a journal that has no room for records of one kind for a while.
type failing struct {
	journal.Journal
	kind []byte
	err  error        // error of refused records; nil for errFull
	left atomic.Int64 // how many are still to be refused
	meet func()       // called before a record of the kind is written; nil for nothing
}

var errFull = errors.New("no space left on device")

func (j *failing) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	return j.Journal.Append(ctx, after, catchUp, func() ([]byte, error) {
		data, err := decide()
		if err != nil || !bytes.Contains(data, j.kind) {
			return data, err
		}
		if j.meet != nil {
			j.meet()
		}
		if j.left.Add(-1) >= 0 {
			return nil, cmp.Or(j.err, errFull)
		}
		return data, err
	})
}

// on makes the host work on a journal with that failure.
func (s *stage) on(j *failing) func(*host.Options) {
	j.Journal = s.team.Open()
	rep, err := replica.Open(s.t.Context(), j, replica.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { rep.Close() })
	return func(o *host.Options) { o.Replica = rep }
}

// TestWhatCouldNotBeRecorded checks that a session is replaced if it could not be recorded that it
// has a message. The next session is asked whether it has it, so the message is neither lost nor
// given twice.
func TestWhatCouldNotBeRecorded(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	j := &failing{kind: []byte("messages_delivered")}
	j.left.Store(1)
	sessions := modelled(s, s.on(j))
	ann := next(t, sessions)
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	first := s.do("lead", &team.SendMessage{To: "ann", Body: "one"}).Events[0].(*team.MessageSent).Message.Seq
	ann.given(t)
	again := next(t, sessions)
	if again.Resume != "s-1" || again.Incarnation != 2 {
		t.Errorf("the next session is %d and resumes %q", again.Incarnation, again.Resume)
	}
	again.started <- agent.Started{Session: "s-1", Resumed: true, Seen: []int64{0, first}}
	s.until("it is known that ann has the message", func(st *team.State) bool { return len(st.Inbox("ann")) == 0 })
	s.do("lead", &team.SendMessage{To: "ann", Body: "two"})
	for {
		p := again.given(t)
		for _, m := range p.Mail {
			if m.Body != "two" {
				t.Errorf("ann is given %q again", m.Body)
			}
		}
		if len(p.Mail) > 0 {
			return
		}
	}
}

// TestAReportThatCouldNotBeRecorded checks that a report that cannot be recorded is not forgotten,
// or the member would never be idle again.
func TestAReportThatCouldNotBeRecorded(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	j := &failing{kind: []byte(`"status":"idle"`)}
	j.left.Store(1)
	sessions := modelled(s, s.on(j))
	next(t, sessions).started <- agent.Started{Session: "s-1"}
	again := next(t, sessions)
	again.started <- agent.Started{Session: "s-1", Resumed: true}
	again.turn(t, "I go on.")
	s.untilStatus("ann", team.Idle)
}

// TestOneTaskAtATime checks that a member that was told of a task gets no other task before it has
// finished, and then the one that waits.
func TestOneTaskAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.CreateTask{Subject: "first"})
	s.do("lead", &team.CreateTask{Subject: "second"})
	ann.given(t) // it has not reported a turn yet
	s.do("lead", &team.SendMessage{To: "ann", Body: "hello"})
	for p := ann.given(t); len(p.Mail) == 0; p = ann.given(t) {
		t.Errorf("it is told meanwhile: %s", p.Text)
	}
	if task := s.task("2"); task.Status != team.Pending {
		t.Errorf("task 2 is %s by %s", task.Status, task.Owner)
	}
	ann.updates <- agent.TurnStarted{}
	ann.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"done"}`)
	ann.updates <- agent.TurnEnded{}
	for p := ann.given(t); ; p = ann.given(t) {
		if task := s.task("2"); task.Owner == "ann" && len(p.Mail) == 0 {
			return
		}
	}
}
