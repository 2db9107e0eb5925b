package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/store"
)

// Place is a new, empty place for teams.
type Place struct {
	Open    func() store.Teams // opens a handle, which stands for a process
	Project string             // a project that teams can be in
	Other   string             // another one
	// Begin returns the first records of a team; nil for a place that takes any records.
	Begin func(store.Entry) [][]byte
}

// RunTeams tests a place for teams against the contract of the list of teams. open makes a place.
func RunTeams(t *testing.T, open func(testing.TB) Place) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *listed)
	}{
		{"a team is created, listed and opened", testCreate},
		{"a name is unique in a project", testUnique},
		{"racing processes create a team once", testCreateRace},
		{"an archived team leaves its name", testArchive},
		{"a removed team is gone", testRemove},
		{"what all teams share", testCommon},
		{"what does not exist", testNothing},
		{"what cannot be created", testEntries},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := open(t)
			if p.Begin == nil {
				p.Begin = func(store.Entry) [][]byte { return [][]byte{[]byte(`{"first":1}`), []byte(`{"second":2}`)} }
			}
			test.run(t, &listed{t, p})
		})
	}
}

// listed is a place in a test.
type listed struct {
	*testing.T
	Place
}

// entry returns an entry whose id is one that the program makes, from the name and a letter.
func (l *listed) entry(name, letter, project string) store.Entry {
	id := name + "-"
	for range 26 {
		id += letter
	}
	return store.Entry{ID: id, Name: name, Project: project}
}

func (l *listed) create(in store.Teams, e store.Entry) {
	l.Helper()
	if err := in.Create(l.Context(), e, l.Begin(e)); err != nil {
		l.Fatalf("create %+v: %v", e, err)
	}
}

// wants checks what each handle lists.
func (l *listed) wants(want []store.Entry, handles ...store.Teams) {
	l.Helper()
	for _, in := range handles {
		if got, err := in.List(l.Context()); err != nil || !slices.Equal(got, want) {
			l.Errorf("the list is %+v, %v; want %+v", got, err, want)
		}
	}
}

// open opens a team until the test ends, and checks its history.
func (l *listed) open(in store.Teams, e store.Entry) store.Opened {
	l.Helper()
	is, err := in.Open(l.Context(), e.ID)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { is.Journal.Close() })
	var want []string
	for _, r := range l.Begin(e) {
		want = append(want, string(r))
	}
	if got := journaltest.All(l, is.Journal, 0); !slices.Equal(got, want) || is.Entry != e {
		l.Errorf("%+v with the records %q; want %+v with %q", is.Entry, got, e, want)
	}
	return is
}

func testCreate(t *testing.T, l *listed) {
	a, b := l.Open(), l.Open()
	l.wants(nil, a, b)
	two, one := l.entry("two", "a", l.Project), l.entry("one", "b", l.Other)
	l.create(a, two)
	l.create(b, one)
	l.wants([]store.Entry{one, two}, a, b)
	is, again := l.open(a, two), l.open(b, two)
	l.open(a, one)
	if err := is.Shared.Put(t.Context(), "looked.json", []byte("1")); err != nil {
		t.Error(err)
	}
	check(t, "looked.json", []byte("1"), again.Shared)
	after := int64(len(l.Begin(two)))
	if _, err := journaltest.Add(t.Context(), is.Journal, after, `{"more":3}`); err != nil {
		t.Error(err)
	}
	if got := journaltest.All(t, again.Journal, after); !slices.Equal(got, []string{`{"more":3}`}) {
		t.Errorf("the other handle reads %q", got)
	}
}

func testUnique(t *testing.T, l *listed) {
	a, b := l.Open(), l.Open()
	first, other := l.entry("demo", "a", l.Project), l.entry("demo", "b", l.Other)
	l.create(a, first)
	l.create(a, other)
	for what, e := range map[string]store.Entry{"its name": l.entry("demo", "c", l.Project), "its id": first,
		"its id, in another project": l.entry("demo", "a", l.Other)} {
		if err := b.Create(t.Context(), e, l.Begin(e)); !errors.Is(err, journal.ErrExists) {
			t.Errorf("a team with %s: %v", what, err)
		}
	}
	l.wants([]store.Entry{first, other}, a, b)
	l.open(b, first)
	l.open(b, other)
}

func testCreateRace(t *testing.T, l *listed) {
	var made atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		in := l.Open()
		all.Go(func() {
			e := l.entry("demo", string(rune('a'+i)), l.Project)
			switch err := in.Create(t.Context(), e, l.Begin(e)); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, journal.ErrExists):
				t.Error(err)
			}
		})
	}
	all.Wait()
	teams, err := l.Open().List(t.Context())
	if err != nil || len(teams) != 1 || made.Load() != 1 {
		t.Fatalf("%d were made, and there are %v, %v", made.Load(), teams, err)
	}
	l.open(l.Open(), teams[0])
}

func testArchive(t *testing.T, l *listed) {
	a, b := l.Open(), l.Open()
	first, next := l.entry("demo", "a", l.Project), l.entry("demo", "b", l.Project)
	l.create(a, first)
	for range 2 {
		if err := b.Archive(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
	}
	first.Archived = true
	l.wants([]store.Entry{first}, a, b)
	l.create(a, next)
	l.wants([]store.Entry{first, next}, a, b)
	l.open(b, first)
	l.open(a, next)
	if err := a.Create(t.Context(), l.entry("demo", "a", l.Other), l.Begin(first)); !errors.Is(err, journal.ErrExists) {
		t.Errorf("a team with the id of the archived one: %v", err)
	}
	if err := a.Archive(t.Context(), next.ID); err != nil {
		t.Fatal(err)
	}
	next.Archived = true
	if err := a.Remove(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	l.wants([]store.Entry{next}, a, b)
}

func testRemove(t *testing.T, l *listed) {
	a, b := l.Open(), l.Open()
	e, stays := l.entry("demo", "a", l.Project), l.entry("other", "b", l.Project)
	l.create(a, e)
	l.create(a, stays)
	is := l.open(b, e)
	if err := is.Shared.Put(t.Context(), "looked.json", []byte("1")); err != nil {
		t.Error(err)
	}
	if err := a.Remove(t.Context(), e.ID); err != nil {
		t.Fatal(err)
	}
	l.wants([]store.Entry{stays}, a, b)
	if _, err := journaltest.Add(t.Context(), is.Journal, 2, `{"more":3}`); !errors.Is(err, journal.ErrGone) {
		t.Errorf("an append: %v", err)
	}
	if err := is.Shared.Put(t.Context(), "looked.json", []byte("2")); !errors.Is(err, journal.ErrGone) {
		t.Errorf("a value: %v", err)
	}
	if _, err := is.Shared.Acquire(t.Context(), store.Abort); !errors.Is(err, journal.ErrGone) {
		t.Errorf("a lease: %v", err)
	}
	if _, err := b.Open(t.Context(), e.ID); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("opening it: %v", err)
	}
	l.create(b, e) // and nothing is left of the first one
	check(t, "looked.json", nil, l.open(a, e).Shared)
	l.open(a, stays)
}

func testNothing(t *testing.T, l *listed) {
	in := l.Open()
	id := l.entry("demo", "a", l.Project).ID
	_, opening := in.Open(t.Context(), id)
	for call, err := range map[string]error{"open": opening, "archive": in.Archive(t.Context(), id),
		"remove": in.Remove(t.Context(), id)} {
		if !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func testEntries(t *testing.T, l *listed) {
	in := l.Open()
	good := l.entry("demo", "a", l.Project)
	for what, change := range map[string]func(*store.Entry){"no id": func(e *store.Entry) { e.ID = "" },
		"no name": func(e *store.Entry) { e.Name = "" }, "archived": func(e *store.Entry) { e.Archived = true },
		"a zero byte": func(e *store.Entry) { e.Name = "a\x00" }} {
		e := good
		change(&e)
		if err := in.Create(t.Context(), e, l.Begin(good)); err == nil || errors.Is(err, journal.ErrExists) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := in.Create(t.Context(), good, append(l.Begin(good), []byte("{bad"))); err == nil {
		t.Error("a team was created with a record that is not JSON")
	}
	if teams, err := in.List(t.Context()); err != nil || len(teams) > 0 {
		t.Error(fmt.Sprint(teams, err))
	}
}

// testCommon checks that all handles have one place for what all teams share, that it is no team,
// and that it outlives teams.
func testCommon(t *testing.T, l *listed) {
	common := func() store.Team {
		c, err := l.Open().Common(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, other := common(), common()
	lease, err := one.Acquire(t.Context(), "machine-a")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	if _, err := other.Acquire(t.Context(), "machine-a"); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a held lease was taken: %v", err)
	}
	if err := one.Replace(t.Context(), store.Value{Key: "machines/a.json", Data: []byte("1")}); err != nil {
		t.Error(err)
	}
	e := l.entry("demo", "a", l.Project)
	l.create(l.Open(), e)
	if err := l.Open().Remove(t.Context(), e.ID); err != nil {
		t.Error(err)
	}
	all, err := other.All(t.Context(), "machines")
	if err != nil || len(all) != 1 || string(all[0].Data) != "1" {
		t.Errorf("the values are %v, %v", all, err)
	}
	l.wants(nil, l.Open())
}
