package teams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Agent starts sessions of one kind. Implement it to run your own agents in a team; a simple one is
// a [Worker]. Any goroutine may call its methods.
type Agent interface {
	// Start starts a session for the member of the slot. ctx bounds only the start: the session
	// continues until it ends or is stopped. If Start returns an error, the member has failed; the
	// error says why the agent cannot work here.
	Start(ctx context.Context, slot *Slot) (Session, error)
}

// Session is one running session of a member. The manager calls its methods, from any
// goroutine and some at the same time.
//
//	Start ──▶ runs ──Stop──▶ over          Wait returns nil
//	            └───by itself──▶ over      Wait returns why: the member has failed
type Session interface {
	// Deliver gives messages to the session. It returns nil once the session has them; after an
	// error they are delivered again. The session answers a [MessageShutdownRequest] with
	// [Teammate.ApproveShutdown] or [Teammate.RejectShutdown].
	Deliver(ctx context.Context, mail []Message) error
	// Wake tells an idle session that there is a task for it.
	Wake(ctx context.Context) error
	// Stop ends the session and returns when it has ended. ctx bounds the friendly part. A session
	// that is still running a second after ctx is abandoned: the team counts it as ended, and
	// refuses everything that its slot asks for.
	Stop(ctx context.Context) error
	// Wait returns when the session has ended and has left nothing running. It is called once.
	Wait() error
}

// Slot is the place of a session in its team. As a [Teammate] it acts as its member, until another
// session of the member replaces this one.
type Slot struct {
	*Teammate

	Incarnation int64 // counts the sessions of the member, from 1
	Role        string
	Prompt      string
	Model       string
	Program     string // MemberConfig.Program; the agent decides what it means, as with Args
	Args        []string
	Resume      string   // the agent's own id of an earlier session of the member; "" for none
	Dir         string   // where it works
	Scratch     string   // folder for its own files: the session creates it, the manager removes it
	Env         []string // Options.Env, MemberConfig.Env, and the variables that name the team and the member

	reports chan agent.Update
	over    chan struct{}
}

// Started reports that the session is running. session is the id by which the agent can resume it
// later. Without this call, a session counts as running once Start has returned.
func (s *Slot) Started(session string) { s.report(agent.Started{Session: session}) }

// Used adds to the usage of the member and of the task, as the agent reports it; task may be "".
func (s *Slot) Used(task string, u Usage) { s.report(agent.Used{Task: task, Usage: team.Usage(u)}) }

// Say passes a text of the agent to Options.Logger.
func (s *Slot) Say(text string) { s.report(agent.Text{Text: text}) }

// report sends an update to the host. It drops the update once the session has ended.
func (s *Slot) report(u agent.Update) {
	select {
	case s.reports <- u:
	case <-s.over:
	}
}

// agentAdapter adapts an Agent to the host of a team.
type agentAdapter struct {
	Agent
	team *Team
}

func (p agentAdapter) Start(ctx context.Context, spec agent.Spec, _ agent.Team) (agent.Session, error) {
	slot := &Slot{Teammate: &Teammate{actor{team: p.team, name: spec.Member, incarnation: spec.Incarnation}},
		Incarnation: spec.Incarnation, Role: spec.Role, Prompt: spec.Prompt, Model: spec.Model, Program: spec.Program,
		Args: spec.Args, Resume: spec.Resume,
		Dir: spec.Dir, Scratch: spec.Scratch, Env: spec.Env, reports: make(chan agent.Update),
		over: make(chan struct{})}
	s := &sessionAdapter{slot: slot, updates: make(chan agent.Update), started: make(chan struct{}),
		ended: make(chan error, 2)}
	go s.pump()
	session, err := p.Agent.Start(ctx, slot)
	if err == nil && session == nil {
		err = errors.New("the agent gave no session")
	}
	if err != nil {
		s.ended <- err
		for range s.updates { // nothing else receives them now
		}
		return nil, err
	}
	s.Session = session
	close(s.started)
	go func() { s.ended <- session.Wait() }()
	return s, nil
}

// sessionAdapter adapts a Session to a host. It reports what happens in the session as updates. The
// last update reports its end.
type sessionAdapter struct {
	Session
	slot    *Slot
	updates chan agent.Update
	started chan struct{} // closed when Start has returned
	ended   chan error    // result of Wait, or the error that says that the session was abandoned
}

func (s *sessionAdapter) Updates() <-chan agent.Update { return s.updates }

// TakesTasks marks a session that reads the task list itself.
func (agentAdapter) TakesTasks() {}

func (s *sessionAdapter) Give(ctx context.Context, p agent.Prompt) error {
	var err error
	if len(p.Mail) > 0 {
		err = s.Session.Deliver(ctx, messagesOf(p.Mail))
	} else {
		err = s.Session.Wake(ctx)
	}
	if err == nil {
		s.slot.report(agent.Received{ID: p.ID})
	}
	return err
}

// SetAccess is for agents with permission modes of their own.
func (s *sessionAdapter) SetAccess(context.Context, agent.Access) error { return errors.ErrUnsupported }

// endWait is how long Stop waits for a session after the friendly part of its end.
const endWait = time.Second

// Stop returns when the session has ended or is abandoned. A Go function cannot be killed, and must
// not delay the end of its team.
func (s *sessionAdapter) Stop(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.Session.Stop(ctx) }()
	select {
	case <-s.slot.over:
		return nil
	case <-ctx.Done():
	}
	last := time.NewTimer(endWait)
	defer last.Stop()
	select {
	case <-s.slot.over:
		return nil
	case <-last.C:
	}
	err := fmt.Errorf("the session of %s did not end in time, and was abandoned", s.slot.name)
	select {
	case cause := <-stopped:
		err = errors.Join(err, cause)
	default:
	}
	s.ended <- err
	return err
}

// Interrupt is not supported by a Session.
func (s *sessionAdapter) Interrupt(context.Context) error { return errors.ErrUnsupported }

// pump forwards the session's reports. A session never waits for a slow host: the reports queue
// here.
func (s *sessionAdapter) pump() {
	defer close(s.updates)
	var queue []agent.Update
	said := false // the session is running
	reports, started, ended := s.slot.reports, s.started, s.ended
	for ended != nil || len(queue) > 0 {
		var out chan<- agent.Update
		var next agent.Update
		if len(queue) > 0 {
			out, next = s.updates, queue[0]
		}
		select {
		case u := <-reports:
			if _, is := u.(agent.Started); is {
				said = true
			}
			queue = append(queue, u)
		case <-started:
			if started = nil; !said {
				queue = append(queue, agent.Started{})
			}
		case out <- next:
			queue = queue[1:]
		case err := <-ended:
			reports, started, ended = nil, nil, nil
			close(s.slot.over)
			queue = append(queue, agent.Ended{Err: err})
		}
	}
}
