package proc

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// leashScript keeps the list of running groups and kills them when its input ends.
//
// It must outlive the host for a moment, so it ignores the signals that end the host's terminal or
// session. It must not hold files open that others wait for, so it closes descriptors that the host
// may have inherited unknowingly (a shell can name descriptors up to 9). Its arguments are
// the host's death command, which runs if the host dies. A host that ends in good order cancels it
// with a dot.
const leashScript = `
trap '' HUP INT QUIT PIPE TERM TSTP
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
echo ready
exec >/dev/null
groups=
while read -r line; do
	case $line in
	.) set -- ;;
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
for group in $groups; do
	kill -s KILL -- "-$group" 2>/dev/null
done
[ $# -gt 0 ] || exit 0
trap - HUP INT QUIT PIPE TERM TSTP
exec "$@"
`

const (
	leashStart = 5 * time.Second
	leashWrite = time.Second     // a line is a few bytes into a pipe; a leash that does not read them is stuck
	leashLife  = time.Second     // one that died younger than this is only replaced for the next child
	leashEnd   = 5 * time.Second // how long it may take to end after its pipe is closed
)

// leash is the host's side of the leash. The shell starts with the first child or with a death
// command. If it is killed, another one replaces it.
type leash struct {
	mu      sync.Mutex
	groups  map[int]struct{}
	onDeath []string    // command that runs if the host dies
	shell   *leashShell // nil if none is running
	closed  bool
}

type leashShell struct {
	cmd  *exec.Cmd
	pipe *os.File
	born time.Time
	gone chan struct{} // closed when it has ended
}

// add puts a group on the leash. It needs no acknowledgement: the shell reads the lines in the pipe
// before it sees the end of the pipe.
func (l *leash) add(group int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.groups == nil {
		l.groups = map[int]struct{}{}
	}
	l.groups[group] = struct{}{}
	if l.shell != nil && l.shell.say("+%d\n", group) == nil {
		return nil
	}
	if err := l.renew(); err != nil {
		delete(l.groups, group)
		return fmt.Errorf("start the leash: %w", err)
	}
	return nil
}

func (l *leash) runOnDeath(command []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.onDeath = command
	return l.renew()
}

func (l *leash) remove(group int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.groups, group)
	if l.shell != nil && l.shell.say("-%d\n", group) != nil {
		l.renew() // the next add reports an error; the watcher of the dead leash retries as well
	}
}

// renew starts a leash with all groups and replaces a dead or stuck one. The old shell is killed
// before its pipe is closed. Otherwise it would take the end of the pipe for the end of the host.
func (l *leash) renew() error {
	if old := l.shell; old != nil {
		l.shell = nil
		old.cmd.Process.Kill()
		<-old.gone
		old.pipe.Close()
	}
	shell, err := startLeash(l.onDeath)
	if err != nil {
		return err
	}
	go func() {
		shell.cmd.Wait()
		started.Delete(shell.cmd.Process.Pid)
		close(shell.gone)
		l.died(shell)
	}()
	l.shell = shell
	for _, group := range slices.Sorted(maps.Keys(l.groups)) {
		if err := shell.say("+%d\n", group); err != nil {
			return err
		}
	}
	return nil
}

// died replaces a leash that was killed while it held groups, so that they are soon on a leash
// again.
func (l *leash) died(shell *leashShell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shell != shell || l.closed {
		return
	}
	if len(l.groups)+len(l.onDeath) > 0 && time.Since(shell.born) > leashLife {
		l.renew()
		return
	}
	shell.pipe.Close()
	l.shell = nil
}

// close ends the leash, and cancels the death command. The groups still listed are killed. No add
// may follow.
func (l *leash) close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	shell := l.shell
	if shell == nil {
		return nil
	}
	l.shell = nil
	if _, err := shell.write(".\n"); err != nil {
		shell.cmd.Process.Kill() // otherwise it would take the end of its pipe for our death
	}
	shell.pipe.Close()
	ctx, cancel := context.WithTimeout(ctx, leashEnd)
	defer cancel()
	select {
	case <-shell.gone:
		return nil
	case <-ctx.Done():
		shell.cmd.Process.Kill()
		<-shell.gone
		return fmt.Errorf("the leash did not end by itself and was killed")
	}
}

// startLeash starts a leash, and returns when it ignores signals.
func startLeash(command []string) (*leashShell, error) {
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
	cmd := exec.Command("/bin/sh", append([]string{"-c", leashScript, "cadre-leash"}, command...)...)
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
	ready.SetReadDeadline(time.Now().Add(leashStart))
	if _, err := ready.Read(make([]byte, len("ready\n"))); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		started.Delete(cmd.Process.Pid)
		lines.Close()
		return nil, fmt.Errorf("it did not become ready: %w", err)
	}
	return &leashShell{cmd: cmd, pipe: lines, born: time.Now(), gone: make(chan struct{})}, nil
}

func (s *leashShell) say(format string, group int) error {
	_, err := s.write(fmt.Sprintf(format, group))
	return err
}

func (s *leashShell) write(line string) (int, error) {
	s.pipe.SetWriteDeadline(time.Now().Add(leashWrite))
	return s.pipe.WriteString(line)
}
