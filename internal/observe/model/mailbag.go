package model

import "cadre/internal/observe/protocol"

// mailbag counts messages, which are seen twice where both their sender's and their recipient's
// lines are read: there are as many messages of one kind as were sent, or as one source shows
// received, whichever is more.
type mailbag struct {
	Tallies map[uint64]*tally `json:"tallies"`
	Order   []uint64          `json:"order"`
}

type tally struct {
	Sent int            `json:"sent,omitempty"`
	Got  map[string]int `json:"got,omitempty"` // by source
}

// maxTallies bounds the messages whose other side is waited for.
const maxTallies = 1 << 14

func newMailbag() *mailbag { return &mailbag{Tallies: map[uint64]*tally{}} }

func (b *mailbag) at(h uint64) *tally {
	t := b.Tallies[h]
	if t == nil {
		t = &tally{}
		b.Tallies[h] = t
		if b.Order = append(b.Order, h); len(b.Order) > maxTallies {
			delete(b.Tallies, b.Order[0])
			b.Order = b.Order[1:]
		}
	}
	return t
}

func (t *tally) most() int {
	n := t.Sent
	for _, got := range t.Got {
		n = max(n, got)
	}
	return n
}

// sent counts one that was sent, and reports whether it is a new one.
func (b *mailbag) sent(from, to, body string) bool {
	t := b.at(protocol.Mark(from, to, body))
	before := t.most()
	t.Sent++
	return t.most() > before
}

// received counts one that a source shows in the recipient's context, and reports whether it is a
// new one.
func (b *mailbag) received(source, from, to, body string) bool {
	t := b.at(protocol.Mark(from, to, body))
	before := t.most()
	if t.Got == nil {
		t.Got = map[string]int{}
	}
	t.Got[source]++
	return t.most() > before
}
