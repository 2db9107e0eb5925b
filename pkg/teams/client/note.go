package client

import (
	"context"

	"cadre/internal/inspect/history"
	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// Notes returns the notes of a team, sorted by their keys.
func (c *Client) Notes(ctx context.Context, name string) ([]teams.Note, error) {
	return list[teams.Note, core.Note](ctx, c, team("GET", name, "notes"))
}

// Note returns a note of a team.
func (c *Client) Note(ctx context.Context, name, key string) (teams.Note, error) {
	return c.note(ctx, team("GET", name, "notes", key))
}

// NoteAt returns a note as it was after the change seq of it.
func (c *Client) NoteAt(ctx context.Context, name, key string, seq int64) (teams.Note, error) {
	return c.note(ctx, team("GET", name, "notes", key).number("seq", seq))
}

// NoteChanges returns the changes of a note, the oldest first.
func (c *Client) NoteChanges(ctx context.Context, name, key string) ([]teams.NoteChange, error) {
	return list[teams.NoteChange, history.NoteChange](ctx, c, team("GET", name, "notes", key, "changes"))
}

func (c *Client) note(ctx context.Context, r request) (teams.Note, error) {
	return public[teams.Note, core.Note](ctx, c, r)
}

// noteText is a text for a note, as the server reads it.
type noteText struct {
	Text  string `json:"text"`
	IfSeq *int64 `json:"ifSeq,omitempty"`
}

// SetNote sets a note, or replaces its text. It returns [teams.ErrConflict], with the present note,
// if the note changed since the change that the edit names. A member can do it.
func (c *Client) SetNote(ctx context.Context, name string, e teams.NoteEdit) (teams.Note, error) {
	return c.note(ctx, team("PUT", name, "notes", e.Key).with(noteText{e.Text, ifSeq(e)}).by(c))
}

// AppendNote adds a text to a note, on a line of its own, or makes the note. A member can do it.
func (c *Client) AppendNote(ctx context.Context, name, key, text string) (teams.Note, error) {
	return c.note(ctx, team("POST", name, "notes", key, "append").with(noteText{Text: text}).by(c))
}

// DeleteNote deletes a note. A member can do it.
func (c *Client) DeleteNote(ctx context.Context, name string, e teams.NoteEdit) error {
	r := team("DELETE", name, "notes", e.Key).by(c)
	if seq := ifSeq(e); seq != nil {
		r = r.number("ifSeq", *seq)
	}
	return c.do(ctx, r, nil)
}

// ifSeq returns the change that an edit names, as the server reads it; nil for any.
func ifSeq(e teams.NoteEdit) *int64 {
	seq := e.IfSeq
	switch seq {
	case 0:
		return nil
	case teams.NewNote:
		seq = 0
	}
	return &seq
}
