package simtest

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// errKilled is the error that every seam returns to the code of a killed process. Nothing that the
// process does has an effect any more.
var errKilled = errors.New("the process was killed")

// gate is where real code, which has goroutines of its own, meets the world. The world and that
// code take turns: while the world runs all of that code waits, and the world resumes when all of
// it waits again. A request of the code is a thread of its process. It takes a time that the seed
// decides, and the process can be killed in the middle of it.
type gate struct {
	mu    sync.Mutex // held by the world during its turn, and briefly by a caller that asks
	jobs  []*job
	news  chan struct{}
	out   []exit        // what wakes others at the end of the world's turn
	over  chan struct{} // closed when the history is over
	lent  goroutinePool
	began time.Time
	timer *time.Timer
}

// job is one request of real code.
type job struct {
	of   *process
	name string
	do   func(t *thread)
	done chan struct{} // closed when the job is done, or will never be done
	ok   bool

	key    func() string // distinguishes jobs of the same name; nil if their order does not matter
	sorted string        // that key, if there are several such jobs
}

// exit wakes a caller that waits for a job, or runs another function that wakes real code.
type exit struct {
	of *job
	do func() // if of is nil
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

// mostIdle limits how often the code of a killed process may ask for something. The code has to end
// by itself. Code that keeps retrying would loop without any time passing.
const mostIdle = 300

// ask runs do in a thread of the process, and waits for it. Goroutines of the process call it.
func (p *process) ask(name string, do func(t *thread)) error { return p.askFor(name, nil, do) }

// askFor is ask with a key that orders several requests of the same name at the same moment.
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

// quickly runs do at once, for an action that takes no time. If the process is stalled, do runs in
// a thread instead.
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

// later runs do at the end of the world's turn, when whatever it wakes may run.
func (w *world) later(do func()) {
	w.gate.out = append(w.gate.out, exit{do: do})
}

// start runs do in a goroutine of real code when the world's turn is over.
func (w *world) start(do func()) {
	w.later(func() { w.gate.lent.run(do, w.gate.over) })
}

// finish wakes the caller that waits for the job.
func (w *world) finish(j *job) {
	w.gate.out = append(w.gate.out, exit{of: j})
}

// yield ends the world's turn: the goroutines of real code run until all of them wait. Then it
// starts the jobs that they asked for.
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

// begin starts the requested jobs. The arrival order within one moment is unknown, so begin sorts
// them by name and then by key. Jobs that are equal in both take the same time.
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

// carryOut runs the job in a thread of the process.
func (j *job) carryOut(t *thread) {
	defer func() {
		j.of.jobs = slices.DeleteFunc(j.of.jobs, func(other *job) bool { return other == j })
		j.of.w.finish(j)
	}()
	j.do(t)
	j.ok = true
}

// sortByKey sorts jobs of one process and one name by their keys.
func sortByKey(jobs []*job) {
	if jobs[0].key == nil {
		return
	}
	for _, j := range jobs {
		j.sorted = j.key()
	}
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.sorted, b.sorted) })
}

// grain is the resolution of the clock of real code. The world's clock runs ahead of it by less.
const grain = time.Millisecond

// catchUp advances the world's time to the time of real code.
func (w *world) catchUp() { w.now = max(w.now, time.Since(w.gate.began)) }

// soon reports whether the clock of real code may stay where it is until then.
func (w *world) soon(at time.Duration) bool { return at-time.Since(w.gate.began) < grain }

// until lets time pass until then, or until a request arrives.
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

// next returns when the next thing happens, at most until.
func (w *world) next(until time.Duration) time.Duration {
	if len(w.agenda) > 0 {
		return min(w.agenda[0].at, until)
	}
	return until
}

// letGo ends the real code of a killed process. From now on nothing that it does is visible.
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

// leave ends the world's turns. It tells the remaining goroutines that the history is over.
func (w *world) leave() {
	g := w.gate
	w.yield()
	close(g.over)
	g.mu.Unlock()
	time.Sleep(farewell)
}

// farewell is the time within which all real code of killed processes has ended: nothing waits
// longer. Once the world itself has ended, time does not pass any more.
const farewell = time.Hour
