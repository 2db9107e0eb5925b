package teams_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cadre/pkg/teams"
)

func TestMessaging(t *testing.T) {
	ctx := limited(t)
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team := create(t, m, "core", "ann", "bob")
	_, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: "cat", Agent: "listener"})
	ok(t, err)
	next(t, agent.slots)

	ok(t, send(ctx, m, "ann", "bob", "one"))
	ok(t, broadcast(ctx, m, "ann", "two"))
	ok(t, send(ctx, m, teams.User, "bob", "three"))
	sent, err := team.Mail().Send(ctx, teams.Message{To: "bob", Body: "four", Intent: "question", Priority: "urgent",
		Metadata: map[string]json.RawMessage{"ticket": []byte("7")}})
	ok(t, err)
	equal(t, "seq", sent.Seq, 4)
	equal(t, "metadata", string(sent.Metadata["ticket"]), "7")

	bob := as(t, team, "bob").Mail()
	peeked, err := bob.Peek(ctx)
	ok(t, err)
	mail, err := bob.Receive(ctx)
	ok(t, err)
	var got []string
	for _, m := range mail {
		got = append(got, fmt.Sprint(m.Seq, m.From, " ", m.Type, " ", m.Body))
	}
	equal(t, "mail", strings.Join(got, ", "), "1ann message one, 2ann broadcast two, 3@user message three, 4lead "+
		"message four")
	equal(t, "what was to be seen before", len(peeked), 4)
	again, err := bob.Receive(ctx)
	ok(t, err)
	equal(t, "a second time", len(again), 0)
	ok(t, bob.MarkRead(ctx, 4))
	want(t, bob.MarkRead(ctx, 5), teams.ErrInvalid)
	equal(t, "delivered when it was received", !peeked[3].DeliveredAt.IsZero() || mail[3].DeliveredAt.IsZero() ||
		!mail[3].ReadAt.IsZero(), false)
	past, err := bob.History(ctx)
	ok(t, err)
	equal(t, "history", fmt.Sprint(len(past), past[3].DeliveredAt.Equal(mail[3].DeliveredAt), past[3].ReadAt.IsZero(),
		string(past[3].Metadata["ticket"])), "4 true false7")
	own, err := as(t, team, "ann").Mail().Receive(ctx)
	ok(t, err)
	equal(t, "the sender's own broadcast", len(own), 0)
	equal(t, "auto-delivery", next(t, agent.mail).Body, "two")

	want(t, send(ctx, m, "ann", "dog", "?"), teams.ErrNotFound)
	want(t, send(ctx, m, "dog", "ann", "?"), teams.ErrNotFound)
	_, err = bob.Send(ctx, teams.Message{To: "ann", Body: strings.Repeat("x", 1<<20+1)})
	want(t, err, teams.ErrTooLarge)

	waited := make(chan []teams.Message, 1)
	go func() {
		mail, _ := bob.Wait(limited(t))
		waited <- mail
	}()
	ok(t, send(ctx, m, "cat", "bob", "five"))
	equal(t, "waited for", next(t, waited)[0].Body, "five")
	for i := range 3 {
		ok(t, send(ctx, m, "", "bob", fmt.Sprint(i)))
	}
	for m, err := range bob.All(ctx) {
		ok(t, err)
		if m.Body == "1" {
			break
		}
	}
	rest, err := bob.Receive(ctx)
	ok(t, err)
	equal(t, "what was left", len(rest), 1)

	ok(t, send(ctx, m, "ann", "bob", "lost?"))
	_, err = team.RequestShutdown(ctx, teams.ShutdownRequest{Member: "bob"})
	ok(t, err)
	returned := await(t, as(t, team, "ann").Mail(), teams.MessageSystem)
	if !strings.Contains(returned.Body, "lost?") {
		t.Errorf("the returned mail of the member that ended is %q", returned.Body)
	}
}

func TestIdleNotification(t *testing.T) {
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team := create(t, m, "core", "ann")
	ok(t, as(t, team, "ann").Idle(limited(t), ""))
	equal(t, "notice", await(t, team.Mail(), teams.MessageIdle).Body, "ann is idle: no task is ready for it.")
	_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "bob", Agent: "listener"})
	ok(t, err)
	bob := next(t, agent.slots)
	ok(t, bob.Idle(limited(t), "I looked at everything"))
	notice := await(t, team.Mail(), teams.MessageIdle)
	equal(t, "notice", notice.From+": "+notice.Body, "bob: I looked at everything")
	add(t, team.Tasks(), "one more") // this wakes idle members
	equal(t, "woken", next(t, agent.woken), "bob")
	ok(t, bob.Busy(limited(t), "looking"))
	is, err := bob.Member(limited(t))
	ok(t, err)
	equal(t, "status", fmt.Sprint(is.Status, ": ", is.Summary), "active: looking")
}

func TestPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		m := manage(t, teams.Options{})
		team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "core",
			Lead: teams.MemberConfig{PermissionMode: teams.ModeAcceptEdits}})
		ok(t, err)
		is, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: "ann", Agent: teams.External})
		ok(t, err)
		equal(t, "mode from the lead", is.PermissionMode, teams.ModeAcceptEdits)
		ann := as(t, team, "ann")

		ask := func(who *teams.Teammate) chan teams.PermissionAnswer {
			answered := make(chan teams.PermissionAnswer, 1)
			go func() {
				a, err := who.AskPermission(ctx, "Bash", `{"command":"make"}`, time.Minute)
				if err != nil {
					t.Error(err)
				}
				answered <- a
			}()
			synctest.Wait()
			return answered
		}
		for _, allow := range []bool{true, false} {
			answer := ask(ann)
			request := await(t, team.Mail(), teams.MessagePermissionRequest)
			open, err := team.Permissions(ctx)
			ok(t, err)
			equal(t, "open", open[0].Request+" "+open[0].Tool, request.Ref+" Bash")
			decide := team.DenyPermission
			if allow {
				decide = team.AllowPermission
			}
			ok(t, decide(ctx, request.Ref, "because"))
			a := <-answer
			equal(t, "answer", fmt.Sprint(a.Allowed, " ", a.By, " ", a.Reason), fmt.Sprint(allow, " lead because"))
		}
		asked := time.Now()
		a := <-ask(ann)
		equal(t, "unanswered", a.Outcome, "timed_out")
		equal(t, "after", time.Since(asked).Round(time.Second), time.Minute)

		lead := ask(as(t, team, "lead"))
		open, err := team.Permissions(ctx)
		ok(t, err)
		ok(t, team.AllowPermission(ctx, open[0].Request, ""))
		equal(t, "who answers the lead", (<-lead).By, teams.User)

		ok(t, team.SetMode(ctx, "ann", "dontAsk"))
		equal(t, "in dontAsk", (<-ask(ann)).Outcome, "denied")
		want(t, team.SetMode(ctx, "ann", "bypassPermissions"), teams.ErrDenied)
		want(t, team.SetMode(ctx, "ann", "whatever"), teams.ErrInvalid)
		ok(t, m.Close())
	})
}

func TestPlanApproval(t *testing.T) {
	ctx := limited(t)
	m := manage(t, teams.Options{})
	team := create(t, m, "core", "bob")
	_, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: "ann", Agent: teams.External, PlanApproval: true})
	ok(t, err)
	ann := as(t, team, "ann")
	for _, c := range []struct {
		plan   string
		answer func(request string) error
		writes bool
	}{
		{"rewrite it all", func(r string) error { return team.RejectPlan(ctx, r, "smaller") }, false},
		{"change one line", func(r string) error { return team.ApprovePlan(ctx, r, "") }, true},
	} {
		may, err := ann.Writes(ctx)
		ok(t, err)
		equal(t, "writes without approval", may, false)
		request, err := ann.SubmitPlan(ctx, c.plan)
		ok(t, err)
		_, err = ann.SubmitPlan(ctx, c.plan)
		want(t, err, teams.ErrNotReady)
		asked := await(t, team.Mail(), teams.MessagePlanRequest)
		equal(t, "plan", asked.Ref+" "+asked.Body, request+" "+c.plan)
		ok(t, c.answer(request))
		plan, err := ann.AwaitPlan(ctx, request)
		ok(t, err)
		equal(t, "approved", plan.Approved, c.writes)
		equal(t, "feedback", plan.Feedback == "smaller", !c.writes)
		may, err = ann.Writes(ctx)
		ok(t, err)
		equal(t, "writes", may, c.writes)
		await(t, ann.Mail(), teams.MessagePlanResponse)
	}
	_, err = as(t, team, "bob").SubmitPlan(ctx, "why?")
	want(t, err, teams.ErrInvalid)
	want(t, team.ApprovePlan(ctx, "none", ""), teams.ErrNotFound)
}

// TestPermissionRules adds a rule for the request of a member, and removes it: only what the rule
// covers is allowed without asking, and only as long as it is there.
func TestPermissionRules(t *testing.T) {
	ctx := limited(t)
	m := manage(t, teams.Options{})
	team := found(t, m, teams.TeamConfig{Name: "core", Permissions: teams.PermissionRules{Allow: []string{"Edit"},
		Policy: teams.PolicyUser}})
	_, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: "ann", Agent: teams.External})
	ok(t, err)
	ann := as(t, team, "ann")
	answered := make(chan teams.PermissionAnswer, 1)
	go func() {
		a, err := ann.AskPermission(ctx, "Bash", `{"command":"git status"}`, time.Minute)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	first(t, team, func(e teams.PermissionRequested) bool { return true })
	open, err := team.Permissions(ctx)
	ok(t, err)
	rule, err := team.RuleFor(ctx, open[0].Request)
	ok(t, err)
	equal(t, "narrowest", rule, teams.PermissionRule{Rule: "Bash(git status)", Member: "ann"})
	want(t, team.AddRule(ctx, teams.PermissionRule{Rule: "Bash"}), teams.ErrDenied)
	want(t, team.AddRule(ctx, teams.PermissionRule{Rule: "Bash("}), teams.ErrInvalid)
	ok(t, team.AddRule(ctx, rule))
	a := <-answered
	equal(t, "answer", fmt.Sprint(a.Allowed, " ", a.By), "true "+teams.User)
	_, err = team.RuleFor(ctx, open[0].Request)
	want(t, err, teams.ErrConflict)
	equal(t, "fact", first(t, team, func(e teams.RuleAdded) bool { return true }), teams.RuleAdded{Rule: rule.Rule,
		Member: "ann"})
	rules, err := team.Rules(ctx)
	ok(t, err)
	equal(t, "rules", fmt.Sprint(len(rules), rules[0].Rule, rules[1].Rule, rules[1].Member, rules[1].By),
		"2EditBash(git status)ann@user")
	want(t, team.RemoveRule(ctx, rules[0]), teams.ErrConflict)
	ok(t, team.RemoveRule(ctx, rules[1]))
	want(t, team.RemoveRule(ctx, rules[1]), teams.ErrNotFound)
}
