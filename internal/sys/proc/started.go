package proc

import "sync"

// started holds the pids of processes that this package started and has not reaped yet. The reaper
// of orphans skips them.
var started sync.Map // keys are int

func isStarted(pid int) bool {
	_, ok := started.Load(pid)
	return ok
}
