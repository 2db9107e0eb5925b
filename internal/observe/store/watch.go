package store

import (
	"context"
	"errors"
	"sync"

	"cadre/internal/observe"
	"cadre/internal/observe/source"
	"cadre/internal/team"
)

// Observer reconstructs a team from lines: a Claude Code team, or the team of one of a session
// whose agent has no teams. A watch calls it from one goroutine at a time.
type Observer interface {
	Line(source string, line []byte, now team.Time) observe.Seen
	Introduce(source, ofTeam, member string)
	Gap(source, reason string, now team.Time) observe.Seen
	// Resume says that the observation was interrupted until now.
	Resume(now team.Time)
	// Team returns the observed team; nil if there has never been one.
	Team() *team.State
	// Agents returns the names of the teammates, as in [present.Session].
	Agents() []string
	Counts() observe.Counts
	// Save encodes its knowledge, for a [Restore].
	Save() ([]byte, error)
}

// Ender is an [Observer] that uses the end of a stream.
type Ender interface {
	End(source string, now team.Time) observe.Seen
}

// Restore restores a saved observer, or makes a new one if nothing was saved. newer is the
// journal's state, or nil. It replaces the saved state if it is newer, because the journal is
// written more often.
type Restore func(saved []byte, newer *team.State) (Observer, error)

// Team returns a Restore for observing a Claude Code team.
func Team(options observe.Options) Restore {
	return func(saved []byte, newer *team.State) (Observer, error) {
		return observe.Restore(options, saved, newer)
	}
}

// Look is called with the result of each relevant input, and the observer after it. It must neither
// keep nor change them. It is called from one goroutine at a time, and an error ends the watch.
type Look func(o Observer, seen observe.Seen) error

// Watch passes the lines of feeds to one observer.
type Watch struct {
	// Now returns the time.
	Now func() team.Time
	// Look is called with each result; may be nil.
	Look Look
	// Kept keeps the observer's knowledge; may be nil.
	Kept *Kept
	// Book journals the team; may be nil. It needs Kept.
	Book *Book
	// Saved is the knowledge of an observer to continue, for a watch without Kept; may be nil.
	Saved []byte

	mu       sync.Mutex
	observer Observer
	places   map[string]source.Place
	ended    error
	end      context.CancelCauseFunc
}

// errDone ends a watch without an error.
var errDone = errors.New("the watch is over")

// Begin continues with the kept data, or with a new observer. Records that were kept but not
// journaled are journaled now. They are not passed to Look.
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
	return w.Kept.save(w.observer, w.places) // with the resumption, for which there is no entry
}

// reconcile journals kept records that are not in the journal yet, and continues with the journal's
// state if it is newer.
func (w *Watch) reconcile(ctx context.Context, restore Restore) error {
	if err := w.Book.Flush(); err != nil {
		return err
	}
	if err := w.Book.checkMissing(w.observer.Team()); err != nil {
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

// journal adds the records of seen to the book. before is the team before them.
func (w *Watch) journal(before *team.State, seen observe.Seen) error {
	if w.Book == nil {
		return nil
	}
	return w.Book.Add(before, seen.Records)
}

// Run runs the feeds until all have ended, ctx has ended, or Look returns an error. Then everything
// is kept and journaled.
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
		w.ended = errDone // an abandoned stream may still deliver a line
	}
	if w.Kept != nil {
		err = errors.Join(err, w.keep())
	}
	return err
}

// View calls see with the observer, which see must not keep. No line is processed meanwhile.
func (w *Watch) View(see func(Observer)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	see(w.observer)
}

// Line implements [source.Listener].
func (w *Watch) Line(source string, line []byte, place source.Place) {
	w.take(entry{Kind: lineEntry, Source: source, Place: place, line: line})
}

// Show processes a line of a source that cannot be read again, and returns the result, which is
// also passed to Look.
func (w *Watch) Show(source string, line []byte) observe.Seen {
	return w.take(entry{Kind: lineEntry, Source: source, line: line})
}

// Introduce implements [source.Listener].
func (w *Watch) Introduce(source, ofTeam, member string) {
	w.take(entry{Kind: introduceEntry, Source: source, Team: ofTeam, Member: member})
}

// Gap implements [source.Listener].
func (w *Watch) Gap(source, reason string) {
	w.take(entry{Kind: gapEntry, Source: source, Reason: reason})
}

// End implements [source.Listener].
func (w *Watch) End(source string) { w.take(entry{Kind: endEntry, Source: source}) }

func (w *Watch) take(e entry) observe.Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return observe.Seen{}
	}
	e.At = w.Now()
	before, decoded := w.observer.Team(), w.observer.Counts().Decoded
	seen := e.applyTo(w.observer)
	if e.Kind == endEntry && len(seen.Records) == 0 {
		return seen
	}
	if e.Place != (source.Place{}) {
		w.places[e.Source] = e.Place
	}
	relevant := e.Kind != lineEntry || len(seen.Warnings) > 0 || w.observer.Counts().Decoded != decoded
	if err := w.record(e, before, seen, relevant); err != nil {
		w.fail(err)
	}
	return seen
}

// record keeps an input, journals its records and passes the result to Look. The package comment
// gives the reason for this order. Only Look need not wait for the disk.
func (w *Watch) record(e entry, before *team.State, seen observe.Seen, relevant bool) error {
	if w.Kept != nil {
		if err := w.Kept.add(e, relevant); err != nil {
			return err
		}
	}
	if !relevant {
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

// keep saves the observer's knowledge, after the journal has all records.
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

// Place implements [source.Listener].
func (w *Watch) Place(source string) source.Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places[source]
}

// Member implements [source.Listener].
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
