package replica

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"cadre/internal/journal"
)

func (rep *Replica) current() journal.Journal { return *rep.journal.Load() }

// replaced reports whether the error comes from a journal that was closed because a new one
// replaced it. Then nothing was done, and the call can be repeated on the new one.
func (rep *Replica) replaced(j journal.Journal, err error) bool {
	return errors.Is(err, os.ErrClosed) && !errors.Is(err, journal.ErrUncertain) && rep.current() != j
}

// append appends to the journal, deciding on the present state. If the journal takes no more
// records, nothing was written, and append continues on a new one. If the connection was lost
// before anything was written, append decides again.
func (rep *Replica) append(ctx context.Context, decide func() ([]byte, error)) (seq int64, err error) {
	const most = 3 // bounds the journals to open on a disk that fails repeatedly, and lost connections
	for range most {
		j := rep.current()
		seq, err = j.Append(ctx, rep.Seq(), rep.apply, decide)
		switch {
		case Broken(err) && rep.opts.Reopen != nil:
			again := rep.reopen(ctx, j)
			if Broken(again) { // its owner chose not to reopen
				return 0, err
			}
			if again != nil {
				return 0, fmt.Errorf("%w; and the journal cannot be opened again: %w", err, again)
			}
		case rep.replaced(j, err), errors.Is(err, journal.ErrLost) && ctx.Err() == nil:
		default:
			return seq, err
		}
	}
	return seq, err
}

// wait waits for a record after seq after, on the present journal.
func (rep *Replica) wait(ctx context.Context, after int64) error {
	for {
		j := rep.current()
		if err := j.Wait(ctx, after); !rep.replaced(j, err) {
			return err
		}
	}
}

// Raw yields the records after seq after that exist now as the journal has them, for a caller that
// decodes few of them.
func (rep *Replica) Raw(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for again := true; again; {
			again = false
			j := rep.current()
			for r, err := range j.Read(ctx, after) {
				if again = rep.replaced(j, err); again {
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

// History is Raw from the first record.
func (rep *Replica) History(ctx context.Context) iter.Seq2[journal.Record, error] {
	return rep.Raw(ctx, 0)
}

// pastSource reads a past from the replica's present journal, so that the past remains usable when
// the journal is replaced.
type pastSource struct{ rep *Replica }

func (r pastSource) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return r.rep.Raw(ctx, after)
}

func (r pastSource) Keyframes(ctx context.Context) ([]int64, error) {
	return r.rep.current().Keyframes(ctx)
}

func (r pastSource) Keyframe(ctx context.Context, seq int64) (journal.Snapshot, error) {
	return r.rep.current().Keyframe(ctx, seq)
}

func (r pastSource) SaveKeyframe(ctx context.Context, s journal.Snapshot) error {
	return r.rep.current().SaveKeyframe(ctx, s)
}

// reopen replaces a journal that takes no more records. The state is read from the new journal,
// which must have every record that was seen.
func (rep *Replica) reopen(ctx context.Context, broken journal.Journal) error {
	rep.reopening.Lock()
	defer rep.reopening.Unlock()
	if rep.current() != broken { // another call was faster
		return nil
	}
	j, err := rep.opts.Reopen(ctx)
	if err != nil {
		return err
	}
	state, _, err := rep.load(ctx, j)
	if err != nil {
		return errors.Join(err, j.Close())
	}
	is, was := state.Team(), rep.Team()
	rep.mu.Lock()
	switch {
	case is.ID != was.ID || is.Restored != was.Restored:
		err = fmt.Errorf("%w: another team has its name", journal.ErrGone)
	case state.Seq() < rep.state.Seq():
		err = fmt.Errorf("records are missing: the journal had %d records, and now has %d", rep.state.Seq(),
			state.Seq())
	default:
		rep.state = state
		rep.journal.Store(&j)
	}
	rep.mu.Unlock()
	if err != nil {
		return errors.Join(err, j.Close())
	}
	rep.log("the journal was opened again, because a record could not be made durable")
	if err := broken.Close(); err != nil {
		rep.log(err.Error())
	}
	return nil
}
