// Package replica is one actor's handle on a team. It shows the team's state, changes it, and
// reports changes. Every front end and every host works through one.
//
// # Authority
//
// A replica keeps a copy of the state up to date from the journal, and puts commands through Decide
// under the journal's conflict rule. It examines completions: the result must fit the task's
// schema, and its check must pass. It runs the hooks of the commands that have some. A command that
// is rejected is not sent; the rejection is recorded instead.
//
// # Guarantees
//
//   - Do returns without an error only when the command is durable, now or from an earlier call.
//   - A command that is sent again with the same id, after any failure, happens once.
//   - View shows the state after some prefix of the history. Refresh brings it to the present end.
//   - After a failed sync, a replica with Options.Reopen opens its journal again, and records from
//     the next command on.
//   - A replica may be used from any goroutine; other processes may have replicas on the same team.
package replica

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/hook"
	"cadre/internal/journal"
	"cadre/internal/journal/recorded"
	"cadre/internal/team"
)

// Options configure a replica. All may be zero.
type Options struct {
	// Reopen opens the journal again after a failed sync, when it takes no more records. A program
	// that ends in that case, such as a host, sets nil or a function that returns
	// [journal.ErrReopen]. The replica closes both journals.
	Reopen func(ctx context.Context) (journal.Journal, error)
	// Hooks finds and runs the hooks of the team; nil for none.
	Hooks Hooks
	// Check runs the checks of tasks; nil for a replica that completes no task with one.
	Check Checker
	// Project updates the projections from the state, which it must not keep. Close and Project
	// call it.
	Project func(ctx context.Context, j journal.Journal, s *team.State) error
	// Here says where the project of the team is on this machine; zero for where the team has it.
	Here team.Here
	// Log gets messages that are worth knowing but are not errors.
	Log func(string)
	// Advise gets notes with hints on what would change their cause; nil to send them to Log.
	Advise func(team.Advice)

	// Stamp completes each command that Do is given, for example with the id of the request that
	// asked for it; nil for nothing.
	Stamp func(*team.Command)

	// Now and NewID supply the time and the id of commands that have none; nil for [Now] and
	// [NewID].
	Now   func() team.Time
	NewID func() string
	// Decide decides commands; nil for [team.Decide]. The simulation breaks it on purpose, to prove
	// that it would find the fault.
	Decide func(*team.State, team.Command) (team.Decision, error)
}

// Journal is what a replica works on.
type Journal = journal.Journal

// Hooks runs the hooks for one event in the team's directory.
type Hooks func(ctx context.Context, t team.Team, e hook.Event) (hook.Verdict, error)

// Replica is one actor's handle on a team.
type Replica struct {
	opts Options
	*copied
	leave func() error // for a replica that is shared: takes a user away; see [Shared]
}

// copied is the copy of the state, and the journal that it comes from. Handles of a [Shared] have
// one together.
type copied struct {
	mu    sync.RWMutex // guards state
	state *team.State
	// journal is changed under mu and read without it, so that the history can be read within View.
	// A second read lock would wait for a writer that waits for the first one.
	journal atomic.Pointer[journal.Journal]

	reopening sync.Mutex // held while a broken journal is replaced

	saving       sync.Mutex // held while a snapshot is made
	snapshotSize int
}

// Receipt says what became of a command.
type Receipt struct {
	Record   *team.Record // nil when nothing changed
	Repeated bool         // the record is an earlier one of the same command
}

// Open loads the team from its journal. The replica closes the journal when it is closed, and when
// Open fails.
func Open(ctx context.Context, j journal.Journal, opts Options) (*Replica, error) {
	rep := &Replica{opts: opts.orDefaults(), copied: &copied{}}
	rep.journal.Store(&j)
	var err error
	if rep.state, rep.snapshotSize, err = rep.load(ctx, j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	rep.state.SetHere(opts.Here)
	return rep, nil
}

func (o Options) orDefaults() Options {
	if o.Now == nil {
		o.Now = Now
	}
	if o.NewID == nil {
		o.NewID = NewID
	}
	if o.Decide == nil {
		o.Decide = team.Decide
	}
	return o
}

// load returns the state at the end of the journal, and the size of the snapshot that it started
// from.
func (rep *Replica) load(ctx context.Context, j journal.Journal) (state *team.State, size int, err error) {
	return recorded.State(ctx, j, rep.log)
}

// Broken reports whether the error of a command says that this replica takes no more records and
// must be opened again.
func Broken(err error) bool { return errors.Is(err, journal.ErrReopen) }

func (rep *Replica) log(what string) {
	if rep.opts.Log != nil {
		rep.opts.Log(what)
	}
}

// advise reports something that the user can change, with what to do about it.
func (rep *Replica) advise(what string, hint team.Hint) {
	if rep.opts.Advise != nil {
		rep.opts.Advise(team.Advice{Text: what, Hints: []team.Hint{hint}})
	} else {
		rep.log(what)
	}
}

// Now returns the present time in the team's type.
func Now() team.Time { return team.Time(time.Now().UnixMilli()) }

// Now returns the present time, from the replica's clock.
func (rep *Replica) Now() team.Time { return rep.opts.Now() }

// NewID returns a new id for a command or a team: 26 letters and digits that cannot be guessed.
func NewID() string { return rand.Text() }

// View calls see with the state. The state does not change meanwhile, and see must not keep it.
func (rep *Replica) View(see func(*team.State)) {
	rep.mu.RLock()
	defer rep.mu.RUnlock()
	see(rep.state)
}

// Seq returns the seq of the last record that the replica has seen.
func (rep *Replica) Seq() int64 {
	rep.mu.RLock()
	defer rep.mu.RUnlock()
	return rep.state.Seq()
}

// Team returns the fields of the team as a whole.
func (rep *Replica) Team() (t team.Team) {
	rep.View(func(s *team.State) { t = s.Team() })
	return t
}

// Refresh brings the state up to the end of the journal.
func (rep *Replica) Refresh(ctx context.Context) error {
	for r, err := range rep.Raw(ctx, rep.Seq()) {
		if err != nil {
			return err
		}
		if err := rep.apply(r); err != nil {
			return err
		}
	}
	return nil
}

// apply applies a record of the journal, unless the state has it already.
func (rep *Replica) apply(r journal.Record) error {
	rep.mu.Lock()
	defer rep.mu.Unlock()
	if r.Seq <= rep.state.Seq() {
		return nil
	}
	record, err := team.DecodeRecord(r.Seq, string(r.Data))
	if err != nil {
		return err
	}
	rep.state.Apply(record)
	return nil
}

// Sync returns when everything that the replica shows is durable. Call it before an act outside the
// journal that rests on the state and cannot be repeated.
func (rep *Replica) Sync(ctx context.Context) error {
	_, err := rep.append(ctx, func() ([]byte, error) { return nil, nil })
	return err
}

// Wait returns soon after there is a record after seq, with the state up to date.
func (rep *Replica) Wait(ctx context.Context, after int64) error {
	for rep.Seq() <= after {
		if err := rep.wait(ctx, after); err != nil {
			return err
		}
		if err := rep.Refresh(ctx); err != nil {
			return err
		}
	}
	return nil
}

// NewPast returns the states of the team after earlier records. The caller owns the memory that
// they take.
func (rep *Replica) NewPast() *recorded.Past { return recorded.NewPast(pastSource{rep}) }

// Await is like Wait, but also records what becomes overdue meanwhile. A team of external members
// has no host that would do it.
func (rep *Replica) Await(ctx context.Context, after int64) error {
	for rep.Seq() <= after {
		if err := rep.RecordOverdue(ctx); err != nil {
			return err
		}
		var next team.Time
		now := rep.opts.Now()
		rep.View(func(s *team.State) { _, next = s.Overdue(now) })
		waiting, cancel := ctx, context.CancelFunc(func() {})
		if next != 0 {
			waiting, cancel = context.WithTimeout(ctx, next.Sub(now))
		}
		err := rep.Wait(waiting, after)
		late := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		if err != nil && !late {
			return err
		}
	}
	return nil
}

// RecordOverdue records what is overdue. It logs a refusal, because another process records what
// this replica may not. It returns only the end of ctx.
func (rep *Replica) RecordOverdue(ctx context.Context) error {
	if err := rep.recordOverdue(ctx); err != nil && ctx.Err() == nil {
		rep.log(err.Error())
	}
	return ctx.Err()
}

// Read yields the records after seq after that exist now.
func (rep *Replica) Read(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return decoded(rep.Raw(ctx, after))
}

// Watch yields the records after seq after as they come, until ctx ends.
func (rep *Replica) Watch(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return rep.follow(ctx, after, rep.wait)
}

// Follow is like Watch, but also records what becomes overdue meanwhile, as Await does.
func (rep *Replica) Follow(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return rep.follow(ctx, after, rep.Await)
}

func (rep *Replica) follow(ctx context.Context, after int64,
	wait func(ctx context.Context, after int64) error) iter.Seq2[*team.Record, error] {
	return decoded(func(yield func(journal.Record, error) bool) {
		for {
			for r, err := range rep.Raw(ctx, after) {
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
			if err := wait(ctx, after); err != nil {
				yield(journal.Record{}, err)
				return
			}
		}
	})
}

func decoded(records iter.Seq2[journal.Record, error]) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		for r, err := range records {
			var record *team.Record
			if err == nil {
				record, err = team.DecodeRecord(r.Seq, string(r.Data))
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// Do sends a command. It sets a new id and the present time where the command has none. The error
// is a [*team.Error] if the team or a hook refuses.
func (rep *Replica) Do(ctx context.Context, c team.Command) (Receipt, error) {
	if rep.opts.Stamp != nil {
		rep.opts.Stamp(&c)
	}
	if c.ID == "" {
		c.ID = rep.opts.NewID()
	}
	if c.At == 0 {
		c.At = rep.opts.Now()
	}
	if err := rep.recordOverdue(ctx); err != nil {
		return Receipt{}, err
	}
	c, err := rep.gate(ctx, c)
	if err != nil {
		return Receipt{}, err
	}
	return rep.send(ctx, c)
}

// recordOverdue records what is overdue before anything else happens. The team may have no host
// that would do it. A failure to record it is noted, and ends nothing else: where nothing at all
// can be recorded, the command that comes next says so.
func (rep *Replica) recordOverdue(ctx context.Context) error {
	var due []team.Body
	now := rep.opts.Now()
	rep.View(func(s *team.State) { due, _ = s.Overdue(now) })
	for _, body := range due {
		if _, err := rep.send(ctx, team.Command{ID: rep.opts.NewID(), Actor: team.User, At: now,
			Body: body}); err != nil && team.CodeOf(err) == "" {
			if ctx.Err() != nil {
				return err
			}
			rep.log(fmt.Sprintf("what is overdue cannot be recorded: %v", err))
		}
	}
	return nil
}

func (rep *Replica) send(ctx context.Context, c team.Command) (Receipt, error) {
	// Read as much as possible before taking the lock, because all other writers wait for it.
	if err := rep.Refresh(ctx); err != nil {
		return Receipt{}, err
	}
	var decision team.Decision
	seq, err := rep.append(ctx, func() ([]byte, error) {
		rep.mu.RLock()
		defer rep.mu.RUnlock()
		var err error
		if decision, err = rep.opts.Decide(rep.state, c); err != nil || decision.Record == nil {
			return nil, err
		}
		return team.AppendRecord(nil, decision.Record), nil
	})
	if err != nil {
		return Receipt{}, err
	}
	if decision.Repeats != 0 {
		return rep.repeated(ctx, decision.Repeats)
	}
	if decision.Record != nil {
		rep.mu.Lock()
		if rep.state.Seq() < seq {
			rep.state.Apply(decision.Record)
		}
		rep.mu.Unlock()
		rep.snapshot(ctx)
	}
	return Receipt{Record: decision.Record}, nil
}

func (rep *Replica) repeated(ctx context.Context, seq int64) (Receipt, error) {
	for r, err := range rep.Read(ctx, seq-1) {
		return Receipt{Record: r, Repeated: true}, err
	}
	return Receipt{}, fmt.Errorf("record %d of the team cannot be read any more", seq)
}

// snapshot saves the state if that is due. Its failure does not fail a command: the history has
// everything. It does not report that ctx was cancelled: the next record finds the snapshot due.
func (rep *Replica) snapshot(ctx context.Context) {
	if !rep.saving.TryLock() {
		return
	}
	defer rep.saving.Unlock()
	j := rep.current()
	if !j.SnapshotDue(rep.snapshotSize) {
		return
	}
	err := j.SaveSnapshot(ctx, func() (int64, []byte) {
		if !j.SnapshotDue(rep.snapshotSize) { // another process saved one just now
			return 0, nil
		}
		rep.mu.RLock()
		defer rep.mu.RUnlock()
		data := team.AppendSnapshot(make([]byte, 0, rep.snapshotSize+rep.snapshotSize/8), rep.state)
		rep.snapshotSize = len(data)
		return rep.state.Seq(), data
	})
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		rep.log(fmt.Sprintf("the snapshot was not saved: %v", err))
	}
}

// SaveSnapshot saves a snapshot if one is due. Do does this by itself.
func (rep *Replica) SaveSnapshot(ctx context.Context) { rep.snapshot(ctx) }

// Project updates the projections from the state. It does not report that ctx was cancelled: Close
// updates them again.
func (rep *Replica) Project(ctx context.Context) {
	if rep.opts.Project == nil {
		return
	}
	rep.mu.RLock()
	defer rep.mu.RUnlock()
	if err := rep.opts.Project(ctx, rep.current(), rep.state); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		rep.log(err.Error())
	}
}

// Close updates the projections and closes the journal. The journal of a shared replica stays open
// for its other users.
func (rep *Replica) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	rep.Project(ctx)
	if rep.leave != nil {
		return rep.leave()
	}
	return rep.current().Close()
}

// closeTimeout bounds the wait for another process that is writing projections.
const closeTimeout = 10 * time.Second
