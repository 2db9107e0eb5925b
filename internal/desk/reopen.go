package desk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"cadre/internal/journal"
)

func (d *Desk) current() journal.Journal {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.journal
}

// replaced reports whether an error comes from the end of a journal that another one has taken the place of: nothing was done there, and it can be done here.
func (d *Desk) replaced(j journal.Journal, err error) bool {
	return errors.Is(err, os.ErrClosed) && !errors.Is(err, journal.ErrUncertain) && d.current() != j
}

// append is that of the journal, on the present state. One that takes no record any more has written nothing, and another one takes its place.
func (d *Desk) append(ctx context.Context, decide func() ([]byte, error)) (seq int64, err error) {
	const most = 3 // journals, of a disk that fails again and again
	for range most {
		j := d.current()
		seq, err = j.Append(ctx, d.Seq(), d.see, decide)
		switch {
		case Broken(err) && d.opts.Reopen != nil:
			if again := d.reopen(ctx, j); again != nil {
				return 0, fmt.Errorf("%w; and it cannot be opened again: %w", err, again)
			}
		case d.replaced(j, err):
		default:
			return seq, err
		}
	}
	return seq, err
}

// wait is that of the journal.
func (d *Desk) wait(ctx context.Context, after int64) error {
	for {
		j := d.current()
		if err := j.Wait(ctx, after); !d.replaced(j, err) {
			return err
		}
	}
}

// records are those of the journal after seq after.
func (d *Desk) records(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for again := true; again; {
			again = false
			j := d.current()
			for r, err := range j.Read(ctx, after) {
				if again = d.replaced(j, err); again {
					break
				}
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
		}
	}
}

// reopen puts another journal into the place of one that takes no record any more. The state is read anew from that: what was seen is to be there, too.
func (d *Desk) reopen(ctx context.Context, broken journal.Journal) error {
	d.reopening.Lock()
	defer d.reopening.Unlock()
	if d.current() != broken { // somebody was faster
		return nil
	}
	j, err := d.opts.Reopen(ctx)
	if err != nil {
		return err
	}
	state, _, err := d.load(ctx, j)
	if err != nil {
		return errors.Join(err, j.Close())
	}
	is, was := state.Team(), d.Team()
	d.mu.Lock()
	switch {
	case is.ID != was.ID || is.Restored != was.Restored:
		err = fmt.Errorf("%w: another one has its name", journal.ErrGone)
	case state.Seq() < d.state.Seq():
		err = fmt.Errorf("records up to %d were there, and it ends with %d", d.state.Seq(), state.Seq())
	default:
		d.state, d.journal = state, j
	}
	d.mu.Unlock()
	if err != nil {
		return errors.Join(err, j.Close())
	}
	d.log("the journal was opened again, because a record could not be made durable")
	if err := broken.Close(); err != nil {
		d.log(err.Error())
	}
	return nil
}
