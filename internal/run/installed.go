package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"cadre/internal/agent"
	"cadre/internal/engine"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// session is a session that a team would have, or a team in it.
type session struct {
	of      string // the member, with the members whose teams it is in, as "bob in sub"
	agent   string // "" for any agent that can lead
	program string // executable to use instead of the agent's own; "" for its own
	apart   bool   // it works in a worktree of its own
}

// sessions returns the sessions of the team of the file and of the teams in it. in names the
// members whose teams it is in; "" for none.
func sessions(f *teamfile.File, in string) (all []session) {
	add := func(m teamfile.Member) {
		of := cmp.Or(m.Name, f.Lead)
		if in != "" {
			of += " in " + in
		}
		all = append(all, session{of, m.Agent, m.Command, m.Isolation == team.Worktree})
	}
	if f.Leader.Agent != "" {
		add(f.Leader)
	}
	for i, m := range f.Members {
		switch n := m.Nested; {
		case m.Agent == team.External, len(m.RunsOn) > 0: // its machine has the agent, or does not take it
		case m.Agent != team.NestedTeam:
			add(m)
		case i > 0 && n.Beside(f.Members[i-1].Nested): // its teams are as those of the member before
		case n.Of != nil:
			all = append(all, sessions(n.Of, below(in, m.Name))...)
		case n.Goal != "":
			all = append(all, session{teamfile.DefaultLead + " in " + below(in, m.Name), n.Lead, "", false})
		}
	}
	return all
}

// below names a member of a team in teams: the members that are teams, from the outermost on.
func below(in, member string) string {
	if in == "" {
		return member
	}
	return in + "/" + member
}

// absent returns why the session could not work here: its agent is not installed. It returns nil if
// it could, or if that is unknown.
func (a *attempt) absent(s session) error {
	if s.agent != "" {
		if err := agent.Missing(a.Agent(s.agent), s.program); err != nil {
			return fmt.Errorf("%s cannot work here: %w", s.agent, err)
		}
		return nil
	}
	for _, name := range engine.Models() {
		if of := a.Agent(name); of != nil && agent.Missing(of, "") == nil {
			return nil
		}
	}
	return engine.ErrNoAgent
}

// able refuses a team that could not work as its file says, before it is created: the program of a
// member is missing, in it or in a team in it, a member cannot have the worktree that it is to work
// in, or the limit of turns on this machine is not valid.
func (a *attempt) able(ctx context.Context) error {
	if err := a.Engine.CheckTurns(); err != nil {
		return err
	}
	if a.File.Elsewhere() {
		if err := a.Engine.Remotely(ctx, team.Team{Name: a.File.Name, Dir: a.Dir, Remote: a.File.Remote}); err != nil {
			return err
		}
	}
	var reasons []string
	who := map[string][]string{}
	say := func(s session, err error) {
		if err == nil {
			return
		}
		reason := err.Error()
		if len(who[reason]) == 0 {
			reasons = append(reasons, reason)
		}
		who[reason] = append(who[reason], s.of)
	}
	isolates := sync.OnceValue(func() error { return engine.Isolates(ctx, a.Dir) })
	for _, s := range sessions(a.File, "") {
		say(s, a.absent(s))
		if s.apart && isolates() != nil {
			say(s, fmt.Errorf("a worktree of its own is not possible: %w", isolates()))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	for i, reason := range reasons {
		reasons[i] = reason + " (" + strings.Join(who[reason], ", ") + ")"
	}
	return &team.Error{Code: team.Invalid, Text: "the team was not created: " + strings.Join(reasons, "; ")}
}

// cannot says which agents of the file are not installed, and which members need them.
func (a *attempt) cannot() (reasons []string) {
	for _, s := range sessions(a.File, "") {
		if err := a.absent(s); err != nil {
			reasons = append(reasons, s.of+": "+err.Error())
		}
	}
	return reasons
}
