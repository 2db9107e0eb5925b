package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"cadre/internal/team"
)

// Plan is what happens to a team in one history. Luck that depends on the seed decides the rest.
type Plan struct {
	Seed    uint64
	Lead    string // the agent of the lead
	Policy  string // who answers permission requests
	Members []Newcomer
	Led     bool // a session leads, which sends heartbeats and can be lost
	Timing  team.Timing
	Hosts   int
	Noise   int  // how many of 1,000 commands are doubled or late
	Repo    bool // the team works in a repository, so hosts record what tasks did
	Claims  bool // members claim tasks for others, and sessions claim some themselves, also late
	Notes   bool // people and sessions write notes
	Demands bool // tasks have checks and schemas of their results, and make tasks for items
	Limits  bool // the provider of the models refuses requests for a while, now and then
	Slow    bool // sessions read tool results slowly, and mail comes while their host is cut off
	Moves   []Move
	Calm    time.Duration // when the faults are over
}

// Newcomer is a teammate that the team starts with.
type Newcomer struct {
	Name, Agent, Role string
	Plans             bool
}

// Move is one thing that happens at a given time. A, B and C choose the host, member or task, and
// the duration. Each kind interprets them in its own way.
type Move struct {
	At      time.Duration
	Kind    string
	A, B, C int
}

var names = []string{"ann", "bob", "cy", "dan"}

// draw makes the plan of a seed.
func draw(seed uint64) Plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := Plan{Seed: seed, Lead: []string{team.External, team.Claude}[rng.IntN(2)], Hosts: 1 + rng.IntN(3),
		Noise:  []int{0, 0, 10, 60}[rng.IntN(4)],
		Policy: []string{"", "lead", "user"}[rng.IntN(3)]}
	if p.Led = rng.IntN(2) == 0; p.Led {
		within := func(least, more int) time.Duration { return time.Duration(least+rng.IntN(more)) * time.Millisecond }
		p.Timing = team.Timing{Beat: within(100, 150), LeadLost: within(500, 500), Offline: time.Second,
			Zombie:  []time.Duration{within(300, 3000), 30 * time.Second}[rng.IntN(4)/3],
			Blocked: within(200, 600), Undelivered: within(300, 2000), Stale: within(1000, 1500)}
	}
	for _, name := range names[:1+rng.IntN(3)] {
		p.Members = append(p.Members, Newcomer{Name: name, Agent: []string{team.Claude, team.Claude,
			team.Shell}[rng.IntN(3)], Role: []string{"", "", "tester"}[rng.IntN(3)]})
		last := &p.Members[len(p.Members)-1]
		last.Plans = last.Agent != team.Shell && rng.IntN(3) == 0
	}
	p.Calm = time.Duration(1500+rng.IntN(3500)) * time.Millisecond
	add := func(kinds []moveKind, n int) {
		for range n {
			p.Moves = append(p.Moves, Move{At: p.drawTime(rng), Kind: drawKind(rng, kinds, p.Led), A: rng.IntN(12),
				B: rng.IntN(12), C: rng.IntN(3000)})
		}
	}
	add(requests, 2+rng.IntN(9))
	if rng.IntN(8) > 0 { // now and then nothing goes wrong at all
		add(faults, 1+rng.IntN(6))
	}
	p.sort()
	p.Moves = slices.Insert(p.Moves, 0, Move{At: 10 * time.Millisecond, Kind: "task"}, Move{At: 20 * time.Millisecond,
		Kind: "task", B: 1})
	p.drawClaims(rand.New(rand.NewPCG(seed, 1)))
	p.drawSlowness(rand.New(rand.NewPCG(seed, 2)))
	p.drawChanges(rand.New(rand.NewPCG(seed, 3)))
	p.drawPauses(rand.New(rand.NewPCG(seed, 4)))
	p.drawNotes(rand.New(rand.NewPCG(seed, 20))) // this stream leaves the histories of the hints as they are
	p.Limits = rand.New(rand.NewPCG(seed, limitStream)).IntN(10) == 0
	p.drawDemands(rand.New(rand.NewPCG(seed, demandStream)))
	return p
}

// These streams leave the histories of the hints as they are.
const (
	limitStream  = 22
	demandStream = 61
)

// drawDemands gives some plans tasks that demand something, and groups.
func (p *Plan) drawDemands(rng *rand.Rand) {
	if p.Demands = rng.IntN(8) == 0; p.Demands {
		p.addDemands(rng)
	}
}

// addDemands adds such tasks to the moves.
func (p *Plan) addDemands(rng *rand.Rand) {
	for range 1 + rng.IntN(4) {
		p.Moves = append(p.Moves, Move{At: p.drawTime(rng), Kind: []string{"group", "demand"}[rng.IntN(2)],
			A: rng.IntN(12), B: rng.IntN(12), C: rng.IntN(3000)})
	}
	p.sort()
}

// drawPauses gives some plans pauses, and members whose permission mode changes.
func (p *Plan) drawPauses(rng *rand.Rand) {
	if rng.IntN(6) > 0 {
		return
	}
	for range 1 + rng.IntN(5) {
		p.Moves = append(p.Moves, Move{At: p.drawTime(rng), Kind: []string{"pause", "mode"}[rng.IntN(3)/2],
			A: rng.IntN(12), B: rng.IntN(12), C: rng.IntN(3000)})
	}
	p.sort()
}

// drawNotes gives some plans notes.
func (p *Plan) drawNotes(rng *rand.Rand) {
	if p.Notes = rng.IntN(6) == 0; p.Notes {
		p.addNotes(rng)
	}
}

// addNotes adds changes of notes to the moves.
func (p *Plan) addNotes(rng *rand.Rand) {
	for range 2 + rng.IntN(8) {
		p.Moves = append(p.Moves, Move{At: p.drawTime(rng), Kind: "note", A: rng.IntN(12), B: rng.IntN(12),
			C: rng.IntN(3000)})
	}
	p.sort()
}

// drawChanges gives some plans interrupted turns, and a team file that changes.
func (p *Plan) drawChanges(rng *rand.Rand) {
	if rng.IntN(4) > 0 {
		return
	}
	for range 1 + rng.IntN(6) {
		p.Moves = append(p.Moves, Move{At: p.drawTime(rng), Kind: []string{"interrupt", "revise",
			"redo"}[rng.IntN(5)/2],
			A: rng.IntN(12), B: rng.IntN(12), C: rng.IntN(3000)})
	}
	p.sort()
}

// drawClaims gives some plans a repository, and some tasks that are claimed for others.
func (p *Plan) drawClaims(rng *rand.Rand) {
	p.Repo, p.Claims = rng.IntN(3) == 0, rng.IntN(3) == 0
	for p.Claims && len(p.Moves) < 30 && rng.IntN(3) > 0 {
		p.Moves = append(p.Moves, Move{At: p.drawTime(rng), Kind: "claim", A: rng.IntN(12), B: rng.IntN(12),
			C: rng.IntN(3000)})
	}
	p.sort()
}

// drawSlowness gives some plans slow sessions, which get mail while their host is cut off.
func (p *Plan) drawSlowness(rng *rand.Rand) {
	if p.Slow = rng.IntN(4) == 0; !p.Slow {
		return
	}
	for range 1 + rng.IntN(3) {
		at, host, to := p.drawTime(rng), rng.IntN(12), rng.IntN(12)
		p.Moves = append(p.Moves, Move{At: at, Kind: "cut", A: host, B: 1, C: 50 + rng.IntN(400)})
		for range 1 + rng.IntN(3) {
			later := min(at+time.Duration(rng.IntN(400))*time.Millisecond, p.Calm-50*time.Millisecond)
			p.Moves = append(p.Moves, Move{At: later, Kind: "message", A: to, B: rng.IntN(2), C: rng.IntN(3000)})
		}
	}
	p.sort()
}

func (p *Plan) sort() {
	slices.SortStableFunc(p.Moves, func(a, b Move) int { return int(a.At - b.At) })
}

// drawTime draws a time before everything heals.
func (p *Plan) drawTime(rng *rand.Rand) time.Duration {
	return (50*time.Millisecond + time.Duration(rng.Int64N(int64(p.Calm-100*time.Millisecond)))).Round(time.Millisecond)
}

func drawKind(rng *rand.Rand, kinds []moveKind, led bool) string {
	weight := func(k moveKind) int {
		if k.ofLed && !led {
			return 0
		}
		return k.weight
	}
	sum := 0
	for _, k := range kinds {
		sum += weight(k)
	}
	n := rng.IntN(sum)
	for _, k := range kinds {
		if n -= weight(k); n < 0 {
			return k.name
		}
	}
	panic("not reached")
}

// String formats the plan for a person.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d hosts, led by %s", p.Seed, p.Hosts, p.Lead)
	if p.Led {
		fmt.Fprintf(&b, " in a session of its own %+v", p.Timing)
	}
	for _, m := range p.Members {
		fmt.Fprintf(&b, ", %s (%s", m.Name, m.Agent)
		if m.Role != "" {
			b.WriteString(", " + m.Role)
		}
		if m.Plans {
			b.WriteString(", plans first")
		}
		b.WriteString(")")
	}
	if p.Repo {
		b.WriteString(", in a repository")
	}
	fmt.Fprintf(&b, "; permissions are settled by %q, %d of 1,000 commands are doubled or late\n", p.Policy, p.Noise)
	for _, m := range p.Moves {
		fmt.Fprintf(&b, "%9.4fs  %s %d %d %d\n", m.At.Seconds(), m.Kind, m.A, m.B, m.C)
	}
	fmt.Fprintf(&b, "%9.4fs  everything heals\n", p.Calm.Seconds())
	return b.String()
}
