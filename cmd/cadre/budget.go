package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// dollars is a flag for an amount of money, in millionths of a US dollar.
type dollars int64

func (d *dollars) Set(text string) error {
	micro, err := team.ParseDollars(text)
	*d = dollars(micro)
	return err
}

func (d *dollars) String() string {
	if *d == 0 {
		return "0"
	}
	return team.Dollars(int64(*d))
}

func (*dollars) Type() string { return "amount" }

func (a *app) budgetCommand() *cobra.Command {
	var body team.SetBudget
	var usd dollars
	var unlimited bool
	c := &cobra.Command{
		Use: "budget [TEAM]", Short: "Show what a team may spend, and change it",
		Long: `Show the budget of a team and of its members: each limit, what is spent, and what is left. A flag
changes one limit, and the others stay; --unlimited removes all of them. With --member it is the budget of that
member.

The lead is notified when 50, 80 and 95 percent of a budget are spent, and cadre attention shows it. When the budget
of the team is spent, its sessions end and nothing new starts. When the budget of a member is spent, it gets no new
work, and its session ends. Tasks that were assigned to it wait for it, and a task that it claimed itself returns to
the queue. An external member may still complete the task that it holds.

A spent team or member continues when its budget is raised. If no process runs the sessions of a team that you lead by
commands, this command starts a host in the background. For a team of cadre run it prints the command that continues
it.

Time runs by the clock, from the start of the team or of the member; hooks, questions and pauses do not stop it. A
teammate that replaces one that ended continues the budget of that one.`,
		Example: "  cadre budget demo\n  cadre budget demo --tokens 2000000\n  cadre budget demo --member ann --usd 5",
	}
	a.onTeam(0, c, func(c *cobra.Command, name string, _ []string) error {
		for flag, what := range map[string]string{"tokens": "tokens", "usd": "cost", "time": "time"} {
			if c.Flags().Changed(flag) {
				body.Only = append(body.Only, what)
			}
		}
		slices.Sort(body.Only)
		body.Budget.CostMicroUSD = int64(usd)
		if unlimited && body.Only != nil {
			return usage{fmt.Errorf("--unlimited removes every limit; leave the other flags out")}
		}
		if unlimited || body.Only != nil {
			return a.setBudget(c.Context(), name, &body)
		}
		of, err := a.engine().Look(c.Context(), name)
		if err != nil {
			return err
		}
		defer of.Close()
		return a.printBudget(of, body.Member)
	})
	c.Flags().StringVar(&body.Member, "member", "", "of this member alone")
	c.Flags().Int64Var(&body.Budget.Tokens, "tokens", 0, "tokens; 0 for any number")
	c.Flags().Var(&usd, "usd", "US dollars, for example 5 or $2.50; 0 for any amount")
	c.Flags().DurationVar(&body.Budget.Time, "time", 0, "time since the team was created, or the member joined, for "+
		"example 2h; 0 for any")
	c.Flags().BoolVar(&unlimited, "unlimited", false, "remove all limits")
	return c
}

// setBudget changes a budget, prints it, and continues the team if the budget was spent.
func (a *app) setBudget(ctx context.Context, name string, body *team.SetBudget) error {
	spent := false
	return a.engine().ActOn(ctx, name, a.actor, func(s *team.State) (team.Body, error) {
		m, _ := s.Member(body.Member)
		spent = s.Team().Exhausted != "" && body.Member == "" || m.Exhausted != ""
		return body, nil
	}, func(of *engine.Team, _ *team.Record) error {
		var agents []string
		of.View(func(s *team.State) { agents = s.Uncounted() })
		if len(agents) > 0 {
			a.note(uncounted(agents))
		}
		if err := a.printBudget(of, body.Member); err != nil || !spent {
			return err
		}
		return a.rehost(ctx, of)
	})
}

// rehost continues a team whose budget was spent and is raised, or says what continues it.
func (a *app) rehost(ctx context.Context, of *engine.Team) error {
	started, next, err := of.Rehost(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the budget is raised, but the team does not run: %w", err)
	case started:
		a.note(fmt.Sprintf("team %s continues: a host in the background runs its sessions", of.Name))
	case next.Action != "":
		a.note(fmt.Sprintf("no process runs team %s; to continue it: %s", of.Name, render.CommandFor(next)))
	}
	return nil
}

// amount formats n in the unit of the limit.
func amount(l engine.Limit, n int64) string {
	switch l.What {
	case "cost":
		return team.Dollars(n)
	case "time":
		return team.Span(time.Duration(n) * time.Millisecond)
	}
	return fmt.Sprint(n)
}

// printBudget prints the budget of the team and of its members, or of that member.
func (a *app) printBudget(of *engine.Team, member string) error {
	all, err := of.Limits(member)
	if err != nil {
		return err
	}
	return a.print(all, func(w *sanitize.Writer) error {
		if len(all) == 0 {
			return w.Printf("%s has no budget of its own, and spent nothing\n", member)
		}
		t := render.Table{Spare: []string{"LEFT"}, Numbers: []string{"LIMIT", "SPENT", "LEFT"}}
		t.Row("WHOSE", "BUDGET", "LIMIT", "SPENT", "LEFT", "USED")
		for _, l := range all {
			whose, most, left, note := l.Member, "none", "", ""
			if whose == "" {
				whose = "team"
			}
			if l.Limit > 0 {
				most, left = amount(l, l.Limit), amount(l, l.Left)
				note = fmt.Sprintf("%d %%", team.Spent{What: l.What, Used: l.Spent, Limit: l.Limit}.Percent())
			}
			if l.Over {
				note = "spent"
			}
			t.Row(whose, l.What, most, amount(l, l.Spent), left, note)
		}
		return t.Write(w)
	})
}
