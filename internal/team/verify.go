package team

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A task may say that others verify it before it counts as completed. Its completion is then a
// submission: it creates a verification for each of those that must look at it, which is a task
// like any other, and the submitted task waits for them. When enough of them accepted it, it is
// completed; else it returns to the member that submitted it, with the reasons. That is a round.

// The values of [Verify].Rule and [Task].Verdict.
const (
	RuleAll      = "all"      // each verification accepts, and the first rejection ends the round
	RuleMajority = "majority" // more than half of them accept

	VerdictAccepted = "accepted"
	VerdictRejected = "rejected"
)

// VerifyRules are the values of [Verify].Rule.
var VerifyRules = []string{RuleAll, RuleMajority}

// Verdicts are the values of [Task].Verdict.
var Verdicts = []string{VerdictAccepted, VerdictRejected}

// Limits and defaults of [Verify].
const (
	MaxVerifiers        = 100
	MaxVerifyRounds     = 100
	DefaultVerifyRounds = 3
)

// Verify says who must accept a task before it counts as completed.
type Verify struct {
	By     string `json:"by"`               // name of a member, else a role
	Count  int64  `json:"count,omitempty"`  // how many verify it in each round; 0 for 1
	Rule   string `json:"rule,omitempty"`   // all or majority; "" for all
	Rounds int64  `json:"rounds,omitempty"` // after that many rejections the attempt has failed; 0 for 3
}

func (v *Verify) fields(c *coder) {
	c.str("by", &v.By)
	c.int("count", &v.Count)
	c.str("rule", &v.Rule)
	c.int("rounds", &v.Rounds)
}

// whole returns v with its defaults filled in.
func (v Verify) whole() *Verify {
	v.By = strings.Clone(v.By)
	v.Count, v.Rule, v.Rounds = max(v.Count, 1), cmp.Or(v.Rule, RuleAll), cmp.Or(v.Rounds, DefaultVerifyRounds)
	return &v
}

// Submission is a result that others verify.
type Submission struct {
	By     string   // member that submitted it
	Holder string   // member that had the task in progress, if the lead submitted it; else ""
	Result string   // what is said of it; it becomes the task's result
	Round  int64    // number of the round, from 1
	Tasks  []string // ids of the verifications of this round
	At     Time     // when it was submitted
	// when the task was claimed, before that
	StartedAt Time
}

func (b *Submission) fields(c *coder) {
	c.str("by", &b.By)
	c.str("holder", &b.Holder)
	c.str("result", &b.Result)
	c.int("round", &b.Round)
	c.strs("tasks", &b.Tasks)
	c.int("at", (*int64)(&b.At))
	c.int("startedAt", (*int64)(&b.StartedAt))
}

// Author returns the member that did the submitted work.
func (b *Submission) Author() string { return cmp.Or(b.Holder, b.By) }

// Doer returns who did the work of a completed or submitted task; "" for another task.
func (t Task) Doer() string {
	if t.Submission != nil {
		return t.Submission.Author()
	}
	return t.CompletedBy
}

// begun reports whether a result of t may come at any time.
func (t *Task) begun() bool { return t.Status == InProgress || t.Submission != nil }

// verified returns the submitted task of which v is a verification; nil for none.
func (s *State) verified(v *Task) *Task {
	if v.Verifies == "" {
		return nil
	}
	if t := s.task(v.Verifies); t != nil && t.Submission != nil && slices.Contains(t.Submission.Tasks, v.ID) {
		return t
	}
	return nil
}

// authored reports whether the submitted task t is work of that member: it submitted the task or
// had it in progress since it was last completed, or it continues the session of a member that did.
func (s *State) authored(t *Task, member string) bool {
	authors := append([]string{t.Submission.By, t.Submission.Holder}, t.Workers...)
	m := s.member(member)
	return slices.ContainsFunc(authors, func(name string) bool {
		o := s.member(name)
		return name == member || o != nil && m != nil && o.Session != "" && o.Session == m.Session
	})
}

// unfit says why the member must not verify with the task v; "" if it may, or if v is no
// verification.
func (s *State) unfit(m *Member, v *Task) (why string) {
	t := s.verified(v)
	switch {
	case t == nil:
		return ""
	case s.authored(t, m.Name):
		return m.Name + " worked on task " + t.Called() + " itself, and nobody verifies their own work"
	case m.Agent == Shell:
		return m.Name + " only runs commands, and cannot verify the work of others"
	case m.IsTeam():
		return m.Name + " is a team, and cannot verify the work of others"
	}
	for _, id := range t.Submission.Tasks {
		if o := s.task(id); o != nil && o != v && (o.Status == Completed && o.CompletedBy == m.Name ||
			o.Status == InProgress && o.Owner == m.Name) {
			return m.Name + " verifies task " + t.Called() + " already, with task " + o.Called() +
				", and each verifies it once"
		}
	}
	return ""
}

// suits reports whether the role of a task allows the member. A verification may be for a member by
// name.
func (t *Task) suits(m *Member) bool {
	return t.Role == "" || t.Role == m.Role || t.Verifies != "" && t.Role == m.Name
}

// judges reports whether that member alone verifies t, so that it must not do it.
func (t *Task) judges(member string) bool { return t.Verify != nil && t.Verify.By == member }

// rejections returns how often verifications sent the present attempt back.
func (t *Task) rejections() int64 {
	if t.Rejected == nil {
		return 0
	}
	return t.Rejected.Verifications
}

// VerifyRounds returns how many rejections by members end an attempt.
func (t Task) VerifyRounds() int64 {
	if t.Verify == nil { // a changed team file may have taken it away
		return DefaultVerifyRounds
	}
	return t.Verify.Rounds
}

// Verifications returns the tasks that verify or verified that one, in all its rounds.
func (s *State) Verifications(task string) (all []Task) {
	for t := range s.Tasks() {
		if t.Verifies == task && task != "" {
			all = append(all, t)
		}
	}
	return all
}

// ballot has the verifications of a round.
type ballot struct {
	accepted, rejected []vote
	open               []*Task
}

// vote is the verdict of one member.
type vote struct{ by, why string }

func voters(votes []vote) (names []string) {
	for _, v := range votes {
		names = append(names, v.by)
	}
	return names
}

// decided says how the round ended; "" while it goes on. A tie does not accept.
func (b *ballot) decided(rule string) (verdict string) {
	yes, no, open := len(b.accepted), len(b.rejected), len(b.open)
	all := yes + no + open
	if rule == RuleMajority {
		switch {
		case 2*yes > all:
			return VerdictAccepted
		case 2*no > all, open == 0:
			return VerdictRejected
		}
		return ""
	}
	switch {
	case no > 0:
		return VerdictRejected
	case open == 0:
		return VerdictAccepted
	}
	return ""
}

// feedback returns the reasons of those who rejected. Where there are several, each is named.
func (b *ballot) feedback() string {
	if len(b.rejected) == 1 {
		return b.rejected[0].why
	}
	var all []string
	for _, v := range b.rejected {
		all = append(all, v.by+": "+v.why)
	}
	if len(all) == 0 {
		return "as many accepted it as did not"
	}
	return clip(strings.Join(all, "\n\n"))
}

// TaskSubmitted says that the result of a task waits for others to accept it. Tasks are their
// verifications, which the same record creates.
type TaskSubmitted struct {
	Task, By, Result string
	Round            int64
	Tasks            []string
}

// Kind returns the event's name in the journal.
func (*TaskSubmitted) Kind() string { return "task_submitted" }

func (e *TaskSubmitted) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("by", &e.By)
	c.str("result", &e.Result)
	c.int("round", &e.Round)
	c.strs("tasks", &e.Tasks)
}

func (e *TaskSubmitted) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		b := &Submission{By: s.known(e.By), Result: e.Result, Round: e.Round, Tasks: owned(e.Tasks), At: r.At,
			StartedAt: t.StartedAt}
		own(&b.Result)
		if t.Status == InProgress && t.Owner != e.By {
			b.Holder = t.Owner
		}
		t.Submission = b
		t.Status, t.StartedAt, t.Failure, t.FailedBy = Pending, 0, "", ""
		t.Fence++
		if t.Owner == "" {
			t.Owner = b.By
		}
		t.Assigned = true // it is given back to who knows it
		s.setStrikes(hookKey("TaskCompleted", e.By, t.ID), 0)
		for _, id := range b.Tasks {
			s.link(id, t.ID, true)
		}
	})
	s.childrenOver(e.Task)
}

// ownVerification copies the texts about the verification of a new task.
func (t *Task) ownVerification(s *State) {
	own(&t.Verifies, &t.LastWords)
	t.Verdict = constant(t.Verdict, Verdicts...)
	t.Verified, t.Workers = owned(t.Verified), owned(t.Workers)
	if t.Verify != nil {
		v := *t.Verify
		own(&v.By, &v.Rule)
		t.Verify = &v
	}
	if t.Submission != nil {
		b := *t.Submission
		b.By, b.Holder, b.Tasks = s.known(b.By), s.known(b.Holder), owned(b.Tasks)
		own(&b.Result)
		t.Submission = &b
	}
}

// Words says who verifies a task, in a few words: reviewer, or 2 of reviewer (majority).
func (v Verify) Words() string {
	words := v.By
	if v.Count > 1 {
		words = strconv.FormatInt(v.Count, 10) + " of " + v.By
		if v.Rule == RuleMajority {
			words += ", by majority"
		}
	}
	if v.Rounds != DefaultVerifyRounds {
		words += ", in at most " + Count(v.Rounds, "round")
	}
	return words
}

// Vote is a member's verdict on a task, in words.
type Vote struct {
	Words  string // who said what, and with which task
	Reason string // "" while there is no verdict
}

// Votes returns the verdicts on a task, the earliest first, and who has still to say one.
func (s *State) Votes(task string) (all []Vote) {
	for _, v := range s.Verifications(task) {
		who, says := v.CompletedBy, v.Verdict+" it"
		switch {
		case v.Verdict != "":
		case v.Status == InProgress:
			who, says = v.Owner, "verifies it"
		default:
			who, says = cmp.Or(v.Owner, v.Role), "is to verify it"
		}
		all = append(all, Vote{fmt.Sprintf("%s %s (task %s)", strings.TrimPrefix(who, "@"), says, v.Called()), ""})
		if v.Verdict != "" {
			all[len(all)-1].Reason = v.Result
		}
	}
	return all
}
