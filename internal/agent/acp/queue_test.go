package acp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent"
)

func prompt(id string) agent.Prompt { return agent.Prompt{ID: id, Text: "text of " + id} }

// ledger records what a queue does for each input.
type ledger struct {
	queue
	sends []*post // that wait for their answers
	log   []string
}

func (l *ledger) note(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf(format, args...))
}

func (l *ledger) sent(p *post) {
	if p == nil {
		return
	}
	l.sends = append(l.sends, p)
	what := "on top"
	if p.first {
		what = "begins"
	}
	l.note("%s: %s", what, strings.Join(strings.Fields(p.text), " "))
}

func (l *ledger) fates(word string, ids []string) {
	for _, id := range ids {
		l.note("%s %s", id, word)
	}
}

// do applies one input: give ID, urgent ID, hook, says, uses, ok, cancelled, fails, refuses.
func (l *ledger) do(step string) {
	what, id, _ := strings.Cut(step, " ")
	switch what {
	case "note":
		l.queue.note(id)
	case "give", "urgent":
		p := prompt(id)
		p.Urgent = what == "urgent"
		send, cancel := l.give(p, false)
		l.sent(send)
		if cancel {
			l.note("cancel")
		}
	case "deny":
		l.sent(l.explain(id))
	case "interrupt":
		l.cancel(id == "tool")
	case "hook":
		h := l.hand()
		if h.Again != "" {
			l.note("hook, again after %s: %s", strings.Join(strings.Fields(h.After), " "),
				strings.Join(strings.Fields(h.Again), " "))
		}
		l.note("hook: %s", strings.Join(strings.Fields(h.New), " "))
	case "says":
		l.fates("received", l.sees(spoke))
		l.sent(l.onTop())
	case "uses":
		l.fates("received", l.sees(acted))
		l.sent(l.onTop())
	default:
		how := map[string]outcome{"ok": done, "cancelled": stopped, "fails": failed, "refuses": rejected}[what]
		p := l.sends[0]
		l.sends = l.sends[1:]
		received, back, over := l.answer(p, how)
		l.fates("received", received)
		l.fates("back", back)
		if !over {
			return
		}
		next, lost := l.end(how, how == failed || how == rejected)
		l.fates("back", ids(lost))
		l.note("over")
		l.sent(l.goOn(next))
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	gem, open, any := queue{midTurn: byHook, memory: byTool}, queue{midTurn: overlap, memory: atOnce}, queue{}
	const record = "(For the record: in your last turn you were given this. It is not new; see what you did about it.) "
	for _, c := range []struct {
		name  string
		queue queue
		steps string
		want  string
	}{
		{"a turn", any, "note you are ann; give a; says; ok; give b; ok",
			"begins: you are ann text of a; a received; over; begins: text of b; b received; over"},
		{"what comes during a turn goes at its end", any, "give a; give b; give c; ok; ok",
			"begins: text of a; a received; over; begins: text of b text of c; b received; c received; over"},
		{"an error before anything was shown", any, "note you are ann; give a; give b; fails; give c",
			"begins: you are ann text of a; a back; b back; over; begins: you are ann text of c"},
		{"an error after something was", any, "note you are ann; give a; says; fails; give c",
			"begins: you are ann text of a; a received; over; begins: text of c"},
		{"an urgent prompt", any, "give a; says; give b; urgent c; cancelled",
			"begins: text of a; a received; cancel; over; begins: text of c text of b"},

		{"gemini: a text is no receipt, a tool is", gem, "give a; says; uses; ok",
			"begins: text of a; a received; over"},
		{"gemini: the hook", gem, "give a; uses; give b; hook; hook; says; uses; ok; give c",
			"begins: text of a; a received; hook: text of b; hook, again after text of a: text of b; hook: ; b " +
				"received; over; begins: " + record + "text of b (What is new:) text of c"},
		{"gemini: mail that the hook was handed and no answer", gem, "note you are ann; give a; uses; give b; hook; " +
			"fails; give c",
			"begins: you are ann text of a; a received; hook: text of b; b back; over; begins: text of c"},
		{"gemini: mail that it had, and then no answer", gem, "give a; uses; give b; hook; uses; give d; fails; give c",
			"begins: text of a; a received; hook: text of b; b received; d back; over; begins: " + record +
				"text of b (What is new:) text of c"},
		{"gemini: half an answer is none", gem, "note you are ann; give a; says; fails; give c",
			"begins: you are ann text of a; a back; over; begins: you are ann text of c"},
		{"gemini: interrupted while its model answers, it forgets the turn", gem, "note you are ann; give a; uses; " +
			"urgent c; cancelled; ok; give d",
			"begins: you are ann text of a; a received; cancel; over; begins: you are ann " + record +
				"text of a (What is new:) text of c; c received; over; begins: text of d"},
		{"gemini: interrupted in a tool, it does not", gem, "note you are ann; give a; uses; interrupt tool; urgent " +
			"c; cancelled",
			"begins: you are ann text of a; a received; cancel; over; begins: text of c"},
		{"gemini: interrupted before it had anything", gem, "note you are ann; give a; give b; hook; urgent c; " +
			"cancelled; ok",
			"begins: you are ann text of a; hook: text of b; cancel; over; begins: you are ann text of a text of b " +
				"text of c; a received; b received; c received; over"},
		{"gemini: interrupted, and nothing is to come", gem, "note you are ann; give a; interrupt; cancelled; give c",
			"begins: you are ann text of a; a back; over; begins: you are ann text of c"},
		{"gemini: over when it was interrupted", gem, "give a; urgent c; ok", "begins: text of a; cancel; a " +
			"received; over; begins: text of c"},

		{"opencode: on top of a turn", open, "give a; says; give b; give c; ok; ok; ok",
			"begins: text of a; a received; on top: text of b; on top: text of c; b received; c received; over"},
		{"opencode: nothing overtakes what a turn begins with", open, "give a; give b; give c; says; says; ok; ok",
			"begins: text of a; a received; on top: text of b text of c; b received; c received; over"},
		{"opencode: a turn that ends before it showed anything", open, "give a; give b; ok; ok",
			"begins: text of a; a received; over; begins: text of b; b received; over"},
		{"opencode: interrupted before it showed anything", open, "give a; give b; interrupt; says; cancelled; ok",
			"begins: text of a; a received; over; begins: text of b; b received; over"},
		{"opencode: it keeps what a turn that failed was told", open, "note you are ann; give a; says; give b; " +
			"fails; fails; give c",
			"begins: you are ann text of a; a received; on top: text of b; b received; over; begins: text of c"},
		{"opencode: the reason of a refusal goes on top", open,
			"give a; uses; deny no a; deny no b; ok; ok; ok; give c",
			"begins: text of a; a received; on top: no a; on top: no b; over; begins: text of c"},
		{"opencode: a reason that did not arrive stands before the next prompt", open, "give a; uses; deny no a; " +
			"refuses; refuses; give c",
			"begins: text of a; a received; on top: no a; over; begins: no a text of c"},
		{"gemini: the reason of a refusal goes by the hook", gem, "give a; uses; deny no a; hook; uses; ok; give c",
			"begins: text of a; a received; hook: no a; over; begins: text of c"},
		{"gemini: a reason that was not fetched precedes the next prompt", gem,
			"give a; uses; deny no a; ok; give c",
			"begins: text of a; a received; over; begins: no a text of c"},
		{"any: so does every reason", any, "give a; says; deny no a; ok; give c", "begins: text of a; a received; " +
			"over; begins: no a text of c"},
		{"opencode: what it refuses it does not keep", open, "note you are ann; give a; refuses; give c",
			"begins: you are ann text of a; a back; over; begins: you are ann text of c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &ledger{queue: c.queue}
			for _, step := range strings.Split(c.steps, "; ") {
				l.do(step)
			}
			if got := strings.Join(l.log, "; "); got != c.want {
				t.Errorf("\n%s\nbecomes\n%s\nand not\n%s", c.steps, got, c.want)
			}
		})
	}
}

// TestQueueLosesNothing checks that after any inputs every prompt was received once or returned
// once, and that none is left on its way.
func TestQueueLosesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, q := range []queue{{}, {midTurn: overlap, memory: atOnce}, {midTurn: byHook, memory: byTool}} {
			l := &ledger{queue: q}
			given := 0
			for range 40 {
				step := []string{"give", "urgent", "interrupt", "interrupt tool", "hook", "deny no", "says", "uses",
					"ok", "cancelled", "fails", "refuses"}[r.IntN(11)]
				switch {
				case step == "give" || step == "urgent":
					given++
					step += fmt.Sprintf(" p%d", given)
				case slices.Contains([]string{"ok", "cancelled", "fails", "refuses", "interrupt", "interrupt tool"},
					step) && len(l.sends) == 0:
					continue
				}
				l.do(step)
			}
			for len(l.sends) > 0 {
				l.do("ok")
			}
			for n := range given {
				id := fmt.Sprintf("p%d", n+1)
				fates := 0
				for _, line := range l.log {
					if line == id+" received" || line == id+" back" {
						fates++
					}
				}
				if fates != 1 {
					t.Fatalf("seed %d, %+v: %s has %d fates:\n%s", seed, q, id, fates, strings.Join(l.log, "\n"))
				}
			}
			if len(l.waiting)+len(l.forHook)+len(l.turn)+len(l.handed) > 0 {
				t.Fatalf("seed %d: something is left: %+v", seed, l.queue)
			}
		}
	}
}
