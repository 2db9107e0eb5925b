package engine

import (
	"cmp"
	"context"
	"slices"

	"cadre/internal/replica/search"
	"cadre/internal/team"
)

// Matches are what a search found for a person who looks through it on a screen.
type Matches struct {
	Found []Found // the newest first
	More  bool    // older ones were left out
	// Trouble says which teams could not be searched; nil for none. Found has the matches of the
	// others.
	Trouble error
}

// How many matches a screen lists: of one team, of each of several teams, and in all.
const (
	mostOfOne  = 200
	mostOfEach = 20
	mostListed = 500
)

// Find searches one team or all teams for a person. Each screen lists the same matches in the same
// order. Find returns an error for a query that cannot be answered. Trouble of the answer names a
// team that cannot be searched.
func (e *Engine) Find(ctx context.Context, q Search) (f Matches, err error) {
	if err := q.Check(); err != nil {
		return f, err
	}
	q.Last = mostOfEach + 1
	if q.Team != "" {
		q.Last = mostOfOne + 1
	}
	of := map[string]int{} // how many of each team
	for one, err := range e.Search(ctx, q) {
		if err != nil {
			f.Trouble = err
			break
		}
		of[one.Team]++
		f.Found = append(f.Found, one)
	}
	slices.Reverse(f.Found) // the newest of each team first, also those of one moment
	slices.SortStableFunc(f.Found, func(a, b Found) int { return cmp.Compare(b.At, a.At) })
	f.bound(of, q.Last-1)
	if ctx.Err() != nil {
		return Matches{}, ctx.Err()
	}
	return f, nil
}

// bound leaves out the oldest matches of each team that has more than most, and of all teams.
func (f *Matches) bound(of map[string]int, most int) {
	for i := len(f.Found) - 1; i >= 0; i-- {
		if name := f.Found[i].Team; of[name] > most {
			of[name]--
			f.Found, f.More = slices.Delete(f.Found, i, i+1), true
		}
	}
	if len(f.Found) > mostListed {
		f.Found, f.More = slices.Clip(f.Found[:mostListed]), true
	}
}

// Place says where a match leads.
type Place string

// The places.
const (
	ToTask    Place = "task"
	ToNote    Place = "note"    // as it was after the change that was found
	ToMessage Place = "message" // in the conversation
	ToReport  Place = "report"
)

// Leads returns where the match leads: to the task, the note or the message that has the text, or
// to the report.
func (f *Found) Leads() Place {
	switch f.Kind {
	case search.Note:
		return ToNote
	case search.Message:
		return ToMessage
	case search.Report:
		return ToReport
	}
	return ToTask
}

// FindWords returns what finds the texts with the words of a line that a person typed: in one team
// up to a moment, 0 for the present, or in all teams for "".
func FindWords(ref, line string, until team.Time) Search {
	q := Search{Team: ref}
	q.Words, q.Until = WordsOf(line), until
	return q
}
