package model

import (
	"fmt"
	"testing"

	"cadre/internal/observe/protocol"
)

// TestSeen compares the ring and its table with a plain set, over several rounds of the ring.
func TestSeen(t *testing.T) {
	var s seen
	const total = 3*maxSeen + 777
	id := func(n int) uint64 { return protocol.Hash(fmt.Sprint("toolu_", n)) }
	for n := range total {
		s.add(id(n))
		if n%10_007 != 0 && n != total-1 {
			continue
		}
		for _, m := range []int{n, n - 1, n / 2, n - maxSeen + 1, n - maxSeen, 0} {
			if m >= 0 && s.has(id(m)) != (m > n-maxSeen) {
				t.Fatalf("after %d: %d is remembered: %v", n, m, s.has(id(m)))
			}
		}
	}
	if s.has(protocol.Hash("another")) {
		t.Error("what never was is remembered")
	}
	if len(s.ring) != maxSeen || len(s.table) > 8*maxSeen {
		t.Errorf("%d ids, a table of %d", len(s.ring), len(s.table))
	}
	var again seen
	for _, h := range s.inOrder() {
		again.add(h)
	}
	if again.add(id(total)); again.has(id(total-maxSeen)) || !again.has(id(total-maxSeen+1)) {
		t.Error("read back, it forgets in another order")
	}
}
