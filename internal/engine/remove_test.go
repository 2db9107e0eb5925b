package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestRemoveAfterAnother: another process removed a team, and a new team took its name. A second
// removal leaves the other team alone, hosted or not, and does not wait for its host.
func TestRemoveAfterAnother(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create()
	first, second := l.open(), l.open()
	l.do(first, team.User, &team.CleanUp{})
	if err := second.Remove(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.Dir); !os.IsNotExist(err) {
		t.Fatalf("the team is not removed: %v", err)
	}
	l.create(ann)
	now, was := l.open(), first.Team()
	work := filepath.Join(now.Dir, "worktrees", "ann")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	again := func(when string) {
		t.Helper()
		if err := first.Remove(within(t)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		r, err := upkeep.Clear(within(t), upkeep.Team{Replica: first.Replica, Dir: first.Dir, Actor: team.User,
			Log: l.Note},
			was, nil, upkeep.Removal{Home: l.Home})
		if err != nil || !r.Replaced {
			t.Errorf("%s: it is replaced: %t, %v", when, r.Replaced, err)
		}
		if _, err := os.Stat(work); err != nil {
			t.Errorf("%s: the other team's worktree: %v", when, err)
		}
		if is := l.open().Team(); is.ID != now.Team().ID || is.CleanedUp {
			t.Errorf("%s: the team of that name is %+v", when, is)
		}
	}
	again("unhosted")
	h := l.host(now, engine.HostOptions{})
	again("hosted")
	select {
	case <-h.Done():
		t.Errorf("its host has ended: %v", h.Err())
	default:
	}
}
