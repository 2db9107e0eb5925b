package proc

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardVariable is the environment variable that tells a guarded program the pid of its guard.
const guardVariable = "CADRE_GUARD"

// guardTime bounds how long the rest of a guarded program may take to end.
const guardTime = 10 * time.Second

// Guard runs this program again, as a host in the background, and stays above it. If that process
// is killed, what is left of its sessions is below this one, and this one ends it. Without that,
// they would be below no host, and count as the user.
//
// guarded is false where the caller itself has to be the host: below a guard, at a terminal, and on
// a system without subreapers. status is the exit status of the program; 128 and the signal if a
// signal ended it.
func Guard(list string, args, env []string, output *os.File) (guarded bool, status int, err error) {
	guard, _ := strconv.Atoi(os.Getenv(guardVariable))
	os.Unsetenv(guardVariable)
	// A program that Detach started leads its session.
	session, err := unix.Getsid(0)
	if err != nil || guard == os.Getppid() || session != os.Getpid() || !adopts {
		return false, 0, err
	}
	dir, err := os.MkdirTemp("", "cadre-guard-")
	if err != nil {
		return true, 1, err
	}
	defer os.RemoveAll(dir)
	r, err := OpenWhole(dir, list)
	if err != nil {
		return true, 1, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), guardTime)
		defer cancel()
		err = errors.Join(err, r.Close(ctx))
	}()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	c, err := r.detach(args, append(slices.Clone(env), guardVariable+"="+strconv.Itoa(os.Getpid())), output)
	if c == nil {
		return true, 1, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
		started.Delete(c.Process.Pid)
	}()
	for {
		select {
		case s := <-signals:
			_ = c.Process.Signal(s) // fails only if it has ended
		case <-ended:
			status = c.ProcessState.ExitCode()
			if how := c.ProcessState.Sys().(syscall.WaitStatus); how.Signaled() {
				status = 128 + int(how.Signal())
			}
			return true, status, err
		}
	}
}
