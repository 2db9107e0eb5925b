package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"cadre/internal/sys/filelock"
)

// Stray describes the remaining processes that [EndStrays] found of a dead host's child.
type Stray struct {
	Record
	Ended []int // pids that were ended
	Left  []int // pids in the child's group that may be unrelated, so they were not ended
}

// EndStrays ends the remaining children of a dead host, given the host's folder, and removes the
// records of those that have ended. The result lists only children with remaining processes. For
// the folder of a running host it returns [filelock.ErrHeld], after one second in which the lock of
// a host that has just died disappears. Several processes may call it at the same time, and again
// after an error. ctx limits the wait for the processes to end.
//
// A process counts as the child's own if it is in the session or group of the recorded leader, and
// one of two things proves it. Either that leader exists with the recorded start time, or the
// process has the child's token in its environment.
func EndStrays(ctx context.Context, dir string) ([]Stray, error) {
	if err := awaitDeath(ctx, filepath.Join(dir, AliveFile)); err != nil {
		return nil, fmt.Errorf("end strays of %s: %w", dir, err)
	}
	records, err := Records(dir)
	errs := []error{err}
	var strays []Stray
	for _, record := range records {
		stray, err := endStray(ctx, record)
		if err != nil {
			errs = append(errs, fmt.Errorf("end strays of %s: process %d: %w", dir, record.Pid, err))
		}
		if len(stray.Ended)+len(stray.Left) > 0 {
			strays = append(strays, stray)
		}
		if err == nil && len(stray.Left) == 0 {
			os.Remove(record.path(dir))
			os.Remove(record.path(dir) + ".new")
		}
	}
	return strays, errors.Join(errs...)
}

// deathGrace is how long a dead host's lock may still be held by a child that the host was forking
// when it died. The child releases it at its exec.
const deathGrace = time.Second

func awaitDeath(ctx context.Context, path string) error {
	deadline := time.NewTimer(deathGrace)
	defer deadline.Stop()
	for filelock.Held(path) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline.C:
			return filelock.ErrHeld
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Remove removes the folder of a dead host that has no remaining children. For a running host it
// returns [filelock.ErrHeld]. It leaves a folder that still has records.
func Remove(dir string) error {
	lock, err := filelock.New(filepath.Join(dir, AliveFile)) // so that no host opens the folder meanwhile
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	defer lock.Unlock()
	if records, err := Records(dir); err != nil || len(records) > 0 {
		return err
	}
	if err := removeSockets(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func endStray(ctx context.Context, record Record) (Stray, error) {
	stray := Stray{Record: record}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		all, err := processes()
		if err != nil {
			return stray, fmt.Errorf("list processes: %w", err)
		}
		session := membersOf(record.Pid, all)
		own, others := record.split(session)
		for _, p := range withVariable(tokenVariable+"="+record.Token, session, all) {
			own = append(own, p.pid)
		}
		stray.Left = others
		if len(own) == 0 {
			return stray, nil
		}
		if Alive(record.Pid, record.Start) {
			signalGroup(record.Pid, syscall.SIGKILL) // the whole group at once, so that no process can fork away
		}
		for _, pid := range own {
			if !slices.Contains(stray.Ended, pid) {
				stray.Ended = append(stray.Ended, pid)
			}
			signalProcess(pid, syscall.SIGKILL)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return stray, fmt.Errorf("%v are still running: %w", own, context.Cause(ctx))
		}
	}
}

// withVariable returns the running processes outside of the session that have the variable in their
// environment.
func withVariable(variable string, session, all []process) (found []process) {
	for _, p := range all {
		if p.zombie || p.pid == os.Getpid() || slices.ContainsFunc(session,
			func(s process) bool { return s.pid == p.pid }) || !hasVariable(p.pid, variable) {
			continue
		}
		found = append(found, p)
	}
	return found
}

// split separates the running members of a session into those that certainly belong to the recorded
// child and those that may be unrelated. While the leader exists, running or unreaped, its pid
// cannot be reused for another group or session.
func (r Record) split(session []process) (own, others []int) {
	alive := living(session)
	leader := slices.IndexFunc(session, func(p process) bool { return p.pid == r.Pid })
	switch {
	case leader >= 0 && session[leader].start == r.Start:
		return alive, nil
	case leader >= 0: // the pid was reused, which only happens when no process of the child's group is left
		return nil, nil
	}
	for _, pid := range alive {
		if hasVariable(pid, tokenVariable+"="+r.Token) {
			own = append(own, pid)
		} else {
			others = append(others, pid)
		}
	}
	return own, others
}
