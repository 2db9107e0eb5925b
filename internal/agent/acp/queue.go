package acp

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/agent"
)

// memory says what an agent keeps of a prompt when its turn does not finish.
type memory int

const (
	bySign memory = iota // unknown: it has what it has shown to have
	atOnce               // a prompt is in its history as soon as it is sent, whatever happens
	// an answer of the model that asks for a tool keeps a prompt; a cancelled call of the model
	// removes the whole turn
	byTool
)

// sign is what an update shows about the agent's history.
type sign int

const (
	noSign sign = iota
	spoke       // it says or thinks something
	acted       // it uses a tool, so the answer that asked for the tool is complete
)

// queue keeps track of a session's prompts: where each is on its way, what precedes the next one,
// and what became of it. It is a value with rules and nothing else: no clock, no lock, no protocol.
//
// # A prompt
//
//	given ──▶ sent, which starts a turn ──▶ received                 every prompt that was given is
//	      ──▶ sent during a turn, once it   ──▶ received                 received once, or returned once
//	          is seen to have started
//	      ──▶ for the hook ──▶ passed to it ──▶ received
//	      ──▶ for the end of the turn ──▶ sent …
//	      a turn that fails: whatever was not received is returned
type queue struct {
	midTurn midTurn
	memory  memory

	preface string // precedes the next prompt and belongs to none: instructions, notes
	reasons int    // counts reasons of denials, which are prompts of the queue's own
	sent    string // text before the prompts that started the turn

	running   int            // number of prompts without an answer; a turn is running while there are any
	cancelled bool           // the turn was cancelled
	inTool    bool           // it used a tool when it was cancelled
	turn      []agent.Prompt // the prompts that started the turn
	lasting   bool           // they are in the agent's history, whatever happens now
	opening   string         // the text that started the turn
	// passed to the hook, with each call of the model again, because they are not in the history
	handed   []agent.Prompt
	received map[string]bool

	forHook []agent.Prompt
	waiting []agent.Prompt // for the end of the turn
}

// outcome is what the answer to a prompt says about the turn.
type outcome int

const (
	done     outcome = iota
	stopped          // it was cancelled
	failed           // the agent or its model could not continue
	rejected         // the agent did not accept the prompt
)

// post is a prompt as it is sent; it may combine several.
type post struct {
	prompts []agent.Prompt
	text    string
	first   bool // it starts a turn
}

// give takes a prompt. It is sent now, or the turn is cancelled for it, or it waits.
func (q *queue) give(p agent.Prompt, inTool bool) (send *post, cancel bool) {
	switch {
	case q.running == 0:
		return q.send([]agent.Prompt{p}), false
	case p.Urgent:
		q.waiting = append([]agent.Prompt{p}, q.waiting...)
		q.cancel(inTool)
		return nil, true
	case q.midTurn == overlap && !q.cancelled && q.lasting:
		return q.send([]agent.Prompt{p}), false
	case q.midTurn == byHook && !q.cancelled:
		q.forHook = append(q.forHook, p)
	default:
		q.waiting = append(q.waiting, p)
	}
	return nil, false
}

// cancel records that the turn was cancelled.
func (q *queue) cancel(inTool bool) {
	if !q.cancelled {
		q.cancelled, q.inTool = true, inTool
	}
}

// send starts a turn with prompts, or adds them to the running turn.
func (q *queue) send(prompts []agent.Prompt) *post {
	p := &post{prompts: prompts, text: q.preface + texts(prompts), first: q.running == 0}
	if p.first {
		q.turn, q.sent, q.opening, q.lasting, q.cancelled, q.inTool = prompts, q.preface, p.text, false, false, false
		q.received = map[string]bool{}
	}
	q.preface = ""
	q.running++
	return p
}

func texts(prompts []agent.Prompt) string {
	var all []string
	for _, p := range prompts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n\n")
}

// note adds a text before the next prompt.
func (q *queue) note(text string) { q.preface += text + "\n\n" }

// explain takes the reason of a denial. It goes into the running turn like a prompt, so that the
// model knows it when it decides what to do next. Otherwise it precedes the next prompt. Its
// receipt is not reported.
func (q *queue) explain(reason string) (send *post) {
	q.reasons++
	p := agent.Prompt{ID: fmt.Sprint(ownPrefix, q.reasons), Text: reason}
	switch {
	case q.running == 0 || q.cancelled:
		q.note(reason)
	case q.midTurn == overlap && q.lasting:
		return q.send([]agent.Prompt{p})
	case q.midTurn == byHook:
		q.forHook = append(q.forHook, p)
	default:
		q.note(reason)
	}
	return nil
}

// ownPrefix begins the ids of the queue's own prompts.
const ownPrefix = "\x00"

func own(p agent.Prompt) bool { return strings.HasPrefix(p.ID, ownPrefix) }

// keep puts the reasons among undelivered prompts before the next prompt, and returns the other
// prompts.
func (q *queue) keep(prompts []agent.Prompt) []agent.Prompt {
	for _, p := range prompts {
		if own(p) {
			q.note(p.Text)
		}
	}
	return slices.DeleteFunc(prompts, own)
}

// handout is what the hook adds to a call of the model.
type handout struct {
	New string `json:"new,omitempty"` // prompts since the last call; they are the newest message
	// prompts of an earlier call of this turn; the program's history lacks them
	Again string `json:"again,omitempty"`
	After string `json:"after,omitempty"` // the text that started the turn; Again follows it
}

// hand returns the messages that the hook adds to the next call of the model.
func (q *queue) hand() handout {
	h := handout{New: texts(q.forHook), Again: texts(q.handed)}
	if h.Again != "" {
		h.After = q.opening
	}
	q.handed = append(q.handed, q.forHook...)
	q.forHook = nil
	return h
}

// sees handles a sign, and returns the ids of the prompts that the agent shows to have.
func (q *queue) sees(s sign) []string {
	if s == noSign || q.running == 0 || s == spoke && q.memory == byTool {
		return nil
	}
	q.lasting = true
	return q.receive(append(slices.Clone(q.turn), q.handed...))
}

// onTop sends the prompts that waited until the turn was seen to run, as one prompt; nil for none.
// Before that sign, the agent may take the second of two prompts for the first: it would work on
// mail before it has its task.
func (q *queue) onTop() *post {
	if q.midTurn != overlap || q.running == 0 || q.cancelled || !q.lasting || len(q.waiting) == 0 {
		return nil
	}
	waiting := q.waiting
	q.waiting = nil
	return q.send(waiting)
}

// receive marks prompts as received, and returns the ids of those that were not before.
func (q *queue) receive(prompts []agent.Prompt) (ids []string) {
	for _, p := range prompts {
		if !q.received[p.ID] {
			q.received[p.ID] = true
			if !own(p) {
				ids = append(ids, p.ID)
			}
		}
	}
	return ids
}

// split separates received prompts from others.
func (q *queue) split(prompts []agent.Prompt) (has, lacks []agent.Prompt) {
	for _, p := range prompts {
		if q.received[p.ID] {
			has = append(has, p)
		} else {
			lacks = append(lacks, p)
		}
	}
	return has, lacks
}

// answer handles the answer to a prompt. It returns the ids that it received and returned, and
// whether the turn is over.
func (q *queue) answer(p *post, how outcome) (received, back []string, over bool) {
	q.running--
	has := how == done || how == stopped && q.memory != byTool || how == failed && q.memory == atOnce
	switch {
	case has && p.first:
		q.lasting = true
		received = q.receive(append(slices.Clone(p.prompts), q.handed...))
	case has:
		received = q.receive(p.prompts)
	case !p.first:
		back = ids(q.keep(slices.Clone(p.prompts)))
	}
	return received, back, q.running == 0
}

func ids(prompts []agent.Prompt) (all []string) {
	for _, p := range prompts {
		all = append(all, p.ID)
	}
	return all
}

// end closes the turn. Waiting prompts are next, unless there is trouble: then they are returned,
// together with everything that did not arrive. Received prompts that are missing in the agent's
// history precede the next prompt, marked as such.
func (q *queue) end(how outcome, trouble bool) (next, back []agent.Prompt) {
	began, unread := q.split(q.turn)
	given, unseen := q.split(q.handed)
	waiting := append(q.forHook, q.waiting...)
	q.turn, q.handed, q.forHook, q.waiting = nil, nil, nil, nil

	var lost []agent.Prompt // received, and forgotten with the turn
	instructions := ""
	switch {
	case q.memory == byTool && how == stopped && !q.inTool:
		lost, instructions = began, q.sent
	case len(unread) > 0:
		instructions = q.sent
	}
	q.preface = instructions + q.preface
	if lost = slices.DeleteFunc(append(lost, given...), own); len(lost) > 0 {
		q.preface += "(For the record: in your last turn you were given this. It is not new; see what you did " +
			"about it.)\n" + texts(lost) + "\n\n(What is new:)\n"
	}
	missing := q.keep(append(unread, unseen...))
	waiting = q.keep(waiting)
	if trouble || len(waiting) == 0 {
		return nil, append(missing, waiting...)
	}
	return append(missing, waiting...), nil
}

// goOn sends prompts that came before the end of a turn, or keeps them for the end of the turn that
// has started since.
func (q *queue) goOn(next []agent.Prompt) *post {
	switch {
	case len(next) == 0:
	case q.running == 0:
		return q.send(next)
	default:
		q.waiting = append(next, q.waiting...)
	}
	return nil
}
