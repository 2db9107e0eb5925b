package coord

import (
	"slices"
	"sync"

	"cadre/internal/team"
)

// byTool is what carries messages that were put at the end of a tool's result.
const byTool = "tool"

// post knows which messages are on their way into a session's context: handed over, and not yet known to be there. It keeps one from being
// given twice, by a prompt and by the result of a tool. It goes with its session: what did not arrive is given to the next one.
type post struct {
	mu  sync.Mutex
	way map[int64]string // by seq: the id of the prompt that carries it, or byTool
}

// take returns the messages that are not on their way yet. They are from now on.
func (p *post) take(mail []team.Message, carrier string) []team.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.way == nil {
		p.way = map[int64]string{}
	}
	var taken []team.Message
	for _, m := range mail {
		if p.way[m.Seq] == "" {
			p.way[m.Seq] = carrier
			taken = append(taken, m)
		}
	}
	return taken
}

// arrived returns what that carrier had, in order; with only, no more than these.
func (p *post) arrived(carrier string, only ...int64) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var seqs []int64
	for seq, by := range p.way {
		if by == carrier && (only == nil || slices.Contains(only, seq)) {
			seqs = append(seqs, seq)
			delete(p.way, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}
