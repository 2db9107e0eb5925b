package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cadre/internal/team"
)

var errKilled = errors.New("killed")

// site is a team in memory. A kill comes before or after one of its commands is recorded.
type site struct {
	*team.State
	actor string
	steps *int // commands to both teams since the last kill
	kill  int  // the step at which the kill comes; 0 for never
	after bool // the kill comes after the command was recorded
	ids   int
}

func (s *site) View(look func(*team.State)) { look(s.State) }

func (s *site) Do(_ context.Context, body team.Body) error {
	*s.steps++
	if *s.steps == s.kill && !s.after {
		return errKilled
	}
	if err := s.decide(s.actor, body); err != nil {
		return err
	}
	if *s.steps == s.kill {
		return errKilled
	}
	return nil
}

func (s *site) decide(actor string, body team.Body) error {
	s.ids++
	d, err := team.Decide(s.State, team.Command{ID: fmt.Sprint(s.ids), Actor: actor, At: 1000, Body: body})
	if err == nil && d.Record != nil {
		s.Apply(d.Record)
	}
	return err
}

func (s *site) must(t *testing.T, actor string, bodies ...team.Body) {
	t.Helper()
	for _, body := range bodies {
		if err := s.decide(actor, body); err != nil {
			t.Fatalf("%T: %v", body, err)
		}
	}
}

// mail returns the bodies of the messages that wait for the member, but for those of the team.
func (s *site) mail(member string) string {
	var bodies []string
	for _, m := range s.Inbox(member) {
		if m.From != "" {
			bodies = append(bodies, m.From+": "+m.Body)
		}
	}
	return strings.Join(bodies, ", ")
}

// returned returns the bodies of the messages that say what was not delivered.
func (s *site) returned(member string) string {
	var bodies []string
	for _, m := range s.Inbox(member) {
		if m.From == "" && strings.Contains(m.Body, "ot delivered") {
			bodies = append(bodies, m.Body)
		}
	}
	return strings.Join(bodies, ", ")
}

// pair returns a parent team with mail for its child team, and that with mail for its parent.
func pair(t *testing.T, kill int, after bool) (parent, child *site) {
	t.Helper()
	steps := new(int)
	parent = &site{State: &team.State{}, actor: "sub", steps: steps, kill: kill, after: after}
	parent.must(t, team.User, &team.CreateTeam{TeamID: "up-1", Name: "up", Dir: "/w", MaxDepth: 1, LeadAgent: "claude",
		Budget: team.Budget{Tokens: 100}},
		&team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Nested: &team.Nested{Goal: "build"}},
		&team.CreateTask{Subject: "one", Owner: "sub"})
	parent.must(t, "sub", &team.ClaimTask{}, &team.BeginChild{Task: "1", Team: "c1", Name: "c1", Lead: "claude"})
	parent.must(t, "lead", &team.SendMessage{To: "sub", Body: "first"})
	parent.must(t, team.User, &team.SendMessage{To: "sub", Body: "second"})
	child = &site{State: &team.State{}, actor: team.User, steps: steps, kill: kill, after: after}
	child.must(t, team.User, &team.CreateTeam{TeamID: "c1", Name: "c1", Dir: "/w", Depth: 1, LeadAgent: "claude",
		Parent: team.Parent{Team: "up-1", Name: "up", Member: "sub", Task: "1"}})
	child.must(t, "lead", &team.SendMessage{To: "parent", Body: "one"}, &team.SendMessage{To: "parent", Body: "two"})
	return parent, child
}

// TestMailBetweenTeamsIsKilled kills the process before and after each record of either team while
// it passes on mail, and once more on the way back. Then the next process passes on the rest: each
// message is in the other team once, in order.
func TestMailBetweenTeamsIsKilled(t *testing.T) {
	t.Parallel()
	const steps = 9 // one for the bounds, and two for each message
	for kill := range 2 * (steps + 1) {
		parent, child := pair(t, kill/2, kill%2 == 1)
		kills := 0
		for {
			err := carryDown(t.Context(), parent, child, "c1", 1000)
			if err == nil {
				err = carryUp(t.Context(), parent, child, "c1")
			}
			if err == nil {
				break
			}
			if kills++; !errors.Is(err, errKilled) || kills > 2 {
				t.Fatalf("kill %d: %v", kill, err)
			}
			if *parent.steps = 0; kills == 2 {
				parent.kill, child.kill = 0, 0
			}
		}
		if kill > 1 && kills == 0 {
			t.Errorf("kill %d did not come", kill)
		}
		if down, up := child.mail("lead"), parent.mail("lead"); down != "parent: first, parent: second" ||
			up != "sub: one, sub: two" {
			t.Errorf("kill %d: the child's lead has %q, the parent's %q", kill, down, up)
		}
		if left := parent.mail("sub"); left != "" || len(child.MailToParent()) > 0 {
			t.Errorf("kill %d: %q and %v were not passed on", kill, left, child.MailToParent())
		}
		if b := child.Team().Budget; b.Tokens != 100 {
			t.Errorf("kill %d: the child has the budget %+v", kill, b)
		}
	}
}

// TestMailToATeamThatEnds: mail that comes too late returns to who sent it, and mail of the child's
// lead arrives after its team has ended.
func TestMailToATeamThatEnds(t *testing.T) {
	t.Parallel()
	parent, child := pair(t, 0, false)
	child.must(t, team.User, &team.SetStatus{Status: team.TeamAborted})
	for range 2 {
		if err := carryDown(t.Context(), parent, child, "c1", 1000); err != nil {
			t.Fatal(err)
		}
		if err := carryUp(t.Context(), parent, child, "c1"); err != nil {
			t.Fatal(err)
		}
	}
	if down, up := child.mail("lead"), parent.mail("lead"); down != "" || up != "sub: one, sub: two" {
		t.Errorf("the child's lead has %q, the parent's %q", down, up)
	}
	parent.must(t, "sub", &team.CompleteTask{Task: "1", Fence: 1, Result: "built"})
	if left, back := parent.mail("sub"), parent.returned("lead"); left != "" || !strings.Contains(back, "> first") {
		t.Errorf("sub has %q, and the lead %q", left, back)
	}
}

// TestALeadAwaitsItsParent: the lead of a child team waits while its question is on its way and
// while an agent is about to answer it, and not for a person or for an agent that does not answer.
func TestALeadAwaitsItsParent(t *testing.T) {
	t.Parallel()
	parent, child := pair(t, 0, false)
	carry := func() {
		t.Helper()
		if err := carryDown(t.Context(), parent, child, "c1", 1000); err != nil {
			t.Fatal(err)
		}
		if err := carryUp(t.Context(), parent, child, "c1"); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(want bool, when string) {
		t.Helper()
		if got := awaits(parent, child, "c1"); got != want {
			t.Errorf("%s it waits: %v", when, got)
		}
	}
	carry()
	waits(false, "without a question")
	child.must(t, "lead", &team.SendMessage{To: "parent", Intent: "question", Body: "which port?"})
	waits(true, "while the question is on its way")
	carry()
	waits(true, "while the question is in the inbox of an agent")
	host := team.Host("h1")
	parent.must(t, host, &team.AttachMember{Member: "lead"}, &team.ReportStarted{Member: "lead"})
	parent.must(t, "lead", &team.ReceiveMessages{})
	waits(true, "while the agent works")
	parent.must(t, host, &team.ReportStatus{Member: "lead", Status: team.Idle})
	waits(false, "after the agent did not answer")
	parent.must(t, "lead", &team.SendMessage{To: "sub", Body: "8080"})
	waits(true, "while the answer is on its way")
	carry()
	waits(false, "with the answer")
}

// TestLimitsReachARunningTeam: a budget that is raised or lowered in the parent, and another mode
// of its member, reach the child team that works.
func TestLimitsReachARunningTeam(t *testing.T) {
	t.Parallel()
	parent, child := pair(t, 0, false)
	child.must(t, team.User, &team.SpawnMember{Name: "ann", Agent: "claude"})
	is := func(what string, tokens int64, mode string) {
		t.Helper()
		if err := carryDown(t.Context(), parent, child, "c1", 1000); err != nil {
			t.Fatal(err)
		}
		if ann, _ := child.Member("ann"); child.Team().Budget.Tokens != tokens || ann.PermissionMode != mode {
			t.Errorf("%s: the child has %d tokens and mode %s", what, child.Team().Budget.Tokens, ann.PermissionMode)
		}
	}
	is("at first", 100, "default")
	for _, one := range []struct {
		what   string
		body   team.Body
		tokens int64
		mode   string
	}{
		{"raised", &team.SetBudget{Budget: team.Budget{Tokens: 300}}, 300, "default"},
		{"lowered for the member", &team.SetBudget{Member: "sub", Budget: team.Budget{Tokens: 200}}, 200, "default"},
		{"lowered for the team", &team.SetBudget{Budget: team.Budget{Tokens: 50}}, 50, "default"},
		{"another mode", &team.SetMode{Member: "sub", Mode: "plan"}, 50, "plan"},
		{"the mode again", &team.SetMode{Member: "sub", Mode: "bypassPermissions"}, 50, "default"},
	} {
		parent.must(t, team.User, one.body)
		is(one.what, one.tokens, one.mode)
	}
	child.must(t, team.User, &team.SetMode{Member: "ann", Mode: "acceptEdits"})
	parent.must(t, team.User, &team.SetMode{Member: "sub", Mode: "default"})
	is("lowered again", 50, "default")
}
