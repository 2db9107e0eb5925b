package simtest

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// errKilled is what the code of a process hears once the process was killed: nothing that it does
// has an effect any more.
var errKilled = errors.New("the process was killed")

// gate is where real code, which has goroutines of its own, meets the world. The world and that code
// take turns: while the world does something everybody else waits, and the world goes on when they
// all wait again. What the code asks for is a thread of its process, so it takes a time that the
// seed decides, and the process can be killed in the middle of it.
type gate struct {
	mu    sync.Mutex // held by the world while it has its turn, and for a moment by whoever asks
	jobs  []*job
	news  chan struct{}
	out   []exit        // what sets others going, at the end of the world's turn
	over  chan struct{} // closed when the history is over
	lent  errands
	began time.Time
	timer *time.Timer
}

// job is one thing that real code asks for.
type job struct {
	of   *process
	name string
	do   func(t *thread)
	done chan struct{} // closed when it is done, or never will be
	ok   bool

	key    func() string // tells it from others of that name; nil where it makes no difference who comes first
	sorted string        // that key, where there are others
}

// exit lets go of whoever waits for a job, or does something else that sets real code going.
type exit struct {
	of *job
	do func() // where of is nil
}

func (e exit) run() {
	if e.of == nil {
		e.do()
		return
	}
	select {
	case <-e.of.done:
	default:
		close(e.of.done)
	}
}

func newGate() *gate {
	g := &gate{news: make(chan struct{}, 1), over: make(chan struct{}), began: time.Now(), timer: time.NewTimer(0)}
	<-g.timer.C
	return g
}

// mostIdle is how often the code of a process that was killed may ask for something. It has to end
// by itself; code that tries again and again would do so without any time passing.
const mostIdle = 300

// ask has something done in a thread of the process, and waits for it. It is called by goroutines of
// the process.
func (p *process) ask(name string, do func(t *thread)) error { return p.askFor(name, nil, do) }

// askFor is ask for one of several things that the process may ask for under one name at one moment.
func (p *process) askFor(name string, key func() string, do func(t *thread)) error {
	g := p.w.gate
	j := &job{of: p, name: name, key: key, do: do, done: make(chan struct{})}
	g.mu.Lock()
	if !p.alive {
		p.idle++
		stuck := p.idle > mostIdle
		g.mu.Unlock()
		if stuck {
			<-g.over
		}
		return errKilled
	}
	g.jobs = append(g.jobs, j)
	g.mu.Unlock()
	select {
	case g.news <- struct{}{}:
	default:
	}
	<-j.done
	if !j.ok {
		return errKilled
	}
	return nil
}

// quickly does something to somebody that takes no time, if the process may do anything now, else in
// a thread.
func (p *process) quickly(what, to string, do func()) error {
	g := p.w.gate
	g.mu.Lock()
	if p.alive && p.stalled <= p.w.now {
		p.w.catchUp()
		do()
		g.mu.Unlock()
		return nil
	}
	g.mu.Unlock()
	return p.ask(what+to, func(*thread) { do() })
}

// later does something at the end of the world's turn, when whoever it wakes may run.
func (w *world) later(do func()) {
	w.gate.out = append(w.gate.out, exit{do: do})
}

// start has a goroutine of real code do something, when the world's turn is over.
func (w *world) start(do func()) {
	w.later(func() { w.gate.lent.run(do, w.gate.over) })
}

// finish lets go of whoever waits for the job.
func (w *world) finish(j *job) {
	w.gate.out = append(w.gate.out, exit{of: j})
}

// yield ends the world's turn: everybody else runs until all of them wait. What they ask for is
// started then.
func (w *world) yield() {
	g := w.gate
	for len(g.out) > 0 || len(g.jobs) > 0 {
		g.begin(w)
		out := g.out
		g.out = nil
		g.mu.Unlock()
		for _, e := range out {
			e.run()
		}
		synctest.Wait()
		g.mu.Lock()
	}
}

// begin starts what was asked for. Who came first at one moment nobody can tell, so the order is
// that of names, and then of what is asked for. Between those that are alike in both nothing decides,
// and each of them takes the same time.
func (g *gate) begin(w *world) {
	jobs := g.jobs
	g.jobs = nil
	slices.SortStableFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.of.name, b.of.name), cmp.Compare(a.name, b.name))
	})
	for len(jobs) > 0 {
		alike := 1
		for alike < len(jobs) && jobs[alike].of == jobs[0].of && jobs[alike].name == jobs[0].name {
			alike++
		}
		if alike > 1 {
			sortByKey(jobs[:alike])
		}
		name := ""
		for i, j := range jobs[:alike] {
			if !j.of.alive {
				w.finish(j)
				continue
			}
			if i == 0 || jobs[i-1].sorted != j.sorted {
				name = w.numbered(j.of.name + "/" + j.name)
			}
			j.of.jobs = append(j.of.jobs, j)
			j.of.spawnAs(name, j.carryOut)
		}
		jobs = jobs[alike:]
	}
}

// carryOut does what was asked for, in a thread of the process.
func (j *job) carryOut(t *thread) {
	defer func() {
		j.of.jobs = slices.DeleteFunc(j.of.jobs, func(other *job) bool { return other == j })
		j.of.w.finish(j)
	}()
	j.do(t)
	j.ok = true
}

// sortByKey sorts jobs of one process and name by their keys.
func sortByKey(jobs []*job) {
	if jobs[0].key == nil {
		return
	}
	for _, j := range jobs {
		j.sorted = j.key()
	}
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.sorted, b.sorted) })
}

// grain is how exact the time of real code is: that of the world goes on without it for less.
const grain = time.Millisecond

// catchUp has the world's time be no earlier than that of real code.
func (w *world) catchUp() { w.now = max(w.now, time.Since(w.gate.began)) }

// soon reports whether the clock of real code may stay where it is until then.
func (w *world) soon(at time.Duration) bool { return at-time.Since(w.gate.began) < grain }

// until lets time pass until then, or until somebody asks for something.
func (w *world) until(at time.Duration) {
	g := w.gate
	if w.soon(at) {
		w.now = at
		return
	}
	g.timer.Reset(at - time.Since(g.began))
	g.mu.Unlock()
	select {
	case <-g.timer.C:
	case <-g.news:
	}
	synctest.Wait()
	g.mu.Lock()
	w.catchUp()
	select {
	case <-g.news:
	default:
	}
}

// next is when something happens next, but not after until.
func (w *world) next(until time.Duration) time.Duration {
	if len(w.agenda) > 0 {
		return min(w.agenda[0].at, until)
	}
	return until
}

// letGo ends the real code of a process that was killed: from now on it does nothing that anybody
// sees.
func (w *world) letGo(p *process) {
	for _, j := range p.jobs {
		w.finish(j)
	}
	w.later(func() {
		close(p.dead)
		if p.stop != nil {
			p.stop()
		}
	})
	for _, s := range p.services {
		s.end(errKilled)
	}
}

// leave ends the world's turns: whoever is left hears that it is over.
func (w *world) leave() {
	g := w.gate
	w.yield()
	close(g.over)
	g.mu.Unlock()
	time.Sleep(farewell)
}

// farewell is by when all real code has ended whose process was killed: it waits for nothing longer.
// Time does not pass any more once the world itself has ended.
const farewell = time.Hour
