package main

import (
	"context"
	"runtime/metrics"
	"testing"
	"time"
)

// garbage is memory of the heap: the compiler would put a variable of the test on its stack.
var garbage []byte

// TestReleases: what a busy time needed goes back to the system soon. Without it the runtime keeps
// some of it, and what is garbage, for minutes.
func TestReleases(t *testing.T) {
	held := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64() - sample[1].Value.Uint64()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		releases(ctx, 10*time.Millisecond, 1)
	}()
	defer func() { cancel(); <-ended }()
	before := held()
	const busy = 64 << 20
	need := make([][]byte, 64)
	for i := range need {
		need[i] = make([]byte, busy/64)
	}
	peak := held()
	if peak < before+busy/2 {
		t.Skipf("the process held %d bytes before, and %d with %d more", before, peak, busy)
	}
	need[0][0], need = 1, nil
	for deadline := time.Now().Add(patience); held() > peak-busy/2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the process holds %d bytes; it held %d before the busy time, and %d in it", held(), before, peak)
		}
		garbage = make([]byte, releaseAfter/100) // it allocates little from now on
	}
}
