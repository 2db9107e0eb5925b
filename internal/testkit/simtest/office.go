package simtest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"cadre/internal/journal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// office is how a process acts in the team: a real replica on the simulated journal.
type office struct {
	of      *process
	replica *replica.Replica
	ids     int
	reopen  func(context.Context) (journal.Journal, error) // of real code; nil for a host's, which ends
}

// errLost is what a caller hears whose command is still on its way.
var errLost = errors.New("no answer: the command may have been carried out")

// errLocked is that another process of the machine leads.
var errLocked = errors.New("another process has the lock of who leads, or the saved work could not be kept")

var forever = context.Background() // deadlines of the simulation are in its own time

// open loads the team, until that succeeds.
func (o *office) open(t *thread) {
	for {
		rep, err := replica.Open(forever, o.of.w.disk.open(o.of), replica.Options{Now: o.of.clock, NewID: o.newID,
			Decide: o.of.w.decide})
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

// intention is what a caller wants done once, however often it sends it.
type intention struct {
	team.Command
	number int
}

// byHost reports whether a host sends it, for which nobody stands between it and its replica.
func (in intention) byHost() bool { return strings.HasPrefix(in.Actor, team.Host("")) }

// do sends a command. On the way it may be doubled, or be late.
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

// insist sends a command again, as the same one, until it is known what became of it.
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
