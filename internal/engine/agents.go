package engine

import (
	"cmp"
	"context"
	"strings"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/team"
)

// ErrNoAgent says that no installed coding agent could lead.
var ErrNoAgent error = team.Refuse(team.Invalid, "no coding agent is installed that could lead: install Claude Code "+
	"(claude), Codex (codex), Gemini CLI (gemini) or opencode")

// CheckAgent refuses an agent that cadre has no driver for.
func CheckAgent(name string) error {
	if drivers.Known(name) {
		return nil
	}
	return team.Refuse(team.Invalid, "no agent named %q; there are: %s", name, strings.Join(drivers.Words(), ", "))
}

// Models returns the agents with a model behind them that have names of their own.
func Models() []string { return drivers.Models }

// MaySpawn refuses an agent that the caller may not choose for a teammate.
func (t *Team) MaySpawn(who access.Caller, agent string) error {
	if who.IsUser() {
		return nil
	}
	return who.Spawns(agent, drivers.Offers(t.Lead().Agent))
}

// SpawnMode returns the permission mode of a teammate that is spawned with that mode: the lead's
// for "".
func (t *Team) SpawnMode(mode string) string { return cmp.Or(mode, t.Lead().PermissionMode) }

// Leading returns the agent that will lead: the named one, or for "" the first installed one. It
// refuses an agent that cannot lead here.
func (e *Engine) Leading(ctx context.Context, name string) (string, error) {
	if name == "" {
		for _, name := range drivers.Models {
			if p := drivers.Probe(ctx, name); p.Program != "" && p.Missing == "" {
				return name, nil
			}
		}
		return "", ErrNoAgent
	}
	if name == team.Shell || name == team.External || name == team.ClaudeTmux ||
		name == team.NestedTeam {
		return "", team.Refuse(team.Invalid, "%s cannot lead by itself; the agents that can: %s", name,
			strings.Join(drivers.Leading(), ", "))
	}
	if !drivers.Known(name) {
		return "", team.Refuse(team.Invalid, "no agent named %q; the agents that can lead: %s", name,
			strings.Join(drivers.Leading(), ", "))
	}
	// asking for the version would take seconds with some programs
	if err := agent.Missing(e.Agents.Agent(name), ""); err != nil {
		return "", team.Refuse(team.Invalid, "%s cannot lead here: %v", name, err)
	}
	return name, nil
}
