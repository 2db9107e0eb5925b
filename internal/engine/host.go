package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/consolidate"
	"cadre/internal/git/checkout"
	"cadre/internal/host"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/transfer"
)

// projectEvery is the least time between two projections of a team that changes all the time.
const projectEvery = 200 * time.Millisecond

// HostOptions say how a host runs the sessions of a team. The zero HostOptions run those of the
// engine's drivers, until the host is ended or the team is.
type HostOptions struct {
	// Agent finds an agent by the name that members have for it, and returns nil for one that this
	// host does not know; nil for the engine's drivers.
	Agent func(name string) agent.Agent
	// Offers are the agents that a lead may spawn, the usual one first; nil for the installed ones.
	Offers []string
	// Env is added to the environment of sessions.
	Env []string
	// Said is told what agents say, from any goroutine, a whole text at a time; nil for the first
	// line of each to the engine's Log.
	Said func(member, text string)
	// UntilIdle ends the host when no member has a session any more.
	UntilIdle bool
	// StopGrace bounds the friendly part of ending a session; 0 for the host's usual one.
	StopGrace time.Duration
}

// Host runs the sessions of a team until it is ended, or the team is.
type Host struct {
	id   string
	end  context.CancelFunc
	done chan struct{}
	err  error // read after done is closed
}

// Host starts a host of the team in this process. ctx bounds the start alone. The host has ended
// before the team is closed; a team has one in a process at a time.
func (t *Team) Host(ctx context.Context, o HostOptions) (*Host, error) {
	if err := t.Runnable(ctx); err != nil {
		return nil, err
	}
	if err := host.Clear(ctx, t.Hosts(), t.engine.Note); err != nil {
		return nil, err
	}
	id := strings.ToLower(replica.NewID())
	procs, err := host.Enroll(t.Hosts(), id)
	if err != nil {
		return nil, err
	}
	if o.Agent == nil {
		o.Agent = t.engine.Agents.Agent
	}
	if o.Offers == nil {
		o.Offers = drivers.Offers(t.Lead().Agent)
	}
	t.procs.Store(procs)
	runs := host.New(host.Options{Replica: t.Replica, Agent: o.Agent, Offers: o.Offers,
		Relay: t.engine.Agents.Relay(), Role: t.engine.role, Hosts: t.Hosts(), Procs: procs, ID: id, Env: o.Env,
		Log: t.engine.Note, Said: o.Said, UntilIdle: o.UntilIdle, StopGrace: o.StopGrace, Checkpoints: t.OnDisk(),
		Merge: func(ctx context.Context, members []string) (host.Merged, func(), error) {
			return consolidate.Hold(ctx, t.Consolidation(), members)
		}})
	t.Project(ctx)
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	h := &Host{id: id, end: end, done: make(chan struct{})}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		t.KeepProjections(running)
	}()
	go func() {
		defer close(h.done)
		h.err = runs.Run(running)
		t.procs.Store(nil) // which is closed: no hook could be asked through it
		end()
		<-shown
	}()
	return h, nil
}

// ID is unique for ever.
func (h *Host) ID() string { return h.id }

// Done is closed when the host has ended and no session of it runs.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err says why the host could not continue, once it is done; nil where it was ended, or its team
// was.
func (h *Host) Err() error {
	<-h.done
	return h.err
}

// End ends the sessions, waits for that, and returns what Err does. It may be called again.
func (h *Host) End() error {
	h.end()
	return h.Err()
}

// KeepProjections keeps what Claude Code is shown up to date while the team changes, until ctx
// ends. A host does that by itself.
func (t *Team) KeepProjections(ctx context.Context) {
	if !t.OnDisk() {
		return
	}
	pause := time.NewTimer(projectEvery)
	defer pause.Stop()
	for seq := t.Seq(); t.Wait(ctx, seq) == nil; {
		seq = t.Seq()
		t.Project(ctx)
		pause.Reset(projectEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// Runnable refuses a team whose sessions may not run here: this machine let go of it, the
// repository has another history or a later state of it ([transfer.MovedError],
// [checkpoint.ForkError]), or nobody can work in its directory. A team that has ended has no
// sessions, and nothing is refused. It is asked once; what [Team.Host] would ask again is known
// then.
func (t *Team) Runnable(ctx context.Context) error {
	of := t.Team()
	if t.runnable || of.Ended() {
		return nil
	}
	if err := errors.Join(of.CheckOurs(), of.CheckHere(), t.workable(ctx, of)); err != nil {
		return err
	}
	if t.OnDisk() {
		if err := transfer.Here(ctx, t.Replica, t.Dir, false); err != nil {
			return err
		}
	}
	t.runnable = true
	return nil
}

// workable refuses a team in whose directory nobody can work.
func (t *Team) workable(ctx context.Context, of team.Team) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	return unworkable(of, checkout.Check(ctx, procs, of))
}

// unworkable is the refusal that follows from what [checkout.Check] found.
func unworkable(t team.Team, err error) error {
	if checkout.IsMissing(err) {
		return team.Refuse(team.Invalid, "nobody can work for team %s: %v", t.Name, err).With(team.HintsOf(err)...)
	}
	return err
}

// Claim takes the right to lead the team, which one process at a time has, until release is called.
// It is refused with NotReady while another one has it.
func (t *Team) Claim(ctx context.Context) (release func(), err error) {
	held := false
	if t.kept != nil {
		release, held = t.engine.Memory.claim(t.kept)
	} else {
		lock, err := leader.Claim(t.Dir)
		if err != nil && !errors.Is(err, filelock.ErrHeld) {
			return nil, err
		}
		if held = err == nil; held {
			release = func() { lock.Unlock() }
		}
	}
	if !held {
		name := t.Team().Name
		return nil, team.Refuse(team.NotReady, "team %s is being run already", name).
			With(team.Hint{Action: team.ActFollowLog, Team: name})
	}
	if err := t.Refresh(ctx); err != nil { // another process has led until now
		release()
		return nil, err
	}
	return release, nil
}
