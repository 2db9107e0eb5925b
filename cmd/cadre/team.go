package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/git/checkout"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

func (a *app) createCommand() *cobra.Command {
	var body team.CreateTeam
	var mode leadMode
	var dir string
	var facts []string
	var liveness map[string]string
	var checks []string
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a team", Args: exactly(1),
		Long: "Create a team whose lead is you: you, or a program of yours, act as the lead through this command " +
			"line.\nTo create a team from a file and work it off in one go, use cadre run.",
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if body.PermissionMode, err = mode.chosen(c); err != nil {
				return err
			}
			if body.Dir, err = workDir(dir); err != nil {
				return err
			}
			if body.Timing, err = timing(liveness); err != nil {
				return err
			}
			if body.Facts, err = factsOf(c.Context(), body.Dir, facts); err != nil {
				return err
			}
			body.Name = args[0]
			if body.Checks, err = checksOf(checks); err != nil {
				return err
			}
			body.Base = consolidate.Look(c.Context(), body.Dir, a.home.Root, a.home.Claude)
			body.TeamID = args[0] + "-" + strings.ToLower(replica.NewID())
			if err := a.home.Create(body.Name, []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
				Body: &body}}); err != nil {
				return err
			}
			rep, _, err := a.open(c.Context(), body.Name, true)
			if err != nil {
				return err
			}
			defer rep.Close()
			t := rep.Team()
			return a.print(t, said("team %s (%s) is led by %s; add teammates: cadre spawn %s NAME", t.Name, t.ID,
				t.Lead, t.Name))
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "directory that the team works in")
	c.Flags().StringVar(&body.Goal, "goal", "", "what the team is for")
	c.Flags().StringVar(&body.Lead, "lead", team.DefaultLead, "name of the lead")
	mode.flags(c, team.PermissionModes[0])
	c.Flags().BoolVar(&body.Delegate, "delegate", false, "the lead may only coordinate")
	c.Flags().Int64Var(&body.MaxTeammates, "max-teammates", 0, "teammates that the team may have at a time; 0 for 10 "+
		"that an agent that leads spawns, and any number that you do")
	c.Flags().StringArrayVar(&body.Permissions.Allow, "allow", nil, "what needs no asking, for example 'Bash(go "+
		"test:*)'; may be repeated")
	c.Flags().StringVar(&body.Permissions.Policy, "policy", "", "who settles what no rule does: user, lead, "+
		"allow or deny")
	c.Flags().Int64Var(&body.Budget.Tokens, "budget-tokens", 0, "tokens that the team may use; 0 for any number")
	c.Flags().StringToStringVar(&liveness, "liveness", nil, "what silence means, for example "+
		"beat=30s,offline=10m,leadLost=5m,zombie=30m,blocked=10m,undelivered=5m,stale=30m,checkpoint=30s, which are "+
		"the defaults")
	c.Flags().StringArrayVar(&facts, "fact", nil,
		"NAME=PATH, or PATH: a file that everybody relies on; may be repeated")
	c.Flags().StringArrayVar(&checks, "check", nil, "COMMAND, or NAME: COMMAND, that has to pass before cadre "+
		"consolidate commits; may be repeated")
	return c
}

// leadMode is the permission mode of a lead, by either of two flags.
type leadMode struct {
	mode string
	skip bool
}

// flags adds the flags. --dangerously-skip-permissions is Claude Code's name for the mode
// bypassPermissions.
func (m *leadMode) flags(c *cobra.Command, usual string) {
	c.Flags().StringVar(&m.mode, "permission-mode", usual, "of the lead, and of the teammates that it spawns")
	c.Flags().BoolVar(&m.skip, skipPermissions, false, "the same as --permission-mode "+bypassPermissions+
		": nobody is asked before a tool runs")
}

// chosen is the mode that the flags ask for.
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

// timing reads the periods of --liveness.
func timing(periods map[string]string) (t team.Timing, err error) {
	known := map[string]*int64{"beat": &t.Beat, "offline": &t.Offline, "leadLost": &t.LeadLost, "zombie": &t.Zombie,
		"blocked": &t.Blocked, "undelivered": &t.Undelivered, "stale": &t.Stale, "checkpoint": &t.Checkpoint}
	for _, name := range slices.Sorted(maps.Keys(periods)) {
		to := known[name]
		if to == nil {
			return t, usage{fmt.Errorf("--liveness has no period %q; it has %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))}
		}
		d, err := time.ParseDuration(periods[name])
		if err != nil || d < teamfile.MinPeriod {
			return t, usage{fmt.Errorf("--liveness %s=%s is no period; it is like 90s or 10m, and at least %s", name,
				periods[name], teamfile.MinPeriod)}
		}
		*to = d.Milliseconds()
	}
	return t, nil
}

func exactly(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage{fmt.Errorf("%d arguments where %q needs %d; see: %s --help", len(args), c.Use, n,
				c.CommandPath())}
		}
		return nil
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usage{fmt.Errorf("%d arguments where %q takes %d at most; see: %s --help", len(args), c.Use, n,
				c.CommandPath())}
		}
		return nil
	}
}

func atLeast(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return usage{fmt.Errorf("%d arguments where %q needs %d at least; see: %s --help", len(args), c.Use, n,
				c.CommandPath())}
		}
		return nil
	}
}

func (a *app) spawnCommand() *cobra.Command {
	var body team.SpawnMember
	var wait bool
	c := a.onTeam(1, &cobra.Command{
		Use: "spawn [TEAM] NAME", Short: "Add a teammate",
		Long: "Add a teammate.\n\n  claude, codex, gemini, opencode, acp:COMMAND   a coding agent; a host in the " +
			"background runs its session\n  claude-tmux   Claude Code at a terminal of its own, to which you can " +
			"go\n  shell     runs the commands of tasks (cadre task add --run), in the same way\n  external  has no " +
			"session: a person or a program acts as it, with --as NAME and --from NAME, or through cadre mcp\n\nIt " +
			"starts with the lead's permission mode, or with --permission-mode; cadre mode changes it. A role that " +
			"names a file in .claude/agents has its prompt, tools and model.\n\nA coding agent that is not " +
			"installed, or to which nobody is logged in, is not added. With --wait the command ends when its session " +
			"runs, or says why it does not.",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		if err := knownAgent(body.Agent); err != nil {
			return err
		}
		if err := a.spawns(c.Context(), name, body.Agent); err != nil {
			return err
		}
		body.Name = args[0]
		var start launch
		if body.Agent != team.External {
			t, err := a.glance(c.Context(), name)
			if err != nil {
				return err
			}
			if err := unworkable(t, checkout.Glance(t)); err != nil {
				return err
			}
			if body.Isolation == team.Worktree {
				if err := isolates(c.Context(), t.Dir); err != nil {
					return &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s cannot have a worktree of its own: %v",
						body.Name, err)}
				}
			}
			// What can fail comes before the member is on record.
			if err := able(c.Context(), &body, t.Dir); err != nil {
				return err
			}
			dir, err := a.home.Folder(name)
			if err != nil {
				return err
			}
			if start, err = prepareHost(dir); err != nil {
				return fmt.Errorf("%s was not added: %w", body.Name, err)
			}
			defer start.close()
		}
		err = a.act(c, name, &body, func(rep *replica.Replica, _ *team.Record) error {
			var m team.Member
			rep.View(func(s *team.State) { m, _ = s.Member(body.Name) })
			a.winding(rep.Team())
			if wait && m.Agent != team.External {
				return nil // there is more to say of it
			}
			return a.print(m, said("%s joined team %s", m.Name, name))
		})
		if err != nil || body.Agent == team.External {
			return err
		}
		rep, dir, err := a.open(c.Context(), name, false)
		if err != nil {
			return err
		}
		defer rep.Close()
		if err := start.ensure(c.Context(), rep, dir, body.Name); err != nil || !wait {
			return err
		}
		m, err := awaitStart(c.Context(), rep, body.Name)
		if err != nil {
			return err
		}
		return a.print(m, said("%s joined team %s, and its session runs", m.Name, name))
	})
	c.Flags().StringVar(&body.Agent, "agent", team.Shell, strings.Join(drivers.Words(), ", "))
	c.Flags().StringVar(&body.Model, "model", "", "the model; by default the agent's own choice")
	c.Flags().StringVar(&body.Program, "command", "", "the executable, instead of the agent's own")
	c.Flags().StringArrayVar(&body.Args, "arg", nil, "added to the agent's arguments; may be repeated")
	c.Flags().StringArrayVar(&body.Env, "env", nil, "NAME=value, added to the agent's environment; may be repeated")
	c.Flags().StringVar(&body.Isolation, "isolation", "", "worktree: a git worktree and a branch of its own")
	c.Flags().StringVar(&body.Role, "role", "", "tasks can be meant for a role")
	c.Flags().StringVar(&body.Prompt, "prompt", "", "what the teammate is told at its start")
	c.Flags().BoolVar(&wait, "wait", false, "wait until its session runs")
	c.Flags().BoolVar(&body.PlanApproval, "plan-approval", false, "it may write nothing before the lead approved "+
		"its plan")
	c.Flags().StringVar(&body.Mode, "permission-mode", "", "what it may do without asking: "+strings.Join(
		team.PermissionModes, ", ")+"; by default the lead's mode")
	actsAs(c)
	return c
}

// spawns refuses an agent that whoever calls may not choose for a teammate.
func (a *app) spawns(ctx context.Context, name, agent string) error {
	if a.who.IsUser() {
		return nil
	}
	rep, _, err := a.open(ctx, name, false)
	if err != nil {
		return err
	}
	defer rep.Close()
	return a.who.Spawns(agent, drivers.Offers(leadAgent(rep)))
}

// able says why no session of the member could work, as far as that can be told without starting
// one.
func able(ctx context.Context, m *team.SpawnMember, dir string) error {
	var login agent.Login
	var asking sync.WaitGroup
	asking.Go(func() { login = drivers.Login(ctx, m.Agent, m.Program, dir, append(os.Environ(), m.Env...)) })
	err := drivers.Missing(ctx, m.Agent, m.Program)
	asking.Wait()
	switch {
	case err != nil:
		return &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s was not added: %s cannot work here: %v", m.Name,
			m.Agent, err)}
	case login.State == agent.NotLoggedIn && len(m.Args) == 0: // its arguments may say how it logs in
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s was not added: nobody is logged in to %s "+
			"here%s. To log in: %s. Then run the command again", m.Name, m.Agent,
			prefix(": ", login.Detail), login.How)}
	}
	return nil
}

// startTime bounds the wait for a session; each driver bounds its own start below that.
const startTime = 4 * time.Minute

// awaitStart waits until the member's session runs. Its first failure ends the wait, also where it
// is tried again.
func awaitStart(ctx context.Context, rep *replica.Replica, member string) (m team.Member, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the session of %s did not start within %s; "+
		"to see why: cadre log %s", member, startTime, rep.Team().Name))
	defer cancel()
	for {
		var seq int64
		rep.View(func(s *team.State) { m, _ = s.Member(member); seq = s.Seq() })
		switch {
		case !m.Status.Running():
			return m, &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s could not start: %s. To try again: "+
				"cadre spawn %s NAME --agent %s", member, m.Summary, rep.Team().Name, m.Agent)}
		case m.Setbacks > 0:
			return m, &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s could not start yet, and is tried "+
				"again: %s", member, m.Summary)}
		case m.Status != team.Spawning:
			return m, nil
		}
		if err := rep.Wait(ctx, seq); err != nil {
			return m, context.Cause(ctx)
		}
	}
}

// isolates says why no member can have a worktree of its own in that directory.
func isolates(ctx context.Context, dir string) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	return worktree.Able(ctx, procs, dir)
}

// ensureHost sees to it that a living host has the leases of the members, and starts one in the
// background if there is none.
func ensureHost(ctx context.Context, rep *replica.Replica, dir string, members ...string) error {
	if len(members) == 0 {
		return nil
	}
	l, err := prepareHost(dir)
	if err != nil {
		return err
	}
	defer l.close()
	return l.ensure(ctx, rep, dir, members...)
}

func (l launch) ensure(ctx context.Context, rep *replica.Replica, dir string, members ...string) error {
	if !host.Hosted(filepath.Join(dir, "hosts")) {
		if err := l.start(rep.Team().Name); err != nil {
			return err
		}
	}
	for _, member := range members {
		if err := awaitHost(ctx, rep, dir, member); err != nil {
			return err
		}
	}
	return nil
}

// awaitHost waits until a living host has the lease of the member.
func awaitHost(ctx context.Context, rep *replica.Replica, dir, member string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second,
		fmt.Errorf("no host took %s within 10 s; to see why: cadre host %s", member, rep.Team().Name))
	defer cancel()
	for {
		var m team.Member
		var seq int64
		rep.View(func(s *team.State) { m, _ = s.Member(member); seq = s.Seq() })
		if !m.Status.Running() || m.Host != "" && proc.Lives(filepath.Join(dir, "hosts", m.Host)) {
			return nil
		}
		if err := rep.Wait(ctx, seq); err != nil {
			return context.Cause(ctx)
		}
	}
}

// launch is what a host in the background needs to be started.
type launch struct {
	self string
	log  *os.File
}

// prepareHost does what can fail before a host of the team in that folder is started.
func prepareHost(dir string) (l launch, err error) {
	if l.self, err = os.Executable(); err != nil {
		return l, err
	}
	hosts := filepath.Join(dir, "hosts")
	if err := os.MkdirAll(hosts, 0o700); err != nil {
		return l, fmt.Errorf("no host can run its session: %w", err)
	}
	l.log, err = regularfile.OpenFile(filepath.Join(dir, "host.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return l, fmt.Errorf("no host can run its session, because its log cannot be written: %w; remove or mend "+
			"that, then try again", err)
	}
	return l, nil
}

func (l launch) close() { l.log.Close() }

// start starts cadre host in a session of its own, so that it outlives this command and its
// terminal.
func (l launch) start(name string) error {
	c := exec.Command(l.self, "host", name)
	c.Env = access.Unnamed(proc.Unmarked(os.Environ())) // also when a session of ours asked for it
	c.Stdout, c.Stderr = l.log, l.log
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}

func (a *app) hostCommand() *cobra.Command {
	return a.onTeam(0, &cobra.Command{
		Use: "host [TEAM]", Short: "Run the sessions of a team's members in this process",
		Long: "Run the sessions of a team's members until they have ended or the team has. cadre run does this for a " +
			"team file, and\ncadre spawn starts it in the background; its output is then in the team's folder as " +
			"host.log. It may be stopped and\nstarted again at any time, also with kill -9: tasks that were under " +
			"way go back on the list.",
	}, func(c *cobra.Command, name string, _ []string) error {
		stays()
		ctx := c.Context()
		t, err := a.engine().Open(ctx, name)
		if err != nil {
			return err
		}
		defer t.Close()
		h, err := t.Host(ctx, engine.HostOptions{UntilIdle: true})
		if err != nil {
			return a.moving(err, name, "cadre resume "+name)
		}
		select {
		case <-ctx.Done():
		case <-h.Done():
		}
		return h.End()
	})
}

func prefix(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}

// leadAgent is the agent that leads the team; external where a person or a program does.
func leadAgent(rep *replica.Replica) (name string) {
	rep.View(func(s *team.State) {
		m, _ := s.Member(s.Team().Lead)
		name = m.Agent
	})
	return name
}
