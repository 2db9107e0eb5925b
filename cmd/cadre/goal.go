package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/run"
	"cadre/internal/run/teamfile"
)

// goalFlags describe a team with a goal instead of a file.
type goalFlags struct {
	leadMode
	name, agent, model, policy               string
	members, handover, most, parallel, depth int
	delegate                                 bool
	allow, checks                            []string
	tokens                                   int64
	usd                                      dollars
}

func (g *goalFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&g.name, "name", "", "name of the team; by default made from the goal")
	f.StringVar(&g.agent, "agent", "", "agent that leads: claude, codex, gemini, opencode or acp:COMMAND; by default "+
		"the first that is installed")
	f.StringVar(&g.model, "model", "", "model of the lead, and of --members; by default the agent's own choice")
	f.IntVar(&g.members, "members", 0,
		"teammates to start with, of the same agent; the lead spawns more as it needs them")
	f.IntVar(&g.most, "max-teammates", 0, "teammates that the team may have at a time; with 0 the lead may "+
		"spawn 10, and you any number")
	f.IntVar(&g.depth, "max-depth", 0, "how deep teams may be nested in it, up to 3; 0 for no teams in the team")
	f.IntVar(&g.parallel, "max-parallel", 0, "teammates that have a turn at a time, while the others wait; 0 for no limit")
	f.BoolVar(&g.delegate, "delegate", false, "the lead may only coordinate")
	g.leadMode.flags(c, "")
	f.StringArrayVar(&g.allow, "allow", nil, "what needs no asking, for example 'Bash(go test:*)'; may be repeated")
	f.StringVar(&g.policy, "policy", "", "who answers requests that no rule covers: user (you, at this terminal), "+
		"lead, allow or deny")
	f.Int64Var(&g.tokens, "budget-tokens", 0, "tokens that the team may use; 0 for any number")
	f.Var(&g.usd, "budget-usd", "US dollars that the team may cost, where agents report it; 0 for any amount")
	f.StringArrayVar(&g.checks, "check", nil, "COMMAND, or NAME: COMMAND, that has to pass before "+
		"the team's work is committed; may be repeated")
	f.IntVar(&g.handover, "handover", 0, "percent of its context at which a session is replaced by a fresh one; "+
		"0 for 80")
}

// fileKeys are the keys of a team file that say the same as flags for a goal.
var fileKeys = []struct{ flag, key string }{{"name", "name"}, {"agent", "agent, in lead, members or defaults"},
	{"model", "model, in lead or members"}, {"members", "members"}, {"max-teammates", "maxTeammates"},
	{"max-parallel", "maxParallel"}, {"max-depth", "maxDepth"},
	{"delegate", "delegate"}, {"permission-mode", "permissions.mode"}, {"allow", "permissions.allow"},
	{"policy", "permissions.policy"}, {"budget-tokens", "budget.tokens"}, {"budget-usd", "budget.usd"},
	{"handover", "handover"}, {"check", "checks"}}

// onlyForGoal refuses the first flag that was set and is only for a goal. path is the team file; ""
// for an example.
func onlyForGoal(c *cobra.Command, path string) error {
	for _, one := range fileKeys {
		switch {
		case !c.Flags().Changed(one.flag):
		case path == "":
			return usage{fmt.Errorf("--%s is for a goal, and --template runs a template. Leave one of them "+
				"out", one.flag)}
		default:
			return usage{fmt.Errorf("--%s is for a goal. In %s the key is: %s", one.flag, path, one.key)}
		}
	}
	return nil
}

// isFile distinguishes a team file from a goal: it exists, or has the extension of a team file.
func isFile(arg string) bool {
	if ext := strings.ToLower(filepath.Ext(arg)); ext == ".yaml" || ext == ".yml" {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && !info.IsDir()
}

// isDirectory reports whether the argument is a directory.
func isDirectory(arg string) bool {
	info, err := os.Stat(arg)
	return err == nil && info.IsDir()
}

// goal returns the goal that the flags describe, for a team that works in the directory.
func (g *goalFlags) goal(text, dir string) (run.Goal, error) {
	checks, err := run.ParseChecks(g.checks)
	return run.Goal{Text: text, Dir: dir, Name: g.name, Agent: g.agent, Model: g.model, Members: g.members,
		MaxTeammates: g.most, MaxParallel: g.parallel, MaxDepth: g.depth, Delegate: g.delegate, Handover: g.handover,
		Checks:      checks,
		Permissions: teamfile.Permissions{Mode: g.mode, Allow: g.allow, Policy: g.policy},
		Budget:      teamfile.Budget{Tokens: g.tokens, CostMicroUSD: int64(g.usd)}}, err
}
