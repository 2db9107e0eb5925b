package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// permissionRule is a rule that lets members use a tool without asking.
type permissionRule struct {
	Rule    string    `json:"rule"`              // as Claude Code writes it
	Member  string    `json:"member,omitempty"`  // the only member that it is for; left out for all
	Allows  string    `json:"allows"`            // what it allows, in words
	By      string    `json:"by,omitempty"`      // who added it; left out for rules that the team was created with
	At      team.Time `json:"at,omitempty"`      // when it was added
	Allowed []string  `json:"allowed,omitempty"` // requests that waited, and that it allowed when it was added
	Removed bool      `json:"removed,omitempty"` // it was removed just now
}

func permissionRuleOf(r team.Rule) permissionRule {
	return permissionRule{Rule: r.Rule, Member: r.Member, Allows: team.RuleMeaning(r.Rule), By: r.By, At: r.At}
}

// whose names the members that a rule is for.
func whose(member string) string { return cmp.Or(member, "all members") }

func (a *app) permissionCommand() *cobra.Command {
	c := a.looking(0, &cobra.Command{
		Use: "permission [TEAM]", Short: "List, add and remove permission rules of a team",
		Long: `List the rules by which members of a team use tools without asking: those that the team was created
with, and those that were added since.

A rule is written as in Claude Code: Bash(go test:*), Edit(docs/**), WebFetch(domain:example.org), mcp__server__tool.
A path is relative to the team's directory, and to the root with // before it.`,
		Example: "  cadre permission demo\n  cadre permission add demo 'Bash(go test:*)' --member ann\n" +
			"  cadre permission rm demo 'Bash(go test:*)' --member ann",
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		rules := []permissionRule{}
		d.View(func(s *team.State) {
			for _, r := range s.Rules() {
				rules = append(rules, permissionRuleOf(r))
			}
		})
		return a.print(rules, func(w *sanitize.Writer) error {
			if len(rules) == 0 {
				return w.Printf("team %s has no permission rules; to add one: cadre permission add %s RULE\n",
					d.Name, d.Name)
			}
			now := now()
			t := render.Table{Texts: []string{"RULE", "ALLOWS"}, Spare: []string{"ADDED"}}
			t.Row("RULE", "FOR", "ADDED", "ALLOWS")
			for _, r := range rules {
				added := "at creation"
				if r.At != 0 {
					added = render.Ago(now, r.At) + " by " + strings.TrimPrefix(r.By, "@")
				}
				t.Row(r.Rule, whose(r.Member), added, r.Allows)
			}
			return t.Write(w)
		})
	})
	c.AddCommand(a.permissionAdd(), a.permissionRemove())
	return c
}

func (a *app) permissionAdd() *cobra.Command {
	var member string
	var yes bool
	c := a.onTeam(1, &cobra.Command{
		Use: "add [TEAM] RULE", Short: "Let members use a tool without asking",
		Long: `Let the members of a team, or with --member one of them, use a tool without asking, from now on. Requests
that wait and that the rule covers are allowed at once. Delegate mode and plan approval still hold.

cadre asks before it adds a rule that sets no bounds, such as Bash, Bash(python:*) or Edit, or a rule for a tool that no
agent is known to have. --yes skips the question.`,
		Example: "  cadre permission add demo 'Bash(go test:*)'\n" +
			"  cadre permission add demo 'Edit(docs/**)' --member ann",
	}, func(c *cobra.Command, name string, args []string) error {
		body := &team.AddRule{Rule: args[0], Member: member, Unbounded: yes}
		if tool, known := team.UnknownTool(args[0]); tool != "" && !yes {
			if err := a.confirmTool(c.Context(), tool, known, addingRule(name, body)); err != nil {
				return err
			}
		}
		return a.addRule(c, name, func(*team.State) (*team.AddRule, error) { return body, nil },
			func(settled []string) error {
				one := permissionRuleOf(team.Rule{Rule: body.Rule, Member: member, By: a.actor, At: now()})
				one.Allowed = settled
				return a.print(one, func(w *sanitize.Writer) error { return writeAdded(w, one) })
			})
	})
	c.Flags().StringVar(&member, "member", "", "for this member alone")
	c.Flags().BoolVar(&yes, "yes", false, "add it without asking, also if it sets no bounds")
	return c
}

// confirmTool asks whether to add a rule for a tool that no agent is known to have. adding is the
// command that adds it without asking.
func (a *app) confirmTool(ctx context.Context, tool string, known []string, adding string) error {
	why := "no agent has a tool called " + sanitize.Line(tool)
	if near := team.Nearest(tool, known); near != "" {
		why += " (did you mean " + near + "?)"
	}
	return a.confirm(ctx, fmt.Sprintf("N%s. Add the rule all the same?", why[1:]),
		way{"add it although " + why, adding})
}

// addingRule returns the command that adds the rule without asking.
func addingRule(name string, body *team.AddRule) string {
	words := []string{name, body.Rule}
	if body.Member != "" {
		words = append(words, "--member", body.Member)
	}
	return render.Typed("permission add", append(words, "--yes")...)
}

func writeAdded(w *sanitize.Writer, r permissionRule) error {
	if err := w.Printf("%s may use without asking: %s\n", whose(r.Member), sanitize.Line(r.Allows)); err != nil {
		return err
	}
	if len(r.Allowed) == 0 {
		return nil
	}
	return w.Printf("allowed: %s\n", strings.Join(r.Allowed, ", "))
}

// addRule adds the rule that make returns, after a question if it sets no bounds. done gets the
// requests that the rule allowed.
func (a *app) addRule(c *cobra.Command, name string, make func(*team.State) (*team.AddRule, error),
	done func(settled []string) error) error {
	var body *team.AddRule
	var why string
	of, err := a.engine().Look(c.Context(), name)
	if err != nil {
		return err
	}
	of.View(func(s *team.State) {
		if body, err = make(s); err == nil {
			why = team.Unbounded(body.Rule, s.Team().Dir)
		}
	})
	of.Close()
	if err != nil {
		return err
	}
	if why != "" && !body.Unbounded && a.actor == team.User {
		if err := a.confirm(c.Context(), fmt.Sprintf("The rule %s sets no bounds: %s. Add it?",
			sanitize.Line(body.Rule), why),
			way{"add the rule although it sets no bounds (" + why + ")", addingRule(name, body)}); err != nil {
			return err
		}
		body.Unbounded = true
	}
	return a.act(c, name, body, func(_ *engine.Team, r *team.Record) error {
		var settled []string
		for _, e := range happened(r) {
			if e, ok := e.(*team.PermissionAnswered); ok {
				settled = append(settled, e.Request)
			}
		}
		return done(settled)
	})
}

// happened returns the events of a record; none for a command that changed nothing.
func happened(r *team.Record) []team.Event {
	if r == nil {
		return nil
	}
	return r.Events
}

func (a *app) permissionRemove() *cobra.Command {
	var member string
	c := a.onTeam(1, &cobra.Command{
		Use: "rm [TEAM] RULE", Short: "Remove a permission rule that was added to a team",
		Long: "Remove a rule that was added with cadre permission add, cadre permit --always or on the screen. It " +
			"does not count any more, also in sessions that run. Rules that the team was created with stay: sessions " +
			"get them at their start.",
		Example: "  cadre permission rm demo 'Bash(go test:*)' --member ann",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.RemoveRule{Rule: args[0], Member: member}, func(*engine.Team, *team.Record) error {
			one := permissionRuleOf(team.Rule{Rule: args[0], Member: member})
			one.Removed = true
			return a.print(one, said("the rule %s for %s is removed", args[0], whose(member)))
		})
	})
	c.Flags().StringVar(&member, "member", "", "the member that it was added for; all members by default")
	return c
}
