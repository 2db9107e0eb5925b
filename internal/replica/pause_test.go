package replica

import (
	"testing"
	"time"

	"cadre/internal/team"
)

// TestPause checks that the pauses grow and have a bound. Ten of them are short enough for a person
// to wait.
func TestPause(t *testing.T) {
	var before, all time.Duration
	for count := int64(1); count <= team.MaxStrikes; count++ {
		pause := (&Rejected{count: count}).Pause()
		if pause < before || pause < firstPause || pause > longestPause {
			t.Errorf("the pause after rejection %d is %s, after %s", count, pause, before)
		}
		before, all = pause, all+pause
	}
	if before != longestPause || all > time.Minute {
		t.Errorf("the last pause is %s, and all together take %s", before, all)
	}
	if pause := (&Rejected{count: 1 << 40}).Pause(); pause != longestPause {
		t.Errorf("the pause after very many rejections is %s", pause)
	}
}
