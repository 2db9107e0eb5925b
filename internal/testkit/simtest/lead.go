package simtest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"cadre/internal/journal"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/team"
)

// leading is a process that leads the team, or wants to. It goes on like package leader, below the
// command that resumes a team.
type leading struct {
	*person
	session  string
	takeOver bool // on the user's word
	byHand   bool // the user leads by commands, and this process only reads the lead's mail
	count    int64
	holds    bool // it leads, so far as it knows
	bell     bell // something changed
}

// resume starts a process that takes the lead, on that machine.
func (w *world) resume(on *machine, takeOver, byHand bool) *leading {
	w.leads = slices.DeleteFunc(w.leads, func(l *leading) bool { return !l.of.alive })
	w.sessionsLed++
	l := &leading{person: w.personOn("lead", "lead", on), session: "L" + strconv.Itoa(w.sessionsLed),
		takeOver: takeOver, byHand: byHand}
	w.leads = append(w.leads, l)
	w.logf("%s wants to lead on %s, as session %s, taking over: %t, by hand: %t", l.of.name, on.name, l.session,
		takeOver, byHand)
	if w.gate == nil {
		l.of.spawn("lead", l.lead)
		return l
	}
	ctx, stop := context.WithCancel(context.Background())
	l.of.stop = stop
	w.later(func() { go l.outside(ctx) })
	return l
}

// leader is the living process that leads, or wants to; nil for none.
func (w *world) leader() *leading {
	for _, l := range w.leads {
		if l.of.alive && !l.byHand {
			return l
		}
	}
	return nil
}

// rescue is a sensible user, once nothing goes wrong any more: a team that nobody leads is resumed.
func (w *world) rescue(try int) {
	s := w.judge.truth
	if t := s.Team(); s.Exists() && t.Status != team.TeamAborted {
		led := t.LeadSession == team.User && (w.plan.Lead != team.External ||
			slices.ContainsFunc(w.leads, func(l *leading) bool { return l.of.alive && l.byHand }))
		if l := w.leader(); l == nil && !led {
			w.resume(w.machines[try%2], try >= 4, try%5 == 1)
			try++
		}
	}
	w.at(w.now+2*time.Second, func() { w.rescue(try) })
}

func (l *leading) lead(t *thread) {
	w := l.of.w
	for l.replica == nil {
		t.sleep(5 * time.Millisecond)
	}
	for try := 0; !l.take(t); try++ {
		if try == 10 {
			w.logf("%s gives up", l.of.name)
			l.of.kill()
			t.await(never)
		}
		t.sleep(time.Duration(100+t.rng.IntN(300)) * time.Millisecond)
	}
	if w.plan.Lead == team.External {
		l.of.spawn("leads", l.person.leads)
	}
	if l.byHand {
		w.unlock(l.of)
		t.await(never)
	}
	l.of.spawn("watch", l.watch)
	l.hold(t)
	l.holds = false
	l.release(t)
	w.logf("%s ends", l.of.name)
	l.of.kill()
}

// try sends a command as the user, and reports whether it is done.
func (l *leading) try(t *thread, body team.Body) bool {
	return l.tryAs(t, team.Command{Body: body})
}

func (l *leading) tryAs(t *thread, c team.Command) bool {
	c.Actor = team.User
	_, err := l.do(t, c)
	if errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrReopen) {
		l.open(t)
	}
	return err == nil
}

// take takes the lock of its machine and the lead. It reports whether it has both.
func (l *leading) take(t *thread) bool {
	w := l.of.w
	if l.replica.Refresh(forever) != nil {
		return false
	}
	at := l.replica.Team()
	if at.ID == "" {
		return false
	}
	if l.takeOver && at.LeadSession != "" && at.LeadSession != team.User {
		if !l.try(t, &team.AttachLead{Session: team.User, TakeOver: true}) {
			return false
		}
	}
	if !w.lock(l.of) {
		return false
	}
	if !l.keepSaved(t) {
		return false
	}
	at = l.replica.Team()
	seen, looked := l.lastSeen(t, at)
	session := l.session
	if l.byHand {
		session = team.User
	}
	id := l.newID()
	w.judge.takes(id, l)
	if !l.tryAs(t, team.Command{ID: id, At: looked, Body: &team.AttachLead{Session: session, Machine: l.of.on.name,
		From: at.LeadSession, Seen: seen, Since: at.LeadSince}}) {
		return false
	}
	l.holds = !l.byHand
	l.beat()
	return true
}

// lastSeen is the last sign of life of the session that leads, as far as it is to be believed.
func (l *leading) lastSeen(t *thread, at team.Team) (seen, looked team.Time) {
	if at.LeadSession == "" || at.LeadSession == team.User {
		return 0, l.of.clock()
	}
	b := l.of.beatOfLead(at)
	if b.Machine == l.of.on.name { // the lock is ours, so that process is gone
		return 0, l.of.clock()
	}
	age, skewed := b.Age(l.of.wall())
	timing := at.Timing.OrDefaults()
	switch {
	case skewed:
		return l.of.clock(), l.of.clock()
	case at.LeadLost != 0 || age < millis(timing.Stale):
		return l.of.clock() - team.Time(age/time.Millisecond), l.of.clock()
	}
	if l.of.w.bug("age-alone") {
		return l.of.clock() - team.Time(age/time.Millisecond), l.of.clock()
	}
	watch := heartbeat.Watch{Every: millis(timing.Beat)}
	for {
		if silent, _ := watch.LookBy(l.of.wall(), l.of.w.now, b, true); silent > 0 {
			return l.of.clock() - team.Time(silent/time.Millisecond), l.of.clock()
		}
		t.sleep(watch.Every)
		if next := l.of.beatOfLead(at); next != b {
			return l.of.clock(), l.of.clock()
		}
	}
}

// keepSaved keeps what members saved with their tasks, where no host lives that does.
func (l *leading) keepSaved(t *thread) bool {
	for _, h := range l.of.w.hosts {
		if _, lives := l.of.w.held(h.id()); lives {
			return true
		}
	}
	for _, member := range sortedKeys(l.of.w.saved) {
		if l.keepSavedOf(t, member, team.User, 0) != nil {
			return false
		}
	}
	return true
}

// keepSavedOf keeps with its task what the member saved.
func (o *office) keepSavedOf(t *thread, member, actor string, lease int64) error {
	f, there := o.of.w.saved[member]
	if !there {
		return nil
	}
	t.step()
	done, err := o.recordSaved(t, member, f, actor, lease)
	if done && err == nil {
		o.of.w.forgetSaved(member, f)
	}
	return err
}

// recordSaved records it. It reports whether nothing of it is needed any more; its error says that
// nobody knows whether it is recorded.
func (o *office) recordSaved(t *thread, member string, f savedWork, actor string, lease int64) (done bool, err error) {
	if f.Task == "" {
		return true, nil
	}
	_, err = o.do(t, team.Command{Actor: actor, Lease: lease, Body: &team.SaveWork{Task: f.Task,
		Saved: f.saved(member)}})
	switch team.CodeOf(err) {
	case team.Conflict:
		var task team.Task
		o.view(func(s *team.State) { task, _ = s.Task(f.Task) })
		return task.Status == team.Completed, nil
	case team.NotFound:
		return true, nil
	}
	return err == nil, err
}

// hold gives signs of life until another session leads, or the team has ended.
func (l *leading) hold(t *thread) {
	for {
		at := l.replica.Team()
		switch {
		case at.Status == team.TeamComplete || at.Status == team.TeamAborted:
			return
		case at.LeadSession != l.session && !l.of.w.bug("never-leaves"):
			return
		case at.LeadLost != 0:
			if !l.try(t, &team.AttachLead{Session: l.session, Machine: l.of.on.name, From: l.session}) {
				t.sleep(200 * time.Millisecond)
				continue
			}
		}
		l.beat()
		for next := l.of.w.now + millis(at.Timing.OrDefaults().Beat); l.of.w.now < next; {
			if now := l.replica.Team(); now.LeadSession != l.session || now.LeadLost != 0 {
				break
			}
			t.await(next, &l.bell)
		}
		if l.of.w.bug("never-leaves") {
			t.step()
		}
	}
}

func (l *leading) watch(t *thread) {
	for {
		if l.replica.Wait(forever, l.replica.Seq()) != nil {
			t.sleep(100 * time.Millisecond)
		}
		l.bell.ring()
	}
}

// release leaves the lead to the user.
func (l *leading) release(t *thread) {
	from := l.session
	if l.of.w.bug("gives-away") {
		from = l.replica.Team().LeadSession
	}
	if l.try(t, &team.AttachLead{Session: team.User, From: from, Left: true}) {
		delete(l.of.w.beats, l.replica.Team().Lead)
	}
}

func (l *leading) beat() {
	if l.of.w.plan.Lead != team.External || l.byHand {
		return // the host of its session does
	}
	l.count++
	l.of.beat(heartbeat.Beat{Member: "lead", At: int64(l.of.clock()), Session: l.session, Machine: l.of.on.name,
		Pid: l.of.pid, Count: l.count})
}

// Signs of life, in a folder that all machines have.

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// wall is what the process reads from the clock on the wall.
func (p *process) wall() time.Time { return time.UnixMilli(int64(p.clock())) }

// beat gives a sign of life, unless nobody gets to see it.
func (p *process) beat(b heartbeat.Beat) {
	if p.mute > p.w.now {
		return
	}
	p.w.beats[b.Member] = b
	p.w.judge.lives(b)
}

// beatOfLead is the last sign of life of the session that leads, as the process sees it: at least
// that it took the lead.
func (p *process) beatOfLead(t team.Team) heartbeat.Beat {
	beats := p.w.beats
	if p.blind > p.w.now {
		beats = p.eyes
	}
	b, there := beats[t.Lead]
	b = leader.LastBeat(t, b, there)
	p.w.judge.looks(p, b)
	return b
}

// lock takes the lock of who leads, as the kernel of the machine gives it.
func (w *world) lock(p *process) bool {
	if p.on.led != nil && p.on.led.alive && p.on.led != p {
		return false
	}
	p.on.led = p
	return true
}

func (w *world) unlock(p *process) {
	if p.on.led == p {
		p.on.led = nil
	}
}
