package render

import (
	"slices"
	"strconv"
	"strings"

	"cadre/internal/team"
)

// Entry is one line of a history: what a record changed.
type Entry struct {
	Seq  int64 // of the record
	At   team.Time
	Text string
}

// Folder makes the lines of a history. Consecutive records with nothing but delivered and read
// messages become one line, because people do not read them one by one.
type Folder struct {
	Called func(id string) string // what the task with an id is called; nil for its id

	last  *team.Record // the last of the folded records; nil for none
	marks []mark       // one per member, in the order of their first mark
}

type mark struct {
	member    string
	delivered []int64
	through   int64 // the last message that was read; 0 for none
}

// Add returns the lines that a record completes. A line that may be folded with the next record
// waits for that record, or for [Folder.Rest].
func (f *Folder) Add(r *team.Record) []Entry {
	if f.fold(r) {
		return nil
	}
	lines := f.Rest()
	for _, text := range Lines(r, f.Called) {
		lines = append(lines, Entry{r.Seq, r.At, text})
	}
	return lines
}

// Rest returns the line that waits to be folded.
func (f *Folder) Rest() []Entry {
	if f.last == nil {
		return nil
	}
	parts := make([]string, len(f.marks))
	for i, m := range f.marks {
		var said []string
		if len(m.delivered) > 0 {
			said = append(said, "received "+messages(m.delivered))
		}
		if m.through != 0 {
			said = append(said, "has read up to #"+strconv.FormatInt(m.through, 10))
		}
		parts[i] = m.member + " " + strings.Join(said, " and ")
	}
	entry := Entry{f.last.Seq, f.last.At, Clean(strings.Join(parts, "; "))}
	f.last, f.marks = nil, nil
	return []Entry{entry}
}

// fold folds a record that has only marks. It reports whether it did.
func (f *Folder) fold(r *team.Record) bool {
	marked := len(r.Events) > 0 && !slices.ContainsFunc(r.Events, func(e team.Event) bool {
		switch e.(type) {
		case *team.MessagesDelivered, *team.MessagesRead:
			return false
		}
		return true
	})
	if !marked {
		return false
	}
	f.last = r
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.MessagesDelivered:
			m := f.of(e.Member)
			m.delivered = append(m.delivered, e.Seqs...)
		case *team.MessagesRead:
			m := f.of(e.Member)
			m.through = max(m.through, e.Through)
		}
	}
	return true
}

func (f *Folder) of(member string) *mark {
	i := slices.IndexFunc(f.marks, func(m mark) bool { return m.member == member })
	if i < 0 {
		i = len(f.marks)
		f.marks = append(f.marks, mark{member: member})
	}
	return &f.marks[i]
}
