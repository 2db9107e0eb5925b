package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Detach starts a program in a session of its own, so that it outlives this process and its
// terminal. It is not a host's child: it does not end with its starter. Its output goes to output.
func Detach(args, env []string, output *os.File) error {
	c := detached(args, env, output)
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}

func detached(args, env []string, output *os.File) *exec.Cmd {
	c := exec.Command(args[0], args[1:]...)
	c.Env, c.Stdout, c.Stderr = Unmarked(env), output, output
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c
}

// DetachTrusted is [Detach] for a program that acts as the user. If this process runs sessions, and
// so is in the list, a record marks the program as trusted for as long as both are running. Without
// the record, [Ancestry] would take the program for a session that was left behind.
func DetachTrusted(list string, args, env []string, output *os.File) error {
	if !Listed(list) {
		return Detach(args, env, output)
	}
	_, err := detachListed(list, args, env, output)
	return err
}

// DetachWatched is [DetachTrusted] for a caller that wants to know when the program ends: it then
// closes ended.
func DetachWatched(list string, args, env []string, output *os.File) (ended <-chan struct{}, err error) {
	if Listed(list) {
		return detachListed(list, args, env, output)
	}
	c := detached(args, env, output)
	if err := c.Start(); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = c.Wait()
	}()
	return over, nil
}

// detachListed starts the program with a record, which it removes when the program has ended.
func detachListed(list string, args, env []string, output *os.File) (ended <-chan struct{}, err error) {
	dir, err := os.MkdirTemp("", "cadre-detached-")
	if err != nil {
		return nil, err
	}
	r, err := OpenListed(dir, Listing{Folder: list})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	forget := func() error { return errors.Join(r.Close(context.Background()), os.RemoveAll(dir)) }
	c, err := r.detach(args, env, output)
	if c == nil {
		return nil, errors.Join(err, forget())
	}
	over := make(chan struct{})
	go func() { // not before, because Wait closes the gate of a program that has ended
		defer close(over)
		_ = c.Wait()
		started.Delete(c.Process.Pid)
		_ = forget()
	}()
	return over, err
}

// detach starts a program of the user with a record in the register's folder. If c is not nil, it
// must be waited for, and then be deleted from started.
func (r *Register) detach(args, env []string, output *os.File) (c *exec.Cmd, err error) {
	// The shell waits for a line, so that the program does not begin before its record is written.
	c = detached(append([]string{"/bin/sh", "-c", `read -r _ && exec "$@"`, "sh"}, args...), env, output)
	gate, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.adopt()
	r.mu.Unlock()
	if err := c.Start(); err != nil {
		return nil, err
	}
	started.Store(c.Process.Pid, nil)
	start, err := StartTime(c.Process.Pid)
	if err == nil {
		err = Record{Pid: c.Process.Pid, Start: start, Token: rand.Text(), Trusted: true}.write(r.dir)
	}
	if err == nil {
		_, err = io.WriteString(gate, "\n")
	}
	return c, errors.Join(err, gate.Close()) // without a line, the program does not begin
}
