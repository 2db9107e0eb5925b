package team

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Hopeless reports whether only a person can resolve the trouble, so that trying again does not
// help.
func Hopeless(trouble string) bool { return trouble == "login" || trouble == "missing" }

// ReportTrouble says what kept a member from continuing: a turn that failed, or with Gone a session
// that ended by itself. Its tasks return to the queue, and the lead gets the agent's own words. The
// member is tried again a little later. A teammate fails after [MaxSetbacks] troubles in a row, or
// at once where only a person can help.
type ReportTrouble struct {
	Member  string
	Trouble string // login, limit, model, context, missing, crash or ""
	Text    string
	Gone    bool
	Note    string // with Gone: words for the next session
	// Retrying says that the agent itself tries again: the lead is notified, and nothing else
	// changes.
	Retrying bool
	// Pool is what the member shares with others whose requests the provider of the model counts
	// together. With the trouble limit, all of them wait; see [RateLimit]. Without a pool it is a
	// trouble of the member alone.
	Pool  string
	Until Time // with the trouble limit: when the provider takes requests again; 0 if it did not say
}

// patience returns how long a member pauses after that many troubles in a row. After [MaxSetbacks]
// it does not pause any more: it has failed, or waits for a person.
func patience(setbacks int64) time.Duration { // 2 s, 8 s, 32 s, 2 min
	return 500 * time.Millisecond << (2 * min(setbacks, 5))
}

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
	if b.Trouble == TroubleLimit && b.Pool != "" {
		return b.limited(d, m, reason)
	}
	leads := m.Name == d.team.Lead
	if b.Retrying {
		b.retries(d, m, reason)
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
	fresh := b.Gone && b.Trouble == "context" // waiting does not help, and a fresh session may start at once
	wait := patience(e.Setbacks)
	if fresh && e.Setbacks == 1 {
		wait = 0
	}
	if e.Setbacks < MaxSetbacks {
		e.RetryAt = d.At.Add(wait)
	}
	var back []string
	for _, t := range d.holds(m.Name) {
		back = append(back, t.Called())
	}
	d.emit(e)
	if b.Gone {
		if d.detached(m, &MemberDetached{Member: m.Name, Reason: reason, Fresh: fresh, Note: clip(b.Note)}) {
			return nil
		}
	} else {
		for _, t := range d.holds(m.Name) {
			d.release(t, reason)
		}
		d.denyAll(m, reason)
	}
	if !leads {
		d.tell(d.team.Lead, "", "%s", m.Name+" could not continue"+because(reason)+"\n"+
			howItContinues(fresh, wait, back))
	}
	return nil
}

// howItContinues tells the lead whether a fresh session starts, when, and which tasks returned to
// the queue.
func howItContinues(fresh bool, wait time.Duration, back []string) string {
	switch {
	case fresh && wait == 0:
		return "A fresh session continues for it."
	case fresh:
		return fmt.Sprintf("A fresh session continues for it in %d s.", int64(wait.Seconds()))
	}
	again := fmt.Sprintf("It is tried again in %d s.", int64(wait.Seconds()))
	if len(back) > 0 {
		return "Returned to the queue: task " + strings.Join(back, ", ") + ".\n" + again
	}
	return again
}

// retries records a trouble that the member's agent may overcome by itself.
func (b *ReportTrouble) retries(d *decision, m *Member, reason string) {
	if m.Status != ShuttingDown {
		d.emit(&MemberStatusChanged{Member: m.Name, Status: Active, Summary: reason,
			Trouble: cmp.Or(b.Trouble, "model")})
	}
	if m.Name != d.team.Lead && !Hopeless(b.Trouble) { // else its host ends it, and the lead is notified of that
		d.hint(d.team.Lead, m.Name+" has trouble"+because(reason))
	}
}

// RetryMember forgets a member's troubles, so that it is tried at once.
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

// HandOver asks for a fresh session of the same member, which continues its task and its mail. The
// context of the present session is full, or it was led astray. The lead and the user can ask for
// it; the host does when the context fills up.
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
	case m.Agent == Shell:
		return Refuse(Invalid, "%s is a shell member, which runs commands and has no context to hand over", m.Name).
			With(d.team.hint(ActShowTeam))
	case m.IsTeam():
		return Refuse(Invalid, "%s is a team, which has no context to hand over", m.Name).
			With(d.team.hint(ActShowTeam))
	case m.Agent == External:
		return Refuse(Invalid, "%s is an external member, whose session no host can replace", m.Name).
			With(Hint{Action: ActRejoin, Team: d.team.Name, Member: m.Name})
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

// Interrupt ends the turn of a member. The member then waits for a message, and is given nothing
// else meanwhile. The lead and the user can do it.
type Interrupt struct{ Member string }

func (b *Interrupt) decide(d *decision) error {
	if err := d.leads("interrupt a member"); err != nil {
		return err
	}
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	switch {
	case m.Agent == External:
		return Refuse(Invalid, "%s runs its own session: its turns cannot be interrupted from here", m.Name).
			With(Hint{Action: ActAsk, Team: d.team.Name, Member: m.Name})
	case m.Shutdown.Request != "":
		return refuse(NotReady, "%s is shutting down", m.Name)
	case m.Status != Active && m.runs():
		return refuse(NotReady, "%s is %s: no command runs that could be interrupted", m.Name, d.Standing(m.Name, nil))
	case m.Status != Active:
		return Refuse(NotReady, "%s is %s: no turn runs that could be interrupted", m.Name, d.Standing(m.Name, nil)).
			With(Hint{Action: ActAsk, Team: d.team.Name, Member: m.Name})
	case m.Interrupt != 0:
		return nil
	}
	d.emit(&InterruptRequested{Member: m.Name, By: d.Actor})
	return nil
}

// AskReport asks an agent that leads for its report, because all work is done.
type AskReport struct {
	Merged string // directory with the merged work of all members, to look at; "" for none
}

func (b *AskReport) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "only the user and hosts ask for the report")
	}
	if d.lead().Agent == External {
		return refuse(Invalid, "%s is not an agent, so it cannot be asked", d.team.Lead)
	}
	if d.team.ReportAsked {
		return nil
	}
	d.emit(&ReportAsked{})
	words := d.reportQuestion()
	if b.Merged != "" {
		words = "The work of members on branches is merged for you to look at in " + b.Merged + ". What you change " +
			"there is not kept, and nothing of it is in your directory yet. " + words
	}
	d.tell(d.team.Lead, ReportRef, "%s", words)
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
		return "All tasks are done and all members are idle. Answer with the final report on the goal: what was " +
			"done, what was found, what is left. " +
			"Your answer to this is the report, as it is. If work is missing, create tasks for it instead."
	}
	if more > 0 {
		open = append(open, fmt.Sprintf("%s open.", word(more, "1 more task is", strconv.Itoa(more)+" more tasks are")))
	}
	return "All members are idle, and work is left. " + strings.Join(open, " ") +
		" Either change that (assign, release or delete tasks, spawn a teammate), " +
		"or answer with the final report on the goal: what was done, what was found, what is left and why. Your " +
		"answer is the report, as it is."
}

// GiveReport gives the lead's report.
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

// checkProgram refuses a program, arguments or variables that cannot start an agent.
func checkProgram(program string, args, env []string) error {
	if err := limit(text{"program", program, MaxSubject}, text{"arguments", strings.Join(args, " "), MaxText},
		text{"environment", strings.Join(env, " "), MaxText}); err != nil {
		return err
	}
	for _, v := range env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return refuse(Invalid, "%q is not an environment variable; write NAME=value", brief(v))
		}
	}
	if strings.Contains(program+strings.Join(args, "")+strings.Join(env, ""), "\x00") {
		return refuse(Invalid, "a program, its arguments and its environment cannot hold a zero byte")
	}
	return nil
}
