package simtest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"cadre/internal/agent"
	realhost "cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// folder is that of hosts, as the real one is told. Nothing is there.
const folder = "/nowhere/cadre/teams/demo/hosts"

// live runs the real host of a place, in goroutines of its process.
func (h *host) live(ctx context.Context) {
	w := h.of.w
	rep, err := h.openOutside(ctx)
	if err != nil {
		return
	}
	procs, err := proc.Open("") // it starts none
	if err != nil {
		panic(err)
	}
	defer procs.Close(context.Background())
	real := realhost.New(realhost.Options{Replica: rep, ID: h.id(), Hosts: folder, Procs: procs, Log: h.of.says,
		Said: func(string, string) {}, StopGrace: 200 * time.Millisecond,
		Agent: func(name string) agent.Agent {
			switch name {
			case team.Claude:
				return model{h}
			case team.Shell:
				return worker{model{h}}
			}
			return nil
		},
		Machine: realhost.Machine{Name: h.of.on.name, Hosts: registry{h}, Beats: signs{h.of}, Saved: saved{h},
			Project: project{h}}})
	err = real.Run(ctx)
	h.of.ask("end", func(*thread) {
		if err == nil { // the team has ended
			h.retired = true
			return
		}
		w.logf("%s gives up: %v", h.id(), err)
		w.gone(h, time.Duration(200+w.rng(h.id()+" again").IntN(2000))*time.Millisecond)
	})
}

// openOutside opens a replica for the goroutines of the process, and waits until there is a team.
func (o *office) openOutside(ctx context.Context) (*replica.Replica, error) {
	for {
		rep, err := replica.Open(ctx, &outer{handle: o.of.w.disk.open(o.of)}, replica.Options{Now: o.of.outerClock,
			NewID: o.outerID, Decide: o.decide, Reopen: o.reopen})
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

func exists(rep *replica.Replica) (there bool) {
	rep.View(func(s *team.State) { there = s.Exists() })
	return there
}

// decide is what the replicas of real code decide with. The judge hears of each command.
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
				if took.seq = s.Seq(); b.Since != s.Team().LeadSince { // what it saw is of before the lead came back
					took.seq = 0
				}
				w.judge.taking[c.ID] = took
			}
		}
	}
	d, err := w.decide(s, c)
	if b, ok := c.Body.(*team.LoseLead); ok && d.Record != nil {
		w.judge.losing[o.of.name] = s.Seq()
		if b.Since != s.Team().LeadSince { // what it saw is of before the lead came back
			w.judge.losing[o.of.name] = 0
		}
		w.judge.loses(o.of, s.Team())
	}
	return d, err
}

// outerClock is the clock of the process, for its goroutines.
func (p *process) outerClock() team.Time {
	g := p.w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Since(g.began)
	return epoch + team.Time((now+p.on.offset(now))/time.Millisecond)
}

func (o *office) outerID() string {
	g := o.of.w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return o.newID()
}

// says tells what the process has to say.
func (p *process) says(what string) {
	g := p.w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.w.tell != nil && p.alive {
		p.w.logf("%s: %s", p.name, what)
	}
}

// outer is a handle on the journal for goroutines of its process.
type outer struct{ handle *handle }

var _ journal.Journal = (*outer)(nil)

func (o *outer) Snapshot(ctx context.Context) (s journal.Snapshot, err error) {
	killed := o.handle.of.ask("snapshot", func(*thread) { s, err = o.handle.Snapshot(ctx) })
	return s, first(killed, err)
}

func (o *outer) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if o.seen(after) {
			return
		}
		var records []journal.Record
		var err error
		killed := o.handle.of.ask("read", func(*thread) {
			for r, failed := range o.handle.Read(ctx, after) {
				if err = failed; err == nil {
					records = append(records, r)
				}
			}
		})
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
		if err := first(killed, err); err != nil {
			yield(journal.Record{}, err)
		}
	}
}

// seen reports whether there is nothing to be read after seq after, which costs no time.
func (o *outer) seen(after int64) bool {
	d := o.handle.d
	d.w.gate.mu.Lock()
	defer d.w.gate.mu.Unlock()
	return after >= int64(len(d.lines)) && o.handle.of.cut <= time.Since(d.w.gate.began) && d.half == nil &&
		o.handle.of.alive
}

func (o *outer) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (seq int64, err error) {
	key := func() (key string) {
		o.handle.of.asks = &key
		defer func() { o.handle.of.asks = nil }()
		_, _ = decide() // for what it would write; the state stays as it is
		return key
	}
	killed := o.handle.of.askFor("append", key, func(*thread) {
		if seq, err = o.handle.Append(ctx, after, catchUp, decide); err == nil {
			o.handle.d.w.judge.acks[seq] = "of " + o.handle.of.name
		}
	})
	return seq, first(killed, err)
}

func (o *outer) Wait(ctx context.Context, after int64) error {
	for {
		w := o.handle.d.w
		w.gate.mu.Lock()
		grows, there, alive := o.handle.d.grows(), int64(len(o.handle.d.lines)) > after, o.handle.of.alive
		there = there || o.handle.d.shown(after)
		w.gate.mu.Unlock()
		switch {
		case !alive:
			return o.handle.of.ask("wait", nil)
		case there:
			var err error
			killed := o.handle.of.ask("wait", func(*thread) { err = o.handle.step() })
			return first(killed, err)
		}
		select {
		case <-grows:
		case <-ctx.Done():
			return ctx.Err()
		case <-o.handle.of.dead:
		}
	}
}

func (o *outer) SnapshotDue(size int) bool {
	if mu := &o.handle.d.w.gate.mu; mu.TryLock() { // else it is asked in the world's turn
		defer mu.Unlock()
	}
	return o.handle.SnapshotDue(size)
}

func (o *outer) SaveSnapshot(ctx context.Context, take func() (int64, []byte)) (err error) {
	killed := o.handle.of.ask("save", func(*thread) { err = o.handle.SaveSnapshot(ctx, take) })
	return first(killed, err)
}

func (o *outer) Close() error { return nil }

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// registry is the registry of hosts, as a host sees it.
type registry struct{ of *host }

func (r registry) Lives(id string) (lives bool) {
	lives = true
	r.of.of.ask("lives "+id, func(*thread) {
		if _, lives = r.of.of.w.held(id); !lives {
			r.of.taken = id
		}
	})
	return lives
}

func (r registry) Clear(_ context.Context, id string) error {
	return r.of.of.ask("clear "+id, func(t *thread) {
		t.step()
		if old, lives := r.of.of.w.held(id); old != nil && !lives && old.of.on == r.of.of.on {
			old.endSessions()
		}
		t.step()
	})
}

// signs are the signs of life, as a process sees them.
type signs struct{ of *process }

func (s signs) Write(b heartbeat.Beat) error {
	return s.of.ask("beat "+b.Member, func(*thread) { s.of.beat(b) })
}

func (s signs) Of(member string) (b heartbeat.Beat, there bool, err error) {
	err = s.of.ask("look "+member, func(*thread) {
		w := s.of.w
		beats := w.beats
		if s.of.blind > w.now {
			beats = s.of.eyes
		}
		b, there = beats[member]
		if t := w.judge.truth.Team(); member == t.Lead {
			w.judge.looks(s.of, leader.LastBeat(t, b, there))
		}
	})
	return b, there, err
}

func (s signs) Forget(member string) error {
	return s.of.ask("forget "+member, func(*thread) { delete(s.of.w.beats, member) })
}

// saved are the files of saved work, as a host sees them.
type saved struct{ of *host }

func (s saved) Read(member string) (work realhost.SavedWork, there bool, err error) {
	err = s.of.of.ask("saved "+member, func(t *thread) {
		var f savedWork
		if f, there = s.of.of.w.saved[member]; there {
			work = realhost.SavedWork{Member: member, Task: f.Task, At: f.At, FileEdits: f.saved(member).Diff}
		}
	})
	return work, there, err
}

func (s saved) Write(work realhost.SavedWork) error {
	return s.of.of.ask("save "+work.Member, func(t *thread) {
		t.step()
		w := s.of.of.w
		f := asSaved(work)
		f.when, f.stale = w.now, true
		if seat := s.of.seat(work.Member); seat != nil {
			f.stale = w.judge.outdated(seat, f.Task)
		}
		w.logf("%s: %s saves %d changes for task %q", s.of.id(), work.Member, f.Done, f.Task)
		w.judge.overwrites(work.Member, w.saved[work.Member], f)
		w.saved[work.Member] = f
	})
}

func (s saved) Forget(work realhost.SavedWork) error {
	return s.of.of.ask("unsave "+work.Member, func(t *thread) {
		t.step()
		kept := asSaved(work)
		if f, there := s.of.of.w.saved[work.Member]; there && (f.Task == kept.Task && f.Done == kept.Done &&
			f.At == kept.At || s.of.of.w.bug("newer-removed")) {
			s.of.of.w.forgetSaved(work.Member, f)
		}
	})
}

func asSaved(work realhost.SavedWork) savedWork {
	f := savedWork{Task: work.Task, At: work.At}
	fmt.Sscanf(work.FileEdits, work.Member+" %d", &f.Done)
	return f
}

// project is the directory that the team works in.
type project struct{ of *host }

func (p project) Check(context.Context, team.Team) error { return nil }
func (p project) Records(string) bool                    { return p.of.of.w.plan.Repo }

func (p project) Record(_ context.Context, kind team.WantKind, task team.Task, work *team.Work) error {
	return p.of.of.ask("record "+task.ID, func(t *thread) {
		changes := p.of.of.w.edited[work.Member]
		t.step()
		if work.Commit = commit(work.Member, changes); kind == team.WantBase {
			work.Base, work.Commit = work.Commit, ""
		}
	})
}

func (p project) Changes(_ context.Context, _ string, work *realhost.SavedWork) error {
	return p.of.of.ask("changes of "+work.Member, func(t *thread) {
		t.step()
		f := savedWork{Done: p.of.of.w.edited[work.Member]}
		work.FileEdits = f.saved(work.Member).Diff
	})
}
