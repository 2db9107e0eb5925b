package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrLeft reports that processes of a child are still running after SIGKILL.
var ErrLeft = errors.New("processes are still running after SIGKILL")

// endGrace is how long a group may take to end after SIGKILL. Only a process stuck in the kernel
// needs longer.
const endGrace = 5 * time.Second

// Child is a process started by a [Register], together with everything that runs in its session.
// Its methods may be called from any goroutine.
type Child struct {
	Stdin  io.WriteCloser // with Cmd.StdinPipe; Stop closes it, which unblocks a pending write
	Stdout io.ReadCloser  // with Cmd.StdoutPipe; the caller reads it to the end or closes it

	cmd     Cmd
	token   string
	records string // folder with its record; "" for none
	started time.Time
	pid     int
	process *os.Process
	gate    *os.File
	stdin   *os.File
	streams []*stream
	copies  []func()

	mu     sync.Mutex
	reaped bool // the pid may be reused now

	once   sync.Once
	killed chan struct{} // closed when SIGKILL was sent

	done chan struct{} // closed when the child and its output have ended; exit and err are final then
	exit Exit
	err  error
}

// Exit describes how a child ended.
type Exit struct {
	Code    int            // exit status; -1 when a signal ended it
	Signal  syscall.Signal // 0 when it exited by itself
	Elapsed time.Duration  // from start to exit
	CPU     time.Duration  // user and system time of the child and of the children that it waited for
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return "ended by signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Pid returns the child's pid, which is also the id of its process group and session. After Done is
// closed the pid may be reused: display it, but do not signal it.
func (c *Child) Pid() int { return c.pid }

// Done is closed when the child has exited, no process of its group is left, and its output was
// read.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait returns when Done is closed, or with ctx's error when ctx ends first. The child then
// continues to run. An error that wraps [ErrLeft] comes with a valid Exit.
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

// open lets the child pass the gate. If the child was killed at the gate, Wait reports that.
func (c *Child) open() {
	io.WriteString(c.gate, "go\n")
	c.gate.Close()
}

// signal sends a signal to the whole group, but only while the group id certainly belongs to this
// child.
func (c *Child) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		signalGroup(c.pid, sig) // the only possible error: every process of the group has ended
	}
}

// watch waits for the end of the child. The order matters. The watchdog removes the group while its
// id certainly belongs to the child. The record is removed last: a record of a process that has
// ended is harmless.
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
	r.watchdog.remove(c.pid)
	state, waitErr := c.reap()
	if err == nil {
		c.erase()
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

// linger lets background processes run for up to Cmd.Linger.
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
// yet, so its group and session ids cannot be reused.
func (c *Child) endGroup() error {
	deadline := time.Now().Add(endGrace)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		signalGroup(c.pid, syscall.SIGKILL)
		// Every command ends here. Listing the processes of a busy machine takes longer than many
		// commands run, so list them once.
		all, err := processes()
		if err != nil {
			return fmt.Errorf("list processes: %w", err)
		}
		session := membersOf(c.pid, all)
		session = append(session, c.escaped(session, all)...)
		left := living(session)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d: its processes %v remain: %w", c.pid, left, ErrLeft)
		}
		for _, p := range session {
			if !p.zombie && p.group != c.pid { // a job of a shell with job control
				signalProcess(p.pid, syscall.SIGKILL)
			}
		}
		time.Sleep(pause)
	}
}

// escaped returns the child's descendants that created sessions of their own, as coding agents do
// for their tools. They are recognised by the token in their environment.
func (c *Child) escaped(session, all []process) []process {
	leader := slices.IndexFunc(session, func(p process) bool { return p.pid == c.pid })
	if leader >= 0 {
		// Skip what cannot be a descendant, because reading environments takes longer than all the
		// rest.
		all = slices.DeleteFunc(slices.Clone(all), func(p process) bool { return earlier(p, session[leader]) })
	}
	return withVariable(tokenVariable+"="+c.token, session, all)
}

func (c *Child) reap() (*os.ProcessState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
	defer started.Delete(c.pid)
	return c.process.Wait()
}

// drain closes our ends of the pipes, after the data left in them was read.
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
		if s != c.Stdout { // the caller reads that one
			s.Close()
		}
	}
}
