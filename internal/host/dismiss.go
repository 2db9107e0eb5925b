package host

import (
	"time"

	"cadre/internal/agent/prompts"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// farewellGrace is what a teammate has to end when there is nothing left for it: a shell ends the
// command that it runs, and a model takes a turn.
const farewellGrace = 30 * time.Second

// Dismissal is the request that a teammate gets when there is nothing left for it to do. One
// without a session that could be asked has no time.
func Dismissal(s *team.State, member string) *team.RequestShutdown {
	m, _ := s.Member(member)
	grace := farewellGrace
	if m.Agent != team.External && (m.Host == "" || m.Status == team.Spawning || m.RetryAt != 0 ||
		s.Team().Exhausted != "") {
		grace = 0
	}
	return &team.RequestShutdown{Member: member, Reason: prompts.Farewell(s),
		Deadline: replica.Now() + team.Time(grace.Milliseconds())}
}
