package observe

import (
	"bytes"
	"fmt"
	"testing"
)

// TestSeen holds the ring and its table against what they must know, over several rounds of the
// ring.
func TestSeen(t *testing.T) {
	var s seen
	const total = 3*maxSeen + 777
	id := func(n int) uint64 { return hash(fmt.Sprint("toolu_", n)) }
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
	if s.has(hash("another")) {
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

// A line without an end does not fill the memory: it is cut, and seen as a huge one.
func TestSplitterHoldsNoHugeLine(t *testing.T) {
	s, o := Splitter{Max: 1 << 16}, New(Options{MaxLine: 1 << 16})
	var lines []int
	each := func(line []byte) {
		lines = append(lines, len(line))
		o.Line("lead", line, 1)
	}
	s.Write([]byte(`{"type":"user","text":"`), each)
	for range 1000 {
		s.Write(bytes.Repeat([]byte("x"), 1<<12), each)
		if cap(s.part) > 1<<18 {
			t.Fatalf("%d bytes are held", cap(s.part))
		}
	}
	s.Write([]byte("\"}\n{\"type\":\"keep_alive\"}\nlast"), each)
	s.End(each)
	if c := o.Counts(); fmt.Sprint(lines) != fmt.Sprint([]int{1 << 16, 21, 4}) || c.Huge != 1 || c.Garbage != 1 {
		t.Errorf("%v %+v", lines, c)
	}
}
