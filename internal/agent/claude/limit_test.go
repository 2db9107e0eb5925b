package claude

import (
	"testing"
	"time"

	"cadre/internal/agent"
)

// TestLimitNamesItsEnd checks that the program's own fields say when a rate limit ends: the delay
// before a retry, and the event about the limit of the account.
func TestLimitNamesItsEnd(t *testing.T) {
	t.Parallel()
	d := &decoder{}
	problem := func(line string) agent.Problem {
		t.Helper()
		said := d.decode([]byte(line))
		if len(said) == 0 {
			t.Fatalf("nothing is said for %s", line)
		}
		switch u := said[len(said)-1].(type) {
		case agent.Retrying:
			return u.Problem
		case agent.TurnEnded:
			return *u.Problem
		}
		t.Fatalf("no problem in %+v", said)
		return agent.Problem{}
	}
	p := problem(`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"error_status":429,"error":"rate_limit","retry_delay_ms":30000}`)
	if p.Kind != agent.ProblemLimit || p.After != 30*time.Second {
		t.Errorf("the retry is %+v", p)
	}
	const result = `{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: 429"}`
	d.decode([]byte(`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1771600000,"rateLimitType":"five_hour"}}`))
	if p := problem(result); p.Kind != agent.ProblemLimit || !p.Until.Equal(time.Unix(1771600000, 0)) {
		t.Errorf("the result is %+v", p)
	}
	d.decode([]byte(`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1771600000}}`))
	if p := problem(result); !p.Until.IsZero() {
		t.Errorf("the limit of another time is used: %+v", p)
	}
}
