package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "play the history of this seed alone, and tell it with -v")
	firstFlag = flag.Uint64("first", 1, "the first seed of TestHistories; 0 for a new one")
	manyFlag  = flag.Uint64("histories", 0, "play that many histories")
	forFlag   = flag.Duration("for", 0, "play histories for that long, whatever their number")
	everyFlag = flag.Uint64("every", 0, "play every so many-th seed, in this process alone")
)

// TestHistories plays 1,000 histories, or 100 with -short. For more, it starts one process for each
// processor.
func TestHistories(t *testing.T) {
	if *seedFlag != 0 {
		if f := Play(t, *seedFlag, nil); f != nil {
			t.Fatal(f)
		}
		play(t, draw(*seedFlag), nil, func(line string) { t.Log(line) }, nil)
		return
	}
	n := uint64(1000)
	if testing.Short() {
		n = 100
	}
	if *manyFlag > 0 {
		n = *manyFlag
	}
	first := *firstFlag
	if first == 0 {
		first = rand.Uint64N(1 << 48)
	}
	if *everyFlag == 0 && (n > 1000 || *forFlag > 0) {
		spread(t, first, n)
		return
	}
	if *forFlag > 0 {
		n = 1 << 62
	}
	start := time.Now()
	s := search{first: first, n: n, every: max(1, *everyFlag), plan: draw, limit: *forFlag,
		said: func(played uint64) {
			if played%10_000 == 0 {
				t.Logf("%d histories, from seed %d on, after %s", played, first, time.Since(start).Round(time.Second))
			}
		}}
	played, failed := s.run(t)
	t.Logf("%d histories, from seed %d on, in %s", played, first, time.Since(start).Round(time.Millisecond))
	if failed == 0 {
		return
	}
	if f := Play(t, failed, nil); f != nil {
		t.Fatal(f)
	}
	t.Fatalf("the history of seed %d broke a promise, but not when it was played again", failed)
}

// spread splits n histories among several processes.
func spread(t *testing.T, first, n uint64) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parts := uint64(runtime.NumCPU())
	var playing sync.WaitGroup
	for i := range parts {
		playing.Go(func() {
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestHistories$", "-test.v",
				"-test.timeout", "0",
				"-first", fmt.Sprint(first+i), "-every", fmt.Sprint(parts), "-histories",
				fmt.Sprint((n+parts-1-i)/parts),
				"-for", forFlag.String())
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("the process that played from seed %d on failed: %v", first+i, err)
			}
		})
	}
	playing.Wait()
}

// search plays histories until one breaks a promise.
type search struct {
	first, n uint64
	every    uint64
	plan     func(seed uint64) Plan
	mutant   *Mutant
	limit    time.Duration     // 0 for none
	said     func(done uint64) // receives how many were played; nil for no one
}

func (s search) run(t *testing.T) (played, failed uint64) {
	start := time.Now()
	for ; played < s.n && (s.limit == 0 || time.Since(start) < s.limit); played++ {
		if s.said != nil && played > 0 {
			s.said(played)
		}
		if seed := s.first + played*s.every; play(t, s.plan(seed), s.mutant, nil, nil) != nil {
			return played + 1, seed
		}
	}
	return played, 0
}

// TestAFailureIsTold checks how a history with a bug is shortened: few moves are left, and the
// story has the important lines.
func TestAFailureIsTold(t *testing.T) {
	m := mutantOf("early-ack")
	_, failed := search{first: 1, n: 100, every: 1, plan: draw, mutant: m}.run(t)
	f := Play(t, failed, m)
	if f == nil {
		t.Fatalf("history %d does not fail again", failed)
	}
	story := f.Error()
	for _, part := range []string{kept, "the power goes", "BROKEN", fmt.Sprint("-seed ", failed)} {
		if !strings.Contains(story, part) {
			t.Errorf("the story does not contain %q", part)
		}
	}
	if f.Moves < 5 || len(f.Plan.Moves) > 2 {
		t.Errorf("of %d moves %d are left:\n%s", f.Moves, len(f.Plan.Moves), story)
	}
}

// TestNotes plays histories in which people and sessions write notes, with all faults. Each text is
// in its note once, or was replaced by somebody who had seen it.
func TestNotes(t *testing.T) {
	n := uint64(150)
	if testing.Short() {
		n = 30
	}
	if _, failed := (search{first: 1, n: n, every: 1, plan: ofNotes}).run(t); failed != 0 {
		play(t, ofNotes(failed), nil, func(line string) { t.Log(line) }, nil)
		t.Fatalf("the history of seed %d broke a promise", failed)
	}
}

// ofNotes draws a plan with notes.
func ofNotes(seed uint64) Plan {
	p := draw(seed)
	if !p.Notes {
		p.Notes = true
		p.addNotes(rand.New(rand.NewPCG(seed, 21)))
	}
	return p
}

// TestTheSameAgain plays histories twice, and checks how many are identical.
func TestTheSameAgain(t *testing.T) {
	n := uint64(100)
	if testing.Short() {
		n = 20
	}
	same := uint64(0)
	for seed := uint64(1); seed <= n; seed++ {
		story := func() (lines []string) {
			play(t, draw(seed), nil, func(line string) { lines = append(lines, line) }, nil)
			return lines
		}
		a, b := story(), story()
		if len(a) < 20 {
			t.Errorf("seed %d: the story has %d lines", seed, len(a))
		}
		if slices.Equal(a, b) {
			same++
			continue
		}
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Logf("the stories of seed %d differ at line %d of %d and %d:\n%s\n%s", seed, i, len(a), len(b),
					a[i], b[i])
				break
			}
		}
	}
	t.Logf("%d of %d stories are identical", same, n)
	if same < n-max(1, n/50) && !raced {
		t.Errorf("only %d of %d stories are identical when they are played again", same, n)
	}
}

// TestRichness checks that faults happen often enough: a simulation in which nothing happens finds
// nothing.
func TestRichness(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes hundreds of histories")
	}
	const n = 300
	seen := map[string]int{}
	lines := 0
	for seed := uint64(1); seed <= n; seed++ {
		play(t, draw(seed), nil, func(line string) {
			lines++
			for _, what := range richness {
				if strings.Contains(line, what.words) {
					seen[what.words]++
				}
			}
		}, nil)
	}
	t.Logf("%d lines a history", lines/n)
	for _, what := range richness {
		t.Logf("%5d %s", seen[what.words], what.words)
		if seen[what.words] < what.least/4 {
			t.Errorf("%d histories have %q %d times, want at least %d", n, what.words, seen[what.words], what.least/4)
		}
	}
}

var richness = []struct {
	words string
	least int
}{
	{"completed task", 1000},
	{"is killed", 100},
	{"the power goes", 50},
	{"were not synced", 20},
	{"cuts the torn line", 20},
	{"no space left on device", 20},
	{"it is unknown whether the record was saved", 50},
	{"the journal cannot be reached", 20},
	{"another host took it", 5},
	{"its host", 200},
	{"it was replaced and must end", 1},
	{"a copy of", 50},
	{"reads #", 2000},
	{"(tool)", 20},
	{"Not delivered, because", 5},
	{"shut down at the deadline", 10},
	{"shut down as asked", 10},
	{"was rejected", 50},
	{"was approved", 20},
	{"timed out", 5},
	{": allowed", 20},
	{"this claim", 1},
	{"is out of retries", 1},
	{"led astray", 10},
	{"is cut short", 20},
	{"changed with the team file", 20},
	{"is the lead, for the life of the team", 5},
}
