package observe

import "strings"

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

// Mark is what messages of one kind have in common.
func Mark(from, to, body string) uint64 { return hash(from + "\x00" + to + "\x00" + body) }

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
	t := b.at(Mark(from, to, body))
	before := t.most()
	t.Sent++
	return t.most() > before
}

// received counts one that a source shows in the recipient's context, and reports whether it is a
// new one.
func (b *mailbag) received(source, from, to, body string) bool {
	t := b.at(Mark(from, to, body))
	before := t.most()
	if t.Got == nil {
		t.Got = map[string]int{}
	}
	t.Got[source]++
	return t.most() > before
}

// letter is one message to an agent, as it stands in its context.
type letter struct{ From, Summary, Text string }

// lettersOf finds the letters in a user's line.
func lettersOf(text string) []letter {
	const open, shut = "<teammate-message ", "</teammate-message>"
	var letters []letter
	for {
		_, rest, ok := strings.Cut(text, open)
		if !ok {
			return letters
		}
		tag, rest, ok := strings.Cut(rest, ">")
		if !ok {
			return letters
		}
		body, rest, ok := strings.Cut(rest, shut)
		if !ok {
			return letters
		}
		letters = append(letters, letter{attribute(tag, "teammate_id"), attribute(tag, "summary"),
			strings.Trim(body, "\n")})
		text = rest
	}
}

func attribute(tag, name string) string {
	_, rest, ok := strings.Cut(" "+tag, " "+name+`="`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// notice is what a letter says in JSON: the team's own messages.
type notice struct {
	Type      string `json:"type"`
	From      string `json:"from"`
	Timestamp string `json:"timestamp"`
	Request   string `json:"requestId"`
	Reason    string `json:"reason"`
	Idle      string `json:"idleReason"`
	Failure   string `json:"failureReason"`
	Message   string `json:"message"`
	Plan      string `json:"planContent"`
	Approved  bool   `json:"approved"`
	Feedback  string `json:"feedback"`
}
