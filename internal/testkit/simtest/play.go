package simtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/team"
)

// Failure is a history that broke a promise, shortened.
type Failure struct {
	Broken
	Seed   uint64
	Moves  int      // the number of moves of the plan as it was drawn
	Plan   Plan     // the plan after shortening
	Story  []string // what happened, line by line
	Mutant string
}

// Error formats the history for a person.
func (f *Failure) Error() string {
	var b strings.Builder
	if f.Mutant != "" {
		fmt.Fprintf(&b, "With the bug %s: ", f.Mutant)
	}
	fmt.Fprintf(&b, "%s\n  %s\n\nThe plan, shortened from %d moves to %d:\n%s\nWhat happened:\n", f.Promise, f.What,
		f.Moves, len(f.Plan.Moves), f.Plan)
	for _, line := range f.Story {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "\nPlay it again: go test ./internal/testkit/simtest -run TestHistories -seed %d\n", f.Seed)
	return b.String()
}

// Limits of a history in its own time.
const (
	longestRest = 40 * time.Minute // the longest wait before a retry is 8.5 minutes
	mostSteps   = 150_000          // a history with more steps loops
	mostEffort  = 5_000_000        // steps to shorten a history
)

// Play plays the history of a seed, with the bug of mutant in it if mutant is not nil. It returns
// nil if every promise held.
func Play(t *testing.T, seed uint64, mutant *Mutant) *Failure {
	plan := draw(seed)
	if b := play(t, plan, mutant, nil, nil); b != nil {
		return shorten(t, plan, mutant, b)
	}
	return nil
}

// play plays a plan in a bubble of simulated time. It returns the first broken promise. It calls
// tell for each thing that happens, and adds the number of steps to steps; both may be nil.
func play(t *testing.T, plan Plan, mutant *Mutant, tell func(string), steps *int) (b *Broken) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(plan, mutant, tell)
		defer w.close()
		b = w.play()
		if steps != nil {
			*steps += w.entries
		}
	})
	return b
}

func newWorld(plan Plan, mutant *Mutant, tell func(string)) *world {
	w := &world{gate: newGate(), plan: plan, mutant: mutant, pool: &coroutinePool{}, tell: tell, chat: 6,
		hosts: make([]*host, plan.Hosts), machines: []*machine{{name: "m1"}, {name: "m2"}}, names: map[string]int{},
		transcripts: map[string]*transcript{}, beats: map[string]sign{}, saved: map[string]savedWork{},
		edited: map[string]int{}, checked: map[string]int{}}
	w.judge = newJudge(w)
	w.disk = &disk{w: w}
	return w
}

// play carries out the moves of the plan, heals the faults, and waits until the team is at rest.
func (w *world) play() *Broken {
	plan := w.plan
	w.gate.mu.Lock()
	w.hireUser()
	w.cli.found(plan)
	if plan.Led {
		w.resume(w.machines[0], false, false)
	}
	for i := range w.hosts {
		w.boot(i)
	}
	for _, m := range plan.Moves {
		w.at(m.At, func() {
			w.logf("move %s %d %d %d", m.Kind, m.A, m.B, m.C)
			kindOf(m.Kind).do(w, m)
		})
	}
	w.at(plan.Calm, w.heal)
	w.run(plan.Calm + time.Second)
	for w.judge.broken == nil {
		w.judge.punctual()
		why := w.judge.unrest()
		if len(why) == 0 {
			w.judge.atRest()
			break
		}
		if w.now > plan.Calm+longestRest || w.entries > mostSteps {
			w.judge.fail(rest, "%s", strings.Join(why, "; "))
			break
		}
		w.run(w.now + time.Second)
	}
	return w.judge.broken
}

func kindOf(name string) moveKind {
	for _, k := range moves {
		if k.name == name {
			return k
		}
	}
	panic("no kind of move is called " + name)
}

// heal ends all faults and corrects the clocks. A clock that is off by more than the lifetime of a
// request would end every request at once.
func (w *world) heal() {
	w.logf("everything heals")
	w.calm = true
	w.armed = nil
	w.disk.full, w.disk.faulty = 0, 0
	for _, h := range w.hosts {
		h.unlocked = 0
	}
	for _, p := range w.processes {
		p.cut, p.stalled, p.mute, p.blind = 0, 0, 0, 0
	}
	for _, m := range w.machines {
		m.skew, m.drift = 0, 0
	}
	w.hireUser()
	if w.cli.of.alive {
		w.cli.of.spawn("tidy", w.cli.tidy)
	}
	if w.plan.Led {
		w.at(w.now+time.Duration(w.rng("rescue").IntN([]int{6000, 15000}[w.plan.Seed%2]))*time.Millisecond,
			func() { w.rescue(0) })
	}
}

// shorten plays the history again with less and less in it, as long as it breaks the same promise.
func shorten(t *testing.T, plan Plan, mutant *Mutant, b *Broken) *Failure {
	f := &Failure{Broken: *b, Seed: plan.Seed, Moves: len(plan.Moves), Plan: plan}
	if mutant != nil {
		f.Mutant = mutant.Name
	}
	effort := 0
	try := func(shorter Plan) bool {
		if effort > mostEffort {
			return false
		}
		b := play(t, shorter, mutant, nil, &effort)
		if b == nil || b.Promise != f.Promise {
			return false
		}
		f.Plan, f.Broken = shorter, *b
		return true
	}
	for again := true; again; {
		again = false
		for size := max(1, len(f.Plan.Moves)/2); size >= 1; size /= 2 {
			for i := 0; i+size <= len(f.Plan.Moves); {
				shorter := f.Plan
				shorter.Moves = append(append([]Move{}, f.Plan.Moves[:i]...), f.Plan.Moves[i+size:]...)
				if try(shorter) {
					again = true
				} else {
					i += size
				}
			}
		}
		for i := 0; i < len(f.Plan.Members); {
			shorter := f.Plan
			shorter.Members = append(append([]Newcomer{}, f.Plan.Members[:i]...), f.Plan.Members[i+1:]...)
			if try(shorter) {
				again = true
			} else {
				i++
			}
		}
		if fewer := f.Plan; fewer.Hosts > 1 {
			if fewer.Hosts--; try(fewer) {
				again = true
			}
		}
		if quieter := f.Plan; quieter.Noise > 0 {
			if quieter.Noise = 0; try(quieter) {
				again = true
			}
		}
	}
	play(t, f.Plan, mutant, func(line string) { f.Story = append(f.Story, line) }, nil)
	return f
}

// bug reports whether the bug of that name was put in.
func (w *world) bug(name string) bool { return w.mutant != nil && w.mutant.Name == name }

// decide is the decision function of replicas.
func (w *world) decide(s *team.State, c team.Command) (team.Decision, error) {
	w.judge.at[c.ID] = c.At
	if w.mutant != nil && w.mutant.decide != nil {
		return w.mutant.decide(s, c)
	}
	return team.Decide(s, c)
}
