package pgjournal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
)

func numbers(n int) (records []string) {
	for i := range n {
		records = append(records, fmt.Sprint(i+1))
	}
	return records
}

func save(t *testing.T, j *pgjournal.Journal, seq int64, data string) {
	t.Helper()
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Data: data}.Taken); err != nil {
		t.Fatal(err)
	}
}

// TestKeyframesAreBounded saves many snapshots. Those that stay are at a distance and within a
// size.
func TestKeyframesAreBounded(t *testing.T) {
	t.Parallel()
	const records, every, size, limit = 200, 10, 100, 900
	at := fresh(t, postgrestest.Shared(t))
	opts := pgjournal.Options{KeyframeEvery: every, KeyframeBytes: limit}
	_, j := at.create(t, opts, numbers(records)...)
	data := func(seq int64) string { return fmt.Sprintf(`"%d%s"`, seq, strings.Repeat("x", size))[:size] }
	for seq := int64(1); seq <= records; seq++ {
		save(t, j, seq, data(seq))
		if seq%7 == 0 {
			if err := j.SaveKeyframe(t.Context(), journal.Snapshot{Seq: seq / 2, Data: data(seq / 2)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	seqs, err := j.Keyframes(t.Context())
	if err != nil || len(seqs) < 5 || len(seqs) > limit/size+1 || seqs[len(seqs)-1] != records {
		t.Fatalf("the keyframes are %d, %v", seqs, err)
	}
	for i, seq := range seqs {
		if i > 0 && i < len(seqs)-1 && seq-seqs[i-1] < every {
			t.Errorf("the keyframes %d and %d are near each other", seqs[i-1], seq)
		}
		if s, err := j.Keyframe(t.Context(), seq); err != nil || s.Seq != seq || s.Data != data(seq) {
			t.Errorf("the keyframe of record %d is %+v, %v", seq, s, err)
		}
	}
}

// TestChoice checks which snapshots are removed.
func TestChoice(t *testing.T) {
	t.Parallel()
	kept := func(seqs ...int64) (all []pgjournal.Kept) {
		for _, seq := range seqs {
			all = append(all, pgjournal.NewKept(seq, 10))
		}
		return all
	}
	o := pgjournal.Options{KeyframeEvery: 10, KeyframeBytes: 30}
	for _, test := range []struct {
		name string
		got  []int64
		want []int64
	}{
		{"the first snapshot", o.Replaced(nil), nil},
		{"one that is near the start", o.Replaced(kept(9)), []int64{9}},
		{"one at a distance", o.Replaced(kept(10)), nil},
		{"one that is near a keyframe", o.Replaced(kept(10, 19)), []int64{19}},
		{"too many", o.Replaced(kept(10, 20, 35, 60)), []int64{10}},
		{"the nearest ones first", o.Replaced(kept(30, 60, 70, 120)), []int64{60}},
		{"the newest is none", o.Thin(kept(10, 20, 30, 40)), nil},
		{"five", o.Thin(kept(10, 20, 30, 40, 50)), []int64{10}},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("%s: %d is removed, want %d", test.name, test.got, test.want)
		}
	}
	if o.Room(kept(20), 15, 1) || o.Room(kept(20), 29, 1) || !o.Room(kept(20), 10, 1) || !o.Room(kept(20), 30, 1) ||
		o.Room(nil, 30, 1<<20) {
		t.Error("there is room where there is none, or none where there is")
	}
}

// TestUnusableSnapshots changes snapshots behind our back. They are ignored, and the one before is
// used.
func TestUnusableSnapshots(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"data changed":       "UPDATE snapshot SET data = '{}' WHERE seq = 40",
		"of another history": "UPDATE snapshot SET record = sha256('x') WHERE seq = 40",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := fresh(t, postgrestest.Shared(t))
			reports := make(chan string, 10)
			opts := pgjournal.Options{KeyframeEvery: 10, Report: func(what string) { reports <- what }}
			_, j := at.create(t, opts, numbers(50)...)
			save(t, j, 20, `"20"`)
			save(t, j, 40, `"40"`)
			at.sql(t, sql)
			if s, err := j.Keyframe(t.Context(), 40); err != nil || s.Seq != 0 {
				t.Errorf("the keyframe is %+v, %v", s, err)
			}
			if what := <-reports; !strings.Contains(what, "40") {
				t.Error(what)
			}
			if s, err := j.Snapshot(t.Context()); err != nil || s.Seq != 20 || s.Data != `"20"` {
				t.Errorf("the snapshot is %+v, %v", s, err)
			}
			save(t, j, 40, `"40 again"`)
			if s, err := j.Snapshot(t.Context()); err != nil || s.Seq != 40 || s.Data != `"40 again"` {
				t.Errorf("the snapshot is %+v, %v", s, err)
			}
		})
	}
}

// TestOneSaves checks that a second process does not encode a snapshot while one is being saved.
func TestOneSaves(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{}, numbers(5)...)
	other := open(t, at.store(t, pgjournal.Options{}))
	err := j.SaveSnapshot(t.Context(), func() (int64, []byte) {
		err := other.SaveSnapshot(t.Context(), func() (int64, []byte) {
			t.Error("two at once")
			return 5, []byte("{}")
		})
		if err != nil {
			t.Error(err)
		}
		add(t, other, 5, "6") // appends go on
		return 4, []byte(`"4"`)
	})
	if err != nil {
		t.Error(err)
	}
	if s, err := other.Snapshot(t.Context()); err != nil || s.Seq != 4 {
		t.Errorf("the snapshot is %+v, %v", s, err)
	}
}
