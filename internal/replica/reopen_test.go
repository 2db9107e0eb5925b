package replica_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/filejournal/disktest"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// shaky is a team on a disk whose syncs can be made to fail.
type shaky struct {
	t     *testing.T
	disk  *disktest.Disk
	opts  filejournal.Options
	fails atomic.Bool
	opens atomic.Int32
}

const shakyDir = "/teams/demo"

func newShaky(t *testing.T) *shaky {
	t.Helper()
	s := &shaky{t: t, disk: disktest.New()}
	s.opts = filejournal.Options{Disk: s.disk.Process("lead")}
	if err := filejournal.Create(shakyDir, "demo-1", nil, s.opts); err != nil {
		t.Fatal(err)
	}
	s.disk.Before = func(op *disktest.Op) (f disktest.Fault) {
		if op.Kind == disktest.Sync && s.fails.Load() {
			f.Err = errors.New("input/output error")
			f.Choose = func(int) int { return 0 }
		}
		return f
	}
	return s
}

func (s *shaky) journal(context.Context) (journal.Journal, error) {
	s.opens.Add(1)
	return filejournal.Open(shakyDir, s.opts)
}

func (s *shaky) open(o replica.Options) *replica.Replica {
	s.t.Helper()
	o.Log = func(text string) { s.t.Log(text) }
	j, err := s.journal(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	rep, err := replica.Open(s.t.Context(), j, o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { rep.Close() })
	if rep.Seq() == 0 {
		do(s.t, rep, team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w"})
	}
	return rep
}

// breaks makes a sync of the replica's journal fail, with an unimportant record.
func (s *shaky) breaks(rep *replica.Replica) {
	s.t.Helper()
	s.fails.Store(true)
	defer s.fails.Store(false)
	if _, err := rep.Do(within(s.t), team.Command{Actor: team.User,
		Body: &team.CreateTask{Subject: "lost?"}}); !errors.Is(err, journal.ErrUncertain) {
		s.t.Fatalf("a sync that fails: %v", err)
	}
}

// TestReopen checks that after a failed sync, a replica with Reopen opens its journal again with
// the next command. Waiting callers still wait, and see the new records.
func TestReopen(t *testing.T) {
	s := newShaky(t)
	rep := s.open(replica.Options{})
	s.breaks(rep)
	if _, err := rep.Do(within(t), team.Command{Actor: team.User,
		Body: &team.CreateTask{Subject: "more"}}); !replica.Broken(err) {
		t.Fatalf("a replica that cannot reopen its journal: %v", err)
	}

	s = newShaky(t)
	rep = s.open(replica.Options{Reopen: s.journal})
	var seen []string
	ctx, cancel := context.WithCancel(within(t))
	var watching sync.WaitGroup
	watching.Go(func() {
		for r, err := range rep.Watch(ctx, 1) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			for _, e := range r.Events {
				if e, ok := e.(*team.TaskCreated); ok {
					seen = append(seen, e.Task.Subject)
				}
			}
			if len(seen) == 4 {
				return
			}
		}
	})
	for _, subject := range []string{"again", "and again"} {
		s.breaks(rep)
		waited := make(chan error, 1)
		go func(seq int64) { waited <- rep.Wait(within(t), seq+1) }(rep.Seq())
		do(t, rep, team.User, &team.CreateTask{Subject: subject})
		if err := rep.Sync(within(t)); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("who waited meanwhile: %v", err)
		}
	}
	watching.Wait()
	cancel()
	if want := []string{"lost?", "again", "lost?", "and again"}; len(seen) != 4 || seen[0] != want[0] ||
		seen[1] != want[1] || seen[2] != want[2] || seen[3] != want[3] {
		t.Errorf("who watches saw %q", seen)
	}
	if n := s.opens.Load(); n != 3 {
		t.Errorf("the journal was opened %d times", n)
	}
	other := s.open(replica.Options{})
	if other.Seq() != rep.Seq() || task(other, "4").Subject != "and again" {
		t.Errorf("another replica is at %d, this one at %d", other.Seq(), rep.Seq())
	}
}

// TestReopenTogether checks that of many goroutines that find the journal broken one reopens it,
// and every answer is true.
func TestReopenTogether(t *testing.T) {
	s := newShaky(t)
	rep := s.open(replica.Options{Reopen: s.journal})
	const most = 8
	for range 5 {
		s.breaks(rep)
		before, opened := rep.Seq(), s.opens.Load()
		var all sync.WaitGroup
		for range most {
			all.Go(func() {
				if _, err := rep.Do(within(t), team.Command{Actor: team.User,
					Body: &team.CreateTask{Subject: "together"}}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := s.opens.Load() - opened; n != 1 {
			t.Errorf("the journal was opened %d times", n)
		}
		// the uncertain record may not have been seen before
		if got := rep.Seq() - before; got != most && got != most+1 {
			t.Errorf("%d records came", got)
		}
	}
}

// TestReopenInVain checks that an error says why a journal could not be opened again, and another
// team of the same name is not taken for this one.
func TestReopenInVain(t *testing.T) {
	s := newShaky(t)
	var trouble error
	rep := s.open(replica.Options{Reopen: func(ctx context.Context) (journal.Journal, error) {
		if trouble != nil {
			return nil, trouble
		}
		return s.journal(ctx)
	}})
	work := func() error {
		_, err := rep.Do(within(t), team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "more"}})
		return err
	}
	s.breaks(rep)
	trouble = errors.New("the disk is gone")
	if err := work(); !errors.Is(err, trouble) || !replica.Broken(err) {
		t.Errorf("the disk is gone: %v", err)
	}
	trouble = nil
	other := newShaky(t)
	elsewhere, err := other.journal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := replica.Open(t.Context(), elsewhere, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stranger.Close() })
	do(t, stranger, team.User, &team.CreateTeam{TeamID: "demo-2", Name: "demo", Dir: "/w"})
	mine := s.opts
	s.opts = other.opts
	if err := work(); !errors.Is(err, journal.ErrGone) {
		t.Errorf("another team in its place: %v", err)
	}
	s.opts = mine
	if err := work(); err != nil {
		t.Error(err)
	}
	s.breaks(rep)
	s.fails.Store(true)
	if err := work(); !errors.Is(err, journal.ErrUncertain) {
		t.Errorf("a disk that fails again: %v", err)
	}
	s.fails.Store(false)
	if err := work(); err != nil {
		t.Error(err)
	}
}
