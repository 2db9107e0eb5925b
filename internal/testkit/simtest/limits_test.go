package simtest

import "testing"

// TestRateLimits plays teams whose models are refused again and again.
func TestRateLimits(t *testing.T) {
	s := search{first: 1, n: 300, every: 1, plan: ofLimited}
	played, failed := s.run(t)
	if failed != 0 {
		t.Errorf("history %d breaks a promise: %v", failed, play(t, ofLimited(failed), nil, nil, nil))
	}
	t.Logf("%d histories", played)
}
