package simtest

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
)

var bugFlag = flag.String("bug", "", "have TestFinds look for the bug of that name")

// TestMutants checks that each bug is found: by a history, or by the test that beyond names. Bugs
// in real code are in a second build of these tests.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the tests a second time")
	}
	dir := t.TempDir()
	with := overlay(t, dir)
	program := filepath.Join(dir, "simtest.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", with, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i := range mutants {
		m := &mutants[i]
		t.Run(m.Name, func(t *testing.T) {
			other, outside := beyond[m.Name]
			switch {
			case outside:
				t.Parallel() // other processes do the work
				findBeyond(t, m, with, other)
				return
			case !inCode(m.Name):
				find(t, m)
				return
			}
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestFinds$", "-test.v", "-bug", m.Name)
			cmd.Env = append(os.Environ(), "CADRE_MUTANT="+m.Name)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("no history found the bug: %s: %v\n%s", m.What, err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "broken: ") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// test is a test of another package.
type test struct{ pkg, name string }

// beyond names the tests that find bugs that histories do not find. The bug is in code that the
// simulation replaces, or no known history finds it.
var beyond = map[string]test{
	"back-together":   {"team", "TestLimitedPoolComesBackOneByOne"},
	"no-probe":        {"team", "TestLimitedPoolComesBackOneByOne"},
	"turns-uncounted": {"host", "TestMaxParallel"},
	"keeps-mixed":     {"host", "TestNewerWorkIsKeptLast"},
	"kept-unflushed":  {"observe/store", "TestJournalComesFirst"},
	"newer-removed":   {"host", "TestNewerSavedWorkStays"},
	"removed-early":   {"engine/upkeep", "TestRemoveWaitsForProcesses"},
	"replaced-reads":  {"host", "TestAReplacedSessionGetsNoMail"},
}

// findBeyond runs the test that finds the bug. On a busy machine a test that races with the bug may
// miss it once.
func findBeyond(t *testing.T, m *Mutant, with string, by test) {
	const tries = 3
	for try := 1; ; try++ {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", with, "-run",
			"^"+by.name+"$",
			"cadre/internal/"+by.pkg)
		cmd.Env = append(os.Environ(), "CADRE_MUTANT="+m.Name)
		out, err := cmd.CombinedOutput()
		if err != nil && strings.Contains(string(out), "--- FAIL: "+by.name) {
			return
		}
		if try == tries {
			t.Errorf("%s of %s did not find the bug: %s: %v\n%s", by.name, by.pkg, m.What, err, out)
			return
		}
	}
}

// TestFinds looks for the bug that is built into the code under test. [TestMutants] starts it.
func TestFinds(t *testing.T) {
	m := mutantOf(*bugFlag)
	if m == nil {
		t.Skip("TestMutants runs this test")
	}
	find(t, m)
}

// find looks for the bug, first in the history that found it before, and then in others.
func find(t *testing.T, m *Mutant) {
	h := hints[m.Name]
	s := search{first: max(h.seed, *firstFlag, 1), n: cmp.Or(*manyFlag, 5000), every: max(1, *everyFlag),
		plan: h.plan, mutant: m}
	if s.plan == nil {
		s.plan = draw
	}
	played, failed := s.run(t)
	if failed == 0 {
		t.Fatalf("%d histories did not find the bug: %s", played, m.What)
	}
	t.Logf("history %d found it, after %d histories; again: %v", failed, played, play(t, s.plan(failed), m, nil, nil))
}

// hint says where to find a bug that few histories find: the seed of one history that found it, and
// the kind of plan if usual plans rarely trigger the bug.
type hint struct {
	seed uint64
	plan func(seed uint64) Plan // nil for draw
}

var hints = map[string]hint{
	"aborted-stays":         {3, ofAborted},
	"append-replaces":       {1, ofNotes},
	"broken-stays":          {553, ofZombies},
	"ending-unseen":         {2262, ofTaken},
	"gives-away":            {445, nil},
	"held-dropped":          {2, ofZombies},
	"held-given":            {428, ofZombies},
	"held-not":              {714, nil},
	"incarnation-unchecked": {968, nil},
	"kept-by-all":           {621, ofCutTaker},
	"late-forgotten":        {2148, nil},
	"looked-early":          {4099, nil},
	"never-yields":          {2, ofZombies},
	"note-overwritten":      {1210, ofNotes},
	"old-owner":             {106, nil},
	"old-slot-stays":        {184, nil},
	"other-overwritten":     {17, ofZombies},
	"overdue-left":          {3022, nil},
	"refused-kept":          {14467, ofZombies},
	"save-left":             {81, ofZombies},
	"taken-since":           {2126, nil},
	"trace-once":            {3370, ofTraced},
	"turns-mixed":           {996, ofTurns},
	"unfenced-release":      {155, nil},
	"unsynced-given":        {905, nil},
	"work-once":             {943, nil},
	"yields-once":           {125, ofZombies},
	"pool-ignored":          {1, ofLimited},
	"limit-returns":         {1, ofLimited},
	"zombie-claims":         {149, nil},
}

// luck draws what plans of one kind leave open.
type luck struct{ *rand.Rand }

// luckOf returns the luck of a seed. Plans that derive from each other use different streams.
func luckOf(seed, stream uint64) luck { return luck{rand.New(rand.NewPCG(seed, stream))} }

// ms draws a time in milliseconds, at least from and less than to.
func (l luck) ms(from, to int) time.Duration {
	return time.Duration(from+l.IntN(to-from)) * time.Millisecond
}

// ofAborted draws a plan in which the team is aborted.
func ofAborted(seed uint64) Plan {
	p := draw(seed)
	p.Moves = append(p.Moves, Move{At: p.drawTime(luckOf(seed, 3).Rand), Kind: "abort"})
	p.sort()
	return p
}

// ofLimited draws a plan in which the provider refuses requests, with several models.
func ofLimited(seed uint64) Plan {
	p := draw(seed)
	p.Limits = true
	for i := range p.Members {
		p.Members[i].Agent, p.Members[i].Plans = team.Claude, false
	}
	return p
}

// ofSlow draws a plan with slow sessions, which get mail while their host is cut off.
func ofSlow(seed uint64) Plan {
	p := draw(seed)
	for n := uint64(3); !p.Slow; n++ {
		p.drawSlowness(luckOf(seed, n).Rand)
	}
	return p
}

// ofTraced draws a plan in which the disk is full when a host records what a task did, for longer
// than the host retries.
func ofTraced(seed uint64) Plan {
	rng := luckOf(seed, 3)
	p := draw(seed)
	p.Led, p.Lead, p.Repo, p.Hosts, p.Calm = false, team.External, true, 1, 8*time.Second
	p.Members = []Newcomer{{Name: "ann", Agent: team.Claude}}
	p.Moves = p.Moves[:2]
	for range 1 + rng.IntN(3) {
		p.Moves = append(p.Moves, Move{At: rng.ms(20, 1520), Kind: "disk-full",
			B: rng.IntN(12), C: 4000 + rng.IntN(6000)})
	}
	p.sort()
	return p
}

// ofZombies draws a plan in which a busy team loses its lead early. The faults that follow endanger
// saved work.
func ofZombies(seed uint64) Plan {
	rng := luckOf(seed, 3)
	p := draw(seed)
	p.Led, p.Lead, p.Noise, p.Hosts, p.Calm = true, team.External, 0, 1+rng.IntN(3), rng.ms(4000, 6000)
	p.Timing = team.Timing{Beat: rng.ms(100, 101), LeadLost: rng.ms(500, 501), Offline: time.Second,
		Zombie: 30 * time.Second, Blocked: rng.ms(200, 600), Undelivered: rng.ms(300, 2300), Stale: time.Second}
	for i := range p.Members {
		p.Members[i].Agent, p.Members[i].Plans, p.Members[i].Role = team.Claude, false, ""
	}
	p.Moves = nil
	add := func(kind string, at time.Duration) {
		p.Moves = append(p.Moves, Move{At: at, Kind: kind, A: rng.IntN(12), B: rng.IntN(12), C: rng.IntN(3000)})
	}
	for range 2 + rng.IntN(4) {
		add("task", rng.ms(10, 1500))
	}
	add("kill-lead", rng.ms(100, 900))
	for range 3 + rng.IntN(6) {
		troubles := []string{"kill-host", "kill-host", "kill-session", "lose-lock", "lose-lock", "cut", "cut",
			"stall", "sync-fails",
			"disk-full", "resume", "kill-lead", "shutdown", "handover", "message", "broadcast", "task"}
		add(troubles[rng.IntN(len(troubles))], rng.ms(700, int(p.Calm/time.Millisecond)-50))
	}
	p.sort()
	return p
}

// ofTaken draws a plan in which a member saves its work without a lead and its host dies. The host
// that takes the member over is cut off at that moment.
func ofTaken(seed uint64) Plan {
	rng := luckOf(seed, 4)
	p := ofZombies(seed)
	p.Members = p.Members[:min(len(p.Members), 2)]
	if rng.IntN(2) == 0 {
		p.Timing.Undelivered = time.Hour
	}
	p.Moves = []Move{{At: rng.ms(300, 900), Kind: "kill-lead"}}
	for range 1 + rng.IntN(3) {
		p.Moves = append(p.Moves, Move{At: rng.ms(10, 400), Kind: "task", A: 3 * rng.IntN(4), B: 1})
	}
	dies, dead := rng.ms(1200, 2500), rng.IntN(p.Hosts)
	add := func(kind string, at time.Duration, a, b, c int) {
		p.Moves = append(p.Moves, Move{At: at, Kind: kind, A: a, B: b, C: c})
	}
	add("kill-host", dies, dead, 0, rng.IntN(3000))
	if p.Hosts == 1 {
		add("sync-fails", dies+rng.ms(100, 2500), 0, 1, 1000+rng.IntN(2000))
	} else {
		add("cut", dies+rng.ms(0, 600), dead+1, rng.IntN(2), 500+rng.IntN(2500))
	}
	if rng.IntN(2) == 0 {
		add("lose-lock", dies+rng.ms(0, 1500), rng.IntN(p.Hosts), 0, 300+rng.IntN(2000))
	}
	for range rng.IntN(3) {
		add("resume", dies+rng.ms(100, 2500), rng.IntN(12), rng.IntN(12), 1)
	}
	for range rng.IntN(3) {
		add("shutdown", dies+rng.ms(0, 1500), rng.IntN(12), 0, rng.IntN(3000))
	}
	if rng.IntN(2) == 0 {
		add("handover", dies+rng.ms(0, 1500), rng.IntN(12), 0, 0)
	}
	for range rng.IntN(4) {
		add("message", dies+rng.ms(0, 2500), rng.IntN(12), rng.IntN(2), rng.IntN(3000))
	}
	p.sort()
	return p
}

// ofTurns draws a plan with many messages for an agent that answers with tools. The agent reads
// tool results slowly, and its host records slowly.
func ofTurns(seed uint64) Plan {
	rng := luckOf(seed, 4)
	p := ofSlow(seed)
	p.Led, p.Lead, p.Policy = false, team.Claude, "lead"
	p.Moves = slices.DeleteFunc(p.Moves, func(m Move) bool { return kindOf(m.Kind).ofLed })
	for i := range p.Members {
		p.Members[i].Agent, p.Members[i].Plans = team.Claude, true
	}
	for range 3 + rng.IntN(4) {
		at := p.drawTime(rng.Rand)
		p.Moves = append(p.Moves, Move{At: at, Kind: "cut", A: rng.IntN(12), B: 1, C: 20 + rng.IntN(200)},
			Move{At: at, Kind: "shutdown", A: rng.IntN(12), C: 2000})
		for range 2 + rng.IntN(4) {
			p.Moves = append(p.Moves, Move{At: at + rng.ms(0, 150), Kind: "message",
				A: 12 * rng.IntN(2), C: rng.IntN(3000)})
		}
	}
	p.sort()
	return p
}

// ofCutTaker draws a plan in which the host of the only member dies. A second host wants to take it
// over and is cut off. A third host takes it over, and its session saves more work until there is a
// lead again.
func ofCutTaker(seed uint64) Plan {
	rng := luckOf(seed, 5)
	p := ofZombies(seed)
	p.Hosts, p.Members, p.Repo, p.Claims, p.Slow = 3, []Newcomer{{Name: "ann", Agent: team.Claude}}, false, false, false
	p.Timing.Blocked = 20 * time.Second
	p.Calm = 6 * time.Second
	dies, dead := rng.ms(1000, 1800), rng.IntN(3)
	p.Moves = []Move{{At: rng.ms(300, 500), Kind: "kill-lead"},
		{At: dies, Kind: "kill-host-now", A: dead, C: 2900},
		{At: dies + rng.ms(-20, 20), Kind: "cut", A: (dead + 1 + rng.IntN(2)) % 3, B: 1, C: 1500 + rng.IntN(1500)},
		{At: dies + rng.ms(500, 1500), Kind: "resume", A: rng.IntN(2), B: 1, C: 1}}
	for range 6 {
		p.Moves = append(p.Moves, Move{At: rng.ms(10, 900), Kind: "task", A: 3 * rng.IntN(4), B: 1, C: rng.IntN(3000)})
	}
	p.sort()
	return p
}
