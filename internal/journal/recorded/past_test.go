package recorded

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// replay returns the encoded state after each record.
func replay(t *historytest.Team) []string {
	s, err := team.DecodeSnapshot(0, "")
	if err != nil {
		panic(err)
	}
	states := []string{""}
	for _, r := range t.Records {
		s.Apply(r)
		states = append(states, string(team.AppendSnapshot(nil, s)))
	}
	return states
}

func pastOf(j journal.Journal) *Past { return NewPast(j) }

// TestAtIsTheReplayedState checks that any jumps in any order give what applying the records gives,
// and that keyframes keep their bound, with and without a snapshot in the journal.
func TestAtIsTheReplayedState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(120).Draw(t, "choices"))
		want := replay(h)
		j := memjournal.New("t1", h.Encoded()...).Open()
		p := pastOf(j)
		p.spacing = rapid.Int64Range(1, 20).Draw(t, "spacing")
		p.maxBytes = rapid.IntRange(1, 20_000).Draw(t, "most")
		if at := rapid.IntRange(0, len(h.Records)).Draw(t, "snapshot"); at > 0 {
			snapshot := journal.Snapshot{Seq: int64(at), Data: want[at]}
			if rapid.Bool().Draw(t, "damaged") {
				snapshot.Data = `{"team":7}`
			}
			if err := j.SaveSnapshot(context.Background(), snapshot.Taken); err != nil {
				t.Fatal(err)
			}
		}
		for _, seq := range rapid.SliceOfN(rapid.IntRange(1, len(h.Records)), 1, 12).Draw(t, "jumps") {
			s, err := p.At(context.Background(), int64(seq))
			if err != nil {
				t.Fatalf("at %d: %v", seq, err)
			}
			if got := string(team.AppendSnapshot(nil, s)); s.Seq() != int64(seq) || got != want[seq] {
				t.Fatalf("at %d it is %d:\n%s\nnot\n%s", seq, s.Seq(), got, want[seq])
			}
			// The state is the caller's: what it does with it changes no later answer.
			s.Apply(&team.Record{Seq: s.Seq() + 1, Events: []team.Event{&team.TeamCleanedUp{}}})
			held := 0
			for i, frame := range p.frames {
				held += len(frame.Data)
				if i > 0 && frame.Seq <= p.frames[i-1].Seq {
					t.Fatalf("keyframes %d and %d are in the wrong order", p.frames[i-1].Seq, frame.Seq)
				}
			}
			if held != p.bytes || held > p.maxBytes && len(p.frames) > 1 {
				t.Fatalf("%d keyframes hold %d bytes, counted as %d, of at most %d", len(p.frames), held,
					p.bytes, p.maxBytes)
			}
		}
	})
}

func TestAtRefusesRecordsThatDoNotExist(t *testing.T) {
	h := historytest.Play([]uint32{0, 2, 3})
	p := pastOf(memjournal.New("t1", h.Encoded()...).Open())
	for seq, want := range map[int64]team.Code{-1: team.Invalid, 0: team.Invalid,
		int64(len(h.Records)) + 1: team.NotFound} {
		if _, err := p.At(t.Context(), seq); team.CodeOf(err) != want {
			t.Errorf("at %d: %v", seq, err)
		}
	}
}

// counted is a journal that counts the records that are read.
type counted struct {
	journal.Journal
	read *int
}

func (c counted) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range c.Journal.Read(ctx, after) {
			*c.read++
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestASecondJumpReadsOnlyWhatFollowsAKeyframe counts the records that a jump reads.
func TestASecondJumpReadsOnlyWhatFollowsAKeyframe(t *testing.T) {
	h := historytest.Long(20_000, 100)
	j := memjournal.New("t1", h.Encoded()...).Open()
	read := 0
	p := NewPast(counted{j, &read})
	if err := p.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if read > len(h.Records)+minSpacing {
		t.Errorf("the preparation read %d records", read)
	}
	most := 0
	for seq := int64(1); seq <= 20_000; seq += 377 {
		read = 0
		if _, err := p.At(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		most = max(most, read)
	}
	if most > 8*minSpacing {
		t.Errorf("a jump read %d records", most)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := pastOf(j).Prepare(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("prepared with an ended context: %v", err)
	}
}

// TestACopiedHistoryIsReadOnce counts the records that jumps read in a history without keyframes,
// after its present state was read.
func TestACopiedHistoryIsReadOnce(t *testing.T) {
	const records = 60_000
	h := historytest.Long(records, 100)
	dir := onDisk(t, h, 0)
	state, _, err := State(t.Context(), openFolder(t, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(len(h.Records))
	want, err := team.DecodeSnapshot(0, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range h.Records {
		want.Apply(r)
	}
	if got := team.AppendSnapshot(nil, state); state.Seq() != last ||
		string(got) != string(team.AppendSnapshot(nil, want)) {
		t.Errorf("the state after record %d of %d is another one", state.Seq(), last)
	}
	for seq := last; seq > 0; seq -= 4_999 {
		read := 0
		s, err := NewPast(counted{openFolder(t, dir), &read}).At(t.Context(), seq)
		if err != nil || s.Seq() != seq {
			t.Fatalf("at %d: %v", seq, err)
		}
		if read > longReplay {
			t.Errorf("the first jump to %d reads %d records", seq, read)
		}
	}
}

// onDisk returns the folder of a journal with that history and a snapshot after the record at.
func onDisk(t *testing.T, h *historytest.Team, at int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "team")
	if err := filejournal.Create(dir, "t1", h.Encoded(), filejournal.Options{}); err != nil {
		t.Fatal(err)
	}
	j := openFolder(t, dir)
	if at > 0 {
		if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: int64(at), Data: replay(h)[at]}.Taken); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openFolder(t *testing.T, dir string) *filejournal.Journal {
	t.Helper()
	j, err := filejournal.Open(dir, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// damage changes a byte within the record seq.
func damage(t *testing.T, dir string, seq int) {
	t.Helper()
	path := filepath.Join(dir, "journal", "00000000000000000001.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := strings.Index(string(data), fmt.Sprintf(`{"seq":%d,`, seq))
	data[i+len(fmt.Sprint(seq))+40] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamage checks what can be shown of a history that is damaged, and of one that was mended.
func TestDamage(t *testing.T) {
	h := historytest.Long(60, 5)
	want := replay(h)
	check := func(t *testing.T, p *Past, lost, next int) {
		t.Helper()
		for seq := 1; seq <= len(h.Records); seq++ {
			s, err := p.At(t.Context(), int64(seq))
			var gone *LostError
			var cause *journal.DamageError
			switch {
			case seq < lost || next > 0 && seq >= next:
				if err != nil || string(team.AppendSnapshot(nil, s)) != want[seq] {
					t.Errorf("at %d: %v", seq, err)
				}
			case !errors.As(err, &gone) || !errors.As(err, &cause) || gone.Seq != int64(seq) ||
				gone.Last != int64(lost-1) || gone.Next != int64(next):
				t.Errorf("at %d: %v", seq, err)
			}
		}
		var seen []int64
		for r, err := range p.Records(t.Context(), 0) {
			var gone *LostError
			switch {
			case err == nil:
				seen = append(seen, r.Seq)
			case !errors.As(err, &gone) || gone.Last != int64(lost-1) || gone.Next != int64(next):
				t.Errorf("after %d: %v", len(seen), err)
			default:
				seen = append(seen, -1)
			}
		}
		after := 0
		if next > 0 {
			after = len(h.Records) - next
		}
		if len(seen) != lost-1+1+after || seen[lost-1] != -1 || after > 0 && seen[lost] != int64(next+1) {
			t.Errorf("read %d records: %v", len(seen), seen)
		}
	}
	t.Run("with a snapshot beyond it", func(t *testing.T) {
		dir := onDisk(t, h, 40)
		damage(t, dir, 20)
		check(t, pastOf(openFolder(t, dir)), 20, 40)
	})
	t.Run("mended", func(t *testing.T) {
		dir := onDisk(t, h, 40)
		damage(t, dir, 20)
		if _, err := filejournal.Mend(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		check(t, pastOf(openFolder(t, dir)), 20, 40)
	})
	t.Run("without a snapshot", func(t *testing.T) {
		dir := onDisk(t, h, 0)
		j := openFolder(t, dir)
		for range j.Read(t.Context(), 0) { // it knows that they were acknowledged
		}
		damage(t, dir, 20)
		check(t, pastOf(j), 20, 0)
	})
	t.Run("known before", func(t *testing.T) {
		dir := onDisk(t, h, 40)
		p := pastOf(openFolder(t, dir))
		p.spacing = 5
		if _, err := p.At(t.Context(), 35); err != nil {
			t.Fatal(err)
		}
		damage(t, dir, 20)
		if _, err := p.At(t.Context(), p.frames[len(p.frames)-2].Seq); err != nil {
			t.Errorf("a keyframe beyond the damage: %v", err)
		}
	})
}

func TestLostErrorSaysWhatCanBeShown(t *testing.T) {
	cause := &journal.DamageError{Segment: "x", Reason: "bad"}
	for want, e := range map[string]*LostError{
		"the state after record 7 is lost; the states up to record 5 and from record 9 can be shown: ": {Seq: 7, Last: 5, Next: 9},
		"part of the history is lost; the states up to record 5 can be shown: ":                        {Last: 5},
		"the state after record 7 is lost; the states from record 9 can be shown: ":                    {Seq: 7, Next: 9},
		"the state after record 7 is lost: ":                                                           {Seq: 7},
	} {
		e.Cause = cause
		if got := e.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("it is %q, not %q", got, want)
		}
	}
}

// TestAColdJumpReadsOnlyWhatFollowsAKeyframe counts the records that the first jump of a program
// reads in a history whose writers kept keyframes, and in one that was copied, whose first reader
// leaves some. Bad keyframes cost time and change nothing.
func TestAColdJumpReadsOnlyWhatFollowsAKeyframe(t *testing.T) {
	const records, every = 20_000, 1_000
	h := historytest.Long(records, 50)
	dir := filepath.Join(t.TempDir(), "team")
	opts := filejournal.Options{KeyframeEvery: every}
	if err := filejournal.Create(dir, "t1", h.Encoded(), opts); err != nil {
		t.Fatal(err)
	}
	cold := func(seq int64) (s *team.State, read int) {
		t.Helper()
		j, err := filejournal.Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		s, err = NewPast(counted{j, &read}).At(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		return s, read
	}
	want := map[int64]string{}
	for seq := int64(1); seq <= records; seq += 1_499 {
		s, err := pastOf(openFolder(t, dir)).At(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		want[seq] = string(team.AppendSnapshot(nil, s))
	}
	check := func(t *testing.T, intervals int) { // intervals is how many of them a jump may read
		t.Helper()
		for seq, state := range want {
			s, read := cold(seq)
			if got := string(team.AppendSnapshot(nil, s)); got != state || s.Seq() != seq {
				t.Errorf("at %d it is another state", seq)
			}
			if most := intervals*max(every, len(state)/256) + 300; read > most {
				t.Errorf("a jump to %d read %d records, more than %d", seq, read, most)
			}
		}
	}
	folder := filepath.Join(dir, "journal", "keyframes")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	t.Run("copied", func(t *testing.T) {
		if _, read := cold(records); read < records {
			t.Fatalf("the first jump read %d records", read)
		}
		if _, read := cold(records); read > records/2 {
			t.Errorf("the second jump read %d records", read)
		}
		j, err := filejournal.Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if err := pastOf(j).Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, 2)
	})
	t.Run("with bad keyframes", func(t *testing.T) {
		paths, _ := filepath.Glob(filepath.Join(folder, "*.json"))
		if len(paths) < 4 {
			t.Fatalf("there are %d keyframes", len(paths))
		}
		for i, path := range paths {
			if i%2 == 0 {
				continue
			}
			if err := os.WriteFile(path, []byte("spoiled\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		check(t, records)
	})
	t.Run("left by writers", func(t *testing.T) {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		j, err := filejournal.Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		s, _ := team.DecodeSnapshot(0, "")
		for _, r := range h.Records {
			if s.Apply(r); r.Seq%300 != 0 {
				continue
			}
			if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: r.Seq,
				Data: string(team.AppendSnapshot(nil, s))}.Taken); err != nil {
				t.Fatal(err)
			}
		}
		check(t, 1)
	})
}
