// Package host runs the sessions of the members whose lease it holds: one loop fulfils the wants of
// the team.
//
// # Authority
//
// A host decides nothing about the team. It takes the wants from the state, fulfils them, and
// reports the results as commands. One goroutine, [Host.Run], owns the slots. Each slot has a
// goroutine that reads its session's updates, and at most one that gives it mail.
//
// # A slot
//
//	want session ──lease taken──▶ starting ──Started──▶ running ──Ended──▶ reported as failed
//	                                                       │ want stop ─────▶ stopped, reported as stopped
//	                                                       │ want gone ─────▶ stopped, lease returned (detached)
//	                                                       │ want rest ─────▶ its work saved, its tasks queued, lease returned: no lead
//	                                                       │ lease lost ────▶ stopped, nothing reported: another host has it
//	                                                       │                  or may get it
//
// # Guarantees
//
//   - A member has a session on at most one host: the lease is taken before the session starts, and
//     every report carries it.
//   - The members of a dead host are taken over as soon as its lease [store.Host] is free, after the
//     processes that it left on this machine are ended.
//   - A message is recorded as delivered after the session has it.
//   - Nothing is retried blindly: a session that does not start, or ends by itself, is reported in
//     its own words.
//   - What a task did is recorded only after it is completed: see [tracer].
//   - Saved work of a task is kept with the task before the task returns to the queue, and before
//     other work is saved over it.
//   - A host that can record nothing any more ends, and other hosts take its members.
//   - A host whose lease can be lost has ended its sessions before another process can get it: see
//     [ErrLeaseLost]. A session that runs in the host's own process is only told to end.
//   - When Run returns, no session is running and the leases are returned. When the host is killed,
//     its children end with it.
//
// # Files
//
//	host.go, slot.go       the loop, and one session from its lease to its last report; the loop's steps
//	                       share its state, so host.go is longer than other files
//	claim.go, dismiss.go   how a session begins, and how it ends
//	give.go, post.go       the delivery of mail to a session
//	follow.go, tools.go    a session's updates and tool calls; reads.go its calls that only read, for plan mode
//	questions.go           a session's requests for permission and its plans
//	trace.go, personal.go  the work of a task as commits, without the person's own files
//	save.go, work.go       work that is kept when a task or a member ends
//	expand.go              the items of tasks that make one task for each
//	paths.go, writes.go    which member may change which files, and who changed the files of others
//	fence.go               the end of a host that loses its lease
//	ending.go              who aborts the team, and what still runs then
//	beat.go                heartbeats
//	turns.go               how many teammates have a turn on the machine at a time
//	pool.go, limit.go      which members share a rate limit, and what their sessions say of it
//	checkpoint.go, tree.go checkpoints of the team, and of the teams in it, in the repository
//	machine.go             the parts of the computer that tests replace
//	plainerrors.go         errors of programs as plain text
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/roles"
	"cadre/internal/agent/sessionlog"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/render/excerpt"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options configure a host.
type Options struct {
	Replica *replica.Replica
	// Agent returns an agent by the name that members have for it; nil for an unknown one.
	Agent func(name string) agent.Agent
	// Room reserves room for a teammate that the lead is about to add with its tools, or refuses
	// it; nil if nobody counts. giveBack is called if the teammate is not added.
	Room func(ctx context.Context, name string) (giveBack func(), err error)
	// Offers are the names of the agents that a lead may spawn, the default first.
	Offers []string
	// Hosts is the team's folder of hosts, in which this host makes its own.
	Hosts string
	Procs *proc.Register // for its children; made with [Enroll]
	Lease store.Lease    // made with it; nil for a host that has none
	ID    string         // that of Procs
	Env   []string       // added to the environment of sessions
	// Relay is the command that connects its standard input and output with the socket that is its
	// last argument.
	Relay []string
	// Role returns the definition of a role in that directory; nil for no roles.
	Role func(dir, role string) (roles.Definition, bool, error)
	Log  func(string)
	// Sessions is the team's folder for the logs of its sessions; "" keeps no logs.
	Sessions sessionlog.Folder
	// Said gets what agents say, a whole text at a time, from any goroutine. If it is nil, Log gets
	// the first line.
	Said func(member, text string)
	// Outer connects the host of a nested team with the session that runs the team. The zero Outer
	// is for a team by itself.
	Outer Outer

	// Merge makes the merged worktree for a task that builds on the work of these members, and
	// locks it until release is called. It is nil for a host whose tasks do not run there.
	Merge func(ctx context.Context, members []string) (m Merged, release func(), err error)
	// Checkpoints turns on checkpoints of the team, in the project's repository if there is one.
	Checkpoints bool
	// UntilIdle ends Run when no member has a session any more, and when the team has ended.
	UntilIdle bool
	// StopGrace bounds how long a session may take to end by itself; 0 for 5 s.
	StopGrace time.Duration
	// Hurry and Kill shorten the end of sessions. Once Hurry is closed a session has a second; once
	// Kill is closed it has no time. nil for never.
	Hurry, Kill <-chan struct{}
	Turns       Turns   // how many teammates have a turn on this machine at a time
	Runner      *Runner // of a machine that runs members by their labels; nil where the team itself is run
	Machine     Machine // that the host runs on
}

// ErrPaused is the cause that cancels the context of [Host.Run] when the team will be resumed
// later.
var ErrPaused = errors.New(team.PausedReason)

const (
	defaultStopGrace = 5 * time.Second
	// lastGrace is the time that a session has after the deadline of its shutdown. It had its time
	// to end by itself before that.
	lastGrace = time.Second
	// watchEvery is how often a host checks whether the hosts of other members are alive. Only a
	// host that shares its team does that.
	watchEvery = 500 * time.Millisecond
	// lookPause slows a host down when the same thing is refused again and again.
	lookPause = time.Second
	// giveBack bounds the time for the last records when the host ends.
	giveBack = 10 * time.Second
)

// home returns cadre's folder that contains the team.
func (h *Host) home() string { return filepath.Dir(filepath.Dir(filepath.Dir(h.Hosts))) }

// Enroll takes the lease of a new host with that id, and makes the host's folder with its register
// of children. On files the lease is the lock of the register. The host is listed beside the team's
// folder, so that programs which its sessions start know that they run below it. The lease must be
// released after the register is closed.
func Enroll(ctx context.Context, leases store.Leases, hosts, id string) (*proc.Register, store.Lease, error) {
	lease, err := leases.Acquire(ctx, store.Host(id))
	if err != nil {
		return nil, nil, fmt.Errorf("enroll the host: %w", err)
	}
	dir := filepath.Dir(hosts)
	procs, err := proc.OpenListed(filepath.Join(hosts, id),
		proc.Listing{Folder: layout.RunningOf(dir), Team: filepath.Base(dir),
			Alive: filestore.LockOf(lease)})
	if err != nil {
		return nil, nil, errors.Join(err, lease.Release())
	}
	return procs, lease, nil
}

// Hosted reports whether a host of the team is running. If that cannot be found out, it returns
// true.
func Hosted(ctx context.Context, leases store.Leases) bool {
	held, err := leases.AllHeld(ctx, store.HostPrefix)
	return err != nil || len(held) > 0
}

// HostedHere is Hosted without the machines that run members by their labels.
func HostedHere(ctx context.Context, leases store.Leases) bool {
	held, err := leases.AllHeld(ctx, store.HostPrefix)
	return err != nil || slices.ContainsFunc(held, func(lease string) bool {
		return !strings.HasPrefix(lease, store.Host(RunnerPrefix))
	})
}

// Running returns the folders, in the folder of hosts, of those that run on this machine.
func Running(hosts string) (dirs []string) {
	entries, _ := os.ReadDir(hosts)
	for _, e := range entries {
		if dir := filepath.Join(hosts, e.Name()); proc.HostAlive(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Terminal returns the socket of the tmux server whose terminal shows the member's session, by the
// records of the hosts on this machine; "" for none.
func Terminal(hosts, member string) string {
	for _, dir := range Running(hosts) {
		// an unreadable record is another child's, or is reported when the session is asked for
		records, _ := proc.Records(dir)
		for _, r := range records {
			if r.Member == member && r.Terminal != "" && proc.Alive(r.Pid, r.Start) {
				return r.Terminal
			}
		}
	}
	return ""
}

// Settle waits until no host of an ended team is running, ends the processes that they left on this
// machine, and commits the work in members' worktrees to their branches. hosts is the team's folder
// of hosts, and project the directory that it worked in. If ctx ends before, the error names the
// processes of this machine that are still running.
func Settle(ctx context.Context, leases store.Leases, hosts, project string, log func(string)) error {
	for Hosted(ctx, leases) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("a host is still running%s", Sessions(hosts))
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := Clear(ctx, hosts, log); err != nil {
		return err
	}
	return KeepWork(ctx, filepath.Dir(hosts), project, log)
}

// Clear ends the processes that dead hosts left on this machine, whether or not a member's lease
// names the host, and removes the hosts' folders.
func Clear(ctx context.Context, hosts string, log func(string)) error {
	entries, err := os.ReadDir(hosts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, reap(ctx, filepath.Join(hosts, e.Name()), log))
	}
	return errors.Join(errs...)
}

// reap ends the processes that the host of that folder left, and removes the folder. It does
// nothing if the host is running.
func reap(ctx context.Context, dir string, log func(string)) error {
	if proc.HostAlive(dir) {
		return nil
	}
	strays, err := proc.EndStrays(ctx, dir)
	for _, stray := range strays {
		log(fmt.Sprintf("ended process %[2]d, which a dead host had left running for %[1]s", stray.Member, stray.Pid))
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
	covered atomic.Int64 // number of the team's records that the last checkpoint covers
	kept    func()       // stops the making of checkpoints, with a last one
	tracer  *tracer
	writes  writes
	turns   machineTurns // only Run uses it
	// its commands end before Run returns
	expander expander
	round    round            // the present look at the team; only Run uses it, and slots
	slots    map[string]*slot // by member
	ended    chan *slot
	look     chan struct{} // a slot has room again for an earlier want
	broken   chan error    // why nothing can be recorded any more
	over     chan struct{} // closed when Run returns
	fence    *fence        // ends the sessions before the lease is lost
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
		o.Said = func(member, text string) { o.Log(member + ": " + excerpt.FirstLine(text)) }
	}
	o.Outer = o.Outer.fill()
	o.Machine = o.Machine.fill(o.Hosts, o.Log)
	h := &Host{Options: o, kept: func() {}, pulse: newPulse(o), slots: map[string]*slot{},
		round: round{wanted: map[string]bool{}},
		ended: make(chan *slot), look: make(chan struct{}, 1), broken: make(chan error, 1), over: make(chan struct{}),
		fence: newFence()}
	h.turns.Turns, h.turns.queue = o.Turns, queue{dir: o.Turns.Dir, id: o.ID}
	if h.Machine.Items == nil {
		h.Machine.Items = h.items
	}
	h.tracer = newTracer(h.Replica, h.Procs, h.teamDir(), filepath.Join(h.Hosts, h.ID), team.Host(h.ID), h.Log)
	h.tracer.machine = h.machine()
	h.tracer.again, h.tracer.broken, h.tracer.project = h.lookSoon, h.fail, h.Machine.Project
	h.pulse.others.Do = func(ctx context.Context, body team.Body) error { return h.do(ctx, body, 0) }
	return h
}

// Run fulfils the team's wants until ctx ends, the team has ended, or with UntilIdle no session is
// left. It returns nil when ctx is cancelled, and otherwise why it could not continue.
func (h *Host) Run(ctx context.Context) error {
	defer close(h.over)
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	h.guard(ctx, lost)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	expanding, stopExpanding := context.WithCancel(ctx)
	defer stopExpanding()
	h.expander.ctx = expanding
	changed := make(chan error, 1)
	go h.watch(watching, h.Replica.Seq(), changed) // from before the first look: its own commands are changes too

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
			h.vacate(context.WithoutCancel(ctx), s)
		}
	}
	stop()
	stopExpanding()
	defer h.freeTurns(&round{}, nil)
	if errors.Is(context.Cause(ctx), ErrLeaseLost) {
		return h.surrender(ctx)
	}
	h.writes.checking.Wait()
	h.expander.under.Wait()
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack+h.StopGrace+h.carryTime())
	defer cancel()
	why := team.RunEndedReason
	switch {
	case failure != nil:
		why = "its host ended"
	case errors.Is(context.Cause(ctx), ErrPaused):
		why = team.PausedReason
	}
	return errors.Join(failure, h.leave(out, why))
}

// watch signals changes of the team after seq. It merges a change into a signal that was not
// received yet.
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

// reconcile fulfils the present wants. It returns when to look again even if nothing changes, and
// whether the host has a reason to stay.
func (h *Host) reconcile(ctx context.Context) (next time.Duration, live bool, err error) {
	r := h.survey()
	used := map[string]bool{} // teammates that start a turn
	for _, w := range r.wants {
		if m := r.member(w.Member); h.turns.Most > 0 && h.turnStarts(m, w) {
			if !h.mayStart(m) {
				r.wanted[m.Name], r.next = r.wanted[m.Name] || w.Kind == team.WantSession, min(r.next, turnPace)
				continue
			}
			used[m.Name] = true
		}
		if err := h.fulfil(ctx, r, w); err != nil {
			return 0, true, err
		}
	}
	for name, s := range h.inOrder() {
		m := r.member(name)
		switch {
		case m == nil || m.Host != h.ID || m.Lease != s.lease || r.over:
			s.stop(stopQuietly, "", h.StopGrace)
		case !r.wanted[name]:
			s.stop(stopDetach, r.whyUnrun(m), h.StopGrace)
		case !h.keeps(team.WantWork):
			s.remind()
		}
	}
	if err := errors.Join(h.releaseSpent(ctx, r), h.drain(ctx, r)); err != nil {
		return 0, true, err
	}
	h.freeTurns(r, used)
	h.watchPaths(ctx)
	idle := h.UntilIdle && len(r.wanted) == 0 && len(h.slots) == 0 && !r.expands
	return r.next, !idle && !(r.over && len(h.slots) == 0), nil
}

// releaseSpent detaches the members of this host that got no session before the budget was spent.
// Others would wait for the end of these sessions for ever.
func (h *Host) releaseSpent(ctx context.Context, r *round) error {
	for _, m := range r.members {
		if m.Host != h.ID || h.slots[m.Name] != nil || r.wanted[m.Name] || r.over || !r.spent && m.Exhausted == "" {
			continue
		}
		if err := h.detach(ctx, m, r.whyUnrun(&m)); err != nil {
			return err
		}
	}
	return nil
}

// round is one look at the team, and its results.
type round struct {
	wants   []team.Want
	members []team.Member
	lead    string          // its name
	over    bool            // the team has ended
	spent   bool            // the budget of the team is spent
	expands bool            // the tasks of a group are about to be made
	unrun   string          // why sessions that are not wanted must end
	wanted  map[string]bool // members that should have a session
	next    time.Duration   // until the next look, even if nothing happens
}

// whyUnrun returns why a session of the member that is not wanted must end.
func (r *round) whyUnrun(m *team.Member) string {
	if m.Exhausted != "" {
		return team.BudgetSpentReason
	}
	return r.unrun
}

// member returns the member of that name, or nil.
func (r *round) member(name string) *team.Member {
	for i := range r.members {
		if r.members[i].Name == name {
			return &r.members[i]
		}
	}
	return nil
}

// survey collects the wants. A host does so at each change of the team, so it reuses the memory of
// the last look.
func (h *Host) survey() *round {
	r := &h.round
	clear(r.wanted)
	*r = round{wants: r.wants[:0], members: r.members[:0], wanted: r.wanted, unrun: "nothing is to run now",
		next: time.Hour}
	now := h.Replica.Now()
	h.Replica.View(func(s *team.State) {
		var due team.Time
		if r.wants, due = s.AppendWants(r.wants, now); due != 0 {
			r.next = max(0, due.Sub(now))
		}
		r.members = s.AppendMembers(r.members)
		r.lead = s.Team().Lead
		r.over = ended(s)
		if r.spent = s.Team().Exhausted != ""; r.spent {
			r.unrun = "the budget of the team was spent"
		}
	})
	return r
}

// fulfil fulfils a want, or starts to.
func (h *Host) fulfil(ctx context.Context, r *round, w team.Want) error {
	var m team.Member
	if found := r.member(w.Member); found != nil {
		m = *found
	}
	switch w.Kind {
	case team.WantBudgetCheck:
		return h.do(ctx, &team.CheckBudget{}, 0)
	case team.WantExpirePermission:
		return h.do(ctx, &team.ExpirePermission{Request: w.Request}, 0)
	case team.WantExpireShutdown:
		return h.do(ctx, &team.ExpireShutdown{Member: w.Member}, 0)
	case team.WantMarkLate:
		return h.do(ctx, &team.MarkLate{Member: w.Member}, 0)
	case team.WantExpirePlan:
		return h.do(ctx, &team.ExpirePlan{Request: w.Request}, 0)
	case team.WantBase, team.WantRecord:
		if m.Host == h.ID || m.Host == "" { // otherwise its own host does it
			h.tracer.begin(w.Task)
		}
	case team.WantTurn:
		if h.Agent(m.Agent) != nil && (m.Host == h.ID || m.Host == "") { // otherwise its own host does it
			return h.do(ctx, &team.GrantTurn{Member: w.Member}, 0)
		}
	case team.WantWait:
		return h.wait(ctx, r, m, w)
	case team.WantExpand:
		if r.expands = h.Runner == nil; !r.expands { // the items are where the team is run
			return nil
		}
		return h.expand(ctx, w)
	case team.WantSession:
		if h.Agent(m.Agent) == nil || !h.serves(&m) {
			break // it waits for a host that knows its agent, or has its labels
		}
		r.wanted[m.Name] = true
		return h.session(ctx, r, m)
	case team.WantRest:
		return h.rest(ctx, r, m, w)
	case team.WantStop:
		return h.retire(ctx, r, m, w)
	case team.WantHandover:
		if s := h.slots[m.Name]; s != nil && s.incarnation == w.Incarnation {
			s.stop(stopFresh, w.Reason, h.StopGrace)
		}
	case team.WantInterrupt:
		if s := h.slots[m.Name]; s != nil && s.incarnation == w.Incarnation {
			s.interrupt(w.Key)
		}
	case team.WantDelivery, team.WantWork, team.WantRetry, team.WantAccess, team.WantSave, team.WantYield:
		if s := h.slots[m.Name]; s != nil && s.incarnation == w.Incarnation && !h.keeps(w.Kind) {
			s.give(w)
		}
	}
	return nil
}

// wait keeps the member without a session for now.
func (h *Host) wait(ctx context.Context, r *round, m team.Member, w team.Want) error {
	if h.Agent(m.Agent) == nil || !h.serves(&m) {
		return nil // it waits for a host that knows its agent, or has its labels
	}
	r.wanted[m.Name] = true
	switch s := h.slots[m.Name]; {
	case s != nil && s.incarnation == w.Incarnation: // it has started nothing yet
		s.stop(stopDetach, w.Reason, h.StopGrace)
	case m.Host != h.ID && m.Host != "":
		r.next = min(r.next, watchEvery)
		return h.takeOver(ctx, m)
	}
	return nil
}

// rest ends the member's session until a session leads again.
func (h *Host) rest(ctx context.Context, r *round, m team.Member, w team.Want) error {
	r.wanted[m.Name] = true
	switch s := h.slots[m.Name]; {
	case s != nil && s.incarnation == w.Incarnation:
		s.stop(stopRest, w.Reason, h.StopGrace)
		return nil
	case m.Host != h.ID:
		r.next = min(r.next, watchEvery)
		return h.takeOver(ctx, m) // its host is dead, or does it itself
	}
	return h.detach(ctx, m, w.Reason)
}

// retire ends the member, whose shutdown is due.
func (h *Host) retire(ctx context.Context, r *round, m team.Member, w team.Want) error {
	r.wanted[m.Name] = true
	switch s := h.slots[m.Name]; {
	case s != nil:
		grace := h.StopGrace
		if m.Shutdown.Answer != "approved" {
			grace = min(grace, lastGrace)
		}
		s.stop(stopReport, w.Reason, grace)
	case m.Host == h.ID:
		if err := h.keepSaved(ctx, m.Name, h.sends(0)); err != nil {
			return err
		}
		h.leaveWork(m)
		return h.do(ctx, &team.ReportStopped{Member: m.Name, Reason: w.Reason}, m.Lease)
	case m.Host != "":
		r.next = min(r.next, watchEvery)
		return h.takeOver(ctx, m)
	}
	return nil
}

// inOrder yields the slots sorted by member name, so that a host always handles them in the same
// order.
func (h *Host) inOrder() iter.Seq2[string, *slot] {
	return func(yield func(string, *slot) bool) {
		names := slices.AppendSeq(make([]string, 0, len(h.slots)), maps.Keys(h.slots))
		slices.Sort(names)
		for _, name := range names {
			if !yield(name, h.slots[name]) {
				return
			}
		}
	}
}

func ended(s *team.State) bool {
	t := s.Team()
	return !s.Exists() || t.Status == team.TeamComplete || t.Status == team.TeamAborted ||
		t.Released != (team.Released{})
}

// session gives the member a slot here, if the host can take its lease.
func (h *Host) session(ctx context.Context, r *round, m team.Member) error {
	switch s := h.slots[m.Name]; {
	case s != nil:
		return nil
	case m.Host == h.ID && m.Status == team.Spawning:
		h.slot(m, h.Agent(m.Agent))
		return nil
	case m.Host == h.ID:
		// Its slot has ended, and the report of that was refused or is on its way.
		return h.detach(ctx, m, team.SessionOver)
	case m.Host != "":
		r.next = min(r.next, watchEvery)
	}
	return h.takeOver(ctx, m)
}

// detach returns the lease of a member without a session.
func (h *Host) detach(ctx context.Context, m team.Member, reason string) error {
	if err := h.keepSaved(ctx, m.Name, h.sends(0)); err != nil {
		return err
	}
	return h.do(ctx, &team.DetachMember{Member: m.Name, Reason: reason}, m.Lease)
}

// takeOver takes the lease of a member that has none, or whose host is dead.
func (h *Host) takeOver(ctx context.Context, m team.Member) error {
	if !h.serves(&m) && m.Shutdown.Request == "" { // this only ends it
		return nil
	}
	if m.Host != "" {
		if h.Machine.Hosts.Alive(ctx, m.Host) {
			return nil
		}
		if err := h.Machine.Hosts.Clear(ctx, m.Host); err != nil {
			h.Log(fmt.Sprintf("the processes that the dead host of %s left cannot be ended yet: %v", m.Name, err))
			return nil // the lease stays with the dead host until it can
		}
	}
	if m.Shutdown.Request == "" && !h.takes(ctx, m) {
		return nil
	}
	as := h.sends(0) // one host at a time: an older file must not replace a newer one
	if m.Shutdown.Request != "" {
		as = byUser(h.Replica) // this ends the member, and its tasks may be claimed
		if err := h.keepSaved(ctx, m.Name, as); err != nil {
			return err
		}
	}
	err := h.do(ctx, h.attach(m), 0)
	h.taken(m)
	if err != nil {
		return err
	}
	return h.keepSaved(ctx, m.Name, as)
}

// do sends a command as the host, from any goroutine. A refusal does not fail the host: the state
// has changed, and the next look shows how. A command that comes after the end of its member or
// team is not logged.
func (h *Host) do(ctx context.Context, body team.Body, lease int64) error {
	_, err := h.send(ctx, team.Command{Actor: team.Host(h.ID), Lease: lease, Body: inWords(body)})
	if code := team.CodeOf(err); code != "" {
		if code != team.Finished {
			h.Log(fmt.Sprintf("refused: %v", err))
		}
		return nil
	}
	return err
}

// send sends a command. If the journal can record nothing any more, the host ends, whichever member
// noticed: it must not keep its leases.
func (h *Host) send(ctx context.Context, c team.Command) (replica.Receipt, error) {
	receipt, err := h.Replica.Do(ctx, c)
	if replica.Broken(err) {
		h.fail(err)
	}
	return receipt, err
}

// fail ends the host when nothing can be recorded any more: it must not keep its leases.
func (h *Host) fail(err error) {
	select {
	case h.broken <- err:
	default:
	}
}

// lookSoon makes the host look again at what is wanted.
func (h *Host) lookSoon() {
	select {
	case h.look <- struct{}{}:
	default: // a look is due already
	}
}

func (h *Host) vacate(ctx context.Context, s *slot) {
	delete(h.slots, s.member)
	if err := h.Machine.Beats.Forget(ctx, s.member); err != nil {
		h.Log(err.Error())
	}
}

// hasten shortens the time that a session has to end by itself when Hurry or Kill is closed. It
// returns when ctx has ended.
func (h *Host) hasten(ctx context.Context, cancel func()) {
	defer cancel()
	select {
	case <-h.Kill:
		return
	case <-h.fence.killed:
		return
	case <-ctx.Done():
		return
	case <-h.Hurry:
	}
	last := time.NewTimer(lastGrace)
	defer last.Stop()
	select {
	case <-last.C:
	case <-h.Kill:
	case <-h.fence.killed:
	case <-ctx.Done():
	}
}

// leave ends every session for that reason, returns the leases unless the team has ended, and
// closes the register.
func (h *Host) leave(ctx context.Context, why string) error {
	how := stopDetach
	h.Replica.View(func(s *team.State) {
		if ended(s) {
			how = stopQuietly
		}
	})
	for _, s := range h.inOrder() {
		s.stop(how, why, h.StopGrace)
	}
	for len(h.slots) > 0 {
		select {
		case s := <-h.ended:
			h.vacate(context.WithoutCancel(ctx), s)
		case <-ctx.Done():
			h.tracer.close(ctx)
			h.kept()
			return errors.Join(fmt.Errorf("%d sessions did not end in time and were killed", len(h.slots)),
				h.unenroll(context.WithoutCancel(ctx)))
		}
	}
	// what is not recorded by then, the next host records, or the consolidation does
	settling, settled := context.WithTimeout(ctx, giveBack)
	defer settled()
	if err := h.tracer.settle(settling, ""); err != nil {
		h.Log("the work of tasks is not recorded: " + err.Error())
	}
	h.tracer.close(settling)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
	defer cancel()
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
		errs = append(errs, h.detach(ctx, m, why))
	}
	h.kept() // the last checkpoint must have these records, or a copy that continues from it would have another history
	errs = append(errs, h.unenroll(ctx))
	os.RemoveAll(filepath.Join(h.Hosts, h.ID))
	return errors.Join(errs...)
}

// unenroll ends every child, and then gives up the lease.
func (h *Host) unenroll(ctx context.Context) error {
	err := h.Procs.Close(ctx)
	h.fence.stop()
	<-h.fence.over
	if h.Lease != nil {
		err = errors.Join(err, h.Lease.Release())
	}
	return err
}
