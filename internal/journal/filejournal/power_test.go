package filejournal_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	powerHistories = flag.Int("power.histories", 0, "how many histories TestPower plays; 0 for its usual number")
	powerSeed      = flag.Uint64("power.seed", 0, "the seed of its first history; 0 for any")
)

// TestPower plays random histories of several processes on one simulated disk, and loses the power
// after each change. Every acknowledged record is there, in order and once, no other record was
// added, and no damage is reported.
func TestPower(t *testing.T) {
	t.Parallel()
	histories, first := *powerHistories, *powerSeed
	if histories == 0 {
		histories = 2000 // some seconds on one core
		if testing.Short() {
			histories = 40
		}
	}
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	var next, steps, lost atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()

	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := next.Add(1); n <= int64(histories) && !t.Failed(); n = next.Add(1) {
				h := play(t, first+uint64(n)-1, lie{})
				if h.wrong != nil {
					report(t, h, first+uint64(n)-1, lie{})
				}
				steps.Add(int64(h.steps))
				lost.Add(int64(h.lost))
			}
		})
	}
	workers.Wait()
	t.Logf("%d histories, %d steps, %d losses of power in %v, from seed %d", histories, steps.Load(), lost.Load(),
		time.Since(began).Round(time.Millisecond), first)
}

// TestPowerBySeed plays some histories twice, with the same result.
func TestPowerBySeed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		var logs [2]string
		for i := range logs {
			h := &history{choices: &choices{chance: rand.New(rand.NewPCG(seed, 0))}, losses: 1, keepLog: true}
			h.run(t)
			logs[i] = strings.Join(h.log, "\n")
		}
		if logs[0] != logs[1] {
			t.Errorf("seed %d:\n%s\n\nand then:\n%s", seed, logs[0], logs[1])
		}
	}
}

// play plays the history of a seed.
func play(t *testing.T, seed uint64, lie lie) *history {
	h := &history{choices: &choices{chance: rand.New(rand.NewPCG(seed, 0))}, lie: lie, losses: 1}
	h.run(t)
	return h
}

// replay plays a history with given choices, and loses the power at each step in several ways.
func replay(t *testing.T, given []int, lie lie) *history {
	h := &history{choices: &choices{given: given}, lie: lie, losses: 6, keepLog: true}
	h.run(t)
	return h
}

// report shows a history in which a guarantee was broken, shortened as far as possible.
func report(t *testing.T, h *history, seed uint64, lie lie) {
	shorter := replay(t, h.choices.made, lie)
	if shorter.wrong != nil {
		shorter = shorten(t, shorter, lie)
	}
	t.Errorf("seed %d: %v\nshortened, with %d choices: %v\n%s\nto play it again: go test -run 'TestPower$' "+
		"-power.seed %d -power.histories 1",
		seed, h.wrong, len(shorter.choices.made), shorter.wrong, strings.Join(shorter.log, "\n"), seed)
}

// shorten removes choices, or sets them to zero, as long as the history still fails.
func shorten(t *testing.T, h *history, lie lie) *history {
	end := time.Now().Add(20 * time.Second)
	try := func(given []int) bool {
		if time.Now().After(end) {
			return false
		}
		other := replay(t, given, lie)
		if other.wrong == nil || len(other.log) > len(h.log) {
			return false
		}
		h = other
		return true
	}
	for before := ""; before != fmt.Sprint(h.choices.made); {
		before = fmt.Sprint(h.choices.made)
		for size := len(h.choices.made) / 2; size > 0; size /= 2 {
			for at := 0; at+size <= len(h.choices.made); {
				made := h.choices.made
				without := append(append([]int{}, made[:at]...), made[at+size:]...)
				if len(without) == len(made) || !try(without) {
					at += size
				}
			}
		}
		for at := 0; at < len(h.choices.made); at++ {
			if made := append([]int{}, h.choices.made...); made[at] > 0 {
				made[at] = 0
				try(made)
			}
		}
	}
	return h
}
