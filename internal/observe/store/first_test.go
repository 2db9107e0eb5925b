package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/observe/source"
	"cadre/internal/team"
)

// full is a journal on a full disk.
type full struct{ journal.Journal }

var errFull = errors.New("no space left on device")

func (full) Append(context.Context, int64, func(journal.Record) error, func() ([]byte, error)) (int64, error) {
	return 0, errFull
}

// TestJournalComesFirst checks that the saved knowledge is never ahead of the journal. Records
// missing in the journal would never be written then.
func TestJournalComesFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "transcript.jsonl")
	lines := bytes.SplitAfter(recording(t, "2.1.47/transcript-lead.jsonl"), []byte("\n"))
	appendTo(t, file, bytes.Join(lines[:100], nil))
	h := layout.Home{Root: t.TempDir()}
	w, _ := keeping(t, h, "fx")
	begin(t, w, "fx")
	if err := w.Run(t.Context(), &source.File{Path: file}); err != nil {
		t.Fatal(err)
	}
	if err := w.keep(); err != nil {
		t.Fatal(err)
	}
	before := kept(t, h)

	w.Book.mu.Lock()
	w.Book.journal = full{w.Book.journal}
	seq := w.Book.seq
	w.Book.mu.Unlock()
	s := w.observer.Team()
	if err := w.Book.Add(s, []*team.Record{{Seq: seq + 1, ID: "late", Actor: team.User, At: w.Now(),
		Events: []team.Event{&team.TeamStatusChanged{Status: team.TeamComplete}}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.keep(); !errors.Is(err, errFull) {
		t.Errorf("it was kept while the journal could not be written: %v", err)
	}
	if after := kept(t, h); !bytes.Equal(before, after) {
		t.Errorf("what is kept has changed:\n%s\n%s", before, after)
	}
	if err := w.Book.Close(); !errors.Is(err, errFull) {
		t.Errorf("the journal is closed with %v", err)
	}
	if err := w.Kept.Close(); err != nil {
		t.Error(err)
	}
}

// kept returns all kept data of the observation.
func kept(t *testing.T, h layout.Home) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(h.Observation("fx"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(append(append(all, path...), '\n'), data...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
