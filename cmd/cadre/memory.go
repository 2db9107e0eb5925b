package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

// These limit what the release of memory costs: it waits for [releasePace] at least, for
// [releaseRest] times the time that the last one took, and for [releaseAfter] bytes to be
// allocated.
const (
	releasePace  = 5 * time.Second
	releaseRest  = 1000
	releaseAfter = 1 << 20
)

// stayingSmall makes a process that stays open for days, and does little, keep little memory. The
// caller calls end when the process no longer stays open.
func stayingSmall(ctx context.Context) (end func()) {
	stays()
	debug.SetGCPercent(50) // memory counts more than time
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		releases(ctx, releasePace, releaseRest)
	}()
	return func() { cancel(); <-ended }
}

// releases returns free memory to the system until ctx ends. The runtime by itself keeps what a
// busy time needed.
func releases(ctx context.Context, pace time.Duration, rest int) {
	took := time.Duration(0)
	for last := allocated(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pace, time.Duration(rest)*took)):
		}
		if allocated()-last < releaseAfter {
			continue
		}
		began := time.Now()
		debug.FreeOSMemory()
		took, last = time.Since(began), allocated()
	}
}

// allocated returns how many bytes the process has allocated since its start. Package
// runtime/metrics would say it too, but costs each start of the program an initialization.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
