package replica_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// reader opens the team as a reader of the pool, and counts the journals that are opened.
func (p place) reader(shared *replica.Shared, opened *int) *replica.Replica {
	p.t.Helper()
	dir := filepath.Join(p.home.Root, "teams", "demo")
	rep, err := shared.Open(within(p.t), dir, func(string) {}, func(report func(string)) (journal.Journal, error) {
		*opened++
		return p.home.OpenFolder(dir, report)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return rep
}

// TestShared: readers of a team have one replica, which is up to date for each of them when it
// opens. The last reader closes it.
func TestShared(t *testing.T) {
	p := newPlace(t)
	var shared replica.Shared
	opened := 0
	first := p.reader(&shared, &opened)
	do(t, p.open(replica.Options{}), team.User, &team.CreateTask{Subject: "one"})
	second := p.reader(&shared, &opened)
	if first != second || opened != 1 {
		t.Fatalf("two readers have %p and %p, from %d journals", first, second, opened)
	}
	if task(second, "1").Subject != "one" {
		t.Error("a reader does not see what was recorded before it opened the team")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Refresh(within(t)); err != nil {
		t.Errorf("a reader cannot read after another one left: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Refresh(within(t)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("without readers the journal is not closed: %v", err)
	}
	third := p.reader(&shared, &opened)
	if third == first || opened != 2 {
		t.Error("a closed replica was opened again")
	}
	third.Close()
}

// refusing is a journal that takes no records after broken is set.
type refusing struct {
	journal.Journal
	broken *atomic.Bool
}

func (r refusing) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	if r.broken.Load() {
		return 0, journal.ErrReopen
	}
	return r.Journal.Append(ctx, after, catchUp, decide)
}

// TestSharedActors: an actor and the readers of a team have one state. Each actor has options of
// its own, and any of them can leave before the others. Where the journal takes no more records,
// the next actor gets another one.
func TestSharedActors(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.home.Root, "teams", "demo")
	var shared replica.Shared
	var broken atomic.Bool
	opened, projected := 0, 0
	act := func(o replica.Options) *replica.Replica {
		t.Helper()
		rep, err := shared.Act(within(t), dir, o, func(report func(string)) (journal.Journal, error) {
			opened++
			j, err := p.home.OpenFolder(dir, report)
			return refusing{j, &broken}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	first := act(replica.Options{Project: func(context.Context, journal.Journal, *team.State) error {
		projected++
		return nil
	}})
	reader := p.reader(&shared, &opened)
	ids := 0
	second := act(replica.Options{NewID: func() string { ids++; return fmt.Sprint("its-own-", ids) }})
	do(t, first, team.User, &team.CreateTask{Subject: "one"})
	if opened != 1 || task(reader, "1").Subject != "one" || task(second, "1").Subject != "one" {
		t.Errorf("the users have %d journals, and the states %q, %q", opened, task(reader, "1").Subject,
			task(second, "1").Subject)
	}
	if receipt, err := second.Do(within(t), team.Command{Actor: team.User,
		Body: &team.CreateTask{Subject: "two"}}); err != nil || receipt.Record.ID != "its-own-1" {
		t.Errorf("%+v, %v", receipt.Record, err)
	}
	if err := first.Close(); err != nil || projected != 1 {
		t.Errorf("an actor that left updated its projections %d times: %v", projected, err)
	}
	do(t, second, team.User, &team.CreateTask{Subject: "three"})

	broken.Store(true)
	if _, err := second.Do(within(t), team.Command{Actor: team.User,
		Body: &team.CreateTask{Subject: "four"}}); !replica.Broken(err) {
		t.Errorf("the journal takes records: %v", err)
	}
	third, err := shared.Act(within(t), dir, replica.Options{}, func(report func(string)) (journal.Journal, error) {
		return p.home.OpenFolder(dir, report)
	})
	if err != nil {
		t.Fatal(err)
	}
	do(t, third, team.User, &team.CreateTask{Subject: "four"})
	if err := reader.Refresh(within(t)); err != nil || task(reader, "4").Subject != "four" {
		t.Errorf("a reader of the former journal is at record %d of %d: %v", reader.Seq(), third.Seq(), err)
	}
	if err := errors.Join(reader.Close(), second.Close(), third.Close()); err != nil {
		t.Error(err)
	}
	if err := third.Refresh(within(t)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("without users the journal is not closed: %v", err)
	}
}

// TestSharedAtOnce: readers that come and go at the same time do not disturb each other.
func TestSharedAtOnce(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.home.Root, "teams", "demo")
	var shared replica.Shared
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 30 {
				rep, err := shared.Open(t.Context(), dir, func(string) {},
					func(report func(string)) (journal.Journal, error) {
						return p.home.OpenFolder(dir, report)
					})
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(rep.Refresh(t.Context()), rep.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
}

// unreadable is a journal that cannot be read after broken is set.
type unreadable struct {
	journal.Journal
	broken *atomic.Bool
}

var errUnreadable = errors.New("the disk does not answer")

func (u unreadable) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	if u.broken.Load() {
		return func(yield func(journal.Record, error) bool) { yield(journal.Record{}, errUnreadable) }
	}
	return u.Journal.Read(ctx, after)
}

// TestSharedAfterTrouble: a new reader does not get a replica that cannot be refreshed, nor that of
// a former team whose folder another team has. Their readers can still close them. A failure of the
// first reader is reported to that reader.
func TestSharedAfterTrouble(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.home.Root, "teams", "demo")
	var shared replica.Shared
	var broken atomic.Bool
	failing := errors.New("the journal does not open")
	for range 2 {
		_, err := shared.Open(within(t), dir, nil, func(func(string)) (journal.Journal, error) { return nil, failing })
		if !errors.Is(err, failing) {
			t.Errorf("%v", err)
		}
	}
	if _, err := shared.Open(within(t), dir+"2", nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a team that does not exist: %v", err)
	}

	stale, err := shared.Open(within(t), dir, nil, func(report func(string)) (journal.Journal, error) {
		j, err := p.home.OpenFolder(dir, report)
		return unreadable{j, &broken}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	opened := 0
	old := p.reader(&shared, &opened)
	if old == stale || opened != 1 {
		t.Error("a reader got a replica that cannot be read")
	}
	if err := stale.Close(); err != nil {
		t.Error(err)
	}

	if err := os.Rename(dir, dir+"-old"); err != nil {
		t.Fatal(err)
	}
	other := newPlace(t)
	if err := os.Rename(filepath.Join(other.home.Root, "teams", "demo"), dir); err != nil {
		t.Fatal(err)
	}
	fresh := p.reader(&shared, &opened)
	if fresh == old || fresh.Team().ID == old.Team().ID {
		t.Error("the reader of a new team got the replica of the former one")
	}
	if err := errors.Join(old.Close(), fresh.Close()); err != nil {
		t.Error(err)
	}
}

// TestSharedWaitEnds: a reader that waits for another one ends with its context, and the replica
// stays for later readers.
func TestSharedWaitEnds(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.home.Root, "teams", "demo")
	var shared replica.Shared
	opening, proceed := make(chan struct{}), make(chan struct{})
	var first *replica.Replica
	var readers sync.WaitGroup
	readers.Go(func() {
		var err error
		first, err = shared.Open(within(t), dir, nil, func(report func(string)) (journal.Journal, error) {
			close(opening)
			<-proceed
			return p.home.OpenFolder(dir, report)
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-opening
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := shared.Open(ctx, dir, nil, func(func(string)) (journal.Journal, error) {
			return nil, errors.New("opened twice")
		})
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
	case <-within(t).Done():
		t.Error("the reader waits although its context has ended")
	}
	close(proceed)
	readers.Wait()
	opened := 0
	second := p.reader(&shared, &opened)
	if second != first || opened != 0 {
		t.Error("the reader that left took the replica away")
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

// TestSharedLogChanges: the log of the replicas can change while readers open them, and what an
// open replica reports goes to the new one.
func TestSharedLogChanges(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.home.Root, "teams", "demo")
	var shared replica.Shared
	var reports func(string)
	rep, err := shared.Open(within(t), dir, nil, func(report func(string)) (journal.Journal, error) {
		reports = report
		return p.home.OpenFolder(dir, report)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	reports("nobody listens")
	var readers sync.WaitGroup
	readers.Go(func() {
		for range 100 {
			reports("early")
		}
	})
	var got atomic.Value
	for range 100 {
		shared.LogTo(func(text string) { got.Store(text) })
	}
	readers.Wait()
	if reports("late"); got.Load() != "late" {
		t.Errorf("the log got %v", got.Load())
	}
	shared.LogTo(nil)
	if reports("dropped"); got.Load() != "late" {
		t.Errorf("the former log got %v", got.Load())
	}
}
