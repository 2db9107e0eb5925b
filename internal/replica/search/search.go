// Package search finds words in the history of a team: in messages, results, notes, reports, and
// in what tasks say.
//
// # Authority
//
// The package decides which texts of a history are searched, and when a text matches. It keeps no
// index, which could be wrong: each search reads the records. A record is decoded only if its bytes
// contain the words, so a search takes about as long as reading the files.
//
// # Guarantees
//
//   - A text that has all words of a query is found, wherever it stands in the history: also a note
//     that was changed or deleted since, and what was restored from a checkpoint.
//   - Damage ends a search with its error. What was found before it is yielded first.
package search

import (
	"cmp"
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// Kind says what a text is.
type Kind string

// The kinds of texts.
const (
	Message Kind = "message" // from a member or the user, and the report of a teammate at the end of a turn
	// of a completed task, submitted, or of an attempt that failed or was sent back, with why
	Result Kind = "result"
	Note   Kind = "note"   // what was set or added
	Report Kind = "report" // of the lead
	Task   Kind = "task"   // subject and description
)

// Kinds are all kinds of texts.
var Kinds = []Kind{Message, Result, Note, Report, Task}

// MaxWords bounds the words of a query, and the bytes of each of them.
const (
	MaxWords = 32
	MaxWord  = 256
)

// Query says what to find. The zero value of a field but Words selects everything.
type Query struct {
	Words   []string  // all of them must be in the text; case is ignored, and a word may contain spaces
	Kinds   []Kind    // kinds of texts
	Members []string  // texts of or to one of these members
	Tasks   []string  // texts of one of the tasks with these ids, and messages about one
	Since   team.Time // no earlier texts
	Until   team.Time // no later texts
	Last    int       // only the last matches

	// Candidate is called once, when a record is found that may match, from any goroutine; nil for
	// nothing.
	Candidate func()
}

// Check refuses a query that cannot be answered.
func (q *Query) Check() error {
	if len(q.Words) == 0 || slices.ContainsFunc(q.Words, func(w string) bool { return strings.TrimSpace(w) == "" }) {
		return team.Refuse(team.Invalid, "say which words to search for")
	}
	if len(q.Words) > MaxWords {
		return team.Refuse(team.TooLarge, "the search has %d words, of at most %d", len(q.Words), MaxWords)
	}
	for _, w := range q.Words {
		if !utf8.ValidString(w) {
			return team.Refuse(team.Invalid, "a word of the search has to be UTF-8, and %q is not", w)
		}
		if len(w) > MaxWord {
			return team.Refuse(team.TooLarge, "a word of the search has %d bytes, of at most %d", len(w), MaxWord)
		}
	}
	for _, k := range q.Kinds {
		if !slices.Contains(Kinds, k) {
			return team.Refuse(team.Invalid, "%q is not a kind of text; use one of: %s", k,
				strings.Join(names(Kinds), ", "))
		}
	}
	if q.Last < 0 {
		return team.Refuse(team.Invalid, "%d matches cannot be shown", q.Last)
	}
	return nil
}

func names(kinds []Kind) (all []string) {
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return all
}

// WordsOf returns the words of a text. Words in quotation marks are one.
func WordsOf(text string) (all []string) {
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 {
			all = append(all, strings.TrimSpace(part))
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return slices.DeleteFunc(all, func(word string) bool { return word == "" })
}

// Match is a text that has all words of a query.
type Match struct {
	Record int64     `json:"record"`            // number of its record in the history
	At     team.Time `json:"at"`                // when it was written
	Kind   Kind      `json:"kind"`              // message, result, note, report or task
	By     string    `json:"by"`                // who wrote it: a member, or @user
	To     []string  `json:"to,omitempty"`      // recipients of a message
	Task   string    `json:"task,omitempty"`    // id of its task, or of the task that a message is about
	Note   string    `json:"note,omitempty"`    // key of the note
	Seq    int64     `json:"seq,omitempty"`     // number of the message, or of the change of the note
	Failed bool      `json:"failed,omitempty"`  // the result is that of a failed attempt
	Text   string    `json:"text"`              // all of it
	Spans  []Span    `json:"matches,omitempty"` // where the words are in the text, in order
}

// Span is a part of a text.
type Span struct {
	From int `json:"from"` // offset of its first byte
	To   int `json:"to"`   // offset after its last byte
}

// In yields the texts of the records that match, the oldest first. It ends with the first error of
// the records, and when ctx does. The query must have passed [Query.Check]. With Last it may read
// the records twice.
func In(ctx context.Context, records iter.Seq2[journal.Record, error], q Query) iter.Seq2[Match, error] {
	return prepare(q).in(ctx, records)
}

func (s *searcher) in(ctx context.Context, records iter.Seq2[journal.Record, error]) iter.Seq2[Match, error] {
	if s.Last > 0 {
		return s.last(ctx, records)
	}
	return func(yield func(Match, error) bool) {
		for r, err := range s.candidates(ctx, records) {
			if err != nil {
				yield(Match{}, err)
				return
			}
			if !s.decode(r, yield) {
				return
			}
		}
	}
}

// candidates yields the records that may match. It ends with the first error.
func (s *searcher) candidates(ctx context.Context, records iter.Seq2[journal.Record, error]) iter.Seq2[journal.Record,
	error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range records {
			if err = cmp.Or(err, ctx.Err()); err != nil {
				yield(r, err)
				return
			}
			if !s.mayMatch(r.Data) {
				continue
			}
			s.first()
			if !yield(r, nil) {
				return
			}
		}
	}
}

// decode yields the matches of a record, and reports whether more are wanted.
func (s *searcher) decode(r journal.Record, yield func(Match, error) bool) bool {
	record, err := team.DecodeRecord(r.Seq, string(r.Data))
	if err != nil {
		return yield(Match{}, err)
	}
	for m := range s.matches(record) {
		if !yield(m, nil) {
			return false
		}
	}
	return true
}

// searcher is a query that was prepared.
type searcher struct {
	Query
	raw     []needle         // parts of the words, as they are in the bytes of a record
	pattern []*regexp.Regexp // the words
	first   func()           // calls Candidate once
}

func prepare(q Query) *searcher {
	s := &searcher{Query: q, first: func() {}}
	if q.Candidate != nil {
		s.first = sync.OnceFunc(q.Candidate)
	}
	for _, w := range q.Words {
		if n, ok := needleOf(w); ok {
			s.raw = append(s.raw, n)
		}
		s.pattern = append(s.pattern, regexp.MustCompile("(?i)"+regexp.QuoteMeta(w)))
	}
	return s
}

// mayMatch reports whether the bytes of a record contain the words.
func (s *searcher) mayMatch(data []byte) bool {
	for i := range s.raw {
		if !s.raw[i].in(data) {
			return false
		}
	}
	return true
}

// matches yields the texts of the record that match.
func (s *searcher) matches(r *team.Record) iter.Seq[Match] {
	return func(yield func(Match) bool) {
		for t := range texts(r) {
			t.Record = r.Seq
			if t.At == 0 {
				t.At = r.At
			}
			t.By = cmp.Or(t.By, r.Actor)
			if !s.wants(&t) || !s.finds(&t) {
				continue
			}
			if !yield(t) {
				return
			}
		}
	}
}

// wants reports whether the filters of the query select the text.
func (s *searcher) wants(m *Match) bool {
	named := func(name string) bool { return name == m.By || slices.Contains(m.To, name) }
	return (len(s.Kinds) == 0 || slices.Contains(s.Kinds, m.Kind)) &&
		(len(s.Members) == 0 || slices.ContainsFunc(s.Members, named)) &&
		(len(s.Tasks) == 0 || slices.Contains(s.Tasks, m.Task)) &&
		m.At >= s.Since && (s.Until == 0 || m.At <= s.Until)
}

// mostSpans bounds how many places of a text a match names.
const mostSpans = 1000

// finds reports whether the text has all words, and notes where.
func (s *searcher) finds(m *Match) bool {
	var spans []Span
	for _, p := range s.pattern {
		places := p.FindAllStringIndex(m.Text, mostSpans)
		if places == nil {
			return false
		}
		for _, at := range places {
			spans = append(spans, Span{at[0], at[1]})
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	m.Spans = spans[:min(len(spans), mostSpans)]
	return true
}
