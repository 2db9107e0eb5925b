package acp

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/agent"
)

// memory is what an agent keeps of a prompt when the turn that it was for does not come to its end.
type memory int

const (
	bySign memory = iota // nothing is known: what it showed to have, it has
	atOnce               // a prompt is in its history as soon as it is sent, whatever comes of it
	// the answer of the model that asks for a tool makes a prompt last; a call of the model that is
	// cancelled takes the whole turn with it
	byTool
)

// sign is what an update shows of what the agent has.
type sign int

const (
	noSign sign = iota
	spoke       // it says or thinks something
	acted       // it uses a tool: the answer that asked for that is whole
)

// queue is the book of a session's prompts: where each is on its way, what stands before the next
// one, and what became of it. It is a value with rules and no more: no clock, no lock, no protocol.
//
// # A prompt
//
//	given ──▶ sent, with which a turn begins ──▶ received                 every prompt that was given is
//	      ──▶ on top of a turn, once that is ──▶ received                 received once, or given back once
//	          seen to have begun
//	      ──▶ for the hook ──▶ handed to it  ──▶ received
//	      ──▶ for the end of the turn ──▶ sent …
//	      a turn that fails: given back, whatever was not received
type queue struct {
	midTurn midTurn
	memory  memory

	preface string // what stands before the next prompt and is nobody's: instructions, notes
	reasons int    // counts reasons of refusals, which are prompts of the queue's own
	sent    string // what stood before the prompts that the turn began with

	running   int            // prompts whose answers are awaited; a turn runs while there are some
	cancelled bool           // the turn was
	inTool    bool           // when it was cancelled it used a tool
	turn      []agent.Prompt // that it began with
	lasting   bool           // they are in the agent's history, whatever happens now
	opening   string         // the text that the turn began with
	// that the hook was handed: with each call of the model again, for they are not in the history
	handed   []agent.Prompt
	received map[string]bool

	forHook []agent.Prompt
	waiting []agent.Prompt // for the end of the turn
}

// outcome is what the answer to a prompt says of the turn.
type outcome int

const (
	done     outcome = iota
	stopped          // it was cancelled
	failed           // the agent or its model could not go on
	rejected         // the agent did not take the prompt at all
)

// post is a prompt as it is sent: several may go as one.
type post struct {
	prompts []agent.Prompt
	text    string
	first   bool // a turn begins with it
}

// give takes a prompt. Either it is to be sent now, or the turn is to be cancelled for it, or it
// waits.
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

// cancel notes that the turn was cancelled.
func (q *queue) cancel(inTool bool) {
	if !q.cancelled {
		q.cancelled, q.inTool = true, inTool
	}
}

// send begins a turn with prompts, or puts them on top of the one that runs.
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

// note is to stand before the next prompt.
func (q *queue) note(text string) { q.preface += text + "\n\n" }

// explain takes the reason of a refusal. It goes into the turn that runs, the way a prompt does, so
// that the model knows it when it decides what to do next; else it stands before the next prompt.
// Nobody hears what became of it.
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

// ownPrefix begins the ids of prompts that are the queue's own.
const ownPrefix = "\x00"

func own(p agent.Prompt) bool { return strings.HasPrefix(p.ID, ownPrefix) }

// keep has the reasons among prompts that did not arrive stand before the next prompt, and returns
// the others.
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
	New string `json:"new,omitempty"` // prompts that came since the last call; they are the newest message
	// prompts that an earlier call of this turn had; the program's history lacks them
	Again string `json:"again,omitempty"`
	After string `json:"after,omitempty"` // the text that the turn began with, behind which Again belongs
}

// hand returns what the hook adds to the next call of the model.
func (q *queue) hand() handout {
	h := handout{New: texts(q.forHook), Again: texts(q.handed)}
	if h.Again != "" {
		h.After = q.opening
	}
	q.handed = append(q.handed, q.forHook...)
	q.forHook = nil
	return h
}

// sees takes a sign, and returns the ids of the prompts that the agent shows to have.
func (q *queue) sees(s sign) []string {
	if s == noSign || q.running == 0 || s == spoke && q.memory == byTool {
		return nil
	}
	q.lasting = true
	return q.receive(append(slices.Clone(q.turn), q.handed...))
}

// onTop sends what waited for a sign of the turn, as one prompt on top of it; nil where nothing
// did. Before that sign the agent may take the second of two prompts for the first: it would work
// on mail before it has its task.
func (q *queue) onTop() *post {
	if q.midTurn != overlap || q.running == 0 || q.cancelled || !q.lasting || len(q.waiting) == 0 {
		return nil
	}
	waiting := q.waiting
	q.waiting = nil
	return q.send(waiting)
}

// receive returns the ids of those that were not received yet, and are now.
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

// split tells what was received of the prompts from what was not.
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

// answer takes the answer to a prompt, and returns the ids that were received and given back by it,
// and whether the turn is over.
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

// end closes the turn. What waits goes next, unless there is trouble: then it is given back, with
// all of the turn that did not arrive. What was received and is not in the agent's history stands
// before the next prompt, as what it is.
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

// goOn sends what came before the end of a turn, or has it wait for the end of the one that has
// begun since.
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
