package simtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"cadre/internal/journal"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// host is one life of the program that runs sessions. It goes on like [cadre/internal/host.Host]:
// it asks the state what is wanted, does that, and reports what happened.
type host struct {
	office
	place    int
	seats    []*seat
	bell     bell          // something changed
	failure  error         // why it cannot see any more what changes
	unlocked time.Duration // until then others find its lock free, although it lives
	taken    string        // the host that it found dead last
	beats    int64         // signs of life that it gave
	nextBeat time.Duration
	lead     heartbeat.Watch

	tracing map[string]bool // tasks of which it records what they did
	refused map[string]bool // those of which nothing can be recorded for the moment
	traced  bell

	retired bool // it is a real one, and ended with its team
}

// watchEvery is how often a host looks whether the hosts of other members live.
const watchEvery = 500 * time.Millisecond

// boot starts the host of a place.
func (w *world) boot(place int) {
	on := w.machines[place%len(w.machines)]
	h := &host{office: office{of: w.process("h"+string(rune('1'+place)), on)}, place: place, tracing: map[string]bool{},
		refused: map[string]bool{}}
	w.hosts[place], w.booted = h, w.now
	w.logf("%s starts on %s", h.of.name, on.name)
	if w.gate == nil {
		h.of.spawn("host", h.run)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	h.of.stop = stop
	w.later(func() { go h.live(ctx) })
}

// crash kills the host of a place. Its leash ends its sessions a little later, and somebody starts
// another one.
func (w *world) crash(place int, again time.Duration) {
	h := w.hosts[place]
	if !h.of.alive {
		return
	}
	w.logf("%s is killed", h.of.name)
	w.gone(h, again)
}

func (w *world) gone(h *host, again time.Duration) {
	h.of.kill()
	w.at(w.now+time.Duration(w.rng(h.of.name+" leash").IntN(200))*time.Millisecond, func() { h.endSessions() })
	w.at(w.now+again, func() {
		if w.hosts[h.place] == h {
			w.boot(h.place)
		}
	})
}

func (h *host) endSessions() {
	for _, s := range h.seats {
		if s.session != nil {
			s.session.kill()
		}
	}
}

// held reports whether the host of that id is seen to live, and returns it where it is known.
func (w *world) held(id string) (*host, bool) {
	h := w.hostNamed(id)
	return h, h != nil && h.of.alive && h.unlocked <= w.now
}

func (w *world) hostNamed(id string) *host {
	for _, h := range w.hosts {
		if h.of.name == id {
			return h
		}
	}
	return nil
}

func (h *host) id() string { return h.of.name }

func (h *host) run(t *thread) {
	h.open(t)
	seq := h.replica.Seq() // from before the first look, whose own commands are changes too
	h.of.spawn("watch", func(t *thread) { h.watch(t, seq) })
	for {
		next, err := h.reconcile(t)
		if err == nil {
			err = h.failure
		}
		if err != nil { // it cannot go on: the supervisor starts another one
			h.of.w.logf("%s gives up: %v", h.id(), err)
			h.of.w.gone(h, time.Duration(200+t.rng.IntN(2000))*time.Millisecond)
			t.await(never)
		}
		if h.of.w.bug("no-timer") {
			next = never
		}
		if h.of.w.plan.Led {
			next = min(next, h.beat(t))
		}
		t.await(next, &h.bell)
	}
}

// watch tells of changes of the team after seq.
func (h *host) watch(t *thread, seq int64) {
	for h.failure == nil {
		h.failure = h.replica.Wait(forever, seq)
		seq = h.replica.Seq()
		h.bell.ring()
	}
}

// reconcile does what is wanted now, and returns when to look again though nothing happens.
func (h *host) reconcile(t *thread) (next time.Duration, err error) {
	now := h.of.clock()
	var (
		wants   []team.Want
		due     team.Time
		members []team.Member
		seq     int64
		over    bool
	)
	h.view(func(s *team.State) {
		wants, due = s.Wants(now)
		members = s.Members()
		seq = s.Seq()
		over = s.Team().Status == team.TeamAborted
	})
	next = never
	if due != 0 {
		next = h.of.wake(max(0, due-now))
	}
	var wanted []string
	for _, w := range wants {
		m := memberOf(members, w.Member)
		switch w.Kind {
		case team.WantBudgetCheck:
			err = h.report(t, &team.CheckBudget{}, 0)
		case team.WantExpirePermission:
			err = h.report(t, &team.ExpirePermission{Request: w.Request}, 0)
		case team.WantExpireShutdown:
			err = h.report(t, &team.ExpireShutdown{Member: w.Member}, 0)
		case team.WantExpirePlan:
			err = h.report(t, &team.ExpirePlan{Request: w.Request}, 0)
		case team.WantMarkLate:
			err = h.report(t, &team.MarkLate{Member: w.Member}, 0)
		case team.WantBase, team.WantRecord:
			if m.Name == "" || m.Host == h.id() || m.Host == "" { // else its own host does it
				h.trace(w.Task)
			}
		case team.WantSession:
			wanted = append(wanted, w.Member)
			if m.Host != h.id() && m.Host != "" {
				next = min(next, h.of.w.now+watchEvery)
			}
			err = h.want(t, *m)
		case team.WantRest:
			wanted = append(wanted, w.Member)
			if h.of.w.bug("never-rests") {
				break
			}
			if s := h.seat(w.Member); s != nil && s.incarnation == w.Incarnation {
				s.stop(stopRest, w.Reason)
			} else if m.Host != h.id() {
				next = min(next, h.of.w.now+watchEvery)
				err = h.takeOver(t, *m)
			} else if s == nil {
				err = h.detach(t, *m, w.Reason)
			}
		case team.WantHandover:
			if s := h.seat(w.Member); s != nil && s.incarnation == w.Incarnation {
				s.stop(stopFresh, w.Reason)
			}
		case team.WantDelivery, team.WantWork, team.WantRetry, team.WantAccess, team.WantSave, team.WantYield:
			if s := h.seat(w.Member); s != nil && s.incarnation == w.Incarnation {
				s.give(w)
			}
		case team.WantStop:
			wanted = append(wanted, w.Member)
			if h.of.w.bug("no-deadline") && m.Shutdown.Answer != "approved" {
				break
			}
			if s := h.seat(w.Member); s != nil {
				s.stop(stopReport, w.Reason)
			} else if m.Host == h.id() {
				if err = h.keepBefore(t, *m); err == nil {
					err = h.report(t, &team.ReportStopped{Member: w.Member, Reason: w.Reason}, m.Lease)
				}
			} else if m.Host != "" {
				next = min(next, h.of.w.now+watchEvery)
				err = h.takeOver(t, *m)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	for _, s := range slices.Clone(h.seats) {
		m := memberOf(members, s.member)
		switch {
		case over:
			if !h.of.w.bug("aborted-stays") {
				s.stop(stopQuietly, "")
			}
		case m.Host != h.id() || m.Lease != s.lease:
			if !h.of.w.bug("old-seat-stays") {
				s.stop(stopQuietly, "")
			}
		case !slices.Contains(wanted, s.member):
			s.stop(stopDetach, "nothing is to run now")
		default:
			s.remind()
		}
	}
	if h.replica.Seq() != seq {
		next = h.of.w.now // it changed meanwhile
	}
	return next, nil
}

func memberOf(members []team.Member, name string) *team.Member {
	for i := range members {
		if members[i].Name == name {
			return &members[i]
		}
	}
	return &team.Member{}
}

func (h *host) seat(member string) *seat {
	for _, s := range h.seats {
		if s.member == member {
			return s
		}
	}
	return nil
}

// want sees to it that the member has a seat here, if its lease can be had.
func (h *host) want(t *thread, m team.Member) error {
	switch {
	case h.seat(m.Name) != nil:
		return nil
	case m.Host == h.id() && m.Status == team.Spawning:
		h.sit(m)
		return nil
	case m.Host == h.id(): // its seat is gone and the report of that was refused
		return h.detach(t, m, "its session is gone")
	case m.Host == "" && h.of.w.bug("unleased"):
		m.Host, m.Lease = h.id(), m.Lease+1
		h.sit(m)
	}
	return h.takeOver(t, m)
}

// takeOver takes the lease of a member that has none, or whose host is dead.
func (h *host) takeOver(t *thread, m team.Member) error {
	if m.Host != "" {
		old, lives := h.of.w.held(m.Host)
		if lives && !h.of.w.bug("take-living") {
			return nil
		}
		if !lives {
			h.taken = m.Host
		}
		t.step()
		if old != nil && old.of.on == h.of.on {
			old.endSessions() // what is left of it, by process id and start time
		}
		t.step()
	}
	ends := m.Shutdown.Request != "" && !h.of.w.bug("save-left")
	if ends || h.of.w.bug("kept-by-all") || h.of.w.bug("keep-fails") {
		if err := h.keepSavedOf(t, m.Name, team.User, 0); err != nil {
			if h.of.w.bug("keep-fails") {
				return nil
			}
			return err
		}
	}
	if err := h.report(t, &team.AttachMember{Member: m.Name, From: m.Host, Ending: m.Shutdown.Request}, 0); err != nil {
		return err
	}
	if ends { // it did so with that
		return h.keepSavedOf(t, m.Name, team.User, 0)
	}
	return h.keepBefore(t, m)
}

// detach gives the lease of a member without a session back.
func (h *host) detach(t *thread, m team.Member, reason string) error {
	if err := h.keepBefore(t, m); err != nil {
		return err
	}
	return h.report(t, &team.DetachMember{Member: m.Name, Reason: reason}, m.Lease)
}

// keepBefore keeps what an earlier session of the member saved, before its tasks go back on the
// list.
func (h *host) keepBefore(t *thread, m team.Member) error {
	if h.of.w.bug("save-left") {
		return nil
	}
	return h.keepSavedOf(t, m.Name, team.Host(h.id()), 0)
}

// report sends a command as the host. A refusal is no failure of the host: the state moved on, and
// the next look shows where to.
func (h *host) report(t *thread, body team.Body, lease int64) error {
	err := h.tell(t, body, lease)
	if team.CodeOf(err) != "" {
		return nil
	}
	return err
}

// tell sends a command as the host.
func (h *host) tell(t *thread, body team.Body, lease int64) error {
	_, err := h.do(t, team.Command{Actor: team.Host(h.id()), Lease: lease, Body: body})
	return err
}

// do sends a command. A host that records nothing must not keep its leases, whoever asked.
func (h *host) do(t *thread, c team.Command) (replica.Receipt, error) {
	r, err := h.office.do(t, c)
	if errors.Is(err, journal.ErrReopen) && !h.of.w.bug("broken-stays") {
		h.failure = err
		h.bell.ring()
	}
	return r, err
}

func (h *host) vacate(s *seat) {
	h.seats = slices.DeleteFunc(h.seats, func(other *seat) bool { return other == s })
	h.bell.ring()
}
