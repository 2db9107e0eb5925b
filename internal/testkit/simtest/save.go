package simtest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"cadre/internal/liveness/heartbeat"
	"cadre/internal/team"
)

// savedWork is the file in which a teammate without a lead saves what it has done of its task.
type savedWork struct {
	Task string
	Done int // changes that it made, in all
	At   team.Time

	when  time.Duration
	stale bool // who saved it had lost the member, or the task
}

func (f savedWork) saved(member string) team.Saved {
	if f.Done == 0 {
		return team.Saved{Member: member, At: f.At}
	}
	return team.Saved{Member: member, Diff: fmt.Sprintf("%s %d", member, f.Done), At: f.At}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// forgetSaved removes the file, if it still is the one that was kept.
func (w *world) forgetSaved(member string, kept savedWork) {
	if f, there := w.saved[member]; there && (f == kept || w.bug("newer-removed")) {
		w.judge.overwrites(member, f, savedWork{})
		delete(w.saved, member)
	}
}

// save writes down what the member has done of its task, after what the file has of another one was
// kept. It reports whether it did.
func (s *seat) save(t *thread) (savedWork, bool) {
	w := s.host.of.w
	for s.savedFile { // one at a time
		t.await(never, &s.fileFree)
	}
	s.savedFile = true
	defer func() { s.savedFile = false; s.fileFree.ring() }()
	f := savedWork{At: s.host.of.clock()}
	if held := s.held(); len(held) > 0 {
		f.Task = held[0].ID
	}
	t.step() // the patch is made
	f.Done = w.edited[s.member]
	if before, there := w.saved[s.member]; there && before.Task != f.Task && !w.bug("other-overwritten") {
		if _, err := s.host.recordSaved(t, s.member, before, team.Host(s.host.id()),
			s.lease); err != nil || !s.leased() {
			return f, false
		}
	}
	t.step()
	f.when, f.stale = w.now, w.judge.outdated(s, f.Task)
	w.logf("%s: %s saves %d changes for task %q", s.host.id(), s.member, f.Done, f.Task)
	w.judge.overwrites(s.member, w.saved[s.member], f)
	w.saved[s.member] = f
	return f, true
}

func (s *seat) zombie() (alone bool) {
	s.host.view(func(st *team.State) { alone = st.Zombie(s.member) })
	return alone
}

// saveAlone saves the work again and again for as long as there is no lead; then it is kept.
func (s *seat) saveAlone(t *thread) {
	for {
		if !s.zombie() {
			s.saveAndKeep(t)
			return
		}
		s.save(t)
		at := s.host.replica.Team()
		t.sleep(millis(at.Timing.OrDefaults().Beat))
	}
}

// saveAndKeep saves the member's work and keeps it with its tasks, one thread at a time. It reports
// whether nothing is left to keep.
func (s *seat) saveAndKeep(t *thread) bool {
	defer s.keepsAlone(t)()
	f, saved := s.save(t)
	return saved && s.keep(t, f)
}

// keepsAlone waits until no other thread saves and keeps, and keeps others from it until what it
// returns is called.
func (s *seat) keepsAlone(t *thread) (done func()) {
	if s.host.of.w.bug("keeps-mixed") {
		return func() {}
	}
	for s.keeping {
		t.await(never, &s.keepFree)
	}
	s.keeping = true
	return func() { s.keeping = false; s.keepFree.ring() }
}

// keep records the saved work with the tasks that the member holds. It reports whether it is with
// all of them.
func (s *seat) keep(t *thread, f savedWork) bool {
	kept := true
	for _, task := range s.held() {
		if s.host.of.w.bug("save-lost") {
			break
		}
		err := s.host.tell(t, &team.SaveWork{Task: task.ID, Saved: f.saved(s.member)}, s.lease)
		if err != nil && !s.lets(task) && (team.CodeOf(err) == "" || !s.host.of.w.bug("refused-kept")) {
			kept = false
		}
	}
	if kept {
		s.host.of.w.forgetSaved(s.member, f)
	}
	return kept
}

// leased reports whether the member is still this host's, as far as it knows.
func (s *seat) leased() (leased bool) {
	s.host.view(func(st *team.State) {
		m, _ := st.Member(s.member)
		leased = m.Host == s.host.id() && m.Lease == s.lease
	})
	return leased
}

// lets reports whether the task is not the member's any more, though the member still is this
// host's.
func (s *seat) lets(task team.Task) (gone bool) {
	s.host.view(func(st *team.State) {
		m, _ := st.Member(s.member)
		now, _ := st.Task(task.ID)
		gone = m.Host == s.host.id() && m.Lease == s.lease && (now.Status != team.InProgress || now.Owner != s.member)
	})
	return gone
}

// keepLast keeps what was saved, because the tasks go back on the list. It reports whether nothing
// is left to keep.
func (s *seat) keepLast(t *thread) bool {
	if _, there := s.host.of.w.saved[s.member]; !there || s.host.of.w.bug("save-left") {
		return true
	}
	return s.saveAndKeep(t)
}

// putDown gives the tasks that the member holds back to the list, with its work. It reports whether
// that is recorded.
func (s *seat) putDown(t *thread, reason string) bool {
	defer s.keepsAlone(t)()
	f, _ := s.save(t)
	held := s.held()
	if !s.keep(t, f) {
		return false
	}
	done := true
	for _, task := range held {
		if s.host.report(t, &team.ReleaseTask{Task: task.ID, Member: s.member, Fence: task.Fence, Reason: reason},
			s.lease) != nil {
			done = false
		}
	}
	return done
}

// beat gives the signs of life of the members that have a session here, and looks for one of the
// lead, when that is due. It returns when to call it again.
func (h *host) beat(t *thread) (next time.Duration) {
	w := h.of.w
	if h.nextBeat > w.now {
		return h.nextBeat
	}
	var at team.Team
	h.beats++
	h.view(func(s *team.State) {
		at = s.Team()
		for _, seat := range h.seats {
			if m, ok := s.Member(seat.member); ok && m.Incarnation == seat.incarnation {
				b := heartbeat.Beat{Member: m.Name, At: int64(h.of.clock()), Session: m.Session, Host: h.id(),
					Machine: h.of.on.name, Pid: h.of.pid, Count: h.beats}
				if m.Name == at.Lead {
					b.Session = at.LeadSession
				}
				h.of.beat(b)
			}
		}
	})
	every := millis(at.Timing.OrDefaults().Beat)
	if at.ID == "" {
		every = 50 * time.Millisecond // there is no team yet
	}
	h.nextBeat = w.now + every
	h.lead.Every = every
	h.lookForLead(t, at)
	return h.nextBeat
}

// lookForLead records that the lead is lost when it has been silent for too long.
func (h *host) lookForLead(t *thread, at team.Team) {
	w := h.of.w
	if at.LeadSession == "" || at.LeadSession == team.User || at.LeadLost != 0 || h.seat(at.Lead) != nil ||
		w.bug("never-lost") {
		return
	}
	b := h.of.beatOfLead(at)
	now := h.of.wall()
	silent, _ := h.lead.LookBy(now, w.now, b, true)
	if w.bug("age-alone") {
		silent, _ = b.Age(now)
	}
	if silent < millis(at.Timing.OrDefaults().LeadLost) {
		return
	}
	w.judge.gives(h, at)
	if h.report(t, &team.LoseLead{Session: at.LeadSession, Since: at.LeadSince,
		Seen: team.Time(now.Add(-silent).UnixMilli())}, 0) != nil {
		w.logf("%s could not record that the lead is lost", h.id())
	}
}
