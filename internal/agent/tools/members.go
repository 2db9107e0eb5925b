package tools

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cadre/internal/team"
)

func (b *Set) agents() []string {
	if b.o.Agents == nil {
		return nil
	}
	return b.o.Agents()
}

// usual returns the agent of a teammate if none is named: the lead's own, if that is possible, else
// the first.
func (b *Set) usual(agents []string) (usual string) {
	b.o.Team.View(func(s *team.State) {
		m, _ := s.Member(b.o.Member)
		usual = m.Agent
	})
	if !slices.Contains(agents, usual) && len(agents) > 0 {
		return agents[0]
	}
	return usual
}

func (c *call) spawnTeammate(in *spawn) (string, error) {
	agents := c.agents()
	body := &team.SpawnMember{Name: strings.TrimSpace(in.Name.value()), Agent: in.Agent.value(),
		Model: in.Model.value(), Role: in.Role.value(), Prompt: in.Prompt.value(), PlanApproval: in.PlanApproval.on,
		Isolation: in.Isolation.value()}
	if body.Agent == "" {
		body.Agent = c.usual(agents)
	}
	switch {
	case c.o.Agents != nil && len(agents) == 0:
		return "", mistake("No teammate was added: no agent that could be one is installed here. Do the work " +
			"yourself, or tell the user.")
	case c.o.Agents != nil && !slices.Contains(agents, body.Agent):
		return "", mistake("No teammate was added: agent %s is not available here; agent is one of: %s.",
			quoted(body.Agent), strings.Join(agents, ", "))
	}
	if body.Isolation != "" && c.o.Isolates != nil {
		if err := c.o.Isolates(c.ctx); err != nil {
			return "", mistake("No teammate was added: %s cannot have a worktree of its own: %s", body.Name,
				line(err.Error(), mostOfAnError))
		}
	}
	words := fmt.Sprintf("%s joined the team (%s).", body.Name, subject(body.Agent))
	giveBack := func() {}
	if c.o.Room != nil && body.Agent != team.External {
		var err error
		if giveBack, err = c.o.Room(c.ctx, body.Name); err != nil {
			return "", err
		}
	}
	if _, err := c.do(body); err != nil {
		giveBack()
		if m, ok := c.member(body.Name); !ok || team.CodeOf(err) != team.Taken || !same(m, body) {
			return "", err
		}
		words = fmt.Sprintf("%s is on the team already, as you want it (%s).", body.Name, subject(body.Agent))
	}
	if c.o.Spawned != nil && body.Agent != team.External {
		if err := c.o.Spawned(c.ctx, body.Name); err != nil {
			return "", mistake("%s But no session of it could be started: %s\nMake the same call again to try once "+
				"more, or withdraw it with ShutdownTeammate.", words, line(err.Error(), mostOfAnError))
		}
	}
	return words, nil
}

// same reports whether the member is the one that the command would add.
func same(m team.Member, b *team.SpawnMember) bool {
	return m.Status.Running() && m.Agent == b.Agent && m.Model == b.Model && m.Role == b.Role && m.Prompt == b.Prompt &&
		m.Plan.Required == b.PlanApproval && m.Isolation == b.Isolation
}

// usualGrace is how long a teammate may take to end.
const usualGrace = time.Minute

func (c *call) shutdownTeammate(in *shutdown) (string, error) {
	name := c.name(in.Name.value())
	if in.Withdraw.on {
		if _, err := c.do(&team.WithdrawShutdown{Member: name}); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s no longer has to shut down.", name), nil
	}
	within := usualGrace
	if in.Within.d != nil {
		within = *in.Within.d
	}
	_, err := c.do(&team.RequestShutdown{Member: name, Reason: in.Reason.value(),
		Deadline: c.o.Now().Add(within)})
	if err != nil {
		m, ok := c.member(name)
		switch {
		case ok && !m.Status.Running():
			return fmt.Sprintf("%s has %s already.", name, m.Status), nil
		case ok && m.Shutdown.Answer == "approved":
			return fmt.Sprintf("%s has agreed to shut down already and is ending.", name), nil
		case ok && team.CodeOf(err) == team.Conflict && m.Shutdown.Request != "":
			return fmt.Sprintf("%s was asked to shut down already and has %s left. A smaller withinSeconds brings "+
				"that forward.", name, c.span(m.Shutdown.Deadline)), nil
		}
		return "", err
	}
	return fmt.Sprintf("%s was asked to shut down. It is ended in %s at the latest; you get a message.",
		name, team.Span(within)), nil
}

// span returns the time until then.
func (c *call) span(until team.Time) string {
	return team.Span((until.Sub(c.o.Now()) + time.Second - 1).Truncate(time.Second))
}

func (c *call) respondToShutdown(in *shutdownAnswer) (string, error) {
	m, _ := c.member(c.me)
	request := in.RequestID.value()
	if request == "" {
		request = m.Shutdown.Request
	}
	switch {
	case m.Status == team.Stopped && in.Approve.on:
		return "You have shut down already. " + after(true), nil
	case request == "" && m.Status.Running():
		return "", mistake("You were not asked to shut down. Continue your work.")
	}
	answer := map[bool]string{true: "approved", false: "rejected"}[in.Approve.on]
	_, err := c.do(&team.AnswerShutdown{Request: request, Approved: in.Approve.on, Reason: in.Reason.value()})
	if err != nil {
		if m, _ = c.member(c.me); m.Shutdown.Request == request && m.Shutdown.Answer == answer {
			return fmt.Sprintf("You have %s this request already. %s", answer, after(in.Approve.on)), nil
		}
		return "", err
	}
	return fmt.Sprintf("You have %s the request. %s", answer, after(in.Approve.on)), nil
}

func after(approved bool) string {
	if approved {
		return "End your turn; your session ends now."
	}
	return "The lead was notified. Continue to work. You are ended at the deadline, " +
		"unless the lead withdraws the request."
}

func (c *call) submitPlan(in *plan) (string, error) {
	const wait = "End your turn without changing anything; the answer comes as a message."
	var patience time.Duration
	c.view(func(s *team.State) { p := s.Team().Permissions; patience = p.Patience() })
	_, err := c.do(&team.SubmitPlan{Plan: in.Plan.value(), Deadline: c.o.Now().Add(patience)})
	if err != nil {
		if m, _ := c.member(c.me); m.Plan.State == "submitted" && m.Plan.Text == in.Plan.value() {
			return fmt.Sprintf("This plan waits for its answer already. %s", wait), nil
		}
		return "", err
	}
	return fmt.Sprintf("Your plan is with %s. %s", c.lead(), wait), nil
}

func (c *call) respondToPlan(in *planAnswer) (string, error) {
	request := in.RequestID.value()
	answer := map[bool]string{true: "approved", false: "rejected"}[in.Approve.on]
	_, err := c.do(&team.AnswerPlan{Request: request, Approved: in.Approve.on, Feedback: in.Feedback.value()})
	var of team.Member
	c.view(func(s *team.State) {
		for _, m := range s.Members() {
			if request != "" && m.Plan.Request == request {
				of = m
			}
		}
	})
	switch {
	case err == nil:
		return fmt.Sprintf("The plan of %s is %s; %s is notified.", of.Name, answer, of.Name), nil
	case team.CodeOf(err) == team.Conflict && of.Plan.State == answer && of.Plan.Feedback == in.Feedback.value():
		return fmt.Sprintf("The plan of %s was %s already, with the same feedback.", of.Name, answer), nil
	}
	return "", err
}

func (c *call) respondToPermission(in *permissionAnswer) (string, error) {
	var asked team.Permission
	c.view(func(s *team.State) {
		for _, p := range s.Permissions() {
			if p.Request == in.RequestID.value() {
				asked = p
			}
		}
	})
	if _, err := c.do(&team.AnswerPermission{Request: in.RequestID.value(), Allow: in.Allow.on,
		Reason: in.Reason.value()}); err != nil {
		return "", err
	}
	word := map[bool]string{true: "allowed", false: "denied"}[in.Allow.on]
	return fmt.Sprintf("%s of %s is %s.", subject(asked.Tool), asked.Member, word), nil
}
