package host

import (
	"time"

	"cadre/internal/agent/prompts"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// farewellGrace is the time that a teammate without further work has to end: a shell ends its
// command, and a model takes a turn.
const farewellGrace = 30 * time.Second

// Dismissal returns the shutdown request for a teammate that has no work left. A teammate without a
// session to ask gets no time.
func Dismissal(s *team.State, member string) *team.RequestShutdown {
	m, _ := s.Member(member)
	grace := farewellGrace
	if m.Agent != team.External && (m.Host == "" || m.Status == team.Spawning || m.RetryAt != 0 ||
		m.Limited != 0 || s.LimitedUntil(member, replica.Now()) != 0 ||
		s.Team().Exhausted != "") {
		grace = 0
	}
	return &team.RequestShutdown{Member: member, Reason: prompts.Farewell(s),
		Deadline: replica.Now().Add(grace)}
}
