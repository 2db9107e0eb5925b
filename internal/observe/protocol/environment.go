package protocol

import (
	"cmp"
	"strings"
)

// The environment by which Claude Code tells a session that it is a teammate's.
const (
	teamVariable = "CLAUDE_CODE_TEAM_NAME"
	nameVariable = "CLAUDE_CODE_AGENT_NAME"
	idVariable   = "CLAUDE_CODE_AGENT_ID" // NAME@TEAM
)

// LeadName is what Claude Code calls the lead of each team.
const LeadName = "team-lead"

// nameless is what Claude Code calls a teammate whose environment does not name it.
const nameless = "teammate"

// TeammateOf is the teammate whose session has an environment, and its team; "" for the environment
// of any other session. getenv is os.Getenv, or its like.
func TeammateOf(getenv func(string) string) (ofTeam, member string) {
	ofTeam, member = getenv(teamVariable), getenv(nameVariable)
	name, team, _ := strings.Cut(getenv(idVariable), "@")
	ofTeam, member = cmp.Or(ofTeam, team), cmp.Or(member, name, nameless)
	if ofTeam == "" || member == LeadName {
		return "", ""
	}
	return ofTeam, member
}
