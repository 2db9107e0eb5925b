package wake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// teams are teams whose lead is this test's session. It is both the server of the tools and the
// waiting process, so the program that runs the test runs both.
type teams struct {
	t       *testing.T
	root    string
	journal map[string]*memjournal.Store
	lead    map[string]*filelock.Lock // its presence
	open    map[string]int            // replicas that are
}

func newTeams(t *testing.T, names ...string) *teams {
	all := &teams{t, t.TempDir(), map[string]*memjournal.Store{}, map[string]*filelock.Lock{}, map[string]int{}}
	for _, name := range names {
		if err := os.Mkdir(all.folder(name), 0o700); err != nil {
			t.Fatal(err)
		}
		all.journal[name] = memjournal.New(name)
		all.do(name, team.User, &team.CreateTeam{TeamID: name + "-1", Name: name, Dir: "/w"},
			&team.SpawnMember{Name: "ann", Agent: team.External})
		all.lead[name] = all.sits(name, "lead")
	}
	return all
}

func (all *teams) folder(name string) string { return filepath.Join(all.root, name) }

// sits makes this process hold the presence of a member, signed.
func (all *teams) sits(name, member string) *filelock.Lock {
	all.t.Helper()
	lock, err := filelock.New(filestore.Team(all.folder(name)).LeasePath(store.Presence(member)))
	if err == nil {
		err = proc.Sign(lock)
	}
	if err != nil {
		all.t.Fatal(err)
	}
	all.t.Cleanup(func() { lock.Unlock() })
	return lock
}

func (all *teams) replica(ctx context.Context, name string) (*replica.Replica, error) {
	store, there := all.journal[name]
	if !there {
		return nil, &team.Error{Code: team.NotFound, Text: "there is no team " + name}
	}
	return replica.Open(ctx, store.Open(), replica.Options{})
}

// do sends commands of the actor in a team.
func (all *teams) do(name, actor string, bodies ...team.Body) {
	all.t.Helper()
	rep, err := all.replica(all.t.Context(), name)
	if err != nil {
		all.t.Fatal(err)
	}
	defer rep.Close()
	for _, body := range bodies {
		if _, err := rep.Do(all.t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
			all.t.Fatal(err)
		}
	}
}

func (all *teams) send(name, from, text string) {
	all.t.Helper()
	all.do(name, from, &team.SendMessage{To: "lead", Body: text})
}

func (all *teams) membership(name string) Membership {
	return Membership{Team: name, Member: "lead", Dir: all.folder(name)}
}

// result is what [Await] returned.
type result struct {
	woken bool
	err   error
}

// waiting is a call of [Await].
type waiting struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan result
	last   *result
}

// awaits starts to wait at the lead's memberships in these teams.
func (all *teams) awaits(names ...string) *waiting {
	var memberships []Membership
	for _, name := range names {
		memberships = append(memberships, all.membership(name))
	}
	ctx, cancel := context.WithCancel(all.t.Context())
	w := &waiting{t: all.t, cancel: cancel, done: make(chan result, 1)}
	go func() {
		woken, err := Await(ctx, memberships, func(ctx context.Context, name string) (Replica, error) {
			return all.replica(ctx, name)
		})
		w.done <- result{woken, err}
	}()
	all.t.Cleanup(w.end)
	return w
}

// awhile is long enough for many looks at a session.
const awhile = 20 * checkInterval

// after returns the result; nil if the call still waits after that time.
func (w *waiting) after(long time.Duration) *result {
	time.Sleep(long)
	synctest.Wait()
	select {
	case r := <-w.done:
		w.last = &r
	default:
	}
	return w.last
}

// woke checks that the session is woken after the grace.
func (w *waiting) woke() {
	w.t.Helper()
	if r := w.after(toolGrace + time.Second/2); r == nil || !r.woken || r.err != nil {
		w.t.Fatalf("not woken: %+v", r)
	}
}

// end ends the waiting, if it has not ended.
func (w *waiting) end() {
	w.cancel()
	if w.after(time.Second) == nil {
		w.t.Error("it does not end with its context")
	}
}

// wakes waits, and checks that the session is woken.
func (all *teams) wakes(names ...string) {
	all.t.Helper()
	all.awaits(names...).woke()
}

// waits checks that the session is not woken for an hour, and that the call still waits.
func (all *teams) waits(names ...string) *waiting {
	all.t.Helper()
	w := all.awaits(names...)
	if r := w.after(awhile); r != nil {
		all.t.Fatalf("it does not wait: %+v", *r)
	}
	return w
}

func (all *teams) told(name string) []int64 {
	all.t.Helper()
	var last lastWake
	data, err := os.ReadFile(lastWakePath(all.folder(name), "lead"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		all.t.Fatal(err)
	}
	return last.Seqs
}

// TestAwait checks that a session is woken once for each message, and not for one that its tools
// deliver meanwhile.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTeams(t, "demo")
		all.send("demo", "ann", "one")
		all.wakes("demo")
		w := all.waits("demo")
		all.send("demo", "ann", "two")
		if r := w.after(toolGrace / 2); r != nil {
			t.Fatalf("no tool can bring the news itself: %+v", r)
		}
		w.woke()
		w = all.waits("demo")
		all.send("demo", "ann", "three")
		if r := w.after(toolGrace / 2); r != nil {
			t.Fatalf("no tool can bring the news itself: %+v", r)
		}
		all.do("demo", "lead", &team.ReceiveMessages{})
		if r := w.after(awhile); r != nil {
			t.Fatalf("woken for what a tool has brought: %+v", r)
		}
		all.lead["demo"].Unlock()
		if r := w.after(checkInterval); r == nil || r.woken || r.err != nil {
			t.Errorf("its session has ended: %+v", r)
		}
		// Another session was not woken for what that one was woken for.
		all.send("demo", "ann", "four")
		all.lead["demo"] = all.sits("demo", "lead")
		all.wakes("demo")
		if err := os.WriteFile(lastWakePath(all.folder("demo"), "lead"), fmt.Appendf(nil,
			`{"messages":[1,2,3,4],"pid":%d,"start":"other"}`, os.Getpid()), 0o600); err != nil {
			t.Fatal(err)
		}
		all.wakes("demo")
		all.waits("demo")
	})
}

// TestAwaitLateNews checks that messages become news in any order. One that was held without a lead
// becomes news after later ones of the user, and a late one may be sent again.
func TestAwaitLateNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTeams(t, "demo")
		all.do("demo", team.User, &team.AttachLead{Session: "L1"})
		all.lose("demo")
		all.send("demo", "ann", "held")
		all.send("demo", team.User, "not held")
		all.wakes("demo")
		if seqs := all.told("demo"); len(seqs) != 1 {
			t.Fatalf("told of %v", seqs)
		}
		w := all.waits("demo")
		all.do("demo", team.User, &team.AttachLead{Session: "L1"})
		w.woke()
		seqs := all.told("demo")
		if len(seqs) != 2 || !slices.IsSorted(seqs) {
			t.Fatalf("told of %v", seqs)
		}
		w = all.waits("demo")
		all.do("demo", team.User, &team.ResendMessages{Member: "lead", Seqs: seqs[:1]})
		w.woke()
		all.waits("demo")
	})
}

// lose makes the team lose its lead.
func (all *teams) lose(name string) {
	all.t.Helper()
	rep, err := all.replica(all.t.Context(), name)
	if err != nil {
		all.t.Fatal(err)
	}
	defer rep.Close()
	t := rep.Team()
	time.Sleep(t.Timing.OrDefaults().LeadLost)
	all.do(name, team.User, &team.LoseLead{Session: t.LeadSession, Since: t.LeadSince, Seen: t.LeadSince})
}

// TestAwaitSeveralMemberships checks that a session with several memberships is woken for one of
// them, and for the news of the others the next time. If it cannot be recorded that it was woken
// for one, another one wakes it.
func TestAwaitSeveralMemberships(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTeams(t, "one", "two", "three")
		w := all.waits("one", "two", "three")
		all.send("two", "ann", "x")
		w.woke()
		if all.told("one") != nil || all.told("two") == nil || all.told("three") != nil {
			t.Error("it counts as woken for another membership")
		}
		all.send("one", "ann", "x")
		all.send("three", "ann", "x")
		all.wakes("one", "two", "three")
		if (all.told("one") == nil) == (all.told("three") == nil) {
			t.Errorf("woken for %v and %v at once", all.told("one"), all.told("three"))
		}
		all.wakes("one", "two", "three")
		all.waits("one", "two", "three").end()

		// It cannot be recorded what one was told, whichever comes first.
		tries := 20
		if testing.Short() {
			tries = 3
		}
		for _, broken := range []string{"one", "three"} {
			for range tries {
				all.send("one", "ann", "x")
				all.send("three", "ann", "x")
				path := all.breaks(broken)
				all.wakes("one", "two", "three")
				os.RemoveAll(path)
			}
		}
		// If no other membership wakes the session, the trouble is reported once there is nothing
		// to wait for.
		all.breaks("two")
		w = all.awaits("one", "two", "three")
		w.woke()
		all.send("two", "ann", "x")
		w = all.awaits("two")
		if r := w.after(2 * toolGrace); r == nil || r.woken || r.err == nil {
			t.Errorf("nothing is said of the trouble: %+v", r)
		}
	})
}

// breaks makes it impossible to record what the lead of a team was told.
func (all *teams) breaks(name string) (path string) {
	all.t.Helper()
	path = lastWakePath(all.folder(name), "lead")
	if err := os.RemoveAll(path); err != nil {
		all.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		all.t.Fatal(err)
	}
	return path
}

// TestAwaitOnce checks that one process waits for a membership, and that another one waits only a
// while for the first to end.
func TestAwaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTeams(t, "demo")
		first := all.waits("demo")
		if r := all.awaits("demo").after(lockTimeout + toolGrace); r == nil || r.woken || r.err != nil {
			t.Errorf("two wait for a session: %+v", r)
		}
		second := all.awaits("demo")
		if r := second.after(lockTimeout / 2); r != nil {
			t.Fatalf("it waits for the first one to end: %+v", r)
		}
		first.end()
		if r := second.after(awhile); r != nil {
			t.Fatalf("no process waits for a session: %+v", r)
		}
		all.send("demo", "ann", "x")
		second.woke()
	})
}

// TestAwaitNothing checks that there is nothing to wait for in a removed team, for a member that
// has ended, and without a membership.
func TestAwaitNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTeams(t, "gone", "demo")
		delete(all.journal, "gone")
		for i, names := range [][]string{{"gone"}, nil} {
			if r := all.awaits(names...).after(0); r == nil || r.woken || r.err != nil {
				t.Errorf("%d: %+v", i, r)
			}
		}
		all.sits("demo", "ann")
		all.send("demo", team.User, "x")
		all.do("demo", team.User, &team.SendMessage{To: "ann", Body: "x"},
			&team.RequestShutdown{Member: "ann", Deadline: 1}, &team.CreateTask{Subject: "x"}) // it has ended by then
		if woken, err := Await(t.Context(), []Membership{{"demo", "ann", all.folder("demo")}},
			func(ctx context.Context, name string) (Replica, error) { return all.replica(ctx, name) }); woken ||
			err != nil {
			t.Errorf("a member that has stopped: %t, %v", woken, err)
		}
	})
}

// TestMemberships checks that a session's memberships are those whose servers the same program
// runs, and no others. The names of a team and a member only restrict the search.
func TestMemberships(t *testing.T) {
	all := newTeams(t, "one", "two", "three")
	all.sits("one", "ann")
	search := Search{Teams: func() ([]string, error) { return []string{"gone", "one", "three", "two"}, nil },
		Folder: func(name string) (string, error) {
			if name == "gone" {
				return "", &team.Error{Code: team.NotFound, Text: "there is no team gone"}
			}
			return all.folder(name), nil
		}}
	memberships := func(name, member string) (names []string) {
		t.Helper()
		s := search
		s.Team, s.Member = name, member
		found, err := s.Memberships()
		if err != nil {
			t.Error(err)
		}
		for _, membership := range found {
			if membership.Dir != all.folder(membership.Team) {
				t.Errorf("%+v", membership)
			}
			names = append(names, membership.Team+"/"+membership.Member)
		}
		return names
	}
	is := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	// The server of another program has it: the one that runs this test. It does not become ours
	// because the lead's heartbeats are ours, as those of a cadre run beside it are.
	three := filestore.Team(all.folder("three"))
	beat := heartbeat.Beat{Member: "lead", Pid: os.Getpid()}
	if err := heartbeat.In(three).Write(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	parent, err := proc.StartTime(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(three.LeasePath(store.Presence("lead")), fmt.Appendf(nil, "%d %s\n", os.Getppid(),
		parent), 0o600); err != nil {
		t.Fatal(err)
	}
	is(memberships("", ""), "one/ann", "one/lead", "two/lead")
	is(memberships("one", ""), "one/ann", "one/lead")
	is(memberships("", "lead"), "one/lead", "two/lead")
	is(memberships("two", "lead"), "two/lead")
	is(memberships("two", "ann"))
	is(memberships("three", "lead"))
	is(memberships("nowhere", ""))
	is(memberships("../x", "../../x"))

	// Trouble with one membership is reported only if there is no other.
	if err := os.Remove(filestore.Team(all.folder("one")).LeasePath(store.Presence("ann"))); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filestore.Team(all.folder("one")).LeasePath(store.Presence("ann")), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := search.Folder
	search.Folder = func(name string) (string, error) {
		if name == "three" {
			return "", errors.New("permission denied")
		}
		return folder(name)
	}
	is(memberships("", ""), "one/lead", "two/lead")
	is(memberships("two", ""), "two/lead")
	is(memberships("two", "ann"))
	all.lead["two"].Unlock()
	is(memberships("one", ""), "one/lead")
	all.lead["one"].Unlock()
	is(memberships("two", ""))
	if found, err := search.Memberships(); err == nil || found != nil {
		t.Errorf("trouble in two teams: %v", found)
	} else {
		t.Log(err)
	}
}
