package replica

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/team"
)

// slow is a journal in which a snapshot is always due, and is not saved before ctx ends.
type slow struct {
	journal.Journal
	end context.CancelFunc
	err error
}

func (s slow) SnapshotDue(int) bool { return true }

func (s slow) SaveSnapshot(ctx context.Context, _ func() (int64, []byte)) error {
	s.end()
	return cmp.Or(s.err, ctx.Err())
}

// TestSnapshotOfACancelledCommand checks that a cancelled command reports no missing snapshot,
// while a failure of the disk is reported.
func TestSnapshotOfACancelledCommand(t *testing.T) {
	for want, failure := range map[int]error{0: nil, 1: errors.New("no space left")} {
		ctx, cancel := context.WithCancel(t.Context())
		end := cancel
		if failure != nil {
			end = func() {}
		}
		told := 0
		rep, err := Open(ctx, slow{memjournal.New("demo").Open(), end, failure}, Options{Log: func(string) { told++ }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.CreateTeam{TeamID: "demo-1", Name: "demo",
			Dir: "/w"}}); err != nil {
			t.Fatal(err)
		}
		if told != want {
			t.Errorf("%v: it was told %d times", failure, told)
		}
		rep.Close()
		cancel()
	}
}
