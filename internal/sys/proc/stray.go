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

// Stray is what [EndStrays] found of a child that a dead host had recorded.
type Stray struct {
	Record
	Ended []int // pids that were ended
	Left  []int // pids in the child's group that could not be proved to be its own, so they were let live
}

// EndStrays ends what is left of the children of a dead host, given the host's folder, and removes
// the records of those that are gone. The host's own children without a stray are not mentioned. A
// living host's folder is refused with [filelock.ErrHeld], after a second in which the lock of a host that
// has just died goes. It is safe to call at the same time from several processes, and again after
// an error; ctx bounds the wait for the processes to go.
//
// A process counts as the child's own when it is in the session or group of the recorded leader,
// and either that leader is there with the start time that was recorded, or the process carries the
// child's token in its environment.
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

// deathGrace is how long a dead host's lock may be held by a child that it was forking when it
// died: until that child's exec.
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

// Remove removes the folder of a dead host of whose children nothing is left. A living host's
// folder is refused with [filelock.ErrHeld], and one that still has records is left as it is.
func Remove(dir string) error {
	lock, err := filelock.New(filepath.Join(dir, AliveFile)) // so that no host begins in the folder meanwhile
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
		session, err := members(record.Pid)
		if err != nil {
			return stray, err
		}
		own, others := record.split(session)
		for _, p := range bearers(tokenVariable+"="+record.Token, session) {
			own = append(own, p.pid)
		}
		stray.Left = others
		if len(own) == 0 {
			return stray, nil
		}
		if Alive(record.Pid, record.Start) {
			signalGroup(record.Pid, syscall.SIGKILL) // all at once, so that none forks away
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
			return stray, fmt.Errorf("%v still there: %w", own, context.Cause(ctx))
		}
	}
}

// bearers are the living processes outside of a session that carry the variable in their
// environment.
func bearers(variable string, session []process) (found []process) {
	all, err := processes()
	if err != nil {
		return nil // it is a second net; the first one is the session
	}
	for _, p := range all {
		if p.zombie || p.pid == os.Getpid() || slices.ContainsFunc(session,
			func(s process) bool { return s.pid == p.pid }) || !bears(p.pid, variable) {
			continue
		}
		found = append(found, p)
	}
	return found
}

// split tells the living members of a session that are certainly the recorded child's from those
// that may be a stranger's. While the leader is there, running or unreaped, nobody else can have
// its number as a group or session.
func (r Record) split(session []process) (own, others []int) {
	alive := living(session)
	leader := slices.IndexFunc(session, func(p process) bool { return p.pid == r.Pid })
	switch {
	case leader >= 0 && session[leader].start == r.Start:
		return alive, nil
	case leader >= 0: // the number was given away, which happens only when nobody of the child's group is left
		return nil, nil
	}
	for _, pid := range alive {
		if bears(pid, tokenVariable+"="+r.Token) {
			own = append(own, pid)
		} else {
			others = append(others, pid)
		}
	}
	return own, others
}
