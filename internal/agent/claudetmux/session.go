package claudetmux

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/sys/proc"
)

// session is one program in its terminal. One goroutine, run, follows it and is the only one that
// sends updates.
type session struct {
	spec    agent.Spec
	team    *teamfiles.Team
	tmux    []string // the beginning of every tmux command
	env     []string
	child   *proc.Child // the tmux server, which ends with the program
	words   proc.Capture
	updates chan agent.Update
	history *history
	started agent.Started
	stop    context.CancelFunc // cancels over
	over    context.Context    // done when the session is to end, and with the program
	wake    chan struct{}

	mu      sync.Mutex
	given   []agent.Prompt  // prompts in order, without a sign that the program has them
	between *between        // for some of them
	aside   map[string]bool // these, which were never in the inbox
	taken   map[string]bool // prompts that were out of the inbox when a turn ended; owned by the reader
	told    bool            // a prompt was given
	stopped bool
	working bool            // changed by the reader alone
	tools   map[string]bool // running tools; owned by the reader
}

func newSession(spec agent.Spec, t *teamfiles.Team, started agent.Started, h *history, b *between) *session {
	s := &session{spec: spec, team: t, started: started, updates: make(chan agent.Update, 64), history: h,
		wake: make(chan struct{}, 1), between: b,
		aside: map[string]bool{}, tools: map[string]bool{}}
	s.over, s.stop = context.WithCancel(context.Background())
	return s
}

func (s *session) Updates() <-chan agent.Update { return s.updates }

var errOver = errors.New("the session has ended")

// Give puts a prompt into the inbox, or into the file where a working agent gets it between two
// tools.
func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	if s.over.Err() != nil {
		return errOver
	}
	s.mu.Lock()
	s.given, s.told = append(s.given, p), true
	aside := s.working && !p.Urgent && s.between.put(p)
	s.aside[p.ID] = aside
	s.mu.Unlock()
	if aside {
		return nil
	}
	if err := s.post(ctx, p); err != nil {
		s.take(func(one agent.Prompt) bool { return one.ID == p.ID })
		return err
	}
	if p.Urgent {
		s.Interrupt(ctx)
	}
	s.look()
	return nil
}

// post puts a prompt into the inbox, for the next turn.
func (s *session) post(ctx context.Context, p agent.Prompt) error {
	return s.team.Send(ctx, s.spec.Member, teamfiles.Entry{From: teamfiles.Lead, Text: p.Text})
}

// look lets the reader read the transcript.
func (s *session) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take removes given prompts, and returns them.
func (s *session) take(which func(agent.Prompt) bool) (taken []agent.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []agent.Prompt
	for _, p := range s.given {
		if which(p) {
			taken = append(taken, p)
			delete(s.aside, p.ID)
		} else {
			rest = append(rest, p)
		}
	}
	s.given = rest
	return taken
}

func (s *session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.given) > 0
}

// SetAccess changes nothing: since 2.1.329 the program accepts no mode from its lead, and a person
// changes it at its terminal.
func (s *session) SetAccess(context.Context, agent.Access) error { return errors.ErrUnsupported }

func (s *session) tell(ctx context.Context, m teamfiles.Structured) error {
	return s.team.Send(ctx, s.spec.Member, teamfiles.Entry{From: teamfiles.Lead, Text: teamfiles.Text(m)})
}

// Interrupt presses the key that a person would press.
func (s *session) Interrupt(ctx context.Context) error { return s.call(ctx, "send-keys", "Escape") }

// Stop closes the terminal.
func (s *session) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.stop()
	return s.child.Stop(ctx, proc.Ladder{Stdin: -1})
}

// lookTime is how often the transcript is read while something is expected from it.
const lookTime = 100 * time.Millisecond

// flushes is how often the transcript is read for the last words of a turn that has ended: they are
// written a little later than the notice.
const flushes = 20

// run follows the program to its end.
func (s *session) run() {
	defer close(s.updates)
	following, stop := context.WithCancel(context.Background())
	changes := make(chan teamfiles.Change)
	var aside sync.WaitGroup
	aside.Go(func() {
		for _, c := range s.team.Follow(following) {
			select {
			case changes <- c:
			case <-following.Done():
				return
			}
		}
	})
	aside.Go(func() { // stop waiting for files: the program may have died with its lock
		<-s.child.Done()
		s.stop()
	})
	s.say(s.started)
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		every := tick.C
		if !s.working && !s.waits() {
			every = nil // nothing is expected
		}
		select {
		case c := <-changes:
			if sent, ok := c.(*teamfiles.Sent); ok && sent.To == teamfiles.Lead && !sent.Entry.Read {
				s.heard(sent.Entry)
			}
			continue
		case <-s.wake:
			s.read()
			continue
		case <-every:
			s.read()
			s.hurry()
			continue
		case <-s.child.Done():
		}
		break
	}
	stop()
	aside.Wait()
	s.read()
	s.team.Remove()
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	var err error
	if !stopped {
		err = agent.Died("claude, in its terminal,", "", exitOf(s.child), s.words.String())
	}
	s.say(agent.Ended{Err: err})
}

// say sends an update.
func (s *session) say(u agent.Update) { s.updates <- u }

// read reports what is new in the transcript.
func (s *session) read() {
	for _, e := range s.history.fresh() {
		for _, told := range e.told() {
			for _, p := range s.take(func(p agent.Prompt) bool { return carries(told, p.Text) }) {
				s.begin()
				s.say(agent.Received{ID: p.ID})
			}
		}
		for _, u := range e.says() {
			s.begin()
			s.note(u)
			s.say(u)
		}
		if e.interrupted() { // the program sends no notice of it
			s.rest()
			s.say(agent.TurnEnded{Interrupted: true, Continues: s.waits()})
		}
	}
}

// begin reports a running turn, once.
func (s *session) begin() {
	s.mu.Lock()
	began := !s.working
	s.working = true
	s.mu.Unlock()
	if began {
		s.say(agent.TurnStarted{})
	}
}

// note counts the running tools.
func (s *session) note(u agent.Update) {
	switch u := u.(type) {
	case agent.ToolStarted:
		s.tools[u.ID] = true
	case agent.ToolFinished:
		delete(s.tools, u.ID)
	}
}

// rest records that no turn is running. Prompts for a turn that are not in it are for the next
// turn.
func (s *session) rest() {
	s.mu.Lock()
	s.working = false
	s.between.takeBack()
	s.mu.Unlock()
	clear(s.tools)
	s.repost(func(agent.Prompt) bool { return true })
}

// hurry moves overdue prompts to the end of the turn if no tool is running, because none may run
// any more.
func (s *session) hurry() {
	s.mu.Lock()
	var late []agent.Prompt
	if len(s.tools) == 0 && s.between.overdue() {
		late = s.between.takeBack()
	}
	s.mu.Unlock()
	s.repost(func(p agent.Prompt) bool {
		return slices.ContainsFunc(late, func(one agent.Prompt) bool { return one.ID == p.ID })
	})
}

// repost puts prompts into the inbox that were meant for another way.
func (s *session) repost(which func(agent.Prompt) bool) {
	s.mu.Lock()
	var all []agent.Prompt
	for _, p := range s.given {
		if s.aside[p.ID] && which(p) {
			all = append(all, p)
			delete(s.aside, p.ID)
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.over, fileTime)
	defer cancel()
	for _, p := range all {
		if s.post(ctx, p) != nil {
			s.take(func(one agent.Prompt) bool { return one.ID == p.ID })
			s.say(agent.NotTaken{ID: p.ID})
		}
	}
}

// heard handles what the program wrote to its lead.
func (s *session) heard(e teamfiles.Entry) {
	s.read()
	switch m := teamfiles.Parse(e.Text).(type) {
	case *teamfiles.Idle:
		s.idle(m)
	case *teamfiles.PermissionRequest:
		s.begin()
		s.say(agent.PermissionAsked{Tool: m.Tool, Input: string(m.Input), Answer: s.permit(m)})
	case *teamfiles.PlanRequest:
		s.begin()
		s.say(agent.PlanProposed{Plan: m.Plan, Answer: s.decide(m)})
	}
	ctx, cancel := context.WithTimeout(s.over, fileTime)
	defer cancel()
	s.team.MarkDelivered(ctx, teamfiles.Lead, e.Key()) // an entry that cannot be removed is handled only once even so
}

// idle ends the turn. If the program took a prompt that its transcript does not show by now, it has
// the prompt in another form.
func (s *session) idle(m *teamfiles.Idle) {
	s.mu.Lock()
	told := s.told
	s.mu.Unlock()
	if !told || !s.working && m.Reason == "interrupted" {
		return // from its start, or reported already
	}
	for n := 0; n < flushes && s.lags(m); n++ {
		<-time.After(lookTime / 2)
		s.read()
	}
	s.rest()
	s.overtaken()
	if used := s.history.used(); used != nil {
		s.say(*used)
	}
	end := agent.TurnEnded{Text: m.Result, Interrupted: m.Reason == "interrupted"}
	if end.Text == "" {
		end.Text = s.history.last
	}
	if m.Reason == "failed" {
		end.Problem = &agent.Problem{Kind: agent.KindOf(0, m.Failure), Text: m.Failure}
	}
	end.Continues = s.waits()
	s.say(end)
}

// lags reports whether the transcript may lack something of a turn that has ended: its last words,
// or a prompt between its tools.
func (s *session) lags(m *teamfiles.Idle) bool {
	if m.Result != "" {
		return strings.TrimSpace(s.history.last) != strings.TrimSpace(m.Result)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.given, func(p agent.Prompt) bool { return s.aside[p.ID] })
}

// overtaken reports prompts that were out of the inbox a turn ago as received, even though the
// transcript lacks their words. A prompt that was taken in the middle of a turn is in the next one,
// in some form.
func (s *session) overtaken() {
	ctx, cancel := context.WithTimeout(s.over, fileTime)
	defer cancel()
	inbox, err := s.team.Waiting(ctx, s.spec.Member)
	if err != nil {
		return
	}
	for _, p := range s.take(func(p agent.Prompt) bool { return s.taken[p.ID] }) {
		s.say(agent.Received{ID: p.ID})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = map[string]bool{}
	for _, p := range s.given {
		s.taken[p.ID] = !slices.ContainsFunc(inbox, func(e teamfiles.Entry) bool { return e.Text == p.Text })
	}
}

// answer writes an answer. If that fails, the program keeps waiting until the session is stopped.
func (s *session) answer(m teamfiles.Structured) {
	ctx, cancel := context.WithTimeout(s.over, fileTime)
	defer cancel()
	s.tell(ctx, m)
}

func (s *session) permit(m *teamfiles.PermissionRequest) func(allow bool, reason string) {
	return func(allow bool, reason string) {
		response := &teamfiles.PermissionResponse{RequestID: m.RequestID, Subtype: "error", Error: reason}
		if allow {
			response.Subtype, response.Error = "success", ""
			response.Response = &teamfiles.PermissionAnswer{UpdatedInput: json.RawMessage("{}")}
		}
		go s.answer(response)
	}
}

func (s *session) decide(m *teamfiles.PlanRequest) func(approved bool, feedback string) {
	return func(approved bool, feedback string) {
		go s.answer(&teamfiles.PlanResponse{RequestID: m.RequestID, Approved: approved, Feedback: feedback,
			Timestamp: teamfiles.Stamp(time.Now())})
	}
}
