package main

import (
	"bytes"
	_ "embed"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/layout"
	"cadre/internal/render"
	"cadre/internal/team"
)

// mostOffered is how many words a shell is offered: more than a person reads.
const mostOffered = 200

// offer returns the words that complete an argument, each with a description after a tab.
type offer func(a *app, c *cobra.Command, name string) []string

// argumentWords maps the placeholders in the use of commands to their completions.
var argumentWords = sync.OnceValue(func() map[string]offer {
	return map[string]offer{
		"TEAM": (*app).offerTeams, "NAME": (*app).offerMembers, "ID": (*app).offerTasks, "TASK": (*app).offerTasks,
		"[TEMPLATE]": (*app).offerTemplates, "KEY": (*app).offerNotes, "REQUEST": (*app).offerRequests,
		"HOOK": (*app).offerHooks,
		"MODE": fixed(team.PermissionModes...), "on|off": fixed("on", "off"),
	}
})

// newNames are the commands whose NAME is new, or unknown here.
var newNames = []string{"create", "init", "spawn", "join"}

// flagWords maps the flags of all commands that have a choice of values to their completions.
var flagWords = sync.OnceValue(func() map[string]offer {
	return map[string]offer{
		"as": (*app).offerMembers, "to": (*app).offerMembers, "owner": (*app).offerMembers,
		"member": (*app).offerMembers, "team": (*app).offerTeams, "blocked-by": (*app).offerTasks, "agent": offerAgents,
		"permission-mode": fixed(team.PermissionModes...), "policy": fixed(team.PermissionPolicies...),
		"isolation": fixed(team.Worktree), "in": fixed("merged"), "template": (*app).offerTemplates,
		"status": fixed(team.TaskStates...), "kind": fixed(history.Words()...), "type": fixed(team.MessageTypes...),
		"when":   fixed("always"),
		"intent": fixed("info", "question", "challenge", "resolution"), "priority": offerPriorities,
	}
})

// completes adds completions for arguments and flags to the command and its subcommands.
func (a *app) completes(c *cobra.Command) {
	for _, below := range c.Commands() {
		a.completes(below)
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = a.argumentsOf(c)
	}
	for flag, words := range flagWords() {
		if c.Flags().Lookup(flag) == nil {
			continue
		}
		c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, args []string, _ string) ([]string,
			cobra.ShellCompDirective) {
			name := a.completing(c)
			if len(args) > 0 && a.isTeam(args[0]) {
				name = args[0]
			}
			return words(a, c, name), cobra.ShellCompDirectiveNoFileComp
		})
	}
	if c.Flags().Lookup("dir") != nil {
		c.MarkFlagDirname("dir")
	}
}

// withoutPackage has the functions of the package bash-completion that the script for bash calls.
//
//go:embed completion.bash
var withoutPackage string

// completesInBash lets the script that "completion bash" prints work without the package
// bash-completion. Cobra's own script prints errors of bash there.
func completesInBash(root *cobra.Command) {
	if c, _, err := root.Find([]string{"completion"}); err == nil && c.Name() == "completion" {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if err := subcommand(c, args); err != nil {
				return err
			}
			return c.Help()
		}
		c.Long = `Print a script that completes commands, teams, members and tasks in a shell. To load it:

  bash   source <(cadre completion bash)
  zsh    source <(cadre completion zsh)
  fish   cadre completion fish | source

In the start-up file of the shell, the line holds for each new shell.`
	}
	c, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || c.Name() != "bash" {
		return
	}
	before, after, _ := strings.Cut(c.Long, "\nThis script depends on")
	_, after, _ = strings.Cut(after, "package manager.\n")
	c.Long = before + after
	c.RunE = func(c *cobra.Command, _ []string) error {
		var script bytes.Buffer
		plain, _ := c.Flags().GetBool("no-descriptions")
		if err := root.GenBashCompletionV2(&script, !plain); err != nil {
			return err
		}
		text := strings.NewReplacer("_filedir", "__cadre_filedir", `_get_comp_words_by_ref "$@" cur prev words cword`,
			"__cadre_words").Replace(script.String())
		_, err := c.OutOrStdout().Write([]byte(text + withoutPackage))
		return err
	}
}

// argumentsOf completes the arguments of a command by their placeholders in its use.
func (a *app) argumentsOf(c *cobra.Command) cobra.CompletionFunc {
	places, optional := placeholders(c)
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(places) > 0 && strings.Contains(places[0], "FILE") {
			if c.Name() == "run" {
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
			return nil, cobra.ShellCompDirectiveDefault
		}
		name := a.completing(c)
		at := func(i int) []string {
			if i < len(places) {
				if words := argumentWords()[places[i]]; words != nil {
					return words(a, c, name)
				}
			}
			return nil
		}
		i, found := len(args), []string(nil)
		switch {
		case len(places) == 0:
		case places[0] != "TEAM":
			found = at(i)
		case i == 0:
			found = at(0)
			if optional && name != "" {
				found = append(found, at(1)...)
			}
		case optional && !a.isTeam(args[0]):
			found = at(i + 1)
		default:
			name = args[0]
			found = at(i)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// placeholders returns the arguments in the use of the command, and whether TEAM may be left out.
func placeholders(c *cobra.Command) (places []string, optional bool) {
	use, _, _ := strings.Cut(c.Use, " | ")
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case strings.HasPrefix(w, "-"), strings.HasPrefix(w, "[-"):
			i++ // its value
		case w == "[TEAM]":
			places, optional = append(places, "TEAM"), true
		default:
			for _, name := range newNames {
				if c.Name() == name {
					w = ""
				}
			}
			places = append(places, w)
		}
	}
	return places, optional
}

// completing identifies the caller, as the gate does for a command that runs. It returns the team
// to use if none is named; "" for none.
func (a *app) completing(c *cobra.Command) string {
	var err error
	if a.home, err = findHome(); err == nil {
		err = a.findPlace()
	}
	if err != nil {
		return ""
	}
	if a.who, err = access.Who(a.home); err != nil {
		a.home = layout.Home{}
		return ""
	}
	a.home = a.who.Scoped(a.home)
	if name := os.Getenv(agent.TeamVariable); name != "" {
		return name
	}
	if name := a.who.Team(); name != "" {
		return name
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	path := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	name, err := a.engine().Meant(c.Context(), dir, access.RuleOf(path, c.Flags().Changed) == access.Reads)
	if err != nil {
		return ""
	}
	return name
}

func (a *app) isTeam(name string) bool {
	if a.home.Root == "" {
		return false
	}
	_, err := a.home.Folder(name)
	return err == nil
}

// described returns a word with a description, which may contain untrusted text.
func described(word string, about ...string) string {
	return word + "\t" + render.Cut(render.Clean(strings.Join(about, ", ")), 60)
}

func fixed(words ...string) offer {
	return func(*app, *cobra.Command, string) []string { return words }
}

func offerAgents(_ *app, c *cobra.Command, _ string) []string {
	agents := drivers.Words()
	switch c.Name() {
	case "run":
		agents = drivers.Leading()
	case "join", "claude-teammate":
		agents = drivers.Running()
	}
	var found []string
	for _, one := range agents {
		found = append(found, strings.TrimSuffix(one, "COMMAND"))
	}
	return found
}

func (a *app) offerTemplates(*cobra.Command, string) (found []string) {
	dir, err := os.Getwd()
	if err != nil || a.home.Root == "" {
		return nil
	}
	all, err := a.places(dir).All()
	if err != nil {
		return nil
	}
	for i, one := range all {
		if i == 0 || one.Name != all[i-1].Name {
			found = append(found, described(one.Name, one.Summary))
		}
	}
	return found
}

// offerPriorities returns the priorities of tasks, or of messages.
func offerPriorities(_ *app, c *cobra.Command, _ string) []string {
	if c.Parent().Name() == "task" {
		return team.Priorities
	}
	return []string{"normal", "urgent"}
}

func (a *app) offerTeams(c *cobra.Command, _ string) (found []string) {
	teams, err := a.engine().List(c.Context(), false)
	if err != nil {
		return nil
	}
	for _, of := range teams {
		if of.Err != nil {
			found = append(found, of.Name) // fsck is for it
			continue
		}
		found = append(found, described(of.Name, of.Overview.State(), of.Overview.Dir))
	}
	return found
}

// within calls see with the team, if it exists.
func (a *app) within(c *cobra.Command, name string, see func(*team.State)) {
	if name == "" || a.home.Root == "" {
		return
	}
	of, err := a.engine().Look(c.Context(), name)
	if err != nil {
		return
	}
	defer of.Close()
	of.View(see)
}

func (a *app) offerMembers(c *cobra.Command, name string) (found []string) {
	a.within(c, name, func(s *team.State) {
		for _, m := range s.Roster() {
			if m.Status.Running() && len(found) < mostOffered {
				found = append(found, described(m.Name, m.Agent, string(s.Standing(m.Name, nil))))
			}
		}
	})
	return found
}

// offerTasks returns the tasks that the command could be about; for most commands, those that are
// not done.
func (a *app) offerTasks(c *cobra.Command, name string) (found []string) {
	done := c.Name() == "show" || c.Name() == "rollback"
	a.within(c, name, func(s *team.State) {
		for t := range s.Tasks() {
			if (done || t.Status != team.Completed) && len(found) < mostOffered {
				found = append(found, described(t.Called(), t.Subject))
			}
		}
	})
	return found
}

func (a *app) offerNotes(c *cobra.Command, name string) (found []string) {
	a.within(c, name, func(s *team.State) {
		for _, n := range s.Notes() {
			if len(found) < mostOffered {
				found = append(found, described(n.Key, n.Text))
			}
		}
	})
	return found
}

func (a *app) offerRequests(c *cobra.Command, name string) (found []string) {
	a.within(c, name, func(s *team.State) {
		for _, q := range engine.Questions(s) {
			if (c.Name() == "plan") == (q.Plan != "") {
				found = append(found, described(q.Request, q.Member, q.Tool))
			}
		}
	})
	return found
}

// offerHooks returns the hooks of the team.
func (a *app) offerHooks(c *cobra.Command, name string) (found []string) {
	if name == "" || a.home.Root == "" {
		return nil
	}
	of, err := a.engine().Look(c.Context(), name)
	if err != nil {
		return nil
	}
	defer of.Close()
	list, err := of.ListHooks()
	if err != nil {
		return nil
	}
	for _, h := range list.Hooks[:min(len(list.Hooks), mostOffered)] {
		found = append(found, described(h.ID, h.Event, h.Command))
	}
	return found
}
