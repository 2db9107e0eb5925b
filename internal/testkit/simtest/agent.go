package simtest

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// model is an agent with a model, as a real host starts it. Its sessions are processes of the
// simulated world.
type model struct{ on *host }

// worker is an agent without a model. It takes tasks by itself.
type worker struct{ model }

func (worker) TakesTasks() {}

func (m model) Start(_ context.Context, spec agent.Spec, its agent.Team) (agent.Session, error) {
	s := &service{on: m.on, spec: spec, its: its, updates: make(chan agent.Update, 256)}
	member := team.Member{}
	its.View(func(st *team.State) { member, _ = st.Member(spec.Member) })
	member.Incarnation, member.Session = spec.Incarnation, spec.Resume
	killed := m.on.of.ask("start "+spec.Member, func(t *thread) {
		s.slot = &slot{host: m.on, member: member.Name, incarnation: member.Incarnation, lease: member.Lease,
			worker: member.Agent == team.Shell, service: s}
		m.on.slots = append(m.on.slots, s.slot)
		m.on.of.services = append(m.on.of.services, s)
		s.slot.session = m.on.of.w.startSession(s.slot, member)
	})
	return s, killed
}

// service is a session as its host sees it.
type service struct {
	on      *host
	spec    agent.Spec
	its     agent.Team
	slot    *slot
	updates chan agent.Update
	closed  bool
}

func (s *service) Updates() <-chan agent.Update                  { return s.updates }
func (s *service) SetAccess(context.Context, agent.Access) error { return nil } // the gate is asked

var errOver = errors.New("the session is over")

// Interrupt ends the turn of the session at its next step. Without a turn it does nothing, as the
// real agents do.
func (s *service) Interrupt(context.Context) error {
	return s.on.of.ask("interrupt "+s.spec.Member, func(t *thread) {
		t.step()
		s.slot.session.cut = s.slot.session.works
	})
}

func (s *service) Give(_ context.Context, p agent.Prompt) (err error) {
	killed := s.on.of.ask("give "+s.spec.Member, func(t *thread) {
		t.step()
		if !s.slot.session.of.alive {
			err = errOver
			return
		}
		s.slot.session.prompts = append(s.slot.session.prompts, prompt{id: p.ID, mail: p.Mail, tasks: s.told(p.Text),
			opens: slices.Contains(s.spec.Carries(p.Text), 0)})
		s.slot.session.news.ring()
	})
	return first(killed, err)
}

var ofTask = regexp.MustCompile(`^Task (\S+) (?:is yours now: |\(.*\) is still yours)`)

// told returns the tasks that the text mentions.
func (s *service) told(text string) (tasks []team.Task) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "Task ") {
			continue
		}
		found := ofTask.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if task, ok := s.on.of.w.judge.truth.Task(found[1]); ok {
			tasks = append(tasks, task)
			s.on.of.w.judge.assigned(s.spec.Member, task.ID)
		}
	}
	return tasks
}

func (s *service) Stop(context.Context) error {
	s.on.of.ask("stop "+s.spec.Member, func(t *thread) {
		t.step()
		s.slot.session.kill()
	})
	return nil
}

// end closes the updates when the session is over or no slot reads them any more.
func (s *service) end(err error) {
	if !s.closed {
		s.closed = true
		s.on.of.w.later(func() {
			s.updates <- agent.Ended{Err: err}
			close(s.updates)
		})
	}
	if s.on.of.alive { // otherwise its watchdog ends the session
		s.on.slots = slices.DeleteFunc(slices.Clone(s.on.slots), func(other *slot) bool { return other == s.slot })
	}
}

// emit sends an update of the session to the host.
func (s *service) emit(u update) {
	var what agent.Update
	switch u.kind {
	case uStarted:
		what = agent.Started{Session: u.session, Resumed: u.session == s.spec.Resume, Seen: u.seqs}
	case uReceived:
		what = agent.Received{ID: u.prompt}
	case uTurnStarted:
		what = agent.TurnStarted{}
	case uToolFinished:
		what = agent.ToolFinished{Output: u.text}
	case uTurnEnded:
		ended := agent.TurnEnded{Text: u.text, Interrupted: u.cut}
		if u.trouble != "" {
			ended.Problem = &agent.Problem{Kind: agent.ProblemModel, Text: u.trouble}
			if u.trouble == limited {
				ended.Problem.Kind, ended.Problem.After = agent.ProblemLimit, u.limit
			}
		}
		what = ended
	case uAsked:
		answer := u.answer
		what = agent.PermissionAsked{Tool: u.tool, Input: "{}", Answer: func(allow bool, _ string) {
			s.on.of.ask("answer "+s.spec.Member, func(*thread) {
				answer.given, answer.allow = true, allow
				answer.bell.ring()
			})
		}}
	default:
		return
	}
	if !s.closed {
		s.on.of.w.later(func() { s.updates <- what })
	}
}

// act carries out a team tool call of the session. It returns the mail that is appended to the
// result. t is a thread of the session.
func (s *service) act(t *thread, body team.Body) (record *team.Record, mail []team.Message, text string, err error) {
	var done bool
	var back bell
	name, input := toolFor(body)
	s.on.of.w.start(func() {
		var r *team.Record
		var failed error
		var result string
		if name == "" || s.slot.worker {
			r, failed = s.its.Do(context.Background(), body)
		} else {
			data, _ := json.Marshal(input)
			result, _ = s.spec.Tools.Call(context.Background(), name, data)
		}
		s.on.of.ask("tool of "+s.spec.Member, func(*thread) {
			record, err, text, done = r, failed, result, true
			back.ring()
		})
	})
	for !done {
		t.await(never, &back)
	}
	j := s.on.of.w.judge
	for _, seq := range s.spec.Carries(text) {
		if l := j.mail[mailKey{s.spec.Member, seq}]; l != nil {
			mail = append(mail, l.message)
		} else if seq != 0 {
			j.fail(onceGiven, "%s reads #%d, which is not in the history", s.spec.Member, seq)
		}
	}
	return record, mail, text, err
}

// toolFor returns the tool that an agent calls to send that body, or "" if there is none.
func toolFor(body team.Body) (name string, input map[string]any) {
	switch b := body.(type) {
	case *team.SendMessage:
		return "SendMessage", map[string]any{"to": b.To, "message": b.Body, "urgent": b.Priority == "urgent"}
	case *team.AppendNote:
		return "NoteWrite", map[string]any{"key": b.Key, "text": b.Text, "append": true}
	case *team.CreateTask:
		return "TaskCreate", map[string]any{"subject": b.Subject, "description": b.Subject}
	case *team.CompleteTask:
		input := map[string]any{"taskId": b.Task, "status": "completed", "result": b.Result}
		if b.Verdict != "" {
			input["verdict"] = b.Verdict
		}
		return "TaskUpdate", input
	case *team.ReleaseTask:
		return "TaskUpdate", map[string]any{"taskId": b.Task, "status": "pending", "reason": b.Reason}
	case *team.AnswerShutdown:
		return "RespondToShutdown", map[string]any{"requestId": b.Request, "approve": b.Approved, "reason": b.Reason}
	case *team.AnswerPlan:
		return "RespondToPlan", map[string]any{"requestId": b.Request, "approve": b.Approved, "feedback": b.Feedback}
	case *team.AnswerPermission:
		return "RespondToPermission", map[string]any{"requestId": b.Request, "allow": b.Allow}
	case *team.SubmitPlan:
		return "SubmitPlan", map[string]any{"plan": b.Plan}
	case *team.ClaimTask:
		return "TaskClaim", map[string]any{"next": true}
	}
	return "", nil
}

// late runs a command after a while, without waiting for its result.
func (s *service) late(body team.Body, after time.Duration) {
	s.on.of.w.start(func() {
		time.Sleep(after)
		s.its.Do(context.Background(), body)
	})
}
