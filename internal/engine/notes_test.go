package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/team"
)

func (l *lab) notes() (all []team.Note) {
	l.t.Helper()
	err := l.LookAtNotes(within(l.t), "demo", func(o *team.Outline) error {
		all = o.Notes()
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

// TestNoteTextIsText refuses a file and an input that are not UTF-8.
func TestNoteTextIsText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(path, []byte("a\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{path: path, "-": "standard input"} {
		if _, err := engine.NoteText(file, strings.NewReader("a\xff")); team.CodeOf(err) != team.Invalid ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestNoteAfter reads a note as a writer left it, after others changed and deleted it.
func TestNoteAfter(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create()
	of := l.open()
	var left []*team.Record
	for _, body := range []team.Body{&team.SetNote{Key: "plan", Text: "first"},
		&team.AppendNote{Key: "plan", Text: "then"},
		&team.DeleteNote{Key: "plan"}} {
		r, err := of.Do(within(t), team.Command{Actor: team.User, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, r.Record)
	}
	for i, want := range []string{"first", "first\nthen"} {
		if n, err := of.NoteAfter(within(t), "plan", left[i]); err != nil || n.Text != want || n.Seq != int64(i+1) {
			t.Errorf("%+v, %v", n, err)
		}
	}
}

// TestWriteNote writes notes by outlines of the team, beside a writer who has its whole state: each
// sees what the other wrote, and is refused what it has not seen.
func TestWriteNote(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "ann", Agent: team.External}, &team.CreateTask{Subject: "parse"})
	of := l.open()
	write := func(actor string, body team.Body) (before, after team.Note, err error) {
		return l.WriteNote(within(t), "demo", actor, "plan", body)
	}
	before, after, err := write("ann", &team.SetNote{Key: "plan", Text: "first"})
	if err != nil || before.Key != "" || after.Text != "first" || after.SetBy != "ann" || after.Seq != 1 {
		t.Fatalf("%+v, %+v, %v", before, after, err)
	}
	l.do(of, team.User, &team.AppendNote{Key: "plan", Text: "then"})
	seen := int64(1)
	if _, _, err = write("ann", &team.SetNote{Key: "plan", Text: "last",
		IfSeq: &seen}); team.CodeOf(err) != team.Conflict ||
		team.NoteOf(err) == nil || team.NoteOf(err).Text != "first\nthen" {
		t.Errorf("an older change was overwritten: %v", err)
	}
	for _, actor := range []string{"nobody", "", team.Host("h1")} {
		if _, _, err := write(actor, &team.AppendNote{Key: "plan", Text: "x"}); team.CodeOf(err) == "" {
			t.Errorf("%q wrote a note: %v", actor, err)
		}
	}
	l.do(of, team.User, &team.CompleteTask{Task: "1"})
	if before, after, err = write(team.User, &team.DeleteNote{Key: "plan"}); err != nil ||
		before.Text != "first\nthen" ||
		after.Key != "" {
		t.Errorf("%+v, %+v, %v", before, after, err)
	}
	if _, after, err = write("ann", &team.AppendNote{Key: "plan", Text: "again"}); err != nil || after.Seq != 4 {
		t.Errorf("%+v, %v", after, err)
	}
	if err := of.Refresh(within(t)); err != nil {
		t.Fatal(err)
	}
	of.View(func(s *team.State) {
		if got, want := fmt.Sprint(l.notes()), fmt.Sprint(s.Notes()); got != want || len(s.Notes()) != 1 {
			t.Errorf("the notes are\n%s\nand in the state\n%s", got, want)
		}
	})
	l.do(of, team.User, &team.ReportFailed{Member: "ann", Reason: "gone"})
	if _, _, err := write("ann", &team.AppendNote{Key: "plan", Text: "x"}); team.CodeOf(err) != team.Finished {
		t.Errorf("a member that has failed wrote a note: %v", err)
	}
	l.do(of, team.User, &team.SetStatus{Status: team.TeamAborted})
	if _, _, err := write(team.User, &team.AppendNote{Key: "plan", Text: "x"}); team.CodeOf(err) != team.Finished {
		t.Errorf("a note of an aborted team was written: %v", err)
	}
}

// TestWriteNoteTidies writes notes and nothing else: snapshots are saved when they are due, and
// what is overdue is recorded before a note.
func TestWriteNoteTidies(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "ann", Agent: team.External}, &team.CreateTask{Subject: "parse"})
	dir, err := l.Home.Folder("demo")
	if err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(dir, "state.json")
	text := strings.Repeat("as long as a note may be ", 1000)
	for n := 0; ; n++ {
		if _, _, err := l.WriteNote(within(t), "demo", team.User, "plan", &team.SetNote{Key: "plan",
			Text: fmt.Sprint(text, n)}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(snapshot); err == nil {
			break
		}
		if n > 10 {
			t.Fatal("notes of 250 KB were written, and no snapshot was saved")
		}
	}
	want := fmt.Sprint(l.notes())
	if err := os.WriteFile(snapshot, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(l.notes()); got != want {
		t.Errorf("without its snapshot the team has the notes %s, and had %s", got, want)
	}

	of := l.open()
	l.do(of, team.User, &team.RequestShutdown{Member: "ann", Deadline: 1})
	if _, _, err := l.WriteNote(within(t), "demo", team.User, "plan",
		&team.SetNote{Key: "plan", Text: "short"}); err != nil {
		t.Fatal(err)
	}
	if err := of.Refresh(within(t)); err != nil {
		t.Fatal(err)
	}
	of.View(func(s *team.State) {
		if m, _ := s.Member("ann"); m.Status != team.Stopped {
			t.Errorf("the end of ann was overdue, and is not recorded: %+v", m)
		}
		if n, _ := s.Note("plan"); n.Text != "short" {
			t.Errorf("the note is %+v", n)
		}
	})
}
