package simtest

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"cadre/internal/team"
)

// epoch is the start of every history, by clocks that are right.
const epoch team.Time = 1_800_000_000_000

// never is later than any time.
const never = time.Duration(1 << 62)

// world is one history while it is played.
type world struct {
	plan   Plan
	mutant *Mutant
	judge  *judge
	disk   *disk
	pool   *coroutinePool
	tell   func(string) // called for each thing that happens; nil for no call

	refused       time.Duration // until when the provider of the models refuses requests
	now           time.Duration // since the beginning, by no clock of the world
	limit         time.Duration // until when it is played
	agenda        agenda
	entries       int
	running       *thread
	deadProcesses []*process
	names         map[string]int // how often a name was given

	machines  []*machine
	processes []*process    // in the order of their start; dead ones are removed now and then
	hosts     []*host       // by place; the host of a place that is down is dead
	booted    time.Duration // when a host was started last
	cli       *person
	lead      *person // nil if an agent leads
	calm      bool    // the faults are over
	gate      *gate   // where real code meets the world
	chat      int     // how many messages and tasks agents may still invent; without a limit a history would not end
	armed     []armed // faults that wait for a step

	transcripts map[string]*transcript

	leads       []*leading           // processes that lead, or want to; dead ones are removed now and then
	sessionsLed int                  // how many sessions have led
	beats       map[string]sign      // heartbeats, by member
	saved       map[string]savedWork // files, by member
	edited      map[string]int       // changes that members made
	checked     map[string]int       // how often the check of a task ran
}

// armed is a fault that strikes when some process has made a number of steps.
type armed struct {
	of    func() *process // nil while there is none; a nil process stands for the writers of the journal
	steps int
	do    func()
}

// machine runs processes. They share its clock, and a transcript exists on one machine only.
type machine struct {
	name  string
	skew  time.Duration
	drift int64    // parts per thousand by which its clock is fast
	led   *process // the process that holds its leader lock
}

// process is the unit that can be killed: all its threads stop for good, between two steps.
type process struct {
	w       *world
	name    string
	on      *machine
	threads []*thread
	alive   bool
	stalled time.Duration // it does nothing until then
	cut     time.Duration // it does not reach the journal until then
	mute    time.Duration // no process sees its heartbeats until then
	blind   time.Duration // it sees no new heartbeats until then, except these
	eyes    map[string]sign

	jobs []*job        // jobs that its real code waits for
	dead chan struct{} // closed when it was killed
	stop func()        // ends its real code; nil for none
	idle int           // how often that code has asked for something since the kill
	asks *string       // receives what its real code would decide, and does nothing else; nil for nothing

	services []*service // sessions that its real code follows
}

// thread runs until it waits for something. Only one thread runs at a time.
type thread struct {
	of        *process
	name      string
	rng       rand.Rand
	source    rand.PCG // the source of rng
	coroutine *coroutine
	ticket    int // of its entry in the agenda; older entries are void
	started   bool
	over      bool
}

// killed unwinds a thread that stops for good.
type killed struct{}

func (w *world) logf(format string, args ...any) {
	if w.tell != nil {
		w.tell(fmt.Sprintf("%9.4fs  ", w.now.Seconds()) + fmt.Sprintf(format, args...))
	}
}

// process starts a process.
func (w *world) process(name string, on *machine) *process {
	p := &process{w: w, name: w.numbered(name), on: on, alive: true, dead: make(chan struct{})}
	w.processes = append(w.processes, p)
	return p
}

func (w *world) numbered(name string) string {
	w.names[name]++
	if n := w.names[name]; n > 1 {
		return name + "." + strconv.Itoa(n)
	}
	return name
}

// rng returns the random source of that name. It depends on nothing else, so adding or removing a
// move leaves the rest as it is.
func (w *world) rng(name string) *rand.Rand {
	return rand.New(rand.NewPCG(w.plan.Seed, sum(name)))
}

// sum is the FNV-1a hash of a name, as in hash/fnv. Each thread needs one.
func sum(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// spawn starts a thread of the process.
func (p *process) spawn(name string, do func(t *thread)) *thread {
	return p.spawnAs(p.w.numbered(p.name+"/"+name), do)
}

// spawnAs is spawn with the complete name, on which its luck depends.
func (p *process) spawnAs(name string, do func(t *thread)) *thread {
	w := p.w
	t := &thread{of: p, name: name}
	t.source.Seed(w.plan.Seed, sum(name))
	t.rng = *rand.New(&t.source)
	t.coroutine = w.pool.get(func() {
		defer func() {
			t.over = true
			if r := recover(); r != nil && r != (killed{}) {
				panic(fmt.Sprintf("%v\n%s", r, debug.Stack())) // the coroutine's own stack is lost otherwise
			}
		}()
		do(t)
	})
	p.threads = append(p.threads, t)
	w.schedule(t, w.now+time.Duration(t.rng.IntN(200))*time.Microsecond)
	return t
}

// kill ends the process now. If the process is running, it ends when it next waits.
func (p *process) kill() {
	if p.alive {
		p.alive = false
		p.w.deadProcesses = append(p.w.deadProcesses, p)
	}
}

// end stops one thread for good. It must not be the running one.
func (t *thread) end() {
	if !t.over {
		t.over = true
		if t.started {
			t.resume() // the thread finds that it is over
		} else {
			t.of.w.pool.put(t.coroutine)
		}
		t.of.w.disk.letGo(t)
	}
}

// resume lets the thread run until it next waits. It reports whether the thread continues.
func (t *thread) resume() (more bool) {
	t.started = true
	if done := t.coroutine.resume(); done {
		t.of.w.pool.put(t.coroutine)
		return false
	}
	return true
}

// endKilled ends the threads of the killed processes.
func (w *world) endKilled() {
	for len(w.deadProcesses) > 0 {
		p := w.deadProcesses[0]
		w.deadProcesses = w.deadProcesses[1:]
		for _, t := range p.threads {
			t.end()
		}
		w.letGo(p)
		w.processes = slices.DeleteFunc(w.processes, func(q *process) bool { return q == p })
	}
}

// pause yields to the others until the thread is woken.
func (t *thread) pause() {
	if t.over {
		panic(killed{})
	}
	if t.of.w.continues(t) {
		return
	}
	t.coroutine.pause()
	if t.over {
		panic(killed{})
	}
}

// continues reports whether the pausing thread is the next to run. If so, it does what [world.run]
// would do until then. The two switches that this saves cost more than most threads do between two
// pauses.
func (w *world) continues(t *thread) bool {
	g := w.gate
	if len(g.out) > 0 || len(g.jobs) > 0 || len(w.deadProcesses) > 0 || w.judge.broken != nil || len(w.agenda) == 0 {
		return false
	}
	e := w.agenda[0]
	if e.t != t || e.ticket != t.ticket || e.at > w.limit || t.of.stalled > e.at || !w.soon(e.at) {
		return false
	}
	w.agenda.pop()
	w.now = max(w.now, e.at)
	return true
}

// step marks a moment in which the process may be killed and other threads may run.
func (t *thread) step() {
	w := t.of.w
	d := time.Duration(20+t.rng.IntN(400)) * time.Microsecond
	if t.rng.IntN(64) == 0 {
		d += time.Duration(t.rng.IntN(20)) * time.Millisecond
	}
	w.schedule(t, w.now+d)
	w.strike(t.of)
	t.pause()
}

// sleep waits for that long.
func (t *thread) sleep(d time.Duration) {
	t.of.w.schedule(t, t.of.w.now+d)
	t.pause()
}

// await waits until one of the bells rings, or until then.
func (t *thread) await(until time.Duration, bells ...*bell) {
	t.ticket++
	if until < never {
		t.of.w.schedule(t, max(until, t.of.w.now))
	}
	for _, b := range bells {
		b.waiting = append(b.waiting, waiter{t, t.ticket})
	}
	t.pause()
}

// bell wakes the threads that wait for it. A ring without waiters is lost, so a thread checks its
// condition before it waits.
type bell struct{ waiting []waiter }

type waiter struct {
	t      *thread
	ticket int
}

func (b *bell) ring() {
	woken := b.waiting
	b.waiting = nil
	for _, x := range woken {
		if x.t.ticket == x.ticket && !x.t.over {
			w := x.t.of.w
			w.schedule(x.t, w.now+time.Duration(10+x.t.rng.IntN(300))*time.Microsecond)
		}
	}
}

// agenda is a heap of what to run, ordered by time.
type agenda []entry

type entry struct {
	at     time.Duration
	n      int
	t      *thread // nil for do
	ticket int
	do     func()
}

func (a agenda) before(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].n < a[j].n
}

func (a *agenda) push(e entry) {
	*a = append(*a, e)
	h := *a
	for i := len(h) - 1; i > 0 && h.before(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (a *agenda) pop() entry {
	h := *a
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = entry{}
	*a = h[:last]
	h = *a
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h.before(c, least) {
				least = c
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (w *world) schedule(t *thread, at time.Duration) {
	t.ticket++
	w.entries++
	w.agenda.push(entry{at: at, n: w.entries, t: t, ticket: t.ticket})
}

// at runs do at that time, outside any process.
func (w *world) at(at time.Duration, do func()) {
	w.entries++
	w.agenda.push(entry{at: at, n: w.entries, do: do})
}

// run plays until then, or until a promise is broken.
func (w *world) run(until time.Duration) {
	w.limit = until
	for w.judge.broken == nil {
		w.yield()
		if next := w.next(until); next > w.now {
			w.until(next)
			continue
		}
		if len(w.agenda) == 0 || w.agenda[0].at > until {
			return
		}
		e := w.agenda.pop()
		switch {
		case e.t == nil:
			w.now = max(w.now, e.at)
			e.do()
		case e.t.ticket != e.ticket || e.t.over || !e.t.of.alive:
			continue
		case e.t.of.stalled > e.at:
			w.schedule(e.t, e.t.of.stalled)
			continue
		default:
			w.now = max(w.now, e.at)
			w.running = e.t
			more := e.t.resume()
			w.running = nil
			if !more {
				e.t.over = true
				e.t.of.threads = slices.DeleteFunc(e.t.of.threads, func(t *thread) bool { return t == e.t })
			}
		}
		w.endKilled()
	}
}

// close ends everything that is left.
func (w *world) close() {
	for _, p := range slices.Clone(w.processes) {
		p.kill()
	}
	w.endKilled()
	w.leave()
	w.pool.close()
}

// strike triggers the faults that waited for a step of the process.
func (w *world) strike(p *process) {
	for i := 0; i < len(w.armed); i++ {
		a := &w.armed[i]
		if a.of() != p || w.calm {
			continue
		}
		if a.steps--; a.steps <= 0 {
			do := a.do
			w.armed = slices.Delete(w.armed, i, i+1)
			i--
			do()
		}
	}
}

// clock returns the time by the clock of the process.
func (p *process) clock() team.Time {
	return epoch + team.Time((p.w.now+p.on.offset(p.w.now))/time.Millisecond)
}

// offset returns by how much the clock is fast.
func (m *machine) offset(now time.Duration) time.Duration {
	return m.skew + now/1000*time.Duration(m.drift)
}
