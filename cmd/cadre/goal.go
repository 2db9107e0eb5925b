package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// goal is what the flags of run say of a team that is given a goal instead of a file.
type goal struct {
	leadMode
	name, agent, model, policy string
	members, handover, most    int
	delegate                   bool
	allow, checks              []string
	tokens                     int64
	usd                        float64
}

func (g *goal) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&g.name, "name", "", "name of the team; by default made from the goal")
	f.StringVar(&g.agent, "agent", "", "agent that leads: claude, codex, gemini, opencode or acp:COMMAND; by default "+
		"the first that is installed")
	f.StringVar(&g.model, "model", "", "model of the lead, and of --members; by default the agent's own choice")
	f.IntVar(&g.members, "members", 0, "teammates to begin with, of the same agent; the lead spawns what else it needs")
	f.IntVar(&g.most, "max-teammates", 0, "teammates that the team may have at a time; 0 for 10 that the lead "+
		"spawns, and any number that you do")
	f.BoolVar(&g.delegate, "delegate", false, "the lead may only coordinate")
	g.leadMode.flags(c, "")
	f.StringArrayVar(&g.allow, "allow", nil, "what needs no asking, for example 'Bash(go test:*)'; may be repeated")
	f.StringVar(&g.policy, "policy", "", "who settles what no rule does: user (you, at this terminal), lead, "+
		"allow or deny")
	f.Int64Var(&g.tokens, "budget-tokens", 0, "tokens that the team may use; 0 for any number")
	f.Float64Var(&g.usd, "budget-usd", 0, "US dollars that the team may cost, where agents say; 0 for any amount")
	f.StringArrayVar(&g.checks, "check", nil, "COMMAND, or NAME: COMMAND, that has to pass before cadre consolidate "+
		"commits what the team did; may be repeated")
	f.IntVar(&g.handover, "handover", 0, "percent of its context at which a session is replaced by a fresh one; "+
		"0 for 80")
}

// given reports whether one of the flags was.
func (g *goal) given(c *cobra.Command) bool {
	for _, name := range []string{"name", "agent", "model", "members", "max-teammates", "delegate", "permission-mode",
		"allow", "policy", "budget-tokens", "budget-usd", "handover", "check"} {
		if c.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// isFile tells a team file from a goal: what exists, or ends like one.
func isFile(arg string) bool {
	if ext := strings.ToLower(filepath.Ext(arg)); ext == ".yaml" || ext == ".yml" {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && !info.IsDir()
}

// looksLikeAPath tells what was meant as a file, and is none, from a goal: a folder, or what has
// the parts of a path and no words.
func looksLikeAPath(arg string) bool {
	if _, err := os.Stat(arg); err == nil {
		return true
	}
	if strings.ContainsFunc(arg, unicode.IsSpace) {
		return false
	}
	_, err := os.Stat(arg + ".yaml")
	return err == nil || strings.ContainsRune(arg, filepath.Separator)
}

// goalFile is the team file that the goal stands for. Where the team is there already and no agent
// is named, its lead's is meant.
func (a *app) goalFile(ctx context.Context, g goal, text, dir string) (*teamfile.File, error) {
	name := g.name
	if name == "" {
		name = teamfile.ForGoal(text, dir, teamfile.Member{}, nil).Name
	}
	if _, err := a.home.Folder(name); err == nil && g.agent == "" {
		rep, _, err := a.open(ctx, name, false)
		if err != nil {
			return nil, err
		}
		defer rep.Close()
		if t := rep.Team(); t.Status != team.TeamComplete && t.Status != team.TeamAborted {
			rep.View(func(s *team.State) {
				lead, _ := s.Member(t.Lead)
				g.agent = lead.Agent
			})
		}
	}
	return g.file(ctx, text, dir)
}

// file is the team file that the goal stands for.
func (g *goal) file(ctx context.Context, text, dir string) (*teamfile.File, error) {
	if strings.TrimSpace(text) == "" {
		return nil, usage{errors.New("the goal is empty")}
	}
	if g.members < 0 || g.members > teamfile.MaxMembers {
		return nil, usage{fmt.Errorf("a team has 0 to %d members to begin with", teamfile.MaxMembers)}
	}
	if g.most < 0 || g.most > 0 && g.members > g.most {
		return nil, usage{fmt.Errorf("--members %d is more than --max-teammates %d allows", g.members, g.most)}
	}
	if g.agent == "" {
		var err error
		if g.agent, err = firstInstalled(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case g.agent == team.Shell || g.agent == team.External:
		return nil, usage{fmt.Errorf("%s cannot lead by itself; the agents that can: %s", g.agent,
			strings.Join(drivers.Leading(), ", "))}
	case !drivers.Known(g.agent):
		return nil, knownAgent(g.agent)
	}
	// to ask for its version would take some programs seconds
	if err := agent.Missing(agents().Agent(g.agent), ""); err != nil {
		return nil, usage{fmt.Errorf("%s cannot lead here: %w", g.agent, err)}
	}
	var members []teamfile.Member
	for i := range g.members {
		members = append(members, teamfile.Member{Name: fmt.Sprintf("mate-%d", i+1), Agent: g.agent, Model: g.model})
	}
	f := teamfile.ForGoal(text, dir, teamfile.Member{Agent: g.agent, Model: g.model}, members)
	if g.name != "" {
		f.Name = g.name
	}
	f.Delegate, f.Handover, f.MaxTeammates = g.delegate, g.handover, g.most
	f.Permissions = teamfile.Permissions{Mode: g.mode, Allow: g.allow, Policy: g.policy}
	f.Budget = teamfile.Budget{Tokens: g.tokens, USD: g.usd}
	checks, err := checksOf(g.checks)
	for _, c := range checks {
		f.Checks = append(f.Checks, teamfile.Check{Name: c.Name, Run: c.Command})
	}
	return f, err
}
