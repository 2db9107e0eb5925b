package host

import (
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/prompts"
	"cadre/internal/team"
)

// limit returns the report of a rate limit. It returns nil for another problem, and for a member
// without a pool.
func (s *slot) limit(p agent.Problem) *team.ReportTrouble {
	pool := s.pool()
	if p.Kind != agent.ProblemLimit || pool == "" {
		return nil
	}
	b := &team.ReportTrouble{Member: s.member, Trouble: team.TroubleLimit, Text: s.wordsOf(p), Pool: pool}
	now := s.host.Replica.Now()
	if at := p.FreeAt(time.UnixMilli(int64(now))); !at.IsZero() {
		b.Until = team.Time(at.UnixMilli())
	}
	return b
}

// limited reports a rate limit to the team. It returns false for another problem.
func (s *slot) limited(p agent.Problem, retrying bool) bool {
	b := s.limit(p)
	if b == nil {
		return false
	}
	b.Retrying = retrying
	s.record(b)
	return true
}

func (s *slot) pool() (pool string) {
	s.host.Replica.View(func(st *team.State) {
		m, _ := st.Member(s.member)
		pool = m.Pool
	})
	return pool
}

// answers lifts the rate limit of the member's pool: its model has answered.
func (s *slot) answers() {
	lasts := false
	now := s.host.Replica.Now()
	s.host.Replica.View(func(st *team.State) { lasts = st.LiftsLimit(s.member, now) })
	if lasts {
		s.record(&team.LiftLimit{Member: s.member})
	}
}

// retry is the prompt after a turn that failed. A session that was rate limited kept its tasks, and
// may not have heard of them yet.
func (s *slot) retry(reason string) string {
	words := []string{prompts.Retry(reason)}
	s.host.Replica.View(func(st *team.State) {
		if m, _ := st.Member(s.member); m.Limited != 0 {
			for _, t := range st.Held(s.member) {
				words = append(words, prompts.Work(st, t.ID))
			}
		}
	})
	return strings.Join(words, "\n\n")
}
