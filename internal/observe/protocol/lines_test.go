package protocol

import (
	"bytes"
	"testing"
)

// TestSplitterHoldsNoHugeLine checks that an endless line does not exhaust the memory.
func TestSplitterHoldsNoHugeLine(t *testing.T) {
	s := Splitter{Max: 1 << 16}
	long := 0
	each := func(line []byte) { long = len(line) }
	for range 1000 {
		s.Write(bytes.Repeat([]byte("x"), 1<<12), each)
		if cap(s.part) > 1<<18 {
			t.Fatalf("%d bytes are held", cap(s.part))
		}
	}
	s.Write([]byte("\n"), each)
	if long != 1<<16 {
		t.Errorf("a line of %d bytes", long)
	}
}
