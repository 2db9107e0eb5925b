// Package desk is one actor's handle on a team: what it is now, a way to change it, and a way to hear of changes. Every
// front end, and every host, works through one.
//
// # Authority
//
// A desk keeps a copy of the state up to date from the journal, and puts commands through Decide under the journal's
// conflict rule. Around the commands that have hooks it runs them: a command that a hook rejects is not sent, and the rejection is
// recorded instead.
//
// # Guarantees
//
//   - Do returns without an error only when the command is durable, or had been before.
//   - A command that is tried again with the same id after any failure happens once.
//   - View shows a state that some prefix of the history gives; Refresh brings it to the present end.
//   - After a sync that failed, a desk that was told how opens its journal again, and records from the next command on.
//   - A desk may be used from any goroutine; other processes may have desks on the same team.
package desk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"cadre/internal/hook"
	"cadre/internal/journal"
	"cadre/internal/team"
)

// Options of a desk. All may be zero.
type Options struct {
	// Reopen opens the journal again after a sync that failed, when it takes no record any more; nil for whoever ends then, as a host does. The desk closes both.
	Reopen func(ctx context.Context) (journal.Journal, error)
	// Hooks finds and runs the hooks of the team; nil for none.
	Hooks Hooks
	// Project is called to bring the projections up to date with the state, which must not be kept. It is called by Close
	// and Project.
	Project func(ctx context.Context, j journal.Journal, s *team.State) error
	// Log is told what is worth knowing and no error.
	Log func(string)

	// Now and NewID are where the time and the ids of commands come from that were given none; nil for [Now] and [NewID].
	Now   func() team.Time
	NewID func() string
	// Decide is who decides; nil for [team.Decide]. The simulation breaks it on purpose, to prove that it would find that.
	Decide func(*team.State, team.Command) (team.Decision, error)
}

// Journal is what a desk works on.
type Journal = journal.Journal

// Hooks runs the hooks for one event in the team's directory.
type Hooks func(ctx context.Context, t team.Team, e hook.Event) (hook.Verdict, error)

// Desk is one actor's handle on a team.
type Desk struct {
	opts Options

	mu      sync.RWMutex // guards state and journal
	state   *team.State
	journal journal.Journal

	reopening sync.Mutex // held while another journal takes the place of a broken one

	saving       sync.Mutex // held while a snapshot is made
	snapshotSize int
}

// Receipt is what became of a command.
type Receipt struct {
	Record   *team.Record // nil when nothing had to change
	Repeated bool         // the record is an earlier one, of the same command
}

// Open loads the team from its journal, which the desk closes with itself, also when Open fails.
func Open(ctx context.Context, j journal.Journal, opts Options) (*Desk, error) {
	if opts.Now == nil {
		opts.Now = Now
	}
	if opts.NewID == nil {
		opts.NewID = NewID
	}
	if opts.Decide == nil {
		opts.Decide = team.Decide
	}
	d := &Desk{journal: j, opts: opts}
	var err error
	if d.state, d.snapshotSize, err = d.load(ctx, j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return d, nil
}

// load returns the state at the end of the journal, and the size of the snapshot that it was read from.
func (d *Desk) load(ctx context.Context, j journal.Journal) (state *team.State, size int, err error) {
	snapshot, err := j.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	state, err = team.DecodeSnapshot(snapshot.Seq, snapshot.Data)
	if err != nil && !errors.Is(err, team.ErrNewer) {
		// The history has everything that the snapshot has.
		d.log(fmt.Sprintf("the snapshot is passed over: %v", err))
		state, err = team.DecodeSnapshot(0, "")
	}
	if err != nil {
		return nil, 0, err
	}
	for r, err := range j.Read(ctx, state.Seq()) {
		if err != nil {
			return nil, 0, err
		}
		record, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err != nil {
			return nil, 0, err
		}
		state.Apply(record)
	}
	return state, len(snapshot.Data), nil
}

// Broken reports whether the error of a command says that this desk can record nothing any more and has to be opened anew.
func Broken(err error) bool { return errors.Is(err, journal.ErrReopen) }

func (d *Desk) log(what string) {
	if d.opts.Log != nil {
		d.opts.Log(what)
	}
}

// Now is the present time in the team's terms.
func Now() team.Time { return team.Time(time.Now().UnixMilli()) }

// NewID returns a new id for a command or a team: 26 letters and digits that nobody guesses.
func NewID() string { return rand.Text() }

// View calls see with the state, which does not change meanwhile and must not be kept.
func (d *Desk) View(see func(*team.State)) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	see(d.state)
}

// Seq is that of the last record the desk has seen.
func (d *Desk) Seq() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.state.Seq()
}

// Team returns what holds for the team as a whole.
func (d *Desk) Team() (t team.Team) {
	d.View(func(s *team.State) { t = s.Team() })
	return t
}

// Refresh brings the state up to the end of the journal.
func (d *Desk) Refresh(ctx context.Context) error {
	for r, err := range d.records(ctx, d.Seq()) {
		if err != nil {
			return err
		}
		if err := d.see(r); err != nil {
			return err
		}
	}
	return nil
}

// see applies a record that the journal has, unless the state has it already.
func (d *Desk) see(r journal.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Seq <= d.state.Seq() {
		return nil
	}
	record, err := team.DecodeRecord(r.Seq, string(r.Data))
	if err != nil {
		return err
	}
	d.state.Apply(record)
	return nil
}

// Sync returns when everything that the desk shows is durable. Who acts on what it shows outside the journal, and could not do so twice, waits for that first.
func (d *Desk) Sync(ctx context.Context) error {
	_, err := d.append(ctx, func() ([]byte, error) { return nil, nil })
	return err
}

// Wait returns soon after there is a record after seq, with the state up to date.
func (d *Desk) Wait(ctx context.Context, after int64) error {
	for d.Seq() <= after {
		if err := d.wait(ctx, after); err != nil {
			return err
		}
		if err := d.Refresh(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Read yields the records after seq after that are there.
func (d *Desk) Read(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return decoded(d.records(ctx, after))
}

// Watch yields the records after seq after as they come, until ctx ends.
func (d *Desk) Watch(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return decoded(func(yield func(journal.Record, error) bool) {
		for {
			for r, err := range d.records(ctx, after) {
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
			if err := d.wait(ctx, after); err != nil {
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

// Do sends a command. An empty id is given a new one, and a zero time the present. The error is a [*team.Error] where the team, or a hook, refuses.
func (d *Desk) Do(ctx context.Context, c team.Command) (Receipt, error) {
	if c.ID == "" {
		c.ID = d.opts.NewID()
	}
	if c.At == 0 {
		c.At = d.opts.Now()
	}
	if err := d.settle(ctx); err != nil {
		return Receipt{}, err
	}
	if d.opts.Hooks != nil {
		if err := d.gate(ctx, c); err != nil {
			return Receipt{}, err
		}
	}
	return d.send(ctx, c)
}

// settle ends what is overdue before anything else happens: a team may have no host that would.
func (d *Desk) settle(ctx context.Context) error {
	var due []team.Body
	now := d.opts.Now()
	d.View(func(s *team.State) { due = s.Overdue(now) })
	for _, body := range due {
		if _, err := d.send(ctx, team.Command{ID: d.opts.NewID(), Actor: team.User, At: now, Body: body}); err != nil && team.CodeOf(err) == "" {
			return err
		}
	}
	return nil
}

func (d *Desk) send(ctx context.Context, c team.Command) (Receipt, error) {
	// What can be read before the lock is held is not read under it, where all other writers wait.
	if err := d.Refresh(ctx); err != nil {
		return Receipt{}, err
	}
	var decision team.Decision
	seq, err := d.append(ctx, func() ([]byte, error) {
		d.mu.RLock()
		defer d.mu.RUnlock()
		var err error
		if decision, err = d.opts.Decide(d.state, c); err != nil || decision.Record == nil {
			return nil, err
		}
		return team.AppendRecord(nil, decision.Record), nil
	})
	if err != nil {
		return Receipt{}, err
	}
	if decision.Repeats != 0 {
		return d.repeated(ctx, decision.Repeats)
	}
	if decision.Record != nil {
		d.mu.Lock()
		if d.state.Seq() < seq {
			d.state.Apply(decision.Record)
		}
		d.mu.Unlock()
		d.snapshot(ctx)
	}
	return Receipt{Record: decision.Record}, nil
}

func (d *Desk) repeated(ctx context.Context, seq int64) (Receipt, error) {
	for r, err := range d.Read(ctx, seq-1) {
		return Receipt{Record: r, Repeated: true}, err
	}
	return Receipt{}, fmt.Errorf("record %d of the team is gone", seq)
}

// snapshot saves the state where that is due. It fails no command: the history has everything.
func (d *Desk) snapshot(ctx context.Context) {
	if !d.saving.TryLock() {
		return
	}
	defer d.saving.Unlock()
	j := d.current()
	if !j.SnapshotDue(d.snapshotSize) {
		return
	}
	err := j.SaveSnapshot(ctx, func() (int64, []byte) {
		if !j.SnapshotDue(d.snapshotSize) { // another process has just saved one
			return 0, nil
		}
		d.mu.RLock()
		defer d.mu.RUnlock()
		data := team.AppendSnapshot(make([]byte, 0, d.snapshotSize+d.snapshotSize/8), d.state)
		d.snapshotSize = len(data)
		return d.state.Seq(), data
	})
	if err != nil {
		d.log(fmt.Sprintf("the snapshot was not saved: %v", err))
	}
}

// Project brings the projections up to date with the state.
func (d *Desk) Project(ctx context.Context) {
	if d.opts.Project == nil {
		return
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.opts.Project(ctx, d.journal, d.state); err != nil {
		d.log(err.Error())
	}
}

// Close brings the projections up to date and closes the journal.
func (d *Desk) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	d.Project(ctx)
	return d.current().Close()
}

// closeTimeout bounds the wait for another process that is projecting just now.
const closeTimeout = 10 * time.Second
