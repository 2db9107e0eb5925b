package teams_test

import (
	"errors"
	"fmt"
	"testing"

	"cadre/pkg/teams"
)

func TestNotes(t *testing.T) {
	ctx := limited(t)
	m := manage(t, teams.Options{})
	team := create(t, m, "core", "ann", "bob")
	ann, bob := as(t, team, "ann").Notes(), as(t, team, "bob").Notes()
	first, err := ann.Set(ctx, teams.NoteEdit{Key: "decisions/api", Text: "Errors are JSON.", IfSeq: teams.NewNote})
	ok(t, err)
	equal(t, "the note", fmt.Sprint(first.Key, first.SetBy, first.UpdatedBy, first.Seq), "decisions/apiannann1")
	second, err := bob.Append(ctx, "decisions/api", "They have a code.")
	ok(t, err)
	equal(t, "the text", second.Text, "Errors are JSON.\nThey have a code.")

	// A writer that has seen the first version only gets the present one, and takes it in.
	edit := teams.NoteEdit{Key: "decisions/api", Text: "Errors are text.", IfSeq: first.Seq}
	_, err = ann.Set(ctx, edit)
	want(t, err, teams.ErrConflict)
	refused, is := errors.AsType[*teams.Error](err)
	if !is || refused.Note == nil || *refused.Note != second {
		t.Fatalf("the refusal carries %+v", refused)
	}
	edit.Text, edit.IfSeq = "Errors are JSON with a code.", refused.Note.Seq
	third, err := ann.Set(ctx, edit)
	ok(t, err)
	equal(t, "who", third.SetBy+" "+third.UpdatedBy, "ann ann")
	want(t, bob.Delete(ctx, teams.NoteEdit{Key: "decisions/api", IfSeq: second.Seq}), teams.ErrConflict)

	view := team.View.Notes()
	old, err := view.At(ctx, "decisions/api", second.Seq)
	ok(t, err)
	if old != second {
		t.Errorf("the older version is %+v, and was %+v", old, second)
	}
	_, err = team.Notes().Set(ctx, teams.NoteEdit{Key: "plan", Text: "first the parser"})
	ok(t, err)
	all, err := view.List(ctx)
	ok(t, err)
	equal(t, "the notes", fmt.Sprint(len(all), all[0].Key, all[1].Key, all[1].UpdatedBy), "2decisions/apiplanlead")

	ok(t, bob.Delete(ctx, teams.NoteEdit{Key: "decisions/api"}))
	_, err = view.Get(ctx, "decisions/api")
	want(t, err, teams.ErrNotFound)
	changes, err := view.Changes(ctx, "decisions/api")
	ok(t, err)
	var how []teams.NoteChangeKind
	for _, c := range changes {
		how = append(how, c.How)
	}
	equal(t, "the changes", fmt.Sprint(how), "[set appended set deleted]")
	moment, err := team.At(ctx, changes[0].Record)
	ok(t, err)
	if len(moment.Notes) != 1 || moment.Notes[0] != first {
		t.Errorf("at the first change the notes were %+v", moment.Notes)
	}
	_, err = view.Changes(ctx, "nothing")
	want(t, err, teams.ErrNotFound)
	_, err = ann.Set(ctx, teams.NoteEdit{Key: "../x", Text: "x"})
	want(t, err, teams.ErrInvalid)
}
