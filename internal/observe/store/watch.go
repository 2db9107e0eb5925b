package store

import (
	"context"
	"errors"
	"sync"

	"cadre/internal/observe"
	"cadre/internal/observe/source"
	"cadre/internal/team"
)

// Observer is what a watch needs of who makes a team of the lines: of a team of Claude Code's, or
// of a session whose agent has no teams. A watch calls it from one goroutine at a time.
type Observer interface {
	Line(source string, line []byte, now team.Time) observe.Seen
	Introduce(source, ofTeam, member string)
	Gap(source, reason string, now team.Time) observe.Seen
	// Resume says that nobody looked until now.
	Resume(now team.Time)
	// Team is what was seen; nil where no team was ever there.
	Team() *team.State
	// Agents are the names of the teammates, as in [present.Session].
	Agents() []string
	Counts() observe.Counts
	// Save writes everything that it knows, so that a [Restore] reads it back.
	Save() ([]byte, error)
}

// Ender is an [Observer] to whom the end of a stream says something.
type Ender interface {
	End(source string, now team.Time) observe.Seen
}

// Restore reads an observer back that was saved, or makes one that has seen nothing where nothing
// was. A state that is newer than the saved one, because its journal is written more often, takes
// that one's place; nil for none.
type Restore func(saved []byte, newer *team.State) (Observer, error)

// Team has a team of Claude Code's observed.
func Team(options observe.Options) Restore {
	return func(saved []byte, newer *team.State) (Observer, error) {
		return observe.Restore(options, saved, newer)
	}
}

// Look is called with everything that was seen, and the observer after it. Neither may be kept or
// changed. It is called from one goroutine at a time, and an error ends the watch.
type Look func(o Observer, seen observe.Seen) error

// Watch brings the lines of feeds to one observer.
type Watch struct {
	// Now tells the time.
	Now func() team.Time
	// Look is who looks on; nil for nobody.
	Look Look
	// Kept keeps what the observer knows; nil for nothing.
	Kept *Kept
	// Book journals the team; nil for none. It needs Kept.
	Book *Book
	// Saved is what an observer knows that goes on, where nothing is kept; nil for nothing.
	Saved []byte

	mu       sync.Mutex
	observer Observer
	places   map[string]source.Place
	ended    error
	end      context.CancelCauseFunc
}

// errDone ends a watch without an error.
var errDone = errors.New("the watch is over")

// Begin goes on with what was kept, or with an observer that has seen nothing. What had been kept
// and not journaled is journaled now, and shown to nobody.
func (w *Watch) Begin(ctx context.Context, restore Restore) (err error) {
	w.places = map[string]source.Place{}
	if w.Kept == nil {
		if w.observer, err = restore(w.Saved, nil); err != nil {
			return err
		}
		w.observer.Resume(w.Now())
		return nil
	}
	if w.observer, err = w.Kept.restore(restore, w.places, w.journal); err != nil {
		return err
	}
	if w.Book != nil {
		if err := w.reconcile(ctx, restore); err != nil {
			return err
		}
	}
	w.observer.Resume(w.Now())
	return w.Kept.save(w.observer, w.places) // with that, which no entry says
}

// reconcile journals what was kept and is not in the journal yet, and goes on with the journal's
// state where that is newer.
func (w *Watch) reconcile(ctx context.Context, restore Restore) error {
	if err := w.Book.Flush(); err != nil {
		return err
	}
	if err := w.Book.missed(w.observer.Team()); err != nil {
		return err
	}
	s, err := w.Book.newer(ctx, w.observer.Team())
	if err != nil || s == nil {
		return err
	}
	saved, err := w.observer.Save()
	if err != nil {
		return err
	}
	w.observer, err = restore(saved, s)
	return err
}

// journal has what was seen journaled; before is the team as it was until then.
func (w *Watch) journal(before *team.State, seen observe.Seen) error {
	if w.Book == nil {
		return nil
	}
	return w.Book.Add(before, seen.Records)
}

// Run runs the feeds until all have ended, or ctx has, or somebody's Look has had enough. Then
// everything is kept and journaled.
func (w *Watch) Run(ctx context.Context, feeds ...source.Feed) error {
	ctx, w.end = context.WithCancelCause(ctx)
	defer w.end(errDone)
	var running sync.WaitGroup
	for _, f := range feeds {
		running.Go(func() {
			if err := f.Run(ctx, w); err != nil {
				w.mu.Lock()
				w.fail(err)
				w.mu.Unlock()
			}
		})
	}
	running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.ended
	if w.ended == nil {
		w.ended = errDone // a stream whose reader could not be called back may still bring a line
	}
	if w.Kept != nil {
		err = errors.Join(err, w.keep())
	}
	return err
}

// View shows the observer, which must not be kept. Nothing is seen meanwhile.
func (w *Watch) View(see func(Observer)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	see(w.observer)
}

// Line implements [Listener].
func (w *Watch) Line(source string, line []byte, place source.Place) {
	w.take(entry{Kind: lineEntry, Source: source, Place: place, line: line})
}

// Show takes a line of a source that cannot be read again, and returns what was seen in it, which
// is shown to Look too.
func (w *Watch) Show(source string, line []byte) observe.Seen {
	return w.take(entry{Kind: lineEntry, Source: source, line: line})
}

// Introduce implements [Listener].
func (w *Watch) Introduce(source, ofTeam, member string) {
	w.take(entry{Kind: introduceEntry, Source: source, Team: ofTeam, Member: member})
}

// Gap implements [Listener].
func (w *Watch) Gap(source, reason string) {
	w.take(entry{Kind: gapEntry, Source: source, Reason: reason})
}

// End implements [Listener].
func (w *Watch) End(source string) { w.take(entry{Kind: endEntry, Source: source}) }

func (w *Watch) take(e entry) observe.Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return observe.Seen{}
	}
	e.At = w.Now()
	before, decoded := w.observer.Team(), w.observer.Counts().Decoded
	seen := e.show(w.observer)
	if e.Kind == endEntry && len(seen.Records) == 0 {
		return seen
	}
	if e.Place != (source.Place{}) {
		w.places[e.Source] = e.Place
	}
	said := e.Kind != lineEntry || len(seen.Warnings) > 0 || w.observer.Counts().Decoded != decoded
	if err := w.record(e, before, seen, said); err != nil {
		w.fail(err)
	}
	return seen
}

// record keeps what was taken, journals it and shows it, in the order that the package comment
// gives the reason for; only whoever looks on need not wait for the disk.
func (w *Watch) record(e entry, before *team.State, seen observe.Seen, said bool) error {
	if w.Kept != nil {
		if err := w.Kept.add(e, said); err != nil {
			return err
		}
	}
	if !said {
		return nil
	}
	if err := w.journal(before, seen); err != nil {
		return err
	}
	if w.Look != nil {
		if err := w.Look(w.observer, seen); err != nil {
			return err
		}
	}
	if w.Kept != nil && w.Kept.due() {
		return w.keep()
	}
	return nil
}

// keep saves what is known, when the journal has it.
func (w *Watch) keep() error {
	if w.Book != nil {
		if err := w.Book.Flush(); err != nil {
			return err
		}
		if err := w.Book.snapshot(context.Background(), w.observer.Team()); err != nil {
			return err
		}
	}
	return w.Kept.save(w.observer, w.places)
}

func (w *Watch) fail(err error) {
	if w.ended == nil {
		w.ended = err
	}
	if w.end != nil {
		w.end(err)
	}
}

// Place implements [Listener].
func (w *Watch) Place(source string) source.Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places[source]
}

// Member implements [Listener].
func (w *Watch) Member(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.observer.Team()
	if s == nil || !s.Exists() || name == s.Team().Lead {
		return false
	}
	_, there := s.Member(name)
	return there
}
