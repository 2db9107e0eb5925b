package heartbeat_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
)

func TestBeatsOfAFolder(t *testing.T) {
	team := t.TempDir()
	f := heartbeat.In(filestore.Team(team))
	if all, err := f.All(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("before the first beat: %v, %v", all, err)
	}
	ann := heartbeat.Beat{Member: "ann", At: 1000, Task: "3", Context: 47, Status: "active", MessageSeq: 43,
		CheckpointSeq: 127, Pid: 7, Count: 1}
	for _, b := range []heartbeat.Beat{ann, {Member: "bob", At: 1, Count: 1}, {Member: "bob", At: 2, Count: 2}} {
		if err := f.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(team, "heartbeats", "cy.json"), []byte(`{"teammate_id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := f.All(t.Context())
	if err != nil || len(all) != 3 || all["ann"] != ann || all["bob"].Count != 2 || !all["cy"].Unreadable {
		t.Errorf("%+v, %v", all, err)
	}
	if _, skewed := all["cy"].Age(time.Now()); !skewed {
		t.Error("a beat that cannot be read has an age")
	}
	for range 2 {
		if err := f.Forget(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if _, there, err := f.Of(t.Context(), "ann"); there || err != nil {
		t.Errorf("forgotten, and there is %v, %v", there, err)
	}
	entries, _ := os.ReadDir(filepath.Join(team, "heartbeats"))
	if len(entries) != 2 {
		t.Errorf("%d files are left, of two", len(entries))
	}
}

// TestReadersSeeWholeBeats reads beside a writer: every beat is whole, and none is older than the
// one before.
func TestReadersSeeWholeBeats(t *testing.T) {
	f := heartbeat.In(filestore.Team(t.TempDir()))
	if err := f.Write(t.Context(), heartbeat.Beat{Member: "ann"}); err != nil {
		t.Fatal(err)
	}
	beats := int64(2000)
	if testing.Short() {
		beats = 200
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := range beats {
			beat := heartbeat.Beat{Member: "ann", At: n, Count: n, Task: "12345"[:n%6]}
			if err := f.Write(t.Context(), beat); err != nil {
				t.Error(err)
				return
			}
		}
	})
	last := int64(0)
	for last < beats-1 && !t.Failed() {
		b, there, err := f.Of(t.Context(), "ann")
		if err != nil || !there || b.Unreadable || b.Count < last || b.At != b.Count {
			t.Fatalf("after %d: %+v, %v, %v", last, b, there, err)
		}
		last = b.Count
	}
	writing.Wait()
}

func TestAge(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	for _, c := range []struct {
		at     int64
		age    time.Duration
		skewed bool
	}{
		{1_000_000, 0, false},
		{940_000, time.Minute, false},
		{1_001_000, 0, false}, // within the tolerance
		{1_003_000, 0, true},
	} {
		if age, skewed := (heartbeat.Beat{At: c.at}).Age(now); age != c.age || skewed != c.skewed {
			t.Errorf("a beat of %d is %v old, skewed %v", c.at, age, skewed)
		}
	}
}

func TestWatch(t *testing.T) {
	const every = 30 * time.Second
	begin := time.Now()
	// step is one look: the time since the last one, the additional jump of the wall clock, and the
	// beat by the wall clock.
	type step struct {
		after  time.Duration
		jump   time.Duration
		beat   time.Duration // when it was written, relative to the start, by the writer's clock
		silent time.Duration
		skewed bool
	}
	for name, steps := range map[string][]step{
		"a beat each half minute": {
			{0, 0, 0, 0, false}, {every, 0, every, 0, false}, {every, 0, 2 * every, 0, false},
			{every, 0, 3 * every, 0, false},
		},
		"silence is believed once the watch has looked on": {
			{0, 0, -time.Hour, 0, false}, {every, 0, -time.Hour, 0, false},
			{every, 0, -time.Hour, time.Hour + 2*every, false},
		},
		"a beat from the future decides nothing, and its silence is seen by our clock": {
			{0, 0, time.Hour, 0, true}, {every, 0, time.Hour, 0, true}, {every, 0, time.Hour, 2 * every, true},
			{every, 0, time.Hour, 3 * every, true},
		},
		"a writer whose clock runs ahead is no silent one": {
			{0, 0, time.Hour, 0, true}, {every, 0, time.Hour + every, 0, true}, {every, 0, time.Hour + 2*every, 0,
				true}, {every, 0, time.Hour + 3*every, 0, true},
		},
		"a writer whose clock is behind is no silent one either": {
			{0, 0, -time.Hour, 0, false}, {every, 0, every - time.Hour, 0, false}, {every, 0, 2*every - time.Hour, 0,
				true}, {every, 0, 3*every - time.Hour, 0, true},
			{every, 0, 3*every - time.Hour, every, true}, {every, 0, 3*every - time.Hour, 2 * every, true},
		},
		"a clock that is set decides nothing, in either direction": {
			{0, 0, 0, 0, false}, {every, 0, every, 0, false}, {every, 0, 2 * every, 0, false},
			{every, every, 3 * every, 0, false}, {every, every, 3 * every, every, false},
			{every, -2 * every, 3 * every, 0, true}, {every, 0, 6 * every, 0, false},
		},
		"a machine that was suspended looks on first": {
			{0, 0, 0, 0, false}, {every, 0, every, 0, false}, {every, 0, 2 * every, 0, false},
			{2 * time.Hour, 0, 2 * every, 0, false}, {every, 0, 2*time.Hour + 3*every, 0, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := heartbeat.Watch{Every: every}
			wall, steady := begin.Round(0), time.Duration(0)
			for i, s := range steps {
				wall, steady = wall.Add(s.after+s.jump), steady+s.after
				silent, skewed := w.LookBy(wall, steady, heartbeat.Beat{At: begin.Add(s.beat).UnixMilli(),
					Count: int64(s.beat)}, true)
				if silent.Round(time.Second) != s.silent || skewed != s.skewed {
					t.Errorf("look %d: silent for %v, skewed %v; want %v, %v", i, silent, skewed, s.silent, s.skewed)
				}
			}
		})
	}
	t.Run("a member without a beat is not silent", func(t *testing.T) {
		w := heartbeat.Watch{Every: every}
		for i := range 20 {
			if silent, _ := w.Look(begin.Add(time.Duration(i)*every), heartbeat.Beat{}, false); silent != 0 {
				t.Errorf("silent for %v", silent)
			}
		}
	})
	t.Run("a clock that runs backwards", func(t *testing.T) {
		w := heartbeat.Watch{Every: every}
		beat := heartbeat.Beat{At: begin.UnixMilli()}
		for _, at := range []time.Duration{0, every, 2 * every} {
			w.Look(begin.Add(at).Round(0), beat, true)
		}
		if silent, skewed := w.Look(begin.Add(every).Round(0), beat, true); silent != 0 || !skewed {
			t.Errorf("silent for %v, skewed %v", silent, skewed)
		}
	})
}
