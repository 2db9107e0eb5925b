// Package storetest is the conformance suite for the places where teams live: the contracts of
// packages journal and store as tests.
//
// Each test gets a function that opens handles on one new, empty team. The handles stand for
// processes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/store"
)

// Handle is what a process has of a team.
type Handle struct {
	Journal journal.Journal // closed by the suite
	Team    store.Team
}

// Open creates a team without records, leases and values, and returns a function that opens another
// handle on it.
type Open func(testing.TB) (handle func() Handle)

// Run tests a place for teams against the contracts.
func Run(t *testing.T, open Open) {
	t.Run("journal", func(t *testing.T) {
		journaltest.Run(t, func(t testing.TB) func() journal.Journal {
			handle := open(t)
			return func() journal.Journal { return handle().Journal }
		})
	})
	tests := []struct {
		name string
		run  func(*testing.T, func() store.Team)
	}{
		{"a lease has one holder", testLease},
		{"leases have names", testNames},
		{"the held leases are listed", testHeld},
		{"a released lease is not released again", testReleased},
		{"a fence grows", testFence},
		{"a waiter gets the lease", testWait},
		{"racing processes hold a lease one after the other", testRace},
		{"a value is what was written last", testValues},
		{"a folder has its values in order", testAll},
		{"keys", testKeys},
		{"a value has a limit", testLimit},
		{"a value belongs to the store", testOwned},
		{"a value that is put once stays", testOnce},
		{"readers see whole values", testWhole},
		{"a value is awaited", testAwait},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			handle := open(t)
			test.run(t, func() store.Team {
				h := handle()
				t.Cleanup(func() { h.Journal.Close() })
				return h.Team
			})
		})
	}
}

// acquire takes a lease that must be free.
func acquire(t testing.TB, team store.Team, name string) store.Lease {
	t.Helper()
	lease, err := team.Acquire(context.Background(), name)
	if err != nil {
		t.Fatalf("acquire %s: %v", name, err)
	}
	t.Cleanup(func() { lease.Release() })
	return lease
}

func release(t testing.TB, lease store.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Errorf("release: %v", err)
	}
}

// checkHeld checks what each handle is told of a lease.
func checkHeld(t *testing.T, want bool, name string, teams ...store.Team) {
	t.Helper()
	for _, team := range teams {
		h, ok, err := team.Holder(t.Context(), name)
		if held := team.Held(t.Context(), name); held != want || ok != want || err != nil ||
			ok && (h.Pid == 0 || h.Machine != "") {
			t.Errorf("held: %t; holder: %+v, %t, %v", held, h, ok, err)
		}
	}
}

func testLease(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	checkHeld(t, false, store.Lead, a, b)
	lease := acquire(t, a, store.Lead)
	checkHeld(t, true, store.Lead, a, b)
	for _, team := range []store.Team{a, b} {
		if _, err := team.Acquire(t.Context(), store.Lead); !errors.Is(err, store.ErrHeld) {
			t.Errorf("while it is held: %v", err)
		}
	}
	select {
	case <-lease.Lost():
		t.Error("it was lost")
	default:
	}
	release(t, lease)
	checkHeld(t, false, store.Lead, a, b)
	acquire(t, b, store.Lead)
	checkHeld(t, true, store.Lead, a, b)
}

func testNames(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	acquire(t, a, store.Presence("ann"))
	acquire(t, b, store.Presence("bob"))
	checkHeld(t, false, store.Presence("cy"), a, b)
	for _, name := range []string{"", ".", "..", ".lead", "a/b", "a\\b", "a\x00"} {
		if _, err := a.Acquire(t.Context(), name); err == nil || errors.Is(err, store.ErrHeld) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}

func testHeld(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	check := func(prefix string, want ...string) {
		t.Helper()
		if held, err := b.AllHeld(t.Context(), prefix); err != nil || !slices.Equal(held, want) {
			t.Errorf("%q: %q, %v; want %q", prefix, held, err, want)
		}
	}
	check("")
	lead := acquire(t, a, store.Lead)
	acquire(t, a, store.Presence("bob"))
	acquire(t, b, store.Presence("ann"))
	h1 := acquire(t, a, store.Host("h1"))
	acquire(t, b, store.Host("h2"))
	checkHeld(t, true, store.Host("h1"), a, b)
	if _, err := b.Acquire(t.Context(), store.Host("h1")); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a host's lease while it is held: %v", err)
	}
	check("", "host-h1", "host-h2", "lead", "present-ann", "present-bob")
	check(store.HostPrefix, "host-h1", "host-h2")
	check("host-h2", "host-h2")
	check(store.Presence(""), "present-ann", "present-bob")
	check("x")
	release(t, h1)
	release(t, lead)
	check("", "host-h2", "present-ann", "present-bob")
	checkHeld(t, false, store.Host("h1"), a, b)
	acquire(t, b, store.Host("h1"))
}

func testReleased(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	first := acquire(t, a, store.Lead)
	release(t, first)
	acquire(t, b, store.Lead)
	release(t, first)
	checkHeld(t, true, store.Lead, a, b)
}

func testFence(t *testing.T, open func() store.Team) {
	last := int64(0)
	for range 3 {
		lease := acquire(t, open(), store.Lead)
		expires := !lease.Until().IsZero()
		if expires != (lease.Lost() != nil) || expires != (lease.Fence() > last) {
			t.Errorf("it expires: %t; it can be lost: %t; fence %d after %d", expires, lease.Lost() != nil,
				lease.Fence(), last)
		}
		if expires && !lease.Until().After(time.Now()) {
			t.Errorf("it is %s, and it was held until %s", time.Now(), lease.Until())
		}
		last = lease.Fence()
		release(t, lease)
	}
}

func testWait(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	lease := acquire(t, a, store.Consolidation)
	enough := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { end(enough) }) // the first attempt takes long on a busy machine
	if _, err := store.Wait(ctx, b, store.Consolidation); !errors.Is(err, store.ErrHeld) || !errors.Is(err, enough) {
		t.Errorf("a wait that ended: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { lease.Release() })
	next, err := store.Wait(t.Context(), b, store.Consolidation)
	if err != nil {
		t.Fatal(err)
	}
	checkHeld(t, true, store.Consolidation, a, b)
	release(t, next)
}

func testRace(t *testing.T, open func() store.Team) {
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		team := open()
		all.Go(func() {
			for range 4 {
				lease, err := store.Wait(t.Context(), team, store.Lead)
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				release(t, lease)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d held it at once", most.Load())
	}
}

// check checks the value of a key through each handle; nil for none.
func check(t *testing.T, key string, want []byte, teams ...store.Team) {
	t.Helper()
	for _, team := range teams {
		got, err := team.Get(t.Context(), key)
		if want == nil && !errors.Is(err, fs.ErrNotExist) || want != nil && (err != nil || !bytes.Equal(got, want)) {
			t.Errorf("%s is %.40q, %v; want %.40q", key, got, err, want)
		}
	}
}

func replace(t *testing.T, team store.Team, values ...store.Value) {
	t.Helper()
	if err := team.Replace(t.Context(), values...); err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, team store.Team, key string, data []byte) {
	t.Helper()
	if err := team.Put(t.Context(), key, data); err != nil {
		t.Error(err)
	}
}

func testValues(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	check(t, "looked.json", nil, a, b)
	for _, data := range [][]byte{[]byte("one"), {}, bytes.Repeat([]byte("long\x00\xff\n"), 1<<18), []byte("two")} {
		put(t, a, "looked.json", data)
		check(t, "looked.json", data, a, b)
		replace(t, b, store.Value{Key: "looked.json", Data: append(data, '!')},
			store.Value{Key: "beats/ann.json", Data: data})
		check(t, "looked.json", append(data, '!'), a, b)
		check(t, "beats/ann.json", data, a, b)
	}
	replace(t, a)
	for range 2 {
		if err := a.Delete(t.Context(), "looked.json"); err != nil {
			t.Error(err)
		}
		check(t, "looked.json", nil, a, b)
	}
	check(t, "beats/ann.json", []byte("two"), a, b)
}

func testAll(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	if all, err := a.All(t.Context(), "beats"); err != nil || len(all) != 0 {
		t.Errorf("without values: %v, %v", all, err)
	}
	var want []string
	for _, name := range []string{"ann", "bob", "é", "Zoe"} {
		put(t, a, "beats/"+name, []byte(name))
		want = append(want, "beats/"+name+" "+name)
	}
	put(t, a, "beats-of-others", []byte("no"))
	put(t, a, "beatsx/ann", []byte("no"))
	put(t, a, "beats/below/ann", []byte("no"))
	slices.Sort(want)
	all, err := b.All(t.Context(), "beats")
	var got []string
	for _, v := range all {
		got = append(got, v.Key+" "+string(v.Data))
		if v.Err != nil {
			t.Errorf("%s: %v", v.Key, v.Err)
		}
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if below, err := b.All(t.Context(), "beats/below"); err != nil || len(below) != 1 ||
		below[0].Key != "beats/below/ann" {
		t.Errorf("the folder below: %v, %v", below, err)
	}
}

func testKeys(t *testing.T, open func() store.Team) {
	team := open()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, key := range []string{"", "/", "a/", "/a", "..", "../a", "a/..", ".a", "a/.b", "a\x00b", `a\b`,
		"a//b", "a/b/", "a/b/c/d"} {
		_, getting := team.Get(t.Context(), key)
		_, looking := team.Has(t.Context(), key)
		_, once := team.PutOnce(t.Context(), key, nil)
		for call, err := range map[string]error{"get": getting, "has": looking, "put once": once,
			"await": team.Await(ended, key), "put": team.Put(t.Context(), key, nil),
			"replace": team.Replace(t.Context(), store.Value{Key: key}), "delete": team.Delete(t.Context(), key)} {
			if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, context.Canceled) {
				t.Errorf("%s %q: %v", call, key, err)
			}
		}
	}
}

func testLimit(t *testing.T, open func() store.Team) {
	team := open()
	put(t, team, "a", []byte("x"))
	data := make([]byte, store.MaxValue+1)
	for call, err := range map[string]error{"put": team.Put(t.Context(), "a", data),
		"replace": team.Replace(t.Context(), store.Value{Key: "a", Data: data})} {
		if err == nil || !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%s: %v", call, err)
		}
	}
	check(t, "a", []byte("x"), team)
}

func testOnce(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	has := func(want bool) {
		t.Helper()
		for _, team := range []store.Team{a, b} {
			if there, err := team.Has(t.Context(), "COMPLETED"); there != want || err != nil {
				t.Errorf("it is there: %t, %v", there, err)
			}
		}
	}
	has(false)
	data := []byte("first")
	for _, one := range []struct {
		team store.Team
		data []byte
	}{{a, data}, {b, []byte("second")}, {a, nil}} {
		if got, err := one.team.PutOnce(t.Context(), "COMPLETED", one.data); err != nil || string(got) != "first" {
			t.Errorf("put %q: %q, %v", one.data, got, err)
		}
		copy(data, "after")
		check(t, "COMPLETED", []byte("first"), a, b)
		has(true)
	}
}

// testOwned checks that what a caller does with its bytes later changes no value.
func testOwned(t *testing.T, open func() store.Team) {
	team := open()
	data := []byte("before")
	put(t, team, "a", data)
	replace(t, team, store.Value{Key: "b/c", Data: data})
	copy(data, "after!")
	for _, key := range []string{"a", "b/c"} {
		got, err := team.Get(t.Context(), key)
		if err != nil || string(got) != "before" {
			t.Errorf("%s is %q, %v", key, got, err)
		}
		copy(got, "after!")
	}
	check(t, "a", []byte("before"), team)
	check(t, "b/c", []byte("before"), team)
}

// testWhole replaces a value from several sides while others read it.
func testWhole(t *testing.T, open func() store.Team) {
	const key = "beats/ann"
	put(t, open(), key, []byte("0"))
	var writing sync.WaitGroup
	var over atomic.Bool
	for w := range 3 {
		team := open()
		writing.Go(func() {
			for n := range 30 {
				replace(t, team, store.Value{Key: key, Data: []byte(strings.Repeat(fmt.Sprint(w), 1+n*100))})
			}
		})
	}
	go func() { writing.Wait(); over.Store(true) }()
	for team := open(); !over.Load(); {
		got, err := team.Get(t.Context(), key)
		if err != nil || len(got) == 0 || strings.Trim(string(got), string(got[0])) != "" {
			t.Fatalf("%.40q, %v", got, err)
		}
	}
}

func testAwait(t *testing.T, open func() store.Team) {
	a, b := open(), open()
	key := store.PauseKey("h1")
	enough := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { end(enough) })
	if err := b.Await(ctx, key); !errors.Is(err, enough) {
		t.Errorf("a wait that ended: %v", err)
	}
	in, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	replaced := make(chan struct{})
	time.AfterFunc(20*time.Millisecond, func() { defer close(replaced); replace(t, a, store.Value{Key: key}) })
	defer func() { <-replaced }() // b may hear of it first
	for range 2 {                 // also for a value that is there already
		if err := b.Await(in, key); err != nil {
			t.Error(err)
		}
	}
}
