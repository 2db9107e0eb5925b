package search

import (
	"context"
	"iter"

	"cadre/internal/journal"
)

// keptFor is how many records are kept for each match that is wanted, up to mostKept. Nearly all
// records that may match do, unless the query has filters.
const (
	keptFor  = 4
	mostKept = 256
)

// last yields the last matches. To find the last ones of many it keeps the bytes of the last
// records that may match, and decodes only those. If they have too few matches, it reads the
// records again and decodes all that may match.
func (s *searcher) last(ctx context.Context, records iter.Seq2[journal.Record, error]) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		matches, all, err := s.lastKept(ctx, records)
		if !all && len(matches) < s.Last && err == nil {
			matches, err = s.lastOfAll(ctx, records)
		}
		for _, m := range matches {
			if !yield(m, nil) {
				return
			}
		}
		if err != nil {
			yield(Match{}, err)
		}
	}
}

// lastKept returns the last matches in the last records that may match. all reports that no record
// was left out.
func (s *searcher) lastKept(ctx context.Context, records iter.Seq2[journal.Record, error]) (matches []Match, all bool,
	err error) {
	kept := make([]journal.Record, 0, keptFor*min(s.Last, mostKept/keptFor))
	n := 0 // records that may match
	for r, wrong := range s.candidates(ctx, records) {
		if err = wrong; err != nil {
			break
		}
		at := n % cap(kept)
		if n < cap(kept) {
			kept = append(kept, journal.Record{})
		}
		kept[at] = journal.Record{Seq: r.Seq, Data: append(kept[at].Data[:0], r.Data...)}
		n++
	}
	oldest := 0
	if n > len(kept) {
		oldest = n % len(kept)
	}
	for i := range kept {
		s.keep(&matches, kept[(oldest+i)%len(kept)], &err)
	}
	return matches, n == len(kept), err
}

// lastOfAll returns the last matches.
func (s *searcher) lastOfAll(ctx context.Context, records iter.Seq2[journal.Record, error]) (matches []Match,
	err error) {
	for r, wrong := range s.candidates(ctx, records) {
		if wrong != nil {
			return matches, wrong
		}
		s.keep(&matches, r, &err)
	}
	return matches, err
}

// keep adds the matches of the record, and drops the oldest ones beyond the wanted number.
func (s *searcher) keep(matches *[]Match, r journal.Record, wrong *error) {
	s.decode(r, func(m Match, err error) bool {
		if err != nil {
			*wrong = err
			return false
		}
		if *matches = append(*matches, m); len(*matches) > s.Last {
			*matches = (*matches)[1:]
		}
		return true
	})
}
