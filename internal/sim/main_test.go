package sim

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // histories are small and many: collecting them less often makes them a third faster
	goleak.VerifyTestMain(m)
}
