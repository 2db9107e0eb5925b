package host

import (
	"cmp"
	"slices"
	"sync"

	"cadre/internal/team"
)

// Carriers of messages besides a prompt, which is named by its id. No prompt has one of these ids.
const (
	byTool = "tool" // the end of a tool's result
	here   = "here" // it has arrived
)

// post tracks messages on their way into a session's context: first sent, then arrived. It prevents
// a second delivery, for example by a prompt and by the result of a tool, or while an arrival is
// being recorded. It ends with its session; the next session gets what did not arrive.
type post struct {
	mu      sync.Mutex
	way     map[int64]parcel // by seq
	waiting map[string]bool  // prompts that were handed over and, as far as we know, are not in the context yet
}

type parcel struct {
	carrier string       // the id of the prompt, byTool or here
	message team.Message // the zero value once it has arrived
	// the tool may belong to this turn or to the next one: a waiting prompt may have started that
	unclear bool
}

// handed records that the session was given a prompt. The prompt waits until arrived or back ends
// it.
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

// settle decides that mail which the results of tools carry belongs to the turn that ended, where
// that is clear. With all set it decides so for unclear mail too.
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

// take returns the messages that have not arrived and are not on their way. From now on they are on
// their way.
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

// arrived marks mail of that carrier as arrived for good and returns it, in order. With only, it
// takes no other messages than these; without only, it skips unclear ones.
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

// back forgets the mail of that carrier, which was not sent or will not arrive. It reports whether
// there was any.
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
