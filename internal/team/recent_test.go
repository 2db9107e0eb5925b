package team

import (
	"fmt"
	"testing"
)

// TestRecent compares the ring and its table with a map, over several rounds of the ring, with ids
// that have the same end.
func TestRecent(t *testing.T) {
	var r recent
	all := map[string]int64{}
	id := func(n int64) string {
		if n%3 == 0 {
			return fmt.Sprintf("%d-with-the-same-end", n)
		}
		return fmt.Sprintf("command-%d", n)
	}
	const total = 3*Remembered + 77
	for n := int64(1); n <= total; n++ {
		r.add(id(n), n)
		all[id(n)] = n
		if n%1501 != 0 && n < total {
			continue
		}
		for name, seq := range all {
			want := seq
			if seq <= n-Remembered {
				want = 0
			}
			if got := r.seq(name); got != want {
				t.Fatalf("after %d: %s became %d, not %d", n, name, got, want)
			}
		}
	}
	ids, seqs := r.inOrder()
	again := restored(ids, seqs)
	if got := again.seq(id(total)); got != total {
		t.Errorf("restored: the last is %d", got)
	}
}
