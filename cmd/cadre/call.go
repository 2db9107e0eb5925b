package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/ui/tui"
)

// onTeam makes a command about a team. It needs that many arguments after TEAM, which may be left
// out. run gets the team's name and the arguments.
func (a *app) onTeam(needed int, c *cobra.Command,
	run func(c *cobra.Command, name string, args []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		name, rest, err := a.split(c, args, needed)
		if err == nil {
			err = engine.InTermsOf(name, run(c, name, rest))
		}
		return a.forgotten(c, args, needed, err)
	}
	return c
}

// forgotten returns the error for a command that needs more arguments. If a team is the first
// argument and others are missing, the error names them. A shell reads #2 as a comment, which
// leaves only the team.
func (a *app) forgotten(c *cobra.Command, args []string, needed int, err error) error {
	_, wrong := errors.AsType[usage](err)
	if wrong && len(args) == 0 && strings.Contains(c.Parent().Use, "[TEAM]") && a.isTeam(c.Name()) {
		if of, unknown := a.engine().Glance(c.Context(), c.Name()); unknown == nil { // the word is a command, and a team
			return withWays(err, way{"call " + c.Parent().CommandPath() + " for team " + c.Name(),
				c.Parent().CommandPath() + " " + of.ID})
		}
	}
	if !wrong && team.CodeOf(err) != team.NotFound || len(args) == 0 || len(args) > needed || !a.isTeam(args[0]) {
		return err
	}
	text := missing(c, args)
	places, _ := placeholders(c)
	if len(args) == 1 && (slices.Contains(places, "ID") || slices.Contains(places, "TASK")) {
		text += ". Quote the number of a task: '#2'. A shell takes #2 for a comment"
	}
	if c.Name() == "shutdown" {
		return withWays(usage{errors.New(text)}, way{"let the whole team wind down", render.Typed("shutdown", args[0],
			"--graceful")})
	}
	if slices.Contains(places, "REQUEST") {
		return withWays(usage{errors.New(text)}, way{"see which requests wait", render.Typed("attention", args[0])})
	}
	lead := ""
	a.within(c, args[0], func(s *team.State) { lead = s.Team().Lead })
	if c.Name() == "inbox" && lead != "" {
		return withWays(usage{errors.New(text)}, way{"read the mail of the lead", render.Typed("inbox", args[0], lead)})
	}
	return usage{errors.New(text)}
}

// missing says which arguments are missing after a team and perhaps others.
func missing(c *cobra.Command, args []string) string {
	call, needs := syntax(c, args[0]), required(c)
	for i, place := range needs[:len(args)-1] {
		call = strings.Replace(call, place, sanitize.Quote(args[i+1]), 1)
	}
	needs = needs[len(args)-1:]
	are := "is"
	if len(needs) > 1 {
		are = "are"
	}
	return fmt.Sprintf("%s is a team, and %s %s missing: %s", args[0], strings.Join(needs, " and "), are, call)
}

// saying is onTeam for a command whose one argument is a text or a new name. It refuses the name of
// a team alone: the text was forgotten.
func (a *app) saying(c *cobra.Command, run func(c *cobra.Command, name string, text string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			if _, err := a.home.Folder(args[0]); err == nil {
				meant := "say just " + args[0]
				switch c.Name() {
				case "add":
					meant = "add a task called " + args[0]
				case "spawn":
					meant = "add a member called " + args[0]
				}
				words := append(called(c), "TEAM")
				if to := c.Flags().Lookup("to"); to != nil && to.Changed {
					words = append(words, "--to", sanitize.Quote(to.Value.String()))
				}
				return withWays(usage{errors.New(missing(c, args))},
					way{meant, strings.Join(append(words, args[0]), " ")})
			}
		}
		name, args, err := a.split(c, args, 1)
		if err != nil {
			return err
		}
		return run(c, name, args[0])
	}
	return c
}

// called returns the words of the command, without arguments.
func called(c *cobra.Command) []string { return strings.Fields(c.CommandPath()) }

// syntax returns how to call the command for the team, with the recipient that was typed.
func syntax(c *cobra.Command, name string) string {
	forms := strings.Split(c.Use, " | ")
	meant := forms[0]
	for _, form := range forms[1:] { // the one whose flag was typed
		for _, flag := range typedFlags(c) {
			if strings.Contains(form+" ", " --"+flag.name+" ") && !strings.Contains(forms[0]+" ", " --"+flag.name+" ") {
				meant = form
			}
		}
	}
	_, words, _ := strings.Cut(meant, " ")
	if to := c.Flags().Lookup("to"); to != nil && to.Changed {
		words = strings.Replace(words, "--to NAME", "--to "+sanitize.Quote(to.Value.String()), 1)
	}
	return strings.Join(append(called(c), strings.Replace(words, "[TEAM]", name, 1)), " ")
}

// retyped returns the call again with TEAM in it, and with all that was typed.
func retyped(c *cobra.Command, args []string) string {
	words := strings.Fields(syntax(c, "TEAM"))
	for _, place := range required(c) {
		if at := slices.Index(words, place); at >= 0 && len(args) > 0 {
			words[at], args = sanitize.Quote(args[0]), args[1:]
		}
	}
	known := len(words)
	for _, flag := range typedFlags(c) {
		at := slices.Index(words[:known], "--"+flag.name)
		switch {
		case at < 0:
			words = append(words, "--"+flag.name+flag.joined())
		case at+1 < len(words) && !flag.on:
			words[at+1] = sanitize.Quote(flag.value)
		}
	}
	return strings.Join(words, " ")
}

// typedFlag is a flag of the call with one of its values.
type typedFlag struct {
	name, value string
	on          bool // it is a switch, and has no value
}

func (f typedFlag) joined() string {
	if f.on {
		return ""
	}
	return " " + sanitize.Quote(f.value)
}

// typedFlags returns the flags of the call.
func typedFlags(c *cobra.Command) (all []typedFlag) {
	c.Flags().Visit(func(f *pflag.Flag) {
		list, several := f.Value.(pflag.SliceValue)
		switch {
		case several:
			for _, one := range list.GetSlice() {
				all = append(all, typedFlag{name: f.Name, value: one})
			}
		case f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal:
			all = append(all, typedFlag{name: f.Name, on: true})
		case f.NoOptDefVal != "":
			all = append(all, typedFlag{name: f.Name + "=" + f.Value.String(), on: true})
		default:
			all = append(all, typedFlag{name: f.Name, value: f.Value.String()})
		}
	})
	return all
}

// looking is onTeam for a command that only reads the team.
func (a *app) looking(needed int, c *cobra.Command,
	run func(c *cobra.Command, d *engine.Team, args []string) error) *cobra.Command {
	return a.onTeam(needed, c, func(c *cobra.Command, name string, args []string) error {
		of, err := a.engine().Look(c.Context(), name)
		if err != nil {
			return err
		}
		defer of.Close()
		return run(c, of, args)
	})
}

// act sends the command to the team as the caller; see gets the result.
func (a *app) act(c *cobra.Command, name string, body team.Body,
	see func(of *engine.Team, r *team.Record) error) error {
	return a.engine().Act(c.Context(), name, a.actor, body, see)
}

// split separates TEAM, which may be left out, from the arguments of a command that needs that
// many.
func (a *app) split(c *cobra.Command, args []string, needed int) (name string, rest []string, err error) {
	switch len(args) {
	case needed:
		name, err = a.theTeam(c, args...)
		a.team = name
		return name, args, err
	case needed + 1:
		a.team = args[0]
		if !a.reads {
			a.named = args[0]
		}
		return args[0], args[1:], nil
	}
	return "", nil, miscounted(c, args, needed, needed+1)
}

// theTeam returns the team if the arguments name none. A command that changes or ends a team does
// not use a team just because it is the only one: that could be the wrong team.
func (a *app) theTeam(c *cobra.Command, args ...string) (string, error) {
	if name := os.Getenv(agent.TeamVariable); name != "" {
		stranger, is := strings.CutPrefix(name, tui.StrangerPrefix)
		switch {
		case is && stranger == "":
			return "", usage{fmt.Errorf("no team is selected on the screen; select one, or name it: %s",
				retyped(c, args))}
		case is:
			return "", usage{fmt.Errorf("%s is a team of Claude Code, which cadre does not run; select a team of "+
				"cadre, or name one: %s", stranger, retyped(c, args))}
		}
		return name, nil
	}
	if name := a.who.Team(); name != "" {
		return name, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	name, err := a.engine().Meant(c.Context(), dir, a.reads)
	if which, ok := errors.AsType[*engine.WhichError](err); ok {
		return "", usage{fmt.Errorf("say which team: %s; %s", retyped(c, args), which)}
	}
	return name, err
}

// actsAs adds the flag with which a person or program acts as a member.
func actsAs(c *cobra.Command) {
	c.Flags().String("as", "", "act as this member; you by default")
}

// named returns the member that the flags of the command name, and the flag; "" for none.
func named(c *cobra.Command) (flag, member string) {
	if f := c.Flags().Lookup("as"); f != nil && f.Changed {
		return "as", f.Value.String()
	}
	return "", ""
}

// admit passes the command through the gate. The caller decides whether the command runs, and which
// teams it reaches.
func (a *app) admit(c *cobra.Command) (err error) {
	path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name()), " ")
	rule := access.RuleOf(path, c.Flags().Changed)
	a.reads = rule == access.Reads
	if rule == access.Anyone {
		return nil // who calls need not be known
	}
	if a.who, err = access.Who(a.home); err != nil {
		return err
	}
	if err := a.who.Command(path, c.Flags().Changed); err != nil {
		return err
	}
	a.home = a.who.Scoped(a.home)
	if rule != access.Reads {
		flag, member := named(c)
		a.actor, err = a.who.Actor("--"+flag, member)
	}
	return err
}
