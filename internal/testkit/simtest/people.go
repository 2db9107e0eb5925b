package simtest

import (
	"time"

	"cadre/internal/team"
)

// person is a human: the user at the command line, or a lead that no host runs.
type person struct {
	office
	name string                       // the actor of its commands
	todo []func(p *person, t *thread) // p is the person who does it in the end
	news bell
}

func (w *world) person(name, actor string) *person { return w.personOn(name, actor, w.machines[0]) }

func (w *world) personOn(name, actor string, on *machine) *person {
	p := &person{office: office{of: w.process(name, on)}, name: actor}
	p.of.spawn("hands", p.run)
	return p
}

// run does what the person plans, one thing after the other.
func (p *person) run(t *thread) {
	p.open(t)
	for {
		for len(p.todo) == 0 {
			t.await(never, &p.news)
		}
		p.todo[0](p, t) // a person killed in the middle of it starts it over
		p.todo = p.todo[1:]
	}
}

// ask makes the person send a command. body makes the command from the team as the person sees it
// then, or returns nil for no command.
func (p *person) ask(body func(s *team.State) team.Body) {
	p.todo = append(p.todo, func(p *person, t *thread) {
		var b team.Body
		if p.replica.Refresh(forever) != nil {
			return
		}
		p.view(func(s *team.State) { b = body(s) })
		if b != nil {
			p.insist(t, team.Command{Actor: p.name, Body: b})
		}
	})
	p.news.ring()
}

// leads is the thread of a lead that is a person. It reads its mail and answers requests.
func (p *person) leads(t *thread) {
	for p.replica == nil {
		t.sleep(10 * time.Millisecond)
	}
	for {
		var mail []team.Message
		p.view(func(s *team.State) { mail = s.Inbox(p.name) })
		if len(mail) == 0 {
			if p.replica.Wait(forever, p.replica.Seq()) != nil {
				t.sleep(100 * time.Millisecond)
			}
			continue
		}
		t.sleep(time.Duration(t.rng.IntN(500)) * time.Millisecond)
		r, err := p.insist(t, team.Command{Actor: p.name, Body: &team.ReceiveMessages{}})
		if err != nil || r.Record == nil {
			continue
		}
		for _, m := range mail {
			switch m.Type {
			case team.TypePlanRequest:
				if p.of.w.calm || t.rng.IntN(3) > 0 {
					p.insist(t, team.Command{Actor: p.name, Body: &team.AnswerPlan{Request: m.Ref,
						Approved: p.of.w.calm || t.rng.IntN(2) == 0, Feedback: "see there"}})
				}
			case team.TypePermissionRequest:
				if t.rng.IntN(2) == 0 {
					p.insist(t, team.Command{Actor: p.name, Body: &team.AnswerPermission{Request: m.Ref,
						Allow: t.rng.IntN(2) == 0}})
				}
			}
		}
	}
}

// found creates the team.
func (p *person) found(plan Plan) {
	p.todo = append(p.todo, func(p *person, t *thread) {
		bodies := []team.Body{&team.CreateTeam{TeamID: "t-1", Name: "demo", Dir: "/d", LeadAgent: plan.Lead,
			Permissions: team.Permissions{Policy: plan.Policy, Timeout: 3 * time.Second}, Timing: plan.Timing}}
		for _, m := range plan.Members {
			bodies = append(bodies, &team.SpawnMember{Name: m.Name, Agent: m.Agent, Role: m.Role,
				PlanApproval: m.Plans})
		}
		for _, b := range bodies {
			p.insist(t, team.Command{Actor: team.User, Body: b})
		}
	})
	p.news.ring()
}

// answers makes the user answer open requests now and then.
func (p *person) answers(t *thread) {
	for {
		t.sleep(time.Duration(300+t.rng.IntN(2500)) * time.Millisecond)
		if t.rng.IntN(3) > 0 {
			p.ask(func(s *team.State) team.Body {
				open, rules := s.Permissions(), s.Team().Rules
				if len(open) == 0 {
					return nil
				}
				allow := t.rng.IntN(3) > 0
				switch p := open[0]; {
				case len(rules) > 0 && p.AskedAt%3 == 0:
					return &team.RemoveRule{Rule: rules[0].Rule, Member: rules[0].Member}
				case p.AskedAt%3 == 1:
					return &team.AddRule{Rule: p.Tool, Member: p.Member, Unbounded: true}
				default:
					return &team.AnswerPermission{Request: p.Request, Allow: allow}
				}
			})
		}
	}
}

// tidy makes the user answer and resolve whatever waits for a person, when the faults are over.
func (p *person) tidy(t *thread) {
	for {
		t.sleep(5 * time.Second)
		p.ask(func(s *team.State) team.Body {
			if s.Team().Status == team.TeamConsolidating {
				return &team.SetStatus{Status: team.TeamActive}
			}
			teammate := ""
			for _, m := range s.Members() {
				switch {
				case !m.Status.Running() || m.Shutdown.Request != "":
				case m.Setbacks >= team.MaxSetbacks:
					return &team.RetryMember{Member: m.Name}
				case m.Interrupt != 0 && m.Status == team.Idle && !s.Wakes(m.Name):
					return &team.SendMessage{To: m.Name, Body: "you may continue"}
				case m.Name != s.Team().Lead && m.Agent != team.Shell:
					teammate = m.Name
				}
			}
			if teammate == "" {
				return &team.SpawnMember{Name: "helper", Agent: team.Claude}
			}
			for task := range s.Tasks() {
				owner, _ := s.Member(task.Owner)
				switch {
				case task.Group() && !task.OutOfRetries(): // its tasks do it
				case task.Verifies != "" && task.Status == team.Pending:
					return &team.CompleteTask{Task: task.ID, Verdict: team.VerdictAccepted,
						Result: "a person looked at it"}
				case task.Verify != nil && task.Status == team.Pending && len(task.Blocked()) == 0 &&
					!task.OutOfRetries():
					return &team.CompleteTask{Task: task.ID, Result: "a person did it"}
				case task.OutOfRetries():
					return &team.ReleaseTask{Task: task.ID, Reason: "once more"}
				case task.Status == team.Pending && len(task.Blocked()) == 0 && task.Owner == "" && !claimable(s, task):
					return &team.UpdateTask{Task: task.ID, Owner: &teammate}
				case task.Status == team.InProgress && owner.Status == team.Idle && !s.Wakes(task.Owner) &&
					owner.Plan.State != "submitted",
					task.Status == team.InProgress && owner.Agent == team.External:
					return &team.ReleaseTask{Task: task.ID, Reason: "no member works on it"}
				case task.Status == team.Pending && owner.Agent == team.External:
					return &team.UpdateTask{Task: task.ID, Owner: &teammate}
				}
			}
			return nil
		})
	}
}

// claimable reports whether a member that takes tasks by itself may take the task.
func claimable(s *team.State, task team.Task) bool {
	for _, m := range s.Members() {
		if m.Status.Running() && m.Name != s.Team().Lead && m.Shutdown.Request == "" &&
			(task.Role == "" || task.Role == m.Role) && (m.Agent != team.Shell || task.Run != "") {
			return true
		}
	}
	return false
}
