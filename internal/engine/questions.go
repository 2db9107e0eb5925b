package engine

import "cadre/internal/team"

// Question waits for the user's answer: a member asks to use a tool or, where the user leads,
// submits a plan.
type Question struct {
	Request  string // its id
	Member   string // who asks
	Tool     string // "" for a plan
	Input    string // the tool's input, as JSON
	Plan     string // "" for a tool
	Deadline team.Time
}

// Questions returns the questions that wait for the user. It leaves out what the rules answer, and
// what an agent that leads decides.
func Questions(s *team.State) (open []Question) {
	if !s.Exists() {
		return nil
	}
	for _, p := range s.Permissions() {
		if s.AsksUser(p.Member) {
			open = append(open, Question{Request: p.Request, Member: p.Member, Tool: p.Tool, Input: p.Input,
				Deadline: p.Deadline})
		}
	}
	if lead, _ := s.Member(s.Team().Lead); lead.Agent != team.External {
		return open // the agent that leads decides on plans
	}
	for _, m := range s.Members() {
		if m.Plan.State == "submitted" && m.Status.Running() {
			open = append(open, Question{Request: m.Plan.Request, Member: m.Name, Plan: m.Plan.Text,
				Deadline: m.Plan.Deadline})
		}
	}
	return open
}

// IsIn reports whether the record asks this question.
func (q Question) IsIn(r *team.Record) bool {
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.PermissionRequested:
			if e.Permission.Request == q.Request {
				return true
			}
		case *team.PlanSubmitted:
			if e.Request == q.Request {
				return true
			}
		}
	}
	return false
}
