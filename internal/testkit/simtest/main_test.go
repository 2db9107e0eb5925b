package simtest

import (
	"runtime"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// On one processor the goroutines of real code come to their turns in the same order each time.
	// Whoever has more of them has more processes play: see TestHistories.
	runtime.GOMAXPROCS(1)
	// Histories are small and many: what they leave is collected when it has become much.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(128 << 20)
	goleak.VerifyTestMain(m)
}
