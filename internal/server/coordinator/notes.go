package coordinator

import (
	"cadre/internal/engine"
	"cadre/internal/team"
)

// The payloads of requests about notes.
type (
	// TeamSetNote sets a note, or replaces its text.
	TeamSetNote struct {
		TeamID    string `json:"teamId"`    // id or name of the team
		UpdatedBy string `json:"updatedBy"` // member that writes it; @user for the user
		Key       string `json:"key"`       // its name, such as decisions/api
		Text      string `json:"text"`      // all of the new text
		// last change of the note that the writer has seen: a later one is a conflict; 0 for a note
		// that must not exist yet, any without it
		IfSeq *int64 `json:"ifSeq,omitempty"`
	}
	// TeamAppendNote adds a text to a note.
	TeamAppendNote struct {
		TeamID    string `json:"teamId"`    // id or name of the team
		UpdatedBy string `json:"updatedBy"` // member that writes it; @user for the user
		Key       string `json:"key"`       // name of the note
		Text      string `json:"text"`      // what is added, on a line of its own
	}
	// TeamDeleteNote deletes a note.
	TeamDeleteNote struct {
		TeamID    string `json:"teamId"`          // id or name of the team
		UpdatedBy string `json:"updatedBy"`       // member that deletes it; @user for the user
		Key       string `json:"key"`             // name of the note
		IfSeq     *int64 `json:"ifSeq,omitempty"` // as for team_set_note
	}
	// TeamGetNote shows a note.
	TeamGetNote struct {
		TeamID string `json:"teamId"`        // id or name of the team
		Key    string `json:"key"`           // name of the note
		Seq    int64  `json:"seq,omitempty"` // show the note as it was after this change of it
	}
)

// TeamNote is a note of a team.
type TeamNote struct {
	Key       string `json:"key"`       // its name
	Text      string `json:"text"`      // all of it
	SetBy     string `json:"setBy"`     // member that set it first; @user for the user
	SetAt     Time   `json:"setAt"`     // when it was set first
	UpdatedBy string `json:"updatedBy"` // member that changed it last; @user for the user
	UpdatedAt Time   `json:"updatedAt"` // when it changed last
	Seq       int64  `json:"seq"`       // number of its last change, among the changes of all notes of the team
}

func noteOf(n team.Note) TeamNote {
	return TeamNote{n.Key, n.Text, n.SetBy, Time(n.SetAt), n.UpdatedBy, Time(n.UpdatedAt), n.Seq}
}

func (q *call) setNote() (answer, error) {
	p := q.payload.(*TeamSetNote)
	return q.writeNote(p.TeamID, p.UpdatedBy, p.Key, &team.SetNote{Key: p.Key, Text: p.Text, IfSeq: p.IfSeq})
}

func (q *call) appendNote() (answer, error) {
	p := q.payload.(*TeamAppendNote)
	return q.writeNote(p.TeamID, p.UpdatedBy, p.Key, &team.AppendNote{Key: p.Key, Text: p.Text})
}

func (q *call) deleteNote() (answer, error) {
	p := q.payload.(*TeamDeleteNote)
	return q.writeNote(p.TeamID, p.UpdatedBy, p.Key, &team.DeleteNote{Key: p.Key, IfSeq: p.IfSeq})
}

// writeNote sends a command about the note as the member.
func (q *call) writeNote(ref, member, key string, body team.Body) (answer, error) {
	t, err := q.team(ref)
	if err != nil {
		return answer{}, err
	}
	actor, err := q.actor(t, "updatedBy", member)
	if err != nil {
		return answer{}, err
	}
	r, err := q.do(t, actor, body)
	if err != nil {
		return answer{}, err
	}
	if r != nil && !noteIn(r, key) {
		return answer{}, repeats()
	}
	return after(t, r, func(s *team.State) (any, []event) {
		if n, is := s.Note(key); is {
			return one(teamNoteUpdate, NotePayload{noteOf(n)})
		}
		of := s.Team()
		return one(teamNoteDeleted, NoteRef{key, idOf(&of)})
	}), nil
}

// noteIn reports whether the record changes the note.
func noteIn(r *team.Record, key string) bool {
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.NoteSet:
			return e.Key == key
		case *team.NoteAppended:
			return e.Key == key
		case *team.NoteDeleted:
			return e.Key == key
		}
	}
	return false
}

func (q *call) getNote() (answer, error) {
	p := q.payload.(*TeamGetNote)
	t, err := q.look(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	n, err := q.noteAt(t, p)
	if err != nil {
		return answer{}, err
	}
	return after(t, nil, func(*team.State) (any, []event) {
		return one(teamNoteUpdate, NotePayload{noteOf(n)})
	}), nil
}

func (q *call) noteAt(t *engine.Team, p *TeamGetNote) (n team.Note, err error) {
	if p.Seq != 0 {
		return t.NoteAt(q.ctx, p.Key, p.Seq)
	}
	t.View(func(s *team.State) { n, err = s.NamedNote(p.Key) })
	return n, err
}

func (q *call) listNotes() (answer, error) {
	t, err := q.look(q.payload.(*OneTeam).TeamID)
	if err != nil {
		return answer{}, err
	}
	return after(t, nil, func(s *team.State) (any, []event) {
		of := s.Team()
		all := NotesPayload{TeamID: idOf(&of), Notes: []TeamNote{}}
		var events []event
		for _, n := range s.Notes() {
			is := noteOf(n)
			all.Notes = append(all.Notes, is)
			events = append(events, event{teamNoteUpdate, NotePayload{is}})
		}
		return all, events
	}), nil
}

// seeNote takes note of a change of a note.
func (c *collector) seeNote(e team.Event) {
	switch e := e.(type) {
	case *team.NoteSet:
		c.noteChanged(e.Key)
	case *team.NoteAppended:
		c.noteChanged(e.Key)
	case *team.NoteDeleted:
		c.noteChanged(e.Key)
	}
}

// noteChanged adds the event of a note: as the record leaves it.
func (c *collector) noteChanged(key string) {
	if n, is := c.s.Note(key); is {
		c.add(teamNoteUpdate, NotePayload{noteOf(n)})
		return
	}
	c.add(teamNoteDeleted, NoteRef{key, c.of.ID})
}
