package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/inspect/attention"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// command is how the action of a hint is done on the command line.
func command(name string, i team.Item) string {
	switch h := i.Hint; h.Action {
	case team.ActAnswerPermission:
		return fmt.Sprintf("cadre permit %s %s, or with --deny", name, h.Request)
	case team.ActAnswerPlan:
		return fmt.Sprintf("cadre plan %s %s, then with --approve or --reject WHY", name, h.Request)
	case team.ActMove:
		return fmt.Sprintf("cadre resume %s --dir DIR", name)
	case team.ActTakeOver:
		return fmt.Sprintf("cadre resume %s --take-over, where that session is not running any more", name)
	case team.ActResume:
		return "cadre resume " + name
	case team.ActConsolidate:
		return "cadre consolidate " + name
	case team.ActRaiseBudget:
		return fmt.Sprintf("cadre budget %s %s", name, map[string]string{"tokens": "--tokens N", "cost": "--usd AMOUNT",
			"time": "--time SPAN"}[i.About])
	case team.ActSpawn:
		spawn := fmt.Sprintf("cadre spawn %s %s", name, cmp.Or(h.Name, "NAME"))
		if h.Agent != "" {
			spawn += " --agent " + h.Agent
		}
		return spawn
	case team.ActRejoin:
		return fmt.Sprintf("cadre mcp --team %s --as %s", name, h.Member)
	case team.ActReassign:
		return fmt.Sprintf("cadre reassign %s %s NAME", name, h.Task)
	case team.ActRetryTask:
		return fmt.Sprintf("cadre task release %s %s", name, h.Task)
	case team.ActCompleteTask:
		return fmt.Sprintf("cadre task done %s %s", name, h.Task)
	case team.ActAssignTask:
		return fmt.Sprintf("cadre task update %s %s --owner NAME", name, h.Task)
	case team.ActShowTask:
		return fmt.Sprintf("cadre task show %s %s", name, h.Task)
	case team.ActResend:
		return fmt.Sprintf("cadre resend %s %s", name, h.Member)
	case team.ActRecordFacts:
		return fmt.Sprintf("cadre facts %s --record", name)
	}
	return "cadre log " + name
}

// writeItems writes what waits for a person, two lines each: what it is, and what would help.
func writeItems(w *sanitize.Writer, name string, items []team.Item) error {
	for _, i := range items {
		mark, more := "!", ""
		if i.WaitsFor != team.ForUser {
			mark, more = "·", " ("+i.WaitsFor+" sees to it)"
		}
		if now := replica.Now(); i.Deadline > now {
			more += fmt.Sprintf(" (%s left)", render.Span(time.Duration(i.Deadline-now)*time.Millisecond))
		} else if i.Since > 0 && i.Deadline == 0 {
			more += " (" + render.Ago(now, i.Since) + ")"
		}
		if err := w.Printf("%s %s%s\n    %s\n", mark, i.Text, more, command(name, i)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) attentionCommand() *cobra.Command {
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "attention [TEAM]", Short: "List what waits for you, in all teams or in one", Args: atMost(1),
		Long: `List what waits for a person, in all teams or in one, with the command that helps: requests for permission, plans, failed members and tasks, a lead that was
lost, an interrupted consolidation, a spent budget. status, ls and probe show the same list. What an agent that leads sees to is marked with its name.

With --wait it returns as soon as something waits for you, for example to ring a bell:
  cadre attention --wait && tput bel

Exit status 0: the list was printed, also an empty one; with --wait, something waits for you. 1: with --timeout, nothing did until then. 2: a team is damaged.`,
		RunE: func(c *cobra.Command, args []string) error {
			f := attention.Follower{Home: a.home, Log: a.note}
			defer f.Close()
			if len(args) > 0 {
				f.Only = args[0]
				if _, err := a.home.Folder(f.Only); err != nil {
					return err
				}
			}
			if timeout != 0 && !wait {
				return usage{errors.New("--timeout says how long --wait waits; add --wait")}
			}
			if !wait {
				items, err := f.List(c.Context())
				if err != nil {
					a.note(err.Error())
					err = exit(status(err))
				}
				return errors.Join(a.printItems(items), err)
			}
			stays()
			ctx := c.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, &team.Error{Code: team.Nothing,
					Text: fmt.Sprintf("nothing waited for you within %s", timeout)})
				defer cancel()
			}
			items, err := f.Wait(ctx)
			if err != nil {
				return err
			}
			return a.printItems(items)
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "return when something waits for you")
	c.Flags().DurationVar(&timeout, "timeout", 0, "with --wait, give up after this time, for example 30m; by "+
		"default never")
	return c
}

// printItems prints what waits, team by team.
func (a *app) printItems(items []attention.Item) error {
	return a.print(items, func(w *sanitize.Writer) error {
		if len(items) == 0 {
			return said("Nothing waits for you.")(w)
		}
		for len(items) > 0 {
			name := items[0].Team
			var some []team.Item
			for len(items) > 0 && items[0].Team == name {
				some, items = append(some, items[0].Item), items[1:]
			}
			if err := w.Printf("%s: %s\n", name, waiting(len(some))); err != nil {
				return err
			}
			if err := writeItems(w, name, some); err != nil {
				return err
			}
		}
		return nil
	})
}
