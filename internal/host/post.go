package host

import (
	"cmp"
	"slices"
	"sync"

	"cadre/internal/team"
)

// What carries a message besides a prompt, which has its id. No prompt has an id like one of these.
const (
	byTool = "tool" // the end of a tool's result
	here   = "here" // it has arrived
)

// post knows which messages are on their way into a session's context, and which are in it: handed
// over, and then known to be there. It keeps one from being given twice, by a prompt and by the
// result of a tool, and while it is being recorded that it arrived. It goes with its session: what
// did not arrive is given to the next one.
type post struct {
	mu      sync.Mutex
	way     map[int64]parcel // by seq
	waiting map[string]bool  // prompts that were handed over and are not in the context yet, so far as we have heard
}

type parcel struct {
	carrier string       // the id of the prompt, byTool or here
	message team.Message // none of one that is here
	// unclear says that the tool may be one of this turn or of the next one: a prompt waited, which
	// may have begun that.
	unclear bool
}

// handed takes note that the session is given a prompt. It waits until arrived or back says what
// became of it.
func (p *post) handed(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[string]bool{}
	}
	p.waiting[id] = true
}

// awaits reports whether a prompt is on its way.
func (p *post) awaits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}

// settle takes what the results of tools carry for that of the turn that ended, as far as that is
// clear now; with all, also what is not.
func (p *post) settle(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 && !all {
		return
	}
	for seq, on := range p.way {
		on.unclear = false
		p.way[seq] = on
	}
}

// take returns the messages that are neither there nor on their way yet. They are from now on.
func (p *post) take(mail []team.Message, carrier string) []team.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.way == nil {
		p.way = map[int64]parcel{}
	}
	var taken []team.Message
	for _, m := range mail {
		if _, known := p.way[m.Seq]; !known {
			p.way[m.Seq] = parcel{carrier, m, carrier == byTool && len(p.waiting) > 0}
			taken = append(taken, m)
		}
	}
	return taken
}

// arrived returns what that carrier had, in order; with only, no more than these, and without it,
// nothing of which it is unclear. It is in the context for good.
func (p *post) arrived(carrier string, only ...int64) (mail []team.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, carrier)
	for seq, on := range p.way {
		if on.carrier == carrier && (only == nil && !on.unclear || slices.Contains(only, seq)) {
			mail = append(mail, on.message)
			p.way[seq] = parcel{carrier: here}
		}
	}
	slices.SortFunc(mail, func(a, b team.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return mail
}

// back takes back what that carrier had: it did not leave, or will not arrive. It reports whether
// there was anything.
func (p *post) back(carrier string) (some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, carrier)
	for seq, on := range p.way {
		if on.carrier == carrier && !on.unclear {
			delete(p.way, seq)
			some = true
		}
	}
	return some
}
