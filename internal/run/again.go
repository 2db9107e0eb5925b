package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// agree applies the options of this call to a continued team that was made from a goal. It refuses
// options that a team cannot change once it exists. Options that were not given stay as they are.
func (a *attempt) agree(ctx context.Context) error {
	f, t := a.File, a.team.Team()
	var lead team.Member
	var names []string
	a.team.View(func(s *team.State) {
		lead, _ = s.Member(t.Lead)
		for _, m := range s.Members() {
			names = append(names, m.Name)
		}
	})
	fixed := keeps(f, t, lead, names)
	if len(fixed) > 0 {
		return team.Refuse(team.Taken, "the unfinished team %s was created with other options, and keeps them: %s. "+
			"Leave these flags out, or start over", t.Name, strings.Join(fixed, ", ")).
			With(team.Hint{Action: team.ActForceCleanUp, Team: t.Name})
	}
	var changes []team.Body
	if f.Delegate && !t.Delegate {
		changes = append(changes, &team.SetDelegate{On: true})
	}
	changes = append(changes, a.modes(f.Permissions.Mode)...)
	budget := t.Budget
	if n := f.Budget.Tokens; n != 0 {
		budget.Tokens = n
	}
	if cost := f.Budget.CostMicroUSD; cost != 0 {
		budget.CostMicroUSD = cost
	}
	if budget != t.Budget {
		changes = append(changes, &team.SetBudget{Budget: budget})
	}
	return a.change(ctx, changes)
}

// keeps returns the options of a goal that the unfinished team was created with otherwise, and
// keeps, as flags with what the team has.
func keeps(f *teamfile.File, t team.Team, lead team.Member, names []string) (fixed []string) {
	differs := func(said bool, flag, now string) {
		if said {
			fixed = append(fixed, flag+" ("+now+")")
		}
	}
	or := func(value, none string) string {
		if value == "" {
			return none
		}
		return value
	}
	number := func(n int64, none string) string {
		if n == 0 {
			return none
		}
		return fmt.Sprint(n)
	}
	differs(f.Leader.Agent != lead.Agent, "--agent", lead.Agent)
	differs(f.Leader.Model != "" && f.Leader.Model != lead.Model, "--model", or(lead.Model, "the agent's own choice"))
	differs(len(f.Permissions.Allow) > 0 && !slices.Equal(f.Permissions.Allow, t.Permissions.Allow), "--allow",
		or(strings.Join(t.Permissions.Allow, ", "), "nothing"))
	differs(f.Permissions.Policy != "" && f.Permissions.Policy != t.Permissions.Policy, "--policy",
		or(t.Permissions.Policy, "the default"))
	differs(len(f.Checks) > 0 && !slices.Equal(checks(f.Checks), t.Checks), "--check",
		team.Count(len(t.Checks), "check"))
	differs(f.Handover != 0 && int64(f.Handover) != t.HandoverAt, "--handover",
		number(t.HandoverAt, "the default"))
	differs(f.MaxTeammates != 0 && int64(f.MaxTeammates) != t.MaxTeammates, "--max-teammates",
		number(t.MaxTeammates, "the default"))
	differs(f.MaxParallel != 0 && int64(f.MaxParallel) != t.MaxParallel, "--max-parallel",
		number(t.MaxParallel, "no limit"))
	differs(f.MaxDepth != 0 && int64(f.MaxDepth) != t.MaxDepth, "--max-depth",
		number(t.MaxDepth, "no teams in the team"))
	differs(slices.ContainsFunc(f.Members, func(m teamfile.Member) bool { return !slices.Contains(names, m.Name) }),
		"--members", "the lead spawns what it needs")
	return fixed
}

// modes puts the lead and the teammates that have the lead's mode into that permission mode; ""
// changes nothing.
func (a *attempt) modes(mode string) (changes []team.Body) {
	if mode != "" {
		a.team.View(func(s *team.State) { changes = modes(s, mode) })
	}
	return changes
}

func modes(s *team.State, mode string) (changes []team.Body) {
	lead, _ := s.Member(s.Team().Lead)
	for _, m := range s.Members() {
		if m.Status.Running() && m.Agent != team.Shell && m.PermissionMode == lead.PermissionMode &&
			m.PermissionMode != mode {
			changes = append(changes, &team.SetMode{Member: m.Name, Mode: mode, Spawns: true})
		}
	}
	return changes
}

func (a *attempt) change(ctx context.Context, changes []team.Body) error {
	for _, body := range changes {
		if _, err := a.team.Do(ctx, team.Command{Actor: team.User, Body: body}); err != nil {
			return err
		}
	}
	return nil
}
