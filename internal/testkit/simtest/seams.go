package simtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	realhost "cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/team"
)

// gated is a handle on the journal for goroutines of its process.
type gated struct{ handle *handle }

var _ journal.Journal = (*gated)(nil)

func (g *gated) Snapshot(ctx context.Context) (s journal.Snapshot, err error) {
	killed := g.handle.of.ask("snapshot", func(*thread) { s, err = g.handle.Snapshot(ctx) })
	return s, first(killed, err)
}

func (g *gated) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if g.seen(after) {
			return
		}
		var records []journal.Record
		var err error
		killed := g.handle.of.ask("read", func(*thread) {
			for r, failed := range g.handle.Read(ctx, after) {
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

// seen reports whether there is nothing to read after seq after. The check takes no time.
func (g *gated) seen(after int64) bool {
	d := g.handle.d
	d.w.gate.mu.Lock()
	defer d.w.gate.mu.Unlock()
	return after >= int64(len(d.lines)) && g.handle.of.cut <= d.w.now && d.half == nil &&
		g.handle.of.alive
}

func (g *gated) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (seq int64, err error) {
	key := func() (key string) {
		g.handle.of.asks = &key
		defer func() { g.handle.of.asks = nil }()
		_, _ = decide() // only to learn what it would write; the state stays as it is
		return key
	}
	killed := g.handle.of.askFor("append", key, func(*thread) {
		if seq, err = g.handle.Append(ctx, after, catchUp, decide); err == nil {
			g.handle.d.w.judge.acks[seq] = "of " + g.handle.of.name
		}
	})
	return seq, first(killed, err)
}

func (g *gated) Wait(ctx context.Context, after int64) error {
	for {
		w := g.handle.d.w
		w.gate.mu.Lock()
		grows, there, alive := g.handle.d.grows(), int64(len(g.handle.d.lines)) > after, g.handle.of.alive
		there = there || g.handle.d.shown(after)
		w.gate.mu.Unlock()
		switch {
		case !alive:
			return g.handle.of.ask("wait", nil)
		case there:
			return nil
		}
		select {
		case <-grows:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.handle.of.dead:
		}
	}
}

func (g *gated) SnapshotDue(size int) bool {
	if mu := &g.handle.d.w.gate.mu; mu.TryLock() { // otherwise the world's turn decides
		defer mu.Unlock()
	}
	return g.handle.SnapshotDue(size)
}

func (g *gated) SaveSnapshot(ctx context.Context, take func() (int64, []byte)) (err error) {
	killed := g.handle.of.ask("save", func(*thread) { err = g.handle.SaveSnapshot(ctx, take) })
	return first(killed, err)
}

func (g *gated) Keyframes(ctx context.Context) (seqs []int64, err error) {
	killed := g.handle.of.ask("keyframes", func(*thread) { seqs, err = g.handle.Keyframes(ctx) })
	return seqs, first(killed, err)
}

func (g *gated) Keyframe(ctx context.Context, seq int64) (s journal.Snapshot, err error) {
	killed := g.handle.of.ask("keyframe", func(*thread) { s, err = g.handle.Keyframe(ctx, seq) })
	return s, first(killed, err)
}

func (g *gated) SaveKeyframe(ctx context.Context, s journal.Snapshot) (err error) {
	killed := g.handle.of.ask("save keyframe", func(*thread) { err = g.handle.SaveKeyframe(ctx, s) })
	return first(killed, err)
}

func (g *gated) Close() error { return nil }

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

func (r registry) Alive(_ context.Context, id string) (lives bool) {
	lives = true
	r.of.of.quickly("lives", "", func() {
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

// signs are the heartbeats, as a process sees them.
type signs struct{ of *process }

func (s signs) Write(_ context.Context, beats ...heartbeat.Beat) error {
	var errs []error
	for _, b := range beats {
		errs = append(errs, s.of.quickly("beat ", b.Member, func() { s.of.beat(b) }))
	}
	return errors.Join(errs...)
}

func (s signs) Of(_ context.Context, member string) (b heartbeat.Beat, there bool, err error) {
	err = s.of.quickly("look ", member, func() {
		w := s.of.w
		beats := w.beats
		if s.of.blind > w.now {
			beats = s.of.eyes
		}
		if last := beats[member].seen(w.now); last != nil {
			b, there = *last, true
		}
		if t := w.judge.truth.Team(); member == t.Lead {
			w.judge.looks(s.of, leader.LastBeat(t, b, there))
		}
	})
	return b, there, err
}

func (s signs) Forget(_ context.Context, member string) error {
	return s.of.ask("forget "+member, func(*thread) { delete(s.of.w.beats, member) })
}

// sign is the last heartbeat of a member. A process that looks at the moment of a heartbeat sees
// the one before: the order of two goroutines whose timers fire together is random.
type sign struct {
	heartbeat.Beat
	at     time.Duration
	before *heartbeat.Beat // nil for none
}

// seen returns the heartbeat that a process sees at that time, or nil.
func (s sign) seen(now time.Duration) *heartbeat.Beat {
	switch {
	case s.Member == "":
		return nil
	case s.at == now:
		return s.before
	}
	return &s.Beat
}

// savedWork is the file in which a teammate without a lead saves the work on its task.
type savedWork struct {
	Task string
	Done int // changes that it made, in all
	At   team.Time

	when  time.Duration
	stale bool // the session that saved it had lost the member or the task
}

func (f savedWork) diff(member string) string {
	if f.Done == 0 {
		return ""
	}
	return commit(member, f.Done)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// readSaved returns the content of the member's file.
func (w *world) readSaved(member string) (work realhost.SavedWork, there bool) {
	f, there := w.saved[member]
	if there {
		work = realhost.SavedWork{Member: member, Task: f.Task, At: f.At, FileEdits: f.diff(member)}
	}
	return work, there
}

// forgetSaved removes the file if it is still the one that was kept.
func (w *world) forgetSaved(kept realhost.SavedWork) {
	now, there := w.readSaved(kept.Member)
	if same := now.Task == kept.Task && now.FileEdits == kept.FileEdits && now.At == kept.At; there &&
		(same || w.bug("newer-removed")) {
		w.judge.overwrites(kept.Member, w.saved[kept.Member], savedWork{})
		delete(w.saved, kept.Member)
	}
}

// saved gives goroutines of a process access to the files of saved work.
type saved struct{ of *process }

var _ realhost.SavedStore = saved{}

func (s saved) Read(_ context.Context, member string) (work realhost.SavedWork, there bool, err error) {
	err = s.of.quickly("saved", "", func() { work, there = s.of.w.readSaved(member) })
	return work, there, err
}

func (s saved) Write(_ context.Context, work realhost.SavedWork) error {
	return s.of.ask("save "+work.Member, func(t *thread) {
		t.step()
		w := s.of.w
		f := savedWork{Task: work.Task, At: work.At, Done: changesOf(work.FileEdits), when: w.now, stale: true}
		if slot := w.leftOn(s.of, work.Member); slot != nil {
			f.stale = w.judge.outdated(slot, f.Task)
		}
		w.logf("%s: %s saves %d changes for task %q", s.of.name, work.Member, f.Done, f.Task)
		w.judge.overwrites(work.Member, w.saved[work.Member], f)
		w.saved[work.Member] = f
	})
}

func (s saved) Forget(_ context.Context, work realhost.SavedWork) error {
	return s.of.ask("unsave "+work.Member, func(t *thread) {
		t.step()
		s.of.w.forgetSaved(work)
	})
}

// savedNow gives a thread of the world access to the files of saved work. It only reads and
// forgets.
type savedNow struct{ t *thread }

var _ realhost.SavedStore = savedNow{}

func (s savedNow) Read(_ context.Context, member string) (realhost.SavedWork, bool, error) {
	work, there := s.t.of.w.readSaved(member)
	s.t.step()
	return work, there, nil
}

func (s savedNow) Write(_ context.Context, _ realhost.SavedWork) error { return errors.ErrUnsupported }

func (s savedNow) Forget(_ context.Context, work realhost.SavedWork) error {
	s.t.step()
	s.t.of.w.forgetSaved(work)
	return nil
}

// A commit or a patch is named after its author and the author's number of changes by then.

func commit(member string, changes int) string { return fmt.Sprintf("%s %d", member, changes) }

func changesOf(commit string) (changes int) {
	var member string
	fmt.Sscanf(commit, "%s %d", &member, &changes)
	return changes
}

// project is the directory that the team works in.
type project struct{ of *process }

func (p project) Check(context.Context, team.Team) error { return nil }
func (p project) Records(string) bool                    { return p.of.w.plan.Repo }

func (p project) Record(_ context.Context, kind team.WantKind, task team.Task, work *team.Work) error {
	return p.of.ask("record "+task.ID, func(t *thread) {
		changes := p.of.w.edited[work.Member]
		t.step()
		if work.Commit = commit(work.Member, changes); kind == team.WantBase {
			work.Base, work.Commit = work.Commit, ""
		}
	})
}

func (p project) Changes(_ context.Context, _ string, work *realhost.SavedWork) error {
	return p.of.ask("changes of "+work.Member, func(t *thread) {
		t.step()
		work.FileEdits = savedWork{Done: p.of.w.edited[work.Member]}.diff(work.Member)
	})
}
