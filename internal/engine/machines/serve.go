package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/engine"
	"cadre/internal/engine/database"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/project"
	"cadre/internal/git/transport"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options say how this process serves as a machine.
type Options struct {
	Engine  *engine.Engine
	Name    string   // of the machine; "" for the computer's
	Labels  []string // at least one
	Slots   int      // sessions at most; 0 for one for each processor
	Dir     string   // in the clone of the project, absolute
	Version string   // of this program
	// Hurry and Kill shorten the end of sessions, as in [engine.HostOptions].
	Hurry, Kill <-chan struct{}
	// Ready is called when the machine is on the list.
	Ready func(Machine)
}

const (
	// lookPause is how often a machine looks for new teams, and writes what it runs.
	lookPause = time.Second
	// beatPause is how often it shows that it is alive.
	beatPause = 5 * time.Second
	// attendLook is how often a machine looks whether a team may be run.
	attendLook = 2 * time.Second
	// retryPause is how long a team waits whose host could not run.
	retryPause = 5 * time.Second
	// leaveTime bounds what is done about a team that the machine does not serve any more.
	leaveTime = 30 * time.Second
	// knownFor is how long a machine relies on what it knows of the others.
	knownFor = time.Second
)

// machine is this process as a machine.
type machine struct {
	Machine
	opts   Options
	engine *engine.Engine // of the project's directory on this machine
	shared store.Team
	drain  atomic.Bool

	mu       sync.Mutex
	serving  map[string]*serving
	reserved map[string]bool      // members that are about to be taken, by team and name
	waiting  map[string]time.Time // since when members wait for a machine
	others   []Machine
	known    time.Time // when others were read
}

// serving is a team that the machine looks at.
type serving struct {
	done bool // the team has ended
	team *engine.Team
	said string // the last note about it; only the goroutine that serves it uses it
}

// note notes something about the team, unless that was noted last.
func (s *serving) note(m *machine, text string) {
	if text != s.said {
		s.said = text
		m.engine.Note(text)
	}
}

// Serve runs members of the project's teams until ctx ends, or the machine is drained and no member
// is on it any more. Then the sessions have ended, and their members continue elsewhere. A machine
// that could not reach the database for too long has ended its sessions, and begins again when it
// can.
func Serve(ctx context.Context, o Options) error {
	m, err := open(ctx, o)
	if err != nil {
		return err
	}
	served, err := m.once(ctx, o.Ready)
	for said := ""; served && err != nil && ctx.Err() == nil; {
		if text := err.Error(); text != said {
			said = text
			m.engine.Note("every session here has ended, and the machine tries again: " + text)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil
		}
		again := false
		if again, err = m.once(ctx, nil); again {
			said = ""
		}
	}
	return err
}

// once serves until the lease of the machine is lost, ctx ends, or the machine was drained. served
// reports that the machine was on the list.
func (m *machine) once(ctx context.Context, ready func(Machine)) (served bool, err error) {
	lease, err := take(ctx, m.shared, m.Name, m.engine.Note)
	if err != nil {
		return false, err
	}
	defer lease.Release()
	ctx, stop := store.While(ctx, lease)
	defer stop()
	if err := m.announceNow(ctx); err != nil {
		return false, err
	}
	if ready != nil {
		ready(m.Machine)
	}
	m.sweep(ctx)
	var beside sync.WaitGroup
	serving, end := context.WithCancel(ctx)
	beside.Go(func() { m.awaitDrain(serving) })
	m.loop(serving, &beside)
	end()
	beside.Wait()
	m.forget()
	if gone := context.Cause(ctx); errors.Is(gone, store.ErrLost) {
		return true, gone
	}
	return true, m.shared.Delete(context.WithoutCancel(ctx), keyOf(m.Name))
}

// sweep removes what teams left here that were removed while this machine was away. Work in their
// worktrees is committed to branches first, which stay.
func (m *machine) sweep(ctx context.Context) {
	gone, err := m.engine.Home.Gone()
	for _, folder := range gone {
		if err = host.Clear(ctx, filepath.Join(folder, "hosts"), m.engine.Note); err == nil {
			err = host.KeepWork(ctx, folder, m.Dir, m.engine.Note)
		}
		if err == nil {
			err = upkeep.RemoveFolder(ctx, m.engine.Home, team.Team{ID: filepath.Base(folder)}, folder, m.engine.Note)
		}
		if err != nil {
			m.engine.Note(fmt.Sprintf("what is left of team %s stays in %s: %v", filepath.Base(folder), folder, err))
		}
	}
	if err != nil && len(gone) == 0 {
		m.engine.Note(err.Error())
	}
}

// forget makes the machine begin with nothing, as after its start.
func (m *machine) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.serving)
	clear(m.reserved)
	clear(m.waiting)
	m.Runs, m.Seen = []Run{}, 0
}

// open checks what can be wrong before the machine is on the list.
func open(ctx context.Context, o Options) (*machine, error) {
	m := &machine{opts: o, serving: map[string]*serving{}, reserved: map[string]bool{},
		waiting: map[string]time.Time{}}
	computer, _ := os.Hostname()
	name := cmp.Or(o.Name, computer)
	if err := cmp.Or(team.CheckLabels(o.Labels), team.CheckName("machine", name)); err != nil {
		return nil, err
	}
	shared, err := common(ctx, o.Engine.Home)
	if err != nil {
		return nil, err
	}
	if len(o.Labels) == 0 {
		return nil, team.Refuse(team.Invalid, "a machine needs a label, by which members name it with runsOn")
	}
	top, is := project.Top(o.Dir)
	if !is {
		return nil, team.Refuse(team.Invalid, "%s is in no git repository, and the work of members travels through one",
			o.Dir)
	}
	if err := engine.Isolates(ctx, o.Dir); err != nil {
		return nil, team.Refuse(team.Invalid, "members cannot work here: %v", err)
	}
	in := o.Engine.Home.Place.Project(o.Dir)
	if !database.Portable(in) {
		return nil, team.Refuse(team.Invalid, "the repository of %s is a shallow clone, so its project is not known; "+
			"make a clone with the whole history", o.Dir)
	}
	if o.Slots == 0 {
		o.Slots = runtime.NumCPU()
	}
	m.shared = shared
	m.engine = o.Engine.At(o.Dir, top)
	m.Machine = Machine{Name: name, Labels: o.Labels, Slots: o.Slots, Project: in, Dir: o.Dir,
		Version: o.Version, Pid: os.Getpid(), Runs: []Run{}, Since: replica.Now()}
	return m, nil
}

// awaitDrain waits until somebody asks to drain the machine.
func (m *machine) awaitDrain(ctx context.Context) {
	if m.shared.Await(ctx, drainOf(m.Name)) == nil {
		m.drain.Store(true)
		m.engine.Note("drained: each member goes to another machine at the end of its turn")
	}
}

// loop looks for teams, and says what the machine does, until ctx ends or nothing is left to drain.
func (m *machine) loop(ctx context.Context, beside *sync.WaitGroup) {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	beat := time.Time{}
	var away serving // has what was said while the database was away
	for {
		if err := m.look(ctx, beside); err != nil && ctx.Err() == nil {
			away.note(m, "the teams cannot be listed: "+err.Error())
		}
		if before := m.Runs; m.changed(before) || time.Since(beat) > beatPause {
			beat = time.Now()
			if err := m.announceNow(ctx); err != nil && ctx.Err() == nil {
				away.note(m, err.Error())
			}
		}
		if m.drain.Load() && len(m.Runs) == 0 && !m.busy() {
			// the next machine of this name removes it, too
			_ = m.shared.Delete(context.WithoutCancel(ctx), drainOf(m.Name))
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// busy reports whether the machine is about to take a member.
func (m *machine) busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.reserved) > 0
}

// changed brings the list of members on this machine up to date, and reports whether it is another
// one than before.
func (m *machine) changed(before []Run) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Runs = m.runs()
	m.Drained = m.drain.Load()
	return !slices.Equal(before, m.Runs)
}

// runs returns the members on this machine. The caller has the lock.
func (m *machine) runs() []Run {
	all := []Run{}
	for _, s := range m.serving {
		if s.team == nil {
			continue
		}
		s.team.View(func(st *team.State) {
			of := st.Team()
			for _, member := range st.Members() {
				if member.Host == "" {
					continue
				}
				delete(m.waiting, of.ID+"/"+member.Name)
				if member.Machine == m.Name && member.Status.Running() {
					all = append(all, Run{of.Name, of.ID, member.Name, member.Status})
				}
			}
		})
	}
	slices.SortFunc(all, func(a, b Run) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Member, b.Member)) })
	return all
}

func (m *machine) announceNow(ctx context.Context) error {
	m.Load, m.Seen = proc.Load(), replica.Now()
	return m.Machine.announce(ctx, m.shared)
}

// look begins to serve the project's teams that it does not serve yet.
func (m *machine) look(ctx context.Context, beside *sync.WaitGroup) error {
	teams, err := m.engine.Home.Place.Teams(ctx)
	if err != nil {
		return err
	}
	all, err := teams.List(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	used := map[string]bool{}
	for _, e := range all {
		if e.Archived || e.Project != m.Project {
			continue
		}
		if used[e.ID] = true; m.serving[e.ID] == nil {
			s := &serving{}
			m.serving[e.ID] = s
			beside.Go(func() { m.serve(ctx, e.ID, s) })
		}
	}
	for id, s := range m.serving {
		if !used[id] && s.done {
			delete(m.serving, id)
		}
	}
	return nil
}

// serve runs the members of a team that are for this machine, until the team has ended.
func (m *machine) serve(ctx context.Context, id string, s *serving) {
	for ctx.Err() == nil {
		over, err := m.attend(ctx, id, s)
		if over || team.CodeOf(err) == team.NotFound || team.CodeOf(err) == team.Finished {
			break
		}
		if err != nil && ctx.Err() == nil {
			s.note(m, fmt.Sprintf("team %s cannot be served: %v", id, err))
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.done = true
}

// attend opens the team, and has a host for it while it has members for this machine. over reports
// that the team has ended.
func (m *machine) attend(ctx context.Context, id string, s *serving) (over bool, err error) {
	if over, err = m.concerned(ctx, id); over || err != nil {
		return over, err
	}
	t, err := m.engine.Open(ctx, id)
	if err != nil {
		return false, err
	}
	m.set(s, t)
	defer func() {
		m.set(s, nil)
		leaving, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer stop()
		err = errors.Join(err, host.LeaveMachine(leaving, t.Replica, t.Dir, m.Name, m.engine.Note), t.Close())
	}()
	sent := false
	for {
		if !sent {
			if sent, err = m.catchUp(ctx, s, t); err != nil {
				return false, err
			}
		}
		seq, ours := int64(0), false
		t.View(func(st *team.State) {
			of := st.Team()
			seq, over = st.Seq(), of.Ended() || of.CheckHere() != nil
			ours = m.wanted(st)
		})
		if over {
			return true, host.KeepWork(context.WithoutCancel(ctx), t.Dir, m.Dir, m.engine.Note)
		}
		run := ours && !m.drain.Load()
		if run {
			run, err = t.Attended(ctx)
		}
		if run && err == nil {
			err = m.host(ctx, t)
			seq, sent = t.Seq(), false
		}
		if err != nil || ctx.Err() != nil {
			return false, err
		}
		// Nobody tells whether the team is attended. A change may have come while the host ended.
		look := time.Minute
		switch {
		case ours:
			look = attendLook
		case !sent:
			look = retryPause
		}
		waiting, stop := context.WithTimeout(ctx, look)
		err = t.Wait(waiting, seq)
		stop()
		if ctx.Err() != nil || err != nil && waiting.Err() == nil {
			return false, err
		}
	}
}

// concerned waits until the team has a member for machines with labels. Until then the machine only
// reads. over reports that the team has ended before.
func (m *machine) concerned(ctx context.Context, id string) (over bool, err error) {
	t, err := m.engine.Look(ctx, id)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for {
		seq, is := int64(0), false
		t.View(func(st *team.State) {
			of := st.Team()
			seq, over = st.Seq(), of.Ended()
			is = slices.ContainsFunc(st.Members(), func(member team.Member) bool { return len(member.RunsOn) > 0 })
		})
		if over && !is || is {
			return over && !is, nil
		}
		if err := t.Wait(ctx, seq); err != nil {
			return false, err
		}
	}
}

// catchUp sends what is on this machine alone, if the team has been here.
func (m *machine) catchUp(ctx context.Context, s *serving, t *engine.Team) (sent bool, err error) {
	here := false
	t.View(func(st *team.State) {
		here = slices.ContainsFunc(st.Members(), func(member team.Member) bool { return member.Machine == m.Name })
	})
	if !here {
		if entries, _ := os.ReadDir(filepath.Join(t.Dir, "worktrees")); len(entries) == 0 {
			return true, nil
		}
	}
	if err := host.Clear(ctx, t.Hosts(), m.engine.Note); err != nil {
		return false, err
	}
	if err := m.fetch(ctx, t); err != nil {
		s.note(m, err.Error())
		return false, nil
	}
	return host.CatchUp(ctx, t.Replica, t.Dir, m.Name, func(text string) { s.note(m, text) })
}

// wanted reports whether a session is wanted that could be on this machine.
func (m *machine) wanted(s *team.State) bool {
	wants, _ := s.AppendWants(nil, replica.Now())
	return slices.ContainsFunc(wants, func(w team.Want) bool {
		member, is := s.Member(w.Member)
		return is && w.Kind == team.WantSession && len(member.RunsOn) > 0 && member.RunsWith(m.Labels)
	})
}

func (m *machine) set(s *serving, t *engine.Team) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.team = t
}

// host runs those members of the team that are for this machine. It returns when no member needs a
// session, or ctx has ended.
func (m *machine) host(ctx context.Context, t *engine.Team) error {
	if err := m.fetch(ctx, t); err != nil {
		return err
	}
	h, err := t.Host(ctx, engine.HostOptions{UntilIdle: true, Hurry: m.opts.Hurry, Kill: m.opts.Kill,
		Runner: &host.Runner{Machine: m.Name, Labels: m.Labels, Drained: m.drain.Load,
			Takes: func(ctx context.Context, member team.Member) bool { return m.takes(ctx, t.Team().ID, &member) },
			Taken: func(member string) { m.taken(t.Team().ID, member) }}})
	if err != nil {
		return err
	}
	look := time.NewTicker(attendLook)
	defer look.Stop()
	for {
		select {
		case <-h.Done():
			return h.End()
		case <-ctx.Done():
			return h.Pause()
		case <-look.C:
			if attended, err := t.Attended(ctx); !attended && err == nil { // its run has ended
				return h.Pause()
			}
		}
	}
}

// taken gives a reserved slot back: the member has it by now, or was not taken.
func (m *machine) taken(id, member string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reserved, id+"/"+member)
}

// fetch gets the commit that the team starts from, and what its members did so far.
func (m *machine) fetch(ctx context.Context, t *engine.Team) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	of := t.Team()
	road, err := transport.Open(ctx, procs, m.Dir, of)
	if err == nil {
		err = road.Fetch(ctx)
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(of.Dir); err != nil {
		return fmt.Errorf("the team works in %s, which is not in this clone; bring the clone up to date", of.Dir)
	}
	if there, err := road.Has(ctx, of.Base.Commit); !there {
		return errors.Join(err, fmt.Errorf("neither the clone nor the remote %s has the commit %.12s that the team "+
			"starts from", of.Remote, of.Base.Commit))
	}
	return nil
}

// takes reports whether this machine takes the member, and reserves a slot for it then.
func (m *machine) takes(ctx context.Context, id string, member *team.Member) bool {
	key := id + "/" + member.Name
	others := m.list(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	used := len(m.runs()) + len(m.reserved)
	if m.waiting[key].IsZero() {
		m.waiting[key] = now
	}
	if m.drain.Load() || used >= m.Slots || !member.RunsWith(m.Labels) {
		return false
	}
	if rather := m.rather(others, member, used); rather != m.Name && now.Sub(m.waiting[key]) < patience {
		return false
	}
	delete(m.waiting, key)
	m.reserved[key] = true
	return true
}

// rather returns the name of the machine that should take the member.
func (m *machine) rather(others []Machine, member *team.Member, used int) string {
	best, part := m.Name, float64(used)/float64(m.Slots)
	if member.Machine == best {
		return best
	}
	for i := range others {
		o := &others[i]
		if o.Name == m.Name || !o.fits(member, m.Project) {
			continue
		}
		if o.Name == member.Machine {
			return o.Name
		}
		if its := float64(len(o.Runs)) / float64(o.Slots); its < part || its == part && o.Name < best {
			best, part = o.Name, its
		}
	}
	return best
}

// list returns the machines, as they were at most [knownFor] ago.
func (m *machine) list(ctx context.Context) []Machine {
	m.mu.Lock()
	others, fresh := m.others, time.Since(m.known) < knownFor
	m.mu.Unlock()
	if fresh {
		return others
	}
	others, err := list(ctx, m.shared)
	if err != nil {
		return nil // then each machine takes what it can
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others, m.known = others, time.Now()
	return others
}
