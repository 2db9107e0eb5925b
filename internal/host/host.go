// Package host is the host: the one loop that makes a team's wants true for the members whose lease
// it holds.
//
// # Authority
//
// A host decides nothing about the team. It asks the state what is wanted, does that, and reports
// what happened as commands. One goroutine, [Host.Run], owns the seats; each seat has a goroutine
// that reads its session's updates, and one at a time that gives it mail.
//
// # A seat
//
//	want session ──lease taken──▶ starting ──Started──▶ running ──Ended──▶ reported as failed
//	                                                       │ want stop ─────▶ stopped, reported as stopped
//	                                                       │ want gone ─────▶ stopped, given back (detached)
//	                                                       │ want rest ─────▶ its work saved, its tasks on the list, given back: there is no lead
//	                                                       │ lease lost ────▶ stopped, nothing reported: another host has it
//
// # Guarantees
//
//   - A member has a session on one host at most: the lease is taken before the session is started,
//     and every report carries it.
//   - The lease of a dead host is taken over as soon as the kernel has let go of its lock, after
//     what it left running was ended.
//   - A message is recorded as delivered after the session has it.
//   - Nothing is tried again blindly: a session that cannot be started or ends by itself is
//     reported, in its own words.
//   - What a task did is recorded after it is completed: see [tracer].
//   - What was saved of a task is kept with it before the task goes back on the list, and before
//     anything is saved over it.
//   - A host that can record nothing any more ends, and its members go to another one.
//   - When Run returns no session runs and the leases are given back. When the host is killed its
//     children end with it.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/roles"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options of a host.
type Options struct {
	Replica *replica.Replica
	// by the name that members have for it; nil for one that is not known here
	Agent func(name string) agent.Agent
	// names of agents that a lead may spawn, the usual one first
	Offers []string
	// the team's folder of hosts; this one makes its own in it
	Hosts string
	Procs *proc.Register // its children; made with [Enroll]
	ID    string         // that of Procs
	Env   []string       // added to the environment of sessions
	// command that connects its standard input and output with the socket that is its last argument
	Relay []string
	// what a role means in that directory; nil for nothing
	Role func(dir, role string) (roles.Definition, bool, error)
	Log  func(string)
	// Said is told what agents say, from any goroutine, a whole text at a time; nil for the first
	// line of it to Log.
	Said func(member, text string)

	// Merge makes the merged worktree for a task that builds on the work of these members, and
	// keeps others away until release is called; nil for a host whose tasks do not run there.
	Merge func(ctx context.Context, members []string) (m Merged, release func(), err error)
	// Checkpoints has checkpoints of the team made, in the project's repository where there is one.
	Checkpoints bool
	// UntilIdle ends Run when no member has a session any more, as well as when the team has ended.
	UntilIdle bool
	// StopGrace bounds the friendly part of ending a session; 0 for 5 s.
	StopGrace time.Duration
	Machine   Machine // that it runs on
}

const (
	defaultStopGrace = 5 * time.Second
	// lastGrace is what a session has at the deadline of its shutdown: its time to end by itself
	// was before that.
	lastGrace = time.Second
	// watchEvery is how often a host looks whether the hosts of other members live. Only a host
	// that shares its team does.
	watchEvery = 500 * time.Millisecond
	// lookPause keeps what is refused again and again from making a host busy.
	lookPause = time.Second
	// giveBack bounds what is recorded on the way out.
	giveBack = 10 * time.Second
)

// home is the folder of the program's that the team is in.
func (h *Host) home() string { return filepath.Dir(filepath.Dir(filepath.Dir(h.Hosts))) }

// Enroll makes the folder of a new host with that id, and its register of children. The host is in
// the list beside the team's folder, so what its sessions start knows that it runs below it.
func Enroll(hosts, id string) (*proc.Register, error) {
	dir := filepath.Dir(hosts)
	return proc.OpenListed(filepath.Join(hosts, id),
		proc.Listing{Folder: filepath.Join(filepath.Dir(dir), proc.ListFolder), Team: filepath.Base(dir)})
}

// Hosted reports whether a living host is enrolled in the folder of hosts.
func Hosted(hosts string) bool {
	entries, _ := os.ReadDir(hosts)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return proc.Lives(filepath.Join(hosts, e.Name())) })
}

// Terminal is the socket of the tmux server in whose terminal the member's session is, by the
// records of the living hosts in the folder of hosts; "" where it has none.
func Terminal(hosts, member string) string {
	entries, _ := os.ReadDir(hosts)
	for _, e := range entries {
		dir := filepath.Join(hosts, e.Name())
		if !proc.Lives(dir) {
			continue
		}
		// one that cannot be read is another child's, or is found again when it is asked for
		records, _ := proc.Records(dir)
		for _, r := range records {
			if r.Member == member && r.Terminal != "" && proc.Alive(r.Pid, r.Start) {
				return r.Terminal
			}
		}
	}
	return ""
}

// Settle waits until no host of an ended team lives any more, ends what they left running, and
// leaves what members did in worktrees on their branches. hosts is the team's folder of hosts, and
// project the directory that it worked in.
func Settle(ctx context.Context, hosts, project string, log func(string)) error {
	for Hosted(hosts) {
		select {
		case <-ctx.Done():
			return errors.New("a host still lives")
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := Clear(ctx, hosts, log); err != nil {
		return err
	}
	return KeepWork(ctx, filepath.Dir(hosts), project, log)
}

// Clear ends what dead hosts left running, whether or not a member's lease names them, and removes
// their folders.
func Clear(ctx context.Context, hosts string, log func(string)) error {
	entries, err := os.ReadDir(hosts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, bury(ctx, filepath.Join(hosts, e.Name()), log))
	}
	return errors.Join(errs...)
}

// bury ends what the host of that folder left running and removes the folder, unless the host
// lives.
func bury(ctx context.Context, dir string, log func(string)) error {
	if proc.Lives(dir) {
		return nil
	}
	strays, err := proc.EndStrays(ctx, dir)
	for _, stray := range strays {
		log(fmt.Sprintf("ended what a dead host had left running for %s: process %d", stray.Member, stray.Pid))
	}
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := proc.Remove(dir); !errors.Is(err, filelock.ErrHeld) {
		return err
	}
	return nil
}

// Host runs sessions for one team.
type Host struct {
	Options
	pulse   *pulse
	covered atomic.Int64 // how many records of the team the last checkpoint covers
	kept    func()       // ends the making of checkpoints, with a last one
	tracer  *tracer
	seats   map[string]*seat // by member
	ended   chan *seat
	look    chan struct{} // a seat has room for what was wanted before
	broken  chan error    // nothing can be recorded any more
	over    chan struct{} // closed when Run returns
}

// New returns a host that is ready to run.
func New(o Options) *Host {
	if o.StopGrace == 0 {
		o.StopGrace = defaultStopGrace
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Said == nil {
		o.Said = func(member, text string) { o.Log(member + ": " + firstLine(text)) }
	}
	o.Machine = o.Machine.fill(o.Hosts, o.Log)
	h := &Host{Options: o, kept: func() {}, pulse: newPulse(o), seats: map[string]*seat{},
		ended: make(chan *seat), look: make(chan struct{}, 1), broken: make(chan error, 1), over: make(chan struct{})}
	h.tracer = newTracer(h.Replica, h.Procs, h.teamDir(), filepath.Join(h.Hosts, h.ID), team.Host(h.ID), h.Log)
	h.tracer.again, h.tracer.broken, h.tracer.project = h.lookSoon, h.fail, h.Machine.Project
	h.pulse.others.Do = func(ctx context.Context, body team.Body) error { return h.do(ctx, body, 0) }
	return h
}

// Run makes wants true until ctx ends, the team has ended, or with UntilIdle no session is left.
// Its error says why it could not continue; the end of ctx is none.
func (h *Host) Run(ctx context.Context) error {
	defer close(h.over)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan error, 1)
	go h.watch(watching, h.Replica.Seq(), changed) // from before the first look, whose own commands are changes too

	if h.Checkpoints {
		h.startKeeping(ctx)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var failure error
	for failure == nil && ctx.Err() == nil {
		next, live, err := h.reconcile(ctx)
		if err != nil && ctx.Err() == nil {
			failure = err
			break
		}
		if !live {
			break
		}
		timer.Reset(min(next, h.beat(ctx)))
		select {
		case <-ctx.Done():
		case failure = <-changed:
		case failure = <-h.broken:
		case <-timer.C:
		case <-h.look:
		case s := <-h.ended:
			h.vacate(s)
		}
	}
	stop()
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack+h.StopGrace)
	defer cancel()
	return errors.Join(failure, h.leave(out))
}

// watch tells of changes of the team after seq. A change that comes while one is told of is told of
// with it.
func (h *Host) watch(ctx context.Context, seq int64, changed chan<- error) {
	for {
		err := h.Replica.Wait(ctx, seq)
		if ctx.Err() != nil {
			return
		}
		seq = h.Replica.Seq()
		select {
		case changed <- err:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// reconcile does what is wanted now. It returns when to look again though nothing happens, and
// whether there is anything to stay for.
func (h *Host) reconcile(ctx context.Context) (next time.Duration, live bool, err error) {
	now := h.Replica.Now()
	var (
		wants   []team.Want
		due     team.Time
		members []team.Member
		over    bool
		unrun   = "nothing is to run now"
	)
	h.Replica.View(func(s *team.State) {
		wants, due = s.Wants(now)
		members = s.Members()
		over = ended(s)
		if s.Team().Exhausted != "" {
			unrun = "the budget of the team was spent"
		}
	})
	next = time.Hour
	if due != 0 {
		next = max(0, time.Duration(due-now)*time.Millisecond)
	}
	wanted := map[string]bool{}
	for _, w := range wants {
		i := slices.IndexFunc(members, func(m team.Member) bool { return m.Name == w.Member })
		switch w.Kind {
		case team.WantBudgetCheck:
			err = h.do(ctx, &team.CheckBudget{}, 0)
		case team.WantExpirePermission:
			err = h.do(ctx, &team.ExpirePermission{Request: w.Request}, 0)
		case team.WantExpireShutdown:
			err = h.do(ctx, &team.ExpireShutdown{Member: w.Member}, 0)
		case team.WantMarkLate:
			err = h.do(ctx, &team.MarkLate{Member: w.Member}, 0)
		case team.WantExpirePlan:
			err = h.do(ctx, &team.ExpirePlan{Request: w.Request}, 0)
		case team.WantBase, team.WantRecord:
			if i < 0 || members[i].Host == h.ID || members[i].Host == "" { // else its own host does it
				h.tracer.begin(w.Task)
			}
		case team.WantSession:
			if h.Agent(members[i].Agent) == nil {
				break // it waits for a host that knows its agent
			}
			wanted[w.Member] = true
			if members[i].Host != h.ID && members[i].Host != "" {
				next = min(next, watchEvery)
			}
			err = h.session(ctx, members[i])
		case team.WantRest:
			wanted[w.Member] = true
			if s := h.seats[w.Member]; s != nil && s.incarnation == w.Incarnation {
				s.stop(stopRest, w.Reason, h.StopGrace)
			} else if members[i].Host != h.ID {
				next = min(next, watchEvery)
				err = h.takeOver(ctx, members[i]) // its host is dead, or sees to it
			} else {
				err = h.detach(ctx, members[i], w.Reason)
			}
		case team.WantHandover:
			if s := h.seats[w.Member]; s != nil && s.incarnation == w.Incarnation {
				s.stop(stopFresh, w.Reason, h.StopGrace)
			}
		case team.WantDelivery, team.WantWork, team.WantRetry, team.WantAccess, team.WantSave, team.WantYield:
			if s := h.seats[w.Member]; s != nil && s.incarnation == w.Incarnation {
				s.give(w)
			}
		case team.WantStop:
			wanted[w.Member] = true
			if s := h.seats[w.Member]; s != nil {
				grace := h.StopGrace
				if members[i].Shutdown.Answer != "approved" {
					grace = min(grace, lastGrace)
				}
				s.stop(stopReport, w.Reason, grace)
			} else if members[i].Host == h.ID {
				if err = h.keepSaved(ctx, w.Member, h.sends(0)); err != nil {
					break
				}
				h.leaveWork(members[i])
				err = h.do(ctx, &team.ReportStopped{Member: w.Member, Reason: w.Reason}, members[i].Lease)
			} else if members[i].Host != "" {
				next = min(next, watchEvery)
				err = h.takeOver(ctx, members[i])
			}
		}
		if err != nil {
			return 0, true, err
		}
	}
	for name, s := range h.seats {
		i := slices.IndexFunc(members, func(m team.Member) bool { return m.Name == name })
		switch {
		case i < 0 || members[i].Host != h.ID || members[i].Lease != s.lease || over:
			s.stop(stopQuietly, "", h.StopGrace)
		case !wanted[name]:
			s.stop(stopDetach, unrun, h.StopGrace)
		default:
			s.remind()
		}
	}
	idle := h.UntilIdle && len(wanted) == 0 && len(h.seats) == 0
	return next, !idle && !(over && len(h.seats) == 0), nil
}

func ended(s *team.State) bool {
	t := s.Team()
	return !s.Exists() || t.Status == team.TeamComplete || t.Status == team.TeamAborted ||
		t.Released != (team.Released{})
}

// session sees to it that the member has a seat here, if its lease can be had.
func (h *Host) session(ctx context.Context, m team.Member) error {
	switch s := h.seats[m.Name]; {
	case s != nil:
		return nil
	case m.Host == h.ID && m.Status == team.Spawning:
		h.seat(m, h.Agent(m.Agent))
		return nil
	case m.Host == h.ID:
		// Its seat is gone and the report of that was refused or is under way.
		return h.detach(ctx, m, team.SessionGone)
	}
	return h.takeOver(ctx, m)
}

// detach gives the lease of a member without a session back.
func (h *Host) detach(ctx context.Context, m team.Member, reason string) error {
	if err := h.keepSaved(ctx, m.Name, h.sends(0)); err != nil {
		return err
	}
	return h.do(ctx, &team.DetachMember{Member: m.Name, Reason: reason}, m.Lease)
}

// takeOver takes the lease of a member that has none, or whose host is dead.
func (h *Host) takeOver(ctx context.Context, m team.Member) error {
	if m.Host != "" {
		if h.Machine.Hosts.Lives(m.Host) {
			return nil
		}
		if err := h.Machine.Hosts.Clear(ctx, m.Host); err != nil {
			h.Log(fmt.Sprintf("what the dead host of %s left cannot be ended yet: %v", m.Name, err))
			return nil // its lease stays where it is until it can
		}
	}
	as := h.sends(0) // one host at a time: an older file must not be kept over a newer one
	if m.Shutdown.Request != "" {
		as = byUser(h.Replica) // it ends with this, and its tasks are anybody's
		if err := h.keepSaved(ctx, m.Name, as); err != nil {
			return err
		}
	}
	if err := h.do(ctx, &team.AttachMember{Member: m.Name, From: m.Host, Ending: m.Shutdown.Request}, 0); err != nil {
		return err
	}
	return h.keepSaved(ctx, m.Name, as)
}

// do sends a command as the host, from any goroutine. A refusal is no failure of the host: the
// state moved on, and the next look shows where to.
func (h *Host) do(ctx context.Context, body team.Body, lease int64) error {
	_, err := h.send(ctx, team.Command{Actor: team.Host(h.ID), Lease: lease, Body: inWords(body)})
	if code := team.CodeOf(err); code != "" {
		h.Log(fmt.Sprintf("refused: %v", err))
		return nil
	}
	return err
}

// send sends a command. A host whose journal can record nothing any more ends, whoever of its
// members found out: it must not keep them.
func (h *Host) send(ctx context.Context, c team.Command) (replica.Receipt, error) {
	receipt, err := h.Replica.Do(ctx, c)
	if replica.Broken(err) {
		h.fail(err)
	}
	return receipt, err
}

// fail ends the host, whoever finds that nothing can be recorded any more: it must not keep its
// leases.
func (h *Host) fail(err error) {
	select {
	case h.broken <- err:
	default:
	}
}

// lookSoon has the host look again at what is wanted.
func (h *Host) lookSoon() {
	select {
	case h.look <- struct{}{}:
	default: // it is about to
	}
}

func (h *Host) vacate(s *seat) {
	delete(h.seats, s.member)
	if err := h.Machine.Beats.Forget(s.member); err != nil {
		h.Log(err.Error())
	}
}

// leave ends every session, gives the leases back, unless the team has ended and takes none, and
// lets go of the register.
func (h *Host) leave(ctx context.Context) error {
	how := stopDetach
	h.Replica.View(func(s *team.State) {
		if ended(s) {
			how = stopQuietly
		}
	})
	for _, s := range h.seats {
		s.stop(how, "its host ended", h.StopGrace)
	}
	for len(h.seats) > 0 {
		select {
		case s := <-h.ended:
			h.vacate(s)
		case <-ctx.Done():
			h.tracer.close(ctx)
			h.kept()
			return errors.Join(fmt.Errorf("%d sessions did not end in time and were killed", len(h.seats)),
				h.Procs.Close(context.WithoutCancel(ctx)))
		}
	}
	if err := h.tracer.settle(ctx, ""); err != nil {
		h.Log("what tasks did is not recorded: " + err.Error())
	}
	h.tracer.close(ctx)
	h.kept()
	var mine []team.Member
	h.Replica.View(func(s *team.State) {
		if ended(s) {
			return
		}
		for _, m := range s.Members() {
			if m.Host == h.ID && m.Status.Running() {
				mine = append(mine, m)
			}
		}
	})
	var errs []error
	for _, m := range mine {
		errs = append(errs, h.detach(ctx, m, "its host ended"))
	}
	errs = append(errs, h.Procs.Close(ctx))
	os.RemoveAll(filepath.Join(h.Hosts, h.ID))
	return errors.Join(errs...)
}
