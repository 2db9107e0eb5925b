package simtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cadre/internal/journal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// office gives a process access to the team: a real replica on the simulated journal.
type office struct {
	of      *process
	replica *replica.Replica
	ids     int
	reopen  func(context.Context) (journal.Journal, error) // for real code; nil for a host, which ends instead
}

// errLost is the error for a caller whose command may still arrive.
var errLost = errors.New("no answer: the command may have been carried out")

// errLocked is the error if another process of the machine leads.
var errLocked = errors.New("another process has the lock of who leads")

var forever = context.Background() // deadlines of the simulation are in its own time

// open loads the team. It retries until that succeeds.
func (o *office) open(t *thread) {
	for {
		rep, err := replica.Open(forever, o.of.w.disk.open(o.of), replica.Options{Now: o.of.clock, NewID: o.newID,
			Decide: o.of.w.decide, Check: o.checksNow})
		if err == nil {
			o.replica = rep
			return
		}
		t.sleep(100 * time.Millisecond)
	}
}

func (o *office) newID() string {
	o.ids++
	return o.of.name + "-" + strconv.Itoa(o.ids)
}

// intention is a command that a caller wants carried out once, however often it is sent.
type intention struct {
	team.Command
	number int
}

// byHost reports whether a host sends it. A host calls its replica directly.
func (in intention) byHost() bool { return strings.HasPrefix(in.Actor, team.Host("")) }

// do sends a command. On the way the command may be doubled or delayed.
func (o *office) do(t *thread, c team.Command) (replica.Receipt, error) {
	return o.send(t, o.of.w.judge.intend(c))
}

func (o *office) send(t *thread, in intention) (replica.Receipt, error) {
	w := o.of.w
	if in.ID == "" {
		in.ID = o.newID()
	}
	w.judge.sent(in)
	if !w.calm && !in.byHost() && t.rng.IntN(1000) < w.plan.Noise {
		late, lost := time.Duration(t.rng.IntN(3000))*time.Millisecond, t.rng.IntN(3) == 0
		o.of.spawn("copy", func(copy *thread) {
			copy.sleep(late)
			w.logf("a copy of %s (%T by %s) arrives", in.ID, in.Body, in.Actor)
			o.carryOut(in)
		})
		if lost {
			t.sleep(time.Duration(t.rng.IntN(500)) * time.Millisecond)
			return replica.Receipt{}, errLost
		}
	}
	return o.carryOut(in)
}

func (o *office) carryOut(in intention) (replica.Receipt, error) {
	w := o.of.w
	r, err := o.replica.Do(forever, in.Command)
	switch {
	case err == nil && r.Record != nil:
		w.judge.acked(r.Record)
	case err != nil && w.tell != nil:
		w.logf("%s: %T by %s: %v", o.of.name, in.Body, in.Actor, err)
	}
	return r, err
}

// insist sends the same command again until its outcome is known.
func (o *office) insist(t *thread, c team.Command) (replica.Receipt, error) {
	in := o.of.w.judge.intend(c)
	if in.ID == "" {
		in.ID = o.newID()
	}
	for try := 1; ; try++ {
		r, err := o.send(t, in)
		if err == nil || team.CodeOf(err) != "" || try > 100 {
			return r, err
		}
		t.sleep(time.Duration(50+t.rng.IntN(400)) * time.Millisecond)
		if errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrReopen) {
			o.open(t)
		}
		if o.of.w.bug("new-id") {
			in.ID = ""
		}
	}
}

func (o *office) view(see func(*team.State)) { o.replica.View(see) }

// openLive opens a replica for the goroutines of the process, and waits until there is a team.
func (o *office) openLive(ctx context.Context) (*replica.Replica, error) {
	for {
		rep, err := replica.Open(ctx, &gated{o.of.w.disk.open(o.of)}, replica.Options{Now: o.of.liveClock,
			NewID: o.liveID, Decide: o.decide, Reopen: o.reopen, Check: o.checks})
		for err == nil && !exists(rep) {
			err = rep.Wait(ctx, rep.Seq())
		}
		if err == nil {
			err = o.of.ask("open", func(*thread) { o.replica = rep })
			return rep, err
		}
		if err := o.of.ask("try", func(t *thread) { t.sleep(100 * time.Millisecond) }); err != nil {
			return nil, err
		}
	}
}

// checks runs the check of a task for a goroutine of the process.
func (o *office) checks(_ context.Context, _ team.Team, task team.Task, _ string) (failure string, err error) {
	err = o.of.ask("check "+task.ID, func(t *thread) {
		t.sleep(time.Duration(1+t.rng.IntN(200)) * time.Millisecond)
		failure = o.of.w.check(task)
	})
	return failure, err
}

// checksNow runs the check of a task for a thread of the world.
func (o *office) checksNow(_ context.Context, _ team.Team, task team.Task, _ string) (string, error) {
	return o.of.w.check(task), nil
}

func exists(rep *replica.Replica) (there bool) {
	rep.View(func(s *team.State) { there = s.Exists() })
	return there
}

// decide is the decision function of the replicas of real code. It shows each command to the judge.
func (o *office) decide(s *team.State, c team.Command) (team.Decision, error) {
	w := o.of.w
	if o.of.asks != nil {
		*o.of.asks = fmt.Sprintf("%s %T %+v", c.Actor, c.Body, c.Body)
		return team.Decision{}, nil
	}
	if _, known := w.judge.intentions[c.ID]; !known {
		w.judge.sent(w.judge.intend(c))
	}
	if b, ok := c.Body.(*team.AttachLead); ok {
		for _, l := range w.leads {
			if l.of == o.of {
				w.judge.takes(c.ID, l)
				took := w.judge.taking[c.ID]
				if took.seq = s.Seq(); b.Since != s.Team().LeadSince { // what it saw is from before the lead came back
					took.seq = 0
				}
				w.judge.taking[c.ID] = took
			}
		}
	}
	d, err := w.decide(s, c)
	if b, ok := c.Body.(*team.LoseLead); ok && d.Record != nil {
		w.judge.losing[o.of.name] = s.Seq()
		if b.Since != s.Team().LeadSince { // what it saw is from before the lead came back
			w.judge.losing[o.of.name] = 0
		}
		w.judge.loses(o.of, s.Team())
	}
	return d, err
}

// liveClock is the clock of the process, for its goroutines.
func (p *process) liveClock() team.Time {
	g := p.w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	p.w.catchUp()
	return p.clock()
}

func (o *office) liveID() string {
	g := o.of.w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return o.newID()
}

// says logs a message of the process.
func (p *process) says(what string) {
	g := p.w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.w.tell != nil && p.alive {
		p.w.logf("%s: %s", p.name, what)
	}
}
