package search

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"cadre/internal/journal"
)

// Parts divides the records that read yields, so that they can be read beside each other. starts
// are the records after which a reader can begin at once, in order, the first of them 0.
func Parts(read func(after int64) iter.Seq2[journal.Record, error], starts []int64) (
	parts []iter.Seq2[journal.Record, error]) {
	for i, start := range starts {
		end := int64(0) // the last record of the part; 0 for the last part
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		parts = append(parts, func(yield func(journal.Record, error) bool) {
			for r, err := range read(start) {
				if err == nil && end > 0 && r.Seq > end || !yield(r, err) {
					return
				}
			}
		})
	}
	return parts
}

// answer is a match of a part, or its error.
type answer struct {
	Match
	err error
}

// InParts is [In] for records in parts, which it searches beside each other.
func InParts(ctx context.Context, parts []iter.Seq2[journal.Record, error], q Query) iter.Seq2[Match, error] {
	if len(parts) == 1 {
		return In(ctx, parts[0], q)
	}
	return func(yield func(Match, error) bool) {
		var last []Match
		for m, err := range ordered(ctx, parts, prepare(q)) {
			switch {
			case q.Last == 0 || err != nil:
				for _, m := range last {
					if !yield(m, nil) {
						return
					}
				}
				if last = nil; !yield(m, err) || err != nil {
					return
				}
			case len(last) == q.Last:
				last = append(last[1:], m)
			default:
				last = append(last, m)
			}
		}
		for _, m := range last {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// ordered yields the matches of the parts in the order of the parts. With Last each part has only
// its own last ones. It ends with the first error.
func ordered(ctx context.Context, parts []iter.Seq2[journal.Record, error], s *searcher) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		within, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		answers := make([]chan answer, len(parts))
		for i := range answers {
			answers[i] = make(chan answer, 64)
		}
		running.Go(func() { // a part begins only after those before it, so the first one that is wanted runs
			room := make(chan struct{}, runtime.GOMAXPROCS(0))
			for i, part := range parts {
				room <- struct{}{}
				running.Go(func() {
					s.answer(within, part, answers[i])
					<-room
				})
			}
		})
		for _, part := range answers {
			for a := range part {
				if !yield(a.Match, a.err) || a.err != nil {
					return
				}
			}
		}
		if err := ctx.Err(); err != nil { // some parts may have ended early
			yield(Match{}, err)
		}
	}
}

// answer sends the matches of a part, and closes the channel.
func (s *searcher) answer(ctx context.Context, part iter.Seq2[journal.Record, error], to chan<- answer) {
	defer close(to)
	for m, err := range s.in(ctx, part) {
		select {
		case to <- answer{m, err}:
		case <-ctx.Done():
			return
		}
	}
}
