package team

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Hopeless reports whether a trouble needs a person before a session can be of use: trying again
// does not help.
func Hopeless(trouble string) bool { return trouble == "login" || trouble == "missing" }

// ReportTrouble says what kept a member from going on: a turn that failed, or with Gone a session
// that ended by itself. Its tasks go back on the list and the lead is told, in the agent's own
// words. It is tried again a little later; a teammate fails after [MaxSetbacks] troubles in a row,
// or at once where only a person can help.
type ReportTrouble struct {
	Member  string
	Trouble string // login, limit, model, context, missing, crash or ""
	Text    string
	Gone    bool
	Note    string // with Gone: what the next session is told
	// Retrying says that its agent tries again by itself: the lead is told, and nothing else
	// changes.
	Retrying bool
}

// patience is how long a member is left alone after that many troubles in a row, in milliseconds.
func patience(setbacks int64) Time { return Time(500) << (2 * min(setbacks, 5)) } // 2 s, 8 s, 32 s, 2 min, 8.5 min

func (b *ReportTrouble) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	if d.actor != nil {
		return refuse(Denied, "the troubles of %s are reported by its host", m.Name)
	}
	if err := limit(text{"trouble", b.Trouble, MaxSubject}); err != nil {
		return err
	}
	reason := clipTo(strings.TrimSpace(b.Text), MaxSubject)
	if reason == "" {
		reason = "no reason given"
	}
	leads := m.Name == d.team.Lead
	if b.Retrying {
		if m.Status != ShuttingDown {
			d.emit(&MemberStatusChanged{Member: m.Name, Status: Active, Summary: reason,
				Trouble: cmp.Or(b.Trouble, "model")})
		}
		if !leads && !Hopeless(b.Trouble) { // else its host ends it, and the lead is told of that
			// which it may overcome by itself
			d.hint(d.team.Lead, m.Name+" has trouble"+because(reason))
		}
		return nil
	}
	e := &MemberTroubled{Member: m.Name, Trouble: b.Trouble, Text: reason, Setbacks: min(m.Setbacks+1, MaxSetbacks)}
	if Hopeless(b.Trouble) {
		e.Setbacks = MaxSetbacks
	}
	if e.Setbacks >= MaxSetbacks && !leads {
		d.end(m, &MemberFailed{Member: m.Name, Reason: reason}, true)
		return nil
	}
	fresh := b.Gone && b.Trouble == "context" // waiting does not help it, and a fresh session may at once
	wait := patience(e.Setbacks)
	if fresh && e.Setbacks == 1 {
		wait = 0
	}
	if e.Setbacks < MaxSetbacks {
		e.RetryAt = plus(d.At, wait)
	}
	var back []string
	for _, t := range d.holds(m.Name) {
		back = append(back, t.ID)
	}
	d.emit(e)
	if b.Gone {
		if d.detached(m, &MemberDetached{Member: m.Name, Reason: reason, Fresh: fresh, Note: clip(b.Note)}) {
			return nil
		}
	} else {
		for _, t := range d.holds(m.Name) {
			d.release(t, reason, true)
		}
		d.denyAll(m, reason)
	}
	if !leads {
		note := m.Name + " could not continue" + because(reason)
		switch {
		case fresh && wait == 0:
			note += "\nA fresh session continues for it."
		case fresh:
			note += fmt.Sprintf("\nA fresh session continues for it in %d s.", wait/1000)
		default:
			if len(back) > 0 {
				note += "\nBack on the list: task " + strings.Join(back, ", ") + "."
			}
			note += fmt.Sprintf("\nIt is tried again in %d s.", wait/1000)
		}
		d.tell(d.team.Lead, TypeSystem, "", "%s", note)
	}
	return nil
}

// RetryMember forgets the troubles of a member, so that it is tried at once.
type RetryMember struct{ Member string }

func (b *RetryMember) decide(d *decision) error {
	if err := d.leads("have a member tried again"); err != nil {
		return err
	}
	m, err := d.running(b.Member)
	if err == nil && m.Setbacks > 0 {
		d.emit(&MemberTroubled{Member: m.Name})
	}
	return err
}

// HandOver asks for a fresh session of the same member, that goes on with its task and its mail:
// the context of the present one is full, or led astray. The lead and the user ask for it, and its
// host when the context fills up.
type HandOver struct{ Member, Reason string }

func (b *HandOver) decide(d *decision) error {
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	if d.leads("") != nil {
		if _, err := d.hosted(b.Member); err != nil {
			return err
		}
	}
	reason := b.Reason
	if reason == "" {
		reason = "it was asked for"
	}
	switch {
	case m.Agent == External || m.Agent == Shell:
		return refuse(Invalid, "%s has no context that could be handed over", m.Name)
	case m.Handover != "":
		return nil
	case m.Shutdown.Request != "":
		return refuse(NotReady, "%s is shutting down", m.Name)
	}
	if err := limit(text{"reason", reason, MaxSubject}); err != nil {
		return err
	}
	if m.Host == "" { // no session has to end first
		d.detached(m, &MemberDetached{Member: m.Name, Reason: reason, Fresh: true})
		return nil
	}
	d.emit(&HandoverRequested{Member: m.Name, Reason: reason})
	return nil
}

// AskReport asks a lead that is an agent for its last words, because all work is done.
type AskReport struct {
	Merged string // directory in which the work of all members is merged, to look at; "" for none
}

func (b *AskReport) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "the report is asked for by who runs the team")
	}
	if d.lead().Agent == External {
		return refuse(Invalid, "%s is no agent that could be asked", d.team.Lead)
	}
	if d.team.ReportAsked {
		return nil
	}
	d.emit(&ReportAsked{})
	words := d.reportQuestion()
	if b.Merged != "" {
		words = "What members did on branches is merged for you to look at in " + b.Merged + ". What you change " +
			"there is not kept, and nothing of it is in your directory yet. " + words
	}
	d.tell(d.team.Lead, TypeSystem, ReportRef, "%s", words)
	return nil
}

// ReportRef marks the message that asks the lead for its report.
const ReportRef = "report"

func (d *decision) reportQuestion() string {
	const most = 10
	var open []string
	more := 0
	for i := range d.tasks {
		switch t := &d.tasks[i]; {
		case !t.Status.open():
		case len(open) == most:
			more++
		default:
			open = append(open, d.standing(t))
		}
	}
	if len(open) == 0 {
		return "All tasks are done and everybody is idle. Answer with the final report on the goal: what was done, " +
			"what was found, what is left. " +
			"Your answer to this is the report, as it is. If work is missing, create tasks for it instead."
	}
	if more > 0 {
		open = append(open, fmt.Sprintf("%s open.", word(more, "1 more task is", strconv.Itoa(more)+" more tasks are")))
	}
	return "Everybody is idle, and work is left. " + strings.Join(open, " ") + " Either change that (assign, release " +
		"or delete tasks, spawn a teammate), " +
		"or answer with the final report on the goal: what was done, what was found, what is left and why. Your answer is the report, as it is."
}

// GiveReport is the lead's answer.
type GiveReport struct{ Text string }

func (b *GiveReport) decide(d *decision) error {
	if _, err := d.hosted(d.team.Lead); err != nil {
		return err
	}
	if err := limit(text{"report", b.Text, MaxText}); err != nil {
		return err
	}
	if !d.team.ReportAsked {
		return refuse(Conflict, "no report is asked for now: there is new work")
	}
	words := strings.TrimSpace(b.Text)
	if words == "" {
		words = "The lead said nothing."
	}
	if words != d.team.LastWords {
		d.emit(&ReportGiven{Text: words})
	}
	return nil
}

// checkProgram refuses how an agent cannot be started.
func checkProgram(program string, args, env []string) error {
	if err := limit(text{"program", program, MaxSubject}, text{"arguments", strings.Join(args, " "), MaxText},
		text{"environment", strings.Join(env, " "), MaxText}); err != nil {
		return err
	}
	for _, v := range env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return refuse(Invalid, "%q is no variable of an environment; it is like NAME=value", brief(v))
		}
	}
	if strings.Contains(program+strings.Join(args, "")+strings.Join(env, ""), "\x00") {
		return refuse(Invalid, "a program, its arguments and its environment cannot hold a zero byte")
	}
	return nil
}
