package recorded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// Past gives the state of a team after any record of its journal. It keeps encoded states of some
// records in memory, the keyframes, and applies the records after the nearest one. The first ones
// are those that the journal keeps. A jump forward leaves keyframes behind, so that only the first
// jump into a part of the history reads that part. Any goroutine may use it.
type Past struct {
	from Source

	mu       sync.Mutex
	frames   []journal.Snapshot // in the order of their seqs
	bytes    int                // bytes of their data
	spacing  int64              // records between two keyframes, at least
	maxBytes int                // bytes to hold, at most; a single keyframe may be larger
	scratch  []byte             // in which keyframes are encoded while records are replayed
}

const (
	// defaultMaxBytes bounds the memory of the keyframes of one team.
	defaultMaxBytes = 32 << 20
	// minSpacing is how many records are applied in about a millisecond.
	minSpacing = 1024
	// bytesPerRecord weighs keyframes against records. Encoding or decoding 400 bytes of a keyframe
	// takes about as long as applying one record. A quarter of that keeps the first pass over a
	// history cheap. A later jump applies records for at most four times as long as it decodes.
	bytesPerRecord = 100
	// fewBytesPerRecord is the weight in a jump that applies many records. It makes fewer
	// keyframes, because a person waits for the jump.
	fewBytesPerRecord = 25
)

// Source is what a past is read from: the part of a [journal.Journal] that it needs.
type Source interface {
	Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error]
	Keyframes(ctx context.Context) ([]int64, error)
	Keyframe(ctx context.Context, seq int64) (journal.Snapshot, error)
	SaveKeyframe(ctx context.Context, s journal.Snapshot) error
}

// NewPast returns the past of a journal.
func NewPast(from Source) *Past {
	return &Past{from: from, spacing: minSpacing, maxBytes: defaultMaxBytes}
}

// LostError reports records that cannot be read, so that the states between them cannot be rebuilt.
type LostError struct {
	Seq   int64 // the record that was asked for; 0 if the history was read from its beginning to its end
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
	if seq-p.seq(i) > p.spacing {
		i = p.loadBefore(ctx, seq)
	}
	for again := true; ; {
		state, err := p.decode(i)
		if err != nil { // the history has everything that the keyframe has
			p.drop(i)
			i--
			continue
		}
		began := state.Seq()
		state, err = p.replay(ctx, state, seq)
		var damage *journal.DamageError
		if !errors.As(err, &damage) {
			if err == nil && seq-began > longReplay {
				p.save(ctx, p.before(seq))
			}
			return state, err
		}
		// A keyframe of the journal after the damage may be near enough. Loading it also tells the
		// journal where it can continue to read after the damage.
		if i = p.loadBefore(ctx, seq); again && p.seq(i) > 0 {
			again = false
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, &LostError{Seq: seq, Last: state.Seq(), Next: p.beyond(ctx, state.Seq()), Cause: damage}
	}
}

// Prepare makes keyframes of the history up to its end, or up to damage, so that the first jump
// takes no longer than a later one. Jumps may run at the same time.
func (p *Past) Prepare(ctx context.Context) error {
	state, err := team.DecodeSnapshot(0, "")
	for err == nil {
		p.mu.Lock()
		state, err = p.replay(ctx, state, state.Seq()+minSpacing)
		p.mu.Unlock()
	}
	if ctx.Err() == nil {
		p.mu.Lock()
		p.save(ctx, 0)
		p.mu.Unlock()
	}
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged || team.CodeOf(err) == team.NotFound {
		return nil // the end of the history, or damage
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
			p.mu.Lock()
			next := p.beyond(ctx, last)
			p.mu.Unlock()
			if err := ctx.Err(); err != nil {
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
	for r, err := range p.from.Read(ctx, after) {
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

// beyond returns the seq of the first keyframe after the record last; 0 for none. Loading it also
// tells the journal where it can continue to read after the damage.
func (p *Past) beyond(ctx context.Context, last int64) int64 {
	kept, _ := p.from.Keyframes(ctx)
	known := p.after(last)
	for _, seq := range kept {
		if seq <= last {
			continue
		}
		if known > 0 && seq > known || p.load(ctx, seq) && p.readable(seq) {
			break
		}
	}
	return p.after(last)
}

// replay applies the records up to seq to the state, and keeps keyframes on the way. After an error
// it returns the state before the record that cannot be read.
func (p *Past) replay(ctx context.Context, state *team.State, seq int64) (*team.State, error) {
	if state.Seq() == seq {
		return state, nil
	}
	defer func() { p.scratch = nil }()
	weight := int64(bytesPerRecord)
	if seq-state.Seq() > longReplay {
		weight = fewBytesPerRecord
	}
	for r, err := range p.decodeAhead(ctx, state.Seq(), seq) {
		if err != nil {
			return state, err
		}
		state.Apply(r)
		p.keep(state, weight)
		if r.Seq == seq {
			return state, nil
		}
	}
	return nil, team.Refuse(team.NotFound, "record %d does not exist: the history ends with record %d", seq,
		state.Seq())
}

// end applies all records after the state, and keeps keyframes on the way.
func (p *Past) end(ctx context.Context, state *team.State) (*team.State, error) {
	defer func() { p.scratch = nil }()
	for r, err := range p.decodeAhead(ctx, state.Seq(), math.MaxInt64) {
		if err != nil {
			return nil, err
		}
		state.Apply(r)
		p.keep(state, bytesPerRecord)
	}
	return state, nil
}

// batch is some records on their way from the journal to the state.
type batch struct {
	lines   []line
	records []*team.Record // of the lines, up to the first one that cannot be decoded
	failed  error
	decoded chan struct{} // closed when the lines are decoded
}

type line struct {
	seq  int64
	text string
}

// decode decodes the lines of the batch.
func (c *batch) decode() {
	defer close(c.decoded)
	for _, l := range c.lines {
		r, err := team.DecodeRecord(l.seq, l.text)
		if err != nil {
			c.failed = err
			return
		}
		c.records = append(c.records, r)
	}
}

const (
	batchSize   = 256 // lines
	maxDecoders = 4
)

// decodeAhead yields the records after seq after up to seq through. Meanwhile one goroutine reads
// the lines, and others decode them, because each of these takes about as long as applying the
// records. They have ended when decodeAhead returns.
func (p *Past) decodeAhead(ctx context.Context, after, through int64) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		reading, stop := context.WithCancel(ctx)
		decoders := max(1, min(maxDecoders, runtime.GOMAXPROCS(0)-1))
		batches, work := make(chan *batch, 2*decoders), make(chan *batch, 2*decoders)
		var failed error
		var running sync.WaitGroup
		running.Go(func() {
			defer close(batches)
			defer close(work)
			failed = p.readBatches(reading, after, through, func(c *batch) bool {
				for _, to := range []chan *batch{work, batches} {
					select {
					case to <- c:
					case <-reading.Done():
						return false
					}
				}
				return true
			})
		})
		for range decoders {
			running.Go(func() {
				for c := range work {
					c.decode()
				}
			})
		}
		defer running.Wait()
		defer stop()
		for c := range batches {
			<-c.decoded
			for _, r := range c.records {
				if !yield(r, nil) {
					return
				}
			}
			if c.failed != nil {
				yield(nil, c.failed)
				return
			}
		}
		if failed == nil {
			failed = ctx.Err()
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}

// readBatches reads the lines of the records after seq after up to seq through, and sends them in
// batches.
func (p *Past) readBatches(ctx context.Context, after, through int64, send func(*batch) bool) error {
	var lines []line
	sent := func() bool {
		c := &batch{lines: lines, records: make([]*team.Record, 0, len(lines)), decoded: make(chan struct{})}
		lines = nil
		return len(c.lines) == 0 || send(c)
	}
	for r, err := range p.from.Read(ctx, after) {
		if err != nil {
			sent()
			return err
		}
		if lines == nil {
			lines = make([]line, 0, min(batchSize, through-r.Seq+1))
		}
		lines = append(lines, line{r.Seq, string(r.Data)})
		if (len(lines) == batchSize || r.Seq >= through) && (!sent() || r.Seq >= through) {
			return nil
		}
	}
	sent()
	return nil
}

// keep makes a keyframe of the state if the last one before it is far enough away. It keeps at most
// weight bytes for each record.
func (p *Past) keep(state *team.State, weight int64) {
	i := p.before(state.Seq())
	size := 0
	if i >= 0 {
		size = len(p.frames[i].Data)
	}
	away := state.Seq() - p.seq(i)
	if away < p.spacing || away*weight < int64(size) {
		return
	}
	if cap(p.scratch) < size {
		p.scratch = make([]byte, 0, size+size/4)
	}
	p.scratch = team.AppendSnapshot(p.scratch[:0], state)
	p.insert(journal.Snapshot{Seq: state.Seq(), Data: string(p.scratch)})
}

// loadBefore takes the last usable keyframe of the journal up to seq, and returns the index of the
// last one in memory. It ignores errors, because the history has everything that a keyframe has.
func (p *Past) loadBefore(ctx context.Context, seq int64) int {
	kept, _ := p.from.Keyframes(ctx)
	for _, at := range slices.Backward(kept) {
		if at > seq {
			continue
		}
		if at < p.seq(p.before(seq)) || p.load(ctx, at) {
			break
		}
	}
	return p.before(seq)
}

// load takes a keyframe of the journal, and reports whether it is usable.
func (p *Past) load(ctx context.Context, seq int64) bool {
	frame, err := p.from.Keyframe(ctx, seq)
	if err != nil || frame.Seq != seq {
		return false
	}
	p.insert(frame)
	return true
}

// readable reports whether the keyframe of the record seq can be decoded. It drops one that cannot.
func (p *Past) readable(seq int64) bool {
	i := p.before(seq)
	if _, err := p.decode(i); err != nil {
		p.drop(i)
		return false
	}
	return true
}

// longReplay is how many records a jump applies before it is worth saving a keyframe. Such a
// history was copied or restored as a whole: its writers have left none yet.
const longReplay = 16 << 10

// save saves the keyframes from that index on in the journal, which keeps those that are far enough
// from its own.
func (p *Past) save(ctx context.Context, from int) {
	for _, frame := range p.frames[max(0, from):] {
		if p.from.SaveKeyframe(ctx, frame) != nil {
			return
		}
	}
}

func (p *Past) insert(frame journal.Snapshot) {
	i := p.before(frame.Seq)
	if p.seq(i) == frame.Seq {
		return
	}
	p.frames = slices.Insert(p.frames, i+1, frame)
	p.bytes += len(frame.Data)
	for p.bytes > p.maxBytes && len(p.frames) > 1 {
		p.thin()
	}
}

// thin doubles the spacing, and drops the keyframes that are nearer to each other.
func (p *Past) thin() {
	p.spacing = min(2*p.spacing, 1<<40)
	kept, last := p.frames[:0], int64(0)
	p.bytes = 0
	for i, frame := range p.frames {
		if frame.Seq-last < p.spacing && (i < len(p.frames)-1 || len(kept) > 0) {
			continue
		}
		kept, last = append(kept, frame), frame.Seq
		p.bytes += len(frame.Data)
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
	p.bytes -= len(p.frames[i].Data)
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
