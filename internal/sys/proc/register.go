package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"cadre/internal/sys/filelock"
)

// AliveFile is the name, in a host's folder, of the [filelock.Lock] that an open [Register] holds; [Lives]
// looks at it. In it stands whose process that is: its pid and its start.
const AliveFile = "alive"

// Lives reports whether the host with that folder lives. One that was killed holds its lock until
// the last of its threads has come to its end; it is a zombie by then, and does not live.
func Lives(dir string) bool {
	path := filepath.Join(dir, AliveFile)
	return filelock.Held(path) && !dying(path)
}

// dying reports whether the holder is known to have come to its end, as nearly as makes no
// difference.
func dying(path string) bool {
	h, signed, err := signature(path)
	if err != nil || !signed {
		return false
	}
	p, err := lookup(h.Pid)
	return err == nil && p.start == h.Start && p.zombie
}

// ErrClosed is returned when a child is to be started after [Register.Close].
var ErrClosed = errors.New("the register is closed")

// Register starts the children of one host and keeps their records. Its methods may be called from
// any goroutine.
type Register struct {
	dir   string
	alive *filelock.Lock
	entry string // its file in a list; "" where it is in none
	leash leash

	mu       sync.Mutex
	children map[*Child]struct{}
	closed   bool
	offList  bool // its entry is taken back

	sockets     string // folder of the host's sockets; "" before the first
	socketCount int
}

// Open begins a host with the given folder, which it makes if it has to. The folder must be this
// host's alone: a living host's gives [filelock.ErrHeld], and what a dead one left is to be ended with
// [EndStrays] first. An empty dir means a host without records, for a program that runs a command
// or two and ends: its children have a leash only.
func Open(dir string) (*Register, error) {
	r := &Register{dir: dir, children: map[*Child]struct{}{}}
	if dir == "" {
		return r, nil
	}
	lock, err := enroll(dir)
	if err != nil {
		return nil, fmt.Errorf("open register: %w", err)
	}
	r.alive = lock
	return r, nil
}

// OpenListed is [Open] for a host that runs sessions. It is in the list from before its first child
// until the last one is gone. On Linux its process adopts what its descendants leave behind, so
// that this stays below it.
func OpenListed(dir string, l Listing) (*Register, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if r.entry, err = enlist(l, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open register: list it: %w", err), r.alive.Unlock())
	}
	adopt()
	return r, nil
}

func enroll(dir string) (*filelock.Lock, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		lock, err := filelock.New(filepath.Join(dir, AliveFile))
		if errors.Is(err, fs.ErrNotExist) { // somebody took the new folder for that of a dead host
			continue
		}
		if err == nil {
			_ = Sign(lock) // without it, its holder's end is seen a little later
		}
		return lock, err
	}
}

// Start starts a child. It runs when Start returns, and its record is on disk. Every child that was
// started is to be waited for with [Child.Wait], [Child.Stop] or [Register.Close].
func (r *Register) Start(cmd Cmd) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("start a child: %w", ErrClosed)
	}
	c, err := fork(cmd)
	if err != nil {
		return nil, err
	}
	if err := r.admit(c); err != nil {
		r.leash.remove(c.pid)
		c.abandon()
		r.erase(c)
		return nil, fmt.Errorf("start a child: %w", err)
	}
	r.children[c] = struct{}{}
	c.open()
	go c.watch(r)
	return c, nil
}

// Run starts a child and waits for it. When ctx ends first, the child is stopped by the ladder, and
// the error is ctx's.
func (r *Register) Run(ctx context.Context, cmd Cmd, ladder Ladder) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, err
	}
	c, err := r.Start(cmd)
	if err != nil {
		return Exit{}, err
	}
	return c.Finish(ctx, ladder)
}

// Finish waits for the child. When ctx ends first, the child is stopped by the ladder, and the
// error is ctx's.
func (c *Child) Finish(ctx context.Context, ladder Ladder) (Exit, error) {
	exit, err := c.Wait(ctx)
	if ctx.Err() == nil || err == nil || errors.Is(err, ErrLeft) {
		return exit, err
	}
	stopped := c.Stop(context.WithoutCancel(ctx), ladder)
	if errors.Is(stopped, ErrLeft) {
		return Exit{Code: -1}, errors.Join(ctx.Err(), stopped)
	}
	return c.exit, errors.Join(ctx.Err(), stopped)
}

// Bequeath says what is run when the host dies before [Register.Close]: a command of absolute
// paths, without an environment, input or output, once the groups of its children are killed. Where
// the leash is killed with the host nobody runs it.
func (r *Register) Bequeath(will ...string) error {
	if err := r.leash.bequeath(will); err != nil {
		return fmt.Errorf("leave a will: %w", err)
	}
	return nil
}

// Close kills every child that still runs, waits until they are gone, ends the leash and gives the
// folder free. ctx bounds the wait; the children are sent SIGKILL in any case. It may be called
// more than once.
func (r *Register) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	var running []*Child
	for c := range r.children {
		running = append(running, c)
	}
	r.mu.Unlock()

	var errs []error
	for _, c := range running {
		c.signalKill()
	}
	for _, c := range running {
		if _, err := c.Wait(ctx); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", c.pid, err))
		}
	}
	errs = append(errs, r.leash.close(ctx))
	if r.unlisted() {
		errs = append(errs, unlist(r.entry))
		disown()
	}
	if r.sockets != "" {
		errs = append(errs, os.RemoveAll(r.sockets))
	}
	if r.alive != nil {
		errs = append(errs, r.alive.Unlock())
	}
	return errors.Join(errs...)
}

// unlisted reports, once, whether the register is to be taken off its list.
func (r *Register) unlisted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.entry != "" && !r.offList
	r.offList = true
	return first
}

// admit makes the child known to all that would end it. It still waits at the gate.
func (r *Register) admit(c *Child) error {
	if r.dir != "" {
		start, err := StartTime(c.pid)
		if err != nil {
			return err
		}
		record := Record{Pid: c.pid, Start: start, Token: c.token, Member: c.cmd.Member, Task: c.cmd.Task,
			Trusted: c.cmd.Trusted, Check: c.cmd.Check, Started: c.started.UTC(), Terminal: c.cmd.Terminal}
		if err := record.write(r.dir); err != nil {
			return fmt.Errorf("write its record: %w", err)
		}
	}
	return r.leash.add(c.pid)
}

// abandon ends a child that may not run: it leaves the gate when that is closed.
func (c *Child) abandon() {
	c.gate.Close()
	c.signal(syscall.SIGKILL)
	c.reap()
	for _, s := range c.streams {
		s.Close()
	}
	if c.stdin != nil {
		c.stdin.Close()
	}
}

func (r *Register) forget(c *Child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, c)
}

func (r *Register) erase(c *Child) {
	if r.dir != "" {
		// one that stays names a process that is gone, and EndStrays sees that
		os.Remove(Record{Pid: c.pid}.path(r.dir))
	}
}

// Pids are those of the children that run.
func (r *Register) Pids() ([]int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	var pids []int
	for c := range r.children {
		pids = append(pids, c.pid)
	}
	return pids, nil
}
