package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// Histories of package simtest found these bugs. Saved work can be lost wherever its task returns
// to the queue.

// file writes saved work of ann, as another process would.
func (s *stage) file(w host.SavedWork) {
	s.t.Helper()
	data, err := json.Marshal(w)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.savedFile(), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) savedFile() string {
	return filepath.Join(filepath.Dir(s.hosts), "ann_checkpoint.json")
}

// untilKept waits until that output is kept with task 1.
func (s *stage) untilKept(output string) {
	s.t.Helper()
	s.until("it is kept with the task: "+output, func(st *team.State) bool {
		t, _ := st.Task("1")
		return t.Saved != nil && t.Saved.Output == output
	})
}

// idling is a session without work.
func idling(a *session) error {
	a.updates <- agent.Started{Session: "s"}
	a.updates <- agent.TurnEnded{}
	<-a.stop
	return nil
}

// TestSavedWorkOutlivesItsHost checks that a host that takes a member over keeps the work that was
// saved on the dead host.
func TestSavedWorkOutlivesItsHost(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "one"})
	dead := team.Host("h0")
	if _, err := s.Do(t.Context(), team.Command{Actor: dead, Body: &team.AttachMember{Member: "ann"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), team.Command{Actor: dead, Body: &team.ClaimTask{Member: "ann"}}); err != nil {
		t.Fatal(err)
	}
	s.file(host.SavedWork{Member: "ann", Task: "1", Output: "half"})
	s.start("h1", scripted(idling))
	s.untilKept("half")
	eventually(t, "the file is gone", func() bool { _, err := os.Stat(s.savedFile()); return os.IsNotExist(err) })
}

// TestSavedWorkOfAnotherTaskIsKept checks that a session that saves its work first keeps work on
// another task that the file has. A host whose lock was lost may have written that after the member
// was taken over.
func TestSavedWorkOfAnotherTaskIsKept(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s, _ := newTimedStage(t, quick, spawn("ann"), &team.CreateTask{Subject: "one", Role: "somebody else"})
	s.start("h1", scripted(idling))
	eventually(t, "ann saves that she has no task", func() bool { _, err := os.Stat(s.savedFile()); return err == nil })
	s.file(host.SavedWork{Member: "ann", Task: "1", Output: "half"})
	s.untilKept("half")
}

// TestNewerSavedWorkStays checks that work that was saved while older work was being kept is not
// removed with it.
func TestNewerSavedWorkStays(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "one"})
	s.file(host.SavedWork{Member: "ann", Task: "1", Output: "half", Files: []string{}})
	j := &failing{kind: []byte("work_saved")}
	var o host.Options
	j.meet = func() { s.file(host.SavedWork{Member: "ann", Task: "1", Output: "more"}) }
	s.on(j)(&o)
	if err := host.KeepSaved(t.Context(), o.Replica, s.shared(), "ann"); err != nil {
		t.Fatal(err)
	}
	w, there, err := host.ReadSaved(context.Background(), s.shared(), "ann")
	if err != nil || !there || w.Output != "more" {
		t.Errorf("the file has %+v, %t, %v", w, there, err)
	}
	j.meet = nil
	if err := host.KeepSaved(t.Context(), o.Replica, s.shared(), "ann"); err != nil {
		t.Fatal(err)
	}
	if w, there, err := host.ReadSaved(context.Background(), s.shared(), "ann"); err != nil || there {
		t.Errorf("the file has %+v, %v", w, err)
	}
	s.untilKept("more")
}

// TestNewerWorkIsKeptLast checks that saved work is recorded in the order in which it was saved,
// although several goroutines record it. Older work whose record took long does not replace newer
// work.
func TestNewerWorkIsKeptLast(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s, _ := newTimedStage(t, quick, spawn("ann"), &team.CreateTask{Subject: "one"})
	s.claimed()
	j := &lateSave{Journal: s.team.Open(), waits: make(chan struct{}), release: make(chan struct{})}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rep.Close() })
	more := make(chan struct{})
	s.start("h1", model(func(a *session) error {
		a.updates <- agent.Started{Session: "s"}
		a.updates <- agent.TurnStarted{}
		a.updates <- agent.Text{Text: "half"}
		select {
		case <-more:
			a.updates <- agent.Text{Text: "more"}
			a.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemModel, Text: "overloaded"}}
			<-a.stop
		case <-a.stop:
		}
		return nil
	}), func(o *host.Options) { o.Replica = rep })
	s.until("the lead is lost", func(st *team.State) bool { return st.Team().LeadLost != 0 })
	eventually(t, "half is saved", func() bool {
		w, _, err := host.ReadSaved(context.Background(), s.shared(), "ann")
		return err == nil && w.Task == "1" && w.Output == "half"
	})
	s.do(team.User, &team.AttachLead{Session: team.User, From: "L1", Seen: 1, Since: s.Team().LeadSince})
	select {
	case <-j.waits:
	case <-time.After(10 * time.Second):
		t.Fatal("the host recorded nothing within 10 s")
	}
	close(more)
	// A host that did not wait its turn would record more now. Only the run in which it has that
	// bug needs to see it happen, however busy the machine is.
	patience := 500 * time.Millisecond
	if os.Getenv("CADRE_MUTANT") != "" {
		patience = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kept := func(output string) bool {
		task := s.task("1")
		return task.Saved != nil && task.Saved.Output == output
	}
	for seq := s.Seq(); !kept("more") && s.Wait(ctx, seq) == nil; seq = s.Seq() {
	}
	close(j.release)
	var outputs []string
	patient, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	for r, err := range s.Watch(patient, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Events {
			if saved, ok := e.(*team.WorkSaved); ok {
				outputs = append(outputs, saved.Saved.Output)
			}
		}
		outputs = slices.Compact(outputs) // the same work may be recorded again before there is more
		if len(outputs) == 2 {
			break
		}
	}
	if !slices.Equal(outputs, []string{"half", "more"}) {
		t.Errorf("%q are kept with the task, in this order", outputs)
	}
}

// lateSave is a journal in which the first record of saved work takes long.
type lateSave struct {
	journal.Journal
	once           atomic.Bool
	waits, release chan struct{}
}

func (j *lateSave) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	held := false
	seq, err := j.Journal.Append(ctx, after, catchUp, func() ([]byte, error) {
		data, err := decide()
		if held = bytes.Contains(data, []byte("work_saved")) && j.once.CompareAndSwap(false, true); held {
			return nil, nil
		}
		return data, err
	})
	if !held {
		return seq, err
	}
	close(j.waits)
	<-j.release
	return j.Journal.Append(ctx, after, catchUp, decide)
}

// TestSavedWorkOutlivesItsSession checks that a session that ends by itself leaves its saved work
// with its task, even if that cannot be recorded at once.
func TestSavedWorkOutlivesItsSession(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, failures := range map[string]int64{"at once": 0, "not at once": 1} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTimedStage(t, quick, spawn("ann"), &team.CreateTask{Subject: "one"})
			s.claimed()
			j := &failing{kind: []byte("work_saved")}
			j.left.Store(failures)
			s.start("h1", model(func(a *session) error {
				a.updates <- agent.Started{Session: "s"}
				a.updates <- agent.Text{Text: "half"}
				for {
					if w, there, err := host.ReadSaved(context.Background(), s.shared(), "ann"); err == nil && there &&
						w.Task == "1" {
						return errors.New("the agent fell over")
					}
					select {
					case <-a.stop:
						return nil
					case <-time.After(10 * time.Millisecond):
					}
				}
			}), s.on(j))
			s.untilKept("half")
		})
	}
}

// TestAYieldThatCouldNotBeRecorded checks that a task that a teammate without a lead could not
// return is returned later.
func TestAYieldThatCouldNotBeRecorded(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for _, kind := range []string{"work_saved", "task_released"} {
		t.Run(kind, func(t *testing.T) {
			s, _ := newTimedStage(t, quick, spawn("ann"), &team.CreateTask{Subject: "one"})
			s.claimed()
			j := &failing{kind: []byte(kind)}
			j.left.Store(1)
			s.start("h1", scripted(func(a *session) error {
				a.updates <- agent.Started{Session: "s"}
				a.updates <- agent.Text{Text: "half"}
				if _, err := a.Do(context.Background(), &team.ReportStatus{Member: a.Member, Status: team.Blocked,
					Summary: "waits for an answer"}); err != nil {
					t.Error(err)
				}
				<-a.stop
				return nil
			}), s.on(j))
			s.until("the task is back, with what was done of it", func(st *team.State) bool {
				task, _ := st.Task("1")
				return task.Status == team.Pending && task.Owner == "" && task.Saved != nil &&
					task.Saved.Output == "half"
			})
		})
	}
}

// TestAClaimAfterTheTurn checks that an idle session is told of a task that was claimed for it, by
// the lead or by a late call of its own. A worker is woken for it.
func TestAClaimAfterTheTurn(t *testing.T) {
	t.Parallel()
	// A task out of retries can be claimed only by its id.
	outOfRetries := []team.Body{spawn("ann"), &team.CreateTask{Subject: "look there"},
		&team.ClaimTask{Task: "1", Member: "ann"}, &team.FailTask{Task: "1", Member: "ann"}}
	late := func(s *stage, a *session) {
		if _, err := a.Do(t.Context(), &team.ClaimTask{Task: "1"}); err != nil {
			s.t.Error(err)
		}
	}
	lead := func(s *stage, a *session) { s.do("lead", &team.ClaimTask{Task: "1", Member: "ann"}) }
	for name, claim := range map[string]func(*stage, *session){"by the lead": lead, "late": late} {
		t.Run("a model, "+name, func(t *testing.T) {
			s := newStage(t, outOfRetries...)
			ann := next(t, modelled(s))
			ann.started <- agent.Started{Session: "s-1"}
			s.untilStatus("ann", team.Idle)
			claim(s, ann)
			p := ann.turn(t, "", func() {
				ann.call(t, "TaskUpdate",
					`{"taskId":"1","status":"completed","result":"done"}`)
			})
			if !strings.Contains(p.Text, "Task 1 is yours now: \"look there\"") {
				t.Errorf("it was told %q", p.Text)
			}
			s.untilStatus("ann", team.Idle)
		})
		t.Run("a worker, "+name, func(t *testing.T) {
			s := newStage(t, outOfRetries...)
			sessions := make(chan *session, 1)
			s.start("h1", scripted(func(a *session) error {
				a.updates <- agent.Started{Session: "s"}
				a.updates <- agent.TurnEnded{}
				sessions <- a
				<-a.stop
				return nil
			}))
			ann := next(t, sessions)
			s.untilStatus("ann", team.Idle)
			claim(s, ann)
			select {
			case <-ann.wake:
			case <-time.After(10 * time.Second):
				t.Error("ann was not woken within 10 s")
			}
		})
	}
}

// heldUp is a journal whose next append, once holds is set, begins only when release is closed.
type heldUp struct {
	journal.Journal
	holds          atomic.Bool
	waits, release chan struct{}
}

func (h *heldUp) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	if h.holds.CompareAndSwap(true, false) {
		close(h.waits)
		<-h.release
	}
	return h.Journal.Append(ctx, after, catchUp, decide)
}

// TestAClaimOfBoth checks a session that claims a task while its host is about to claim the same
// one for it. The session is told of the task. When the host sees the claim is left to chance here.
// Without the reminder the next look would tell the session, so histories of package simtest would
// not show the fault.
func TestAClaimOfBoth(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	j := &heldUp{Journal: s.team.Open(), waits: make(chan struct{}), release: make(chan struct{})}
	ann := next(t, modelled(s, func(o *host.Options) {
		rep, err := replica.Open(t.Context(), j, replica.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rep.Close() })
		o.Replica = rep
	}))
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	j.holds.Store(true)
	s.do("lead", &team.CreateTask{Subject: "look there"})
	select {
	case <-j.waits:
	case <-time.After(10 * time.Second):
		t.Fatal("the host claimed no task within 10 s")
	}
	s.do("ann", &team.ClaimTask{Task: "1"})
	close(j.release)
	p := ann.turn(t, "", func() { ann.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"done"}`) })
	if !strings.Contains(p.Text, "Task 1 is yours now: \"look there\"") {
		t.Errorf("it was told %q", p.Text)
	}
	s.untilStatus("ann", team.Idle)
}

// claimedIn is a journal that does something right after the first claim in it, before the claimer
// knows of that.
type claimedIn struct {
	journal.Journal
	once sync.Once
	then func()
}

func (c *claimedIn) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	claims := false
	seq, err := c.Journal.Append(ctx, after, catchUp, func() ([]byte, error) {
		data, err := decide()
		claims = err == nil && strings.Contains(string(data), "task_claimed")
		return data, err
	})
	if claims && err == nil {
		c.once.Do(c.then)
	}
	return seq, err
}

// TestATaskThatIsGoneBeforeItIsGiven checks that a member is not given a task that was deleted
// before the member was told. The session is told nothing, and stays idle. In a repository the host
// makes snapshots between the claim and its message, so it learns of the deletion in time.
func TestATaskThatIsGoneBeforeItIsGiven(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, gone := range map[string]func(*stage){
		"deleted":   func(s *stage) { s.do(team.User, &team.DeleteTask{Task: "1"}) },
		"completed": func(s *stage) { s.do("lead", &team.CompleteTask{Task: "1", Result: "by hand"}) },
		"taken": func(s *stage) {
			s.do("lead", &team.ReleaseTask{Task: "1"})
			s.do("lead", &team.ClaimTask{Task: "1", Member: "lead"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, base := dirty(t)
			s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: dir, Base: base}, spawn("ann"))
			over := make(chan struct{})
			j := &claimedIn{Journal: s.team.Open(), then: func() { gone(s); close(over) }}
			ann := next(t, modelled(s, func(o *host.Options) {
				rep, err := replica.Open(t.Context(), j, replica.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { rep.Close() })
				o.Replica = rep
			}))
			ann.started <- agent.Started{Session: "s-1"}
			s.untilStatus("ann", team.Idle)
			s.do("lead", &team.CreateTask{Subject: "look there"})
			<-over
			s.untilStatus("ann", team.Idle)
			s.do(team.User, &team.SendMessage{To: "ann", Body: "are you there?"})
			for text := ""; !strings.Contains(text, "are you there?"); {
				if text = ann.given(t).Text; strings.Contains(text, "is yours") {
					t.Errorf("it was told %q", text)
				}
			}
		})
	}
}

// TestAHostThatCanRecordNothing checks that a host that can record nothing any more ends, and
// another host takes its members. It must not keep them when the only thing to record is the loss
// of the lead, which it only looks for.
func TestAHostThatCanRecordNothing(t *testing.T) {
	t.Parallel()
	s, _ := newTimedStage(t, quick, spawn("ann"))
	j := &failing{kind: []byte("lead_lost"), err: fmt.Errorf("nothing was written: %w", journal.ErrReopen)}
	j.left.Store(1 << 30)
	h := s.start("h1", scripted(idling), s.on(j))
	select {
	case err := <-h.over:
		if !errors.Is(err, journal.ErrReopen) {
			t.Errorf("it ends with %v", err)
		}
		h.over <- nil
	case <-time.After(20 * time.Second):
		t.Error("the host did not end within 20 s")
	}
	s.start("h2", scripted(idling))
	s.until("ann is on another host", func(st *team.State) bool {
		ann, _ := st.Member("ann")
		return ann.Host == "h2" && st.Team().LeadLost != 0
	})
}

// TestACallThatFindsTheJournalBroken checks that a host also ends if a member's session finds that
// out.
func TestACallThatFindsTheJournalBroken(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	sessions := make(chan *session, 1)
	j := &failing{kind: []byte("task_created"), err: fmt.Errorf("nothing was written: %w", journal.ErrReopen)}
	j.left.Store(1 << 30)
	h := s.start("h1", scripted(func(a *session) error {
		a.updates <- agent.Started{Session: "s"}
		a.updates <- agent.TurnEnded{}
		sessions <- a
		<-a.stop
		return nil
	}), s.on(j))
	ann := next(t, sessions)
	s.untilStatus("ann", team.Idle)
	if _, err := ann.Do(t.Context(), &team.CreateTask{Subject: "look there"}); !errors.Is(err, journal.ErrReopen) {
		t.Errorf("the call ends with %v", err)
	}
	select {
	case err := <-h.over:
		if !errors.Is(err, journal.ErrReopen) {
			t.Errorf("the host ends with %v", err)
		}
		h.over <- nil
	case <-time.After(20 * time.Second):
		t.Error("the host did not end within 20 s")
	}
}

// deafened is a journal that reports no changes once it is deaf.
type deafened struct {
	journal.Journal
	deaf *atomic.Bool
}

func (d deafened) Wait(ctx context.Context, after int64) error {
	if err := d.Journal.Wait(ctx, after); err != nil || !d.deaf.Load() {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestAReplacedSessionGetsNoMail checks that a session that was replaced, and whose host has not
// learned of that, gets no mail with the results of its tools. The mail is for the next session.
func TestAReplacedSessionGetsNoMail(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	var deaf atomic.Bool
	ann := next(t, modelled(s, func(o *host.Options) {
		rep, err := replica.Open(t.Context(), deafened{s.team.Open(), &deaf}, replica.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rep.Close() })
		o.Replica = rep
	}))
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	deaf.Store(true)
	s.do("lead", &team.SendMessage{To: "ann", Body: "the first", Priority: "normal"})
	if text := ann.call(t, "TaskList", `{}`); !strings.Contains(text, "the first") {
		// the call also showed it to the host, which was faster
		if p := ann.given(t); !strings.Contains(p.Text, "the first") {
			t.Errorf("the present session is told %q, and then %q", text, p.Text)
		}
	}
	if _, err := s.Do(t.Context(), team.Command{Actor: team.Host("h2"), Body: &team.AttachMember{Member: "ann",
		From: "h1"}}); err != nil {
		t.Fatal(err)
	}
	s.do("lead", &team.SendMessage{To: "ann", Body: "the second"})
	if text := ann.call(t, "TaskList", `{}`); strings.Contains(text, "the second") {
		t.Errorf("the session that was replaced is told %q", text)
	}
}

// TestAClaimAfterATrouble checks that a session whose last turn failed is told too, once it may be
// tried again.
func TestAClaimAfterATrouble(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "look there"}, &team.ClaimTask{Task: "1", Member: "ann"},
		&team.FailTask{Task: "1", Member: "ann"})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.SendMessage{To: "ann", Body: "hello"})
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemModel, Text: "overloaded"}}
	s.untilStatus("ann", team.Blocked)
	s.do("lead", &team.ClaimTask{Task: "1", Member: "ann"})
	s.do("lead", &team.RetryMember{Member: "ann"})
	if p := ann.given(t); !strings.Contains(p.Text, "Task 1 is yours now: \"look there\"") {
		t.Errorf("it was told %q", p.Text)
	}
}
