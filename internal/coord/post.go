package coord

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

// post knows which messages are on their way into a session's context, and which are in it: handed over, and then known to be there. It keeps one
// from being given twice, by a prompt and by the result of a tool, and while it is being recorded that it arrived. It goes with its session: what
// did not arrive is given to the next one.
type post struct {
	mu  sync.Mutex
	way map[int64]parcel // by seq
}

type parcel struct {
	carrier string       // the id of the prompt, byTool or here
	message team.Message // none of one that is here
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
			p.way[m.Seq] = parcel{carrier, m}
			taken = append(taken, m)
		}
	}
	return taken
}

// arrived returns what that carrier had, in order; with only, no more than these. It is in the context for good.
func (p *post) arrived(carrier string, only ...int64) (mail []team.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for seq, on := range p.way {
		if on.carrier == carrier && (only == nil || slices.Contains(only, seq)) {
			mail = append(mail, on.message)
			p.way[seq] = parcel{carrier: here}
		}
	}
	slices.SortFunc(mail, func(a, b team.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return mail
}

// back takes back what that carrier had: it did not leave, or will not arrive. It reports whether there was anything.
func (p *post) back(carrier string) (some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for seq, on := range p.way {
		if on.carrier == carrier {
			delete(p.way, seq)
			some = true
		}
	}
	return some
}
