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

// TestMutants expects that each of the bugs is found: by a history, or where beyond has it, by a test
// of its own package. Bugs in real code are in another build of these tests.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the tests once more")
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
				t.Parallel() // it is for other processes to do
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
				t.Fatalf("no history found that %s: %v\n%s", m.What, err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "broken: ") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// test is one of another package.
type test struct{ pkg, name string }

// beyond are the tests that find bugs that histories do not: the bug is in code that the simulation
// plays, or no history has been seen to find it.
var beyond = map[string]test{
	"keeps-mixed":    {"host", "TestNewerWorkIsKeptLast"},
	"kept-unflushed": {"observe/store", "TestJournalComesFirst"},
	"newer-removed":  {"host", "TestNewerSavedWorkStays"},
	"removed-early":  {"engine/upkeep", "TestRemoveWaitsForProcesses"},
	"replaced-reads": {"host", "TestAReplacedSessionGetsNoMail"},
}

func findBeyond(t *testing.T, m *Mutant, with string, by test) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", with, "-run",
		"^"+by.name+"$",
		"cadre/internal/"+by.pkg)
	cmd.Env = append(os.Environ(), "CADRE_MUTANT="+m.Name)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: "+by.name) {
		t.Errorf("%s of %s did not find that %s: %v\n%s", by.name, by.pkg, m.What, err, out)
	}
}

// TestFinds looks for the bug that is in the code in which it runs. [TestMutants] starts it.
func TestFinds(t *testing.T) {
	m := mutantOf(*bugFlag)
	if m == nil {
		t.Skip("it is for TestMutants")
	}
	find(t, m)
}

// find looks for the bug: first in the history that found it before, then in others.
func find(t *testing.T, m *Mutant) {
	h := hints[m.Name]
	s := search{first: max(h.seed, *firstFlag, 1), n: cmp.Or(*manyFlag, 5000), every: max(1, *everyFlag),
		plan: h.plan, mutant: m}
	if s.plan == nil {
		s.plan = draw
	}
	played, failed := s.run(t)
	if failed == 0 {
		t.Fatalf("%d histories did not find that %s", played, m.What)
	}
	t.Logf("history %d, after %d; again: %v", failed, played, play(t, s.plan(failed), m, nil, nil))
}

// hint says where a bug is found that few histories find: the seed of one that did, and of which
// kind of plans, where usual ones have too little of what the bug needs.
type hint struct {
	seed uint64
	plan func(seed uint64) Plan // nil for draw
}

var hints = map[string]hint{
	"aborted-stays":         {3, ofAborted},
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
	"old-owner":             {106, nil},
	"old-seat-stays":        {184, nil},
	"other-overwritten":     {17, ofZombies},
	"overdue-left":          {3022, nil},
	"refused-kept":          {1974, ofZombies},
	"save-left":             {81, ofZombies},
	"taken-since":           {2126, nil},
	"trace-once":            {3370, ofTraced},
	"turns-mixed":           {996, ofTurns},
	"unfenced-release":      {155, nil},
	"unsynced-given":        {905, nil},
	"work-once":             {943, nil},
	"yields-once":           {125, ofZombies},
	"zombie-claims":         {149, nil},
}

// luck draws what plans of one kind leave open.
type luck struct{ *rand.Rand }

// luckOf is the luck of a seed. Kinds of plans that are made from one another have different streams.
func luckOf(seed, stream uint64) luck { return luck{rand.New(rand.NewPCG(seed, stream))} }

// ms draws a time of at least from and less than to milliseconds.
func (l luck) ms(from, to int) time.Duration {
	return time.Duration(from+l.IntN(to-from)) * time.Millisecond
}

// ofAborted are plans in which the team is aborted.
func ofAborted(seed uint64) Plan {
	p := draw(seed)
	p.Moves = append(p.Moves, Move{At: p.drawTime(luckOf(seed, 3).Rand), Kind: "abort"})
	p.sort()
	return p
}

// ofSlow are plans with slow sessions, whose mail comes when their host is cut off.
func ofSlow(seed uint64) Plan {
	p := draw(seed)
	for n := uint64(3); !p.Slow; n++ {
		p.drawSlowness(luckOf(seed, n).Rand)
	}
	return p
}

// ofTraced are plans in which the record of what a task did has no room on the disk for longer than
// a host tries.
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

// ofZombies are plans in which a team with work to do loses its lead early, and then has the troubles
// in which saved work is in danger.
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

// ofTaken are plans in which a member that saved its work while there was no lead is taken from a
// host that died, by one that is cut off just then.
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

// ofTurns are plans in which much is said to an agent that answers with tools and is slow to take in
// what they return, while its host is slow to record what it does.
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

// ofCutTaker are plans in which the host of the only member dies, another one that wants to take it
// over is cut off, and a third one does, whose session saves more until there is a lead again.
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
