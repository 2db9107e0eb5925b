package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/observe"
	"cadre/internal/observe/source"
)

// noticesOf returns the events of the results, as consumers get them.
func noticesOf(all []observe.Seen) []string {
	var events []string
	for _, seen := range all {
		for _, n := range seen.Notices {
			events = append(events, jsonOf(n))
		}
	}
	return events
}

// asWritten returns the events of the lines of some files in the order of their times, which it
// determines by itself.
func asWritten(t *testing.T, files map[string][]byte) []string {
	type dated struct {
		source, at string
		line       []byte
	}
	var all []dated
	for source, data := range files {
		last := ""
		for line := range bytes.Lines(data) {
			var v struct{ Timestamp string }
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			last = max(last, v.Timestamp)
			all = append(all, dated{source, last, line})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int { return strings.Compare(a.at, b.at) })
	o, now := observe.New(observe.Options{}), ticks()
	var seen []observe.Seen
	for _, one := range all {
		seen = append(seen, o.Line(one.source, one.line, now()))
	}
	return noticesOf(seen)
}

// TestOrderOfTranscripts checks that the transcripts of a finished run give the same events in the
// same order, whatever their names and whichever changed last. It is the order in which the lines
// were written.
func TestOrderOfTranscripts(t *testing.T) {
	for _, c := range []struct {
		names []string
		sent  map[string]int // messages
	}{
		{[]string{"2.1.329/tmux/transcript-lead.jsonl", "2.1.329/tmux/transcript-alice.jsonl",
			"2.1.329/tmux/transcript-bob.jsonl"}, map[string]int{"Hello alice from lead": 1}},
		{[]string{"2.1.47/transcript-lead.jsonl", "2.1.47/transcript-alice.jsonl"},
			map[string]int{"Hello alice from lead": 1, "Broadcast to all from lead": 1}},
	} {
		files := map[string][]byte{}
		for _, name := range c.names {
			files[name] = recording(t, name)
		}
		want := asWritten(t, files)
		for content, n := range c.sent {
			if got := strings.Count(strings.Join(want, "\n"), `"content":"`+content); got != n {
				t.Errorf("%q is told %d times, not %d", content, got, n)
			}
		}
		for _, needed := range []string{`"team:task:claimed","sessionId`, `"team:task:completed","sessionId`,
			`"team:member:idle","sessionId`} {
			if !strings.Contains(strings.Join(want, "\n"), needed) {
				t.Fatalf("there is no %s in %s", needed, strings.Join(want, "\n"))
			}
		}
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, 11))
			dir := t.TempDir()
			for i, at := range random.Perm(len(c.names)) {
				path := filepath.Join(dir, fmt.Sprint(at), fmt.Sprint(random.IntN(1000)), "session.jsonl")
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				appendTo(t, path, files[c.names[i]])
				changed := time.Unix(int64(1e9+random.IntN(1e6)), 0)
				if err := os.Chtimes(path, changed, changed); err != nil {
					t.Fatal(err)
				}
			}
			r := run(t, &Watch{}, &source.Transcripts{Dir: dir})
			r.finish()
			if got := noticesOf(r.seen); !slices.Equal(got, want) {
				t.Fatalf("in order %d, %d events:\n%s\nas they were written, %d:\n%s", seed, len(got),
					strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
			}
		}
	}
}

// TestOrderOfOddTranscripts has lines longer than a piece, lines without a time, a file that ends
// within a line, and very many files.
func TestOrderOfOddTranscripts(t *testing.T) {
	dir := t.TempDir()
	line := func(file string, at int, text string) {
		stamp := ""
		if at > 0 {
			stamp = fmt.Sprintf(
				`,"nested":{"timestamp":"2000-01-01T00:00:00Z"},"timestamp":"2026-11-21T00:00:%02d.000Z"`, at)
		}
		appendTo(t, filepath.Join(dir, file), fmt.Appendf(nil, "{\"text\":%q%s}\n", text, stamp))
	}
	line("a.jsonl", 0, "begins without a time")
	line("a.jsonl", 10, "second 10")
	line("a.jsonl", 0, "behind second 10"+strings.Repeat("x", 3*(256<<10)))
	line("a.jsonl", 9, "cannot be before the line above it")
	line("a.jsonl", 40, "second 40")
	line("b.jsonl", 5, `second 5 "\`)
	line("b.jsonl", 20, "second 20"+strings.Repeat("y", 4<<10))
	line("b.jsonl", 30, "second 30")
	line("c.jsonl", 50, "second 50")
	if data, err := os.ReadFile(filepath.Join(dir, "c.jsonl")); err != nil ||
		os.WriteFile(filepath.Join(dir, "c.jsonl"), bytes.TrimSpace(data), 0o600) != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		line(fmt.Sprintf("many-%d.jsonl", i), 45, "second 45")
	}
	got := &heard{}
	if err := (&source.Transcripts{Dir: dir}).Run(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	want := []string{`second 5 "\`, "begins without", "second 10", "behind second 10", "cannot be", "second 20",
		"second 30", "second 40"}
	for range 300 {
		want = append(want, "second 45")
	}
	want = append(want, "second 50")
	if len(got.texts) != len(want) {
		t.Fatalf("%d lines, not %d", len(got.texts), len(want))
	}
	for i, text := range got.texts {
		if !strings.HasPrefix(text, want[i]) {
			t.Errorf("line %d is %.40q, not %q", i+1, text, want[i])
		}
	}
}

// heard is a listener that keeps the texts of lines.
type heard struct {
	texts []string
}

func (h *heard) Line(_ string, line []byte, _ source.Place) {
	var v struct{ Text string }
	_ = json.Unmarshal(line, &v)
	h.texts = append(h.texts, v.Text)
}
func (*heard) Introduce(_, _, _ string)  {}
func (h *heard) Gap(_, reason string)    { h.texts = append(h.texts, "gap: "+reason) }
func (*heard) End(string)                {}
func (*heard) Place(string) source.Place { return source.Place{} }
func (*heard) Member(string) bool        { return false }
