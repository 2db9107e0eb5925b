package codex

import (
	"testing"
	"time"

	"cadre/internal/agent"
)

// TestLimitNamesItsEnd checks that a limit of the account that is used up says when it ends.
func TestLimitNamesItsEnd(t *testing.T) {
	t.Parallel()
	var s stream
	for _, line := range []string{
		`{"method":"account/rateLimits/updated","params":{"rateLimits":{"primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":1771600000},"secondary":{"usedPercent":40,"resetsAt":1771900000}}}}`,
		`{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u","status":"inProgress"}}}`,
	} {
		s.line([]byte(line))
	}
	end := func(turn string) agent.Problem {
		t.Helper()
		said := s.line([]byte(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"` + turn + `","status":"failed","error":{"message":"You've hit your usage limit.","codexErrorInfo":"usageLimitExceeded"}}}}`))
		if ended, ok := said[len(said)-1].(turnEnded); ok && ended.end.Problem != nil {
			return *ended.end.Problem
		}
		t.Fatalf("no turn ended: %+v", said)
		return agent.Problem{}
	}
	if p := end("u"); p.Kind != agent.ProblemLimit || !p.Until.Equal(time.Unix(1771600000, 0)) {
		t.Errorf("the turn ended with %+v", p)
	}
	s.line([]byte(`{"method":"account/rateLimits/updated","params":{"rateLimits":{"primary":{"usedPercent":1,"resetsAt":1771700000}}}}`))
	if p := end("v"); !p.Until.IsZero() {
		t.Errorf("a limit that is not used up counts: %+v", p)
	}
}
