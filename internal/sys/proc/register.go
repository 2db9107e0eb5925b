package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cadre/internal/sys/filelock"
)

// AliveFile is the name, in a host's folder, of the [filelock.Lock] that an open [Register] holds;
// [HostAlive] checks it. The file holds the pid and start time of the host's process.
const AliveFile = "alive"

// HostAlive reports whether the host with this folder is running. A killed host keeps its lock
// until its last thread has ended. It is a zombie by then and does not count as running.
func HostAlive(dir string) bool {
	path := filepath.Join(dir, AliveFile)
	return filelock.Held(path) && !dying(path)
}

// dying reports whether the holder of the lock is known to be a zombie.
func dying(path string) bool {
	h, signed, err := signature(path)
	if err != nil || !signed {
		return false
	}
	p, err := lookup(h.Pid)
	return err == nil && p.start == h.Start && p.zombie
}

// ErrClosed reports that the register was closed with [Register.Close].
var ErrClosed = errors.New("the register is closed")

// Register starts the children of one host and keeps their records. Its methods may be called from
// any goroutine.
type Register struct {
	dir      string
	alive    *filelock.Lock
	entry    string // its file in a list; "" if it is not listed
	watchdog watchdog

	mu       sync.Mutex
	children map[*Child]struct{}
	closed   bool
	offList  bool // its entry was removed
	adopts   bool // this process adopts orphans for it

	sockets     string // folder of the host's sockets; "" before the first
	socketCount int
}

// Open opens a register with the given folder, which it creates if needed. The folder must belong
// to this host alone. For the folder of a running host it returns [filelock.ErrHeld]. The remains
// of a dead host must be ended with [EndStrays] first. With an empty dir there are no records, and
// children have only a watchdog. This is for a program that runs a command or two and ends.
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

// OpenListed is [Open] for a host that runs sessions. The host is listed from before its first
// child starts until the last one has ended. On Linux its process adopts the orphans among its
// descendants, so that they stay below it, from before the first child starts.
func OpenListed(dir string, l Listing) (*Register, error) {
	r := &Register{dir: dir, alive: l.Alive, children: map[*Child]struct{}{}}
	var err error
	if l.Alive == nil {
		if r, err = Open(dir); err != nil {
			return nil, err
		}
	}
	if r.entry, err = enlist(l, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open register: list it: %w", err), r.alive.Unlock())
	}
	return r, nil
}

// OpenWhole is [OpenListed] for a program that starts processes on behalf of others, such as a
// server. The register then stands for the whole process: everything below it is below the
// register, whoever started it.
//
//   - The process adopts orphans at once. A session whose own host is killed stays below this process.
//   - Children of registers without a folder have their records in this register's folder.
//   - [Register.Close] ends the orphans, because they would be below no host afterwards. It leaves
//     those that are hosts themselves.
//
// A process has at most one such register at a time.
func OpenWhole(dir, list string) (*Register, error) {
	r, err := OpenListed(dir, Listing{Folder: list, whole: true})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adopt()
	whole.Store(r)
	return r, nil
}

// whole is the register that stands for this process, if there is one.
var whole atomic.Pointer[Register]

// recordsOf returns the folder for the records of the register's children; "" for none.
func recordsOf(r *Register) string {
	if w := whole.Load(); r.dir == "" && w != nil {
		return w.dir
	}
	return r.dir
}

func enroll(dir string) (*filelock.Lock, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		lock, err := filelock.New(filepath.Join(dir, AliveFile))
		if errors.Is(err, fs.ErrNotExist) { // another process took the new folder for a dead host's and removed it
			continue
		}
		if err == nil {
			_ = Sign(lock) // without a signature, the holder's end is noticed a little later
		}
		return lock, err
	}
}

// Start starts a child. When Start returns, the child is running and its record is on disk. Every
// started child must be waited for with [Child.Wait], [Child.Stop] or [Register.Close].
func (r *Register) Start(cmd Cmd) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("start a child: %w", ErrClosed)
	}
	r.adopt()
	c, err := fork(cmd)
	if err != nil {
		return nil, err
	}
	if err := r.admit(c); err != nil {
		r.watchdog.remove(c.pid)
		c.abandon()
		c.erase()
		return nil, fmt.Errorf("start a child: %w", err)
	}
	r.children[c] = struct{}{}
	c.open()
	go c.watch(r)
	return c, nil
}

// adopt makes this process adopt orphans, if the register is listed. It is called before the first
// child starts and not earlier, so that a program whose members run no processes is not changed.
// The caller holds mu.
func (r *Register) adopt() {
	if r.entry != "" && !r.adopts {
		adopt()
		r.adopts = true
	}
}

// Run starts a child and waits for it. When ctx ends first, Run stops the child as the ladder says
// and returns ctx's error.
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

// Finish waits for the child. When ctx ends first, Finish stops the child as the ladder says and
// returns ctx's error.
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

// RunOnDeath sets a command that runs if the host dies before [Register.Close], after the groups of
// its children are killed. The command consists of absolute paths and gets no environment, input or
// output. It does not run if the watchdog is killed together with the host.
func (r *Register) RunOnDeath(command ...string) error {
	if err := r.watchdog.runOnDeath(command); err != nil {
		return fmt.Errorf("set the command for the death of the host: %w", err)
	}
	return nil
}

// KillAt has the groups of all children killed at that time, of this process's steady clock, even
// if this process is stopped then. A later call replaces the time. It is for a host that may run
// its children until then only, and calls it again as long as it may run them for longer. What a
// child put into a session of its own is not killed by it.
func (r *Register) KillAt(until time.Time) { r.watchdog.killAt(until) }

// Close kills every running child, waits for their end, ends the watchdog and releases the folder.
// ctx limits the wait for the children, which get SIGKILL in any case; the watchdog has a time of
// its own. Close may be called more than once.
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
	errs = append(errs, r.watchdog.close())
	if whole.CompareAndSwap(r, nil) {
		errs = append(errs, endOrphans(ctx, filepath.Dir(r.entry)))
	}
	if r.unlisted() {
		errs = append(errs, unlist(r.entry))
		if r.adopts {
			disown()
		}
	}
	if r.sockets != "" {
		errs = append(errs, os.RemoveAll(r.sockets))
	}
	if r.alive != nil {
		errs = append(errs, r.alive.Unlock())
	}
	return errors.Join(errs...)
}

// unlisted reports whether the register must be removed from its list. It returns true at most
// once.
func (r *Register) unlisted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.entry != "" && !r.offList
	r.offList = true
	return first
}

// admit records the child and gives its group to the watchdog while it waits at the gate.
func (r *Register) admit(c *Child) error {
	if c.records = recordsOf(r); c.records != "" {
		start, err := StartTime(c.pid)
		if err != nil {
			return err
		}
		record := Record{Pid: c.pid, Start: start, Token: c.token, Member: c.cmd.Member, Task: c.cmd.Task,
			Trusted: c.cmd.Trusted, Check: c.cmd.Check, Started: c.started.UTC(), Terminal: c.cmd.Terminal}
		if err := record.write(c.records); err != nil {
			return fmt.Errorf("write its record: %w", err)
		}
	}
	return r.watchdog.add(c.pid)
}

// abandon ends a child at the gate that must not run. The child exits when the gate is closed.
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

// erase removes the child's record.
func (c *Child) erase() {
	if c.records != "" {
		// A record that stays names a process that has ended, and EndStrays recognises that.
		os.Remove(Record{Pid: c.pid}.path(c.records))
	}
}

// Pids returns the pids of the running children.
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
