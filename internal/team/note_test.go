package team

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// noter sends commands about notes to a team.
type noter struct {
	fataler
	s *State
	n int
}

func newNoter(t fataler) *noter {
	s, _ := founded(t)
	return &noter{fataler: t, s: s}
}

// do sends the command, and returns the refusal.
func (n *noter) do(b Body) error {
	n.n++
	d, err := Decide(n.s, Command{ID: fmt.Sprint("note", n.n), Actor: User, At: Time(n.n), Body: b})
	if d.Record != nil {
		n.s.Apply(d.Record)
	}
	return err
}

// must sends the command, which must be accepted.
func (n *noter) must(b Body) {
	if err := n.do(b); err != nil {
		n.Fatalf("%T: %v", b, err)
	}
}

// TestNoteLimits fills a team with notes up to each limit. One more of anything is refused, and the
// refusal says what to do; doing that makes room.
func TestNoteLimits(t *testing.T) {
	t.Parallel()
	n := newNoter(t)
	refused := func(b Body, says string) {
		t.Helper()
		err := n.do(b)
		refusal, is := errors.AsType[*Error](err)
		if !is || refusal.Code != TooLarge || !strings.Contains(refusal.Text, says) {
			t.Fatalf("%T is answered by %v", b, err)
		}
		if !strings.Contains(says, "file") && !slices.ContainsFunc(refusal.Help,
			func(h Hint) bool { return h.Action == ActShowNotes }) {
			t.Errorf("%v has the hints %v", err, refusal.Help)
		}
	}
	for i := range MaxNotes {
		n.must(&SetNote{Key: fmt.Sprint("note-", i), Text: "x"})
	}
	refused(&SetNote{Key: "one-more", Text: "x"}, "delete one, or add to an existing one")
	refused(&AppendNote{Key: "one-more", Text: "x"}, "delete one, or add to an existing one")
	n.must(&AppendNote{Key: "note-7", Text: "x"})
	n.must(&DeleteNote{Key: "note-8"})
	n.must(&AppendNote{Key: "one-more", Text: "x"})

	whole := strings.Repeat("y", MaxNote)
	refused(&SetNote{Key: "note-0", Text: whole + "y"}, "put the text into a file and name it")
	full := 0
	for _, size := n.s.NotesHeld(); size+MaxNote-1 <= MaxNotesText; _, size = n.s.NotesHeld() {
		n.must(&SetNote{Key: fmt.Sprint("note-", 10+full), Text: whole})
		full++
	}
	_, size := n.s.NotesHeld()
	rest := strings.Repeat("z", MaxNotesText-size+1)
	n.must(&SetNote{Key: "note-0", Text: rest})
	if _, size := n.s.NotesHeld(); size != MaxNotesText {
		t.Fatalf("the notes have %d bytes", size)
	}
	refused(&AppendNote{Key: "note-1", Text: "a"}, "shorten some, or delete them")
	refused(&SetNote{Key: "note-1", Text: "xx"}, "shorten some, or delete them")
	n.must(&SetNote{Key: "note-1", Text: "a"}) // as long as before
	n.must(&SetNote{Key: "note-10", Text: "short"})
	n.must(&AppendNote{Key: "note-1", Text: "a"})
}

// TestNotesWithSeq has writers that read a note, and later write what they made of it: with ifSeq
// none overwrites what it has not seen, and what is appended is never lost.
func TestNotesWithSeq(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := newNoter(t)
		var seen [3]Note   // by the writers
		var words []string // that were written; each must stay until a deletion
		has := func(word string) bool { now, _ := n.s.Note("plan"); return strings.Contains(now.Text, word) }
		for i := range rapid.IntRange(5, 60).Draw(t, "steps") {
			w := rapid.IntRange(0, 2).Draw(t, "writer")
			word := fmt.Sprintf("<%d>", i)
			before, _ := n.s.Note("plan")
			switch rapid.SampledFrom([]string{"read", "read", "set", "set", "append", "delete"}).Draw(t, "does") {
			case "read":
				seen[w] = before
			case "set":
				err := n.do(&SetNote{Key: "plan", Text: seen[w].Text + word, IfSeq: &seen[w].Seq})
				if stale := seen[w].Seq != before.Seq; stale != (CodeOf(err) == Conflict) {
					t.Fatalf("writer %d has seen %d of %d: %v", w, seen[w].Seq, before.Seq, err)
				}
				if now := NoteOf(err); now != nil {
					seen[w] = *now // the refusal is as good as reading
				}
				if err == nil {
					words = append(words, word)
				}
			case "append":
				n.must(&AppendNote{Key: "plan", Text: word})
				words = append(words, word)
			case "delete":
				if n.do(&DeleteNote{Key: "plan", IfSeq: &before.Seq}) == nil {
					words = nil
				}
			}
			for _, word := range words {
				if !has(word) {
					now, _ := n.s.Note("plan")
					t.Fatalf("%s is lost: %q", word, now.Text)
				}
			}
		}
	})
}
