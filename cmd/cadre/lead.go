package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func (a *app) permitCommand() *cobra.Command {
	var deny bool
	var reason string
	c := a.onTeam(1, &cobra.Command{
		Use: "permit [TEAM] REQUEST", Short: "Answer a request for permission",
		Long: "Allow a tool that a member asks to use, or with --deny refuse it. The requests that wait are in cadre " +
			"status. One that nobody\nanswers in time is denied.",
	}, func(c *cobra.Command, name string, args []string) error {
		word := "allowed"
		if deny {
			word = "denied"
		}
		return a.act(c, name, &team.AnswerPermission{Request: args[0], Allow: !deny, Reason: reason},
			func(*replica.Replica, *team.Record) error {
				return a.print(map[string]any{"request": args[0], "outcome": word}, said("%s is %s", args[0], word))
			})
	})
	c.Flags().BoolVar(&deny, "deny", false, "refuse it")
	c.Flags().StringVar(&reason, "reason", "", "why, for the member")
	actsAs(c)
	return c
}

func (a *app) planCommand() *cobra.Command {
	var reject string
	var approve bool
	var feedback string
	c := a.onTeam(1, &cobra.Command{
		Use: "plan [TEAM] REQUEST", Short: "Show, approve or reject a plan",
		Long: "Show the plan that a member submitted, approve it with --approve, or reject it with --reject and what " +
			"it lacks. The member\nchanges nothing before its plan is approved.",
	}, func(c *cobra.Command, name string, args []string) error {
		if approve && reject != "" {
			return usage{fmt.Errorf("--approve and --reject exclude each other")}
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
			func(*replica.Replica, *team.Record) error {
				return a.print(map[string]any{"request": args[0], "outcome": word}, said("%s is %s", args[0], word))
			})
	})
	c.Flags().BoolVar(&approve, "approve", false, "let the member begin")
	c.Flags().StringVar(&reject, "reject", "", "what the plan lacks")
	c.Flags().StringVar(&feedback, "feedback", "", "what the member is to mind, with --approve")
	actsAs(c)
	return c
}

func (a *app) showPlan(ctx context.Context, name, request string) error {
	rep, _, err := a.open(ctx, name, false)
	if err != nil {
		return err
	}
	defer rep.Close()
	var found *team.Member
	rep.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Plan.Request == request && m.Plan.State == "submitted" {
				found = &m
			}
		}
	})
	if found == nil {
		return &team.Error{Code: team.NotFound, Text: fmt.Sprintf("no plan %q waits for an answer; cadre status %s "+
			"shows those that do", request, name)}
	}
	return a.print(map[string]any{"member": found.Name, "request": request, "plan": found.Plan.Text},
		func(w *sanitize.Writer) error {
			return w.Printf("plan of %s:\n\n%s\n", found.Name, sanitize.Block(found.Plan.Text))
		})
}

func (a *app) modeCommand() *cobra.Command {
	c := a.onTeam(2, &cobra.Command{
		Use: "mode [TEAM] NAME MODE", Short: "Change a member's permission mode",
		Long: "Change what a member may do without asking, from its next tool on: default, acceptEdits, auto, " +
			"bypassPermissions, dontAsk or plan,\nas Claude Code calls them. A teammate skips permissions only where " +
			"the lead was started so.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.SetMode{Member: args[0], Mode: args[1]},
			func(*replica.Replica, *team.Record) error {
				return a.print(map[string]any{"member": args[0], "mode": args[1]}, said("%s is in permission mode %s",
					args[0], args[1]))
			})
	})
	actsAs(c)
	return c
}

func (a *app) delegateCommand() *cobra.Command {
	return a.onTeam(1, &cobra.Command{
		Use: "delegate [TEAM] on|off", Short: "Switch delegate mode",
		Long: "In delegate mode the lead may only coordinate: spawn, message, plan and assign. Its other tools are " +
			"denied; teammates are\nunaffected. It can be switched while the team works.",
	}, func(c *cobra.Command, name string, args []string) error {
		if args[0] != "on" && args[0] != "off" {
			return usage{fmt.Errorf("delegate mode is on or off, not %q", args[0])}
		}
		return a.act(c, name, &team.SetDelegate{On: args[0] == "on"}, func(*replica.Replica, *team.Record) error {
			return a.print(map[string]any{"delegate": args[0] == "on"}, said("delegate mode is %s", args[0]))
		})
	})
}

func (a *app) handoverCommand() *cobra.Command {
	var reason string
	c := a.onTeam(1, &cobra.Command{
		Use: "handover [TEAM] NAME", Short: "Let a fresh session go on for a member",
		Long: "End a member's session and start a fresh one that goes on with its task and its mail, and with a note " +
			"of what the one before did.\nThis happens by itself when a context is nearly full.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.HandOver{Member: args[0], Reason: reason},
			func(*replica.Replica, *team.Record) error {
				return a.print(map[string]any{"member": args[0]}, said("a fresh session continues for %s", args[0]))
			})
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the fresh session")
	actsAs(c)
	return c
}

func (a *app) budgetCommand() *cobra.Command {
	var tokens int64
	var usd float64
	var span time.Duration
	c := a.onTeam(0, &cobra.Command{
		Use: "budget [TEAM]", Short: "Give a team a new budget",
		Long: "Set what a team may use: tokens, US dollars, and time since it was created. What is left out is " +
			"without limit. A team that had spent its\nbudget goes on.",
	}, func(c *cobra.Command, name string, _ []string) error {
		b := team.Budget{Tokens: tokens, CostMicroUSD: int64(usd * 1e6), Millis: span.Milliseconds()}
		return a.act(c, name, &team.SetBudget{Budget: b}, func(rep *replica.Replica, _ *team.Record) error {
			var agents []string
			rep.View(func(s *team.State) { agents = s.Uncounted() })
			if len(agents) > 0 {
				a.note(uncounted(agents))
			}
			return a.print(b, said("team %s has a new budget", name))
		})
	})
	c.Flags().Int64Var(&tokens, "tokens", 0, "tokens; 0 for any number")
	c.Flags().Float64Var(&usd, "usd", 0, "US dollars; 0 for any amount")
	c.Flags().DurationVar(&span, "time", 0, "time since the team was created, for example 2h; 0 for any")
	return c
}
