package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/agent/mcpserver"
	"cadre/internal/agent/prompts"
	"cadre/internal/agent/readonly"
	"cadre/internal/agent/tools"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// Options configure a member. Team, Name, Agent, AgentName and Spec are required. Of Spec, the
// fields Dir, Scratch, Procs, Model, Program, Args, Env and Access.Mode are used.
type Options struct {
	Team      *teamfiles.Team
	Name      string
	Agent     agent.Agent
	AgentName string
	Spec      agent.Spec

	PlanRequired bool   // no changes before the lead has approved a plan
	Color        string // color of the member's messages
	// LeadKey verifies the lead's messages; nil if the lead does not sign for this member.
	LeadKey *teamfiles.LeadKey
	Pane    string // tmux pane that the lead closes at the end: %1
	Leaves  bool   // the member leaves the roster at its end; else the lead removes it
	Slot    *Slot  // keeps what a successor needs after a kill; nil for none

	Relay    []string         // command line that serves tools from a socket, for agents that need a program
	Patience time.Duration    // how long the lead may take to answer a question; 0 for ten minutes
	Within   time.Duration    // how long the agent may take to answer a request to shut down; 0 for a minute
	Show     *sanitize.Writer // the pane; nil for none
	Input    <-chan string    // lines of the person at the pane; nil if there is none
}

const (
	defaultPatience = 10 * time.Minute
	defaultWithin   = time.Minute
	fileTimeout     = 75 * time.Second // longer than it takes until an abandoned lock is stolen
	// This timeout is for a file that nothing depends on, and for all files once the member ends.
	shortTimeout  = 3 * time.Second
	stopTimeout   = 10 * time.Second // for the orderly part of ending a session
	rosterTimeout = 10 * time.Second // for the lead to add the member that it starts
	maxFailures   = 5                // sessions in a row that end by themselves
)

// pauses are the delays before a session is started again.
var pauses = []time.Duration{2 * time.Second, 8 * time.Second, 32 * time.Second, time.Minute}

// These are the reasons why a member ends.
var (
	errShutdown  = errors.New("the lead shut it down")
	errTeamEnded = errors.New("the team has ended")
)

// member is one running member. One goroutine, run, owns everything except the replica.
type member struct {
	o       Options
	replica *replica
	wake    chan struct{} // the files changed
	gone    chan struct{} // the team's files were removed

	answers chan bool // the agent's answers to a request to shut down
	expired chan string

	tools    agent.Tools
	server   []string
	listener *mcpserver.Listener

	session agent.Session
	updates *queue
	resume  string         // the agent's own id of its session
	started bool           // the session has started, and reported what its history has
	seen    map[int64]bool // numbers of entries in its history; 0 is the prompt that the member was spawned with
	cutOff  bool           // the previous process was killed in the middle of a turn

	prompts  int                 // number of prompts so far
	given    map[string][]string // prompts that the agent has not confirmed, with the keys of their entries
	inFlight map[string]bool     // keys of entries in these prompts
	looked   bool                // the inbox has been read once
	opened   bool                // the prompt that it was spawned with has been delivered

	worked   bool   // the turn did something
	last     string // last text of the agent, or output of a command
	failures int
	retry    <-chan time.Time

	questions map[string]func(allow bool, reason string)
	asked     []string // ids of open questions, the oldest first
	proposal  func(approved bool, feedback string)

	deadline <-chan time.Time // deadline of the shutdown
}

// Work runs a member until it is shut down, its team ends, or ctx ends; only the last is an error.
// When Work returns, no process of the agent is left.
func Work(ctx context.Context, o Options) error {
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Within <= 0 {
		o.Within = defaultWithin
	}
	if o.Show == nil {
		o.Show = sanitize.NewWriter(io.Discard)
	}
	_, worker := o.Agent.(agent.Worker)
	m := &member{o: o, wake: make(chan struct{}, 1), gone: make(chan struct{}), answers: make(chan bool, 8),
		expired: make(chan string, 16),
		given:   map[string][]string{}, inFlight: map[string]bool{}, questions: map[string]func(bool, string){}}
	if o.Slot != nil {
		m.resume, m.cutOff = o.Slot.occupant.Session, o.Slot.cutOff
	}
	m.replica = &replica{team: o.Team, color: o.Color, self: self{name: o.Name, agent: o.AgentName, dir: o.Spec.Dir,
		mode: o.Spec.Access.Mode, worker: worker,
		plan: team.Plan{Required: o.PlanRequired}}, answered: func(approved bool) {
		select {
		case m.answers <- approved:
		default: // the buffer has enough answers
		}
	}}
	if err := m.enter(ctx); err != nil {
		return err
	}
	if o.PlanRequired && (team.Boundless(o.AgentName) || worker) {
		err := &team.Error{Code: team.Invalid, Text: o.AgentName + " cannot be held to a plan: cadre cannot stop it " +
			"from changing things before the plan is approved"}
		m.report(ctx, &teamfiles.Idle{Reason: "failed", Failure: err.Error(), Result: err.Error()})
		m.leave()
		return err
	}
	if err := m.serve(); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	var aside sync.WaitGroup
	aside.Go(func() { m.follow(following) })
	err := m.run(ctx)
	m.end(err)
	stop()
	aside.Wait()
	if m.listener != nil {
		m.listener.Close()
	}
	if errors.Is(err, errShutdown) || errors.Is(err, errTeamEnded) || errors.Is(err, errNotListed) {
		m.show("stopped: %v", err)
		return nil
	}
	return err
}

// enter waits until the member is on the roster. The lead may add a member shortly after it has
// started it.
func (m *member) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rosterTimeout, errNotListed)
	defer cancel()
	for {
		err := m.replica.Refresh(ctx)
		if !errors.Is(err, errNotListed) {
			return err
		}
		if err := sleep.For(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s cannot work in team %s: %w", m.o.Name, m.o.Team.Name, err)
		}
	}
}

// serve serves the team's tools.
func (m *member) serve() error {
	box := tools.New(tools.Options{Team: m.replica, Member: m.o.Name, Now: now, Refresh: m.replica.Refresh,
		Without: tools.Notes, // Claude Code's teams have none
		// mail reaches the agent by itself, also in the middle of a turn
		Mail: func(context.Context) (string, error) { return "", nil }})
	m.tools = gated{box, m.replica}
	if len(m.o.Relay) == 0 {
		return nil
	}
	socket, err := m.o.Spec.Procs.Socket()
	if err != nil {
		return err
	}
	m.listener, err = mcpserver.Listen(socket, m.tools, mcpserver.Options{Name: agent.ToolServerName}, m.admits,
		func(words string) { m.show("tools: %s", words) })
	m.server = append(slices.Clone(m.o.Relay), socket)
	return err
}

// admits keeps processes of other sessions away from the member's tools.
func (m *member) admits(c syscall.Conn) error { return m.o.Spec.Procs.Admits(c, m.o.Name) }

// gated are the team's tools, except those that the rules forbid at the moment.
type gated struct {
	*tools.Set
	replica *replica
}

func (g gated) Call(ctx context.Context, name string, input json.RawMessage) (string, bool) {
	if err := g.replica.gate(name, false); err != nil {
		return err.Error(), true
	}
	return g.Set.Call(ctx, name, input)
}

// follow wakes the member when the files change.
func (m *member) follow(ctx context.Context) {
	for _, c := range m.o.Team.Follow(ctx) {
		switch c := c.(type) {
		case *teamfiles.TeamGone:
			close(m.gone)
		case *teamfiles.Damaged:
			m.show("%v", c.Err)
		}
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

func (m *member) run(ctx context.Context) error {
	if err := m.start(ctx); err != nil {
		m.sessionFailed(ctx, err)
	}
	if err := m.look(ctx); err != nil {
		return err
	}
	for {
		var err error
		select {
		case <-m.wake:
			err = m.look(ctx)
		case <-m.retry:
			m.retry = nil
			err = m.look(ctx)
		case <-m.news():
			for _, u := range m.updates.take() {
				// the session has ended; later updates do not count
				if err = m.update(ctx, u); err != nil || m.session == nil {
					break
				}
			}
		case line, ok := <-m.o.Input:
			if !ok {
				m.o.Input = nil
				continue
			}
			m.typed(ctx, line)
		case id := <-m.expired:
			m.answer(id, false, fmt.Sprintf("no answer came within %s", team.Span(m.o.Patience)))
		case approved := <-m.answers:
			if approved {
				return errShutdown
			}
			m.deadline = nil
		case <-m.deadline:
			return errShutdown
		case <-m.gone:
			return errTeamEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// reads reports whether a call only reads files where the member works.
func (m *member) reads(tool, input string) bool {
	s := readonly.Scope{Dir: m.o.Spec.Dir, Roots: []string{m.o.Spec.Dir}, Env: append(os.Environ(), m.o.Spec.Env...)}
	return s.Unasked(tool, input)
}

// gate returns an error if the rules forbid a call.
func (m *member) gate(tool, input string) error {
	err := m.replica.gate(tool, false)
	if err != nil && m.reads(tool, input) {
		err = m.replica.gate(tool, true)
	}
	return err
}

// start starts the agent's session.
func (m *member) start(ctx context.Context) error {
	spec := m.o.Spec
	m.replica.View(func(s *team.State) {
		t := s.Team()
		me, _ := s.Member(m.o.Name)
		spec.TeamID, spec.Team, spec.Lead, spec.Role, spec.Instructions = t.ID, t.Name, t.Lead, me.Role,
			prompts.Guest(s, m.o.Name)
	})
	spec.Member, spec.Incarnation, spec.Resume, spec.Access, spec.Gate = m.o.Name, 1, m.resume,
		m.replica.access(), m.gate
	spec.Reads, spec.Env = m.reads, append([]string{agent.NoLocks}, spec.Env...)
	spec.Tools, spec.ToolServer = m.tools, m.server
	spec.Carries = func(text string) []int64 { return envelope.Carries(spec.TeamID, m.o.Name, text) }
	session, err := m.o.Agent.Start(ctx, spec, m.replica)
	if err != nil {
		return err
	}
	m.session, m.updates, m.started, m.seen = session, newQueue(session), false, nil
	return nil
}

// begin records what a new session knows from its history. Prompts are given only after that.
func (m *member) begin(ctx context.Context, u agent.Started) {
	m.show("%s is ready", m.o.AgentName)
	if u.Session != "" {
		m.resume = u.Session
	}
	m.started, m.seen = true, map[int64]bool{}
	for _, n := range u.Seen {
		m.seen[n] = true
	}
	_, worker := m.o.Agent.(agent.Worker)
	m.keep(m.cutOff && !worker) // until the session was told of the interruption
	if m.cutOff && !worker {
		m.prompt(ctx, agent.Prompt{Text: prompts.CutOff(u.Resumed)}, nil)
	}
	m.cutOff = false
	m.lookAgain()
}

// keep saves in the slot what a successor needs.
func (m *member) keep(working bool) {
	if m.o.Slot == nil {
		return
	}
	if err := m.o.Slot.keep(m.resume, working); err != nil {
		m.show("%v", err)
	}
}

// news returns the channel on which the session's updates arrive; nil without a session.
func (m *member) news() <-chan struct{} {
	if m.updates == nil {
		return nil
	}
	return m.updates.more
}

func (m *member) update(ctx context.Context, u agent.Update) error {
	switch u := u.(type) {
	case agent.Started:
		m.begin(ctx, u)
	case agent.Received:
		m.acknowledge(ctx, m.given[u.ID]...)
		delete(m.given, u.ID)
	case agent.NotTaken:
		m.returnToInbox(u.ID)
		m.lookAgain()
	case agent.TurnStarted:
		m.worked = true
		m.keep(true)
		m.active(ctx, true)
		m.show("working%s", after(": ", u.Summary))
	case agent.Text:
		m.worked, m.last = true, u.Text
		m.show("%s", sanitize.Block(u.Text))
	case agent.ToolStarted:
		m.show("● %s %s", u.Tool, u.Input)
	case agent.ToolFinished:
		if _, worker := m.o.Agent.(agent.Worker); worker {
			m.last = u.Output
			m.show("%s", sanitize.Block(u.Output))
		}
		if u.Failed {
			m.show("✗ failed")
		}
	case agent.Retrying:
		m.show("the model cannot be reached; trying again: %s", u.Problem.Text)
	case agent.TurnEnded:
		m.failures = 0
		m.turnEnded(ctx, u)
	case agent.PermissionAsked:
		m.ask(ctx, u)
	case agent.PlanProposed:
		m.propose(ctx, u)
	case agent.Ended:
		m.session, m.updates = nil, nil
		err := u.Err
		if err == nil {
			err = errors.New(m.o.AgentName + " ended by itself")
		}
		if m.failures++; m.failures >= maxFailures {
			m.sessionFailed(ctx, err)
			return fmt.Errorf("%s failed %d times in a row and is stopped: %w", m.o.Name, maxFailures, err)
		}
		m.sessionFailed(ctx, err)
	}
	return nil
}

func after(sep, words string) string {
	if words == "" {
		return ""
	}
	return sep + words
}

// turnEnded notifies the lead, with the agent's last words.
func (m *member) turnEnded(ctx context.Context, u agent.TurnEnded) {
	if u.Continues {
		return
	}
	did := m.replica.takeActivity()
	if m.worked {
		words := u.Text
		if words == "" {
			words = m.last
		}
		idle := &teamfiles.Idle{Reason: "available", Summary: did.summary, Result: words}
		switch {
		case u.Problem != nil:
			idle.Reason, idle.Failure = "failed", u.Problem.Text
			m.show("✗ %s", u.Problem.Text)
		case u.Interrupted:
			idle.Reason = "interrupted"
		}
		if did.task != "" {
			idle.CompletedTask, idle.Completed = did.task, "resolved"
		}
		m.report(ctx, idle)
	} else {
		m.active(ctx, false)
	}
	m.worked, m.last = false, ""
	m.keep(false)
	m.show("idle")
	if u.Problem != nil && u.Problem.Kind == agent.ProblemContext {
		m.renew(ctx)
	}
	m.lookAgain()
}

// renew ends a session whose context is full. The next prompt starts a fresh session without its
// history.
func (m *member) renew(ctx context.Context) {
	m.close(ctx)
	m.session, m.updates, m.resume = nil, nil, ""
	m.keep(false)
	clear(m.given)
	clear(m.inFlight)
	m.show("the context is full; a fresh session continues")
}

// report notifies the lead that the member is idle, and why.
func (m *member) report(ctx context.Context, idle *teamfiles.Idle) {
	m.active(ctx, false)
	idle.From, idle.Timestamp = m.o.Name, teamfiles.Stamp(time.Now())
	idle.Failure = sanitize.Strip(idle.Failure)
	m.try(ctx, func(ctx context.Context) error { return m.replica.notifyLead(ctx, idle) })
}

// sessionFailed handles a session that could not start, or that ended by itself. Undelivered
// prompts go to the next session.
func (m *member) sessionFailed(ctx context.Context, err error) {
	clear(m.given)
	clear(m.inFlight)
	for id := range m.questions {
		m.answer(id, false, "the session has ended")
	}
	m.proposal = nil
	m.worked, m.last = false, ""
	m.show("✗ %v", err)
	m.report(ctx, &teamfiles.Idle{Reason: "failed", Failure: err.Error()})
	if p, ok := errors.AsType[*agent.Problem](err); ok && (p.Kind == agent.ProblemMissing ||
		p.Kind == agent.ProblemLogin) {
		return // only a person can help; new mail causes another try
	}
	m.retry = time.After(pauses[min(max(m.failures, 1), len(pauses))-1])
}

// lookAgain causes another look at the mail.
func (m *member) lookAgain() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *member) active(ctx context.Context, on bool) {
	m.try(ctx, func(ctx context.Context) error {
		// nothing depends on this, and an abandoned lock blocks it for a minute
		ctx, cancel := context.WithTimeout(ctx, shortTimeout)
		defer cancel()
		return m.o.Team.SetActive(ctx, m.o.Name, on)
	})
}

// try changes a file. If that fails, the pane shows the error and the member continues.
func (m *member) try(ctx context.Context, change func(context.Context) error) bool {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), fileTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(shortTimeout, cancel) })()
	err := change(writing)
	if err != nil {
		m.show("%v", err)
	}
	return err == nil
}

// end ends the session and tells the lead why the member ended.
func (m *member) end(why error) {
	ctx := context.Background()
	if m.session != nil {
		m.close(ctx)
	}
	switch {
	case errors.Is(why, errTeamEnded) || errors.Is(why, errNotListed):
		return
	case errors.Is(why, errShutdown):
		backend := "in-process"
		if m.o.Pane != "" {
			backend = "tmux"
		}
		request := ""
		m.replica.View(func(s *team.State) { me, _ := s.Member(m.o.Name); request = me.Shutdown.Request })
		m.try(ctx, func(ctx context.Context) error {
			return m.replica.notifyLead(ctx, &teamfiles.ShutdownApproved{RequestID: request, From: m.o.Name,
				Timestamp: teamfiles.Stamp(time.Now()), PaneID: m.o.Pane, Backend: backend})
		})
	default:
		m.report(ctx, &teamfiles.Idle{Reason: "failed", Failure: m.o.Name + " has left: " + why.Error()})
	}
	m.leave()
	if m.o.Slot != nil {
		m.o.Slot.done()
	}
}

// close ends the session.
func (m *member) close(ctx context.Context) {
	m.refuse(ctx)
	friendly, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := m.session.Stop(friendly); err != nil {
		m.show("%v", err)
	}
	<-m.updates.over
	m.refuse(ctx)
}

// refuse denies every question of an ending session, and acknowledges what the session still
// received.
func (m *member) refuse(ctx context.Context) {
	const ending = "the session is ending"
	for _, u := range m.updates.take() {
		switch u := u.(type) {
		case agent.Received:
			m.acknowledge(ctx, m.given[u.ID]...)
		case agent.PermissionAsked:
			u.Answer(false, ending)
		case agent.PlanProposed:
			u.Answer(false, ending)
		}
	}
	for id := range m.questions {
		m.answer(id, false, ending)
	}
	if m.proposal != nil {
		m.proposal(false, ending)
		m.proposal = nil
	}
}

func (m *member) leave() {
	if m.o.Leaves {
		m.try(context.Background(), func(ctx context.Context) error { return m.o.Team.Leave(ctx, m.o.Name) })
	}
}

func (m *member) show(format string, args ...any) {
	m.o.Show.Printf(format+"\n", args...) // a closed pane is no reason to end
}
