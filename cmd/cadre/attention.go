package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// stepFor returns what to type for an item of the team that a person calls so. An item of a nested
// team may be settled in another team of its tree.
func stepFor(called string, i team.Item) render.Command {
	return render.CommandFor(engine.ItemFor(called, i).Hint)
}

// writeItems writes the items that wait for a person: a sentence, and the command that answers it.
// Consecutive items that one command answers share it.
func writeItems(w *sanitize.Writer, name string, items []team.Item) error {
	for n, i := range items {
		mark, more := render.Wait.On("!"), ""
		if i.WaitsFor != team.ForUser {
			mark, more = render.Faint.On("·"), " ("+i.WaitsFor+" sees to it)"
		}
		if now := now(); i.Deadline > now {
			more += fmt.Sprintf(" (%s left)", team.Span(i.Deadline.Sub(now)))
		} else if i.Since > 0 && i.Deadline == 0 && i.Kind != team.ItemDormant && i.Kind != team.ItemUnhosted {
			more += " (" + render.Ago(now, i.Since) + ")"
		}
		help, comma := stepFor(name, i), ""
		if note, has := strings.CutPrefix(help.Note, ", "); has { // the command stays whole, to be copied
			help.Note, comma = " "+note, ","
		}
		if err := w.Printf("%s %s\n", mark, sanitize.Hanging{Text: i.Text + more, At: 2, Indent: 6}); err != nil {
			return err
		}
		if n+1 < len(items) && stepFor(name, items[n+1]).Line == help.Line {
			continue
		}
		if err := w.Printf("    %s%s%s\n",
			render.Strong.On(help.Line), comma,
			sanitize.Hanging{Text: help.Note, At: 4 + render.Width(help.Line+comma), Indent: 4}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) attentionCommand() *cobra.Command {
	var wait, onlyNew bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "attention [TEAM]", Short: "List what waits for you, in all teams", Args: atMost(1),
		Long: `List what waits for you in all teams, or in one, with the command that settles each item: requests for
permission, plans, questions to the lead where you lead, failed members and tasks, a lost lead, an interrupted
consolidation, a spent budget. status, ls and probe show the same list. An item that an agent handles, because it
leads, is marked with the agent's name.

With --wait the command returns as soon as something waits for you, for example to ring a bell:
  cadre attention --wait && tput bel
With --new, too, what waits already when the command starts does not count, and only what is new is printed:
  cadre attention --wait --new && tput bel

Exit status 0: the list was printed, or is empty; with --wait, something waits for you. 1: nothing did before
--timeout. 2: a team is damaged.`,
		RunE: func(c *cobra.Command, args []string) error {
			only := ""
			if len(args) > 0 {
				only = args[0]
				if _, err := a.home.Folder(only); err != nil {
					return err
				}
			}
			f := a.engine().Attention(only)
			defer f.Close()
			switch {
			case timeout != 0 && !wait:
				return usage{errors.New("--timeout says how long --wait waits; add --wait")}
			case onlyNew && !wait:
				return usage{errors.New("--new says what --wait waits for; add --wait")}
			}
			if !wait {
				items, err := f.List(c.Context())
				return a.listItems(items, err)
			}
			waits, nothing := f.Wait, "nothing"
			if onlyNew {
				waits, nothing = f.WaitNew, "nothing new"
			}
			if timeout <= 0 {
				return a.awaitItems(c.Context(), waits)
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), timeout, &team.Error{Code: team.Nothing,
				Text: fmt.Sprintf("%s waited for you within %s", nothing, team.Span(timeout))})
			defer cancel()
			return a.awaitItems(ctx, waits)
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "return when something waits for you")
	c.Flags().BoolVar(&onlyNew, "new", false, "with --wait, wait for something that does not wait for you already")
	c.Flags().DurationVar(&timeout, "timeout", 0, "with --wait, stop after this time, for example 30m; by "+
		"default never")
	return c
}

// awaitItems waits until something waits for the person, and prints it.
func (a *app) awaitItems(ctx context.Context, waits func(context.Context) ([]attention.Item, error)) error {
	stays()
	items, err := waits(a.whileRead(ctx))
	if err != nil {
		return err
	}
	return a.printItems(items)
}

// listItems prints what waits now. err is the error of the list, which may have items all the same.
func (a *app) listItems(items []attention.Item, err error) error {
	if err != nil && !a.json {
		a.fail(err)
		err = exit(status(err))
	}
	if err == nil && slices.ContainsFunc(items, func(i attention.Item) bool { return i.Kind == team.ItemDamaged }) {
		err = exit(hopeless)
	}
	return errors.Join(a.printItems(items), err)
}

// printItems prints what waits, team by team.
func (a *app) printItems(items []attention.Item) error {
	return a.print(items, func(w *sanitize.Writer) error {
		if len(items) == 0 {
			return said("Nothing waits for you.")(w)
		}
		for len(items) > 0 {
			name, in := items[0].Team, ""
			if items[0].ByID() {
				in = " in " + items[0].Dir
			}
			var some []team.Item
			for len(items) > 0 && items[0].Team == name {
				some, items = append(some, items[0].Item), items[1:]
			}
			if err := w.Printf("%s%s: %s\n", render.Strong.On(name), in, waiting(len(some))); err != nil {
				return err
			}
			if err := writeItems(w, name, some); err != nil {
				return err
			}
		}
		return nil
	})
}
