package api

import (
	"reflect"
	"strconv"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// NoteText is a text for a note.
type NoteText struct {
	Text string `json:"text"` // all of the new text
	// the last change of the note that the writer has seen: a later change is a conflict, and the
	// problem has the present note; 0 for a note that must not exist yet; any without it
	IfSeq *int64 `json:"ifSeq,omitempty"`
}

// NoteAddition is a text to add to a note.
type NoteAddition struct {
	Text string `json:"text"` // what is added, on a line of its own
}

var noteRoutes = []Route{
	{Method: "GET", Path: "/v1/teams/{team}/notes", ID: "listNotes", Command: "note list", Role: auth.Observe,
		About: "List the notes that a team shares.", Answer: reflect.TypeFor[[]team.Note](), handle: (*call).listNotes},
	{Method: "GET", Path: "/v1/teams/{team}/notes/{key}", ID: "getNote", Command: "note get", Role: auth.Observe,
		Tagged: true,
		About:  "Show a note. The / in a key is written as %2F. The ETag is the number of its last change.",
		Query:  []Param{{"seq", "integer", "show the note as it was after this change of it"}},
		Answer: reflect.TypeFor[team.Note](), handle: (*call).getNote},
	{Method: "PUT", Path: "/v1/teams/{team}/notes/{key}", ID: "setNote", Command: "note set", Role: auth.Steer,
		Matched: true,
		About:   "Set a note, or replace its text. An If-Match with the ETag of the note stands for ifSeq.",
		Query:   []Param{pageAs}, Body: reflect.TypeFor[NoteText](),
		Answer: reflect.TypeFor[team.Note](), handle: (*call).setNote},
	{Method: "POST", Path: "/v1/teams/{team}/notes/{key}/append", ID: "appendNote", Command: "note append",
		Role:  auth.Steer,
		About: "Add a text to a note, on a line of its own, or make the note.", Query: []Param{pageAs},
		Body: reflect.TypeFor[NoteAddition](), Answer: reflect.TypeFor[team.Note](), handle: (*call).appendNote},
	{Method: "DELETE", Path: "/v1/teams/{team}/notes/{key}", ID: "deleteNote", Command: "note rm", Role: auth.Steer,
		Matched: true,
		About: "Delete a note. Its versions stay in the history. An If-Match with the ETag of the note stands for " +
			"ifSeq.",
		Query:  []Param{pageAs, {"ifSeq", "integer", "only if this is the last change of the note"}},
		handle: (*call).deleteNote},
	{Method: "GET", Path: "/v1/teams/{team}/notes/{key}/changes", ID: "listNoteChanges", Command: "note log",
		Role:   auth.Observe,
		About:  "List the changes of a note, the oldest first.",
		Answer: reflect.TypeFor[[]history.NoteChange](), handle: (*call).listNoteChanges},
}

func (c *call) listNotes() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	var notes []team.Note
	t.View(func(s *team.State) { notes = listed(s.Notes()) })
	return notes, nil
}

func (c *call) getNote() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	seq, err := c.number("seq", 0)
	if err != nil {
		return nil, err
	}
	var n team.Note
	if c.URL.Query().Has("seq") {
		n, err = t.NoteAt(c.Context(), c.PathValue("key"), seq)
	} else {
		t.View(func(s *team.State) { n, err = s.NamedNote(c.PathValue("key")) })
	}
	if err != nil {
		return nil, err
	}
	return c.unless(noteTag(n.Seq), n)
}

// noteTag returns the ETag of a note at that change.
func noteTag(seq int64) string { return strconv.Quote(strconv.FormatInt(seq, 10)) }

// ifMatch returns the change of the note that the request names: in ifSeq, or with If-Match. It
// returns nil if it names none.
func (c *call) ifMatch(ifSeq *int64) (*int64, error) {
	tag := strings.TrimSpace(c.Header.Get("If-Match"))
	if tag == "" {
		return ifSeq, nil
	}
	seq, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || noteTag(seq) != tag || seq < 1 {
		return nil, team.Refuse(team.Invalid, "If-Match %q is not the ETag of a note, such as \"12\"", tag)
	}
	if ifSeq != nil && *ifSeq != seq {
		return nil, team.Refuse(team.Invalid, "If-Match names change %d, and ifSeq change %d; give one of them", seq,
			*ifSeq)
	}
	return &seq, nil
}

func (c *call) setNote() (any, error) {
	b, key := c.body.(*NoteText), c.PathValue("key")
	seen, err := c.ifMatch(b.IfSeq)
	if err != nil {
		return nil, err
	}
	return c.noteAfter(&team.SetNote{Key: key, Text: b.Text, IfSeq: seen},
		makes(func(e *team.NoteSet) bool { return e.Key == key }))
}

func (c *call) appendNote() (any, error) {
	key := c.PathValue("key")
	return c.noteAfter(&team.AppendNote{Key: key, Text: c.body.(*NoteAddition).Text},
		makes(func(e *team.NoteAppended) bool { return e.Key == key }))
}

// noteAfter sends the command, and returns the note of the route as it is after that change,
// whatever others did to it since.
func (c *call) noteAfter(body team.Body, m made) (n team.Note, err error) {
	err = c.act(body, m, func(t *engine.Team, r *team.Record) (err error) {
		n, err = t.NoteAfter(c.Context(), c.PathValue("key"), r)
		return err
	})
	return n, err
}

func (c *call) deleteNote() (any, error) {
	body := &team.DeleteNote{Key: c.PathValue("key")}
	if c.URL.Query().Has("ifSeq") {
		seq, err := c.number("ifSeq", 0)
		if err != nil {
			return nil, err
		}
		body.IfSeq = &seq
	}
	var err error
	if body.IfSeq, err = c.ifMatch(body.IfSeq); err != nil {
		return nil, err
	}
	return nil, c.act(body, makes(func(e *team.NoteDeleted) bool { return e.Key == body.Key }),
		func(*engine.Team, *team.Record) error { return nil })
}

func (c *call) listNoteChanges() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	changes, err := t.NoteChanges(c.Context(), c.PathValue("key"))
	return listed(changes), err
}
