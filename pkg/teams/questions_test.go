package teams_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cadre/pkg/teams"
)

// ask makes the member ask for a tool. It returns a channel with the answer.
func ask(t *testing.T, m *teams.Teammate, tool string) chan teams.PermissionAnswer {
	answers := make(chan teams.PermissionAnswer, 1)
	go func() {
		a, err := m.AskPermission(limited(t), tool, `{"command":"make"}`, 20*time.Second)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	return answers
}

// questions passes a team's questions on, until the team or the test ends.
func questions(t *testing.T, team *teams.Team) chan teams.Question {
	ctx := limited(t)
	asked := make(chan teams.Question, 16)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer close(asked)
		for q, err := range team.Questions(ctx) {
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			} else if err == nil {
				asked <- q
			}
		}
	}()
	t.Cleanup(func() { <-over })
	return asked
}

// TestQuestions checks that the program gets each plan and each request that no rule decides once,
// including those from before it listened.
func TestQuestions(t *testing.T) {
	m := manage(t, teams.Options{})
	team := found(t, m, teams.TeamConfig{Name: "core", Permissions: teams.PermissionRules{Allow: []string{"Edit"}},
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External}, {Name: "bob", Agent: teams.External,
			PlanApproval: true}}})
	ann, bob := as(t, team, "ann"), as(t, team, "bob")
	before := ask(t, ann, "Bash")
	first(t, team, any1[teams.PermissionRequested])
	asked := questions(t, team)
	q := next(t, asked)
	equal(t, "question", q.Member+" "+q.Tool+" "+q.Input, `ann Bash {"command":"make"}`)
	if q.Deadline.IsZero() {
		t.Error("the question has no deadline")
	}
	ok(t, team.Approve(limited(t), q, "go on"))
	a := next(t, before)
	equal(t, "answer", string(a.Outcome)+" "+a.Reason, "allowed go on")
	want(t, team.Decline(limited(t), q, ""), teams.ErrConflict) // the first answer counts

	equal(t, "by a rule", next(t, ask(t, ann, "Edit")).Outcome, "allowed") // without a question
	for _, approve := range []bool{false, true} {
		request, err := bob.SubmitPlan(limited(t), "write")
		ok(t, err)
		q = next(t, asked)
		equal(t, "plan", q.Member+" "+q.Plan+" "+q.Request, "bob write "+request)
		if !approve {
			want(t, team.Decline(limited(t), q, ""), teams.ErrInvalid) // it must say what the plan lacks
		}
		answer(t, team, q, approve, "think of tests")
		plan, err := bob.AwaitPlan(limited(t), request)
		ok(t, err)
		equal(t, "approved", plan.Approved, approve)
		equal(t, "feedback", plan.Feedback, "think of tests")
	}
	denied := ask(t, bob, "Bash")
	ok(t, team.Decline(limited(t), next(t, asked), "no"))
	equal(t, "answer", next(t, denied).Allowed, false)
	ok(t, team.Abort(limited(t), "enough"))
	if q, more := <-asked; more {
		t.Errorf("after the end it gets the question %+v", q)
	}
}

// TestPolicies checks who is asked: the user, or the lead's agent if the policy says so. Requests
// of the lead itself go to the user.
func TestPolicies(t *testing.T) {
	for policy, user := range map[teams.PermissionPolicy]bool{"": true, teams.PolicyUser: true, teams.PolicyLead: false,
		teams.PolicyAllow: false, teams.PolicyDeny: false} {
		agent := newListener()
		m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
		team := found(t, m, teams.TeamConfig{Name: "core", Permissions: teams.PermissionRules{Policy: policy},
			Lead:    teams.MemberConfig{Agent: "listener"},
			Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External}}})
		slot := next(t, agent.slots)
		asked := questions(t, team)
		answer := ask(t, as(t, team, "ann"), "Bash")
		outcome := teams.OutcomeAllowed
		switch {
		case user:
			ok(t, team.Approve(limited(t), next(t, asked), ""))
		case policy == teams.PolicyLead:
			equal(t, "what the lead gets", next(t, agent.mail).Type, teams.MessagePermissionRequest)
			open, err := team.Permissions(limited(t))
			ok(t, err)
			ok(t, team.AllowPermission(limited(t), open[0].Request, ""))
		case policy == teams.PolicyDeny:
			outcome = teams.OutcomeDenied
		}
		equal(t, "outcome under "+string(policy), next(t, answer).Outcome, outcome)
		if policy == teams.PolicyAllow || policy == teams.PolicyDeny {
			continue
		}
		answer = ask(t, slot.Teammate, "Bash")
		q := next(t, asked)
		equal(t, "who asks", q.Member, "lead")
		ok(t, team.Approve(limited(t), q, ""))
		equal(t, "who answers the lead", next(t, answer).By, teams.User)
	}
}

// TestQuestionsEnd checks that the questions end with their context and their manager, with an
// error, and that teammates cannot read them.
func TestQuestionsEnd(t *testing.T) {
	memory := new(teams.Memory)
	m := manage(t, teams.Options{Memory: memory})
	team := create(t, m, "core", "ann")
	first := func(ctx context.Context, team *teams.Team) (last error) {
		for _, err := range team.Questions(ctx) {
			last = err
		}
		return last
	}
	cancelled, cancel := context.WithCancel(limited(t))
	cancel()
	if err := first(cancelled, team); !errors.Is(err, context.Canceled) {
		t.Errorf("the questions end with %v", err)
	}
	anns, err := manage(t, teams.Options{Memory: memory, As: "ann"}).OpenTeam(limited(t), "core")
	ok(t, err)
	want(t, first(limited(t), anns), teams.ErrDenied)
	ok(t, m.Close())
	want(t, first(limited(t), team), teams.ErrFinished)
}
