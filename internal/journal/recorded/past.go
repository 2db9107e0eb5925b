package recorded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// Past gives the state of a team after any record of its journal. It keeps encoded states of some
// records in memory, the keyframes, and applies the records after the nearest one. A jump forward
// leaves keyframes behind, so that only the first jump into a part of the history reads that part.
// Any goroutine may use it.
type Past struct {
	records  func(ctx context.Context, after int64) iter.Seq2[journal.Record, error]
	snapshot func(ctx context.Context) (journal.Snapshot, error)

	mu      sync.Mutex
	frames  []journal.Snapshot // in the order of their seqs
	held    int                // bytes of their data
	spacing int64              // records between two keyframes, at least
	most    int                // bytes to hold, at most; a single keyframe may be larger
}

const (
	// mostHeld bounds the memory of the keyframes of one team.
	mostHeld = 32 << 20
	// leastSpacing is how many records are applied in about a millisecond.
	leastSpacing = 1024
	// bytesPerRecord weighs keyframes against records. Encoding or decoding 400 bytes of a keyframe
	// takes about as long as applying one record. A quarter of that keeps the first pass over a
	// history cheap, and a later jump applies records for at most four times as long as it decodes.
	bytesPerRecord = 100
)

// NewPast returns the past of the journal that the two functions read. They are the methods Read
// and Snapshot of a [journal.Journal].
func NewPast(records func(ctx context.Context, after int64) iter.Seq2[journal.Record, error],
	snapshot func(ctx context.Context) (journal.Snapshot, error)) *Past {
	return &Past{records: records, snapshot: snapshot, spacing: leastSpacing, most: mostHeld}
}

// LostError reports records that cannot be read, so that the states between them cannot be rebuilt.
type LostError struct {
	Seq   int64 // the record that was asked for; 0 where the history was read on
	Last  int64 // the last record before the damage; 0 for none
	Next  int64 // the first record after it whose state is known, from a snapshot; 0 for none
	Cause error // a [*journal.DamageError]
}

func (e *LostError) Error() string {
	text := "part of the history is lost"
	if e.Seq > 0 {
		text = fmt.Sprintf("the state after record %d is lost", e.Seq)
	}
	switch {
	case e.Last > 0 && e.Next > 0:
		text += fmt.Sprintf("; the states up to record %d and from record %d can be shown", e.Last, e.Next)
	case e.Last > 0:
		text += fmt.Sprintf("; the states up to record %d can be shown", e.Last)
	case e.Next > 0:
		text += fmt.Sprintf("; the states from record %d can be shown", e.Next)
	}
	return text + ": " + e.Cause.Error()
}

// Unwrap returns the damage.
func (e *LostError) Unwrap() error { return e.Cause }

// At returns the state after the record seq. The state belongs to the caller. The error is a
// [*LostError] if damage keeps it from being rebuilt, and a refusal if the record does not exist.
func (p *Past) At(ctx context.Context, seq int64) (*team.State, error) {
	if seq < 1 {
		return nil, team.Refuse(team.Invalid, "record %d does not exist: the first record of a team is record 1", seq)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.before(seq)
	if seq-p.seq(i) > p.spacing && p.look(ctx) == nil {
		i = p.before(seq)
	}
	for again := true; ; {
		state, err := p.decode(i)
		if err != nil { // the history has everything that the keyframe has
			p.drop(i)
			i--
			continue
		}
		state, err = p.walk(ctx, state, seq)
		var damage *journal.DamageError
		if !errors.As(err, &damage) {
			return state, err
		}
		// A snapshot beyond the damage may be near enough, and says where the history continues. The
		// look at it also tells the journal from where it can read on without crossing the damage.
		if err := p.look(ctx); err != nil {
			return nil, err
		}
		if i = p.before(seq); again && p.seq(i) > 0 {
			again = false
			continue
		}
		return nil, &LostError{Seq: seq, Last: state.Seq(), Next: p.after(state.Seq()), Cause: damage}
	}
}

// Prepare makes keyframes of the whole history, as far as no damage hides it, so that the first jump
// takes no longer than a later one. Jumps need not wait for its end.
func (p *Past) Prepare(ctx context.Context) error {
	state, err := team.DecodeSnapshot(0, "")
	for err == nil {
		p.mu.Lock()
		state, err = p.walk(ctx, state, state.Seq()+leastSpacing)
		p.mu.Unlock()
	}
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged || team.CodeOf(err) == team.NotFound {
		return nil // the end, or no way on
	}
	return err
}

// Records yields the records after seq after that exist now. Where some are lost to damage it
// yields a [*LostError], and continues with the record after [LostError].Next if there is one.
func (p *Past) Records(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		for {
			last, err := p.read(ctx, after, yield)
			var damage *journal.DamageError
			switch {
			case err == nil:
				return
			case !errors.As(err, &damage):
				yield(nil, err)
				return
			}
			next, err := p.beyond(ctx, last)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(nil, &LostError{Last: last, Next: next, Cause: damage}) || next == 0 {
				return
			}
			after = next
		}
	}
}

// read yields the records after seq after. It returns the last one, and the error that ended the
// reading; nil if yield ended it.
func (p *Past) read(ctx context.Context, after int64, yield func(*team.Record, error) bool) (last int64, err error) {
	for r, err := range p.records(ctx, after) {
		if err != nil {
			return after, err
		}
		record, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err != nil {
			return after, err
		}
		if !yield(record, nil) {
			return after, nil
		}
		after = r.Seq
	}
	return after, nil
}

// beyond returns the seq of the first keyframe after the record last; 0 for none.
func (p *Past) beyond(ctx context.Context, last int64) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.look(ctx); err != nil {
		return 0, err
	}
	return p.after(last), nil
}

// walk applies the records up to seq to the state, and keeps keyframes on the way. After an error it
// returns the state before the record that cannot be read.
func (p *Past) walk(ctx context.Context, state *team.State, seq int64) (*team.State, error) {
	if state.Seq() == seq {
		return state, nil
	}
	for r, err := range p.ahead(ctx, state.Seq(), seq) {
		if err != nil {
			return state, err
		}
		state.Apply(r)
		p.keep(state)
		if r.Seq == seq {
			return state, nil
		}
	}
	return nil, team.Refuse(team.NotFound, "record %d does not exist: the history ends with record %d", seq,
		state.Seq())
}

// ahead yields the records after seq after up to seq through. Another goroutine reads and decodes
// them meanwhile, which takes as long as applying them. It has ended when ahead returns.
func (p *Past) ahead(ctx context.Context, after, through int64) iter.Seq2[*team.Record, error] {
	const size, waiting = 256, 4
	return func(yield func(*team.Record, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		batches := make(chan []*team.Record, waiting)
		var failed error
		go func() {
			defer close(batches)
			var batch []*team.Record
			send := func() bool {
				select {
				case batches <- batch:
					batch = make([]*team.Record, 0, size)
					return true
				case <-ctx.Done():
					return false
				}
			}
			_, failed = p.read(ctx, after, func(r *team.Record, _ error) bool {
				batch = append(batch, r)
				return (len(batch) < size && r.Seq < through || send()) && r.Seq < through
			})
			send()
		}()
		defer func() {
			stop()
			for range batches {
			}
		}()
		for batch := range batches {
			for _, r := range batch {
				if !yield(r, nil) {
					return
				}
			}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}

// keep makes a keyframe of the state if the last one before it is far enough away.
func (p *Past) keep(state *team.State) {
	i := p.before(state.Seq())
	size := 0
	if i >= 0 {
		size = len(p.frames[i].Data)
	}
	away := state.Seq() - p.seq(i)
	if away < p.spacing || away*bytesPerRecord < int64(size) {
		return
	}
	data := team.AppendSnapshot(make([]byte, 0, size+size/8), state)
	p.insert(journal.Snapshot{Seq: state.Seq(), Data: string(data)})
}

// look makes a keyframe of the journal's snapshot.
func (p *Past) look(ctx context.Context) error {
	snapshot, err := p.snapshot(ctx)
	if err == nil && snapshot.Seq > 0 {
		p.insert(snapshot)
	}
	return err
}

func (p *Past) insert(frame journal.Snapshot) {
	i := p.before(frame.Seq)
	if p.seq(i) == frame.Seq {
		return
	}
	p.frames = slices.Insert(p.frames, i+1, frame)
	p.held += len(frame.Data)
	for p.held > p.most && len(p.frames) > 1 {
		p.thin()
	}
}

// thin doubles the spacing, and drops the keyframes that are nearer to each other.
func (p *Past) thin() {
	p.spacing = min(2*p.spacing, 1<<40)
	kept, last := p.frames[:0], int64(0)
	p.held = 0
	for i, frame := range p.frames {
		if frame.Seq-last < p.spacing && (i < len(p.frames)-1 || len(kept) > 0) {
			continue
		}
		kept, last = append(kept, frame), frame.Seq
		p.held += len(frame.Data)
	}
	clear(p.frames[len(kept):])
	p.frames = kept
}

// decode returns the state of the keyframe with that index; for -1 the state before the first
// record.
func (p *Past) decode(i int) (*team.State, error) {
	if i < 0 {
		return team.DecodeSnapshot(0, "")
	}
	return team.DecodeSnapshot(p.frames[i].Seq, p.frames[i].Data)
}

func (p *Past) drop(i int) {
	p.held -= len(p.frames[i].Data)
	p.frames = slices.Delete(p.frames, i, i+1)
}

// before returns the index of the last keyframe up to seq; -1 for none.
func (p *Past) before(seq int64) int {
	i, exact := slices.BinarySearchFunc(p.frames, seq, func(f journal.Snapshot, seq int64) int {
		return int(min(1, max(-1, f.Seq-seq)))
	})
	if exact {
		return i
	}
	return i - 1
}

// seq returns the seq of the keyframe with that index; 0 for -1.
func (p *Past) seq(i int) int64 {
	if i < 0 {
		return 0
	}
	return p.frames[i].Seq
}

// after returns the seq of the first keyframe after seq; 0 for none.
func (p *Past) after(seq int64) int64 {
	if i := p.before(seq) + 1; i < len(p.frames) {
		return p.frames[i].Seq
	}
	return 0
}
