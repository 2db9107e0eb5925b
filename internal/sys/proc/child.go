package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrLeft means that processes of a child are still there although they were sent SIGKILL.
var ErrLeft = errors.New("processes do not end on SIGKILL")

// endGrace is how long a group that was sent SIGKILL may take. Only a process stuck in the kernel
// needs longer.
const endGrace = 5 * time.Second

// Child is a process started by a [Register], with all that runs in its session. Its methods may be
// called from any goroutine.
type Child struct {
	Stdin  io.WriteCloser // with Cmd.StdinPipe; Stop closes it, which ends a write that waits
	Stdout io.ReadCloser  // with Cmd.StdoutPipe; the caller reads it to its end or closes it

	cmd     Cmd
	token   string
	started time.Time
	pid     int
	process *os.Process
	gate    *os.File
	stdin   *os.File
	streams []*stream
	copies  []func()

	mu     sync.Mutex
	reaped bool // the pid may belong to anybody now

	once   sync.Once
	killed chan struct{} // closed when SIGKILL was sent

	done chan struct{} // closed when all is over; exit and err are final then
	exit Exit
	err  error
}

// Exit is how a child ended.
type Exit struct {
	Code    int            // exit status; -1 when a signal ended it
	Signal  syscall.Signal // 0 when it exited by itself
	Elapsed time.Duration  // from start to exit
	CPU     time.Duration  // user and system time of the child and of those of its children that it waited for
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return "ended by signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Pid is the child's pid, and the number of its process group and of its session. It may belong to
// a stranger once Done is closed: use it to show, not to signal.
func (c *Child) Pid() int { return c.pid }

// Done is closed when the child has exited, its group is gone and its output was read.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait returns when Done is closed, or with ctx's error when ctx ends first; the child then goes
// on. An error for which [ErrLeft] holds comes with a valid Exit.
func (c *Child) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-c.done:
		return c.exit, c.err
	default:
	}
	select {
	case <-c.done:
		return c.exit, c.err
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}

// open lets the child through the gate. A child that was killed there cannot be let through, and
// Wait will tell.
func (c *Child) open() {
	io.WriteString(c.gate, "go\n")
	c.gate.Close()
}

// signal sends to the whole group, and only while its number is certainly ours.
func (c *Child) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		signalGroup(c.pid, sig) // the only error left is that nobody of the group is alive
	}
}

// watch sees the child to its end. The order matters: the leash lets go of the group while its
// number is still certainly the child's, and the record goes last, because it harms nobody when it
// names a process that is gone.
func (c *Child) watch(r *Register) {
	defer r.forget(c)
	defer close(c.done)
	var copying sync.WaitGroup
	for _, copy := range c.copies {
		copying.Go(copy)
	}
	if c.cmd.Input != nil {
		copying.Go(c.feed)
	}

	err := awaitExit(c.pid)
	exited := time.Now()
	if err == nil {
		c.linger()
		err = c.endGroup()
	} else {
		err = fmt.Errorf("watch process %d: %w", c.pid, err)
	}
	r.leash.remove(c.pid)
	state, waitErr := c.reap()
	if err == nil {
		r.erase(c)
	}

	c.err = errors.Join(err, waitErr)
	c.exit = Exit{Code: -1, Elapsed: exited.Sub(c.started)}
	if state != nil {
		c.exit.Code, c.exit.CPU = state.ExitCode(), state.UserTime()+state.SystemTime()
		if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
			c.exit.Signal = status.Signal()
		}
	}
	c.drain(&copying)
}

// linger gives the processes in the background their time.
func (c *Child) linger() {
	if c.cmd.Linger == 0 {
		return
	}
	deadline := time.NewTimer(c.cmd.Linger)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if left, err := members(c.pid); err != nil || len(living(left)) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			return
		case <-c.killed:
			return
		}
	}
}

// endGroup ends everything in the session of a leader that has exited. The leader is not reaped
// yet, so that neither its group nor its session can be anybody else's.
func (c *Child) endGroup() error {
	deadline := time.Now().Add(endGrace)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		signalGroup(c.pid, syscall.SIGKILL)
		session, err := members(c.pid)
		if err != nil {
			return err
		}
		session = append(session, c.escaped(session)...)
		left := living(session)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d: left of it are %v: %w", c.pid, left, ErrLeft)
		}
		for _, p := range session {
			if !p.zombie && p.group != c.pid { // a job of a shell with job control
				signalProcess(p.pid, syscall.SIGKILL)
			}
		}
		time.Sleep(pause)
	}
}

// escaped are the processes that the child, or what it started, made sessions of their own for:
// coding agents do so for what their tools run. They are known by the token in their environment.
func (c *Child) escaped(session []process) []process {
	return bearers(tokenVariable+"="+c.token, session)
}

func (c *Child) reap() (*os.ProcessState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
	defer started.Delete(c.pid)
	return c.process.Wait()
}

// drain closes our ends of the pipes, after what is still in them was read.
func (c *Child) drain(copying *sync.WaitGroup) {
	if c.stdin != nil {
		c.stdin.Close()
	}
	for _, s := range c.streams {
		s.end()
	}
	copied := make(chan struct{})
	go func() { copying.Wait(); close(copied) }()
	limit := time.NewTimer(c.cmd.Drain)
	defer limit.Stop()
	select {
	case <-copied:
		return
	case <-limit.C:
	}
	for _, s := range c.streams {
		if s != c.Stdout { // that one is the caller's
			s.Close()
		}
	}
}
