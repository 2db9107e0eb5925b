package coord

import (
	"cmp"
	"slices"
	"sync"

	"cadre/internal/team"
)

// byTool is what carries messages that were put at the end of a tool's result.
const byTool = "tool"

// post knows which messages are on their way into a session's context: handed over, and not yet recorded to be there. It keeps one from being
// given twice, by a prompt and by the result of a tool, or by a prompt while the receipt of another is being recorded. It goes with its session: what did not
// arrive is given to the next one.
type post struct {
	mu  sync.Mutex
	way map[int64]parcel // by seq
}

type parcel struct {
	carrier string // the id of the prompt, or byTool
	message team.Message
}

// take returns the messages of the inbox that are not on their way yet. They are from now on. The inbox is looked at under the lock: what goes off the way
// has left it before.
func (p *post) take(inbox func() []team.Message, carrier string) []team.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.way == nil {
		p.way = map[int64]parcel{}
	}
	var taken []team.Message
	for _, m := range inbox() {
		if _, underway := p.way[m.Seq]; !underway {
			p.way[m.Seq] = parcel{carrier, m}
			taken = append(taken, m)
		}
	}
	return taken
}

// carried returns what that carrier has, in order; with only, no more than these.
func (p *post) carried(carrier string, only ...int64) (mail []team.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for seq, on := range p.way {
		if on.carrier == carrier && (only == nil || slices.Contains(only, seq)) {
			mail = append(mail, on.message)
		}
	}
	slices.SortFunc(mail, func(a, b team.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return mail
}

// off takes messages off the way: it is recorded that they have arrived, or they are to be given once more.
func (p *post) off(mail []team.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range mail {
		delete(p.way, m.Seq)
	}
}
