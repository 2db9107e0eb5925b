package teams

import (
	"context"
	"time"

	"cadre/internal/engine"
	"cadre/internal/replica/search"
	"cadre/internal/team"
)

// TextKind is the kind of a text that [Manager.Search] finds.
type TextKind string

// The kinds of texts.
const (
	TextMessage TextKind = "message"
	TextResult  TextKind = "result" // also the reason of a failed attempt
	TextNote    TextKind = "note"   // also an older version
	TextReport  TextKind = "report"
	TextTask    TextKind = "task" // subject and description
)

// SearchQuery says what to search for. The zero value of a field but Words selects everything.
type SearchQuery struct {
	Words   []string   // all of them must be in a text, in any case; a word may contain spaces
	Team    string     // name or id of a team
	Kinds   []TextKind // kinds of texts
	Members []string   // texts that one of these members wrote or got
	Tasks   []string   // texts of one of these tasks of Team, by id or name, and messages about one
	Since   time.Time  // no earlier texts
	Until   time.Time  // no later texts
	Last    int        // only the last matches of each team
}

// SearchMatch is a text that has all words of a query.
type SearchMatch struct {
	Team     string // name of the team, or its id
	Archived bool   // the team is an archived run
	Record   int64  // number of the record in the history; see [Event.Seq]
	At       time.Time
	Kind     TextKind
	By       string     // who wrote it: a member, or [User]
	To       []string   // recipients of a message
	Task     string     // id of its task, or of the task that a message is about
	TaskName string     // name of that task
	Note     string     // key of the note
	Seq      int64      // number of the message, or of the change of the note
	Failed   bool       // the result is that of a failed attempt
	Text     string     // all of it
	Spans    []TextSpan // where the words are in Text, in order
}

// TextSpan is a part of a text.
type TextSpan struct {
	From int // offset of its first byte
	To   int // offset after its last byte
}

// Search returns the texts that have all words of the query, by team, and of each team the oldest
// first. It reads the histories, the archived runs' too, and needs no index. Where teams cannot be
// read it returns the matches of the others with the error.
func (m *Manager) Search(ctx context.Context, q SearchQuery) (found []SearchMatch, err error) {
	if err := m.pass("Manager.Search"); err != nil {
		return nil, err
	}
	in := engine.Search{Team: q.Team, TaskRefs: q.Tasks, Query: search.Query{Words: q.Words, Members: q.Members,
		Last: q.Last, Since: timeOf(q.Since), Until: timeOf(q.Until)}}
	for _, k := range q.Kinds {
		in.Texts = append(in.Texts, string(k))
	}
	for f, err := range m.engine.Search(ctx, in) {
		if err != nil {
			return found, public(err)
		}
		found = append(found, searchMatchOf(f))
	}
	return found, nil
}

func searchMatchOf(f engine.Found) SearchMatch {
	var spans []TextSpan
	for _, s := range f.Spans {
		spans = append(spans, TextSpan(s))
	}
	return SearchMatch{Team: f.Team, Archived: f.Archived, Record: f.Record, At: clock(f.At), Kind: TextKind(f.Kind),
		By: f.By, To: f.To, Task: f.Task, TaskName: f.TaskName, Note: f.Note, Seq: f.Seq, Failed: f.Failed,
		Text:  f.Text,
		Spans: spans}
}

func timeOf(t time.Time) team.Time {
	if t.IsZero() {
		return 0
	}
	return millis(t)
}
