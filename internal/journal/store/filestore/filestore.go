// Package filestore keeps what the processes of a team share in the team's folder, for processes of
// one machine.
//
// # Authority
//
// It has authority over the files of leases, NAME.lock, and over those of values, whose keys are
// their paths in the folder. The lease of a host is the lock of the register of its child
// processes: hosts/ID/alive.
//
// # Guarantees
//
// Those of package store hold. A lease is a file that is locked: the kernel ends it with its
// process, however that ends, so it does not expire and cannot be lost. The holder writes its
// process into the file. Opening a team costs nothing, and the folder is never made: a team whose
// folder does not exist may have been removed.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/store"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/fswatch"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// Team is the folder of a team. It implements [store.Team].
type Team string

var _ store.Team = Team("")

// Or returns shared, or the team's folder if shared is nil.
func Or(shared store.Team, dir string) store.Team {
	if shared != nil {
		return shared
	}
	return Team(dir)
}

// Where names the place of a value for a person: its path, or only its key in another store.
func Where(in store.Values, key string) string {
	if t, is := in.(Team); is {
		return filepath.Join(string(t), filepath.FromSlash(key))
	}
	return "the value " + key
}

const lockSuffix = ".lock" // of the file of a lease

// LeasePath returns the file that is locked for a lease.
func (t Team) LeasePath(name string) string {
	if dir, is := t.hostDir(name); is {
		return filepath.Join(dir, proc.AliveFile)
	}
	return filepath.Join(string(t), name+lockSuffix)
}

// hosts returns the folder with the folders of hosts.
func (t Team) hosts() string { return filepath.Join(string(t), "hosts") }

// hostDir returns the folder of the host whose lease has that name. is is false for another lease.
func (t Team) hostDir(name string) (dir string, is bool) {
	id, is := strings.CutPrefix(name, store.HostPrefix)
	return filepath.Join(t.hosts(), id), is && store.CheckName(id) == nil
}

// lease is a locked file.
type lease struct{ *filelock.Lock }

func (lease) Lost() <-chan struct{} { return nil }
func (lease) Until() time.Time      { return time.Time{} }
func (lease) Fence() int64          { return 0 }
func (l lease) Release() error      { return l.Unlock() }

// LockOf returns the locked file of a lease, or nil for a lease of another store.
func LockOf(l store.Lease) *filelock.Lock {
	one, _ := l.(lease)
	return one.Lock
}

// Acquire implements [store.Leases].
func (t Team) Acquire(_ context.Context, name string) (store.Lease, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	var lock *filelock.Lock
	err := t.inFolder(t.LeasePath(name), func() (err error) {
		lock, err = filelock.New(t.LeasePath(name))
		return err
	})
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("the lease %s of the team in %s is %w", name, string(t), store.ErrHeld)
	case err != nil:
		return nil, err
	}
	_ = proc.Sign(lock) // without a signature, Holder does not find this process
	return lease{lock}, nil
}

// Held implements [store.Leases]. A host that is dying does not have its lease any more.
func (t Team) Held(_ context.Context, name string) bool {
	if dir, is := t.hostDir(name); is {
		return proc.HostAlive(dir)
	}
	return filelock.Held(t.LeasePath(name))
}

// AllHeld implements [store.Leases].
func (t Team) AllHeld(ctx context.Context, prefix string) (held []string, err error) {
	var names []string
	if !strings.HasPrefix(prefix, store.HostPrefix) {
		entries, err := os.ReadDir(string(t))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if name, is := strings.CutSuffix(e.Name(), lockSuffix); is {
				names = append(names, name)
			}
		}
	}
	entries, err := os.ReadDir(t.hosts())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		names = append(names, store.Host(e.Name()))
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && store.CheckName(name) == nil && t.Held(ctx, name) {
			held = append(held, name)
		}
	}
	slices.Sort(held)
	return held, nil
}

// Holder implements [store.Leases]. It does not find a holder in another PID namespace.
func (t Team) Holder(_ context.Context, name string) (store.Holder, bool, error) {
	h, ok, err := proc.HolderOf(t.LeasePath(name))
	return store.Holder{Pid: h.Pid}, ok, err
}

func (t Team) path(key string) (string, error) {
	if err := store.CheckKey(key); err != nil {
		return "", err
	}
	return filepath.Join(string(t), filepath.FromSlash(key)), nil
}

// Get implements [store.Values].
func (t Team) Get(_ context.Context, key string) ([]byte, error) {
	path, err := t.path(key)
	if err != nil {
		return nil, err
	}
	return regularfile.Read(path, store.MaxValue)
}

// Has implements [store.Values].
func (t Team) Has(_ context.Context, key string) (bool, error) {
	path, err := t.path(key)
	if err != nil {
		return false, err
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return err == nil, err
	}
}

// All implements [store.Values].
func (t Team) All(ctx context.Context, folder string) ([]store.Value, error) {
	path, err := t.path(folder)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path) // in order
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := make([]store.Value, 0, len(entries))
	for _, e := range entries {
		v := store.Value{Key: folder + "/" + e.Name()}
		if store.CheckKey(v.Key) != nil || strings.HasSuffix(v.Key, tempSuffix) || e.IsDir() {
			continue
		}
		if v.Data, v.Err = t.Get(ctx, v.Key); !errors.Is(v.Err, fs.ErrNotExist) { // it was removed just now
			all = append(all, v)
		}
	}
	return all, nil
}

// settable returns the file of a value that is to be set.
func (t Team) settable(v store.Value) (string, error) {
	if err := store.CheckValue(v); err != nil {
		return "", err
	}
	return t.path(v.Key)
}

// Put implements [store.Values].
func (t Team) Put(_ context.Context, key string, data []byte) error {
	path, err := t.settable(store.Value{Key: key, Data: data})
	if err != nil {
		return err
	}
	return t.inFolder(path, func() error { return atomicfile.Write(path, data) })
}

// PutOnce implements [store.Values]. The file is read-only.
func (t Team) PutOnce(ctx context.Context, key string, data []byte) ([]byte, error) {
	path, err := t.settable(store.Value{Key: key, Data: data})
	if err != nil {
		return nil, err
	}
	if there, err := t.Get(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return there, err
	}
	making := atomicfile.Passing{Name: filepath.Join(filepath.Dir(path), "."+filepath.Base(path)), Mode: 0o400}
	if err := os.Remove(making.Name); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed process
		return nil, err
	}
	if err := t.inFolder(path, func() error { return atomicfile.WriteBy(path, data, making) }); err != nil {
		return nil, err
	}
	return t.Get(ctx, key)
}

// inFolder calls write, again when it has made the folder of the file, which another process may
// remove meanwhile. It does not make the team's folder.
func (t Team) inFolder(path string, write func() error) error {
	const attempts = 100 // a symbolic link to nowhere never becomes a file
	err := write()
	for n := 1; n < attempts && errors.Is(err, fs.ErrNotExist); n++ {
		if filepath.Dir(path) == string(t) {
			return fmt.Errorf("%w: %w", journal.ErrGone, err)
		}
		if err := t.makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		err = write()
	}
	return err
}

// makeFolder makes a folder below the team's, and the one that it is in.
func (t Team) makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != string(t) {
		if err = t.makeFolder(above); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", journal.ErrGone, err)
	}
	return err
}

const (
	tempSuffix = ".new" // suffix of a file that is not renamed into place yet
	// leftover is the age, compared with the newest value, at which such a file counts as left by a
	// killed writer. A writer that was only slow writes its next value again.
	leftover = time.Minute
)

var (
	written atomic.Int64 // values of this process, which make the names of those files unique
	swept   sync.Map     // folders that this process has written into
)

// Replace implements [store.Values]. The name of a file that is not in place yet is unique, because
// a process that has just lost a lease may still write beside the one that has it now.
func (t Team) Replace(_ context.Context, values ...store.Value) error {
	var errs []error
	for _, v := range values {
		path, err := t.settable(v)
		if err == nil {
			coming := atomicfile.Passing{Name: fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), written.Add(1), tempSuffix)}
			err = t.inFolder(path, func() error { return atomicfile.Replace(path, v.Data, coming) })
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, again := swept.LoadOrStore(filepath.Dir(path), true); !again {
			sweep(path)
		}
	}
	return errors.Join(errs...)
}

// sweep removes files left by killed writers. It takes their age by the clock of the disk: the
// value at path was written just now.
func sweep(path string) {
	now, err := os.Stat(path)
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if !passing(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && now.ModTime().Sub(info.ModTime()) > leftover {
			os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// passing reports whether a file of that name is one that Replace writes before it is in place.
func passing(name string) bool {
	name, is := strings.CutSuffix(name, tempSuffix)
	dot := strings.LastIndexByte(name, '.')
	pid, count, made := strings.Cut(name[dot+1:], "-")
	_, noPid := strconv.Atoi(pid)
	_, noCount := strconv.Atoi(count)
	return is && dot > 0 && made && noPid == nil && noCount == nil
}

// Delete implements [store.Values]. It removes the folder in a folder when that is empty, too: the
// folder of a host that has ended.
func (t Team) Delete(_ context.Context, key string) error {
	path, err := t.path(key)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if strings.Count(key, "/") > 1 {
		os.Remove(filepath.Dir(path)) // fails unless it is empty
	}
	return nil
}

// Await implements [store.Values].
func (t Team) Await(ctx context.Context, key string) error {
	path, err := t.path(key)
	if err != nil {
		return err
	}
	folders := fswatch.New()
	defer folders.Close()
	for {
		folders.Add(filepath.Dir(path))
		if there, _ := t.Has(ctx, key); there {
			return nil
		}
		if _, _, ok := folders.Wait(ctx, folders.Pace()); !ok {
			return context.Cause(ctx)
		}
	}
}
