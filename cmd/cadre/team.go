package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/agent/drivers"
	"cadre/internal/engine"
	"cadre/internal/engine/machines"
	"cadre/internal/run"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func (a *app) createCommand() *cobra.Command {
	var typed teamTyped
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a team", Args: exactly(1),
		Long: "Create a team that you lead: you, or a program of yours, act as the lead with commands.\nTo create a " +
			"team from a file and run it to its end, use cadre run.",
		RunE: func(c *cobra.Command, args []string) error {
			body, err := typed.command(c, args[0])
			if err != nil {
				return err
			}
			a.home = a.home.In(body.Dir)
			e := a.engine()
			if err := e.Founding(c.Context(), body); err != nil {
				return err
			}
			if err := e.Create(body.Name, []team.Command{engine.Command(team.User, body)}); err != nil {
				return err
			}
			of, err := e.Open(c.Context(), body.Name)
			if err != nil {
				return err
			}
			defer of.Close()
			t := of.Team()
			return a.print(t, said("team %s (%s) is led by %s; add teammates: cadre spawn %s NAME", t.Name, t.ID,
				t.Lead, t.Name))
		},
	}
	typed.flags(c)
	a.renamed(c, "meta", "metadata")
	return c
}

// teamTyped has what flags say of a new team.
type teamTyped struct {
	body                team.CreateTeam
	mode                leadMode
	dir                 string
	liveness            map[string]string
	facts, checks, meta []string
}

// flags adds the flags that describe a team.
func (t *teamTyped) flags(c *cobra.Command) {
	c.Flags().StringVar(&t.dir, "dir", ".", "directory that the team works in")
	c.Flags().StringVar(&t.body.Goal, "goal", "", "what the team is for")
	metadataFlag(c, &t.meta, "what to keep with the team")
	c.Flags().StringVar(&t.body.Lead, "lead", team.DefaultLead, "name of the lead")
	t.mode.flags(c, team.PermissionModes[0])
	c.Flags().BoolVar(&t.body.Delegate, "delegate", false, "the lead may only coordinate")
	c.Flags().Int64Var(&t.body.MaxParallel, "max-parallel", 0, "teammates that have a turn at a time, while the others "+
		"wait; 0 for no limit")
	c.Flags().StringVar(&t.body.Remote, "remote", "", "git remote through which the work of members travels between "+
		"machines")
	c.Flags().Int64Var(&t.body.MaxDepth, "max-depth", 0, "how deep teams may be nested in it, up to 3; 0 for no teams in "+
		"the team")
	c.Flags().Int64Var(&t.body.MaxTeammates, "max-teammates", 0, "teammates that the team may have at a time; with 0 "+
		"an agent that leads may spawn 10, and you any number")
	c.Flags().StringArrayVar(&t.body.Permissions.Allow, "allow", nil, "tools that need no permission, for example "+
		"'Bash(go test:*)'; may be repeated")
	c.Flags().StringVar(&t.body.Permissions.Policy, "policy", "", "who answers requests that no rule covers: user, "+
		"lead, allow or deny")
	c.Flags().Int64Var(&t.body.Budget.Tokens, "budget-tokens", 0, "tokens that the team may use; 0 for any number")
	c.Flags().StringToStringVar(&t.liveness, "liveness", nil, "time limits of failure detection, such as "+
		"offline=10m,zombie=30m; cadre schema teamfile has all of them, with the defaults")
	c.Flags().StringArrayVar(&t.facts, "fact", nil,
		"NAME=PATH, or PATH: a file that all members rely on; may be repeated")
	c.Flags().StringArrayVar(&t.checks, "check", nil, "COMMAND, or NAME: COMMAND, that has to pass before "+
		"the team's work is committed; may be repeated")
}

// command returns the command that creates the team.
func (t *teamTyped) command(c *cobra.Command, name string) (body *team.CreateTeam, err error) {
	body = &t.body
	body.Name = name
	if body.PermissionMode, err = t.mode.chosen(c); err != nil {
		return nil, err
	}
	if body.Dir, err = workDir(t.dir); err != nil {
		return nil, err
	}
	if body.Timing, err = run.ParseTiming(t.liveness); err != nil {
		return nil, err
	}
	if body.Facts, err = run.ParseFacts(t.facts); err != nil {
		return nil, err
	}
	if body.Checks, err = run.ParseChecks(t.checks); err != nil {
		return nil, err
	}
	if body.Metadata, err = metadataOf(t.meta); err != nil {
		return nil, err
	}
	return body, nil
}

// leadMode is the permission mode of a lead, set by either of two flags.
type leadMode struct {
	mode string
	skip bool
}

// flags adds the flags. --dangerously-skip-permissions is Claude Code's name for the mode
// bypassPermissions.
func (m *leadMode) flags(c *cobra.Command, usual string) {
	c.Flags().StringVar(&m.mode, "permission-mode", usual,
		"permission mode of the lead, and of the teammates that it spawns")
	c.Flags().BoolVar(&m.skip, skipPermissions, false, "the same as --permission-mode "+bypassPermissions+
		": tools run without a question")
}

// chosen returns the mode that the flags select.
func (m *leadMode) chosen(c *cobra.Command) (string, error) {
	switch {
	case !m.skip:
		return m.mode, nil
	case c.Flags().Changed("permission-mode") && m.mode != bypassPermissions:
		return "", usage{fmt.Errorf("--%s asks for the mode %s, and --permission-mode for %s; leave one of them out",
			skipPermissions, bypassPermissions, m.mode)}
	}
	return bypassPermissions, nil
}

const (
	skipPermissions   = "dangerously-skip-permissions"
	bypassPermissions = "bypassPermissions"
)

func (a *app) spawnCommand() *cobra.Command {
	var body team.SpawnMember
	var wait bool
	c := a.saying(&cobra.Command{
		Use: "spawn [TEAM] NAME", Short: "Add a teammate",
		Long: "Add a teammate.\n\n  claude, codex, gemini, opencode, acp:COMMAND   a coding agent; a host in the " +
			"background runs its session\n  claude-tmux   Claude Code at a terminal of its own, to which you can " +
			"go\n  shell     runs the commands of tasks (cadre task add --run), in the same way\n  external  has no " +
			"session: a person or a program acts as it, with --as NAME, or through cadre mcp\n  team      a team of " +
			"its own, which an agent leads to the goal in --prompt; cadre create --max-depth allows it\n\nA team " +
			"from a file or a template is a member of a team file, with agent: team.\n\nIt " +
			"starts with the lead's permission mode, or with --permission-mode; cadre mode changes it. A role that " +
			"names a file in .claude/agents has its prompt, tools and model.\n\nA coding agent that is not " +
			"installed, or not logged in, is not added. With --wait the command ends when its session " +
			"runs, or says why it does not.",
	}, func(c *cobra.Command, name, member string) (err error) {
		if err := engine.CheckAgent(body.Agent); err != nil {
			return err
		}
		body.Name = member
		t, err := a.engine().Open(c.Context(), name)
		if err != nil {
			return err
		}
		defer t.Close()
		if err := t.MaySpawn(a.who, body.Agent); err != nil {
			return err
		}
		waits := wait && body.Agent != team.External
		hosted := t.Hosted(c.Context())
		err = t.Spawn(c.Context(), a.actor, &body, func(m team.Member) error {
			a.winding(t.Team())
			if waits {
				return nil // its session is awaited
			}
			return a.print(m, said("%s joined team %s", m.Name, name))
		})
		if err == nil && body.Agent != team.External {
			err = a.runsBeside(c.Context(), t, name, hosted)
		}
		if err != nil || !waits {
			return err
		}
		m, err := t.AwaitStart(c.Context(), body.Name)
		if err != nil {
			return err
		}
		return a.print(m, said("%s joined team %s, and its session runs", m.Name, name))
	})
	spawnFlags(c, &body)
	c.Flags().BoolVar(&wait, "wait", false, "wait until its session runs")
	actsAs(c)
	return c
}

// runsBeside says that a host was started, where none ran the team, and shows the members in panes
// if that is set up.
func (a *app) runsBeside(ctx context.Context, t *engine.Team, name string, hosted bool) error {
	if !hosted {
		a.note(fmt.Sprintf("a host in the background runs the sessions of team %s now; to pause them: cadre pause %s",
			t.Team().Name, name))
	}
	if a.engine().TeammateMode(t.Team().Dir) == "" {
		return nil
	}
	choice, err := a.choosePanes(t.Team().Dir, false)
	if err == nil {
		a.panesBeside(ctx, t, choice)
	}
	return err
}

func spawnFlags(c *cobra.Command, body *team.SpawnMember) {
	c.Flags().StringVar(&body.Agent, "agent", team.Shell, strings.Join(drivers.Words(), ", "))
	c.Flags().StringVar(&body.Model, "model", "", "the model; by default the agent's own choice")
	c.Flags().StringVar(&body.Program, "command", "", "the executable, instead of the agent's own")
	c.Flags().StringArrayVar(&body.Args, "arg", nil, "added to the agent's arguments; may be repeated")
	c.Flags().StringArrayVar(&body.Env, "env", nil, "NAME=VALUE, added to the agent's environment; may be repeated")
	c.Flags().StringVar(&body.Isolation, "isolation", "", "worktree: a git worktree and a branch of its own")
	c.Flags().StringArrayVar(&body.RunsOn, "runs-on", nil, "a `label` of the machine that runs it; may be repeated")
	c.Flags().StringVar(&body.Role, "role", "", "its role; tasks can be restricted to a role")
	c.Flags().StringVar(&body.Prompt, "prompt", "", "prompt of its first session; with --agent team, the goal")
	c.Flags().BoolVar(&body.PlanApproval, "plan-approval", false, "it may change nothing before the lead approved "+
		"its plan")
	c.Flags().StringVar(&body.Mode, "permission-mode", "", "what it may do without asking: "+strings.Join(
		team.PermissionModes, ", ")+"; by default the lead's mode")
}

func (a *app) hostCommand() *cobra.Command {
	o := machines.Options{}
	c := a.onTeam(0, &cobra.Command{
		Use: "host [TEAM]", Short: "Run the sessions of a team's members, or of many teams by labels",
		Long: `Run the sessions of a team's members until they have ended or the team has. cadre run does this for a team file, and
cadre spawn starts it in the background; its output is then in the team's folder as host.log. cadre pause ends it, and
so does kill -9, at any time: tasks that were under way return to the queue, and the next host continues.

With --label, and without TEAM, this computer is a machine for the teams of a database (--store). It looks at all teams
of the project in --dir, and runs each member that names only labels of this machine (runsOn). Members work in worktrees
of this clone, and their work travels through the git remote of their team. cadre hosts lists the machines.`,
		Example: "  cadre host demo\n  cadre host --label gpu --slots 8 --store postgres://worker@localhost/work",
	}, func(c *cobra.Command, name string, _ []string) error {
		stays()
		return a.hostTeam(c, name)
	})
	onTeam := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(o.Labels) == 0 {
			for _, flag := range []string{"slots", "name", "dir"} {
				if c.Flags().Changed(flag) {
					return usage{fmt.Errorf("--%s is for a machine; say with --label which members it runs", flag)}
				}
			}
			return onTeam(c, args)
		}
		switch {
		case len(args) > 0:
			return usage{fmt.Errorf("a machine runs the members of all teams of the project; leave %s out, or --label", args[0])}
		case o.Slots < 0 || c.Flags().Changed("slots") && o.Slots == 0:
			return usage{errors.New("a machine needs at least one slot")}
		}
		stays()
		if guarded, err := a.guarded(); guarded || err != nil {
			return err
		}
		return a.machine(c, o)
	}
	f := c.Flags()
	f.StringArrayVar(&o.Labels, "label", nil, "run the members that name this `label`; may be repeated")
	f.IntVar(&o.Slots, "slots", 0, "how many members a machine runs at a time; default one for each of its processors")
	f.StringVar(&o.Dir, "dir", ".", "a machine's clone of the project")
	f.StringVar(&o.Name, "name", "", "a machine's name; default the computer's")
	return c
}

// guarded runs this program once more, below a process that ends it if this one is killed. In that
// one it does nothing.
func (a *app) guarded() (was bool, err error) {
	guarded, status, err := proc.Guard(a.home.Running(), append([]string{self()}, os.Args[1:]...),
		a.home.ForOurs(os.Environ()), a.out.file)
	if guarded && status != done {
		return true, errors.Join(err, exit(status))
	}
	return guarded, err
}

// hostTeam runs the sessions of a team's members.
func (a *app) hostTeam(c *cobra.Command, name string) error {
	if guarded, err := a.guarded(); guarded || err != nil {
		return err
	}
	ctx := a.pausesUnread(c.Context())
	t, err := a.engine().Open(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := t.Engine().WithParent(ctx, t.Team(), "run", team.ActResume); err != nil {
		return err
	}
	h, err := t.Host(ctx, engine.HostOptions{UntilIdle: true, Hurry: a.haste.hurry, Kill: a.haste.kill,
		Pause: a.haste.pause})
	if err != nil {
		return a.moving(err, name, "cadre resume "+name)
	}
	defer a.notifies(context.WithoutCancel(ctx), a.note)()
	defer a.announce(ctx, a.note, func() int { return sessions(t) })()
	select {
	case <-ctx.Done():
		return h.Pause()
	case <-h.Done():
		return h.End()
	}
}

func prefix(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}
