package proc

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// watchdogScript keeps the list of running groups and kills them when its input ends.
//
// It must outlive the host for a moment, so it ignores the signals that end the host's terminal or
// session. It must not hold files open that others wait for, so it closes descriptors that the host
// may have inherited unknowingly (a shell can name descriptors up to 9). Its arguments are
// the host's death command, which runs if the host dies. A host that ends in good order cancels it
// with a dot.
//
// A host that may be stopped while its children run says with =SECONDS when the groups are killed
// unless it says so again. A shell of the watchdog waits for that, with the groups of that moment;
// so the host says it again, too, when the groups change.
const watchdogScript = `
trap '' HUP INT QUIT PIPE TERM TSTP
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
echo ready
exec >/dev/null
groups=
timer=
while read -r line; do
	case $line in
	.) set -- ;;
	=*)
		if [ -n "$timer" ]; then
			kill -s USR1 "$timer" 2>/dev/null
			wait "$timer"
		fi
		(
			trap 'kill "$rest" 2>/dev/null; wait "$rest"; exit 0' USR1
			trap - TERM
			sleep "${line#=}" &
			rest=$!
			wait "$rest"
			for group in $groups; do
				kill -s KILL -- "-$group" 2>/dev/null
			done
		) &
		timer=$!
		;;
	+*) groups="$groups ${line#+}" ;;
	-*)
		kept=
		for group in $groups; do
			[ "$group" = "${line#-}" ] || kept="$kept $group"
		done
		groups=$kept
		;;
	esac
done
[ -z "$timer" ] || kill -s USR1 "$timer" 2>/dev/null
for group in $groups; do
	kill -s KILL -- "-$group" 2>/dev/null
done
[ $# -gt 0 ] || exit 0
trap - HUP INT QUIT PIPE TERM TSTP
exec "$@"
`

const (
	watchdogStart = 5 * time.Second
	watchdogWrite = time.Second     // a line is a few bytes into a pipe; a watchdog that does not read them is stuck
	watchdogLife  = time.Second     // one that died younger than this is only replaced for the next child
	watchdogEnd   = 5 * time.Second // how long it may take to end after its pipe is closed
)

// watchdog starts the shell that ends the children of a dead host, and tells it which groups are
// running. The shell starts with the first child or with a death command. If it is killed, another
// one replaces it.
type watchdog struct {
	mu      sync.Mutex
	groups  map[int]struct{}
	until   time.Time      // when the groups are killed unless the host says otherwise; zero for never
	onDeath []string       // command that runs if the host dies
	shell   *watchdogShell // nil if none is running
	closed  bool
}

type watchdogShell struct {
	cmd  *exec.Cmd
	pipe *os.File
	born time.Time
	gone chan struct{} // closed when it has ended
}

// add gives a group to the watchdog. It needs no acknowledgement: the shell reads the lines in the
// pipe before it sees the end of the pipe.
func (w *watchdog) add(group int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = map[int]struct{}{}
	}
	w.groups[group] = struct{}{}
	if w.shell != nil && w.shell.say("+%d\n", group) == nil && w.arm() == nil {
		return nil
	}
	if err := w.renew(); err != nil {
		delete(w.groups, group)
		return fmt.Errorf("start the watchdog: %w", err)
	}
	return nil
}

func (w *watchdog) runOnDeath(command []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.onDeath = command
	return w.renew()
}

func (w *watchdog) remove(group int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, group)
	if w.shell != nil && (w.shell.say("-%d\n", group) != nil || w.arm() != nil) {
		w.renew() // the next add reports an error; the watcher of the dead watchdog retries as well
	}
}

// renew starts a watchdog with all groups and replaces a dead or stuck one. The old shell is killed
// before its pipe is closed. Otherwise it would take the end of the pipe for the end of the host.
func (w *watchdog) renew() error {
	if old := w.shell; old != nil {
		w.shell = nil
		old.cmd.Process.Kill()
		<-old.gone
		old.pipe.Close()
	}
	shell, err := startWatchdog(w.onDeath)
	if err != nil {
		return err
	}
	go func() {
		shell.cmd.Wait()
		started.Delete(shell.cmd.Process.Pid)
		close(shell.gone)
		w.died(shell)
	}()
	w.shell = shell
	for _, group := range slices.Sorted(maps.Keys(w.groups)) {
		if err := shell.say("+%d\n", group); err != nil {
			return err
		}
	}
	return w.arm()
}

// killAt has the groups killed at that time, unless it is called again before.
func (w *watchdog) killAt(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.until = until; w.shell != nil && w.arm() != nil {
		w.renew()
	}
}

// arm tells the shell when the groups are killed. The caller has the lock. A part of a second is
// cut off: not every sleep knows parts.
func (w *watchdog) arm() error {
	if w.until.IsZero() {
		return nil
	}
	return w.shell.say("=%d\n", max(0, int(time.Until(w.until).Seconds())))
}

// died replaces a watchdog that was killed while it held groups, so that they soon have a watchdog
// again.
func (w *watchdog) died(shell *watchdogShell) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shell != shell || w.closed {
		return
	}
	if len(w.groups)+len(w.onDeath) > 0 && time.Since(shell.born) > watchdogLife {
		w.renew()
		return
	}
	shell.pipe.Close()
	w.shell = nil
}

// close ends the watchdog, and cancels the death command. The groups still listed are killed. No
// add may follow. It waits at most [watchdogEnd].
func (w *watchdog) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	shell := w.shell
	if shell == nil {
		return nil
	}
	w.shell = nil
	if _, err := shell.write(".\n"); err != nil {
		shell.cmd.Process.Kill() // otherwise it would take the end of its pipe for the death of this process
	}
	shell.pipe.Close()
	late := time.NewTimer(watchdogEnd)
	defer late.Stop()
	select {
	case <-shell.gone:
		return nil
	case <-late.C:
		shell.cmd.Process.Kill()
		<-shell.gone
		return fmt.Errorf("the watchdog did not end by itself and was killed")
	}
}

// startWatchdog starts a watchdog, and returns when it ignores signals.
func startWatchdog(command []string) (*watchdogShell, error) {
	in, lines, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	ready, out, err := os.Pipe()
	if err != nil {
		lines.Close()
		return nil, err
	}
	defer ready.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", watchdogScript, "cadre-watchdog"}, command...)...)
	cmd.Dir, cmd.Env = "/", []string{} // so that it holds no folder and no secret of the host
	cmd.Stdin, cmd.Stdout = in, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	out.Close()
	if err != nil {
		lines.Close()
		return nil, err
	}
	started.Store(cmd.Process.Pid, nil)
	ready.SetReadDeadline(time.Now().Add(watchdogStart))
	if _, err := ready.Read(make([]byte, len("ready\n"))); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		started.Delete(cmd.Process.Pid)
		lines.Close()
		return nil, fmt.Errorf("it did not become ready: %w", err)
	}
	return &watchdogShell{cmd: cmd, pipe: lines, born: time.Now(), gone: make(chan struct{})}, nil
}

func (s *watchdogShell) say(format string, group int) error {
	_, err := s.write(fmt.Sprintf(format, group))
	return err
}

func (s *watchdogShell) write(line string) (int, error) {
	s.pipe.SetWriteDeadline(time.Now().Add(watchdogWrite))
	return s.pipe.WriteString(line)
}
