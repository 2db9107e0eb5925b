package proc

import "sync"

// started are the processes that this package started and has not reaped yet: whoever reaps orphans
// leaves them alone.
var started sync.Map // of int

func isStarted(pid int) bool {
	_, ok := started.Load(pid)
	return ok
}
