package simtest

import (
	"runtime"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// On one processor the goroutines of real code run in the same order each time. To use more
	// processors, TestHistories starts more processes.
	runtime.GOMAXPROCS(1)
	// Histories are small and many, so collect garbage rarely.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(128 << 20)
	goleak.VerifyTestMain(m)
}
