package main

import (
	"errors"
	"fmt"
	"strings"

	"cadre/internal/agent/drivers"
	"cadre/internal/observe"
	"cadre/internal/observe/session"
	"cadre/internal/observe/store"
	"cadre/internal/team"
)

// observed returns the noun for the observed thing: "team", or "session" for an agent without
// teams.
func (o *observation) observed() string {
	if o.agent == "" {
		return "team"
	}
	return "session"
}

// observer returns the observer for the arguments: of a Claude Code team, or of one session of an
// agent without teams.
func (o *observation) observer(args []string) (store.Restore, error) {
	if o.agent == "" {
		return store.Team(observe.Options{Of: o.claudeTeam, Name: o.asTeam}), nil
	}
	switch {
	case drivers.Reader(o.agent) == nil:
		return nil, usage{fmt.Errorf("--agent %s: the sessions of %s, %s, %s and %sCOMMAND can be observed so; "+
			"Claude Code's without --agent", o.agent, team.Codex, team.Gemini, team.OpenCode, team.ACP)}
	case o.transcripts != "", len(o.members) > 0, len(args) != 1:
		return nil, usage{errors.New("--agent is for one stream, a file or -: it goes without --transcripts and " +
			"--member")}
	}
	name, _, _ := strings.Cut(o.agent, ":")
	return func(saved []byte, newer *team.State) (store.Observer, error) {
		return session.Restore(session.Options{Agent: name, Name: o.asTeam, Reader: drivers.Reader(o.agent)}, saved,
			newer)
	}, nil
}
