package teams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cadre/internal/sys/sleep"
)

// Worker is an agent made of Go functions. Its sessions take one task at a time from the list and
// call Task for each. The lead is told when no task is left. Asked to shut down, it agrees after
// the present task. It makes no plans, so it cannot be spawned with PlanApproval.
type Worker struct {
	// Task does one task. Its result completes the task, and its error fails it. ctx ends when the
	// session must end. The task then returns to the queue, whatever Task returns, and the session
	// does not wait long for Task.
	Task func(ctx context.Context, slot *Slot, job Job) (result string, err error)
	// Mail gets the messages to the member, one at a time and never while Task runs; nil ignores
	// them. The Worker itself answers requests to shut down. An error ends the session: the member
	// has failed.
	Mail func(ctx context.Context, slot *Slot, m Message) error
}

// Job is a task that a [Worker] is to do.
type Job struct {
	Task     Task
	Claim    Claim
	Feedback string // feedback of the hook TaskCompleted, which rejected the last result; "" at first
}

// Start starts a session.
func (w Worker) Start(ctx context.Context, slot *Slot) (Session, error) {
	if w.Task == nil {
		return nil, errors.New("the worker has no function for tasks")
	}
	if may, err := slot.Writes(ctx); err != nil {
		return nil, err
	} else if !may {
		return nil, errors.New("a worker makes no plans; spawn it without plan approval")
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &workerSession{Worker: w, slot: slot, cancel: cancel, wake: make(chan struct{}, 1), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		if s.err = s.work(working); working.Err() != nil {
			s.err = nil
		}
	}()
	return s, nil
}

type workerSession struct {
	Worker
	slot   *Slot
	cancel context.CancelFunc
	wake   chan struct{} // holds one signal
	over   chan struct{} // closed when the session is over, with the reason in err
	err    error

	mu   sync.Mutex
	mail []Message

	calm time.Duration // wait before it reports again that it is idle, after a hook rejected that
}

func (s *workerSession) Deliver(ctx context.Context, mail []Message) error {
	s.mu.Lock()
	s.mail = append(s.mail, mail...)
	s.mu.Unlock()
	return s.Wake(ctx)
}

func (s *workerSession) Wake(context.Context) error {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

func (s *workerSession) Stop(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *workerSession) Wait() error {
	<-s.over
	return s.err
}

// work does the tasks, and waits for more, until ctx ends.
func (s *workerSession) work(ctx context.Context) error {
	for {
		leaving, err := s.read(ctx)
		worked := false
		if err == nil && !leaving {
			worked, err = s.next(ctx)
		}
		if err != nil {
			return err
		}
		if worked {
			continue
		}
		if !leaving {
			if err := s.idle(ctx); err != nil {
				return err
			}
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// idle reports that no task is ready. If a hook rejects that, its feedback comes as a message,
// which wakes the session; so the next report waits.
func (s *workerSession) idle(ctx context.Context) error {
	if sleep.For(ctx, s.calm) != nil {
		return ctx.Err()
	}
	s.calm = 0
	err := s.slot.Idle(ctx, "")
	if rejected, ok := errors.AsType[*Error](err); ok && rejected.Code == ErrRejected {
		s.calm = rejected.Pause
		return nil
	}
	return err
}

// read receives the mail. It reports whether the session agreed to shut down.
func (s *workerSession) read(ctx context.Context) (leaving bool, err error) {
	s.mu.Lock()
	mail := s.mail
	s.mail = nil
	s.mu.Unlock()
	for _, m := range mail {
		if m.Type == MessageShutdownRequest {
			err := s.slot.ApproveShutdown(ctx, m.Ref)
			leaving = leaving || err == nil
			if err != nil && !errors.Is(err, ErrConflict) { // it was withdrawn
				return false, err
			}
			continue
		}
		if s.Mail != nil {
			if err := s.Mail(ctx, s.slot, m); err != nil {
				return false, fmt.Errorf("message %d: %w", m.Seq, err)
			}
		}
	}
	return leaving, nil
}

// next does one task, if there is one.
func (s *workerSession) next(ctx context.Context) (worked bool, err error) {
	claim, err := s.slot.Tasks().ClaimNext(ctx)
	for _, none := range []Code{ErrNoTask, ErrNotReady, ErrBudgetExhausted, ErrFinished, ErrDenied} {
		if errors.Is(err, none) {
			return false, nil
		}
	}
	if err == nil {
		err = s.slot.Busy(ctx, "task "+claim.Task.called()+": "+claim.Task.Subject)
	}
	if err == nil {
		err = s.do(ctx, claim)
	}
	return err == nil, err
}

// do does a task and records its end. If the claim is lost, that is the team's decision and not an
// error.
func (s *workerSession) do(ctx context.Context, claim Claim) error {
	job := Job{Task: claim.Task, Claim: claim}
	for {
		result, failure := s.Task(ctx, s.slot, job)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failure != nil {
			return gone(s.slot.Tasks().Fail(ctx, claim, failure.Error(), result))
		}
		_, err := s.slot.Tasks().Complete(ctx, claim, result)
		rejected, refused := errors.AsType[*Error](err)
		switch {
		case refused && rejected.Code == ErrRejected && !rejected.Final:
			job.Feedback = rejected.Text
			if sleep.For(ctx, rejected.Pause) != nil {
				return ctx.Err()
			}
		case refused && (rejected.Code == ErrRejected || rejected.Code == ErrNotReady || rejected.Code == ErrTooLarge):
			return gone(s.slot.Tasks().Fail(ctx, claim, rejected.Text, ""))
		default:
			return gone(err)
		}
	}
}

// gone ignores a refusal: the matter was settled elsewhere.
func gone(err error) error {
	if _, refused := errors.AsType[*Error](err); refused {
		return nil
	}
	return err
}
