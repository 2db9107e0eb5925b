package proc

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reapAfter is how long a process that was left to us stays a zombie at least. Whoever started a
// process itself waits for it sooner, so nobody's child is reaped in its place.
const reapAfter = 5 * time.Second

// orphans has this process be the parent of what its descendants leave behind, and reaps that, for
// as long as a listed register is open. So what runs below a host stays below it, also what
// daemonised.
var orphans struct {
	mu        sync.Mutex
	registers int
	end       chan struct{} // closed to end the reaper; nil while none runs
	ended     chan struct{}
}

// adopt begins that for one register; disown ends it. The process stays a subreaper after that: it
// may have been one before, which the kernel tells only who passes it an address.
func adopt() {
	orphans.mu.Lock()
	defer orphans.mu.Unlock()
	if orphans.registers++; orphans.registers > 1 {
		return
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return // then what daemonises is not below us: docs/rough_edges.md
	}
	orphans.end, orphans.ended = make(chan struct{}), make(chan struct{})
	go reap(orphans.end, orphans.ended, reapAfter)
}

func disown() {
	orphans.mu.Lock()
	defer orphans.mu.Unlock()
	if orphans.registers--; orphans.registers > 0 || orphans.end == nil {
		return
	}
	close(orphans.end)
	<-orphans.ended
	orphans.end = nil
}

// reap waits for the end of orphans, until end is closed.
func reap(end <-chan struct{}, ended chan<- struct{}, after time.Duration) {
	defer close(ended)
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	defer signal.Stop(died)
	look := time.NewTimer(after)
	defer look.Stop()
	var seen map[process]bool
	for waiting := true; ; {
		select {
		case <-end:
			return
		case <-died:
			if !waiting {
				look.Reset(after)
				waiting = true
			}
		case <-look.C:
			seen = reapOrphans(seen)
			if waiting = len(seen) > 0; waiting {
				look.Reset(after)
			}
		}
	}
}

// reapOrphans reaps the zombies that an earlier look saw, and returns those that it sees first. Our
// own children are in sessions of their own too, but each is waited for by who started it. A
// process of our own session is never an orphan of a child of a register.
func reapOrphans(seen map[process]bool) (first map[process]bool) {
	all, err := processes()
	if err != nil {
		return nil
	}
	self, err := lookup(os.Getpid())
	if err != nil {
		return nil
	}
	for _, p := range all {
		if p.parent != self.pid || !p.zombie || p.session == self.session || isStarted(p.pid) {
			continue
		}
		if !seen[p] {
			if first == nil {
				first = map[process]bool{}
			}
			first[p] = true
			continue
		}
		for {
			if _, err := unix.Wait4(p.pid, nil, unix.WNOHANG, nil); !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	return first
}
