package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) func() storetest.Handle {
		dir := filepath.Join(t.TempDir(), "demo")
		if err := filejournal.Create(dir, "demo-1", nil, filejournal.Options{}); err != nil {
			t.Fatal(err)
		}
		return func() storetest.Handle {
			j, err := filejournal.Open(dir, filejournal.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return storetest.Handle{Journal: j, Team: filestore.Team(dir)}
		}
	})
}

// TestFiles checks where leases and values are, and that only their owner can read them.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	team := filestore.Team(dir)
	lease, err := team.Acquire(t.Context(), store.Lead)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	if err := team.Put(t.Context(), "saved/3-ann.patch", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := team.Replace(t.Context(), store.Value{Key: "looked.json", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{"lead.lock": 0o600, "saved": os.ModeDir | 0o700,
		"saved/3-ann.patch": 0o600, "looked.json": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

// TestHosts checks that leases and requests of hosts are where every version has them: a running
// host of an earlier version is found, and it finds what it is asked.
func TestHosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	team := filestore.Team(dir)
	earlier, err := proc.Open(filepath.Join(dir, "hosts", "h1"))
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close(t.Context())
	held, err := team.AllHeld(t.Context(), store.HostPrefix)
	if h, ok, failed := team.Holder(t.Context(), store.Host("h1")); !team.Held(t.Context(), store.Host("h1")) ||
		err != nil || !slices.Equal(held, []string{"host-h1"}) || !ok || failed != nil || h.Pid != os.Getpid() {
		t.Errorf("%v, %v; %+v, %t, %v", held, err, h, ok, failed)
	}
	for _, name := range []string{store.Host("h2"), store.Abort} {
		lease, err := team.Acquire(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release()
	}
	for _, path := range []string{"hosts/h2/alive", "abort.lock"} {
		if !filelock.Held(filepath.Join(dir, path)) {
			t.Errorf("%s is not locked", path)
		}
	}
	for _, host := range []string{"h2", "gone"} {
		if err := team.Replace(t.Context(), store.Value{Key: store.PauseKey(host)}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "hosts", host, "pause")); err != nil {
			t.Error(err)
		}
		if err := team.Delete(t.Context(), store.PauseKey(host)); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "hosts", "*")); err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// TestGone checks that nothing is made in a team's folder that was removed.
func TestGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	team := filestore.Team(dir)
	_, acquiring := team.Acquire(t.Context(), store.Lead)
	_, enrolling := team.Acquire(t.Context(), store.Host("h1"))
	_, once := team.PutOnce(t.Context(), "c", nil)
	for call, err := range map[string]error{"acquire": acquiring, "put": team.Put(t.Context(), "a/b", nil),
		"enroll": enrolling, "put once": once, "put below": team.Put(t.Context(), "a/b/c", nil),
		"replace": team.Replace(t.Context(), store.Value{Key: "a/b"}, store.Value{Key: "c"})} {
		if !errors.Is(err, journal.ErrGone) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if team.Held(t.Context(), store.Lead) {
		t.Error("a lease of a removed team is held")
	}
	if err := team.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestOtherFiles checks that what is no file in the place of a value is reported, and does not
// block.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	team := filestore.Team(dir)
	if err := team.Put(t.Context(), "beats/bob", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, pipe := range []string{"beats/ann", "lead.lock"} {
		if err := syscall.Mkfifo(filepath.Join(dir, pipe), 0o600); err != nil {
			t.Skip(err)
		}
	}
	if _, err := team.Get(t.Context(), "beats/ann"); err == nil {
		t.Error("a pipe was read")
	}
	all, err := team.All(t.Context(), "beats")
	if err != nil || len(all) != 2 || all[0].Err == nil || all[1].Err != nil || string(all[1].Data) != "x" {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := team.Acquire(t.Context(), store.Lead); err == nil || errors.Is(err, store.ErrHeld) {
		t.Errorf("a pipe was locked: %v", err)
	}
	if !team.Held(t.Context(), store.Lead) {
		t.Error("a lease of which nothing is known counts as free")
	}
}

// TestLeftoversGo checks that the first value of a process removes the files that killed writers
// left in its folder, and keeps those in use and other files.
func TestLeftoversGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"ann.json.7-1.new": 2 * time.Minute, "ann.json.9-2.new": 0,
		"bob.json.7-2.new": time.Hour, "index.new": time.Hour, "7-2.new": time.Hour} {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := filestore.Team(dir).Replace(t.Context(), store.Value{Key: "ann.json"}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"7-2.new", "ann.json", "ann.json.9-2.new", "index.new"}) {
		t.Errorf("%v: there are %v", err, names)
	}
}
