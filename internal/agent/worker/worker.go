// Package worker is a session that takes tasks from the list by itself and does them without a
// model: a shell runs their commands, and a nested team does them with members of its own.
//
// # States
//
//	looking ──has or claimed a task──▶ doing ──done──▶ completing ──accepted──▶ looking
//	looking ──no task──▶ waiting ──Give──▶ looking     completing ──a hook rejected──▶ the task fails
//	completing ──the check of until failed──▶ doing, until its rounds are used
//	asked to shut down: it finishes the task, agrees, and waits to be stopped. A task with rounds
//	left returns to the queue, and keeps the count of its rounds
//	interrupted: its task fails, from the claim on, and it begins no other before it gets a message
//	its task was released, given to another member or deleted: what does the task is ended
package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Work does the tasks of a session.
type Work struct {
	// Do does one task. failure says why it is not done; err is an error of the session, not of the
	// task. feedback says why the last result of the task was rejected; "" for a first try. Do
	// calls [Session.Arm] before it begins something that an interrupt is to end.
	Do func(ctx context.Context, s *Session, task team.Task, feedback string) (result, failure string, err error)
	// Its names what did the task, for the lines that the lead gets: its command, its team.
	Its string
}

// Session is a session that takes tasks by itself.
type Session struct {
	Spec  agent.Spec
	Team  agent.Team
	Hurry context.Context // done when what is to end has had its time

	does    Work
	cancel  context.CancelFunc
	hurryUp context.CancelFunc
	tried   map[string]int64 // the claims that were worked on, by task; owned by the goroutine work
	since   int64            // number of the last message before the present claim; owned by the goroutine work
	// the refusal of the last result, by task; owned by the goroutine work. The team keeps other
	// feedback, but not a hook's
	rejected map[string]string
	updates  chan agent.Update
	given    chan string   // ids of prompts to acknowledge
	wake     chan struct{} // holds one wake-up
	done     chan struct{}
	over     chan struct{} // closed when nothing is said any more
	saying   sync.RWMutex  // held to send to updates, and to close it

	mu        sync.Mutex
	shutdown  string                  // request to agree to
	urgent    int64                   // number of the last urgent message that ends the present task
	released  int64                   // number of the last interrupt after which a message came
	interrupt context.CancelCauseFunc // ends the present task
}

// Start starts a session.
func Start(spec agent.Spec, its agent.Team, w Work) *Session {
	ctx, cancel := context.WithCancel(context.Background())
	hurry, hurryUp := context.WithCancel(context.Background())
	s := &Session{Spec: spec, Team: its, Hurry: hurry, does: w, cancel: cancel, hurryUp: hurryUp,
		tried: map[string]int64{}, rejected: map[string]string{}, updates: make(chan agent.Update, 16),
		over:  make(chan struct{}),
		given: make(chan string, 16), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.work(ctx)
	return s
}

// Updates implements [agent.Session].
func (s *Session) Updates() <-chan agent.Update { return s.updates }

// Give implements [agent.Session].
func (s *Session) Give(ctx context.Context, p agent.Prompt) error {
	request := s.request()
	s.mu.Lock()
	if len(p.Mail) > 0 {
		s.released = request
	}
	for _, m := range p.Mail {
		if m.Type == team.TypeShutdownRequest {
			s.shutdown = m.Ref
		}
		if p.Urgent && stops(m) {
			s.urgent = max(s.urgent, m.Seq)
			if s.interrupt != nil {
				s.interrupt(errUrgent)
			}
		}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case s.given <- p.ID:
		return nil
	case <-s.done:
		return errors.New("the session has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SetAccess has nothing to change: the tasks decide what runs.
func (s *Session) SetAccess(context.Context, agent.Access) error { return errors.ErrUnsupported }

// stops reports whether the message ends the present task. A worker reads no messages, so the only
// use of an urgent one to it is to stop that. An urgent broadcast is meant for agents.
func stops(m team.Message) bool {
	return m.Type == team.TypeMessage && m.Priority == "urgent" && m.From == team.User
}

// These are the failures of a task that was ended for a person.
var (
	errInterrupted = errors.New("interrupted")
	errUrgent      = errors.New("interrupted by an urgent message of the user")
)

// ErrTaskLost is why a task is ended that is no longer its member's.
var ErrTaskLost = errors.New("its task was taken from it")

// heldLook is how often a session looks whether its task is still its member's. Until it has ended
// what does the task, another member may do the task too.
const heldLook = 100 * time.Millisecond

// Interrupt ends the present task.
func (s *Session) Interrupt(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupt != nil {
		s.interrupt(errInterrupted)
	}
	return nil
}

// request returns the number of the open request to interrupt the member; 0 for none.
func (s *Session) request() (number int64) {
	s.Team.View(func(st *team.State) {
		m, _ := st.Member(s.Spec.Member)
		number = m.Interrupt
	})
	return number
}

// interrupted reports whether the member was interrupted, and no message has come since. The team
// learns of the message a moment later.
func (s *Session) interrupted() bool {
	request := s.request()
	s.mu.Lock()
	defer s.mu.Unlock()
	return request > s.released
}

// Stop implements [agent.Session].
func (s *Session) Stop(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.hurryUp()
		<-s.done
	}
	return nil
}

// Say sends an update. If the session has ended, it sends nothing, and does not wait for a reader:
// what a killed process left may still report something then.
func (s *Session) Say(ctx context.Context, u agent.Update) {
	s.saying.RLock()
	defer s.saying.RUnlock()
	select {
	case <-s.over:
		return
	default:
	}
	select {
	case s.updates <- u:
		return
	default:
	}
	select {
	case s.updates <- u:
	case <-s.over:
	case <-ctx.Done():
	}
}

// hush lets nothing be said any more.
func (s *Session) hush() {
	close(s.over)
	s.saying.Lock()
	defer s.saying.Unlock()
	close(s.updates)
}

// Arm sets the function that ends the attempt, and calls it for an interrupt or an urgent message
// that came after the claim. A person sees the claim before this session does, and the host commits
// the work of others in between.
func (s *Session) Arm(interrupt context.CancelCauseFunc) {
	s.mu.Lock()
	s.interrupt = interrupt
	urgent := s.urgent > s.since
	s.mu.Unlock()
	switch {
	case s.interrupted(): // it was not before it looked for a task
		interrupt(errInterrupted)
	case urgent:
		interrupt(errUrgent)
	}
}

// acknowledge reports every prompt as received, until the session ends.
func (s *Session) acknowledge(ctx context.Context) {
	for {
		select {
		case id := <-s.given:
			s.Say(ctx, agent.Received{ID: id})
		case <-ctx.Done():
			return
		}
	}
}

func (s *Session) work(ctx context.Context) {
	defer s.hurryUp()
	defer close(s.done)
	defer s.hush()
	s.Say(ctx, agent.Started{})
	acknowledging, stop := context.WithCancel(ctx)
	var aside sync.WaitGroup
	aside.Go(func() { s.acknowledge(acknowledging) })
	var err error
	for err == nil && ctx.Err() == nil {
		err = s.turn(ctx)
	}
	stop()
	aside.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	select {
	case s.updates <- agent.Ended{Err: err}:
	case <-time.After(time.Second): // an absent reader must not block the session
	}
}

// turn works until there is nothing to do, and then waits for a reason to look again.
func (s *Session) turn(ctx context.Context) error {
	for {
		if done, err := s.agreeToShutdown(ctx); done || err != nil {
			break
		}
		if s.interrupted() { // a task that it holds waits too
			break
		}
		task, err := s.claim(ctx)
		if err != nil {
			return err
		}
		if task == nil {
			break
		}
		s.Say(ctx, agent.TurnStarted{Summary: "task " + task.Called() + ": " + task.Subject})
		if err := s.attempt(ctx, *task); err != nil {
			return err
		}
	}
	s.Say(ctx, agent.TurnEnded{})
	select {
	case <-s.wake:
	case <-ctx.Done():
	}
	return nil
}

func (s *Session) agreeToShutdown(ctx context.Context) (bool, error) {
	s.mu.Lock()
	request := s.shutdown
	s.mu.Unlock()
	if request == "" {
		return false, nil
	}
	_, err := s.Team.Do(ctx, &team.AnswerShutdown{Request: request, Approved: true})
	s.mu.Lock()
	s.shutdown = ""
	s.mu.Unlock()
	if team.CodeOf(err) == team.Conflict { // withdrawn in the meantime
		return false, nil
	}
	return err == nil, err
}

// claim takes the next task, or returns nil if none is ready. A task that the member holds already,
// and that was not tried here, comes first. Another member claimed it for this one, or the answer
// to a claim was lost.
func (s *Session) claim(ctx context.Context) (*team.Task, error) {
	var held []team.Task
	s.Team.View(func(st *team.State) { held, s.since = st.Held(s.Spec.Member), st.MessageSeq() })
	for i := range held {
		if t := &held[i]; s.tried[t.ID] != t.Fence {
			s.tried[t.ID] = t.Fence
			return t, nil
		}
	}
	r, err := s.Team.Do(ctx, &team.ClaimTask{})
	switch team.CodeOf(err) {
	case team.Nothing, team.NotReady, team.Exhausted, team.Finished:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	claimed, ok := team.EventIn[*team.TaskClaimed](r)
	if !ok {
		return nil, nil
	}
	var task team.Task
	s.Team.View(func(st *team.State) { task, _ = st.Task(claimed.Task) })
	task.Fence = claimed.Fence
	s.tried[task.ID] = task.Fence
	return &task, nil
}

// attempt does the task and reports its outcome. An error ends the session. A hook, a check or a
// schema that rejects the result fails the task: a command does not read feedback as an agent does,
// so only the task's own retries say whether it runs again. With until, it runs again in the same
// attempt as long as there are rounds.
func (s *Session) attempt(ctx context.Context, task team.Task) error {
	for ctx.Err() == nil {
		again, err := s.round(ctx, task)
		if !again || err != nil {
			return err
		}
		if s.leaving() {
			_, err := s.Team.Do(ctx, &team.ReleaseTask{Task: task.ID, Member: s.Spec.Member, Fence: task.Fence,
				Reason: "the member was asked to shut down"})
			if err != nil {
				return s.lost(ctx, task, err)
			}
			return nil
		}
	}
	return nil
}

// leaving reports whether the session was asked to shut down and has not answered yet.
func (s *Session) leaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shutdown != ""
}

// round does the task once. again reports whether it is to run again.
func (s *Session) round(ctx context.Context, task team.Task) (again bool, err error) {
	began := time.Now()
	held, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { s.watch(held, task) })
	output, failure, err := s.does.Do(ctx, s, task, s.feedback(task.ID))
	stop()
	beside.Wait()
	if err != nil || ctx.Err() != nil {
		return false, err
	}
	took := team.Span(time.Since(began))
	delete(s.rejected, task.ID)
	if failure == "" {
		before, _ := s.demanded(task)
		_, err = s.Team.Do(ctx, &team.CompleteTask{Task: task.ID, Fence: task.Fence, Result: output})
		switch code := team.CodeOf(err); {
		case err == nil:
			return false, s.report(ctx, fmt.Sprintf("Task %s is done; %s took %s.", titled(task), s.does.Its, took))
		case code == team.Rejected:
			failure = err.Error()
			s.rejected[task.ID] = failure
			switch again, ended, why := s.sentBack(task, before); {
			case again:
				return true, nil
			case ended: // the team has recorded the failure
				return false, s.report(ctx, fmt.Sprintf("Task %s failed; %s took %s: %s", titled(task), s.does.Its, took,
					failure))
			case why != "":
				failure = why
			default: // a hook rejected it, in words for an agent
				failure = strings.Replace(failure, " hook feedback:\n", " hook: ", 1)
			}
		case code == team.NotReady || code == team.TooLarge:
			failure = err.Error()
		default:
			return false, s.lost(ctx, task, err)
		}
	}
	return false, s.settle(ctx, task, &team.FailTask{Task: task.ID, Fence: task.Fence, Reason: failure, Result: output},
		fmt.Sprintf("Task %s failed; %s took %s: %s", titled(task), s.does.Its, took, failure))
}

// watch ends what does the task when the task is no longer the member's.
func (s *Session) watch(ctx context.Context, task team.Task) {
	tick := time.NewTicker(heldLook)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		lost := false
		s.Team.View(func(st *team.State) { // its own command may complete the task, and go on
			now, there := st.Task(task.ID)
			lost = !there || now.Fence != task.Fence || now.Status == team.Pending || now.Status == team.Deleted
		})
		if !lost {
			continue
		}
		s.mu.Lock()
		if s.interrupt != nil {
			s.interrupt(ErrTaskLost)
		}
		s.mu.Unlock()
	}
}

// feedback returns why the last result of the task was rejected; "" if it was not. It may have been
// the result of another session.
func (s *Session) feedback(task string) (why string) {
	if refusal := s.rejected[task]; refusal != "" {
		return refusal
	}
	s.Team.View(func(st *team.State) {
		if t, _ := st.Task(task); t.Rejected != nil {
			why = t.Rejected.Feedback
		}
	})
	return why
}

// demanded returns how often the check and the schema of the task have rejected its result in this
// attempt, and the task as it is now.
func (s *Session) demanded(task team.Task) (rejections int64, now team.Task) {
	s.Team.View(func(st *team.State) { now, _ = st.Task(task.ID) })
	if now.Rejected != nil {
		rejections = now.Rejected.Results + now.Rejected.Checks
	}
	return rejections, now
}

// sentBack says what follows from a rejection of the task's result, before which there were so many
// by its check and its schema: the task is done again, or the attempt has ended. why is what these
// said; "" where a hook rejected it.
func (s *Session) sentBack(task team.Task, before int64) (again, ended bool, why string) {
	rejections, now := s.demanded(task)
	switch {
	case now.Fence != task.Fence || now.Status != team.InProgress:
		return false, true, ""
	case rejections <= before:
		return false, false, ""
	}
	return now.Check != nil && now.Check.Rounds > 0 && now.Rejected.By == team.ByCheck, false, now.Rejected.Feedback
}

func (s *Session) settle(ctx context.Context, task team.Task, body team.Body, report string) error {
	if _, err := s.Team.Do(ctx, body); err != nil {
		return s.lost(ctx, task, err)
	}
	return s.report(ctx, report)
}

// lost returns nil for a claim that the team has taken away, which is no error of the session, and
// other errors unchanged.
func (s *Session) lost(ctx context.Context, task team.Task, err error) error {
	if code := team.CodeOf(err); code != "" {
		s.Say(ctx, agent.Text{Text: fmt.Sprintf("task %s: %v", task.Called(), err)})
		return nil
	}
	return err
}

// report sends a message to a lead that is a person, or a program of theirs. The team itself
// notifies an agent.
func (s *Session) report(ctx context.Context, text string) error {
	hosted := false
	s.Team.View(func(st *team.State) {
		lead, _ := st.Member(s.Spec.Lead)
		hosted = lead.Agent != team.External
	})
	if hosted {
		return nil
	}
	_, err := s.Team.Do(ctx, &team.SendMessage{To: s.Spec.Lead, Intent: "info", Body: text})
	if team.CodeOf(err) != "" {
		return nil
	}
	return err
}

// titled names the task with its subject.
func titled(t team.Task) string {
	if t.Subject == t.Name {
		return t.Name
	}
	return t.Called() + " (" + t.Subject + ")"
}
