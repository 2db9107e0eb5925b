package model

import "cadre/internal/observe/protocol"

// messageCounts counts messages. A message is seen twice if the lines of both its sender and its
// recipient are read. The number of equal messages is the number sent, or the number received
// according to one source, whichever is larger.
type messageCounts struct {
	Tallies map[uint64]*tally `json:"tallies"`
	Order   []uint64          `json:"order"`
}

type tally struct {
	Sent int            `json:"sent,omitempty"`
	Got  map[string]int `json:"got,omitempty"` // by source
}

// maxTallies limits the number of remembered messages.
const maxTallies = 1 << 14

func newMessageCounts() *messageCounts { return &messageCounts{Tallies: map[uint64]*tally{}} }

func (b *messageCounts) at(h uint64) *tally {
	t := b.Tallies[h]
	if t == nil {
		t = &tally{}
		b.Tallies[h] = t
		b.Order = remember(b.Tallies, b.Order, h, maxTallies)
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

// sent counts a sent message and reports whether it is new.
func (b *messageCounts) sent(from, to, body string) bool {
	t := b.at(protocol.Mark(from, to, body))
	before := t.most()
	t.Sent++
	return t.most() > before
}

// received counts a message that a source shows in the recipient's context, and reports whether it
// is new.
func (b *messageCounts) received(source, from, to, body string) bool {
	t := b.at(protocol.Mark(from, to, body))
	before := t.most()
	if t.Got == nil {
		t.Got = map[string]int{}
	}
	t.Got[source]++
	return t.most() > before
}
