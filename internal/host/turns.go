package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/sys/filelock"
	"cadre/internal/team"
)

// Turns limits how many teammates of all teams on this machine have a turn at a time. The zero
// value is no limit. A turn is a locked file, so it is free again when its host dies.
type Turns struct {
	Dir  string // with the files
	Most int    // how many there are; 0 for no limit
	By   string // what sets the limit, for people
}

// turnPace is how often a host looks whether a turn is free on the machine.
const turnPace = 250 * time.Millisecond

// machineTurns are the turns of the machine that a host has for its members. Only Run uses them.
type machineTurns struct {
	Turns
	queue queue
	asked bool                      // a member has waited for a turn in this round
	held  map[string]*filelock.Lock // by member
	waits map[string]bool           // members that wait for one, as was logged
}

// turnStarts reports whether the want would start a turn of a teammate on this host. A member that
// is a team takes no turn of the machine: its members do, and would wait for the one that it has.
func (h *Host) turnStarts(m *team.Member, w team.Want) bool {
	if m == nil || m.Name == h.round.lead || m.IsTeam() || m.Status == team.Active || h.Agent(m.Agent) == nil {
		return false
	}
	switch w.Kind {
	case team.WantDelivery, team.WantWork, team.WantRetry:
		return m.Host == h.ID
	case team.WantSession:
		return m.Status == team.Spawning && m.Host == h.ID && h.slots[m.Name] == nil
	}
	return false
}

// mayStart reports whether the machine lets the member start a turn, and takes a turn for it. A
// turn is left to each host that waits for longer.
func (h *Host) mayStart(m *team.Member) bool {
	t := &h.turns
	if t.held[m.Name] != nil {
		return true
	}
	now := time.Now()
	lock, err := t.take(t.queue.ahead(now))
	if err == nil && lock == nil {
		t.asked = true
		err = t.queue.wait(now)
	}
	switch {
	case err != nil: // better too many turns than none
		h.Log("turns are not limited: " + err.Error())
		return true
	case lock != nil:
		t.queue.leave() // others of this host wait behind the hosts that wait already
		if t.held == nil {
			t.held = map[string]*filelock.Lock{}
		}
		t.held[m.Name] = lock
		delete(t.waits, m.Name)
		return true
	}
	if t.waits == nil {
		t.waits = map[string]bool{}
	}
	if !t.waits[m.Name] {
		t.waits[m.Name] = true
		h.Log(fmt.Sprintf("%s waits for a free turn: teammates on this machine have %s (%s)", m.Name,
			team.Count(t.Most, "turn"), t.By))
	}
	return false
}

// take takes a free turn, if there are more than so many. It returns nil if there are not.
func (t *machineTurns) take(left int) (*filelock.Lock, error) {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return nil, err
	}
	for n := 1; n <= t.Most; n++ {
		path := filepath.Join(t.Dir, fmt.Sprintf("%d.lock", n))
		if filelock.Held(path) {
			continue
		}
		if left--; left >= 0 {
			continue
		}
		if lock, err := filelock.New(path); !errors.Is(err, filelock.ErrHeld) {
			return lock, err
		}
	}
	return nil, nil
}

// freeTurns gives back the turns of the machine that members of this host do not use any more, and
// its place among those that wait if no member waits.
func (h *Host) freeTurns(r *round, used map[string]bool) {
	if !h.turns.asked {
		h.turns.queue.leave()
	}
	h.turns.asked = false
	for name, lock := range h.turns.held {
		m, s := r.member(name), h.slots[name]
		uses := s != nil && m != nil && m.Host == h.ID
		if uses && !used[name] {
			s.update(func(t *turn) { uses = !t.ended })
			h.Replica.View(func(st *team.State) { uses = uses && !st.AwaitsAnswer(name) })
		}
		if !uses {
			if err := lock.Unlock(); err != nil {
				h.Log(err.Error())
			}
			delete(h.turns.held, name)
		}
	}
}
