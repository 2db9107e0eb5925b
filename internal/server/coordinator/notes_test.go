package coordinator_test

import (
	"testing"

	"cadre/internal/server"
	"cadre/internal/server/auth"
	"cadre/internal/server/coordinator"
)

// TestNotes writes and reads the notes of a team over the protocol. A subscriber hears of each
// change, and a writer that has not seen the last one is refused with the note as it is.
func TestNotes(t *testing.T) {
	t.Parallel()
	l := newLabWith(t, func(o *server.Options) { o.Listen = "127.0.0.1:0" })
	owner := l.dial()
	id := owner.working("work")
	write := func(c *client, kind string, more fields) frame {
		p := fields{"teamId": id, "updatedBy": "ann", "key": "decisions/api"}
		for k, v := range more {
			p[k] = v
		}
		return c.must(kind, p)
	}
	c := l.dial()
	c.must("subscribe", fields{"teamId": id})
	c.event("team_status_update")
	note := func(f frame) coordinator.TeamNote { return read[coordinator.NotePayload](t, f).Note }
	first := note(write(owner, "team_set_note", fields{"text": "Errors are JSON.", "ifSeq": 0}))
	if first.SetBy != "ann" || first.UpdatedBy != "ann" || first.SetAt == 0 || first.Seq != 1 || first.Text == "" {
		t.Errorf("the note is %+v", first)
	}
	if told := note(c.event("team_note_update")); told != first {
		t.Errorf("the subscriber is told %+v, and the note is %+v", told, first)
	}
	second := note(write(owner, "team_append_note", fields{"updatedBy": "@user", "text": "They have a code."}))
	if second.Text != "Errors are JSON.\nThey have a code." || second.SetBy != "ann" || second.UpdatedBy != "@user" {
		t.Errorf("the note is %+v", second)
	}
	f := owner.ask("team_set_note", fields{"teamId": id, "updatedBy": "ann", "key": "decisions/api", "text": "x",
		"ifSeq": 1})
	if is := f.failure(); is.Code != "conflict" || is.Note == nil || *is.Note != second {
		t.Errorf("an older change was overwritten: %s", f)
	}
	if was := note(owner.must("team_get_note", fields{"teamId": id, "key": "decisions/api", "seq": 1})); was != first {
		t.Errorf("after change 1 the note was %+v", was)
	}
	if all := read[coordinator.NotesPayload](t, owner.must("team_list_notes",
		fields{"teamId": id})); len(all.Notes) != 1 ||
		all.Notes[0] != second || all.TeamID != id {
		t.Errorf("the notes are %+v", all)
	}
	if gone := read[coordinator.NoteRef](t, write(owner, "team_delete_note",
		fields{"ifSeq": 2})); gone.Key != "decisions/api" {
		t.Errorf("deleted %+v", gone)
	}
	c.event("team_note_update")
	c.event("team_note_deleted")
	for code, payload := range map[string]fields{
		"not_found":        {"teamId": id, "updatedBy": "ann", "key": "decisions/api"},
		"MEMBER_NOT_FOUND": {"teamId": id, "updatedBy": "nobody", "key": "decisions/api"},
		"TEAM_NOT_FOUND":   {"teamId": "nowhere", "updatedBy": "ann", "key": "decisions/api"},
	} {
		owner.refused(code, "team_delete_note", payload)
	}
	owner.refused("invalid", "team_set_note", fields{"teamId": id, "updatedBy": "ann", "key": "../x", "text": "x"})

	eyes := l.dialAs(auth.Observe)
	eyes.must("team_list_notes", fields{"teamId": id})
	eyes.refused("denied", "team_append_note", fields{"teamId": id, "updatedBy": "@user", "key": "x", "text": "x"})
	l.dialAs(auth.Steer).must("team_append_note", fields{"teamId": id, "updatedBy": "@user", "key": "x", "text": "x"})
}
