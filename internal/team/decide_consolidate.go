package team

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Consolidate begins the team's last step. Nothing new starts, the work is checked and committed,
// and then the team is complete. It is refused while a member works or waits. It is accepted for a
// complete team that was never consolidated, which is complete again whatever the outcome.
type Consolidate struct {
	Message  string   // commit message; "" for one that is made from the tasks
	Include  []string // see [Consolidation]
	Only     []string
	NoCommit bool
	Without  []string
	Clean    bool // also where the team's setting is false
	Changes  bool
}

func (b *Consolidate) decide(d *decision) error {
	if err := d.leads("consolidate the team"); err != nil {
		return err
	}
	if err := limit(text{"message of the commit", b.Message, MaxText}); err != nil {
		return err
	}
	for _, p := range slices.Concat(b.Include, b.Only) {
		if !below(p) || len(p) > MaxSubject {
			return refuse(Invalid, "%q is not a path of a file in the work tree", brief(p))
		}
	}
	t := &d.team
	switch {
	case t.Consolidation.Open():
		return Refuse(Conflict, "a consolidation of team %s has already started", t.Name).
			With(t.hint(ActFinish))
	case t.Status == TeamComplete && t.Consolidation.Step == Done:
		return Refuse(Finished, "team %s is consolidated already", t.Name).With(t.hint(ActShowReview))
	case t.Status != TeamConsolidating && !allowed(TeamMoves, t.Status, TeamConsolidating):
		return Refuse(NotReady, "team %s is %s and has nothing to consolidate", t.Name, t.Status).
			With(t.hint(ActSpawn))
	case t.Base.Unknown != "" && !b.NoCommit:
		return Refuse(NotReady, "the work of team %s cannot be told from earlier changes: %s. Commit it yourself first",
			t.Name, t.Base.Unknown).With(t.hint(ActSkipCommit))
	}
	if err := d.green(); err != nil {
		return err
	}
	if err := d.hasWork(b.Without); err != nil {
		return err
	}
	if t.Status != TeamConsolidating {
		d.emit(&TeamStatusChanged{Status: TeamConsolidating})
	}
	d.emit(&ConsolidationBegan{Attempt: t.Consolidation.Attempt + 1, Message: b.Message, Include: b.Include,
		Only: b.Only, NoCommit: b.NoCommit, Ended: t.Status == TeamComplete, Without: b.Without,
		Clean: b.Clean || t.Clean, Changes: b.Changes || t.Changes})
	return nil
}

// mostReasons limits the reasons that a refusal lists.
const mostReasons = 20

// green refuses while work is open, or a member works or waits. It names everything that stands in
// the way.
func (d *decision) green() error {
	var reasons []string
	say := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	busy := map[string]bool{} // members whose task is named
	failed, open := d.openTasks(say, busy)
	d.busyMembers(say, busy)
	for _, p := range d.permissions {
		say("%s waits for a permission (%s)", p.Member, p.Request)
	}
	if len(reasons) == 0 {
		return nil
	}
	if more := len(reasons) - mostReasons; more > 0 {
		reasons = append(reasons[:mostReasons], fmt.Sprintf("and %d more", more))
	}
	refusal := Refuse(NotReady, "team %s is not ready to be consolidated: %s", d.team.Name, strings.Join(reasons, "; "))
	if d.team.Status == TeamConsolidating && !d.team.Consolidation.Open() {
		refusal.Text += ". It is winding down, and starts nothing new"
		refusal.With(d.team.hint(ActRollBack))
	}
	if failed != nil {
		for _, action := range []Action{ActRetryTask, ActDeleteTask} {
			refusal.With(failed.Hint(&d.team, action))
		}
	} else if open != nil {
		refusal.With(open.Hint(&d.team, ActShowTask))
	}
	return refusal
}

// openTasks says which tasks are not completed, and adds the members that work on one to busy. It
// returns the first task that failed and the first one that is pending, or nil. Of the pending ones
// it prefers one that waits for no other.
func (d *decision) openTasks(say func(string, ...any), busy map[string]bool) (failed, open *Task) {
	if d.Count(Pending)+d.Count(InProgress) == 0 { // then there is no need to look at thousands
		return nil, nil
	}
	for i := range d.tasks {
		switch t := &d.tasks[i]; {
		case t.OutOfRetries():
			say("%s failed: %s", t.label(), clipTo(t.Failure, 200))
			if failed == nil {
				failed = t
			}
		case t.Status == InProgress:
			say("%s works on %s", t.Owner, t.label())
			busy[t.Owner] = true
		case t.Status == Pending:
			if m := d.asks(t.ID); m != nil {
				say("the branch of %s does not merge: %s is open, and says how", m.Name, t.label())
			} else {
				say("%s is open", t.label())
			}
			if open == nil || open.waits() > 0 && t.waits() == 0 {
				open = t
			}
		}
	}
	return failed, open
}

// busyMembers says which members work or wait, except those whose task is named.
func (d *decision) busyMembers(say func(string, ...any), busy map[string]bool) {
	for i := range d.members {
		m := &d.members[i]
		if !m.Status.Running() || m == d.actor {
			continue
		}
		switch own := m.Agent == External; {
		case m.Limited != 0:
			say("%s waits for a rate limit: %s", m.Name, clipTo(m.Summary, 200))
		case m.Setbacks > 0 || m.RetryAt != 0:
			say("%s has trouble: %s", m.Name, clipTo(m.Summary, 200))
		case m.Plan.State == "submitted":
			say("the plan of %s waits for an answer (%s)", m.Name, m.Plan.Request)
		case m.Handover != "":
			say("a fresh session is about to continue the work of %s", m.Name)
		case own: // its tasks show what it does
		case m.Status == Blocked:
			say("%s is blocked: %s", m.Name, clipTo(m.Summary, 200))
		case m.Status == Active:
			if !busy[m.Name] {
				say("%s works", m.Name)
			}
		case m.Status == Spawning && m.Host != "":
			say("%s is starting", m.Name)
		case m.Host != "" && d.wakes(m):
			say("%s has mail that is not delivered yet", m.Name)
		}
	}
}

// reports checks that the actor may report about that attempt, and that the attempt is at one of
// the steps.
func (d *decision) reports(attempt int64, at ...Step) error {
	if err := d.leads("consolidate the team"); err != nil {
		return err
	}
	c := &d.team.Consolidation
	if c.Attempt != attempt || !c.Open() {
		return refuse(Conflict, "consolidation %d of team %s is not under way", attempt, d.team.Name)
	}
	if !slices.Contains(at, c.Step) {
		return refuse(Conflict, "consolidation %d of team %s is now at the step %q", attempt, d.team.Name, c.Step)
	}
	return nil
}

// ReportMerged says that the work in members' worktrees is on their branches.
type ReportMerged struct {
	Attempt int64
	Members []string
}

func (b *ReportMerged) decide(d *decision) error {
	if err := d.reports(b.Attempt, Began); err != nil {
		return err
	}
	for _, name := range b.Members {
		if _, err := d.known(name); err != nil {
			return err
		}
	}
	d.emit(&WorktreesMerged{Attempt: b.Attempt, Members: b.Members})
	return nil
}

// ReportStaged says which tree is to be committed on which commit; "" for none. [Consolidation]
// says what its fields about branches mean. It may be sent again, at most [MaxRounds] times, when
// the checks changed files that are to be committed. All checks then run again.
type ReportStaged struct {
	Attempt      int64
	Parent, Tree string
	Before       string
	Branches     []Branch
	Files        int64
}

func (b *ReportStaged) decide(d *decision) error {
	if err := d.reports(b.Attempt, Merged, Staged); err != nil {
		return err
	}
	if c := &d.team.Consolidation; c.Step == Staged {
		switch {
		case !c.Changes:
			return Refuse(Denied, "files that the checks change are committed only when the user asks for it").
				With(d.team.hint(ActKeepCheckChanges))
		case c.Rounds >= MaxRounds:
			return refuse(NotReady, "the checks changed files each time that they ran, %d times so far", c.Rounds+1)
		case b.Parent != c.Parent || !slices.Equal(b.Branches, c.Branches) || b.Tree == "" || b.Tree == c.Tree:
			return refuse(Invalid, "the work is staged on %s already; only the tree may change", brief(c.Parent))
		}
	}
	if err := d.green(); err != nil { // work may have started since
		return err
	}
	if err := limit(text{"id of the commit", b.Parent, MaxSubject}, text{"id of the tree", b.Tree, MaxSubject},
		text{"id of the tree before", b.Before, MaxSubject}); err != nil {
		return err
	}
	if b.Files < 0 || b.Tree == "" && b.Files > 0 || d.team.Consolidation.NoCommit && b.Tree != "" {
		return refuse(Invalid, "%d files in the tree %q cannot be committed", b.Files, brief(b.Tree))
	}
	if b.Tree == "" && (b.Before != "" || len(b.Branches) > 0) {
		return refuse(Invalid, "branches are merged by a commit, and the report has no commit")
	}
	for _, one := range b.Branches {
		if _, err := d.known(one.Member); err != nil {
			return err
		}
		if err := limit(text{"name of the branch", one.Name, MaxSubject}, text{"id of the commit", one.Commit,
			MaxSubject}); err != nil {
			return err
		}
	}
	d.emit(&WorkStaged{Attempt: b.Attempt, Parent: b.Parent, Tree: b.Tree, Before: b.Before, Branches: b.Branches,
		Files: b.Files})
	return nil
}

// ReportCheck says how a check of the staged work ended. The first failure ends the attempt: the
// team continues, and its lead is notified.
type ReportCheck struct {
	Attempt int64
	Check   string
	Took    time.Duration
	Failure string // how the check failed; "" if it passed
	Output  string
	Left    []Fact // see [AbandonConsolidation]
}

func (b *ReportCheck) decide(d *decision) error {
	if err := d.reports(b.Attempt, Staged); err != nil {
		return err
	}
	if !slices.ContainsFunc(d.team.Checks, func(c Check) bool { return c.Name == b.Check }) {
		return refuse(NotFound, "team %s has no check %q", d.team.Name, brief(b.Check))
	}
	if b.Took < 0 {
		return refuse(Invalid, "a check cannot take a negative time")
	}
	if b.Failure == "" {
		if !slices.Contains(d.team.Consolidation.Passed, b.Check) {
			d.emit(&CheckPassed{Attempt: b.Attempt, Check: b.Check, Took: b.Took})
		}
		return nil
	}
	output := clipTo(b.Output, MaxOutput)
	d.emit(&CheckFailed{Attempt: b.Attempt, Check: b.Check, Took: b.Took, Output: output})
	reason := fmt.Sprintf("the check %s failed: %s", b.Check, b.Failure)
	words := fmt.Sprintf(": the check %s failed: %s. Nothing was committed, and the team %s.",
		Quoted(b.Check), Quoted(b.Failure), d.after())
	for _, one := range d.team.Consolidation.Branches {
		words += fmt.Sprintf("\nThe work of %s stays on the branch %s, and comes in with the next consolidation.",
			one.Member, one.Name)
	}
	if output != "" {
		words += " What the check said:" + cited(output)
	}
	return d.abandon(b.Left, reason, words)
}

// after says how the team continues when its consolidation is abandoned.
func (d *decision) after() string {
	if d.ends() {
		return "is complete, as it was"
	}
	return "continues"
}

// ends reports whether the team was complete before its consolidation, and has since got no new
// work and no running member.
func (d *decision) ends() bool {
	running, _ := d.anyRunning()
	return d.team.Consolidation.Ended && running == "" && d.Count(Pending)+d.Count(InProgress) == 0
}

// abandon ends the attempt. The team continues, or is complete as it was before.
func (d *decision) abandon(left []Fact, reason, words string) error {
	if err := (&Base{Dirty: left}).check(); err != nil {
		return err
	}
	d.emit(&ConsolidationAbandoned{Attempt: d.team.Consolidation.Attempt,
		Reason: clipTo(reason, MaxSubject), Left: left})
	status := TeamActive
	if d.ends() {
		status = TeamComplete
	}
	d.emit(&TeamStatusChanged{Status: status, Reason: clipTo(reason, MaxSubject)})
	d.tell(d.team.Lead, "", "The consolidation was abandoned%s", words)
	return nil
}

// ReportMade says which commit HEAD will point at, now that all checks passed; "" when there is
// nothing to commit. From here on the attempt can only be finished.
type ReportMade struct {
	Attempt int64
	Commit  string
}

func (b *ReportMade) decide(d *decision) error {
	if err := d.reports(b.Attempt, Staged); err != nil {
		return err
	}
	if err := d.green(); err != nil {
		return err
	}
	c := &d.team.Consolidation
	for _, check := range d.team.Checks {
		if !slices.Contains(c.Passed, check.Name) {
			return refuse(NotReady, "the check %s has not passed yet", check.Name)
		}
	}
	if err := limit(text{"id of the commit", b.Commit, MaxSubject}); err != nil {
		return err
	}
	if (b.Commit == "") != (c.Tree == "") {
		return refuse(Invalid, "the commit %q does not go with the tree %q", brief(b.Commit), c.Tree)
	}
	d.emit(&CommitMade{Attempt: b.Attempt, Commit: b.Commit})
	return nil
}

// ReportConsolidated says that HEAD points at the commit. This completes the team.
type ReportConsolidated struct{ Attempt int64 }

func (b *ReportConsolidated) decide(d *decision) error {
	if err := d.reports(b.Attempt, Made); err != nil {
		return err
	}
	d.emit(&TeamConsolidated{Attempt: b.Attempt}, &TeamStatusChanged{Status: TeamComplete})
	d.stopMembers("the team is complete")
	return nil
}

// AbandonConsolidation ends the attempt: nothing is committed, and the team continues. An attempt
// whose commit exists is abandoned only when that commit cannot become HEAD any more.
type AbandonConsolidation struct {
	Attempt int64
	Reason  string
	// Left lists files that differ from the last commit because checks made or changed them.
	Left []Fact
}

func (b *AbandonConsolidation) decide(d *decision) error {
	if err := d.reports(b.Attempt, Began, Merged, Staged, Made); err != nil {
		return err
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	return d.abandon(b.Left, b.Reason, ". The program that ran it says:"+cited(clipTo(b.Reason, MaxSubject)))
}
