package historytest_test

import (
	"math/rand/v2"
	"testing"

	"cadre/internal/testkit/historytest"
)

// TestPlayReachesEverything checks that random histories have the events that tests rely on, and
// that the same choices give the same history. The choices are the same in every run.
func TestPlayReachesEverything(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		choices := make([]uint32, 150)
		for i := range choices {
			choices[i] = random.Uint32()
		}
		h := historytest.Play(choices)
		for _, r := range h.Records {
			for _, e := range r.Events {
				kinds[e.Kind()]++
			}
		}
		if again := historytest.Play(choices); again.State.Seq() != h.State.Seq() {
			t.Fatalf("%d records, then %d", h.State.Seq(), again.State.Seq())
		}
	}
	t.Log(kinds)
	for _, kind := range []string{"member_spawned", "member_started", "member_status_changed", "member_detached",
		"member_troubled", "member_stopped", "member_failed", "task_created", "task_claimed", "task_completed",
		"task_failed", "task_released", "task_deleted", "message_sent", "messages_delivered", "messages_read",
		"plan_submitted", "plan_answered", "permission_requested", "permission_answered", "usage_reported"} {
		if kinds[kind] == 0 {
			t.Errorf("no history has %s", kind)
		}
	}
}

func TestLong(t *testing.T) {
	if h := historytest.Long(2_000, 100); len(h.Records) < 2_000 || len(h.Encoded()) != len(h.Records) {
		t.Errorf("%d records", len(h.Records))
	}
}
