package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// checkVerify refuses a verification that nobody could do, and returns it with its defaults.
func (s *State) checkVerify(v *Verify, owner string) (*Verify, error) {
	if v == nil {
		return nil, nil
	}
	v = v.whole()
	by := s.member(v.By)
	switch {
	case strings.TrimSpace(v.By) == "":
		return nil, refuse(Invalid, "say who verifies the task: a member, or a role")
	case v.Count > MaxVerifiers:
		return nil, refuse(Invalid, "at most %d members verify a task, not %d", MaxVerifiers, v.Count)
	case v.Rounds < 1 || v.Rounds > MaxVerifyRounds:
		return nil, refuse(Invalid, "a task is verified in 1 to %d rounds, not %d", MaxVerifyRounds, v.Rounds)
	case v.By == owner:
		return nil, refuse(Invalid, "%s does the task, and nobody verifies their own work; name another member, or "+
			"a role", owner)
	case by != nil && by.Agent == Shell:
		return nil, refuse(Invalid, "%s only runs commands, and cannot verify the work of others; name another "+
			"member, or a role", by.Name)
	case by != nil && by.IsTeam():
		return nil, refuse(Invalid, "%s is a team, and cannot verify the work of others; name another member, or a "+
			"role", by.Name)
	case by != nil && v.Count > 1:
		return nil, refuse(Invalid, "%s is one member, and %d are to verify the task; name a role, or leave the "+
			"count out", by.Name, v.Count)
	}
	if err := oneOf("rule of a verification", v.Rule, VerifyRules); err != nil {
		return nil, err
	}
	return v, limit(text{"name of who verifies", v.By, MaxSubject})
}

// mayVerify refuses the verification v to a member that must not do it.
func (d *decision) mayVerify(m *Member, v *Task) error {
	if why := d.unfit(m, v); why != "" {
		return Refuse(Denied, "%s: %s", v.label(), why).With(v.Hint(&d.team, ActAssignTask))
	}
	return nil
}

// mayOwn refuses an owner that must not do the task, because of who verifies whose work.
func (d *decision) mayOwn(m *Member, t *Task) error {
	if t.judges(m.Name) {
		return Refuse(Denied, "%s verifies %s, so another member must do it", m.Name, t.label()).
			With(t.Hint(&d.team, ActAssignTask))
	}
	return d.mayVerify(m, t)
}

// maySteer refuses a change of the verification v that would choose who looks at the work, or at
// what. The lead and the user may make it, unless the work is the lead's own.
func (d *decision) maySteer(v *Task) error {
	t := d.verified(v)
	switch {
	case t == nil || d.Actor == User:
		return nil
	case d.authored(t, d.Actor):
		return Refuse(Denied, "%s verifies the work of %s, which cannot change it", v.label(), d.Actor).
			With(v.Hint(&d.team, ActAssignTask))
	}
	return d.leads("change the verification of a task")
}

// verifying refuses what cannot be done to a submitted task.
func (d *decision) verifying(t *Task, what string) error {
	if t.Submission == nil {
		return nil
	}
	return Refuse(NotReady, "%s was done by %s and is being verified (task %s): %s", t.label(), t.Submission.Author(),
		strings.Join(d.CalledAll(d.unjudged(t.Submission)), ", "), what).
		With(t.Hint(&d.team, ActShowTask))
}

// unverified refuses to roll back a task that others verify, and a verification.
func (d *decision) unverified(t *Task) error {
	if t.Verifies != "" {
		return refuse(NotReady, "%s verifies task %s, and its verdict stands", t.label(), d.Called(t.Verifies))
	}
	return d.verifying(t, "return it to the queue first")
}

// unjudged returns the ids of the verifications that are not done.
func (s *State) unjudged(b *Submission) (ids []string) {
	for _, id := range b.Tasks {
		if v := s.task(id); v != nil && v.Status.open() {
			ids = append(ids, id)
		}
	}
	return ids
}

// submit has others verify the result of t before it counts as completed.
func (d *decision) submit(t *Task, by, result string) error {
	v := t.Verify
	if by == v.By {
		return Refuse(Denied, "%s verifies %s, so another member must do it", by, t.label()).
			With(t.Hint(&d.team, ActAssignTask))
	}
	e := &TaskSubmitted{Task: t.ID, By: by, Result: result, Round: t.rejections() + 1}
	author := by
	if t.Status == InProgress {
		author = t.Owner
	}
	text := clipTo(d.whatToVerify(t, author, result), max(maxToVerify/int(v.Count), MaxSubject))
	one := Task{Subject: clipTo("Verify "+t.titled(), MaxSubject), Description: text,
		Status: Pending, Role: v.By, Priority: t.Priority, Verifies: t.ID, CreatedBy: by}
	if m := d.alive(v.By); m != nil && !d.ending[m.Name] {
		one.Owner, one.Assigned = m.Name, true
	}
	for range int(v.Count) {
		verification := one
		verification.ID = d.nextTask()
		e.Tasks = append(e.Tasks, verification.ID)
		d.create(verification)
	}
	d.emit(e)
	d.givesUp(t, "is being verified")
	d.retried(t)
	if one.Owner != "" && one.Owner != d.Actor {
		d.assigned(one.Owner, e.Tasks[0], "Task %s is yours: %s", e.Tasks[0], Quoted(one.Subject))
	}
	if by != d.team.Lead && d.ledByAgent() {
		d.hint(d.team.Lead, fmt.Sprintf("Task %s is done by %s and is being verified (task %s).", t.titled(), by,
			strings.Join(e.Tasks, ", ")))
	}
	return nil
}

// maxToVerify bounds the descriptions of all verifications of a round: each has its own.
const maxToVerify = 4 << 20

// whatToVerify describes a verification to whoever does it.
func (d *decision) whatToVerify(t *Task, author, result string) string {
	words := fmt.Sprintf("Look at what %s did for task %s. Then accept it, or reject it with what is to be mended.",
		author, t.titled())
	if t.Description != "" {
		words += "\n\nWhat was to be done:" + cited(t.Description)
	}
	if result != "" {
		words += "\n\nThe result:" + cited(result)
	}
	return clip(words)
}

// verify completes a verification with its verdict, and ends the round if that decides it.
func (d *decision) verify(v *Task, by, verdict, result string) error {
	if m := d.member(by); m != nil {
		if err := d.mayVerify(m, v); err != nil {
			return err
		}
	}
	about, how := d.Called(v.Verifies), v.Hint(&d.team, ActVerify)
	if by != User {
		how.Member = by
	}
	switch {
	case !slices.Contains(Verdicts, verdict):
		return Refuse(Invalid, "%s verifies task %s: say whether that is accepted or rejected, and why", v.label(),
			about).With(how)
	case strings.TrimSpace(result) == "":
		return Refuse(Invalid, "%s verifies task %s: give the reason for the verdict as its result", v.label(), about).
			With(how)
	}
	e := &TaskCompleted{Task: v.ID, By: by, Result: result, Verdict: verdict, Unblocked: d.freedBy(v)}
	d.emit(e)
	d.givesUp(v, "is done")
	if v.OutOfRetries() {
		d.runAgain(d.turning(v, false), "task "+v.Called()+", which had failed, is completed")
	}
	d.wakeOwners(e.Unblocked, "task "+v.Called()+" is done")
	if t := d.verified(v); t != nil {
		return d.count(t, v, vote{by, result}, verdict)
	}
	return nil
}

// count ends the round of t if it is decided, once the verification changed has this verdict; "" if
// it was deleted.
func (d *decision) count(t, changed *Task, of vote, verdict string) error {
	var b ballot
	for _, id := range t.Submission.Tasks {
		v := d.task(id)
		one, says := vote{}, ""
		switch {
		case v == nil || v.Status == Deleted || v == changed && verdict == "":
			continue
		case v == changed:
			one, says = of, verdict
		case v.Status == Completed:
			one, says = vote{v.CompletedBy, v.Result}, v.Verdict
		}
		switch says {
		case VerdictAccepted:
			b.accepted = append(b.accepted, one)
		case VerdictRejected:
			b.rejected = append(b.rejected, one)
		default:
			b.open = append(b.open, v)
		}
	}
	switch b.decided(t.Verify.rule()) {
	case VerdictAccepted:
		d.accept(t, t.Submission.Result, voters(b.accepted))
	case VerdictRejected:
		return d.sendBack(t, &b)
	}
	return nil
}

// rule returns the rule of a task's verification. A changed team file may have taken it away.
func (v *Verify) rule() string {
	if v == nil {
		return RuleAll
	}
	return v.Rule
}

// accept completes a submitted task.
func (d *decision) accept(t *Task, result string, verified []string) {
	for _, id := range d.unjudged(t.Submission) { // as the state has them, before this command
		d.unneeded = append(d.unneeded, d.task(id))
	}
	d.completed(t, &TaskCompleted{Task: t.ID, By: t.Submission.By, Result: result, Verified: verified})
	d.dropVerifications(t, "was completed")
}

// sendBack gives a submitted task back to its member with the feedback. After its last round, the
// attempt has failed.
func (d *decision) sendBack(t *Task, b *ballot) error {
	by := strings.Join(voters(b.rejected), ", ")
	e := &TaskRejected{Task: t.ID, Member: t.Submission.Author(), By: by, Feedback: b.feedback(),
		Count: t.rejections() + 1, Limit: t.VerifyRounds()}
	d.emit(e)
	d.dropVerifications(t, "was given back")
	again := fmt.Sprintf("round %d of %d", e.Count, e.Limit)
	said := fmt.Sprintf("%s did not accept task %s (%s):%s", cmp.Or(strings.ReplaceAll(by, "@", ""), "Half of them"),
		t.titled(), again, cited(clipTo(e.Feedback, MaxSubject)))
	if e.Final() {
		reason := clip(fmt.Sprintf("it was not accepted, in %s: %s", again, e.Feedback))
		if err := d.fail(t, d.member(e.Member), reason, t.Submission.Result); err != nil || t.Failures >= t.Retries {
			return err
		}
	}
	if t.Owner != "" && t.Owner != d.Actor {
		d.assigned(t.Owner, t.ID, "%s\nTask %s is yours again.", said, t.Called())
	}
	if d.team.Lead != t.Owner && d.ledByAgent() {
		d.hint(d.team.Lead, said+"\n"+"It is done again by "+cmp.Or(t.Owner, "whoever takes it")+".")
	}
	return nil
}

// dropVerifications deletes the open verifications of a task whose round has ended.
func (d *decision) dropVerifications(t *Task, why string) {
	if t.Submission == nil {
		return
	}
	for _, id := range t.Submission.Tasks {
		v := d.task(id)
		if v == nil || !v.Status.open() || slices.ContainsFunc(d.events, func(e Event) bool { return ends(e, id) }) {
			continue
		}
		free := d.freedBy(v)
		d.emit(&TaskDeleted{Task: id, Unblocked: free})
		if v.OutOfRetries() {
			d.runAgain(d.turning(v, false)[1:], "task "+v.Called()+", which had failed, was deleted")
		}
		d.wakeOwners(free, "task "+v.Called()+" was deleted")
		if v.Status == InProgress && v.Owner != d.Actor {
			d.tell(v.Owner, v.ID, "Task %s is not needed any more: task %s %s. Stop working on it.", v.titled(),
				t.Called(), why)
		}
		d.givesUp(v, "was deleted")
	}
}

// ends reports whether the event closes that task.
func ends(e Event, task string) bool {
	switch e := e.(type) {
	case *TaskCompleted:
		return e.Task == task
	case *TaskDeleted:
		return e.Task == task
	}
	return false
}

// mayDrop refuses to delete a verification that its round needs. The lead and the user may delete
// one of several, unless the work is the lead's own.
func (d *decision) mayDrop(v *Task) error {
	t := d.verified(v)
	if t == nil {
		return nil
	}
	if err := d.leads("delete the verification of a task"); err != nil {
		return err
	}
	others := 0
	for _, id := range t.Submission.Tasks {
		if o := d.task(id); o != nil && o != v && o.Status != Deleted {
			others++
		}
	}
	complete, assign := t.Hint(&d.team, ActCompleteTask), v.Hint(&d.team, ActAssignTask)
	switch {
	case d.authored(t, d.Actor):
		return Refuse(Denied, "%s verifies the work of %s, which cannot delete it", v.label(), d.Actor).With(assign)
	case v.Status == Completed:
		return Refuse(NotReady, "%s has its verdict, which counts in this round of task %s", v.label(), t.Called()).
			With(t.Hint(&d.team, ActShowTask))
	case others == 0:
		return Refuse(NotReady, "%s is the only verification of task %s, which would be verified by nobody: the user "+
			"completes task %s by hand, or another member verifies it", v.label(), t.Called(), t.Called()).
			With(complete, assign)
	}
	return nil
}
