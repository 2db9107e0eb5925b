package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// requestAnswer is a request for permission or a plan, with its answer.
type requestAnswer struct {
	Request string `json:"request"`        // id of the request or plan
	Outcome string `json:"outcome"`        // allowed or denied; for a plan approved or rejected
	Rule    string `json:"rule,omitempty"` // the rule that was added, with --always
}

// submitted is a plan that waits for its answer.
type submitted struct {
	Member  string `json:"member"`  // who submitted the plan
	Request string `json:"request"` // id of the plan
}

// agreed is a member's answer to a request to shut down.
type agreed struct {
	Member   string `json:"member"`   // who answered
	Request  string `json:"request"`  // id of the request to shut down
	Approved bool   `json:"approved"` // the member leaves
}

func (a *app) permitCommand() *cobra.Command {
	var deny, always bool
	var reason string
	c := a.onTeam(1, &cobra.Command{
		Use: "permit [TEAM] REQUEST", Short: "Answer a request for permission",
		Long: "Allow a tool that a member asks to use, or with --deny refuse it. The requests that wait are in cadre " +
			"status. One without an answer\nin time is denied.\n\nWith --always the member may do the same again " +
			"without asking: cadre adds the narrowest permission rule that covers the request, and prints it. cadre " +
			"permission lists and removes rules.",
		Example: "  cadre permit demo permission-1@ann\n  cadre permit demo permission-1@ann --deny --reason 'not now'",
	}, func(c *cobra.Command, name string, args []string) error {
		switch {
		case always && (deny || reason != ""):
			return usage{fmt.Errorf("--always allows the request by a rule; leave out --deny and --reason")}
		case always:
			return a.permitAlways(c, name, args[0])
		}
		word := "allowed"
		if deny {
			word = "denied"
		}
		return a.act(c, name, &team.AnswerPermission{Request: args[0], Allow: !deny, Reason: reason},
			func(*engine.Team, *team.Record) error {
				return a.print(requestAnswer{Request: args[0], Outcome: word}, said("%s is %s", args[0], word))
			})
	})
	c.Flags().BoolVar(&always, "always", false, "allow the member the same always, by a rule")
	c.Flags().BoolVar(&deny, "deny", false, "refuse it")
	c.Flags().StringVar(&reason, "reason", "", "why, for the member")
	actsAs(c)
	c.AddCommand(a.permitList())
	return c
}

// permitAlways adds the narrowest rule that covers the request, for the member that asks.
func (a *app) permitAlways(c *cobra.Command, name, request string) error {
	var rule team.Rule
	return a.addRule(c, name, func(s *team.State) (*team.AddRule, error) {
		p, err := s.Pending(request)
		if err != nil {
			return nil, err
		}
		rule.Member = p.Member
		rule.Rule, err = s.RuleFor(p)
		return &team.AddRule{Rule: rule.Rule, Member: p.Member}, err
	}, func(settled []string) error {
		one := permissionRuleOf(rule)
		one.Allowed = settled
		return a.print(requestAnswer{request, "allowed", rule.Rule}, func(w *sanitize.Writer) error {
			if err := writeAdded(w, one); err != nil {
				return err
			}
			return w.Printf("by the rule: %s\n", sanitize.Line(one.Rule))
		})
	})
}

func (a *app) permitList() *cobra.Command {
	return a.looking(0, &cobra.Command{
		Use: "list [TEAM]", Short: "List the requests for permission that wait for an answer",
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		open := []team.Permission{}
		d.View(func(s *team.State) { open = append(open, s.Permissions()...) })
		return a.print(open, func(w *sanitize.Writer) error {
			if len(open) == 0 {
				return said("no request for permission waits")(w)
			}
			now := team.Time(time.Now().UnixMilli())
			t := render.Table{Texts: []string{"INPUT"}, Spare: []string{"ASKED", "TOOL"}}
			t.Row("REQUEST", "MEMBER", "TOOL", "ASKED", "INPUT")
			for _, p := range open {
				t.Row(p.Request, p.Member, p.Tool, render.Ago(now, p.AskedAt), render.Input(p.Tool, p.Input))
			}
			return t.Write(w)
		})
	})
}

func (a *app) planCommand() *cobra.Command {
	var reject string
	var approve bool
	var feedback string
	c := a.onTeam(1, &cobra.Command{
		Use: "plan [TEAM] REQUEST", Short: "Show, approve or reject a plan",
		Long: "Show a plan that a member submitted, approve it with --approve, or reject it with --reject and what " +
			"is missing. The member\nchanges nothing before its plan is approved. A plan that was answered is shown " +
			"with its answer; cadre plan list --all has them all.",
	}, func(c *cobra.Command, name string, args []string) error {
		if approve && reject != "" {
			return usage{fmt.Errorf("--approve and --reject exclude each other")}
		}
		if reject != "" && feedback != "" {
			return usage{fmt.Errorf("--reject says what the plan lacks; leave --feedback out")}
		}
		if !approve && reject == "" && feedback != "" {
			return usage{fmt.Errorf("--feedback goes with --approve; add --approve, or say --reject WHY")}
		}
		if !approve && reject == "" {
			return a.showPlan(c.Context(), name, args[0])
		}
		if reject != "" {
			feedback = reject
		}
		word := "rejected"
		if approve {
			word = "approved"
		}
		return a.act(c, name, &team.AnswerPlan{Request: args[0], Approved: approve, Feedback: feedback},
			func(*engine.Team, *team.Record) error {
				return a.print(requestAnswer{Request: args[0], Outcome: word}, said("%s is %s", args[0], word))
			})
	})
	c.Flags().BoolVar(&approve, "approve", false, "approve the plan")
	c.Flags().StringVar(&reject, "reject", "", "what is missing in the plan")
	c.Flags().StringVar(&feedback, "feedback", "", "advice for the member, with --approve")
	actsAs(c)
	c.AddCommand(a.planSubmit(), a.planList())
	return c
}

func (a *app) planSubmit() *cobra.Command {
	c := a.onTeam(1, &cobra.Command{
		Use: "submit [TEAM] PLAN --as NAME", Short: "Submit a member's plan to the lead",
		Long: "Submit the plan of a member that changes nothing before its plan is approved. PLAN may be - for " +
			"standard input. The answer\ncomes as mail: cadre inbox TEAM NAME --wait.",
		Example: "  cadre plan submit my-team --as ann - < plan.md",
	}, func(c *cobra.Command, name string, args []string) error {
		if a.actor == team.User {
			return usage{fmt.Errorf("say whose plan it is, with --as NAME")}
		}
		plan, err := text(c, args[0])
		if err != nil {
			return err
		}
		return a.act(c, name, &team.SubmitPlan{Plan: plan}, func(_ *engine.Team, r *team.Record) error {
			e, _ := team.EventIn[*team.PlanSubmitted](r)
			return a.print(submitted{e.Member, e.Request},
				said("the plan of %s is submitted as %s", e.Member, e.Request))
		})
	})
	c.Flags().String("as", "", "the member whose plan it is; a member's session may leave it out")
	return c
}

// planned is the state of a member's plan.
type planned struct {
	Member   string    `json:"member"`             // who needs a plan
	State    string    `json:"state"`              // missing, submitted, approved or rejected
	Request  string    `json:"request,omitempty"`  // id of the last plan
	Plan     string    `json:"plan,omitempty"`     // text of the plan, while it waits for an answer
	Feedback string    `json:"feedback,omitempty"` // why the last plan was rejected
	AskedAt  team.Time `json:"askedAt,omitempty"`  // when the last plan was submitted
}

func (a *app) planList() *cobra.Command {
	var all bool
	c := a.looking(0, &cobra.Command{
		Use: "list [TEAM]", Short: "List the members that need a plan, and the state of their plans",
		Long: "List the members that need a plan, and the state of their plans. With --all it lists every plan that " +
			"was ever submitted, with\nits text and its answer.",
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		if all {
			plans, err := d.Plans(c.Context())
			if err != nil {
				return err
			}
			return a.print(plans, func(w *sanitize.Writer) error { return writePlans(w, plans) })
		}
		plans, rows := []planned{}, []history.Plan{}
		d.View(func(s *team.State) {
			for _, m := range s.Members() {
				if p := m.Plan; p.Required || p.State != "" {
					one := planned{m.Name, cmp.Or(p.State, "missing"), p.Request, p.Text, p.Feedback, p.AskedAt}
					plans = append(plans, one)
					rows = append(rows, history.Plan{Member: one.Member, State: cmp.Or(p.State, "no plan yet"),
						Request: one.Request,
						Plan:    one.Plan, Feedback: one.Feedback, AskedAt: one.AskedAt})
				}
			}
		})
		return a.print(plans, func(w *sanitize.Writer) error { return writePlans(w, rows) })
	})
	c.Flags().BoolVar(&all, "all", false, "list every plan that was ever submitted")
	return c
}

func writePlans(w *sanitize.Writer, plans []history.Plan) error {
	if len(plans) == 0 {
		return said("no member needs a plan")(w)
	}
	now := now()
	t := render.Table{Texts: []string{"PLAN", "FEEDBACK"}, Spare: []string{"ASKED"}}
	t.Row("MEMBER", "STATE", "REQUEST", "ASKED", "PLAN", "FEEDBACK")
	for _, p := range plans {
		asked := ""
		if p.AskedAt != 0 {
			asked = render.Ago(now, p.AskedAt)
		}
		t.Row(p.Member, p.State, p.Request, asked, render.Clean(p.Plan), render.Clean(p.Feedback))
	}
	t.Compact()
	return t.Write(w)
}

// leaveCommand answers a request to shut down, for a member that is a person or a script.
func (a *app) leaveCommand() *cobra.Command {
	var refuse, reason string
	c := a.onTeam(0, &cobra.Command{
		Use: "leave [TEAM] --as NAME", Short: "Answer, as a member, a request to shut down",
		Long: "Agree to the lead's request that the member leaves the team, or with --refuse say why it stays. A " +
			"member that leaves returns\nwhat it holds to the queue. One that refuses is ended at the deadline of " +
			"the request, unless the lead withdraws it. A member that has ended has left already, which is not an " +
			"error.",
		Example: "  cadre leave my-team --as ann\n  cadre leave my-team --as ann --refuse \"the tests still run\"",
	}, func(c *cobra.Command, name string, _ []string) error {
		if a.actor == team.User {
			return usage{fmt.Errorf("say who leaves, with --as NAME")}
		}
		if refuse != "" && reason != "" {
			return usage{fmt.Errorf("--refuse has the reason; leave out --reason")}
		}
		err := a.engine().AnswerShutdown(c.Context(), name, a.actor, refuse == "", cmp.Or(refuse, reason),
			func(of *engine.Team, e *team.ShutdownAnswered) error {
				words := said("%s leaves team %s", e.Member, of.Name)
				if !e.Approved {
					words = said("%s stays in team %s until the deadline of the request; the lead has its reason",
						e.Member,
						of.Name)
				}
				return a.print(agreed{e.Member, e.Request, e.Approved}, words)
			})
		if team.CodeOf(err) == team.Finished && refuse == "" { // it is as was asked, also for a script that asks twice
			return a.print(agreed{Member: a.actor, Approved: true}, said("%v", err))
		}
		return err
	})
	c.Flags().StringVar(&refuse, "refuse", "", "stay, for this reason")
	c.Flags().StringVar(&reason, "reason", "", "a last word to the lead")
	c.Flags().String("as", "", "the member that leaves; a member's session may leave it out")
	return c
}

// showPlan prints a plan with its answer, if it has one.
func (a *app) showPlan(ctx context.Context, name, request string) error {
	of, err := a.engine().Look(ctx, name)
	if err != nil {
		return err
	}
	defer of.Close()
	plans, err := of.Plans(ctx)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.Request == request {
			return a.print(p, func(w *sanitize.Writer) error { return writePlan(w, p) })
		}
	}
	return withWays(team.Refuse(team.NotFound, "team %s has no plan %q", name, request),
		way{"list all of them", render.Typed("plan list", name, "--all")})
}

func writePlan(w *sanitize.Writer, p history.Plan) error {
	answer := ""
	switch {
	case p.AnsweredAt != 0:
		answer = ", " + p.State + " by " + cmp.Or(strings.TrimPrefix(p.AnsweredBy, "@"), "its deadline")
	case p.State != "submitted":
		answer = ", " + p.State
	}
	if err := w.Printf("plan of %s%s:\n\n%s\n", p.Member, answer, sanitize.Block(p.Plan)); err != nil ||
		p.Feedback == "" {
		return err
	}
	return w.Printf("\nfeedback:\n%s\n", sanitize.Block(p.Feedback))
}
