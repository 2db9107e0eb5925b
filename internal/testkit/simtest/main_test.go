package simtest

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Histories are small and many: what they leave is collected when it has become much.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	goleak.VerifyTestMain(m)
}
