package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cadre/internal/team"
)

// waiting returns a host of a team that shares the turns of a machine.
func waiting(t *testing.T, id, dir string, most int) *Host {
	h := &Host{Options: Options{ID: id, Log: func(text string) { t.Log(id + ": " + text) }}}
	h.turns = machineTurns{Turns: Turns{Dir: dir, Most: most, By: "the test"}, queue: queue{dir: dir, id: id}}
	t.Cleanup(func() { h.freeTurns(&round{}, nil) })
	return h
}

// round ends a round of the host, in which these members use their turns.
func (h *Host) ends(uses ...string) {
	for name, lock := range h.turns.held {
		used := false
		for _, one := range uses {
			used = used || one == name
		}
		if !used {
			_ = lock.Unlock()
			delete(h.turns.held, name)
		}
	}
	held := h.turns.held
	h.turns.held = nil
	h.freeTurns(&round{}, nil)
	h.turns.held = held
}

func (h *Host) starts(name string) bool { return h.mayStart(&team.Member{Name: name}) }

// TestTurnsInOrder: the teams of a machine get its turns in the order in which they asked for one,
// and one each: a team of many does not go before a team of one.
func TestTurnsInOrder(t *testing.T) {
	dir := t.TempDir()
	many, few := waiting(t, "many", dir, 1), waiting(t, "few", dir, 1)
	if !many.starts("a1") {
		t.Fatal("nobody has a turn, and a1 does not get it")
	}
	many.ends("a1")
	if few.starts("b") || many.starts("a2") {
		t.Fatal("there are two turns")
	}
	few.ends()
	many.ends() // a1 is done
	if many.starts("a2") {
		t.Error("a2 passes b, which waits for longer")
	}
	many.ends()
	if !few.starts("b") {
		t.Error("b does not get the turn that is left to it")
	}
	few.ends("b")
	if many.starts("a2") || few.starts("b2") {
		t.Error("there are two turns")
	}
	many.ends()
	few.ends() // b is done, and b2 waits
	if few.starts("b2") {
		t.Error("b2 passes a2: its team has had a turn since")
	}
	few.ends()
	if !many.starts("a2") {
		t.Error("a2 does not get its turn")
	}
	many.ends("a2")
}

// TestTurnsBesideTheQueue: who waits leaves a free turn to each that waits for longer, and takes
// the next one.
func TestTurnsBesideTheQueue(t *testing.T) {
	dir := t.TempDir()
	first, second, third := waiting(t, "first", dir, 2), waiting(t, "second", dir, 2), waiting(t, "third", dir, 2)
	if !first.starts("a1") || !first.starts("a2") || second.starts("b") || third.starts("c") {
		t.Fatal("two have a turn, and the others wait")
	}
	second.ends()
	third.ends()
	first.ends("a1")
	if third.starts("c") {
		t.Error("c passes b")
	}
	third.ends()
	first.ends()
	if !third.starts("c") {
		t.Error("two turns are free, one is left to b, and c does not get the other one")
	}
	if !second.starts("b") {
		t.Error("b does not get its turn")
	}
	third.ends("c")
	second.ends("b")
}

// TestPlacesLapse: the place of a host that was killed or is suspended lets others pass, and a host
// whose members want no turn any more has no place.
func TestPlacesLapse(t *testing.T) {
	dir := t.TempDir()
	first, second, third := waiting(t, "first", dir, 1), waiting(t, "second", dir, 1), waiting(t, "third", dir, 1)
	if !first.starts("a") || second.starts("b") || third.starts("c") {
		t.Fatal("one has a turn, and the others wait")
	}
	second.ends()
	third.ends()
	first.ends()
	third.ends() // c wants no turn any more
	if places, err := filepath.Glob(filepath.Join(dir, "*"+placeSuffix)); err != nil || len(places) != 1 {
		t.Errorf("the places are %q, %v", places, err)
	}
	if third.starts("c") {
		t.Fatal("c passes b")
	}
	third.ends()
	old := time.Now().Add(-placeLapses - time.Second)
	if err := os.Chtimes(filepath.Join(dir, second.turns.queue.place), old, old); err != nil {
		t.Fatal(err)
	}
	if !third.starts("c") {
		t.Error("a place that nobody renews holds c up")
	}
	third.ends("c")
	if second.starts("b") { // it is back
		t.Error("there are two turns")
	}
	third.ends()
	if third.starts("c") || !second.starts("b") {
		t.Error("a place that is renewed has lost its rank")
	}
	old = time.Now().Add(-placeRemoved - time.Second)
	if third.starts("c"); os.Chtimes(filepath.Join(dir, third.turns.queue.place), old, old) != nil {
		t.Fatal("c has no place")
	}
	if first.starts("a"); first.turns.queue.place == "" {
		t.Error("a has no place")
	}
	if places, err := filepath.Glob(filepath.Join(dir, "*-third"+placeSuffix)); err != nil || len(places) != 0 {
		t.Errorf("an old place is not removed: %q, %v", places, err)
	}
}
