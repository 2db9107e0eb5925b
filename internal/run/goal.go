package run

import (
	"context"
	"fmt"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// Goal is what a person gives instead of a team file: an agent leads, and plans the work.
type Goal struct {
	Text    string
	Dir     string // the team's directory, an absolute path
	Name    string // of the team; "" to make one from the goal
	New     bool   // no team of that name is looked for
	Agent   string // that leads; "" for that of the existing team, or for the first installed one
	Model   string // of the lead and of the members; "" for the agent's default
	Members int    // teammates to start with, of the same agent

	MaxTeammates int
	MaxParallel  int // how many teammates have a turn at a time; 0 for no limit
	MaxDepth     int // how deep teams may be nested in it; 0 for none
	Delegate     bool
	Permissions  teamfile.Permissions
	Budget       teamfile.Budget
	Handover     int
	Checks       []team.Check
}

// File returns the team file that the goal stands for. It refuses an agent that cannot lead here.
func (g Goal) File(ctx context.Context, e *engine.Engine) (*teamfile.File, error) {
	switch {
	case strings.TrimSpace(g.Text) == "":
		return nil, team.Refuse(team.Invalid, "the goal is empty")
	case g.Members < 0 || g.Members > teamfile.MaxMembers:
		return nil, team.Refuse(team.Invalid, "a team starts with 0 to %d members", teamfile.MaxMembers)
	case g.MaxParallel < 0 || g.MaxParallel > teamfile.MaxMembers:
		return nil, team.Refuse(team.Invalid, "1 to %d teammates can have a turn at a time; leave the number out for "+
			"no limit", teamfile.MaxMembers)
	case g.MaxTeammates < 0 || g.MaxTeammates > 0 && g.Members > g.MaxTeammates:
		return nil, team.Refuse(team.Invalid, "the team cannot start with %d members: it may have at most %d at a "+
			"time", g.Members, g.MaxTeammates)
	}
	if g.Name == "" {
		g.Name = teamfile.ForGoal(g.Text, g.Dir, teamfile.Member{}, nil).Name
	}
	var err error
	if g.Agent == "" && !g.New {
		if g.Agent, err = g.leads(ctx, e); err != nil {
			return nil, err
		}
	}
	if g.Agent, err = e.Leading(ctx, g.Agent); err != nil {
		return nil, err
	}
	var members []teamfile.Member
	for i := range g.Members {
		members = append(members, teamfile.Member{Name: fmt.Sprintf("mate-%d", i+1), Agent: g.Agent, Model: g.Model})
	}
	f := teamfile.ForGoal(g.Text, g.Dir, teamfile.Member{Agent: g.Agent, Model: g.Model}, members)
	f.Name, f.Delegate, f.Handover, f.MaxTeammates = g.Name, g.Delegate, g.Handover, g.MaxTeammates
	f.MaxParallel, f.MaxDepth = g.MaxParallel, g.MaxDepth
	f.Permissions, f.Budget = g.Permissions, g.Budget
	for _, c := range g.Checks {
		f.Checks = append(f.Checks, teamfile.Check{Name: c.Name, Run: c.Command})
	}
	return f, nil
}

// leads returns the agent that leads the existing team, or "" if the team does not exist.
func (g Goal) leads(ctx context.Context, e *engine.Engine) (string, error) {
	e = e.In(g.Dir)
	if _, err := e.Home.Own(g.Name); err != nil {
		return "", nil // a new team; creating it reports the error
	}
	t, err := e.Look(ctx, g.Name)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if of := t.Team(); of.Ended() {
		return "", nil
	}
	return t.Lead().Agent, nil
}
