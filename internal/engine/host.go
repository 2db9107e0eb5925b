package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/agent/sessionlog"
	"cadre/internal/consolidate"
	"cadre/internal/engine/transfer"
	"cadre/internal/git/checkout"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// projectEvery is the shortest time between two projections of a team that changes constantly.
const projectEvery = 200 * time.Millisecond

// HostOptions say how a host runs the sessions of a team. The zero HostOptions run sessions of the
// engine's drivers, until the host or the team ends.
type HostOptions struct {
	// Agent returns an agent by the name that members have for it, and nil for one that this host
	// does not know. If Agent is nil, the host uses the engine's drivers.
	Agent func(name string) agent.Agent
	// Offers are the agents that a lead may spawn, the default first; nil for the installed ones.
	Offers []string
	// Env is added to the environment of sessions.
	Env []string
	// Said gets what agents say, a whole text at a time, from any goroutine. If it is nil, the
	// engine's Log gets the first line.
	Said func(member, text string)
	// Outer connects the host of a nested team with the session that runs the team. The zero value
	// is for a team by itself.
	Outer host.Outer
	// UntilIdle ends the host when no member has a session any more.
	UntilIdle bool
	// StopGrace bounds how long a session may take to end by itself; 0 for the host's default.
	StopGrace time.Duration
	// Hurry and Kill shorten that. Once Hurry is closed a session has a second; once Kill is closed
	// it has no time. nil for never.
	Hurry, Kill <-chan struct{}
	// Runner makes this the host of a machine that runs members by their labels; nil for one that
	// runs the team itself.
	Runner *host.Runner
	// Pause is called when another process asks to pause the team: see [Team.Pause]. The host must
	// then be paused with [Host.Pause]. If Pause is nil, the host does that by itself.
	Pause func()
}

// Host runs the sessions of a team until the host or the team ends.
type Host struct {
	id   string
	end  context.CancelCauseFunc
	done chan struct{}
	err  error // read only after done is closed
}

// MaxParallelVariable limits how many teammates of all teams on this machine have a turn at a time,
// beside the person's settings. The smaller limit counts.
const MaxParallelVariable = "CADRE_MAX_PARALLEL"

// turns returns the limit of turns on this machine.
func (t *Team) turns() (limit host.Turns, err error) {
	if !t.OnDisk() {
		return limit, nil
	}
	limit.Dir = filepath.Join(t.engine.Home.Root, "turns")
	if t.engine.MachineTurns != nil {
		limit.By = "maxParallel in settings.json"
		if limit.Most, err = t.engine.MachineTurns(); err != nil {
			return limit, err
		}
	}
	text := os.Getenv(MaxParallelVariable)
	if text == "" {
		return limit, nil
	}
	most, err := strconv.Atoi(text)
	if err != nil || most < 1 || most > maxTurns {
		return limit, team.Refuse(team.Invalid, "%s is %q; set it to a number from 1 to %d, or unset it",
			MaxParallelVariable, text, maxTurns)
	}
	if limit.Most == 0 || most < limit.Most {
		limit.Most, limit.By = most, MaxParallelVariable
	}
	return limit, nil
}

// maxTurns bounds the turns on this machine, each of which is a file.
const maxTurns = 1000

// Host starts a host of the team in this process. ctx bounds only the start. The host must end
// before the team is closed. A team has at most one host in a process at a time.
func (t *Team) Host(ctx context.Context, o HostOptions) (*Host, error) {
	if err := t.Runnable(ctx); err != nil {
		return nil, err
	}
	if o.Runner == nil {
		if err := t.unpause(ctx); err != nil {
			return nil, err
		}
	}
	turns, err := t.turns()
	if err != nil {
		return nil, err
	}
	if err := t.EndChildren(ctx); err != nil { // that an earlier host left
		return nil, err
	}
	if err := host.Clear(ctx, t.Hosts(), t.engine.Note); err != nil {
		return nil, err
	}
	id := strings.ToLower(replica.NewID())
	if o.Runner != nil {
		id = host.RunnerPrefix + id
	}
	procs, lease, err := host.Enroll(ctx, t.Shared(), t.Hosts(), id)
	if err != nil {
		return nil, err
	}
	t.procs.Store(procs)
	options := t.hostOptions(o)
	options.Procs, options.Lease, options.ID, options.Turns = procs, lease, id, turns
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unserve, err := t.serve(running, id)
	if err != nil {
		end(nil)
		t.procs.Store(nil)
		return nil, errors.Join(err, procs.Close(ctx), lease.Release())
	}
	runs := host.New(options)
	t.Project(ctx)
	h := &Host{id: id, end: end, done: make(chan struct{})}
	var beside sync.WaitGroup
	beside.Go(func() { t.KeepProjections(running) })
	beside.Go(func() { h.awaitPause(running, t.Shared(), o.Pause) })
	go func() {
		defer close(h.done)
		h.err = runs.Run(running)
		t.procs.Store(nil) // that register is closed: hooks cannot run through it
		end(nil)
		unserve()
		beside.Wait()
	}()
	return h, nil
}

// hostOptions returns the options of a host, without what is made for each one.
func (t *Team) hostOptions(o HostOptions) host.Options {
	if o.Agent == nil {
		o.Agent = t.engine.Agents.Agent
	}
	o.Agent = t.withNested(o)
	if o.Offers == nil {
		o.Offers = drivers.Offers(t.Lead().Agent)
	}
	options := host.Options{Replica: t.Replica, Agent: o.Agent, Offers: o.Offers, Room: t.room(),
		Relay: t.engine.Agents.Relay(), Role: t.engine.role, Hosts: t.Hosts(), Env: o.Env, Log: t.engine.Note,
		Said: o.Said, Outer: o.Outer, UntilIdle: o.UntilIdle, StopGrace: o.StopGrace, Hurry: o.Hurry, Kill: o.Kill, Runner: o.Runner,
		// a database is on every machine, and has backups
		Checkpoints: t.OnDisk() && t.engine.Home.Place == nil,
		Machine:     host.Machine{Shared: t.Shared()},
		Merge: func(ctx context.Context, members []string) (host.Merged, func(), error) {
			return consolidate.Hold(ctx, t.Consolidation(), members)
		}}
	if t.OnDisk() {
		options.Sessions = sessionlog.Of(filepath.Dir(t.Hosts()))
	}
	return options
}

// awaitPause ends the host, or calls pause, when another process asks for it with [Team.Pause].
func (h *Host) awaitPause(ctx context.Context, values store.Values, pause func()) {
	key := store.PauseKey(h.id)
	if values.Await(ctx, key) != nil {
		return
	}
	if pause == nil {
		pause = func() { h.end(host.ErrPaused) }
	}
	pause()
	_ = values.Delete(context.WithoutCancel(ctx), key) // it goes with the team at the latest
}

// withNested returns the agents of the options, and the one of members that are teams.
func (t *Team) withNested(o HostOptions) func(name string) agent.Agent {
	nested := t.engine.Nested
	if nested == nil {
		return o.Agent
	}
	return func(name string) agent.Agent {
		if name == team.NestedTeam {
			return nested(t, o)
		}
		return o.Agent(name)
	}
}

// ID returns the host's id, which is globally unique.
func (h *Host) ID() string { return h.id }

// Done returns a channel that is closed when the host has ended and no session of it is running.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err returns why the host could not continue, once it is done. It is nil if the host was ended, or
// its team has ended.
func (h *Host) Err() error {
	<-h.done
	return h.err
}

// End ends the sessions, waits for that, and returns [Host.Err]. It may be called again.
func (h *Host) End() error {
	h.end(nil)
	return h.Err()
}

// Pause is End for a team that will be resumed: its members are recorded as paused.
func (h *Host) Pause() error {
	h.end(host.ErrPaused)
	return h.Err()
}

// KeepProjections updates the projections for Claude Code while the team changes, until ctx ends. A
// host does that by itself.
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

// Runnable refuses a team whose sessions may not run here. This machine released the team, or the
// repository has another history or a later state of it ([transfer.MovedError],
// [checkpoint.ForkError]), or its directory is not usable. It refuses nothing for a team that
// has ended, which has no sessions. The answer is kept, so [Team.Host] does not check again.
func (t *Team) Runnable(ctx context.Context) error {
	of := t.Team()
	if t.runnable || of.Ended() {
		return nil
	}
	if err := errors.Join(of.CheckOurs(), of.CheckHere(), t.workable(ctx, of)); err != nil {
		return err
	}
	// the parent of a nested team decided that this copy of the tree continues
	if t.OnDisk() && (of.Parent.Team == "" || t.engine.Home.Has(of.Parent.Team) == "") {
		if err := transfer.Here(ctx, t.Replica, t.Dir, false); err != nil {
			return lasting(err)
		}
	}
	t.runnable = true
	return nil
}

// workable refuses a team whose directory is not usable.
func (t *Team) workable(ctx context.Context, of team.Team) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	return unworkable(of, checkout.Check(ctx, procs, of))
}

// unworkable returns the refusal for what [checkout.Check] found.
func unworkable(t team.Team, err error) error {
	if checkout.IsMissing(err) {
		return team.Refuse(team.Invalid, "no member can work for team %s: %v", t.Name, err).With(team.HintsOf(err)...)
	}
	return err
}

// Claim takes the right to lead the team until the lease is released or lost. One process at a time
// has it. Claim refuses with NotReady while another process does.
func (t *Team) Claim(ctx context.Context) (store.Lease, error) {
	lease, err := leader.Claim(ctx, t.Shared())
	if errors.Is(err, store.ErrHeld) {
		name := t.Team().Name
		return nil, team.Refuse(team.NotReady, "team %s is being run already", name).
			With(team.Hint{Action: team.ActFollowLog, Team: name})
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(t.Refresh(ctx), t.unpause(ctx)); err != nil { // another process led until now
		return nil, errors.Join(err, lease.Release())
	}
	return lease, nil
}
