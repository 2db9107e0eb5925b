package protocol

import (
	"cmp"
	"strings"
)

// The environment variables in which Claude Code tells a session that it is a teammate.
const (
	teamVariable = "CLAUDE_CODE_TEAM_NAME"
	nameVariable = "CLAUDE_CODE_AGENT_NAME"
	idVariable   = "CLAUDE_CODE_AGENT_ID" // NAME@TEAM
)

// LeadName is Claude Code's name for the lead of each team.
const LeadName = "team-lead"

// nameless is Claude Code's name for a teammate whose environment does not name it.
const nameless = "teammate"

// TeammateOf returns the teammate to which a session with this environment belongs, and its team,
// or "" for any other session. getenv works like os.Getenv.
func TeammateOf(getenv func(string) string) (ofTeam, member string) {
	ofTeam, member = getenv(teamVariable), getenv(nameVariable)
	name, team, _ := strings.Cut(getenv(idVariable), "@")
	ofTeam, member = cmp.Or(ofTeam, team), cmp.Or(member, name, nameless)
	if ofTeam == "" || member == LeadName {
		return "", ""
	}
	return ofTeam, member
}
