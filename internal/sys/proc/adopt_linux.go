package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reapAfter is the minimum age of an adopted zombie before it is reaped. A process waits for its
// own children sooner, so none of them is reaped here.
const reapAfter = 5 * time.Second

// orphans is the state of the subreaper. While a listed register is open, this process adopts and
// reaps the orphans among its descendants. So everything below a host stays below it, even if it
// daemonises.
var orphans struct {
	mu        sync.Mutex
	registers int
	end       chan struct{} // closed to end the reaper; nil while none runs
	ended     chan struct{}
}

// adopt makes this process a subreaper for one more register. disown undoes that. The process stays
// a subreaper afterwards: it may have been one before, which the kernel only reports through a
// pointer argument.
func adopt() {
	orphans.mu.Lock()
	defer orphans.mu.Unlock()
	if orphans.registers++; orphans.registers > 1 {
		return
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return // daemons are not below this process then: docs/rough_edges.md
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

// reap reaps orphans until end is closed.
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

// adopted reports whether p is an orphan that this process, self, has adopted.
func adopted(p, self process) bool {
	return p.parent == self.pid && p.session != self.session && !isStarted(p.pid)
}

// adopts says that a process can adopt the orphans among its descendants.
const adopts = true

// endOrphans ends the orphans that this process has adopted, with everything below them, and those
// that it gets meanwhile. It leaves the hosts in the list.
func endOrphans(ctx context.Context, list string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		all, err := processes()
		if err != nil {
			return fmt.Errorf("list processes: %w", err)
		}
		self, err := lookup(os.Getpid())
		if err != nil {
			return err
		}
		var left []int
		hosts, err := hostsIn(list)
		if err != nil {
			return err
		}
		for _, p := range below(all, hosts, func(p process) bool { return adopted(p, self) }) {
			if Alive(p.pid, p.start) {
				left = append(left, p.pid)
				signalProcess(p.pid, syscall.SIGKILL)
			}
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("orphans %v are still running: %w", left, context.Cause(ctx))
		}
	}
}

// below returns the processes for which top holds, and their descendants, without hosts and what is
// below them.
func below(all []process, hosts map[int]bool, top func(process) bool) (found []process) {
	in := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range all {
			if !in[p.pid] && !hosts[p.pid] && (in[p.parent] || top(p)) {
				in[p.pid], more = true, true
				found = append(found, p)
			}
		}
	}
	return found
}

// reapOrphans reaps the zombies in seen, and returns the zombies that it sees for the first time.
// This process' own children also have sessions of their own, but their starters wait for them. A
// process in this process' own session is never an orphan of a register's child.
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
		if !p.zombie || !adopted(p, self) {
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
